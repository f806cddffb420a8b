//! The experiment of a round: that of the user, with the journals, lease and restarts that the seed wants. Read as a
//! table of TOML, because what is judged must not come from the code that is judged.

use std::path::{Path, PathBuf};

use experiments::limits;
use toml::{Table, Value};

use super::audit::{self, Job};
use super::schedule::{Durability, Interrupted, Lease, Schedule, Shape};

/// What the workload may say: the audit reads the log by itself, and knows of nothing that changes it.
const WORKLOAD_KEYS: [&str; 5] = ["trace", "count", "origin", "too_wide", "payload"];
/// Faults strike so much longer than jobs come, in milliseconds of wall time.
const SPAN_AFTER_MS: u64 = 1_000;

/// An experiment that rounds are made of.
#[derive(Clone, Debug)]
pub struct Template {
    table: Table,
    /// Seconds of trace time in one of wall time.
    pub factor: f64,
    /// Names and processors of the sites.
    pub sites: Vec<(String, u32)>,
    /// The jobs, as the audit reads them.
    pub jobs: Vec<Job>,
}

impl Template {
    /// Reads an experiment file and its log.
    ///
    /// # Errors
    /// If one cannot be read, or has what chaos cannot judge. Reads after "failed to".
    pub fn read(path: &Path) -> Result<Template, String> {
        let wrong = |reason: String| format!("read {}: {reason}", path.display());
        let text = limits::read_text(path, limits::EXPERIMENT).map_err(|error| wrong(error.to_string()))?;
        let mut table: Table = text.parse().map_err(|error| wrong(format!("{error}")))?;
        if table.contains_key("faults") {
            return Err(wrong("it has [[faults]]; leave them out, chaos draws its own".to_string()));
        }
        let clock = text_of(&table, "run", "clock").and_then(|clock| clock.strip_prefix("scaled:"));
        let factor = clock.and_then(|factor| factor.parse::<f64>().ok()).filter(|factor| *factor > 0.0);
        let factor = factor.ok_or_else(|| wrong("give it [run] clock = \"scaled:K\"".to_string()))?;
        let sites = sites(&table).ok_or_else(|| {
            wrong(
                "give it [grid] sizes, or sites with name and processors; chaos needs two or more"
                    .to_string(),
            )
        })?;
        let workload = table.get("workload").and_then(Value::as_table);
        let strange =
            workload.into_iter().flat_map(Table::keys).find(|key| !WORKLOAD_KEYS.contains(&key.as_str()));
        if let Some(key) = strange {
            return Err(wrong(format!(
                "[workload] {key} changes the log, and the audit of chaos reads the log as it is; use only {}",
                WORKLOAD_KEYS.join(", ")
            )));
        }
        let trace = text_of(&table, "workload", "trace")
            .ok_or_else(|| wrong("give it [workload] trace, a log in SWF".to_string()))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let trace = absolute(&folder.join(trace)).map_err(wrong)?;
        let count = workload.and_then(|workload| workload.get("count")).and_then(Value::as_integer);
        let jobs = audit::read_log(&trace, count.and_then(|count| usize::try_from(count).ok()))?;
        set(&mut table, "workload", "trace", Value::String(trace.display().to_string()));
        for key in ["model", "matrix_file"] {
            let file = text_of(&table, "network", key).map(|file| folder.join(file));
            if let Some(file) = file.filter(|file| file.is_file()) {
                let file = absolute(&file).map_err(wrong)?;
                set(&mut table, "network", key, Value::String(file.display().to_string()));
            }
        }
        Ok(Template { table, factor, sites, jobs })
    }

    /// What schedules are drawn for.
    pub fn shape(&self, faults_max: usize) -> Shape {
        let last = self.jobs.last().map_or(0, |job| job.submit_us);
        let last_ms = (last as f64 / 1e3 / self.factor) as u64;
        Shape { sites: self.sites.len(), span_ms: last_ms + SPAN_AFTER_MS, faults_max }
    }

    /// The experiment file of a round.
    pub fn of_round(&self, schedule: &Schedule) -> String {
        let mut table = self.table.clone();
        let text = |text: &str| Value::String(text.to_string());
        let journal = match schedule.journal {
            Durability::Process => "process",
            Durability::Disk => "disk",
        };
        let interrupted = match schedule.interrupted {
            Interrupted::Requeue => "requeue",
            Interrupted::Kill => "kill",
        };
        table.insert("name".to_string(), text("chaos"));
        set(&mut table, "node", "journal", text(journal));
        set(&mut table, "node", "interrupted", text(interrupted));
        set(&mut table, "node", "restart", Value::Boolean(schedule.restart));
        if let Some(protocol) = table.get_mut("protocol").and_then(Value::as_table_mut) {
            for key in ["heartbeat", "suspect_after", "lease"] {
                protocol.remove(key);
            }
        }
        if let Some(Lease { heartbeat_ms, suspect_after_ms, lease_ms }) = schedule.lease {
            let trace = |ms: u64| Value::String(format!("{}ms", (ms as f64 * self.factor).ceil() as u64));
            set(&mut table, "protocol", "heartbeat", trace(heartbeat_ms));
            set(&mut table, "protocol", "suspect_after", trace(suspect_after_ms));
            set(&mut table, "protocol", "lease", trace(lease_ms));
        }
        table.to_string()
    }
}

fn text_of<'a>(table: &'a Table, section: &str, key: &str) -> Option<&'a str> {
    table.get(section)?.as_table()?.get(key)?.as_str()
}

fn set(table: &mut Table, section: &str, key: &str, value: Value) {
    let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if let Some(section) = section.as_table_mut() {
        section.insert(key.to_string(), value);
    }
}

fn sites(table: &Table) -> Option<Vec<(String, u32)>> {
    let grid = table.get("grid")?.as_table()?;
    let processors = |value: &Value| value.as_integer().and_then(|size| u32::try_from(size).ok());
    let sites: Vec<(String, u32)> = match grid.get("sites").and_then(Value::as_array) {
        Some(sites) => {
            let site = |site: &Value| {
                let site = site.as_table()?;
                Some((site.get("name")?.as_str()?.to_string(), processors(site.get("processors")?)?))
            };
            sites.iter().map(site).collect::<Option<_>>()?
        }
        None => {
            let sizes = grid.get("sizes")?.as_array()?;
            let sizes = sizes.iter().map(processors).collect::<Option<Vec<u32>>>()?;
            sizes.into_iter().enumerate().map(|(place, size)| (format!("site{}", place + 1), size)).collect()
        }
    };
    (sites.len() >= 2).then_some(sites)
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::fs::canonicalize(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/chaos.toml")
    }

    #[test]
    fn the_shipped_experiment_is_read_as_the_run_reads_it() {
        let template = Template::read(&shipped()).unwrap();
        let written = experiments::experiment::file::Written::load(&shipped()).unwrap();
        let experiment = experiments::experiment::Experiment::resolve(&written).unwrap();
        let jobs = experiments::experiment::jobs::read(&experiment).unwrap();

        let sites: Vec<(String, u32)> =
            experiment.grid.sites().iter().map(|site| (site.name.clone(), site.processors)).collect();
        assert_eq!(template.sites, sites);
        assert_eq!(experiment.run.clock, Some(experiments::experiment::Clock::Scaled(template.factor)));
        let read: Vec<Job> = jobs
            .jobs
            .iter()
            .map(|job| Job {
                id: job.spec.id.0,
                submit_us: job.spec.submit.as_micros(),
                processors: job.spec.processors,
                run_us: job.run_time.as_micros(),
                requested_us: job.spec.requested.as_micros(),
            })
            .collect();
        assert_eq!(template.jobs, read);
        assert!(read.len() >= 300, "{}", read.len());
    }

    #[test]
    fn the_experiment_of_each_round_is_understood() {
        let template = Template::read(&shipped()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("experiment.toml");
        for seed in 0..40 {
            let schedule = Schedule::draw(seed, template.shape(20));
            std::fs::write(&path, template.of_round(&schedule)).unwrap();
            let written = experiments::experiment::file::Written::load(&path).unwrap();
            let experiment = experiments::experiment::Experiment::resolve(&written).unwrap();
            assert_eq!(experiment.run.restart_nodes, schedule.restart);
            assert_eq!(experiment.options.lease.is_some(), schedule.lease.is_some());
            assert!(experiment.run.journal.is_some());
        }
    }

    #[test]
    fn what_cannot_be_judged_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("experiment.toml");
        std::fs::write(folder.path().join("jobs.swf"), "1 0 -1 9 1 -1 -1 1 9 -1 1 1 1 1 1 -1 -1 -1\n")
            .unwrap();
        let good = "grid.sizes = [1, 2]\nworkload.trace = \"jobs.swf\"\nrun.clock = \"scaled:10\"\n";
        let refused = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Template::read(&path).map(drop).unwrap_err()
        };
        std::fs::write(&path, good).unwrap();
        assert_eq!(Template::read(&path).unwrap().jobs.len(), 1);
        assert!(refused(&format!("{good}workload.week = 1")).contains("[workload] week changes the log"));
        assert!(refused(&format!("{good}faults = []")).contains("chaos draws its own"));
        assert!(refused(&good.replace("[1, 2]", "[1]")).contains("two or more"));
        assert!(refused(&good.replace("scaled:10", "virtual")).contains("scaled:K"));
        assert!(refused(&good.replace("jobs.swf", "none.swf")).contains("none.swf"));
    }
}
