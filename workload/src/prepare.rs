//! From records to the jobs that a driver replays: which numbers count, what is dropped, what is changed.
//!
//! Every rule is a switch of [`PrepareOptions`] and every use of a rule is counted in a [`PrepareReport`].
//! Preparation never shifts time and never renumbers jobs; [`crate::mix`] does.

mod missing;
mod options;
mod report;
mod switches;

pub use missing::MissingEstimate;
pub use options::{PrepareOptions, TooWide};
pub use report::{PrepareReport, Rule, RuleCount, Use};
pub(crate) use switches::unknown;
pub use switches::{Estimate, Filter, Filters, Origin, Overrun, Size, SwitchError};

use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

use crate::record::Record;
use crate::trace::Trace;

/// The estimate of a job that gets its run time where that is not positive: estimates must be.
const SHORTEST_ESTIMATE: Span = Span::from_secs(1);

/// The jobs of a trace, ready to be replayed, and what was done to get them.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// Ascending by (submit, id); ids are unique; each fits the widest site.
    pub jobs: Vec<TimedJob>,
    /// Counts of what was dropped and changed.
    pub report: PrepareReport,
}

/// Why records cannot become jobs. Reads after "failed to".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrepareError {
    /// Two jobs share a number.
    #[error("prepare {trace}: two jobs have number {job}; renumber one, or remove its line")]
    DuplicateJob {
        /// Name of the trace.
        trace: String,
        /// The number that two jobs have.
        job: i64,
    },
    /// A negative job number, and the filter against it is off.
    #[error("prepare {trace}: job number {job} is negative; switch on the filter job-id, or renumber it")]
    NegativeJob {
        /// Name of the trace.
        trace: String,
        /// The negative number.
        job: i64,
    },
    /// A job is wider than every site, and such jobs are to be refused.
    #[error(
        "prepare {trace}: job {job} needs {processors} processors and the widest site has {widest}; \
         use a wider site, or drop such jobs with --too-wide drop (too_wide = \"drop\")"
    )]
    TooWide {
        /// Name of the trace.
        trace: String,
        /// The job's number.
        job: i64,
        /// What it needs.
        processors: u32,
        /// What the widest site has.
        widest: u32,
    },
    /// Jobs have no requested time, and nobody said what schedulers are told instead.
    #[error(
        "prepare {trace}: {jobs} of {read} jobs have no requested time; say what schedulers are told of them: the run time, \
         --missing-estimate run-time (missing_estimate = \"run-time\"), or a time, as 24h; or drop them, with drop"
    )]
    NoEstimate {
        /// Name of the trace.
        trace: String,
        /// Jobs without a requested time.
        jobs: usize,
        /// Jobs of the trace.
        read: usize,
    },
    /// The field that should hold the origin site does not.
    #[error(
        "prepare {trace}: job {job} has origin site {value} by origin = {origin}; sites are numbered from 1: \
         choose another field, or origin = site:N; without origin jobs are dealt to the sites"
    )]
    Origin {
        /// Name of the trace.
        trace: String,
        /// The job's number.
        job: i64,
        /// What the field holds.
        value: i32,
        /// The switch in force.
        origin: Origin,
    },
}

/// Makes jobs of a trace, for a grid whose widest site has `widest` processors.
///
/// The order of the rules for one job: size, filters, width, overrun, estimate. Overruns are judged by the
/// log's own requested time (field 9), since that is what the machine's users and scheduler agreed on; the
/// estimate that strategies see is derived after that.
///
/// # Errors
/// If two kept jobs share a number, a job is too wide and such jobs are refused, a requested time is missing for which there is no
/// stand-in, or an origin is not a site.
pub fn prepare(trace: &Trace, options: &PrepareOptions, widest: u32) -> Result<Prepared, PrepareError> {
    prepare_watched(trace, options, widest, &mut || {})
}

/// The same; `prepared` is called after each record, kept or not, for whoever shows how far it is.
///
/// # Errors
/// As [`prepare`].
pub fn prepare_watched(
    trace: &Trace,
    options: &PrepareOptions,
    widest: u32,
    prepared: &mut dyn FnMut(),
) -> Result<Prepared, PrepareError> {
    let mut report = PrepareReport { read: trace.records.len() as u64, ..PrepareReport::default() };
    let mut jobs = Vec::with_capacity(trace.records.len());
    let options = &PrepareOptions { missing_estimate: stand_in(trace, options), ..options.clone() };
    for record in &trace.records {
        report.of(record.job, Time::ZERO + record.submit);
        jobs.extend(prepare_one(trace, record, options, widest, &mut report)?);
        prepared();
    }
    jobs.sort_unstable_by_key(|job| job.spec.key());
    refuse_duplicates(trace, &jobs)?;
    report.kept = jobs.len() as u64;
    Ok(Prepared { jobs, report })
}

/// The records of prepared jobs: size, times and origin as prepared, all else as in the log.
///
/// # Panics
/// If the jobs were not prepared from this trace.
pub fn prepared_records(trace: &Trace, prepared: &Prepared) -> Vec<Record> {
    let mut by_job: Vec<&Record> = trace.records.iter().collect();
    by_job.sort_by_key(|record| record.job);
    let original = |job: &TimedJob| {
        let id = i64::try_from(job.spec.id.0).expect("it was an i64 in the record");
        let first = by_job.partition_point(|record| record.job < id);
        // Of the records of one number, at most one passed the filters.
        let same = by_job[first..].iter().take_while(|record| record.job == id);
        let submitted = |record: &&&Record| Time::ZERO + record.submit == job.spec.submit;
        *same.clone().find(submitted).expect("a job comes from a record")
    };
    let rewrite = |job: &TimedJob| {
        let prepared = Record::of_job(job);
        Record {
            run_time: prepared.run_time,
            requested_time: prepared.requested_time,
            allocated: prepared.allocated,
            requested: prepared.requested,
            origin: prepared.origin,
            ..*original(job)
        }
    };
    prepared.jobs.iter().map(rewrite).collect()
}

fn prepare_one(
    trace: &Trace,
    record: &Record,
    options: &PrepareOptions,
    widest: u32,
    report: &mut PrepareReport,
) -> Result<Option<TimedJob>, PrepareError> {
    let (count, fell_back) = options.size.processors(record);
    // What the log says of a job that is dropped; unknown times and sizes are not above 0.
    let dropped = |rule: Rule, report: &mut PrepareReport| {
        report.add_cut(rule, record.run_time.max(Span::ZERO), u32::try_from(count).unwrap_or(0));
    };
    if let Some(filter) = options.filters.first_against(record, count) {
        dropped(Rule::of_filter(filter), report);
        return Ok(None);
    }
    let processors = match u32::try_from(count) {
        Ok(count) if count > 0 => count,
        _ => {
            report.add(Rule::OneProcessorAssumed);
            1
        }
    };
    if processors > widest {
        match options.too_wide {
            TooWide::Drop => {
                dropped(Rule::DroppedTooWide, report);
                return Ok(None);
            }
            TooWide::Refuse => {
                let (trace, job) = (trace.name.clone(), record.job);
                return Err(PrepareError::TooWide { trace, job, processors, widest });
            }
        }
    }
    if record.requested_time <= Span::ZERO {
        match options.missing_estimate {
            MissingEstimate::Drop => {
                dropped(Rule::DroppedRequestedTime, report);
                return Ok(None);
            }
            MissingEstimate::Refuse => return Err(no_estimate(trace)),
            _ => {}
        }
    }
    report.add_if(fell_back, Rule::SizeFromOtherField);
    let id = u64::try_from(record.job)
        .map_err(|_| PrepareError::NegativeJob { trace: trace.name.clone(), job: record.job })?;
    let origin = options.origin.site(record).map_err(|value| PrepareError::Origin {
        trace: trace.name.clone(),
        job: record.job,
        value,
        origin: options.origin,
    })?;
    let (run_time, requested) = times(record, processors, options, report);
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::ZERO + record.submit,
        processors,
        requested,
        labels: Labels {
            user: record.user,
            group: record.group,
            executable: record.executable,
            queue: record.queue,
            memory: record.requested_memory,
        },
        origin,
        payload: options.payload,
    };
    Ok(Some(TimedJob { spec, run_time }))
}

/// What takes the place of missing estimates of this trace. Schedulers that are told of run times miss none.
fn stand_in(trace: &Trace, options: &PrepareOptions) -> MissingEstimate {
    let has_some = || trace.records.iter().any(|record| record.requested_time > Span::ZERO);
    match (options.missing_estimate, options.estimate) {
        (MissingEstimate::RunTimeOfSome, Estimate::User) if !has_some() => MissingEstimate::Refuse,
        (MissingEstimate::RunTimeOfSome, _) => MissingEstimate::RunTime,
        (chosen, _) => chosen,
    }
}

fn no_estimate(trace: &Trace) -> PrepareError {
    let jobs = trace.records.iter().filter(|record| record.requested_time <= Span::ZERO).count();
    PrepareError::NoEstimate { trace: trace.name.clone(), jobs, read: trace.records.len() }
}

/// The true run time and the estimate of a job, after the switches `overrun` and `estimate`.
fn times(
    record: &Record,
    processors: u32,
    options: &PrepareOptions,
    report: &mut PrepareReport,
) -> (Span, Span) {
    let mut run_time = record.run_time;
    if run_time < Span::ZERO {
        report.add(Rule::UnknownRunTimeAsZero);
        run_time = Span::ZERO;
    }
    let mut limit = record.requested_time;
    let is_asked = limit > Span::ZERO;
    if !is_asked && let MissingEstimate::Time(time) = options.missing_estimate {
        report.add(Rule::EstimateMadeUp);
        limit = time;
    } else if !is_asked {
        report.add(Rule::EstimateFromRunTime);
        limit = run_time.max(SHORTEST_ESTIMATE);
    }
    if run_time > limit {
        match options.overrun {
            // At a time that nobody asked for, nothing was stopped.
            Overrun::Kill if !is_asked => report.add(Rule::RunsPastEstimate),
            Overrun::Kill => {
                report.add_cut(Rule::StoppedAtEstimate, run_time - limit, processors);
                run_time = limit;
            }
            Overrun::Extend => {
                report.add(Rule::EstimateExtended);
                limit = run_time;
            }
            Overrun::AsIs => report.add(Rule::RunsPastEstimate),
        }
    }
    let requested = match options.estimate {
        Estimate::User => limit,
        Estimate::Exact => run_time.max(Span::from_micros(1)),
        Estimate::Factor(factor) => factor.of(run_time).max(Span::from_micros(1)),
    };
    report.add_if(options.estimate != Estimate::User && requested != limit, Rule::EstimateReplaced);
    (run_time, requested)
}

fn refuse_duplicates(trace: &Trace, jobs: &[TimedJob]) -> Result<(), PrepareError> {
    // Most logs number jobs by submission: then the order of the queue shows that all differ.
    if jobs.is_sorted_by(|earlier, later| earlier.spec.id < later.spec.id) {
        return Ok(());
    }
    let mut ids: Vec<JobId> = jobs.iter().map(|job| job.spec.id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let job = i64::try_from(pair[0].0).expect("it was an i64 in the record");
            Err(PrepareError::DuplicateJob { trace: trace.name.clone(), job })
        }
    }
}

impl Origin {
    /// The origin site of a record, or the value that is not one.
    fn site(self, record: &Record) -> Result<SiteId, i32> {
        let value = match self {
            Origin::Site(site) => return Ok(site),
            Origin::Queue => record.queue,
            Origin::Partition => record.partition,
            Origin::Recorded => record.origin,
        };
        u32::try_from(value).ok().filter(|&number| number > 0).map(SiteId).ok_or(value)
    }
}

#[cfg(test)]
#[path = "prepare/prepare_tests.rs"]
mod tests;
