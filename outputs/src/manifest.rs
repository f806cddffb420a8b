//! `manifest.json`: what was run, how to run it again, whether it ended, and how to read the other files.

use std::collections::BTreeMap;
use std::io::{self, Write};

use analysis::JobState;
use scheduler::time::seconds;
use scheduler::{SiteId, Time};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::allocation::Allocation;
use crate::orders::Given;
use crate::provenance::{Provenance, version};
use crate::run_result::{Overloaded, RunResult, Status};

/// The layout of `manifest.json` and `metrics.json`. It changes where a name, a unit or a word means something else.
pub(crate) const FORMAT: u32 = 3;

/// [`FORMAT`], and no other.
#[derive(Clone, Copy, Debug)]
struct Format;

impl Serialize for Format {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FORMAT.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Format {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Format, D::Error> {
        match u32::deserialize(deserializer)? {
            FORMAT => Ok(Format),
            other => Err(D::Error::custom(format!(
                "it is of format {other}, this version reads format {FORMAT}; run the experiment again, or take the version \
                 that wrote it"
            ))),
        }
    }
}

/// What the file says. What a reader can do without may be missing in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    format: Format,
    /// The name of the experiment.
    pub experiment: String,
    /// File names of the workload, or the name of a model.
    pub workload: String,
    /// As it is written on the command line.
    pub strategy: String,
    /// The scheduler of local queues, if the strategy has one.
    pub local: Option<String>,
    /// `simulate` or `run`.
    pub driver: String,
    /// `virtual` or `scaled:K`.
    pub clock: String,
    /// Delays and faults, in words.
    pub network: String,
    #[serde(default)]
    free_messages: bool,
    /// Of all randomness.
    pub seed: u64,
    /// A command line that repeats the run.
    pub command: String,
    /// Whether the run reached its end.
    #[serde(flatten)]
    pub status: Status,
    /// Of programs, by name.
    pub versions: BTreeMap<String, String>,
    /// The switches, the logs and what was done to them; empty in results of earlier versions.
    #[serde(flatten, default)]
    pub provenance: Provenance,
    /// The border between classes A and B, in percent.
    pub threshold_percent: u8,
    /// How many jobs are in each state.
    pub jobs: BTreeMap<String, usize>,
    /// How many were observed.
    pub events: u64,
    /// From where the makespan is counted.
    #[serde(rename = "origin_s", with = "seconds")]
    pub origin: Time,
    /// The last event.
    #[serde(rename = "until_s", with = "seconds")]
    pub until: Time,
    #[serde(default)]
    overcommitted_jobs: usize,
    /// What was done to the run while it lasted.
    #[serde(default)]
    pub orders: Vec<Given>,
    #[serde(default)]
    driver_says: Vec<String>,
    #[serde(default)]
    warnings: Vec<String>,
    /// In the order of the experiment.
    pub sites: Vec<SiteEntry>,
}

/// A site of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteEntry {
    /// Number of the site, as in the other files.
    pub id: SiteId,
    /// What the experiment calls it.
    pub name: String,
    /// How many it has.
    pub processors: u32,
    /// What a job costs there, in units of money; not written where nobody asks for any.
    #[serde(default, skip_serializing_if = "scheduler::is_free")]
    pub price: u64,
    /// The site's processors in `allocated_resources`, as evalys wants its `resource_bounds`.
    #[serde(default)]
    resource_bounds: [u32; 2],
}

impl SiteEntry {
    /// The number of the site's first processor in `allocated_resources`.
    pub fn first_processor(&self) -> u32 {
        self.resource_bounds[0]
    }
}

impl Manifest {
    /// Of a run whose jobs got these processors.
    pub(crate) fn of(result: &RunResult, allocation: &Allocation) -> Manifest {
        let about = &result.about;
        let outcome = &result.outcome;
        let entry = |site: &scheduler::Site| {
            let first = allocation.offset(site.id);
            let (id, name, processors) = (site.id, site.name.clone(), site.processors);
            SiteEntry {
                id,
                name,
                processors,
                price: site.price,
                resource_bounds: [first, (first + processors).saturating_sub(1)],
            }
        };
        let version = version();
        Manifest {
            format: Format,
            experiment: about.experiment.clone(),
            workload: about.workload.clone(),
            strategy: about.strategy.to_string(),
            local: about.local.clone(),
            driver: about.driver.clone(),
            clock: about.clock.clone(),
            network: about.network.clone(),
            free_messages: about.messages.are_free(),
            seed: about.seed,
            command: about.command.clone(),
            status: about.status.clone(),
            versions: BTreeMap::from([("stealgrid".to_string(), version)]),
            provenance: about.provenance.clone(),
            threshold_percent: outcome.threshold.percent(),
            jobs: JobState::ALL.map(|state| (state.name().to_string(), outcome.count(state))).into(),
            events: outcome.events,
            origin: outcome.origin,
            until: outcome.until,
            overcommitted_jobs: allocation.overcommitted(),
            orders: about.orders.clone(),
            driver_says: about.lines.clone(),
            warnings: about
                .warnings
                .iter()
                .cloned()
                .chain(result.overloaded().map(Overloaded::warning))
                .collect(),
            sites: outcome.grid.sites().iter().map(entry).collect(),
        }
    }

    /// Indented, with a line break at the end.
    pub(crate) fn write(&self, file: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *file, self)?;
        writeln!(file)
    }

    /// The last instant that was observed.
    pub fn until(&self) -> Time {
        self.until
    }

    /// The name of a site, or its number if the manifest does not have it.
    pub fn site_name(&self, site: SiteId) -> String {
        let entry = self.sites.iter().find(|entry| entry.id == site);
        entry.map_or_else(|| format!("site {site}"), |entry| entry.name.clone())
    }
}
