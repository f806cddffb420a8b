//! Rounds as files: each run as TOML, with its jobs as SWF beside it. [`replay`] runs one again, changed or not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, ensure};
use brokers::ideal::Outage;
use claims::learning::world::World;
use claims::learning::{Plan, Round, Row, rounds};
use experiments::hex::hex;
use experiments::{folder, limits};
use scheduler::{Grid, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob, spelling};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use workload::header::Header;
use workload::{Format, Record, Trace, swf};

/// The queue of local users, in field 15 of the jobs.
const LOCAL: i32 = 1;
/// The queue of tasks.
const TASKS: i32 = 2;

/// A run as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    experiment: String,
    scenario: String,
    rule: String,
    round: u64,
    /// The rule with its options, `best fixed` or `oracle`.
    decider: String,
    local: String,
    seed: u64,
    unused: String,
    ratio: String,
    feedback_s: u32,
    submission_s: u32,
    /// SWF, from the folder of this file.
    jobs: PathBuf,
    /// The second of that file at which time 0 of the run is.
    begins_s: i64,
    sites: Vec<WrittenSite>,
    #[serde(default)]
    outages: Vec<WrittenOutage>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSite {
    processors: u32,
    speed_percent: u32,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenOutage {
    /// From 1.
    site: usize,
    from_s: i64,
    until_s: i64,
}

const HEAD: &str = "# A run of `stealgrid learning`; `stealgrid learning --replay FILE` runs it again, as it is or changed.\n\
    # In the jobs, field 15 is 1 for local users and 2 for tasks, field 16 the site of a local user.\n\n";

/// Writes all rounds of a plan into a folder, and says how many there are.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn write(plan: &Plan, dir: &Path) -> anyhow::Result<usize> {
    folder::make(dir)?;
    let mut files: BTreeSet<PathBuf> = BTreeSet::new();
    let mut count = 0;
    for round in rounds(plan) {
        let begins = -round.world.jobs.first().map_or(Time::ZERO, |job| job.spec.submit).as_micros().min(0);
        // Whole seconds, as logs have them.
        let begins_s = (begins + 999_999) / 1_000_000;
        let mut swf = Vec::new();
        swf::write_trace(&trace(&round.world, begins_s), &mut swf)?;
        // Rounds with the same jobs share them.
        let jobs = PathBuf::from(format!("jobs-{}.swf", hex(&Sha256::digest(&swf)[..6])));
        if files.insert(jobs.clone()) {
            put(&dir.join(&jobs), &swf)?;
        }
        let text = toml::to_string(&written(&round, jobs, begins_s)).context("a round is no TOML")?;
        put(&dir.join(format!("{}.toml", name(&round))), format!("{HEAD}{text}").as_bytes())?;
        count += 1;
    }
    Ok(count)
}

fn put(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    outputs::replace::write(path, |file| file.write_all(bytes))
        .with_context(|| format!("failed to write {}", path.display()))
}

/// What tells a round apart, in letters that every file system has.
fn name(round: &Round) -> String {
    let Round { experiment, scenario, rule, round, .. } = round;
    let words = format!("{experiment} {scenario} {rule} {round}");
    let plain = words.split(|letter: char| !letter.is_ascii_alphanumeric());
    plain.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

fn written(round: &Round, jobs: PathBuf, begins_s: i64) -> Written {
    let World { grid, speeds, outages, submission_s, .. } = &round.world;
    let seconds = |at: Time| at.as_micros() / 1_000_000;
    Written {
        experiment: round.experiment.clone(),
        scenario: round.scenario.clone(),
        rule: round.rule.clone(),
        round: round.round,
        decider: round.decider.to_string(),
        local: round.local.name().to_string(),
        seed: round.seed,
        unused: round.unused.to_string(),
        ratio: round.ratio.to_string(),
        feedback_s: round.feedback_s,
        submission_s: *submission_s,
        jobs,
        begins_s,
        sites: grid
            .sizes()
            .iter()
            .zip(speeds)
            .map(|(&processors, &speed_percent)| WrittenSite { processors, speed_percent })
            .collect(),
        outages: outages
            .iter()
            .map(|outage| WrittenOutage {
                site: outage.place + 1,
                from_s: seconds(outage.from),
                until_s: seconds(outage.until),
            })
            .collect(),
    }
}

fn trace(world: &World, begins_s: i64) -> Trace {
    let records = world.jobs.iter().map(|TimedJob { spec, run_time }| {
        let is_task = world.is_task(spec.id);
        Record {
            job: i64::try_from(spec.id.0).expect("a number of a job of ours"),
            submit: spec.submit.since(Time::ZERO) + Span::from_secs(begins_s),
            run_time: *run_time,
            requested_time: spec.requested,
            allocated: 1,
            requested: 1,
            queue: if is_task { TASKS } else { LOCAL },
            partition: if is_task { -1 } else { spec.origin.index() as i32 + 1 },
            ..Record::default()
        }
    });
    let header =
        Header { lines: vec![b"; Jobs of a round of stealgrid learning".to_vec()], ..Header::default() };
    Trace { records: records.collect(), header, ..Trace::empty("rounds", Format::Swf) }
}

/// Runs the round of a file again.
///
/// # Errors
/// If it is none, or its jobs are not there.
pub(super) fn replay(path: &Path) -> anyhow::Result<Row> {
    let text = limits::read_text(path, limits::EXPERIMENT)?;
    let written: Written =
        toml::from_str(&text).map_err(|error| anyhow!("{}", spelling::of_file(&error.to_string())))?;
    let jobs = path.parent().unwrap_or(Path::new("")).join(&written.jobs);
    let trace = workload::source::read_within(&jobs, &limits::of_logs())
        .with_context(|| format!("its jobs, {}", jobs.display()))?;
    round(written, &trace)?.row().map_err(anyhow::Error::msg)
}

fn round(written: Written, trace: &Trace) -> anyhow::Result<Round> {
    let sizes: Vec<u32> = written.sites.iter().map(|site| site.processors).collect();
    ensure!(sizes.is_sorted(), "sites are not in the order of their processors; sort them, smallest first");
    let grid = Grid::of_sizes(&sizes)?;
    let places = 1..=grid.len();
    let mut jobs = Vec::new();
    for record in &trace.records {
        let origin = match record.queue {
            TASKS => 0,
            _ => usize::try_from(record.partition).unwrap_or(0).wrapping_sub(1),
        };
        ensure!(
            origin < grid.len() && record.job > 0 && record.requested > 0,
            "job {} has no number, no width, or no site from 1 to {} in field 16",
            record.job,
            grid.len()
        );
        let spec = JobSpec {
            id: JobId(record.job as u64),
            submit: Time::ZERO + record.submit - Span::from_secs(written.begins_s),
            processors: record.requested as u32,
            requested: record.requested_time,
            labels: Labels::UNKNOWN,
            origin: SiteId::from_index(origin),
            payload: 0,
        };
        jobs.push(TimedJob { spec, run_time: record.run_time });
    }
    let tasks = trace.records.iter().filter(|record| record.queue == TASKS).count();
    let is_numbered = |record: &Record| (record.job <= tasks as i64) == (record.queue == TASKS);
    ensure!(
        tasks > 0 && trace.records.iter().all(is_numbered),
        "tasks (queue {TASKS} in field 15) are not those with the numbers from 1 on; number them so, and local users after them"
    );
    jobs.sort_by_key(|job| job.spec.key());
    let mut outages = Vec::new();
    for WrittenOutage { site, from_s, until_s } in written.outages {
        ensure!(
            places.contains(&site) && from_s < until_s,
            "an outage is at no site from 1 to {}, or ends before it begins",
            grid.len()
        );
        let (from, until) = (Time::from_secs(from_s), Time::from_secs(until_s));
        outages.push(Outage { place: site - 1, from, until });
    }
    let speeds: Vec<u32> = written.sites.iter().map(|site| site.speed_percent).collect();
    ensure!(
        speeds.iter().all(|speed| *speed > 0),
        "a site has speed 0; write percent of the reference machine"
    );
    let text = anyhow::Error::msg::<String>;
    Ok(Round {
        experiment: written.experiment,
        scenario: written.scenario,
        rule: written.rule,
        round: written.round,
        decider: written.decider.parse().map_err(text)?,
        local: written.local.parse().map_err(text)?,
        seed: written.seed,
        unused: written.unused.parse().map_err(text)?,
        ratio: written.ratio.parse().map_err(text)?,
        feedback_s: written.feedback_s,
        world: World { grid, jobs, tasks, speeds, outages, submission_s: written.submission_s },
    })
}

#[cfg(test)]
mod tests {
    use claims::learning::{Background, Ratio, Unused};
    use scheduler::LocalScheduler;

    use super::*;

    #[test]
    fn a_round_that_is_written_is_the_same_round_and_a_change_of_it_another() {
        let folder = tempfile::tempdir().unwrap();
        let (local, background) = (LocalScheduler::Fcfs, Background::Same);
        let (unused, ratio) = (Unused::Idle, Ratio::Inverse);
        let plan = Plan { rounds: 2, seed: 7, local, background, unused, ratio };
        let count = write(&plan, folder.path()).unwrap();
        let all: Vec<Round> = rounds(&plan).collect();
        assert_eq!(count, all.len());
        let files = std::fs::read_dir(folder.path()).unwrap().flatten();
        let written = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "toml"));
        assert_eq!(written.count(), count, "two rounds have one name");
        // One of each kind: with failures, slow submission, late feedback, one site, and who knows all.
        for (experiment, scenario, rule) in [
            ("published", "R2", "mqd"),
            ("conditions", "sites that fail", "ag"),
            ("conditions", "slow submission", "linucb"),
            ("stream", "changing; 1800 s", "ag"),
            ("stream", "steady; 0 s", "best fixed"),
            ("stream", "steady; 0 s", "oracle"),
        ] {
            let is_it = |round: &&Round| {
                (round.experiment.as_str(), round.scenario.as_str(), round.rule.as_str(), round.round)
                    == (experiment, scenario, rule, 2)
            };
            let round = all.iter().find(is_it).unwrap();
            let path = folder.path().join(format!("{}.toml", name(round)));
            assert_eq!(replay(&path).unwrap(), round.row().unwrap(), "{scenario} {rule}");
        }
        let round = all.iter().find(|round| round.rule == "ag").unwrap();
        let path = folder.path().join(format!("{}.toml", name(round)));
        let text = std::fs::read_to_string(&path).unwrap();
        let with = |from: &str, to: &str| {
            assert!(text.contains(from), "{from} is not in {text}");
            std::fs::write(&path, text.replace(from, to)).unwrap();
            replay(&path).map_err(|error| format!("{error:#}"))
        };
        let other = with("feedback_s = 0", "feedback_s = 900").unwrap();
        assert_ne!(other, round.row().unwrap());
        for (from, to, reason) in [
            ("decider = \"ag", "decider = \"agg", "agg"),
            ("feedback_s", "fedback_s", "fedback_s"),
            ("jobs-", "no-", "its jobs"),
            ("unused = \"idle\"", "unused = \"often\"", "often"),
        ] {
            let error = with(from, to).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
