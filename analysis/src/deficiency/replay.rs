//! The second look at a run, once it is known which job ends last: what happens in the window, entry by entry, and the
//! deficiency (`rate`) in the time between.
//!
//! Where jobs share nodes, whether something fits a site is asked of its nodes as its scheduler does (`sharing::room`).

use std::collections::BTreeMap;

use scheduler::{Grid, Order, Strategy, Threshold, Time};

use super::beta_percent;
use super::journal::{Change, Job, Journal, NOWHERE, Noted, Phase, State};
use super::lists::Lists;
use super::rate::Rates;
use super::split::Ranges;
use crate::sharing::room::{Room, local_changes};

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

/// What fits nodes that jobs share.
struct Nodes {
    /// By site, as of the last integration but for those that are stale.
    rooms: Vec<Option<Room>>,
    stale: Vec<u32>,
    /// Waiting jobs of each size of home: how many there are of a width that ask for so much memory.
    waiting: Vec<BTreeMap<(u32, u64), u32>>,
    /// When local users come and go, by site, and how many of these instants are past.
    local: Vec<(Time, u32)>,
    local_past: usize,
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
    /// Where jobs share nodes.
    nodes: Option<Nodes>,
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
            busy: 0,
            nodes: grid.is_shared().then(|| Nodes {
                rooms: vec![None; grid.len()],
                stale: (0..grid.len() as u32).collect(),
                waiting: vec![BTreeMap::new(); rates.sizes().len()],
                local: local_changes(grid),
                local_past: 0,
            }),
            rates,
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
                self.pass(&mut sum, now, end);
                now = end;
                if entry.at >= until {
                    return sum;
                }
            }
            self.apply(entry);
        }
        self.pass(&mut sum, now, until);
        sum
    }

    /// Adds up a stretch of time in which nothing happens but that local users come and go.
    fn pass(&mut self, sum: &mut Replayed, mut now: Time, end: Time) {
        while let Some(nodes) = &mut self.nodes
            && let Some(&(at, site)) = nodes.local.get(nodes.local_past).filter(|(at, _)| *at < end)
        {
            nodes.local_past += 1;
            if at > now {
                self.integrate(sum, now, at);
                now = at;
            }
            self.is_stale(site);
        }
        self.integrate(sum, now, end);
    }

    /// Something on the nodes of a site may be different.
    fn is_stale(&mut self, site: u32) {
        if let Some(nodes) = &mut self.nodes {
            nodes.stale.push(site);
        }
    }

    /// Looks which sites have nodes for a job of their list at an instant.
    fn fit(&mut self, now: Time) {
        let Some(Nodes { rooms, stale, waiting, .. }) = &mut self.nodes else { return };
        for site in stale.drain(..) {
            let nodes = self.state.nodes[site as usize].as_ref();
            rooms[site as usize] = nodes.map(|nodes| nodes.room(now));
        }
        for (rank, room) in rooms.iter().enumerate().skip(self.k) {
            let Some(room) = room else { continue };
            let list = self.lists.of(self.rates.class_of(rank));
            let fits = list.is_some_and(|list| {
                let mut jobs = waiting[list.home].keys().filter(|job| list.widths.contains(job.0));
                jobs.any(|&(width, memory)| room.fits(width, memory))
            });
            self.rates.fit(rank, fits);
        }
    }

    fn integrate(&mut self, sum: &mut Replayed, now: Time, end: Time) {
        let span = i128::from(end.since(now).as_micros());
        if span <= 0 {
            return;
        }
        self.rates.refresh_lists(&mut self.lists);
        self.fit(now);
        sum.ranges.add(self.rates.refresh(&self.state, &self.lists), span);
        sum.done += i128::from(self.busy) * span;
    }

    fn apply(&mut self, entry: &Noted) {
        self.is_stale(entry.site);
        match self.state.apply(entry) {
            Change::Nothing => {}
            Change::Job { place, before, after } => {
                for phase in [before, after] {
                    if let Phase::Granted(site) = phase {
                        self.is_stale(site);
                    }
                }
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
            Phase::Waiting(_) => {
                let class = self.rates.class_of(at_home);
                if add {
                    self.lists.insert(class, processors);
                } else {
                    self.lists.remove(class, processors);
                }
                if let (Some(nodes), Some(demand)) = (&mut self.nodes, self.state.demand(place)) {
                    let jobs = nodes.waiting[class].entry(demand).or_default();
                    *jobs = if add { *jobs + 1 } else { *jobs - 1 };
                    if *jobs == 0 {
                        nodes.waiting[class].remove(&demand);
                    }
                }
            }
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
