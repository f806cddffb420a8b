//! Jobs of a model as the workload of an experiment: `workload.generate`; and programs of a model for the jobs of a log:
//! `workload.programs`.
//!
//! The model is in [`workload::nas`].

use std::fmt;

use outputs::LogDigest;
use scheduler::spelling::unknown;
use scheduler::{Grid, Span};
use sha2::{Digest as _, Sha256};
use workload::nas::{self, APPLICATIONS, Flavor, Nas};

use super::error::wrong;
use super::file::{Written, WrittenGenerate};
use super::jobs::{Jobs, JobsError, of_trace};
use super::{Experiment, ExperimentError, SEED, optional_span, parse};
use crate::hex::hex;

/// The name of the model, and of its table of applications.
pub(super) const M_CISNE: &str = "m-cisne";
/// Jobs of a model at most: what a simulation is made for, and some gigabytes.
const JOBS_MAX: usize = 10_000_000;
/// Users of a model at most: more than any log has, and a number of SWF.
const USERS_MAX: u32 = 1_000_000;

/// A model, and what it is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generated {
    /// The model.
    pub nas: Nas,
    /// Of what it draws.
    pub seed: u64,
}

impl Generated {
    /// What is written, as it is meant.
    pub(super) fn resolve(
        generate: &WrittenGenerate,
        written: &Written,
        grid: &Grid,
    ) -> Result<Generated, ExperimentError> {
        let wrong = wrong("workload.generate");
        if generate.model != M_CISNE {
            return Err(wrong(unknown("model", &generate.model, M_CISNE)));
        }
        if generate.jobs == 0 || generate.jobs > JOBS_MAX {
            return Err(wrong(format!("jobs = {} is not from 1 to {JOBS_MAX}", generate.jobs)));
        }
        let place = "workload.generate.interarrival";
        let interarrival = optional_span(place, &Some(generate.interarrival.clone()))?.unwrap_or_default();
        if interarrival <= Span::ZERO {
            return Err(wrong("interarrival is no time above 0; write 6s".into()));
        }
        let least = APPLICATIONS.iter().map(|application| application.nodes).min().unwrap_or(1);
        let nodes = generate.nodes.unwrap_or(grid.widest());
        if nodes < least {
            return Err(wrong(format!(
                "no benchmark of {M_CISNE} is on fewer than {least} nodes, and the widest job would have {nodes}; give a site more"
            )));
        }
        let failing = generate.failing.unwrap_or(0.0);
        if !(0.0..=1.0).contains(&failing) {
            return Err(wrong(format!("failing = {failing} is not between 0 and 1")));
        }
        let users = generate.users.unwrap_or(0);
        let known =
            u32::try_from(users).ok().filter(|&users| users <= USERS_MAX && generate.users != Some(0));
        let Some(users) = known else {
            return Err(wrong(format!(
                "users = {users} is not from 1 to {USERS_MAX}; leave it out for nobody's jobs"
            )));
        };
        let flavor = parse("workload.generate.flavor", &generate.flavor, Flavor::default())?;
        let seed = generate.seed.or(written.seed).unwrap_or(SEED);
        Ok(Generated { nas: Nas { jobs: generate.jobs, interarrival, flavor, nodes, failing, users }, seed })
    }

    /// The jobs.
    pub(super) fn jobs(&self, experiment: &Experiment) -> Result<Jobs, JobsError> {
        let trace = self.nas.trace(self.seed);
        let mut bytes = Vec::new();
        workload::swf::write_trace(&trace, &mut bytes).expect("memory takes what is written");
        let digest = LogDigest { file: trace.name.clone(), sha256: hex(&Sha256::digest(&bytes)), jobs: 0 };
        let failed = trace.records.iter().filter(|record| record.status == 0).count();
        let mut jobs = of_trace(experiment, M_CISNE.as_ref(), trace, digest)?;
        if failed > 0 {
            jobs.notes.push(format!("{failed} of the {} jobs that are drawn fail", self.nas.jobs));
        }
        let left_out = APPLICATIONS.iter().filter(|application| application.nodes > self.nas.nodes).count();
        if left_out > 0 {
            let nodes = self.nas.nodes;
            jobs.notes.push(format!(
                "{left_out} of 18 benchmarks are on more than {nodes} nodes and are not drawn"
            ));
        }
        Ok(jobs)
    }
}

/// Without the seed.
impl fmt::Display for Generated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Nas { jobs, interarrival, flavor, nodes, failing, users } = self.nas;
        let flavor = Flavor::ALL.iter().find(|(_, known)| *known == flavor).map_or("", |(name, _)| name);
        write!(
            f,
            "{M_CISNE}, {jobs} jobs, interarrival {interarrival} s, flavor {flavor}, nodes {nodes}, failing {failing}"
        )?;
        if users > 0 { write!(f, ", users {users}") } else { Ok(()) }
    }
}

/// What jobs of a log are taken to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Programs {
    /// What the log says.
    #[default]
    Log,
    /// The closest application of the table, by [`nas::assign`].
    Closest,
}

impl Programs {
    /// The name in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Programs::Log => "log",
            Programs::Closest => "closest",
        }
    }

    /// Has the jobs be of these programs.
    pub(super) fn assign(self, jobs: &mut Jobs) {
        if self == Programs::Closest {
            nas::assign(&mut jobs.jobs);
            jobs.notes.push("programs are the closest benchmarks by width and requested time".into());
        }
    }
}

/// What is written, as it is meant.
pub(super) fn programs(written: &Written, grid: &Grid) -> Result<Programs, ExperimentError> {
    let wrong = wrong("workload.programs");
    let shares = grid.sites().iter().any(|site| grid.cluster(site.id).is_some());
    match written.workload.programs.as_deref() {
        None | Some("log") => Ok(Programs::Log),
        Some("closest") if shares => Ok(Programs::Closest),
        Some("closest") => Err(wrong(
            "what programs do matters where jobs share nodes, and no site has nodes; leave it out".into(),
        )),
        Some(other) => Err(wrong(unknown("rule", other, "log or closest"))),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use std::collections::BTreeSet;

    use scheduler::{JobSpec, Labels, TimedJob};

    use super::*;
    use crate::experiment::jobs;

    const UNEQUAL: &str = include_str!("../../../configs/m-cisne/844.toml");
    const EQUAL: &str = include_str!("../../../configs/m-cisne/555.toml");

    fn experiment(text: &str) -> Result<Experiment, String> {
        let written =
            Written::parse(text, Path::new("/nowhere/844.toml")).map_err(|error| error.to_string())?;
        Experiment::resolve(&written).map_err(|error| error.to_string())
    }

    fn read(text: &str) -> Jobs {
        jobs::read(&experiment(text).unwrap()).unwrap()
    }

    #[test]
    fn a_model_gives_the_same_jobs_to_a_seed_and_none_that_fit_no_cluster() {
        let shipped = read(UNEQUAL);
        assert_eq!((shipped.jobs.len(), shipped.workload.as_str()), (60, "m-cisne"));
        assert!(read(UNEQUAL).jobs == shipped.jobs);
        let said = experiment(EQUAL).unwrap().switches();
        let expected = "m-cisne, 60 jobs, interarrival 6 s, flavor balanced, nodes 5, failing 0";
        assert_eq!(said["workload.generate"], expected);
        let seeded = |seed: u64| read(&format!("seed = {seed}\n{UNEQUAL}"));
        assert!(seeded(1).jobs == shipped.jobs && seeded(2).jobs != shipped.jobs);
        assert_ne!(seeded(2).logs, shipped.logs, "a digest of the jobs");
        let own = UNEQUAL.replace("jobs = 60", "jobs = 60, seed = 2");
        assert!(read(&own).jobs == seeded(2).jobs);
        let widest = |jobs: &Jobs| jobs.jobs.iter().map(|job| job.spec.processors).max();
        let narrow = read(EQUAL);
        assert_eq!((widest(&shipped), widest(&narrow)), (Some(8), Some(4)));
        assert!(narrow.notes.iter().any(|note| note.starts_with("6 of 18 benchmarks")), "{:?}", narrow.notes);
        let owned = read(&UNEQUAL.replace("jobs = 60", "jobs = 60, users = 3"));
        let users: BTreeSet<i32> = owned.jobs.iter().map(|job| job.spec.labels.user).collect();
        assert_eq!(users, BTreeSet::from([1, 2, 3]));
        let same = |pair: (&scheduler::TimedJob, &scheduler::TimedJob)| {
            let labels = Labels { user: -1, ..pair.0.spec.labels };
            TimedJob { spec: JobSpec { labels, ..pair.0.spec }, ..*pair.0 } == *pair.1
        };
        assert!(owned.jobs.iter().zip(&shipped.jobs).all(same), "whose they are changes nothing else");
        let failing = read(&UNEQUAL.replace("jobs = 60", "jobs = 60, failing = 0.5"));
        assert!(failing.notes.iter().any(|note| note.ends_with("of the 60 jobs that are drawn fail")));
        let shorter = |pair: (&scheduler::TimedJob, &scheduler::TimedJob)| pair.0.run_time < pair.1.run_time;
        assert!(failing.jobs.iter().zip(&shipped.jobs).filter(|&pair| shorter(pair)).count() > 10);
    }

    #[test]
    fn predictors_are_taken_where_jobs_share_nodes() {
        let text = include_str!("../../../configs/m-cisne/hybrid.toml");
        let hybrid = experiment(text).unwrap();
        assert_eq!(hybrid.estimate(), "smith");
        assert!(hybrid.forecast.is_some() && hybrid.grid.is_shared());
        assert!(read(text).jobs.iter().all(|job| (1..=4).contains(&job.spec.labels.user)));
        let opaque = text.replace("broker:mcisne,select=tat,estimator=decisor", "opaque:min-min");
        let error = experiment(&opaque).unwrap_err().to_string();
        assert!(error.contains("jobs share the nodes of site c1") && error.contains("use local"), "{error}");
    }

    #[test]
    fn the_list_of_555_is_the_table_that_844_names() {
        let of = |text: &str| {
            let grid = experiment(text).unwrap().grid;
            let nodes = grid.cluster(grid.sites()[0].id).unwrap();
            nodes.applications.as_ref().clone()
        };
        let (listed, named) = (of(EQUAL), of(UNEQUAL));
        assert_eq!((listed.len(), named.len()), (18, 18));
        for (number, application) in &named {
            assert!((application.computing - listed[number].computing).abs() < 5e-4, "{number}");
            assert_eq!(application.bandwidth, listed[number].bandwidth);
        }
    }

    #[test]
    fn jobs_of_a_log_may_be_of_the_closest_benchmarks() {
        let log = "generate = { model = \"m-cisne\", jobs = 60, interarrival = \"6s\" }";
        let of = |more: &str| {
            let text = UNEQUAL.replace("nodes = 8", "nodes = 96");
            text.replace(log, &format!("trace = \"built-in:seven-sites\"\ncount = 50{more}"))
        };
        let (plain, close) = (read(&of("")), read(&of("\nprograms = \"closest\"")));
        assert!(plain.jobs.iter().all(|job| job.spec.labels.executable <= 0));
        for (plain, close) in plain.jobs.iter().zip(&close.jobs) {
            let (number, row) = nas::closest(plain.spec.processors, plain.spec.requested);
            assert_eq!(close.spec.labels.executable, number);
            assert_eq!(close.spec.labels.memory, row.memory_kb());
            assert_eq!((close.run_time, close.spec.submit), (plain.run_time, plain.spec.submit));
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_do() {
        let with = |from: &str, to: &str| UNEQUAL.replace(from, to);
        let name = "broker:mcisne,select=tat";
        for (text, said) in [
            (with("\"m-cisne\", jobs", "\"m-cisme\", jobs"), "did you mean m-cisne?"),
            (with("jobs = 60", "jobs = 0"), "jobs = 0 is not from 1"),
            (with("\"6s\"", "\"0s\""), "interarrival is no time above 0"),
            (with("jobs = 60", "jobs = 60, failing = 2.0"), "failing = 2 is not between"),
            (with("jobs = 60", "jobs = 60, users = 0"), "users = 0 is not from 1"),
            (with("jobs = 60", "jobs = 60, users = 100000000000"), "users = 100000000000 is not from 1"),
            (with("jobs = 60", "jobs = 60, flavor = \"balancd\""), "did you mean balanced?"),
            (with("jobs = 60", "jobs = 60, nodes = 1"), "fewer than 2 nodes"),
            (with("[workload]", "[workload]\nprograms = \"closset\""), "did you mean closest?"),
            (
                with("[workload]", "[workload]\ntrace = \"a.swf\""),
                "workload.trace and workload.generate are given",
            ),
            (with("= \"m-cisne\"\nlocal", "= \"cisne\"\nlocal"), "unknown table of applications"),
        ] {
            let error = experiment(&text).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let bare = "[grid]\nsizes = [4, 8]\n[workload]\ngenerate = { model = \"m-cisne\", jobs = 6, interarrival = \"6s\" }\n";
        for option in ["filter=mem", "filter=mpl", "filter=type", "estimator=hanzich", "estimator=decisor"] {
            let error = experiment(&format!("{bare}[strategy]\nname = \"{name},{option}\"")).unwrap_err();
            assert!(error.contains(option) && error.contains("has processors"), "{error}");
            assert!(experiment(&with(name, &format!("{name},{option}"))).is_ok(), "{option}");
        }
        let error = experiment(&format!("{bare}programs = \"closest\"")).unwrap_err();
        assert!(error.contains("no site has nodes"), "{error}");
    }
}
