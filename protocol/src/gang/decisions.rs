//! The attempts of one broker.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{JobId, SiteId};

use super::{Attempt, Order, Reply};

/// An order with its receiver.
type Sent = (SiteId, Attempt, Order);

/// An attempt that starts, or has started, everywhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision {
    /// Its sites.
    pub sites: BTreeSet<SiteId>,
    /// Those whose part is over, and whether it ran to its end.
    pub over: BTreeMap<SiteId, bool>,
}

impl Decision {
    /// Whether a part did not run to its end: the others must not go on.
    pub fn is_broken(&self) -> bool {
        self.over.values().any(|&ended| !ended)
    }

    /// The sites whose parts ran to their ends.
    pub fn ended(&self) -> BTreeSet<SiteId> {
        self.over.iter().filter(|(_, ended)| **ended).map(|(&site, _)| site).collect()
    }
}

/// An attempt that nobody has decided on. A crash forgets it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Preparing {
    parts: BTreeMap<SiteId, u32>,
    ready: BTreeSet<SiteId>,
}

/// What becomes of a job whose parts are all over.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Settled {
    /// It ran to its end everywhere.
    Ended(JobId),
    /// It did not: it waits again.
    Waits {
        /// The job.
        job: JobId,
        /// Sites whose parts ran to their ends, in vain.
        ended: BTreeSet<SiteId>,
    },
}

/// The attempts of one broker. Decisions and the next number are written down before an order leaves that tells of them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decisions {
    next: u64,
    preparing: BTreeMap<Attempt, Preparing>,
    decided: BTreeMap<Attempt, Decision>,
}

impl Decisions {
    /// A broker without attempts that counts them from here.
    pub fn new(next: u64) -> Decisions {
        Decisions { next, preparing: BTreeMap::new(), decided: BTreeMap::new() }
    }

    /// What was written down, by a broker that restarts. `next` is above all numbers that it gave out.
    pub fn restored(next: u64, decided: BTreeMap<Attempt, Decision>) -> Decisions {
        Decisions { decided, ..Decisions::new(next) }
    }

    /// Attempts that were decided on and are not settled.
    pub fn decided(&self) -> &BTreeMap<Attempt, Decision> {
        &self.decided
    }

    /// Attempts that nobody has decided on.
    pub fn preparing(&self) -> impl Iterator<Item = Attempt> + '_ {
        self.preparing.keys().copied()
    }

    /// Whether an attempt for the job is open.
    pub fn has(&self, job: JobId) -> bool {
        self.preparing.keys().chain(self.decided.keys()).any(|attempt| attempt.job == job)
    }

    /// The number of the next attempt.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// A job is to start with so many processors at each of these sites.
    ///
    /// # Panics
    /// If an attempt for it is open.
    pub fn begin(&mut self, job: JobId, epoch: u32, parts: BTreeMap<SiteId, u32>) -> Vec<Sent> {
        assert!(!self.has(job), "job {job} has one attempt at a time");
        let attempt = Attempt { job, epoch, number: self.next };
        self.next += 1;
        self.preparing.insert(attempt, Preparing { parts, ready: BTreeSet::new() });
        self.prepare(attempt)
    }

    fn prepare(&self, attempt: Attempt) -> Vec<Sent> {
        let open = self.preparing.keys().chain(self.decided.keys()).map(|attempt| attempt.number);
        let floor = open.min().unwrap_or(self.next);
        let parts = &self.preparing[&attempt].parts;
        let order = |(&site, &processors)| (site, attempt, Order::Prepare { processors, floor });
        parts.iter().map(order).collect()
    }

    /// An attempt that nobody has decided on is given up. Nothing if it is decided on: that stands.
    pub fn gives_up(&mut self, attempt: Attempt) -> Vec<Sent> {
        let preparing = self.preparing.remove(&attempt);
        let sites = preparing.into_iter().flat_map(|preparing| preparing.parts.into_keys());
        sites.map(|site| (site, attempt, Order::Abort)).collect()
    }

    /// The job of an attempt is taken over: whatever was decided on means nothing, and no part of it goes on.
    pub fn is_taken_over(&mut self, attempt: Attempt) -> Vec<Sent> {
        let decided = self.decided.remove(&attempt).into_iter().flat_map(|decision| decision.sites);
        let orders: Vec<Sent> = decided.map(|site| (site, attempt, Order::Abort)).collect();
        if orders.is_empty() { self.gives_up(attempt) } else { orders }
    }

    /// A site replies.
    pub fn heard(&mut self, from: SiteId, attempt: Attempt, reply: Reply) -> (Vec<Sent>, Option<Settled>) {
        let preparing = self.preparing.get(&attempt).map(|preparing| preparing.parts.contains_key(&from));
        let decided = self.decided.get(&attempt).map(|decision| decision.sites.contains(&from));
        if preparing.or(decided) == Some(false) {
            // It has no part of it.
            return (Vec::new(), None);
        }
        match reply {
            Reply::Ready => (self.is_ready(from, attempt), None),
            Reply::Refused => (self.gives_up(attempt), None),
            Reply::Over { ended } => self.is_over(from, attempt, ended),
        }
    }

    fn is_ready(&mut self, from: SiteId, attempt: Attempt) -> Vec<Sent> {
        if let Some(preparing) = self.preparing.get_mut(&attempt) {
            preparing.ready.insert(from);
            if !preparing.parts.keys().all(|site| preparing.ready.contains(site)) {
                return Vec::new();
            }
            let preparing = self.preparing.remove(&attempt).expect("it was there");
            let sites: BTreeSet<SiteId> = preparing.parts.into_keys().collect();
            let orders = sites.iter().map(|&site| (site, attempt, Order::Commit)).collect();
            self.decided.insert(attempt, Decision { sites, over: BTreeMap::new() });
            return orders;
        }
        let starts = self.decided.get(&attempt).is_some_and(|decision| !decision.is_broken());
        vec![(from, attempt, if starts { Order::Commit } else { Order::Abort })]
    }

    fn is_over(&mut self, from: SiteId, attempt: Attempt, ended: bool) -> (Vec<Sent>, Option<Settled>) {
        if self.preparing.contains_key(&attempt) {
            return (self.gives_up(attempt), None);
        }
        let Some(decision) = self.decided.get_mut(&attempt) else { return (Vec::new(), None) };
        let was_broken = decision.is_broken();
        decision.over.insert(from, ended);
        let mut orders = Vec::new();
        if decision.is_broken() && !was_broken {
            let open = decision.sites.iter().filter(|site| !decision.over.contains_key(site));
            orders.extend(open.map(|&site| (site, attempt, Order::Abort)));
        }
        let mut settled = None;
        if decision.over.len() == decision.sites.len() {
            let job = attempt.job;
            settled = Some(match decision.is_broken() {
                true => Settled::Waits { job, ended: decision.ended() },
                false => Settled::Ended(job),
            });
            self.decided.remove(&attempt);
        }
        (orders, settled)
    }

    /// What is said again until it is answered.
    pub fn again(&self) -> Vec<Sent> {
        let mut orders: Vec<Sent> = self.preparing().flat_map(|attempt| self.prepare(attempt)).collect();
        for (&attempt, decision) in &self.decided {
            let order = if decision.is_broken() { Order::Abort } else { Order::Commit };
            let open = decision.sites.iter().filter(|site| !decision.over.contains_key(site));
            orders.extend(open.map(|&site| (site, attempt, order)));
        }
        orders
    }
}
