//! FCFS inversions of a global queue: younger jobs that started although an older one could have started there.
//!
//! A job of the queue that started is inverted if, when the instant has ended, an older one is on offer that would fit
//! in its place: that is no wider than the processors which the younger one took and those left idle at its site.
//! Of jobs submitted at the same time the one with the lower number is older. A job is older than none that was never
//! on offer: one that waits at the head of its site's own queue is not in the global one. Order within an instant does
//! not matter, so an exchange without delay is not charged for the order of its messages.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{Event, EventKind, Grid, JobId, JobIndex, SiteId, Time, TimedJob};

/// Counts the inversions of a run, event by event, at the cost of the widths on offer per start.
#[derive(Clone, Debug)]
pub(crate) struct Inversions {
    /// Age and width of each job.
    jobs: Vec<((Time, JobId), u32)>,
    /// Whether each job was on offer and has not started.
    pooled: Vec<bool>,
    /// The ages of jobs on offer, by width.
    offers: BTreeMap<u32, BTreeSet<(Time, JobId)>>,
    /// Idle processors of each site.
    idle: Vec<u32>,
    now: Time,
    /// Jobs of the queue that started at this instant: place and site.
    started: Vec<(usize, SiteId)>,
    any: bool,
    count: u64,
}

impl Inversions {
    pub(crate) fn new(grid: &Grid, workload: &[TimedJob]) -> Inversions {
        Inversions {
            jobs: workload.iter().map(|job| ((job.spec.submit, job.spec.id), job.spec.processors)).collect(),
            pooled: vec![false; workload.len()],
            offers: BTreeMap::new(),
            idle: grid.sites().iter().map(|site| site.processors).collect(),
            now: Time::from_micros(i64::MIN),
            started: Vec::new(),
            any: false,
            count: 0,
        }
    }

    /// One more job, whose id is above all others.
    pub(crate) fn add(&mut self, job: &TimedJob) {
        self.jobs.push(((job.spec.submit, job.spec.id), job.spec.processors));
        self.pooled.push(false);
    }

    /// Takes one event; `index` finds the jobs of the workload.
    pub(crate) fn observe(&mut self, event: &Event, index: &JobIndex) {
        if event.at > self.now {
            self.settle();
            self.now = event.at;
        }
        let job = match event.kind {
            EventKind::Offered { job, .. }
            | EventKind::Withdrawn { job, .. }
            | EventKind::Started { job, .. }
            | EventKind::Completed { job, .. }
            | EventKind::Interrupted { job, .. } => job,
            _ => return,
        };
        let Some(place) = index.get(job) else { return };
        let (age, width) = self.jobs[place];
        let site = event.site.index();
        match event.kind {
            EventKind::Offered { .. } => {
                self.any = true;
                self.pooled[place] = true;
                self.offers.entry(width).or_default().insert(age);
            }
            EventKind::Withdrawn { .. } => self.remove(width, age),
            EventKind::Started { .. } => {
                self.remove(width, age);
                // A log that contradicts itself is told elsewhere.
                self.idle[site] = self.idle[site].saturating_sub(width);
                if std::mem::take(&mut self.pooled[place]) {
                    self.started.push((place, event.site));
                }
            }
            // It completed, or a crash ended it: its processors are free.
            _ => self.idle[site] = self.idle[site].saturating_add(width),
        }
    }

    fn remove(&mut self, width: u32, age: (Time, JobId)) {
        if let Some(offers) = self.offers.get_mut(&width) {
            offers.remove(&age);
            if offers.is_empty() {
                self.offers.remove(&width);
            }
        }
    }

    /// The instant has ended.
    fn settle(&mut self) {
        for (place, site) in std::mem::take(&mut self.started) {
            let (age, width) = self.jobs[place];
            let room = self.idle[site.index()].saturating_add(width);
            let mut fitting = self.offers.range(..=room).filter_map(|(_, offers)| offers.first());
            self.count += u64::from(fitting.any(|oldest| *oldest < age));
        }
    }

    /// How many there were; `None` if nothing was ever on offer.
    pub(crate) fn finish(mut self) -> Option<u64> {
        self.settle();
        self.any.then_some(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{completed, event, started, timed_job};

    fn offered(at: i64, site: u32, job: u64) -> Event {
        event(at, site, EventKind::Offered { job: JobId(job), version: 1 })
    }

    fn withdrawn(at: i64, site: u32, job: u64) -> Event {
        event(at, site, EventKind::Withdrawn { job: JobId(job), version: 1 })
    }

    /// On sites of 4 and 2 processors: jobs 1, 2 and 3 of 2, 4 and 2 processors, one a second.
    fn count(events: &[Event]) -> Option<u64> {
        let jobs = [timed_job(1, 0, 2, 10), timed_job(2, 1, 4, 10), timed_job(3, 2, 2, 10)];
        let mut inversions = Inversions::new(&Grid::of_sizes(&[4, 2]).unwrap(), &jobs);
        let index = JobIndex::new(&jobs);
        events.iter().for_each(|event| inversions.observe(event, &index));
        inversions.finish()
    }

    #[test]
    fn without_a_global_queue_there_is_nothing_to_count() {
        assert_eq!(count(&[started(0, 1, 1, 2), completed(10, 1, 1)]), None);
    }

    #[test]
    fn a_younger_job_that_starts_where_an_older_one_fits_is_an_inversion() {
        let offers = [offered(2, 1, 1), offered(2, 1, 3)];
        let younger_first =
            [withdrawn(3, 1, 3), started(3, 2, 3, 2), withdrawn(4, 1, 1), started(4, 1, 1, 2)];
        assert_eq!(count(&[&offers[..], &younger_first].concat()), Some(1));
        let older_first = [withdrawn(3, 1, 1), started(3, 1, 1, 2), withdrawn(4, 1, 3), started(4, 2, 3, 2)];
        assert_eq!(count(&[&offers[..], &older_first].concat()), Some(0));
    }

    #[test]
    fn the_order_within_an_instant_does_not_matter() {
        let events = [
            offered(2, 1, 1),
            offered(2, 1, 3),
            withdrawn(3, 1, 3),
            started(3, 2, 3, 2),
            withdrawn(3, 1, 1),
            started(3, 1, 1, 2),
        ];
        assert_eq!(count(&events), Some(0));
    }

    #[test]
    fn an_older_job_that_would_not_fit_in_its_place_is_passed_by() {
        // Job 2 needs the whole of site 1, of which job 1 holds a half; job 3 takes the other.
        let events = [
            started(0, 1, 1, 2),
            offered(1, 1, 2),
            offered(2, 1, 3),
            withdrawn(3, 1, 3),
            started(3, 1, 3, 2),
        ];
        assert_eq!(count(&events), Some(0));
        // Without job 1 there it would have.
        assert_eq!(count(&events[1..]), Some(1));
    }

    #[test]
    fn a_job_that_a_crash_ended_makes_room() {
        // Job 1 had a half of site 1 until the crash; job 2, which needs the whole, was older than job 3 then.
        let interrupted = EventKind::Interrupted { job: JobId(1), processors: 2, killed: true };
        let events = [
            started(0, 1, 1, 2),
            offered(1, 1, 2),
            offered(2, 1, 3),
            event(3, 1, interrupted),
            withdrawn(4, 1, 3),
            started(4, 1, 3, 2),
        ];
        assert_eq!(count(&events), Some(1));
    }

    #[test]
    fn a_job_that_is_not_on_offer_is_passed_by() {
        let events = [offered(2, 1, 1), withdrawn(2, 1, 1), offered(2, 1, 3), started(3, 2, 3, 2)];
        assert_eq!(count(&events), Some(0));
    }
}
