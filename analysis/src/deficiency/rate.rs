//! The deficiency of all sites at an instant by cause, kept up to date as sites change.
//!
//! Sites of one size share a list and what is reserved for somebody, so what differs within a size is only what each
//! site runs and has under way. A change of one site costs the sites of its size that are as much short of work as no
//! other; a change of a list or of what is reserved costs the same for each size that it reaches.

use std::collections::BTreeSet;

use super::Split;
use super::journal::State;
use super::lists::Lists;

/// One site at an instant, in processors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Site {
    /// Running jobs of home k or above.
    pub(super) busy: u64,
    /// Running jobs of smaller homes.
    pub(super) foreign: u64,
    /// Offered in requests without answer, or reserved by claims.
    pub(super) offered: u64,
    /// On the way here.
    pub(super) granted: u64,
    /// Of that, of homes below k.
    pub(super) foreign_granted: u64,
    /// Directed pairs with this site in which something is lost.
    pub(super) broken: u32,
}

/// Deficiency per microsecond, in hundredths of a processor. As [`Split`], in numbers of half the length: all
/// processors of a grid make less than 2^53.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rate {
    foreign: i64,
    lost: i64,
    in_transit: i64,
    drain: i64,
    blind: i64,
}

impl Rate {
    fn add(&mut self, other: Rate, sign: i64) {
        self.foreign += sign * other.foreign;
        self.lost += sign * other.lost;
        self.in_transit += sign * other.in_transit;
        self.drain += sign * other.drain;
        self.blind += sign * other.blind;
    }
}

/// What a site adds to the sums of its size, in hundredths of a processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    foreign: i64,
    /// The deficiency without what foreign jobs explain.
    short: i64,
    /// Of that, what its own offers and foreign jobs on their way here do not explain.
    open: i64,
    /// Processors that a job of the list could have.
    idle: u64,
}

/// Sites of equal `open` and `idle`.
#[derive(Clone, Copy, Debug)]
struct Group {
    open: i64,
    idle: u64,
    sites: i64,
}

/// All sites of one size.
#[derive(Clone, Debug)]
struct Class {
    size: u64,
    /// The rank of the first site.
    first: usize,
    /// Processors of waiting jobs of this home that are in nobody's list, and of all homes from k to this.
    reserved: u64,
    reserved_up_to: u64,
    /// Sums of the sites without a broken link.
    foreign: i64,
    short: i64,
    /// Of the sites without a broken link that have something open, by (open, idle).
    groups: Vec<Group>,
    /// Ranks of sites with a broken link.
    broken: BTreeSet<usize>,
    rate: Rate,
    is_stale: bool,
}

impl Class {
    fn count(&mut self, share: Share, sign: i64) {
        self.foreign += sign * share.foreign;
        self.short += sign * share.short;
        if share.open == 0 {
            return;
        }
        let Share { open, idle, .. } = share;
        match self.groups.binary_search_by_key(&(open, idle), |group| (group.open, group.idle)) {
            Ok(place) => {
                self.groups[place].sites += sign;
                if self.groups[place].sites == 0 {
                    self.groups.remove(place);
                }
            }
            Err(place) => self.groups.insert(place, Group { open, idle, sites: sign }),
        }
    }

    /// Whether it matters that this many processors are reserved instead of so many.
    fn depends_on_reserved(&self, one: u64, other: u64) -> bool {
        let explained = hundredths(one.min(other));
        !self.broken.is_empty() || self.groups.last().is_some_and(|group| group.open > explained)
    }
}

/// The deficiency of all sites k and above.
#[derive(Clone, Debug)]
pub(super) struct Rates {
    beta_percent: u64,
    /// Whether a site takes from the queue of one home at a time.
    by_home: bool,
    k: usize,
    classes: Vec<Class>,
    class_of: Vec<u32>,
    sites: Vec<Site>,
    /// What was counted of each site.
    shares: Vec<Share>,
    /// Sites that changed, and classes whose rate did, in no order.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
    stale: Vec<usize>,
    /// The lowest class of which something else is reserved.
    reserved_from: usize,
    rate: Rate,
}

fn hundredths(processors: u64) -> i64 {
    100 * processors as i64
}

impl Rates {
    /// All sites idle. `sizes` are those of all sites, in order of rank.
    pub(super) fn new(sizes: &[u32], beta_percent: u8, by_home: bool, k: usize) -> Rates {
        let mut classes: Vec<Class> = Vec::new();
        let mut class_of = Vec::with_capacity(sizes.len());
        for (rank, &size) in sizes.iter().enumerate() {
            let size = u64::from(size);
            if classes.last().is_none_or(|class| class.size != size) {
                classes.push(Class {
                    size,
                    first: rank,
                    reserved: 0,
                    reserved_up_to: 0,
                    foreign: 0,
                    short: 0,
                    groups: Vec::new(),
                    broken: BTreeSet::new(),
                    rate: Rate::default(),
                    is_stale: false,
                });
            }
            class_of.push(classes.len() as u32 - 1);
        }
        let mut rates = Rates {
            beta_percent: u64::from(beta_percent),
            by_home,
            k,
            reserved_from: classes.len(),
            classes,
            class_of,
            sites: vec![Site::default(); sizes.len()],
            shares: vec![Share::default(); sizes.len()],
            touched: Vec::new(),
            is_touched: vec![false; sizes.len()],
            stale: Vec::new(),
            rate: Rate::default(),
        };
        for rank in 0..sizes.len() {
            rates.site(rank);
        }
        rates
    }

    /// The sizes of the sites, each once, in ascending order.
    pub(super) fn sizes(&self) -> Vec<u32> {
        self.classes.iter().map(|class| class.size as u32).collect()
    }

    /// The place of the size of the site of this rank among [`Rates::sizes`].
    pub(super) fn class_of(&self, rank: usize) -> usize {
        self.class_of[rank] as usize
    }

    /// A site that is about to change.
    pub(super) fn site(&mut self, rank: usize) -> &mut Site {
        if rank >= self.k && !self.is_touched[rank] {
            self.is_touched[rank] = true;
            self.touched.push(rank);
        }
        &mut self.sites[rank]
    }

    /// What is reserved of the jobs of this home, about to change.
    pub(super) fn reserved(&mut self, home: usize) -> &mut u64 {
        let class = self.class_of(home);
        if home >= self.k {
            self.reserved_from = self.reserved_from.min(class);
        }
        &mut self.classes[class].reserved
    }

    /// The deficiency per microsecond, in hundredths of a processor.
    pub(super) fn refresh(&mut self, state: &State, lists: &mut Lists) -> Split {
        lists.refresh(|class| self.mark(class));
        while let Some(rank) = self.touched.pop() {
            self.is_touched[rank] = false;
            self.recount(rank);
        }
        self.sum_reserved(lists);
        while let Some(class) = self.stale.pop() {
            let rate = self.rate_of(class, state, lists);
            let class = &mut self.classes[class];
            class.is_stale = false;
            self.rate.add(class.rate, -1);
            self.rate.add(rate, 1);
            class.rate = rate;
        }
        let Rate { foreign, lost, in_transit, drain, blind } = self.rate;
        Split {
            foreign: foreign.into(),
            lost: lost.into(),
            in_transit: in_transit.into(),
            drain: drain.into(),
            blind: blind.into(),
        }
    }

    fn mark(&mut self, class: usize) {
        let stale = &mut self.classes[class].is_stale;
        if !*stale {
            *stale = true;
            self.stale.push(class);
        }
    }

    /// Replaces what a site adds to its class.
    fn recount(&mut self, rank: usize) {
        let place = self.class_of(rank);
        let (site, before) = (self.sites[rank], self.shares[rank]);
        let class = &mut self.classes[place];
        let was_broken = class.broken.contains(&rank);
        let after = share(self.beta_percent, class.size, &site);
        if !was_broken && site.broken == 0 && before == after {
            return;
        }
        if was_broken {
            class.broken.remove(&rank);
        } else {
            class.count(before, -1);
        }
        if site.broken > 0 {
            class.broken.insert(rank);
        } else {
            class.count(after, 1);
        }
        self.shares[rank] = after;
        self.mark(place);
    }

    /// Sums up what is reserved from the lowest home that changed.
    fn sum_reserved(&mut self, lists: &Lists) {
        let first = self.class_of(self.k);
        let from = std::mem::replace(&mut self.reserved_from, self.classes.len());
        let mut sum = if from > first { self.classes[from - 1].reserved_up_to } else { 0 };
        for place in from..self.classes.len() {
            let class = &mut self.classes[place];
            sum += class.reserved;
            let before = std::mem::replace(&mut class.reserved_up_to, sum);
            if before != sum && lists.of(place).is_some() && class.depends_on_reserved(before, sum) {
                self.mark(place);
            }
        }
    }

    fn rate_of(&self, place: usize, state: &State, lists: &Lists) -> Rate {
        let class = &self.classes[place];
        let list = lists.of(place);
        let mut rate = Rate { foreign: class.foreign, ..Rate::default() };
        match list {
            // Nothing waits in any list that these sites may take from: the job that ends last is itself between sites.
            None => rate.in_transit = class.short,
            Some(list) => {
                let explained = hundredths(class.reserved_up_to);
                let from = class.groups.partition_point(|group| group.open <= explained);
                for group in &class.groups[from..] {
                    let left = group.sites * (group.open - explained);
                    *cause(&mut rate, u64::from(list.narrowest) <= group.idle) += left;
                }
                rate.in_transit = class.short - rate.blind - rate.drain;
            }
        }
        let root = list.map(|list| self.classes[list.home].first);
        for &rank in &class.broken {
            let share = self.shares[rank];
            rate.foreign += share.foreign;
            if self.is_cut_off(state, rank, root) {
                rate.lost += share.short;
                continue;
            }
            let left = match list {
                None => 0,
                Some(_) => (share.open - hundredths(class.reserved_up_to)).max(0),
            };
            rate.in_transit += share.short - left;
            *cause(&mut rate, list.is_some_and(|list| u64::from(list.narrowest) <= share.idle)) += left;
        }
        rate
    }

    /// Whether something between a site and its root is lost and not repaired; if jobs wait anywhere, between the
    /// site and anybody.
    fn is_cut_off(&self, state: &State, rank: usize, root: Option<usize>) -> bool {
        match root {
            Some(root) if self.by_home => {
                let (site, root) = (rank as u32, root as u32);
                state.broken.contains_key(&(site, root)) || state.broken.contains_key(&(root, site))
            }
            _ => true,
        }
    }
}

/// Why processors are idle that nothing else explains: a job fits, or none does.
fn cause(rate: &mut Rate, fits: bool) -> &mut i64 {
    if fits { &mut rate.blind } else { &mut rate.drain }
}

fn share(beta_percent: u64, size: u64, site: &Site) -> Share {
    let deficiency = (beta_percent * size).saturating_sub(100 * site.busy) as i64;
    let foreign = deficiency.min(hundredths(site.foreign));
    let short = deficiency - foreign;
    Share {
        foreign,
        short,
        open: (short - hundredths(site.offered + site.foreign_granted)).max(0),
        idle: size.saturating_sub(site.busy + site.foreign + site.granted),
    }
}
