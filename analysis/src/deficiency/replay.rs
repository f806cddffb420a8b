//! The second look at a run, once it is known which job ends last: the deficiency of each site at each instant, and
//! why it is there.

use scheduler::{Grid, Order, Strategy, Threshold, Time};

use super::journal::{Entry, Job, Journal, NOWHERE, Note, Phase, State};
use super::lists::Lists;
use super::{Split, beta_percent};

/// What the causes depend on besides the events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) beta_percent: u8,
    threshold: Threshold,
    order: Order,
    /// Sites take jobs from the queues of homes only, one victim each.
    by_home: bool,
}

impl Rules {
    pub(super) fn of(strategy: &Strategy) -> Rules {
        let (order, by_home) = match strategy {
            Strategy::Steal(steal) => (steal.order, true),
            Strategy::StealGreedy(steal) => (steal.order, false),
            _ => (Order::default(), false),
        };
        Rules { beta_percent: beta_percent(strategy), threshold: strategy.threshold(), order, by_home }
    }
}

/// What the window held.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Replayed {
    pub(super) split: Split,
    /// Work of jobs of home k or above done at sites k or above, in processor-microseconds.
    pub(super) done: i128,
}

/// One site at an instant, in processors.
#[derive(Clone, Copy, Debug, Default)]
struct Site {
    /// Running jobs of home k or above.
    busy: u64,
    /// Running jobs of smaller homes.
    foreign: u64,
    /// Offered in requests without answer, or reserved by claims.
    offered: u64,
    /// On the way here.
    granted: u64,
    /// Of that, of homes below k.
    foreign_granted: u64,
    /// Directed pairs with this site in which something is lost.
    broken: u32,
}

pub(super) struct Replay<'a> {
    rules: &'a Rules,
    jobs: &'a [Job],
    entries: &'a [Entry],
    sizes: &'a [u32],
    k: usize,
    state: State,
    sites: Vec<Site>,
    /// Widths of jobs that are in nobody's list, by home: between sites, or reserved for one.
    reserved: Vec<u64>,
    lists: Lists,
    /// Deficiency per microsecond as of now, and processors at work.
    rate: Split,
    busy: u64,
}

impl<'a> Replay<'a> {
    pub(super) fn new(grid: &'a Grid, rules: &'a Rules, journal: &'a Journal, k: usize) -> Replay<'a> {
        let mut replay = Replay {
            rules,
            jobs: &journal.jobs,
            entries: &journal.entries,
            sizes: grid.sizes(),
            k,
            state: journal.base.clone(),
            sites: vec![Site::default(); grid.len()],
            reserved: vec![0; grid.len()],
            lists: Lists::new(grid, rules.threshold, rules.order),
            rate: Split::default(),
            busy: 0,
        };
        for place in 0..journal.jobs.len() {
            replay.count(place, replay.state.phases[place], true);
        }
        for (&(thief, _), &offer) in &journal.base.asked {
            replay.sites[thief as usize].offered += u64::from(offer);
        }
        for (&site, &claimed) in &journal.base.claimed {
            replay.sites[site as usize].offered += claimed;
        }
        for &(from, to) in journal.base.broken.keys() {
            replay.sites[from as usize].broken += 1;
            replay.sites[to as usize].broken += 1;
        }
        replay
    }

    /// Adds up what happens from the submission to the start of the last job.
    pub(super) fn run(mut self, from: Time, until: Time) -> Replayed {
        let mut sum = Replayed::default();
        let mut now = from;
        let mut fresh = false;
        for entry in self.entries {
            if entry.at > now {
                let end = entry.at.min(until);
                self.integrate(&mut sum, &mut fresh, now, end);
                now = end;
                if entry.at >= until {
                    return sum;
                }
            }
            self.apply(entry);
            fresh = false;
        }
        self.integrate(&mut sum, &mut fresh, now, until);
        sum
    }

    fn integrate(&mut self, sum: &mut Replayed, fresh: &mut bool, now: Time, end: Time) {
        let span = i128::from(end.since(now).as_micros());
        if span <= 0 {
            return;
        }
        if !*fresh {
            self.rate = self.rate_now();
            *fresh = true;
        }
        sum.split.add(self.rate.times(span));
        sum.done += i128::from(self.busy) * span;
    }

    fn apply(&mut self, entry: &Entry) {
        match entry.what {
            Note::Asked { victim, offer } => {
                let before = self.state.asked.get(&(entry.site, victim)).copied().unwrap_or(0);
                let offered = &mut self.sites[entry.site as usize].offered;
                *offered = *offered - u64::from(before) + u64::from(offer);
            }
            Note::Answered { victim } => {
                let before = self.state.asked.get(&(entry.site, victim)).copied().unwrap_or(0);
                self.sites[entry.site as usize].offered -= u64::from(before);
            }
            Note::Claimed(processors) => self.sites[entry.site as usize].offered += u64::from(processors),
            Note::Released(processors) => {
                let offered = &mut self.sites[entry.site as usize].offered;
                *offered = offered.saturating_sub(u64::from(processors));
            }
            Note::Broken { to, broken } => {
                let known = self.state.broken.contains_key(&(entry.site, to));
                if known != broken {
                    for site in [entry.site, to] {
                        let count = &mut self.sites[site as usize].broken;
                        *count = if broken { *count + 1 } else { *count - 1 };
                    }
                }
            }
            _ => {}
        }
        if let Some((place, before, after)) = self.state.apply(entry) {
            self.count(place, before, false);
            self.count(place, after, true);
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
            Phase::Waiting(site) if self.rules.by_home && site != home => change(&mut self.reserved[at_home]),
            Phase::Waiting(_) if add => self.lists.insert(at_home, processors),
            Phase::Waiting(_) => self.lists.remove(at_home, processors),
            Phase::Granted(to) => {
                change(&mut self.reserved[at_home]);
                change(&mut self.sites[to as usize].granted);
                if foreign {
                    change(&mut self.sites[to as usize].foreign_granted);
                }
            }
            Phase::Declined => change(&mut self.reserved[at_home]),
            Phase::Running(site) => {
                let site_state = &mut self.sites[site as usize];
                if foreign {
                    change(&mut site_state.foreign);
                } else {
                    change(&mut site_state.busy);
                    if site as usize >= self.k {
                        change(&mut self.busy);
                    }
                }
            }
        }
    }

    /// The deficiency of all sites k and above at this instant, in hundredths of a processor.
    fn rate_now(&mut self) -> Split {
        let beta = u64::from(self.rules.beta_percent);
        let mut rate = Split::default();
        let mut reserved = 0;
        for rank in self.k..self.sites.len() {
            reserved += self.reserved[rank];
            let (size, site) = (u64::from(self.sizes[rank]), self.sites[rank]);
            let deficiency = (beta * size).saturating_sub(100 * site.busy);
            if deficiency == 0 {
                continue;
            }
            let mut left = i128::from(deficiency);
            let mut take = |most: u64| {
                let taken = left.min(100 * i128::from(most));
                left -= taken;
                taken
            };
            rate.foreign += take(site.foreign);
            let list = self.lists.all()[rank];
            if site.broken > 0 && self.is_cut_off(rank, list.map(|list| list.home)) {
                rate.lost += take(size);
            }
            // Nothing waits in any list that this site may take from: the job that ends last is itself between sites.
            let under_way = site.offered + site.foreign_granted + reserved;
            rate.in_transit += take(if list.is_none() { size } else { under_way });
            let idle = size.saturating_sub(site.busy + site.foreign + site.granted);
            let fits = list.is_some_and(|list| u64::from(list.narrowest) <= idle);
            if fits {
                rate.blind += take(size);
            } else {
                rate.drain += take(size);
            }
        }
        rate
    }

    /// Whether something between a site and its root is lost and not repaired; if jobs wait anywhere, between the
    /// site and anybody.
    fn is_cut_off(&self, rank: usize, root: Option<usize>) -> bool {
        match root {
            Some(root) if self.rules.by_home => {
                let (site, root) = (rank as u32, root as u32);
                self.state.broken.contains_key(&(site, root)) || self.state.broken.contains_key(&(root, site))
            }
            _ => true,
        }
    }
}
