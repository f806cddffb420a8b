//! The second look at a run, once it is known which job ends last: what happens in the window, entry by entry, and the
//! deficiency (`rate`) in the time between.

use scheduler::{Grid, Order, Strategy, Threshold, Time};

use super::beta_percent;
use super::journal::{Change, Job, Journal, NOWHERE, Noted, Phase, State};
use super::lists::Lists;
use super::rate::Rates;
use super::split::Ranges;

/// What the causes depend on besides the events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) beta_percent: u8,
    pub(super) threshold: Threshold,
    pub(super) order: Order,
    /// Sites take jobs from the queues of homes only, one victim each.
    pub(super) by_home: bool,
}

impl Rules {
    pub(super) fn of(strategy: &Strategy) -> Rules {
        Rules {
            beta_percent: beta_percent(strategy),
            threshold: strategy.threshold(),
            order: strategy.steal().map_or(Order::default(), |steal| steal.order),
            by_home: strategy.steal_from_homes().is_some(),
        }
    }
}

/// What the window held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Replayed {
    pub(super) ranges: Ranges,
    /// Work of jobs of home k or above done at sites k or above, in processor-microseconds.
    pub(super) done: i128,
}

pub(super) struct Replay<'a> {
    rules: &'a Rules,
    jobs: &'a [Job],
    entries: &'a [Noted],
    k: usize,
    state: State,
    lists: Lists,
    rates: Rates,
    /// Processors at work on jobs of home k or above.
    busy: u64,
    /// A mistake that the twin must notice: what was offered stays on offer.
    #[cfg(test)]
    pub(super) misses_answers: bool,
}

impl<'a> Replay<'a> {
    pub(super) fn new(grid: &'a Grid, rules: &'a Rules, journal: &'a Journal, k: usize) -> Replay<'a> {
        let rates = Rates::new(grid.sizes(), rules.beta_percent, rules.by_home, k);
        let mut replay = Replay {
            rules,
            jobs: &journal.jobs,
            entries: &journal.entries,
            k,
            state: journal.base.clone(),
            lists: Lists::new(&rates.sizes(), rules.threshold, rules.order),
            rates,
            busy: 0,
            #[cfg(test)]
            misses_answers: false,
        };
        for place in 0..journal.jobs.len() {
            replay.count(place, replay.state.phases[place], true);
        }
        for (&(thief, _), &offer) in &journal.base.asked {
            replay.rates.site(thief as usize).offered += u64::from(offer);
        }
        for (&site, &claimed) in &journal.base.claimed {
            replay.rates.site(site as usize).offered += claimed;
        }
        for &(from, to) in journal.base.broken.keys() {
            replay.rates.site(from as usize).broken += 1;
            replay.rates.site(to as usize).broken += 1;
        }
        replay
    }

    /// Adds up what happens from the submission to the start of the last job.
    pub(super) fn run(mut self, from: Time, until: Time) -> Replayed {
        let mut sum = Replayed::default();
        let mut now = from;
        for entry in self.entries {
            if entry.at > now {
                let end = entry.at.min(until);
                self.integrate(&mut sum, now, end);
                now = end;
                if entry.at >= until {
                    return sum;
                }
            }
            self.apply(entry);
        }
        self.integrate(&mut sum, now, until);
        sum
    }

    fn integrate(&mut self, sum: &mut Replayed, now: Time, end: Time) {
        let span = i128::from(end.since(now).as_micros());
        if span <= 0 {
            return;
        }
        sum.ranges.add(self.rates.refresh(&self.state, &mut self.lists), span);
        sum.done += i128::from(self.busy) * span;
    }

    fn apply(&mut self, entry: &Noted) {
        match self.state.apply(entry) {
            Change::Nothing => {}
            Change::Job { place, before, after } => {
                self.count(place, before, false);
                self.count(place, after, true);
            }
            #[cfg(test)]
            Change::Offered { before, after, .. } if self.misses_answers && after < before => {}
            Change::Offered { site, before, after } => {
                let offered = &mut self.rates.site(site as usize).offered;
                *offered = *offered - before + after;
            }
            Change::Broken { from, to, broken } => {
                for site in [from, to] {
                    let count = &mut self.rates.site(site as usize).broken;
                    *count = if broken { *count + 1 } else { *count - 1 };
                }
            }
        }
    }

    /// Adds a job in a phase to the counts, or takes it off.
    fn count(&mut self, place: usize, phase: Phase, add: bool) {
        let Job { home, processors, .. } = self.jobs[place];
        if home == NOWHERE {
            return;
        }
        let (width, at_home) = (u64::from(processors), home as usize);
        let foreign = at_home < self.k;
        let change = |count: &mut u64| *count = if add { *count + width } else { *count - width };
        match phase {
            Phase::Ahead | Phase::Ended => {}
            Phase::Waiting(site) if self.rules.by_home && site != home => {
                change(self.rates.reserved(at_home))
            }
            Phase::Waiting(_) if add => self.lists.insert(self.rates.class_of(at_home), processors),
            Phase::Waiting(_) => self.lists.remove(self.rates.class_of(at_home), processors),
            Phase::Granted(to) => {
                change(self.rates.reserved(at_home));
                let site = self.rates.site(to as usize);
                change(&mut site.granted);
                if foreign {
                    change(&mut site.foreign_granted);
                }
            }
            Phase::Declined => change(self.rates.reserved(at_home)),
            Phase::Running(site) => {
                let running = self.rates.site(site as usize);
                if foreign {
                    change(&mut running.foreign);
                } else {
                    change(&mut running.busy);
                    if site as usize >= self.k {
                        change(&mut self.busy);
                    }
                }
            }
        }
    }
}
