//! Tasks of a bag as the workload of an experiment: `workload.bag`.
//!
//! What a bag is, and how long its tasks take, is in [`workload::bag`].

use std::path::PathBuf;

use scheduler::{JobId, Span, Time};
use workload::bag::LengthModel;

use super::Experiment;
use super::jobs::{Jobs, JobsError, digest, of_trace, prepared};
use crate::limits;

/// A bag of tasks, and how long they take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskBag {
    /// The description, TOML or XPML.
    pub file: PathBuf,
    /// How their inputs become times.
    pub lengths: LengthModel,
    /// The seed of the inputs.
    pub seed: u64,
    /// When tasks are submitted.
    pub submit: Span,
}

impl TaskBag {
    /// How long its tasks may wait in a queue, if it says so and can be read.
    pub(super) fn queue_wait(&self) -> Option<Span> {
        workload::bag::read_within(&self.file, &limits::of_logs()).ok()?.wishes.queue_wait
    }

    /// The tasks, all submitted at once.
    pub(super) fn jobs(&self, experiment: &Experiment) -> Result<Jobs, JobsError> {
        let bag = workload::bag::read_within(&self.file, &limits::of_logs())?;
        let mut jobs =
            of_trace(experiment, &self.file, bag.trace(self.lengths, self.seed), digest(&self.file)?)?;
        self.note(&bag, experiment, &mut jobs);
        Ok(jobs)
    }

    /// The tasks beside jobs of local users, and numbered after them. The part of a log that is asked for is a part of theirs.
    pub(super) fn beside(&self, experiment: &Experiment, mut local: Jobs) -> Result<Jobs, JobsError> {
        let bag = workload::bag::read_within(&self.file, &limits::of_logs())?;
        let mut tasks =
            prepared(experiment, &bag.trace(self.lengths, self.seed), digest(&self.file)?, Vec::new())?;
        self.note(&bag, experiment, &mut tasks);
        let last = local.jobs.iter().map(|job| job.spec.id.0).max().unwrap_or(0);
        tasks.jobs.iter_mut().for_each(|job| job.spec.id = JobId(last + job.spec.id.0));
        local.jobs.extend(tasks.jobs);
        local.jobs.sort_by_key(|job| job.spec.key());
        local.notes.extend(tasks.notes);
        local.logs.extend(tasks.logs);
        local.preparation.jobs_dropped += tasks.preparation.jobs_dropped;
        local.workload = format!("{} beside {}", tasks.workload, local.workload);
        Ok(local)
    }

    /// When tasks come. What their user wishes of the schedule is a note: the strategy has it or not.
    fn note(&self, bag: &workload::bag::Bag, experiment: &Experiment, jobs: &mut Jobs) {
        jobs.jobs.iter_mut().for_each(|job| job.spec.submit = Time::ZERO + self.submit);
        if let Some(wait) = bag.wishes.queue_wait {
            let what = match experiment.strategy.strategy.dispatch() {
                Some(options) if options.timeout == Some(wait) => "called back then",
                Some(_) => "the strategy has its own time-out",
                None => "not used, the strategy calls none back",
            };
            let name = &bag.name;
            jobs.notes.push(format!("{name}: no task is to wait longer than {wait} s in a queue; {what}"));
        }
        let wishes = [
            ("deadline", bag.wishes.deadline.is_some()),
            ("budget", bag.wishes.budget.is_some()),
            ("optimisation", bag.wishes.optimisation.as_deref().is_some_and(|wish| wish != "NONE")),
        ];
        let unread = wishes.into_iter().filter(|(_, is_there)| *is_there).map(|(name, _)| name);
        let unread: Vec<&str> = unread.chain(bag.skipped.iter().map(String::as_str)).collect();
        if !unread.is_empty() {
            jobs.notes.push(format!(
                "{}: {} not used; the strategy has its own",
                bag.name,
                unread.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment::file::Written;
    use crate::experiment::jobs;

    const EXPERIMENT: &str = include_str!("../../../configs/bag.toml");

    fn experiment(text: &str) -> Result<Experiment, String> {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/bag.toml");
        let written = Written::parse(text, Path::new(file)).map_err(|error| error.to_string())?;
        Experiment::resolve(&written).map_err(|error| error.to_string())
    }

    fn read(text: &str) -> Jobs {
        jobs::read(&experiment(text).unwrap()).unwrap()
    }

    #[test]
    fn the_tasks_of_the_shipped_bag_are_there_at_once_and_differ_by_the_seed_of_their_lengths() {
        let shipped = read(EXPERIMENT);
        assert_eq!(shipped.jobs.len(), 500);
        assert!(shipped.jobs.iter().all(|job| job.spec.submit == Time::ZERO && job.spec.processors == 1));
        assert!(shipped.notes.iter().any(|note| note.contains("longer than 750 s")), "{:?}", shipped.notes);
        let with = |keys: &str| read(&EXPERIMENT.replace("[workload]", &format!("[workload]\n{keys}"))).jobs;
        assert_eq!(with("lengths_seed = 1"), shipped.jobs, "the default is the seed of the experiment");
        assert_ne!(with("lengths_seed = 2"), shipped.jobs);
        assert_eq!(read(&format!("seed = 2\n{EXPERIMENT}")).jobs, with("lengths_seed = 2"));
        assert_ne!(with("lengths = \"linear\""), shipped.jobs);
        assert_eq!(with("count = 20"), shipped.jobs[..20]);
        assert_eq!(experiment(EXPERIMENT).unwrap().name, "bag");
    }

    #[test]
    fn the_longest_wait_that_a_bag_asks_for_is_the_time_out_of_a_broker_that_has_none() {
        let with = |name: &str, key: &str| {
            let text = EXPERIMENT.replace("broker:mlb", name);
            let text = text.replace("[workload]", &format!("[workload]\n{key}"));
            let experiment = experiment(&text).unwrap();
            let notes = jobs::read(&experiment).unwrap().notes;
            let note = notes.into_iter().find(|note| note.contains("longer than 750 s")).unwrap();
            (experiment.strategy.to_string(), note.rsplit_once("; ").unwrap().1.to_string())
        };
        for (name, key, strategy, note) in [
            ("opaque:ag", "", "opaque:ag,timeout=750", "called back then"),
            ("ideal/opaque:mqd", "", "ideal/opaque:mqd,timeout=750", "called back then"),
            ("opaque:ag,timeout=500", "", "opaque:ag,timeout=500", "the strategy has its own time-out"),
            ("opaque:ag", "bag_queue_wait = false", "opaque:ag", "the strategy has its own time-out"),
            ("broker:mlb", "", "broker:mlb", "not used, the strategy calls none back"),
        ] {
            assert_eq!(with(name, key), (strategy.to_string(), note.to_string()), "{name} {key}");
        }
    }

    const LOCAL: &str = r#"
        [grid]
        sites = [{ name = "a", processors = 4 }, { name = "b", processors = 8 }]

        [workload]
        bag = "bags/tiny-mc.xml"
        bag_at = "2h"
        logs = [
            { site = "a", trace = "traces/small-a.swf", role = "local" },
            { site = "b", trace = "traces/small-b.swf", role = "local" },
        ]
        too_wide = "drop"

        [strategy]
        name = "broker:mlb"
    "#;

    #[test]
    fn tasks_come_beside_the_jobs_of_local_users_and_to_the_broker() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("bags")).unwrap();
        std::fs::create_dir(folder.path().join("traces")).unwrap();
        std::fs::copy(
            concat!(env!("CARGO_MANIFEST_DIR"), "/../configs/bags/tiny-mc.xml"),
            folder.path().join("bags/tiny-mc.xml"),
        )
        .unwrap();
        // Monday, 1 January 2024; two jobs each, an hour apart.
        let log = "; UnixStartTime: 1704067200\n; TimeZoneString: GMT\n\
            1 0 0 600 1 -1 -1 1 600 -1 1 1 1 1 1 1 -1 -1\n2 3600 0 600 1 -1 -1 1 600 -1 1 1 1 1 1 1 -1 -1\n";
        for site in ["a", "b"] {
            std::fs::write(folder.path().join(format!("traces/small-{site}.swf")), log).unwrap();
        }
        let resolved = |text: &str| {
            let written = Written::parse(text, &folder.path().join("x.toml")).unwrap();
            Experiment::resolve(&written).map_err(|error| error.to_string())
        };
        let text = LOCAL.replace("too_wide", "zone = \"GMT\"\n        too_wide");
        let experiment = resolved(&text).unwrap();
        let jobs = jobs::read(&experiment).unwrap();
        let is_local =
            |job: &scheduler::TimedJob| jobs.local_users.site(&experiment.grid, &job.spec).is_some();
        let (local, tasks): (Vec<&scheduler::TimedJob>, Vec<&scheduler::TimedJob>) =
            jobs.jobs.iter().partition(|job| is_local(job));
        assert_eq!((local.len(), tasks.len()), (4, 500));
        assert!(tasks.iter().all(|job| job.spec.submit == Time::from_secs(7200) && job.spec.id.0 > 4));
        assert!(jobs.jobs.is_sorted_by_key(|job| job.spec.key()));
        assert!(jobs.workload.contains("tiny-mc.xml beside small-a.swf"), "{}", jobs.workload);
        let error = resolved(&text.replacen(", role = \"local\"", "", 1)).unwrap_err();
        assert!(error.contains("a log for \"a\" whose users are not local"), "{error}");
    }

    #[test]
    fn what_is_wrong_with_a_bag_is_said_with_what_to_do() {
        let with = |keys: &str| EXPERIMENT.replace("[workload]", &format!("[workload]\n{keys}"));
        for (text, said) in [
            (with("bag_at = \"soon\""), "workload.bag_at"),
            (with("trace = \"a.swf\""), "workload.trace and workload.bag are given; keep one"),
            (with("lengths = \"linaer\""), "unknown lengths \"linaer\" (did you mean linear?)"),
        ] {
            let error = experiment(&text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let missing = experiment(&EXPERIMENT.replace("tiny-mc", "none")).unwrap();
        let error = jobs::read(&missing).unwrap_err().to_string();
        assert!(error.contains("bags/none.xml") && error.contains("check the path"), "{error}");
    }
}
