//! The jobs of an experiment: read, sliced, prepared, and what was done to them on the way.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use analysis::Outcome;
use outputs::{LogDigest, Preparation};
use report::quantity::counted;
use scheduler::strategy::Coallocation;
use scheduler::{Grid, JobId, LocalUsers, SiteId, Span, Time, TimedJob};
use workload::mix::{Clock, Log, MixOptions};
use workload::prepare::{PrepareError, PrepareOptions, PrepareReport, Prepared, Rule, Use};
use workload::repair::{Repair, RepairCount};
use workload::slice::SliceError;
use workload::{Trace, TraceError};

use super::{Experiment, Role, SiteLog, Source, accounts, built_in, clusters};
use crate::latest::keep;
use crate::{limits, progress, terminal};

/// The jobs that are replayed.
#[derive(Clone, Debug, Default)]
pub struct Jobs {
    /// Ascending by (submit, id).
    pub jobs: Vec<TimedJob>,
    /// What the workload is, for reports.
    pub workload: String,
    /// Those that their users submit past a broker.
    pub local_users: LocalUsers,
    /// Those that were cut to their requested time, ascending.
    pub cut: Arc<[JobId]>,
    /// The logs that they are of.
    pub logs: Vec<LogDigest>,
    /// What was dropped or changed of the part that is replayed.
    pub preparation: Preparation,
    /// Everything that was dropped or changed, in words, one rule a line.
    pub notes: Vec<String>,
}

impl Jobs {
    /// That run times are to be predicted and no job says whose it is, in words; none otherwise.
    pub fn of_nobody(&self, experiment: &Experiment) -> Option<&'static str> {
        let is_somebodys = self.jobs.iter().any(|job| predict::is_known(&job.spec));
        (experiment.forecast.is_some() && !is_somebodys).then_some(
            "no job says whose it is, and nothing is predicted of jobs of nobody: everybody is believed, as with --estimate user",
        )
    }

    /// That local users submit past the broker, in words; none if nobody does, or there is no broker.
    pub fn past_broker(&self, experiment: &Experiment) -> Option<String> {
        if !experiment.strategy.strategy.nature().brokers {
            return None;
        }
        let is_past = |job: &&TimedJob| self.local_users.site(&experiment.grid, &job.spec).is_some();
        let count = self.jobs.iter().filter(is_past).count();
        (count > 0).then(|| format!("{} submitted past the broker, by local users", counted(count, "job")))
    }

    /// The same with jobs that came by order.
    #[must_use]
    pub fn with(&self, injected: Vec<TimedJob>) -> Jobs {
        let mut jobs = self.clone();
        match injected.len() {
            0 => return jobs,
            count => jobs.workload += &format!("; {} injected by order", counted(count, "job")),
        }
        jobs.jobs.extend(injected);
        jobs.jobs.sort_by_key(|job| (job.spec.submit, job.spec.id));
        jobs
    }

    /// The same where jobs that ended took as long as they did.
    #[must_use]
    pub fn measured(mut self, outcome: &Outcome) -> Jobs {
        let took: BTreeMap<JobId, Span> =
            outcome.jobs.iter().filter_map(|job| Some((job.id, job.execution()?))).collect();
        for job in &mut self.jobs {
            if let Some(&took) = took.get(&job.spec.id) {
                job.run_time = took;
            }
        }
        self
    }
}

/// Why there are no jobs. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum JobsError {
    /// A log cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A log cannot be read again, for its digest.
    #[error("read {file}: {cause}; give a file that stays")]
    Digest {
        /// The log.
        file: String,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Its records cannot become jobs.
    #[error(transparent)]
    Prepare(PrepareError),
    /// A job is wider than all that jobs may be spread over, and such jobs are to be refused.
    #[error(
        "prepare {trace}: job {job} needs {processors} processors, and over all sites together {strategy} starts jobs of at most {widest}; \
         {more}, or drop such jobs with --too-wide drop (too_wide = \"drop\")"
    )]
    TooWide {
        /// Name of the log.
        trace: String,
        /// The job's number.
        job: i64,
        /// What it needs.
        processors: u32,
        /// What starts jobs in parts.
        strategy: String,
        /// The width of the widest job.
        widest: u32,
        /// What lets wider ones start.
        more: &'static str,
    },
    /// The part of it that was asked for cannot be told.
    #[error("slice {trace}: {reason}")]
    Slice {
        /// Name of the log.
        trace: String,
        /// Why there is no such part.
        reason: String,
    },
    /// Nothing is left.
    #[error("find a job in {0}: every job was dropped; see the counts above, or widen the slice")]
    Nothing(String),
    /// Times whose sums do not fit an integer.
    #[error(
        "replay job {job}: with it the run times add up to more than {LONGEST_S} s; check fields 2, 4 and 9 of the log"
    )]
    TooLong {
        /// The first job with which the sum is too large.
        job: scheduler::JobId,
    },
    /// A load was asked for that no factor reaches.
    #[error("scale to a load: all jobs come at once, or none has work; leave out workload.load")]
    NoLoad,
    /// An origin that the grid does not have.
    #[error(
        "place job {job}: its origin is site {origin}, the grid has {}; use --origin site:1 or another grid",
        counted(*sites, "site")
    )]
    Origin {
        /// The job whose origin is no site.
        job: scheduler::JobId,
        /// The origin by the log.
        origin: SiteId,
        /// How many sites there are.
        sites: usize,
    },
    /// It would wait forever.
    #[error("place a job on nodes: {0}")]
    Memory(String),
}

/// Reads the jobs of an experiment.
///
/// # Errors
/// If a log cannot be read, has a job that the grid cannot hold, or nothing is left of it.
pub fn read(experiment: &Experiment) -> Result<Jobs, JobsError> {
    Reader::default().read(experiment)
}

/// Logs that a [`Reader`] keeps; the longest known log takes 100 MB.
const LOGS_KEPT: usize = 16;
/// Sets of logs for mixes that a [`Reader`] keeps.
const MIXES_KEPT: usize = 2;

/// Reads the jobs of experiments, and each log once only.
#[derive(Debug, Default)]
pub struct Reader {
    traces: VecDeque<(PathBuf, Trace, LogDigest)>,
    mixes: VecDeque<PreparedLogs>,
}

/// All logs of a mix, before weeks and days are chosen.
#[derive(Debug)]
struct PreparedLogs {
    sites: Vec<SiteLog>,
    prepare: PrepareOptions,
    grid: Arc<Grid>,
    logs: Vec<Log>,
    notes: Vec<String>,
    /// Of the files.
    digests: Vec<LogDigest>,
}

impl PreparedLogs {
    fn read(experiment: &Experiment, sites: &[SiteLog]) -> Result<PreparedLogs, JobsError> {
        let (mut logs, mut notes, mut digests) = (Vec::new(), Vec::new(), Vec::new());
        for SiteLog { site, trace: path, first_week, .. } in sites {
            let trace = built_in::read(path, &limits::of_logs())?;
            notes.extend(repair_notes(&trace));
            let prepared = prepare(experiment, &trace)?;
            let id = experiment.grid.machines().find(|other| other.name == *site).map(|site| site.id);
            logs.push(Log {
                name: trace.name.clone(),
                header: trace.header,
                jobs: prepared.jobs,
                uses: prepared.report.uses,
                site: id,
                first_week: *first_week,
            });
            digests.push(digest(path)?);
        }
        Ok(PreparedLogs {
            sites: sites.to_vec(),
            prepare: experiment.prepare.clone(),
            grid: experiment.grid.clone(),
            logs,
            notes,
            digests,
        })
    }
}

impl Reader {
    /// Reads the jobs of an experiment.
    ///
    /// # Errors
    /// If a log cannot be read, has a job that the grid cannot hold, or nothing is left of it.
    pub fn read(&mut self, experiment: &Experiment) -> Result<Jobs, JobsError> {
        let mut jobs = match &experiment.source {
            Source::Trace(path) => self.trace(experiment, path)?,
            Source::Mix(sites) => self.mix(experiment, sites)?,
            Source::Bag(bag) => bag.jobs(experiment)?,
            Source::BagBeside(bag, sites) => bag.beside(experiment, self.mix(experiment, sites)?)?,
            Source::Generated(generated) => generated.jobs(experiment)?,
        };
        if jobs.jobs.is_empty() {
            jobs.notes.iter().for_each(|words| terminal::note(words));
            return Err(JobsError::Nothing(jobs.workload));
        }
        experiment.programs.assign(&mut jobs);
        let factor = match experiment.load {
            Some(load) => factor_to(load, experiment, &jobs.jobs).ok_or(JobsError::NoLoad)?,
            None => experiment.load_factor,
        };
        if factor != 1.0 {
            hasten(&mut jobs.jobs, factor);
            jobs.notes.push(format!("submit times are divided by {factor}"));
        }
        refuse_too_long(&jobs.jobs)?;
        if let Some(deal) = experiment.deal {
            deal.deal(&mut jobs.jobs, &experiment.grid);
        }
        let memory = clusters::Memory::of(experiment);
        let sites = experiment.grid.machines().count();
        for job in &jobs.jobs {
            let origin = job.spec.origin;
            if origin.0 == 0 || origin.index() >= sites {
                return Err(JobsError::Origin { job: job.spec.id, origin, sites });
            }
            if let Some(reason) = memory.lacks(&job.spec, &jobs.local_users) {
                return Err(JobsError::Memory(reason));
            }
        }
        Ok(jobs)
    }

    fn trace(&mut self, experiment: &Experiment, path: &Path) -> Result<Jobs, JobsError> {
        let (trace, digest) = match self.traces.iter().find(|(kept, ..)| kept == path) {
            Some((_, trace, digest)) => (trace.clone(), digest.clone()),
            None => {
                let trace = built_in::read(path, &limits::of_logs())?;
                let digest = digest(path)?;
                keep(&mut self.traces, LOGS_KEPT, (path.to_path_buf(), trace.clone(), digest.clone()));
                (trace, digest)
            }
        };
        of_trace(experiment, path, trace, digest)
    }

    /// One log per site, laid over each other by week; `slice.week`, `slice.weekdays` and `slice.zone` choose which.
    fn mix(&mut self, experiment: &Experiment, sites: &[SiteLog]) -> Result<Jobs, JobsError> {
        let same = |kept: &PreparedLogs| {
            kept.sites == sites && kept.prepare == experiment.prepare && kept.grid == experiment.grid
        };
        if !self.mixes.iter().any(same) {
            keep(&mut self.mixes, MIXES_KEPT, PreparedLogs::read(experiment, sites)?);
        }
        let PreparedLogs { logs, notes, digests, .. } =
            self.mixes.iter().find(|kept| same(kept)).expect("kept above");
        let mut notes = notes.clone();
        let names: Vec<&str> = digests.iter().map(|log| log.file.as_str()).collect();
        let defaults = MixOptions::default();
        let slice = &experiment.slice;
        let options = MixOptions {
            clock: slice.zone.clone().map_or(defaults.clock, Clock::Shared),
            week: slice.week,
            week_from: slice.week_from,
            weeks: slice.weeks(),
            weekdays: slice.weekdays.unwrap_or(defaults.weekdays),
        };
        let mixed = workload::mix::mix(logs, &options)
            .map_err(|error| JobsError::Slice { trace: names.join(", "), reason: error.to_string() })?;
        if let Some(week) = slice.week
            && mixed.jobs.is_empty()
            && let Ok(Some((first, last))) = workload::mix::weeks(logs, &options)
        {
            let reason = SliceError::Week { week, first, last }.to_string();
            return Err(JobsError::Slice { trace: names.join(", "), reason });
        }
        for (name, taken) in mixed.names.iter().zip(&mixed.taken) {
            notes.push(format!("{name}: {} in the mix", counted(*taken, "job")));
        }
        let in_time = |submit: Time| {
            slice.from.is_none_or(|from| submit >= Time::ZERO + from)
                && slice.until.is_none_or(|until| submit < Time::ZERO + until)
        };
        let is_local = |source: &workload::mix::Source| sites[source.log as usize].role == Role::Local;
        let local_users: LocalUsers = mixed
            .sources
            .iter()
            .zip(1..)
            .filter(|(source, _)| is_local(source))
            .map(|(_, id)| JobId(id))
            .collect();
        let within = |job: &TimedJob| in_time(job.spec.submit);
        let jobs = mixed.jobs.into_iter().filter(within).take(slice.count.unwrap_or(usize::MAX));
        let mut jobs: Vec<TimedJob> = jobs.collect();
        let uses: Vec<(u32, Use)> = mixed.uses.into_iter().filter(|(_, used)| in_time(used.submit)).collect();
        let mut rules: BTreeMap<(u32, Rule), u64> = BTreeMap::new();
        uses.iter().for_each(|(log, used)| *rules.entry((*log, used.rule)).or_default() += 1);
        notes.extend(rules.iter().map(|(&(log, rule), &count)| {
            format!("{}: {rule}: {}", sites[log as usize].site, counted(count, "job"))
        }));
        let (preparation, cut) = accounts::of(&uses.iter().map(|(_, used)| *used).collect::<Vec<_>>(), &jobs);
        let mut logs = digests.clone();
        for job in &jobs {
            let number = usize::try_from(job.spec.id.0 - 1).ok();
            if let Some(source) = number.and_then(|number| mixed.sources.get(number)) {
                logs[source.log as usize].jobs += 1;
            }
        }
        if let Some(start) = slice.from.filter(|_| !slice.keep_times) {
            jobs.iter_mut()
                .for_each(|job| job.spec.submit = Time::ZERO + job.spec.submit.since(Time::ZERO + start));
            notes.push(format!("time 0 is {start} s of the mix, the start of the slice"));
        }
        let mut jobs = Jobs { jobs, workload: names.join(" + "), local_users, cut, logs, preparation, notes };
        jobs.notes.extend(jobs.past_broker(experiment));
        Ok(jobs)
    }
}

/// The part of a log that an experiment is of.
pub(super) fn of_trace(
    experiment: &Experiment,
    path: &Path,
    mut trace: Trace,
    digest: LogDigest,
) -> Result<Jobs, JobsError> {
    let mut notes = repair_notes(&trace);
    let sliced = experiment
        .slice
        .apply(&mut trace)
        .map_err(|error| JobsError::Slice { trace: path.display().to_string(), reason: error.to_string() })?;
    if sliced.dropped > 0 {
        notes.push(format!("{} outside the slice left out", counted(sliced.dropped, "job")));
    }
    if sliced.start != Span::ZERO {
        notes.push(format!("time 0 is {} s of the log, the start of the slice", sliced.start));
    }
    prepared(experiment, &trace, digest, notes)
}

/// The jobs that the grid can start, of one site or over several.
fn prepare(experiment: &Experiment, trace: &Trace) -> Result<Prepared, JobsError> {
    let Experiment { grid, strategy, .. } = experiment;
    progress::prepare(trace, &experiment.prepare, grid.widest_job()).map_err(|error| match error {
        PrepareError::TooWide { trace, job, processors, widest } if grid.spreads() => {
            let by = strategy.strategy.broker().map(|rules| rules.meta.coallocation);
            // Most of such a job must be at one site, whatever others there are.
            let more = match by {
                Some(Coallocation::Jones) => "use wider sites",
                _ => "use more sites or wider ones",
            };
            JobsError::TooWide { trace, job, processors, strategy: strategy.to_string(), widest, more }
        }
        error => JobsError::Prepare(error),
    })
}

/// All jobs of a log, with what was done to them before.
pub(super) fn prepared(
    experiment: &Experiment,
    trace: &Trace,
    digest: LogDigest,
    mut notes: Vec<String>,
) -> Result<Jobs, JobsError> {
    let prepared = prepare(experiment, trace)?;
    notes.extend(prepare_notes(&prepared.report, &experiment.grid));
    let (preparation, cut) = accounts::of(&prepared.report.uses, &prepared.jobs);
    // Without folders, so that the same log has the same name wherever it is.
    let workload = digest.file.clone();
    let logs = vec![LogDigest { jobs: prepared.jobs.len() as u64, ..digest }];
    Ok(Jobs { jobs: prepared.jobs, workload, cut, logs, preparation, notes, ..Jobs::default() })
}

/// The load that jobs offer: work over the time from the first submission to the last times all processors. `None` if they
/// come at once.
pub fn offered(grid: &Grid, jobs: &[TimedJob]) -> Option<f64> {
    let work: f64 = jobs.iter().map(|job| f64::from(job.spec.processors) * job.run_time.as_secs_f64()).sum();
    let times = || jobs.iter().map(|job| job.spec.submit);
    let span = times().max()?.since(times().min()?).as_secs_f64();
    Some(work / (span * grid.processors() as f64)).filter(|load| load.is_finite())
}

/// The factor by which jobs must come faster to offer this load. `None` if they come at once or have no work.
fn factor_to(load: f64, experiment: &Experiment, jobs: &[TimedJob]) -> Option<f64> {
    let offered = offered(&experiment.grid, jobs).filter(|&offered| offered > 0.0);
    offered.map(|offered| load / offered)
}

/// Divides submit times by a factor.
fn hasten(jobs: &mut [TimedJob], factor: f64) {
    for job in jobs.iter_mut() {
        // Whole microseconds up to 2^53, three centuries, are exact in floating point.
        let micros = job.spec.submit.as_micros() as f64 / factor;
        job.spec.submit = Time::from_micros(micros.round() as i64);
    }
    // Submissions may meet that were apart.
    jobs.sort_by_key(|job| job.spec.key());
}

/// The longest a run could last, in seconds: 30,000 years. Far more than any log, far less than an i64 of
/// microseconds, which bounds on the makespan and sums of them need.
const LONGEST_S: i64 = 1_000_000_000_000;

/// No run of these jobs may leave the range of times.
fn refuse_too_long(jobs: &[TimedJob]) -> Result<(), JobsError> {
    let mut longest: i128 = 0;
    for TimedJob { spec, run_time } in jobs {
        longest += i128::from(run_time.as_micros()).max(i128::from(spec.requested.as_micros()));
        let end = longest + i128::from(spec.submit.as_micros().unsigned_abs());
        if end > i128::from(LONGEST_S) * 1_000_000 {
            return Err(JobsError::TooLong { job: spec.id });
        }
    }
    Ok(())
}

/// A log by its content.
pub(super) fn digest(path: &Path) -> Result<LogDigest, JobsError> {
    accounts::digest(path).map_err(|cause| JobsError::Digest { file: path.display().to_string(), cause })
}

/// What is awkward in a whole log.
fn repair_notes(trace: &Trace) -> Vec<String> {
    let note = |repair: RepairCount| {
        let what = match repair.repair {
            Repair::ProcessorsDiffer => {
                let share = 100.0 * trace.differing_work();
                format!("{}: jobs with {share:.1} % of the work; `size` says which counts", repair.repair)
            }
            what => what.to_string(),
        };
        let times = counted(repair.count, "time");
        format!("{}: {what} ({times}, first in line {})", trace.name, repair.first_line)
    };
    trace.repairs.iter().map(note).collect()
}

fn prepare_notes(report: &PrepareReport, grid: &Grid) -> Vec<String> {
    let words = |rule: Rule| match rule {
        Rule::DroppedTooWide if grid.spreads() => {
            format!("dropped: wider than the {} processors that a job may be spread over", grid.widest_job())
        }
        rule => rule.to_string(),
    };
    report.iter().map(|rule| format!("{}: {}", words(rule.rule), counted(rule.count, "job"))).collect()
}
