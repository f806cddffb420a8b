//! The deficiency of all sites at an instant by cause, kept up to date as sites change.
//!
//! Sites of one size share a list and what is reserved for somebody, so what differs within a size is only what each
//! site runs and has under way. A change of one site costs the sites of its size that are as much short of work as no
//! other; a change of a list or of what is reserved costs the same for each size that it reaches.

use std::collections::BTreeSet;

use super::journal::State;
use super::lists::Lists;
use super::split::Rate;

/// One site at an instant, in processors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Site {
    /// Running jobs of home k or above.
    pub(super) busy: u64,
    /// Running jobs of smaller homes.
    pub(super) foreign: u64,
    /// Offered in requests without answer, or reserved by claims, and no job was granted for them.
    pub(super) offered: u64,
    /// On the way here.
    pub(super) granted: u64,
    /// Of that, of homes below k.
    pub(super) foreign_granted: u64,
    /// Directed pairs with this site in which something is lost.
    pub(super) broken: u32,
    /// Whether a job of its list fits its nodes, where jobs share these. Elsewhere processors tell.
    pub(super) fits: Option<bool>,
}

/// What the causes of a site's deficiency depend on, besides what its size shares; in hundredths of a processor. In
/// order of `idle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Share {
    /// Processors that run nothing. No cause but foreign jobs explains more.
    idle: i64,
    /// The deficiency. If there is none, nothing else matters.
    short: i64,
    foreign: i64,
    offered: i64,
    /// Of foreign jobs on their way here.
    granted: i64,
    /// Processors that a job of the list could have.
    free: u64,
}

/// Sites that are alike.
#[derive(Clone, Copy, Debug)]
struct Group {
    share: Share,
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
    /// Of the sites without a broken link that are short of work, ascending.
    groups: Vec<Group>,
    /// Ranks of sites with a broken link.
    broken: BTreeSet<usize>,
    rate: Rate,
    is_stale: bool,
}

impl Class {
    fn count(&mut self, share: Share, sign: i64) {
        if share.short == 0 {
            return;
        }
        match self.groups.binary_search_by_key(&share, |group| group.share) {
            Ok(place) => {
                self.groups[place].sites += sign;
                if self.groups[place].sites == 0 {
                    self.groups.remove(place);
                }
            }
            Err(place) => self.groups.insert(place, Group { share, sites: sign }),
        }
    }

    /// Whether it matters that this many processors are reserved instead of so many.
    fn depends_on_reserved(&self, one: u64, other: u64) -> bool {
        let explained = hundredths(one.min(other));
        !self.broken.is_empty() || self.groups.last().is_some_and(|group| group.share.idle > explained)
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

    /// Makes lists anew.
    pub(super) fn refresh_lists(&mut self, lists: &mut Lists) {
        lists.refresh(|class| self.mark(class));
    }

    /// Whether a job of the list of a site fits its nodes, where jobs share these.
    pub(super) fn fit(&mut self, rank: usize, fits: bool) {
        if self.sites[rank].fits != Some(fits) {
            self.site(rank).fits = Some(fits);
        }
    }

    /// The deficiency per microsecond, in hundredths of a processor, by lists that are up to date.
    pub(super) fn refresh(&mut self, state: &State, lists: &Lists) -> &Rate {
        while let Some(rank) = self.touched.pop() {
            self.is_touched[rank] = false;
            self.recount(rank);
        }
        self.sum_reserved(lists);
        while let Some(class) = self.stale.pop() {
            let rate = self.rate_of(class, state, lists);
            let class = &mut self.classes[class];
            class.is_stale = false;
            self.rate.add(&class.rate, -1);
            self.rate.add(&rate, 1);
            class.rate = rate;
        }
        &self.rate
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
        let after = Share::of(self.beta_percent, class.size, &site);
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
        let reserved = hundredths(class.reserved_up_to);
        let narrowest = list.map(|list| u64::from(list.narrowest));
        let mut rate = Rate::default();
        for group in &class.groups {
            rate.add(&group.share.causes(narrowest, reserved, false), group.sites);
        }
        let root = list.map(|list| self.classes[list.home].first);
        for &rank in &class.broken {
            let cut_off = self.is_cut_off(state, rank, root);
            rate.add(&self.shares[rank].causes(narrowest, reserved, cut_off), 1);
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

impl Share {
    fn of(beta_percent: u64, size: u64, site: &Site) -> Share {
        let short = (beta_percent * size).saturating_sub(100 * site.busy) as i64;
        if short == 0 {
            return Share::default();
        }
        let at_work = site.busy + site.foreign;
        Share {
            idle: hundredths(size.saturating_sub(at_work)),
            short,
            foreign: hundredths(site.foreign),
            offered: hundredths(site.offered),
            granted: hundredths(site.foreign_granted),
            free: match site.fits {
                // As if the narrowest job of the list stood for those that fit.
                Some(fits) => {
                    if fits {
                        u64::MAX
                    } else {
                        0
                    }
                }
                None => size.saturating_sub(at_work + site.granted),
            },
        }
    }

    /// Why its processors were not busy, with the narrowest job of the site's list, what is reserved of the jobs that may
    /// run there, and whether the site is cut off from its root.
    fn causes(&self, narrowest: Option<u64>, reserved: i64, cut_off: bool) -> Rate {
        let all_if = |applies: bool| if applies { self.idle } else { 0 };
        let under_way = (self.granted + reserved).min(self.idle);
        // Nothing waits in any list that this site may take from: the job that ends last is itself between sites.
        let in_transit = if narrowest.is_none() { self.idle } else { under_way };
        let drains = narrowest.is_some_and(|narrowest| narrowest > self.free);
        let asked = self.offered.min(self.idle);
        Rate::of(self.short, [self.foreign, all_if(cut_off), in_transit, asked, all_if(drains)])
    }
}
