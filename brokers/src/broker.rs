//! The seam between a broker and what drives it: which job goes to which site.
//!
//! A broker is told which jobs came, and is shown sites when it decides. It answers with places for jobs, one at a time, with jobs
//! that are to start at several sites at once, and with jobs that it wants back; a job that it says nothing of is held. It may wake itself. It sends nothing and reads no
//! clock. Desks of the protocol and the references in `ideal` drive it; `table.rs` says which rule is which broker.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use scheduler::event::FallbackCause;
use scheduler::strategy::Overrun;
use scheduler::{JobId, JobSpec, Time};

use crate::allocation::book::{Book, Site};
use crate::allocation::decider::BrokerDecider;
use crate::allocation::patience::Patience;
use crate::learning::estimates::{Estimates, Requested};

/// What sites must disclose to a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disclosure {
    /// Nothing.
    Nothing,
    /// What became of its own jobs, once they have ended.
    OwnEnds,
    /// All jobs that they have.
    All,
}

/// What a broker does with a job that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// It goes to the queue of the site at this place.
    Place(JobSpec, usize),
    /// It starts at once at several sites, in parts.
    Spread(Spread),
}

impl Act {
    /// The job and the place, of a broker that never spreads any.
    ///
    /// # Panics
    /// If the job is spread.
    pub fn placed(self) -> (JobSpec, usize) {
        match self {
            Act::Place(job, place) => (job, place),
            Act::Spread(spread) => panic!("job {} is spread, which nobody can do who asks", spread.job.id),
        }
    }
}

/// A job that starts at several sites at once, or at none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The whole job.
    pub job: JobSpec,
    /// Places of different sites, each with how many of the job's processors are there, at least one; together they are all of them.
    /// The job is known by the first.
    pub parts: Vec<(usize, u32)>,
    /// The place of the site in whose queue it waits until then, if it does.
    pub from: Option<usize>,
}

/// Decides which job goes to which site. Sites are told apart by their places: they ascend by size.
pub trait Broker: Debug + Send + Sync + CloneBroker {
    /// What it must be told of sites.
    fn needs(&self) -> Disclosure;

    /// A job came. It waits for a site.
    fn came(&mut self, now: Time, job: JobSpec);

    /// Somebody else has a job from now on. None if it does not wait here.
    fn withdraw(&mut self, job: &JobSpec) -> Option<JobSpec>;

    /// The jobs that wait here, in the order in which it looks at them.
    fn waiting(&self) -> Box<dyn Iterator<Item = &JobSpec> + '_>;

    /// How many wait here.
    fn count(&self) -> usize;

    /// The next job that goes to a site or to several, and where; none once all that wait are held. Whoever asks does it until then, and
    /// sends each job before it asks again, so that the next decision sees it there.
    fn decide(&mut self, now: Time, sites: &mut dyn Sites) -> Option<Act>;

    /// When it wants to be woken; once it was, at another time or not at all.
    fn wake_at(&self) -> Option<Time> {
        None
    }

    /// Whether it holds jobs that may go as soon as something happens at a site.
    fn waits_for_room(&self) -> bool {
        false
    }

    /// The time has come, after everything else of the instant; decisions follow. Jobs that it calls back, and from where.
    fn woke(&mut self, _now: Time) -> Vec<(JobId, usize)> {
        Vec::new()
    }

    /// A site has come back: what no other was wide enough for may go there.
    fn met(&mut self, _now: Time) {}

    /// Which of these sites it would consider for a job: what a driver asks whose sites tell nothing unless they are asked.
    fn admissible(&self, _now: Time, _job: &JobSpec, sites: &[Site<'_>]) -> Range<usize> {
        0..sites.len()
    }

    /// Somebody else is to be asked for each job. Only brokers that are made for that listen.
    fn ask(&mut self, _decider: Arc<dyn BrokerDecider>) {}

    /// Why somebody else is not asked any more, once.
    fn failure(&mut self) -> Option<FallbackCause> {
        None
    }
}

/// What a driver shows a broker that decides.
pub trait Sites {
    /// What is known of each site that is there, or believed to be, in the order of places.
    fn known(&self) -> Vec<Site<'_>> {
        Vec::new()
    }

    /// Has every site planned as it would go on, as [`Book::prepare`] does.
    fn prepare(&mut self, _now: Time, _overrun: Overrun) {}

    /// How long a search may take; none for as long as it wants.
    fn patience(&self) -> Option<&dyn Patience> {
        None
    }

    /// What is estimated of jobs at sites.
    fn estimates(&self) -> &dyn Estimates {
        const { &Requested::NOTHING }
    }
}

impl<E: Estimates> Sites for E {
    fn estimates(&self) -> &dyn Estimates {
        self
    }
}

/// Sites as they are, at this instant.
#[derive(Debug)]
pub struct Truth<'a>(pub Time, pub &'a mut [Book]);

impl Sites for Truth<'_> {
    fn known(&self) -> Vec<Site<'_>> {
        let site = |(place, book)| Site { place, book, is_candidate: true, as_of: Some(self.0) };
        self.1.iter().enumerate().map(site).collect()
    }

    fn prepare(&mut self, now: Time, overrun: Overrun) {
        self.1.iter_mut().for_each(|book| book.prepare(now, overrun));
    }
}

/// Brokers can be cloned behind their seam.
pub trait CloneBroker {
    /// Another one that is the same.
    fn boxed(&self) -> Box<dyn Broker>;
}

impl<B: Broker + Clone + 'static> CloneBroker for B {
    fn boxed(&self) -> Box<dyn Broker> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Broker> {
    fn clone(&self) -> Box<dyn Broker> {
        (**self).boxed()
    }
}
