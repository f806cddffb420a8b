//! What preparation did to the jobs that are replayed, and which files they are from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::Arc;

use outputs::{LogDigest, Preparation};
use scheduler::{JobId, TimedJob};
use sha2::{Digest as _, Sha256};
use workload::prepare::{Rule, Use};

use super::built_in;
use crate::hex::hex;

/// Counts what was done to these jobs, and to those that were left out beside them; the jobs whose run time was cut, ascending.
pub(super) fn of(uses: &[Use], jobs: &[TimedJob]) -> (Preparation, Arc<[JobId]>) {
    let kept: BTreeMap<JobId, &TimedJob> = jobs.iter().map(|job| (job.spec.id, job)).collect();
    let mut preparation = Preparation::default();
    let (mut changed, mut cut) = (BTreeSet::new(), BTreeSet::new());
    let (mut work_cut, mut work_dropped) = (0.0, 0.0);
    for used in uses {
        let taken = f64::from(used.processors) * used.cut.as_secs_f64();
        if used.rule.drops() {
            preparation.jobs_dropped += 1;
            work_dropped += taken;
        } else {
            let job = u64::try_from(used.job).ok().and_then(|id| kept.get(&JobId(id)));
            let Some(job) = job else { continue };
            changed.insert(job.spec.id);
            if used.rule == Rule::StoppedAtEstimate {
                cut.insert(job.spec.id);
                work_cut += taken;
            }
        }
        *preparation.rules.entry(used.rule.to_string()).or_default() += 1;
    }
    let work: f64 = jobs.iter().map(|job| f64::from(job.spec.processors) * job.run_time.as_secs_f64()).sum();
    preparation.jobs_changed = changed.len() as u64;
    preparation.jobs_cut = cut.len() as u64;
    let share = |part: f64, rest: f64| if part > 0.0 { part / (rest + part) } else { 0.0 };
    preparation.work_cut_share = share(work_cut, work);
    preparation.work_dropped_share = share(work_dropped, work + work_cut);
    (preparation, cut.into_iter().collect())
}

/// A log by its content, of which no job is run yet.
///
/// # Errors
/// If it cannot be read again.
pub fn digest(path: &Path) -> io::Result<LogDigest> {
    let mut hasher = Sha256::new();
    match built_in::text(path) {
        Some(text) => hasher.update(text.as_bytes()),
        None => {
            let mut file = File::open(path)?;
            let mut buffer = vec![0; 1 << 16];
            loop {
                match file.read(&mut buffer)? {
                    0 => break,
                    read => hasher.update(&buffer[..read]),
                }
            }
        }
    }
    let sha256 = hex(&hasher.finalize());
    let file = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    Ok(LogDigest { file, sha256, jobs: 0 })
}

#[cfg(test)]
mod tests {
    use scheduler::{JobSpec, Labels, SiteId, Span, Time};

    use super::*;

    fn job(id: u64, processors: u32, run_time: i64) -> TimedJob {
        let run_time = Span::from_secs(run_time);
        let spec = JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors,
            requested: run_time,
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        TimedJob { spec, run_time }
    }

    #[test]
    fn what_was_cut_is_a_share_of_the_work_before() {
        let used = |job, rule, cut, processors| {
            let cut = Span::from_secs(cut);
            Use { job, submit: Time::ZERO, rule, cut, processors }
        };
        let uses = [
            used(1, Rule::StoppedAtEstimate, 30, 2),
            used(1, Rule::EstimateFromRunTime, 0, 0),
            used(7, Rule::StoppedAtEstimate, 1000, 1),
            used(8, Rule::DroppedTooWide, 5, 20),
            used(9, Rule::DroppedRunTime, 0, 3),
        ];
        let (found, cut) = of(&uses, &[job(1, 2, 10), job(2, 1, 20)]);
        assert_eq!((found.jobs_dropped, found.jobs_changed, found.jobs_cut), (2, 1, 1));
        // 60 of 20 + 20 + 60; job 7 is not run.
        assert_eq!((found.work_cut_share, &cut[..]), (0.6, &[JobId(1)][..]));
        // 100 beside these 100.
        assert_eq!(found.work_dropped_share, 0.5);
        assert_eq!(found.rules.values().sum::<u64>(), 4);
    }

    #[test]
    fn a_log_is_known_by_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc.swf");
        std::fs::write(&path, "abc").unwrap();
        let found = digest(&path).unwrap();
        // The first example of the standard.
        assert_eq!(found.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!((found.file.as_str(), found.jobs), ("abc.swf", 0));
        assert!(digest(Path::new(built_in::SEVEN_SITES)).is_ok());
    }
}
