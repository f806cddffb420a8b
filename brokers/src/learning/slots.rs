//! How many jobs of one broker a site may hold: beyond, it is saturated (Costa 2007, note 25).

/// One site as far as its places are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slot {
    processors: u32,
    limit: u32,
    active: u32,
    is_available: bool,
    is_there: bool,
}

/// The places for jobs at all sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slots {
    sites: Vec<Slot>,
    /// Follows from who is there; asked for at each decision, which seldom changes it.
    widest_left: Option<u32>,
}

impl Slots {
    /// Sites of these sizes, all available, that hold up to `limit` jobs each.
    pub fn new(processors: &[u32], limit: u32) -> Slots {
        let slot = |&processors| Slot { processors, limit, active: 0, is_available: true, is_there: true };
        Slots { sites: processors.iter().map(slot).collect(), widest_left: None }
    }

    /// Sites that there are.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Whether there is no site.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Whether a site gets one more job: `available ∧ limit > total - (done + failed)`. What waits there counts as what
    /// runs.
    ///
    /// # Panics
    /// If there is no such site, as all methods that take one.
    pub fn is_open(&self, site: usize) -> bool {
        let slot = &self.sites[site];
        slot.is_available && slot.limit > slot.active
    }

    /// Whether it is open, and wide enough for a job of so many processors.
    pub fn takes(&self, site: usize, processors: u32) -> bool {
        self.is_open(site) && self.sites[site].processors >= processors
    }

    /// Places that are left.
    pub fn free(&self, site: usize) -> u32 {
        let slot = &self.sites[site];
        if slot.is_available { slot.limit.saturating_sub(slot.active) } else { 0 }
    }

    /// Jobs that were assigned and have not ended: those that wait and those that run.
    pub fn active(&self, site: usize) -> u32 {
        self.sites[site].active
    }

    /// The most that the site may hold.
    pub fn limit(&self, site: usize) -> u32 {
        self.sites[site].limit
    }

    /// Processors of the site.
    pub fn processors(&self, site: usize) -> u32 {
        self.sites[site].processors
    }

    /// Changes the most that a site may hold. What is there beyond it stays.
    pub fn set_limit(&mut self, site: usize, limit: u32) {
        self.sites[site].limit = limit;
    }

    /// Says whether a site can be used at all.
    pub fn set_available(&mut self, site: usize, is_available: bool) {
        self.sites[site].is_available = is_available;
    }

    /// Says whether a site is there, be it available or not. Jobs that only sites which are not there are wide enough for
    /// are not decided on.
    pub fn set_there(&mut self, site: usize, is_there: bool) {
        if std::mem::replace(&mut self.sites[site].is_there, is_there) != is_there {
            let there = self.sites.iter().filter(|slot| slot.is_there).map(|slot| slot.processors);
            let there = there.max().unwrap_or(0);
            self.widest_left = self.sites.iter().any(|slot| slot.processors > there).then_some(there);
        }
    }

    /// Processors of the widest site that is there, if a wider one is not.
    pub(super) fn widest_left(&self) -> Option<u32> {
        self.widest_left
    }

    /// Whether a site can be used at all, saturated or not.
    pub fn is_available(&self, site: usize) -> bool {
        self.sites[site].is_available
    }

    /// Sites that are open, in their order.
    pub fn open(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.sites.len()).filter(|&site| self.is_open(site))
    }

    /// A job was assigned to the site.
    pub(super) fn take(&mut self, site: usize) {
        self.sites[site].active += 1;
    }

    /// A job of the site ended or failed, or was taken back.
    pub(super) fn give_back(&mut self, site: usize) {
        let active = &mut self.sites[site].active;
        *active = active.checked_sub(1).expect("only what was assigned ends");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_saturated_by_assignments_and_opens_as_jobs_end() {
        let mut slots = Slots::new(&[4, 8], 20);
        for active in 0..20 {
            assert!(slots.is_open(0), "{active}");
            slots.take(0);
        }
        assert_eq!((slots.is_open(0), slots.free(0), slots.active(0)), (false, 0, 20));
        assert_eq!(slots.open().collect::<Vec<usize>>(), [1]);
        slots.give_back(0);
        assert!(slots.is_open(0) && slots.takes(0, 4) && !slots.takes(0, 5));
        slots.set_available(0, false);
        assert_eq!((slots.is_open(0), slots.free(0)), (false, 0));
        slots.set_available(0, true);
        slots.set_limit(0, 5);
        assert_eq!((slots.is_open(0), slots.free(0)), (false, 0), "what is there stays");
    }
}
