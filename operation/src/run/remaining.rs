//! How much trace time a run still takes, by what is known beforehand: when jobs come, how long each takes, and when the last
//! one ended in the simulation. Ends alone say little while jobs are still to come, as then they come as fast as jobs do.

use std::collections::BTreeSet;

use scheduler::{JobId, Span, Time, TimedJob};

/// What is known of the end of a run.
#[derive(Debug)]
pub(super) struct Remaining {
    /// When each job ends at the earliest, ascending; but for those of the end that have ended.
    earliest: Vec<(Time, JobId)>,
    /// When the last job ended in the simulation.
    simulated: Time,
}

impl Remaining {
    /// Of a run of these jobs, the last of which ended then in the simulation.
    pub(super) fn new(jobs: &[TimedJob], simulated: Time) -> Remaining {
        let mut earliest: Vec<(Time, JobId)> = jobs.iter().map(at_the_earliest).collect();
        earliest.sort_unstable();
        Remaining { earliest, simulated }
    }

    /// A job that nobody knew of.
    pub(super) fn add(&mut self, job: &TimedJob) {
        let entry = at_the_earliest(job);
        let place = self.earliest.partition_point(|other| *other < entry);
        self.earliest.insert(place, entry);
    }

    /// Trace time until the end as the simulation has it, but never less than what a job needs that has not ended. `None` once
    /// both are over: the run is later than the simulation, and how much nobody knows beforehand.
    pub(super) fn left(&mut self, now: Time, ended: &BTreeSet<JobId>) -> Option<Span> {
        while self.earliest.last().is_some_and(|(_, job)| ended.contains(job)) {
            self.earliest.pop();
        }
        let (bound, _) = self.earliest.last()?;
        let end = self.simulated.max(*bound);
        (end > now).then(|| end.since(now))
    }
}

fn at_the_earliest(job: &TimedJob) -> (Time, JobId) {
    (job.spec.submit + job.run_time, job.spec.id)
}

#[cfg(test)]
mod tests {
    use scheduler::{JobSpec, Labels, SiteId};

    use super::*;

    /// A job that is submitted then and takes so long, in seconds.
    fn job(id: u64, submit: i64, run_time: i64) -> TimedJob {
        let spec = JobSpec {
            id: JobId(id),
            processors: 1,
            requested: Span::from_secs(run_time),
            submit: Time::from_secs(submit),
            origin: SiteId(1),
            labels: Labels::default(),
            payload: 0,
        };
        TimedJob { spec, run_time: Span::from_secs(run_time) }
    }

    fn left(remaining: &mut Remaining, now: i64, ended: &[u64]) -> Option<i64> {
        let ended = ended.iter().map(|&id| JobId(id)).collect();
        remaining.left(Time::from_secs(now), &ended).map(|left| left.as_micros() / 1_000_000)
    }

    #[test]
    fn the_simulation_says_when_a_run_ends_and_no_job_ends_before_it_can() {
        // The second job comes late: ends alone would say that half of the run is over after 10 s.
        let mut remaining = Remaining::new(&[job(1, 0, 10), job(2, 900, 50)], Time::from_secs(1000));
        assert_eq!(left(&mut remaining, 10, &[1]), Some(990));
        assert_eq!(left(&mut remaining, 999, &[1]), Some(1));
        // Later than simulated.
        assert_eq!(left(&mut remaining, 1001, &[1]), None);
        assert_eq!(left(&mut remaining, 990, &[1, 2]), None);
    }

    #[test]
    fn without_a_simulation_the_jobs_say_how_long_it_takes_at_least() {
        let mut remaining = Remaining::new(&[job(1, 0, 2000), job(2, 900, 50)], Time::ZERO);
        assert_eq!(left(&mut remaining, 100, &[]), Some(1900));
        assert_eq!(left(&mut remaining, 100, &[1]), Some(850));
        // One more by order.
        remaining.add(&job(3, 200, 800));
        assert_eq!(left(&mut remaining, 200, &[1]), Some(800));
        assert_eq!(left(&mut remaining, 200, &[1, 3]), Some(750));
    }
}
