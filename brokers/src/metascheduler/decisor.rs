//! Which estimator is believed of a cluster: for waits the one that was less off in the last ones there, and so for executions (the Decisor of
//! Lérida, *M-CISNE*, §3.6).
//!
//! Readings, as the thesis has no experiment on it: a job is estimated when its broker hears that it has joined the queue of the cluster; who is
//! less off is who has the lesser sum of errors, which over the same jobs is the lesser deviation (3.13); ζ does not adjust itself.

use std::collections::{BTreeMap, VecDeque};

use scheduler::local::PlannedJob;
use scheduler::strategy::SharingEstimator;
use scheduler::{JobId, Span, Time};

/// ζ: jobs over which estimators are compared.
pub const ZETA: usize = 20;

/// Who is compared; before anything is known, and of equals, the first is believed.
pub const COMPARED: [SharingEstimator; 2] = [SharingEstimator::Sdpn, SharingEstimator::Hanzich];

/// What each said of a job.
type Said = [PlannedJob; COMPARED.len()];

/// By how much each was off, in microseconds, of the last [`ZETA`] jobs.
type Window = VecDeque<[i64; COMPARED.len()]>;

/// What estimators said of the jobs of one cluster, and what came of it.
#[derive(Clone, Debug, Default)]
pub struct Decisor {
    /// Of jobs that wait or execute, with when that was said.
    said: BTreeMap<JobId, (Time, Said)>,
    waits: Window,
    executions: Window,
}

impl Decisor {
    /// Each estimator says this of a job that joins the queue now.
    pub fn joined(&mut self, now: Time, job: JobId, said: Said) {
        self.said.insert(job, (now, said));
    }

    /// A job starts now.
    pub fn started(&mut self, now: Time, job: JobId) {
        let Some((came, said)) = self.said.get(&job) else { return };
        let waited = now.since(*came);
        keep(&mut self.waits, said.map(|planned| off(planned.start.since(*came), waited)));
    }

    /// A job ends now that started then.
    pub fn ended(&mut self, now: Time, job: JobId, since: Time) {
        let Some((_, said)) = self.said.remove(&job) else { return };
        let executed = now.since(since);
        keep(&mut self.executions, said.map(|planned| off(planned.end.since(planned.start), executed)));
    }

    /// A job is not there any more.
    pub fn left(&mut self, job: JobId) {
        self.said.remove(&job);
    }

    /// Who is believed of waits, and who of executions.
    pub fn best(&self) -> (SharingEstimator, SharingEstimator) {
        (best(&self.waits), best(&self.executions))
    }
}

fn off(said: Span, measured: Span) -> i64 {
    said.as_micros().saturating_sub(measured.as_micros()).saturating_abs()
}

fn keep(window: &mut Window, off: [i64; COMPARED.len()]) {
    if window.len() == ZETA {
        window.pop_front();
    }
    window.push_back(off);
}

fn best(window: &Window) -> SharingEstimator {
    let sum = |index: usize| window.iter().map(|off| i128::from(off[index])).sum::<i128>();
    let least = (0..COMPARED.len()).min_by_key(|&index| sum(index));
    COMPARED[least.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(job: u64, sdpn: (i64, i64), hanzich: (i64, i64)) -> Said {
        let at = Time::from_secs;
        [sdpn, hanzich].map(|(start, end)| PlannedJob {
            job: JobId(job),
            start: at(start),
            end: at(end),
            local_nodes: 0,
        })
    }

    /// At 0 s both say when a job starts and ends, which starts at 10 s and ends at 40 s.
    fn after(decisor: &mut Decisor, job: u64, sdpn: (i64, i64), hanzich: (i64, i64)) {
        decisor.joined(Time::ZERO, JobId(job), said(job, sdpn, hanzich));
        decisor.started(Time::from_secs(10), JobId(job));
        decisor.ended(Time::from_secs(40), JobId(job), Time::from_secs(10));
    }

    #[test]
    fn waits_and_executions_are_each_believed_of_who_was_less_off_of_late() {
        use SharingEstimator::{Hanzich, Sdpn};
        let mut decisor = Decisor::default();
        assert_eq!(decisor.best(), (Sdpn, Sdpn), "nothing is known");
        // Waits of 12 and 30 s were said for 10 s, executions of 60 and 31 s for 30 s.
        after(&mut decisor, 1, (12, 72), (30, 61));
        assert_eq!(decisor.best(), (Sdpn, Hanzich));
        after(&mut decisor, 2, (60, 90), (10, 40));
        assert_eq!(decisor.best(), (Hanzich, Hanzich), "50 and 2 s off, and 0 and 20 s");
        // After so many jobs in which the other is right the first two count no more.
        for job in 3..3 + ZETA as u64 {
            after(&mut decisor, job, (10, 40), (11, 40));
        }
        assert_eq!(decisor.best(), (Sdpn, Sdpn));
        decisor.joined(Time::ZERO, JobId(99), said(99, (0, 1), (10, 40)));
        decisor.left(JobId(99));
        decisor.started(Time::from_secs(10), JobId(99));
        assert_eq!(decisor.best(), (Sdpn, Sdpn), "nothing comes of one that leaves");
    }
}
