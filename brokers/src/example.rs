//! The smallest broker that holds jobs, limits sites and has a cycle of its own, to which `docs/EXTENDING.md` leads.

use std::collections::VecDeque;

use scheduler::{Grid, JobId, JobSpec, Labels, LocalScheduler, Pass, SiteId, Span, Time};

use crate::allocation::book::Book;
use crate::broker::{Act, Broker, Disclosure, Sites, Truth};

/// How often it decides.
const PERIOD: Span = Span::from_secs(60);
/// Jobs that may wait at a site.
const LIMIT: u64 = 1;

#[derive(Clone, Debug, Default)]
struct Cycle {
    waiting: VecDeque<JobSpec>,
    wake_at: Option<Time>,
    is_due: bool,
}

impl Broker for Cycle {
    fn needs(&self) -> Disclosure {
        Disclosure::All
    }

    fn came(&mut self, now: Time, job: JobSpec) {
        self.waiting.push_back(job);
        self.wake_at.get_or_insert(now + PERIOD);
    }

    fn withdraw(&mut self, job: &JobSpec) -> Option<JobSpec> {
        let index = self.waiting.iter().position(|waiting| waiting.id == job.id)?;
        self.waiting.remove(index)
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = &JobSpec> + '_> {
        Box::new(self.waiting.iter())
    }

    fn count(&self) -> usize {
        self.waiting.len()
    }

    fn decide(&mut self, now: Time, sites: &mut dyn Sites) -> Option<Act> {
        if !self.is_due {
            return None;
        }
        let known = sites.known();
        let takes = |job: &JobSpec| {
            let room = |book: &Book| job.processors <= book.processors() && book.waiting() < LIMIT;
            known.iter().find(|site| room(site.book)).map(|site| site.place)
        };
        let found = self.waiting.iter().enumerate().find_map(|(index, job)| Some((index, takes(job)?)));
        let Some((index, place)) = found else {
            // The rest is held until the next round.
            self.is_due = false;
            self.wake_at = (!self.waiting.is_empty()).then(|| now + PERIOD);
            return None;
        };
        Some(Act::Place(self.waiting.remove(index)?, place))
    }

    fn wake_at(&self) -> Option<Time> {
        self.wake_at
    }

    fn woke(&mut self, _now: Time) -> Vec<(JobId, usize)> {
        (self.is_due, self.wake_at) = (true, None);
        Vec::new()
    }
}

#[test]
fn the_smallest_broker_holds_jobs_until_its_next_round() {
    let grid = Grid::of_sizes(&[2, 8]).unwrap();
    let mut books: Vec<Book> =
        grid.sizes().iter().map(|&size| Book::new(LocalScheduler::Easy, Pass::Batch, size, false)).collect();
    let mut broker: Box<dyn Broker> = Box::new(Cycle::default());
    for (id, processors) in [(1, 1), (2, 1), (3, 1), (4, 8)] {
        let job = JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors,
            requested: Span::from_secs(10),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        broker.came(Time::ZERO, job);
    }
    let mut round = |broker: &mut Box<dyn Broker>, now: Time| {
        let mut placed = Vec::new();
        while let Some(Act::Place(job, place)) = broker.decide(now, &mut Truth(now, &mut books)) {
            books[place].joined(now, job);
            placed.push((job.id.0, place));
        }
        placed
    };
    assert_eq!(round(&mut broker, Time::ZERO), [], "its time has not come");
    for (minute, expected) in [(1, vec![(1, 0), (2, 1)]), (2, vec![])] {
        let now = Time::from_secs(60 * minute);
        assert_eq!(broker.wake_at(), Some(now));
        broker.woke(now);
        assert_eq!(round(&mut broker, now), expected, "{minute}");
    }
    let mut waiting: Vec<JobSpec> = broker.clone().waiting().copied().collect();
    assert_eq!(waiting.len(), 2);
    assert!(waiting.drain(..).all(|job| broker.withdraw(&job) == Some(job)) && broker.count() == 0);
}
