//! Where the jobs of an experiment come from: `[workload]` with a log, logs of sites, a bag of tasks, or a model.

use std::path::{Path, PathBuf};

use scheduler::spelling;
use scheduler::{Grid, Span, Strategy};
use workload::bag::LengthModel;

use super::bag::TaskBag;
use super::error::wrong;
use super::file::{Written, WrittenLog};
use super::generated::Generated;
use super::{ExperimentError, Role, SEED, optional_span, parse};

/// Where jobs come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// All jobs from one log.
    Trace(PathBuf),
    /// Logs of sites, laid over each other by week.
    Mix(Vec<SiteLog>),
    /// Tasks that need nothing of each other.
    Bag(TaskBag),
    /// These, and logs of the local users of sites.
    BagBeside(TaskBag, Vec<SiteLog>),
    /// Drawn from a model.
    Generated(Generated),
}

impl Source {
    /// A broker that learns and was told of no time-out gets that of a bag, if there is one. A bag that cannot be read is told of
    /// when its tasks are.
    pub(super) fn ask_of(&self, strategy: &mut Strategy) {
        if let (Source::Bag(bag) | Source::BagBeside(bag, _), Some(options)) = (self, strategy.dispatch_mut())
            && options.timeout.is_none()
        {
            options.timeout = bag.queue_wait();
        }
    }
}

/// A log, or a part of one, whose jobs the users of a site submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteLog {
    /// Name of the site.
    pub site: String,
    /// The log.
    pub trace: PathBuf,
    /// The week of the log that is week 1 of the mix.
    pub first_week: i64,
    /// Whom its users submit to.
    pub role: Role,
}

/// What is written, as it is meant.
pub(super) fn resolve(written: &Written, grid: &Grid) -> Result<Source, ExperimentError> {
    let wrong = wrong("--trace ([workload])");
    let lengths = parse("workload.lengths", &written.workload.lengths, LengthModel::default())?;
    let seed = written.workload.lengths_seed.or(written.seed).unwrap_or(SEED);
    let submit = optional_span("workload.bag_at", &written.workload.bag_at)?.unwrap_or(Span::ZERO);
    let task_bag = |file: &Path| TaskBag { file: file.to_path_buf(), lengths, seed, submit };
    let workload = &written.workload;
    if let (Some(generate), None, None, None) =
        (&workload.generate, &workload.trace, &workload.logs, &workload.bag)
    {
        return Generated::resolve(generate, written, grid).map(Source::Generated);
    }
    match (&workload.trace, &workload.logs, &workload.bag) {
        (None, None, None) => {
            Err(wrong("there is no workload; write --trace FILE or a [workload] with trace".into()))
        }
        (Some(trace), None, None) if workload.generate.is_none() => Ok(Source::Trace(trace.clone())),
        (None, None, Some(file)) if workload.generate.is_none() => Ok(Source::Bag(task_bag(file))),
        (None, Some(logs), bag) if workload.generate.is_none() => {
            for log in logs {
                if !grid.machines().any(|site| site.name == log.site) {
                    let hint = spelling::hint(&log.site, grid.machines().map(|site| &site.name));
                    return Err(wrong(format!(
                        "a log is for site {:?}{hint}, which is not in the grid",
                        log.site
                    )));
                }
                if log.first_week.is_some_and(|week| week < 1) {
                    return Err(wrong(format!("first_week of the log for {:?} is less than 1", log.site)));
                }
            }
            let of = |log: &WrittenLog| {
                let role = log.role.as_deref().unwrap_or("grid").parse();
                Ok(SiteLog {
                    site: log.site.clone(),
                    trace: log.trace.clone(),
                    first_week: log.first_week.map_or(1, i64::from),
                    role: role.map_err(|error| wrong(format!("the log for {:?}: {error}", log.site)))?,
                })
            };
            let logs: Vec<SiteLog> = logs.iter().map(of).collect::<Result<_, _>>()?;
            let Some(bag) = bag else { return Ok(Source::Mix(logs)) };
            match logs.iter().find(|log| log.role != Role::Local) {
                Some(log) => Err(wrong(format!(
                    "workload.bag is beside a log for {:?} whose users are not local; write role = \"local\" there, or keep one of the two",
                    log.site
                ))),
                None => Ok(Source::BagBeside(task_bag(bag), logs)),
            }
        }
        (trace, logs, bag) => {
            let given = [
                ("trace", trace.is_some()),
                ("logs", logs.is_some()),
                ("bag", bag.is_some()),
                ("generate", workload.generate.is_some()),
            ];
            let given = given.iter().filter(|(_, is_given)| *is_given);
            let given: Vec<String> = given.map(|(key, _)| format!("workload.{key}")).collect();
            Err(wrong(format!("{} are given; keep one", given.join(" and "))))
        }
    }
}
