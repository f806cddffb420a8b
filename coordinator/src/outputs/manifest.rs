//! `manifest.json`: what was run, how to run it again, whether it ended, and how to read the other files.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use analysis::JobState;
use scheduler::SiteId;

use super::allocation::Allocation;
use super::run_result::{RunResult, Status};
use crate::orders::Given;

#[derive(Serialize)]
struct Document<'a> {
    format: u32,
    experiment: &'a str,
    workload: &'a str,
    strategy: String,
    local: Option<&'a str>,
    driver: &'a str,
    clock: &'a str,
    network: &'a str,
    free_messages: bool,
    seed: u64,
    command: &'a str,
    #[serde(flatten)]
    status: &'a Status,
    versions: BTreeMap<&'static str, &'static str>,
    threshold_percent: u8,
    jobs: BTreeMap<&'static str, usize>,
    events: u64,
    origin_us: i64,
    until_us: i64,
    overcommitted_jobs: usize,
    /// What was done to the run while it lasted, by order of somebody.
    orders: &'a [Given],
    driver_says: &'a [String],
    warnings: &'a [String],
    sites: Vec<SiteEntry<'a>>,
}

#[derive(Serialize)]
struct SiteEntry<'a> {
    id: SiteId,
    name: &'a str,
    processors: u32,
    /// The site's processors in `allocated_resources`, as evalys wants its `resource_bounds`.
    resource_bounds: [u32; 2],
}

/// Writes the document, indented, with a line break at the end.
pub(super) fn write(file: &mut dyn Write, result: &RunResult, allocation: &Allocation) -> io::Result<()> {
    let about = &result.about;
    let outcome = &result.outcome;
    let entry = |site: &'_ scheduler::Site| {
        let first = allocation.offset(site.id);
        [first, first + site.processors - 1]
    };
    let document = Document {
        format: 1,
        experiment: &about.experiment,
        workload: &about.workload,
        strategy: about.strategy.to_string(),
        local: about.local.as_deref(),
        driver: &about.driver,
        clock: &about.clock,
        network: &about.network,
        free_messages: about.free_messages,
        seed: about.seed,
        command: &about.command,
        status: &about.status,
        versions: BTreeMap::from([("stealgrid", env!("CARGO_PKG_VERSION"))]),
        threshold_percent: outcome.threshold.percent(),
        jobs: JobState::ALL.into_iter().map(|state| (state.name(), outcome.count(state))).collect(),
        events: outcome.events,
        origin_us: outcome.origin.as_micros(),
        until_us: outcome.until.as_micros(),
        overcommitted_jobs: allocation.overcommitted(),
        orders: &about.orders,
        driver_says: &about.lines,
        warnings: &about.warnings,
        sites: outcome
            .grid
            .sites()
            .iter()
            .map(|site| SiteEntry {
                id: site.id,
                name: &site.name,
                processors: site.processors,
                resource_bounds: entry(site),
            })
            .collect(),
    };
    serde_json::to_writer_pretty(&mut *file, &document)?;
    writeln!(file)
}
