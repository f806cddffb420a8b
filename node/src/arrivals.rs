//! Jobs that the coordinator has handed over and that nobody has submitted yet.
//!
//! Held until their submission time, so that no message of the control interface is on the path of a job.

use std::collections::{BTreeMap, BTreeSet};

use scheduler::{Grid, JobId, QueueKey, Span, Time, TimedJob};

/// Why jobs are not taken. None of the portion is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArrivalsError {
    /// No room for all of them now.
    #[error(
        "busy: {given} jobs do not fit, there is room for {room}; {held} are held (jobs_held_max {held_max}) and \
         {waiting} wait (limits.jobs_waiting {waiting_max}, with those held); hand over as many as fit, and the others \
         later"
    )]
    Busy {
        /// Jobs of the portion.
        given: usize,
        /// How many would have been taken.
        room: usize,
        /// Jobs held already.
        held: usize,
        /// Jobs that may be held.
        held_max: usize,
        /// Jobs in the queue.
        waiting: usize,
        /// Jobs that may be held and in the queue.
        waiting_max: usize,
    },
    /// A job came twice.
    #[error("job {0} was handed over before")]
    Twice(JobId),
    /// Jobs come with orders in lockstep.
    #[error("the node runs in lockstep: its jobs come with orders")]
    Lockstep,
    /// No site can run it.
    #[error("job {job} needs {processors} processors; the widest site has {widest}")]
    Width {
        /// The job that is too wide.
        job: JobId,
        /// Processors that it needs.
        processors: u32,
        /// Processors of the widest site.
        widest: u32,
    },
    /// A job that cannot be.
    #[error(
        "job {0}: its submission and its times must lie within some 285 years (2^53 microseconds), and its origin must be \
         a site of the grid"
    )]
    Bounds(JobId),
    /// A time that no job can have.
    #[error("job {0}: the requested time must be positive and the run time not negative")]
    Times(JobId),
}

/// The jobs to come.
#[derive(Debug)]
pub struct Arrivals {
    /// With the portions in which they came.
    held: BTreeMap<QueueKey, (TimedJob, u64)>,
    portions: u64,
    known: BTreeSet<JobId>,
    held_max: usize,
    waiting_max: usize,
}

impl Arrivals {
    /// None yet, at most `held_max` at once, and at most `waiting_max` together with those in the queue.
    pub fn new(held_max: usize, waiting_max: usize) -> Self {
        Arrivals { held: BTreeMap::new(), portions: 0, known: BTreeSet::new(), held_max, waiting_max }
    }

    /// What a journal says: jobs to come by portion, how many portions there were, and all jobs that were ever handed
    /// over.
    pub fn resume(&mut self, jobs: &BTreeMap<u64, Vec<TimedJob>>, portions: u64, known: BTreeSet<JobId>) {
        for (portion, jobs) in jobs {
            self.hold(jobs, *portion);
        }
        self.portions = portions;
        self.known = known;
    }

    fn hold(&mut self, jobs: &[TimedJob], portion: u64) {
        self.held.extend(jobs.iter().map(|job| (job.spec.key(), (*job, portion))));
    }

    /// Those of a portion that did not come before.
    pub fn unknown(&self, mut jobs: Vec<TimedJob>) -> Vec<TimedJob> {
        jobs.retain(|job| !self.known.contains(&job.spec.id));
        jobs
    }

    /// Takes a portion of jobs, in any order, while so many are `waiting` in the queue. The number of the portion,
    /// from 0; one without jobs does not count.
    ///
    /// # Errors
    /// If one of them cannot be run, came before, or they are too many for now; then none is taken.
    pub fn take(&mut self, jobs: &[TimedJob], waiting: usize, grid: &Grid) -> Result<u64, ArrivalsError> {
        let (held, held_max, waiting_max) = (self.held.len(), self.held_max, self.waiting_max);
        let room =
            held_max.saturating_sub(held).min(waiting_max.saturating_sub(held.saturating_add(waiting)));
        if jobs.len() > room {
            let given = jobs.len();
            return Err(ArrivalsError::Busy { given, room, held, held_max, waiting, waiting_max });
        }
        let mut new = BTreeSet::new();
        for job in jobs {
            let (id, processors) = (job.spec.id, job.spec.processors);
            if self.known.contains(&id) || !new.insert(id) {
                return Err(ArrivalsError::Twice(id));
            }
            if processors == 0 || processors > grid.widest_job() {
                return Err(ArrivalsError::Width { job: id, processors, widest: grid.widest_job() });
            }
            if job.spec.requested <= Span::ZERO || job.run_time < Span::ZERO {
                return Err(ArrivalsError::Times(id));
            }
            if !protocol::is_job_of(grid, &job.spec) || job.run_time.as_micros() > protocol::MICROS_MAX {
                return Err(ArrivalsError::Bounds(id));
            }
        }
        self.known.append(&mut new);
        let portion = self.portions;
        self.hold(jobs, portion);
        self.portions += u64::from(!jobs.is_empty());
        Ok(portion)
    }

    /// A job that is to be submitted by now, and its portion. In queue order, so of each portion, too.
    pub fn pop_due(&mut self, now: Time) -> Option<(TimedJob, u64)> {
        let first = self.held.first_entry()?;
        (first.key().submit <= now).then(|| first.remove())
    }

    /// When the next job is to be submitted.
    pub fn next_due(&self) -> Option<Time> {
        self.held.first_key_value().map(|(key, _)| key.submit)
    }

    /// How many jobs are held.
    pub fn held(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobSpec, Labels, SiteId};

    use super::*;

    fn job(id: u64, submit: i64, processors: u32) -> TimedJob {
        let spec = JobSpec {
            id: JobId(id),
            submit: Time::from_secs(submit),
            processors,
            requested: Span::from_secs(10),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        TimedJob { spec, run_time: Span::from_secs(5) }
    }

    #[test]
    fn jobs_come_out_in_queue_order_when_due() {
        let grid = Grid::of_sizes(&[4]).unwrap();
        let mut arrivals = Arrivals::new(10, 100);
        arrivals.take(&[job(3, 5, 1), job(1, 9, 1)], 0, &grid).unwrap();
        arrivals.take(&[job(2, 5, 1)], 0, &grid).unwrap();

        assert_eq!(arrivals.next_due(), Some(Time::from_secs(5)));
        assert_eq!(arrivals.pop_due(Time::from_secs(4)), None);
        let due: Vec<u64> = std::iter::from_fn(|| arrivals.pop_due(Time::from_secs(8)))
            .map(|(job, _)| job.spec.id.0)
            .collect();
        assert_eq!(due, [2, 3]);
        assert_eq!(arrivals.held(), 1);
    }

    #[test]
    fn a_job_beyond_all_bounds_is_refused_and_leaves_nothing() {
        let grid = Grid::of_sizes(&[4]).unwrap();
        let beyond = protocol::MICROS_MAX + 1;
        let with = |change: fn(&mut TimedJob, i64)| {
            let mut job = job(2, 0, 1);
            change(&mut job, beyond);
            job
        };
        for bad in [
            with(|job, beyond| job.spec.submit = Time::from_micros(beyond)),
            with(|job, beyond| job.spec.submit = Time::from_micros(-beyond)),
            with(|job, beyond| job.spec.requested = Span::from_micros(beyond)),
            with(|job, beyond| job.run_time = Span::from_micros(beyond)),
            with(|job, _| job.spec.origin = SiteId(0)),
            with(|job, _| job.spec.origin = SiteId(2)),
        ] {
            let mut arrivals = Arrivals::new(3, 100);
            let error = arrivals.take(&[job(1, 0, 1), bad], 0, &grid).unwrap_err();
            assert_eq!(error, ArrivalsError::Bounds(JobId(2)), "{bad:?}");
            assert_eq!(arrivals.held(), 0);
        }
    }

    #[test]
    fn a_portion_with_one_bad_job_is_refused_whole() {
        let grid = Grid::of_sizes(&[4]).unwrap();
        let mut arrivals = Arrivals::new(3, 100);
        arrivals.take(&[job(1, 0, 1)], 0, &grid).unwrap();
        let endless = TimedJob { run_time: Span::from_micros(-1), ..job(2, 0, 1) };
        let cases: [(&[TimedJob], ArrivalsError); 5] = [
            (&[job(2, 0, 1), job(1, 0, 1)], ArrivalsError::Twice(JobId(1))),
            (&[job(2, 0, 1), job(2, 0, 1)], ArrivalsError::Twice(JobId(2))),
            (&[job(2, 0, 1), job(3, 0, 5)], ArrivalsError::Width { job: JobId(3), processors: 5, widest: 4 }),
            (&[endless], ArrivalsError::Times(JobId(2))),
            (
                &[job(2, 0, 1), job(3, 0, 1), job(4, 0, 1)],
                ArrivalsError::Busy { given: 3, room: 2, held: 1, held_max: 3, waiting: 0, waiting_max: 100 },
            ),
        ];
        for (jobs, expected) in cases {
            assert_eq!(arrivals.take(jobs, 0, &grid), Err(expected));
        }
        assert_eq!(arrivals.held(), 1);
        assert_eq!(arrivals.take(&[job(2, 0, 4), job(3, 0, 1)], 0, &grid), Ok(1));
    }

    #[test]
    fn jobs_in_the_queue_take_room_until_they_have_left_it() {
        let grid = Grid::of_sizes(&[4]).unwrap();
        let mut arrivals = Arrivals::new(10, 5);
        arrivals.take(&[job(1, 0, 1)], 2, &grid).unwrap();
        let more = [job(2, 0, 1), job(3, 0, 1), job(4, 0, 1)];
        let Err(busy @ ArrivalsError::Busy { room: 2, .. }) = arrivals.take(&more, 2, &grid) else {
            panic!()
        };
        assert!(busy.to_string().starts_with("busy: 3 jobs do not fit, there is room for 2"), "{busy}");
        assert!(matches!(arrivals.take(&more, 9, &grid), Err(ArrivalsError::Busy { room: 0, .. })));
        assert_eq!(arrivals.take(&more, 1, &grid), Ok(1));
    }

    #[test]
    fn a_job_that_was_submitted_is_not_taken_again() {
        let grid = Grid::of_sizes(&[4]).unwrap();
        let mut arrivals = Arrivals::new(3, 100);
        arrivals.take(&[job(1, 0, 1)], 0, &grid).unwrap();
        assert!(arrivals.pop_due(Time::ZERO).is_some());
        assert_eq!(arrivals.take(&[job(1, 0, 1)], 0, &grid), Err(ArrivalsError::Twice(JobId(1))));
    }

    #[test]
    fn each_job_knows_its_portion_before_and_after_a_restart() {
        let grid = Grid::of_sizes(&[4]).unwrap();
        let mut arrivals = Arrivals::new(10, 100);
        assert_eq!(arrivals.take(&[job(1, 0, 1), job(2, 7, 1)], 0, &grid), Ok(0));
        assert_eq!(arrivals.take(&[], 0, &grid), Ok(1), "nothing is no portion");
        assert_eq!(arrivals.take(&[job(3, 5, 1)], 0, &grid), Ok(1));
        let end = Time::from_secs(9);
        assert_eq!(arrivals.pop_due(end), Some((job(1, 0, 1), 0)));

        let mut again = Arrivals::new(10, 100);
        let left = [(0, vec![job(2, 7, 1)]), (1, vec![job(3, 5, 1)])].into();
        again.resume(&left, 2, [1, 2, 3].map(JobId).into());
        for mut arrivals in [arrivals, again] {
            assert_eq!(arrivals.pop_due(end), Some((job(3, 5, 1), 1)));
            assert_eq!(arrivals.pop_due(end), Some((job(2, 7, 1), 0)));
            assert_eq!(arrivals.take(&[job(4, 0, 1)], 0, &grid), Ok(2));
        }
    }
}
