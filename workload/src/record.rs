//! One job of a log, with all 18 fields of the Standard Workload Format.
//!
//! A record says what the log says: unknown values stay -1. [`crate::prepare()`] decides what they mean for a
//! scheduler. Field numbers are those of the SWF definition, version 2.2.

use scheduler::{SiteId, Span, Time, TimedJob};

/// What the log holds where a time is unknown: -1 second.
pub const UNKNOWN_TIME: Span = Span::from_secs(-1);

/// One job of a log. Times are exact to the microsecond; numbers are -1 where unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Field 1: the job's number, from 1.
    pub job: i64,
    /// Field 2: submission, since the start of the log.
    pub submit: Span,
    /// Field 3: time between submission and start.
    pub wait: Span,
    /// Field 4: run time.
    pub run_time: Span,
    /// Field 6: processor time used, averaged over the processors.
    pub cpu_time: Span,
    /// Field 9: run time that the user requested.
    pub requested_time: Span,
    /// Field 18: time between the end of the preceding job and this submission.
    pub think_time: Span,
    /// Field 7: memory used per processor, in KB.
    pub used_memory: i64,
    /// Field 10: memory requested per processor, in KB.
    pub requested_memory: i64,
    /// Field 17: number of the job that this one waited for.
    pub preceding: i64,
    /// Field 5: processors allocated.
    pub allocated: i32,
    /// Field 8: processors requested.
    pub requested: i32,
    /// Field 21 of logs that have one: nodes by a descriptor such as `frontier:excl:8x112`.
    pub described: i32,
    /// Field 11: 0 failed, 1 completed, 2 to 4 parts of a job, 5 canceled.
    pub status: i32,
    /// Field 12: user.
    pub user: i32,
    /// Field 13: group.
    pub group: i32,
    /// Field 14: application.
    pub executable: i32,
    /// Field 15: queue.
    pub queue: i32,
    /// Field 16: partition.
    pub partition: i32,
    /// Site where the job was submitted, from 1. SWF has no such field; GWF and Batsim do.
    pub origin: i32,
    /// Site that ran the job, from 1. SWF has no such field; GWF does.
    pub executed: i32,
}

impl Default for Record {
    /// A record of which nothing is known.
    fn default() -> Self {
        Record {
            job: -1,
            submit: UNKNOWN_TIME,
            wait: UNKNOWN_TIME,
            run_time: UNKNOWN_TIME,
            cpu_time: UNKNOWN_TIME,
            requested_time: UNKNOWN_TIME,
            think_time: UNKNOWN_TIME,
            used_memory: -1,
            requested_memory: -1,
            preceding: -1,
            allocated: -1,
            requested: -1,
            described: -1,
            status: -1,
            user: -1,
            group: -1,
            executable: -1,
            queue: -1,
            partition: -1,
            origin: -1,
            executed: -1,
        }
    }
}

impl Record {
    /// Processors the job held if known, else those it asked for; `None` if neither is known.
    pub fn processors(&self) -> Option<u32> {
        let known = |count: i32| u32::try_from(count).ok().filter(|&count| count > 0);
        known(self.allocated).or_else(|| known(self.requested))
    }

    /// Work of the job in processor seconds, 0 if its size or run time is unknown. For statistics only.
    pub fn work(&self) -> f64 {
        match self.processors() {
            Some(processors) if self.run_time > Span::ZERO => {
                f64::from(processors) * self.run_time.as_secs_f64()
            }
            _ => 0.0,
        }
    }

    /// The record as SWF can say it: the origin site, where known, as queue and the executing site as
    /// partition.
    pub fn with_sites_as_queues(mut self) -> Record {
        if self.origin > 0 {
            self.queue = self.origin;
        }
        if self.executed > 0 {
            self.partition = self.executed;
        }
        self
    }

    /// A prepared job as a record, before it has run. Wait and executing site are unknown.
    pub fn of_job(job: &TimedJob) -> Record {
        let processors =
            i32::try_from(job.spec.processors).expect("a machine has fewer than 2^31 processors");
        let site = i32::try_from(job.spec.origin.0).expect("a grid has fewer than 2^31 sites");
        let labels = job.spec.labels;
        Record {
            job: i64::try_from(job.spec.id.0).expect("job numbers fit 63 bits"),
            submit: job.spec.submit.since(Time::ZERO),
            run_time: job.run_time,
            requested_time: job.spec.requested,
            allocated: processors,
            requested: processors,
            status: 1,
            user: labels.user,
            group: labels.group,
            executable: labels.executable,
            requested_memory: labels.memory,
            // SWF knows no sites: where a job came from is its queue, so the queue of its log is not kept.
            queue: site,
            origin: site,
            ..Record::default()
        }
    }

    /// A prepared job as a record of how it ran: from `start`, on the site `executed`.
    pub fn of_run(job: &TimedJob, start: Time, executed: SiteId) -> Record {
        let site = i32::try_from(executed.0).expect("a grid has fewer than 2^31 sites");
        Record { wait: start.since(job.spec.submit), partition: site, executed: site, ..Record::of_job(job) }
    }
}
