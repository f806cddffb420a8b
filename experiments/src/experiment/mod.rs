//! One experiment: what was typed ([`mod@file`], [`flags`]) and what it means ([`Experiment`]).
//!
//! Everything is checked here, before anything runs. A wrong value is reported with its place in the file or its
//! flag, what was expected, and what to write. Jobs are read by [`jobs`].

pub mod accounts;
pub mod bag;
mod brokers;
pub mod built_in;
mod clusters;
mod coallocation;
pub mod commands;
mod entering;
mod error;
mod execution;
pub mod faults;
pub mod file;
pub mod flags;
mod forecasts;
pub mod generated;
pub mod jobs;
pub mod keys;
mod name;
pub mod place;
pub mod resolved;
mod source;
mod suggested;
mod view;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use analysis::steady::Cut;
use analysis::{Hindrance, Messages};
use links::{Model, ModelError};
use node::journal::Durability;
use predict::Forecast;
use protocol::message::TRANSFERS_MAX;
use protocol::{BalanceOptions, Discovery, Options, PoolOptions, StealOptions, Terms};
use scheduler::spelling::unknown;
use scheduler::{BrokerRule, Grid, LocalScheduler, Pass, Selection, Span, StrategySpec, Submit, spelling};
use sha2::{Digest as _, Sha256};
use workload::calendar::WeekFrom;
use workload::deal::Deal;
use workload::prepare::{PrepareOptions, TooWide};
use workload::slice::Slice;

pub use entering::SubmitDelay;
pub use error::ExperimentError;
use error::wrong;
use faults::Fault;
use file::Written;
pub use forecasts::{order, order_of, predicts};
pub use generated::Programs;
pub use name::NAME_BYTES_MAX;
use name::name_of_a_file;
pub use resolved::Resolved;
pub use source::{SiteLog, Source};

use crate::hex::hex;

/// A trace-time factor above which the wall clock's millisecond timers are coarser than most jobs.
pub const FACTOR_MAX: f64 = 1_000_000.0;

/// The default of `strategy.submit`: what users of sites do.
const SUBMIT: Submit = Submit::Origin;

/// The default of `seed`.
const SEED: u64 = 1;

/// The default of `node.orphan_patience`: time to notice, log in and attach.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(600);

/// The default of `run.calibration_tolerance`, in percent: below that the added part is hard to tell from noise.
pub const CALIBRATION_TOLERANCE: f64 = 10.0;

/// The default of `run.delay_margin`, in percent: what calibration lets pass.
pub const DELAY_MARGIN: f64 = CALIBRATION_TOLERANCE;

/// The default of `run.ensemble`: one correct run in 501 is called different.
pub const ENSEMBLE: usize = 500;

/// The fewest simulations that say something: below, one correct run in 200 would be called different.
pub const SIMULATIONS_MIN: usize = 200;
/// The most: arbitrary, some minutes of a small experiment.
pub const SIMULATIONS_MAX: usize = 10_000;

/// The default of `run.ensemble_patience`.
const ENSEMBLE_PATIENCE: Duration = Duration::from_secs(60);

/// An experiment, checked and resolved.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Name of the experiment, for reports.
    pub name: String,
    /// The seed of everything random.
    pub seed: u64,
    /// The sites of the experiment.
    pub grid: Arc<Grid>,
    /// Where jobs come from.
    pub source: Source,
    /// Which part of the log.
    pub slice: Slice,
    /// What jobs of a log are taken to be.
    pub programs: Programs,
    /// How records become jobs.
    pub prepare: PrepareOptions,
    /// Where the users of a log are that does not say; `None` where the workload says it.
    pub deal: Option<Deal>,
    /// How many times faster jobs come than in the log: submit times are divided by it.
    pub load_factor: f64,
    /// Submit times are scaled so that the work offered is this share of the capacity.
    pub load: Option<f64>,
    /// Which jobs the steady metrics are of.
    pub steady: Cut,
    /// Every so many-th decision of brokers is held against the true state; none if 0.
    pub decisions: u64,
    /// How jobs find a site.
    pub strategy: StrategySpec,
    /// The scheduler of local queues.
    pub local: LocalScheduler,
    /// Commands of the user that decide.
    pub external: external::Settings,
    /// When local schedulers decide.
    pub pass: Pass,
    /// How long those who plan believe that jobs run; what users say, or what [`PrepareOptions::estimate`] makes of it, if nobody predicts.
    pub forecast: Option<Forecast>,
    /// Where jobs enter the grid.
    pub submit: Submit,
    /// How long it takes a job to get there.
    pub submit_delay: SubmitDelay,
    /// What links do to messages, in trace time.
    pub network: Model,
    /// Switches and limits of the protocol.
    pub options: Options,
    /// What happens to sites, in the order of time.
    pub faults: Vec<Fault>,
    /// How real processes run.
    pub run: RunOptions,
    /// What runs the jobs of real processes.
    pub execution: node::executor::Settings,
    /// Which results are written.
    pub outputs: Outputs,
    /// All of this as a file.
    pub file: Resolved,
}

/// Whom users submit their jobs to, where there is a broker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// To the broker.
    #[default]
    Grid,
    /// To the queue of their own site, past the broker.
    Local,
}

impl FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Role, String> {
        match text {
            "grid" => Ok(Role::Grid),
            "local" => Ok(Role::Local),
            _ => Err(unknown("role", text, "grid or local")),
        }
    }
}

/// How time passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Clock {
    /// From event to event, without waiting.
    Virtual,
    /// By the wall clock, times this factor.
    Scaled(f64),
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Clock::Virtual => f.write_str("virtual"),
            Clock::Scaled(factor) => write!(f, "scaled:{factor}"),
        }
    }
}

/// How nodes find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeDiscovery {
    /// The coordinator tells every node all addresses.
    Static,
    /// Multicast DNS on the local network.
    Mdns,
}

/// Where a node's key comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// From the seed and the site: the same in every run.
    Derived,
    /// From a file that is made once and kept.
    Kept,
}

/// How real processes run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunOptions {
    /// If given: how time passes.
    pub clock: Option<Clock>,
    /// How nodes find each other.
    pub discovery: NodeDiscovery,
    /// Where keys come from.
    pub identity: Identity,
    /// Wall time within which all nodes must be connected.
    pub connect_timeout: Duration,
    /// Wall time without any progress after which a run is given up.
    pub stall_timeout: Duration,
    /// How much the network may add to configured delays, in percent.
    pub calibration_tolerance: f64,
    /// How late messages and timers of a run may be in the mean, in percent of the mean configured delay.
    pub delay_margin: f64,
    /// Simulations that a run is compared with; none if 0.
    pub ensemble: usize,
    /// Wall time within which they must be done.
    pub ensemble_patience: Duration,
    /// First port of the nodes' peer addresses, 0 for any free ones.
    pub port: u16,
    /// What the journals of the nodes survive; none: they keep none.
    pub journal: Option<Durability>,
    /// What becomes of jobs that executed when their node crashed.
    pub interrupted: protocol::Interrupted,
    /// Whether a node with a journal that ends is started again.
    pub restart_nodes: bool,
    /// Wall time for which nodes with journals work on without a coordinator, in whole seconds; zero: they end with it.
    pub orphan_patience: Duration,
}

/// Which results are written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// The directory that results go to.
    pub dir: PathBuf,
    /// Whether the user says where; else each driver has a default of its own.
    pub named: bool,
    /// Whether results there give way, whosever they are.
    pub replace: bool,
    /// `events.jsonl.zst`.
    pub events: bool,
    /// `report.html`.
    pub page: bool,
    /// `schedule.swf`.
    pub schedule: bool,
    /// `site<i>/jobs.csv`.
    pub per_site: bool,
    /// Compare with the ideal run.
    pub ideal: bool,
}

fn parse<T: FromStr>(place: &'static str, text: &Option<String>, default: T) -> Result<T, ExperimentError>
where
    T::Err: fmt::Display,
{
    match text {
        Some(text) => text.parse().map_err(|error: T::Err| wrong(place)(error.to_string())),
        None => Ok(default),
    }
}

fn duration(place: &'static str, text: &str) -> Result<Duration, ExperimentError> {
    links::quantity::time(text).map_err(wrong(place))
}

/// A span of trace time.
fn span(place: &'static str, text: &str) -> Result<Span, ExperimentError> {
    let micros = i64::try_from(duration(place, text)?.as_micros());
    micros.map(Span::from_micros).map_err(|_| wrong(place)(format!("{text:?} is longer than any trace")))
}

/// A time of a log: with a unit as everywhere, or in the seconds that logs have.
///
/// # Errors
/// In words, with what to write.
pub fn time_of_log(text: &str) -> Result<Span, String> {
    if let Ok(seconds) = text.parse::<i32>() {
        return Ok(Span::from_secs(i64::from(seconds)));
    }
    if text.starts_with('-') {
        return Err(format!("{text:?} is below zero, and no time is; write 36h, 90min, or seconds"));
    }
    let time = humantime::parse_duration(text).ok().and_then(|time| i64::try_from(time.as_micros()).ok());
    time.map(Span::from_micros).ok_or_else(|| format!("{text:?} is not a time; write 36h, 90min, or seconds"))
}

fn optional_time(place: &'static str, text: &Option<String>) -> Result<Option<Span>, ExperimentError> {
    text.as_deref().map(|text| time_of_log(text).map_err(wrong(place))).transpose()
}

fn optional_span(place: &'static str, text: &Option<String>) -> Result<Option<Span>, ExperimentError> {
    text.as_deref().map(|text| span(place, text)).transpose()
}

impl Experiment {
    /// Checks what was written and says what it means.
    ///
    /// # Errors
    /// The first value that means nothing or contradicts another.
    pub fn resolve(written: &Written) -> Result<Experiment, ExperimentError> {
        let (mut strategy, local, external) = commands::resolve(written)?;
        let grid = Arc::new(grid(written, &strategy)?);
        if strategy.strategy.broker().is_some_and(|rules| rules.rule == BrokerRule::Mcisne) {
            brokers::check_weights(written, &grid)?;
        }
        let network = network(written, &grid)?;
        let run = run_options(written)?;
        let faults = faults::resolve(written, &grid, &strategy)?;
        let mut options = protocol_options(written, &strategy, &network, &faults)?;
        // Who knows as many as there are knows all.
        options.view = options.view.filter(|&view| (view as usize) < grid.len() - 1);
        faults::check(written, &faults, &options, &run)?;
        let name = written.name.clone().unwrap_or_else(|| {
            let workload = &written.workload;
            name::of_workload(workload.trace.as_deref().or(workload.bag.as_deref()))
        });
        name_of_a_file(&name).map_err(|reason| wrong("name")(format!("{name:?} {reason}")))?;
        let source = source::resolve(written, &grid)?;
        if written.workload.bag_queue_wait.unwrap_or(true) {
            source.ask_of(&mut strategy.strategy);
        }
        let outputs = &written.outputs;
        let mut experiment = Experiment {
            seed: written.seed.unwrap_or(SEED),
            source,
            slice: slice(written)?,
            programs: generated::programs(written, &grid)?,
            prepare: prepare(written)?,
            deal: deal(written)?,
            load_factor: load_factor(written)?,
            load: load(written)?,
            steady: steady(written)?,
            decisions: written.measure.decisions.unwrap_or(1),
            strategy,
            local,
            external,
            pass: pass(written, &strategy, local)?,
            forecast: forecasts::of(written, &strategy, local)?,
            submit: parse("--submit (strategy.submit)", &written.strategy.submit, SUBMIT)?,
            submit_delay: submit_delay(written, &strategy)?,
            network,
            options,
            faults,
            run,
            execution: execution::resolve(written)?,
            outputs: Outputs {
                dir: outputs.dir.clone().unwrap_or_else(|| PathBuf::from("out").join(&name)),
                named: outputs.dir.is_some(),
                replace: false,
                events: outputs.events.unwrap_or(true),
                page: outputs.page.unwrap_or(true),
                schedule: outputs.schedule.unwrap_or(true),
                per_site: outputs.per_site.unwrap_or(false),
                ideal: outputs.ideal.unwrap_or(true),
            },
            grid,
            name,
            file: Resolved::default(),
        };
        clusters::check(&experiment)?;
        execution::check(&experiment)?;
        coallocation::check(&experiment)?;
        experiment.file = Resolved::of(written, &experiment);
        Ok(experiment)
    }

    /// A digest of everything that it says but where its results go, in hexadecimal: what was written is no part of it.
    pub fn digest(&self) -> String {
        let said = Experiment { outputs: Outputs::default(), ..self.clone() };
        let mut said = format!("{said:?}");
        if self.execution.is_timer() {
            // What nobody says tells no two experiments apart, and those of before it could be said are the same.
            said = said.replace(&format!(" execution: {:?},", self.execution), "");
        }
        hex(&Sha256::digest(said))
    }

    /// The keys that decide what numbers are of, with their values, whether somebody wrote them or not.
    pub fn switches(&self) -> BTreeMap<String, String> {
        let mut switches = BTreeMap::new();
        let mut put = |key: &str, value: String| switches.insert(key.to_string(), value);
        let of_site = |users: &str| format!("{users} (no key says it)");
        put("strategy.name", self.strategy.to_string());
        let nature = self.strategy.strategy.nature();
        if nature.queues {
            put("strategy.local", self.local.name().to_string());
            // Where the order is the usual one nobody asked for it, unless predictions were to make something of it.
            let order = forecasts::order_of(self.local)
                .filter(|_| self.local != LocalScheduler::Easy || self.forecast.is_some());
            order.map(|order| put("strategy.backfill", order.to_string()));
        }
        if nature.per_event && (self.pass != Pass::default() || self.forecast.is_some()) {
            put("strategy.pass", self.pass.name().to_string());
        }
        if let Some(view) = self.options.view {
            put("protocol.view", view.to_string());
        }
        put("strategy.submit", self.submit.name().to_string());
        put("strategy.submit_delay", self.submit_delay.to_string());
        match (&self.source, self.deal) {
            (Source::Trace(_) | Source::Generated(_), Some(deal)) => put("workload.deal", deal.to_string()),
            (Source::Trace(_) | Source::Generated(_), None) => {
                put("workload.origin", self.prepare.origin.to_string())
            }
            (Source::Mix(_), _) => put("workload.origin", of_site("the site of each log")),
            (Source::Bag(_) | Source::BagBeside(..), _) => put("workload.origin", of_site("the broker")),
        };
        if let Source::Generated(generated) = &self.source {
            put("workload.generate", generated.to_string());
        }
        if self.programs != Programs::default() {
            put("workload.programs", self.programs.name().to_string());
        }
        self.file.nodes().iter().for_each(|(key, value)| drop(put(key, value.clone())));
        put("workload.size", self.prepare.size.to_string());
        put("workload.estimate", self.estimate());
        if let Some(forecast) = self.forecast {
            put("workload.correction", forecast.correction.to_string());
        }
        put("workload.overrun", self.prepare.overrun.to_string());
        put("workload.missing_estimate", self.prepare.missing_estimate.to_string());
        put("workload.filters", self.prepare.filters.to_string());
        let too_wide = if self.prepare.too_wide == TooWide::Drop { "drop" } else { "refuse" };
        put("workload.too_wide", too_wide.to_string());
        match self.load {
            Some(load) => put("workload.load", load.to_string()),
            None => put("workload.load_factor", self.load_factor.to_string()),
        };
        let slice = &self.slice;
        if let Some(week) = slice.week {
            put("workload.week", week.to_string());
            put("workload.weeks", slice.weeks().to_string());
            put("workload.week_from", slice.week_from.name().to_string());
        }
        if let Some(count) = slice.count {
            put("workload.count", count.to_string());
        }
        switches
    }

    /// What keeps sites from knowing at once what they need to, in virtual time.
    pub fn messages(&self) -> Messages {
        if !self.has_messages() {
            return Messages::FREE;
        }
        let (network, options) = (&self.network, &self.options);
        let lossy = !network.is_lossless();
        // What is neither free nor lossy takes time: on its way, or with its payload.
        let slow = !network.is_free() && (!lossy || network.largest() > Span::ZERO);
        Messages::FREE
            .hindered_if(slow, Hindrance::Delay)
            .hindered_if(lossy, Hindrance::Loss)
            .hindered_if(options.discovery != Discovery::Standing, Hindrance::Polling)
            .hindered_if(options.margin.is_some(), Hindrance::Margin)
            .hindered_if(!brokers::know_at_once(&self.strategy, &options.broker), Hindrance::Reports)
            .hindered_if(options.view.is_some(), Hindrance::Views)
    }

    /// What schedulers are told about run times, as users write it.
    pub fn estimate(&self) -> String {
        self.forecast.map_or(self.prepare.estimate.to_string(), |forecast| forecast.predictor.to_string())
    }

    /// The links in words, for reports.
    pub fn network(&self) -> String {
        if !self.has_messages() {
            return "no messages".to_string();
        }
        self.network.describe()
    }

    /// What all members of its grid are told.
    pub fn terms(&self) -> Terms {
        Terms {
            grid: self.grid.clone(),
            strategy: self.strategy.strategy,
            local: self.local,
            pass: self.pass,
            forecast: self.forecast,
            options: self.options,
            views: None,
            seed: self.seed,
            external: self.external.external(),
        }
    }

    fn has_messages(&self) -> bool {
        !self.strategy.ideal && self.strategy.strategy.nature().talks
    }
}

fn grid(written: &Written, strategy: &StrategySpec) -> Result<Grid, ExperimentError> {
    let wrong = wrong("--sites ([grid])");
    let count = |sites: Option<usize>| sites.unwrap_or(0);
    let sites =
        count(written.grid.sizes.as_ref().map(Vec::len)) + count(written.grid.sites.as_ref().map(Vec::len));
    let knows_others = !strategy.ideal && strategy.strategy.nature().talks;
    let known = if knows_others { view::of(&written.protocol, strategy)? } else { Some(0) };
    crate::limits::check_sites(sites, known).map_err(&wrong)?;
    let grid = match (&written.grid.sizes, &written.grid.sites) {
        (Some(_), Some(_)) => return Err(wrong("both grid.sizes and grid.sites are given; keep one".into())),
        (None, None) => {
            return Err(wrong(
                "there are no sites; write --sites 2,8 or a [grid] with sizes = [2, 8]".into(),
            ));
        }
        (Some(sizes), None) => Grid::of_sizes(sizes),
        (None, Some(sites)) => {
            let processors: Result<Vec<u32>, ExperimentError> =
                sites.iter().enumerate().map(|(index, site)| clusters::processors(site, index)).collect();
            Grid::new(sites.iter().map(|site| site.name.clone()).zip(processors?))
        }
    };
    let grid = grid.map_err(|error| wrong(error.to_string()))?;
    // Brokers follow the sites, and cost nothing.
    let prices = written.grid.sites.iter().flatten().map(|site| site.price.unwrap_or(0).into());
    let grid = brokers::join(written, strategy, grid)?.with_prices(prices);
    let grid = clusters::join(&written.grid, grid, written.seed.unwrap_or(SEED))?;
    for site in grid.sites() {
        name_of_a_file(&site.name).map_err(|reason| wrong(format!("site {:?} {reason}", site.name)))?;
    }
    Ok(coallocation::join(grid, strategy))
}

fn slice(written: &Written) -> Result<Slice, ExperimentError> {
    let workload = &written.workload;
    let weekdays = match &workload.days {
        Some(days) => {
            Some(days.parse().map_err(|error| wrong("--days (workload.days)")(format!("{error}")))?)
        }
        None => None,
    };
    let zone = match &workload.zone {
        Some(zone) => Some(zone.parse().map_err(|error| wrong("workload.zone")(format!("{error}")))?),
        None => None,
    };
    Ok(Slice {
        from: optional_time("--from (workload.from)", &workload.from)?,
        until: optional_time("--until (workload.until)", &workload.until)?,
        week: workload.week.or(workload.weeks.map(|_| 1)),
        week_from: parse("workload.week_from", &workload.week_from, WeekFrom::default())?,
        weeks: weeks(written)?,
        weekdays,
        zone,
        count: workload.count,
        keep_times: workload.keep_times.unwrap_or(false),
    })
}

fn prepare(written: &Written) -> Result<PrepareOptions, ExperimentError> {
    let workload = &written.workload;
    let defaults = PrepareOptions::default();
    Ok(PrepareOptions {
        size: parse("--size (workload.size)", &workload.size, defaults.size)?,
        estimate: forecasts::prepared(written)?,
        missing_estimate: parse(
            "--missing-estimate (workload.missing_estimate)",
            &workload.missing_estimate,
            defaults.missing_estimate,
        )?,
        overrun: parse("--overrun (workload.overrun)", &workload.overrun, defaults.overrun)?,
        filters: parse("workload.filters", &workload.filters, defaults.filters)?,
        origin: parse("--origin (workload.origin)", &workload.origin, defaults.origin)?,
        // An experiment is of all its jobs, if it does not say otherwise.
        too_wide: parse("--too-wide (workload.too_wide)", &workload.too_wide, TooWide::Refuse)?,
        payload: workload.payload.unwrap_or(defaults.payload),
    })
}

/// One log is dealt to the sites unless it says itself where its users are; a mix has a site for each log, and tasks of a bag
/// are submitted to the broker.
fn deal(written: &Written) -> Result<Option<Deal>, ExperimentError> {
    let place = "--deal (workload.deal)";
    let workload = &written.workload;
    let is_one = workload.trace.is_some() || workload.generate.is_some();
    match (&workload.deal, is_one, &workload.origin) {
        (Some(_), false, _) => {
            Err(wrong(place)("only the jobs of one log are dealt to sites; leave it out".to_string()))
        }
        (Some(_), true, Some(origin)) => {
            let reason =
                format!("workload.origin = {origin:?} says where users are, too; leave out one of them");
            Err(wrong(place)(reason))
        }
        (_, false, _) | (None, true, Some(_)) => Ok(None),
        (deal, true, None) => parse(place, deal, Deal::default()).map(Some),
    }
}

fn pass(written: &Written, strategy: &StrategySpec, local: LocalScheduler) -> Result<Pass, ExperimentError> {
    let place = "--pass (strategy.pass)";
    match parse(place, &written.strategy.pass, Pass::default())? {
        Pass::PerEvent if strategy.strategy.nature().brokers => {
            Err(wrong(place)("sites under brokers decide once per instant; write batch".to_string()))
        }
        Pass::PerEvent if local == LocalScheduler::External => {
            Err(wrong(place)("a command decides once per instant; write batch".to_string()))
        }
        pass => Ok(pass),
    }
}

fn submit_delay(written: &Written, strategy: &StrategySpec) -> Result<SubmitDelay, ExperimentError> {
    let place = "--submit-delay (strategy.submit_delay)";
    match parse(place, &written.strategy.submit_delay, SubmitDelay::default())? {
        SubmitDelay::Link if strategy.ideal => {
            Err(wrong(place)(format!("{strategy} has no links; write none, or leave out ideal/")))
        }
        delay => Ok(delay),
    }
}

/// Beyond these factors all jobs come at once, or never.
const LOAD_FACTORS: std::ops::RangeInclusive<f64> = 1e-3..=1e3;

fn load_factor(written: &Written) -> Result<f64, ExperimentError> {
    match written.workload.load_factor.unwrap_or(1.0) {
        factor if LOAD_FACTORS.contains(&factor) => Ok(factor),
        factor => Err(wrong("workload.load_factor")(format!("{factor} is not from 0.001 to 1000"))),
    }
}

/// Weeks of a part of a log: a year of them.
const WEEKS: std::ops::RangeInclusive<u32> = 1..=53;

fn weeks(written: &Written) -> Result<Option<u32>, ExperimentError> {
    match written.workload.weeks {
        Some(count) if !WEEKS.contains(&count) => {
            Err(wrong("workload.weeks")(format!("{count} is not from 1 to 53")))
        }
        weeks => Ok(weeks),
    }
}

/// Offered loads, as shares of the capacity.
const LOADS: std::ops::RangeInclusive<f64> = 0.01..=10.0;

fn load(written: &Written) -> Result<Option<f64>, ExperimentError> {
    match written.workload.load {
        Some(_) if written.workload.load_factor.is_some_and(|factor| factor != 1.0) => {
            Err(wrong("workload.load")("workload.load_factor is set, too; leave out one of them".to_string()))
        }
        Some(load) if !LOADS.contains(&load) => {
            Err(wrong("workload.load")(format!("{load} is not from 0.01 to 10, shares of the capacity")))
        }
        load => Ok(load),
    }
}

fn steady(written: &Written) -> Result<Cut, ExperimentError> {
    let defaults = Cut::default();
    let share = |key: &'static str, value: Option<f64>, default: f64| match value.unwrap_or(default) {
        share if (0.0..1.0).contains(&share) => Ok(share),
        share => Err(wrong(key)(format!("{share} is not a share, from 0 to below 1"))),
    };
    let warm_up = share("measure.warm_up", written.measure.warm_up, defaults.warm_up)?;
    let cool_down = share("measure.cool_down", written.measure.cool_down, defaults.cool_down)?;
    if warm_up + cool_down >= 1.0 {
        let reason = format!("{warm_up} and {cool_down} leave nothing between them");
        return Err(wrong("measure.warm_up and measure.cool_down")(reason));
    }
    Ok(Cut { warm_up, cool_down })
}

fn network(written: &Written, grid: &Grid) -> Result<Model, ExperimentError> {
    let placed = grid.sites().iter().filter(|site| site.beside.is_none());
    let names: Vec<&str> = placed.map(|site| site.name.as_str()).collect();
    let read = |path: &Path| {
        crate::limits::read_text(path, crate::limits::EXPERIMENT).map_err(|error| error.to_string())
    };
    let model = written.network.resolve(&names, &read).map_err(|ModelError { place, reason }| {
        let place = match place.as_str() {
            "delay" => Cow::Borrowed("--delay (network.delay)"),
            "model" => Cow::Borrowed("--network (network.model)"),
            // In a file of its own.
            place if place.contains(": ") || written.network.model.as_deref() == Some(place) => {
                Cow::Owned(place.to_string())
            }
            key => Cow::Owned(format!("network.{key}")),
        };
        ExperimentError { place, reason, lacks_a_file: false }
    })?;
    let beside = grid.sites().iter().filter_map(|site| Some((site.id, site.beside?))).collect();
    Ok(Model { beside, ..model })
}

/// How many times the longest way there and back a site waits before it repeats a message.
const RETRY_ROUND_TRIPS: i64 = 2;
/// Never repeat sooner than this, in trace time.
const RETRY_MIN: Span = Span::from_secs(1);

/// How often boards of the global queue are repeated where messages may be lost: rarely enough that it costs little,
/// and that an answer comes long before.
pub fn refresh_default(longest: Span) -> Span {
    longest.saturating_mul(10).max(Span::from_secs(30))
}

fn protocol_options(
    written: &Written,
    strategy: &StrategySpec,
    network: &Model,
    faults: &[Fault],
) -> Result<Options, ExperimentError> {
    let given = &written.protocol;
    let defaults = Options::default();
    let longest = network.largest();
    // What is under way to a site that is away is lost.
    let lossless = network.is_lossless() && faults.is_empty();
    let retry = match optional_span("protocol.retry", &given.retry)? {
        Some(retry) if retry < longest.saturating_mul(2) => {
            let reason = format!("{retry} s is less than twice the largest delay of {longest} s");
            return Err(wrong("protocol.retry")(reason));
        }
        Some(retry) => Some(retry),
        None if lossless => None,
        None => Some(longest.saturating_mul(2 * RETRY_ROUND_TRIPS).max(RETRY_MIN)),
    };
    let refresh = match optional_span("protocol.refresh", &given.refresh)? {
        Some(refresh) if refresh < longest.saturating_mul(2) || refresh <= Span::ZERO => {
            let reason =
                format!("{refresh} s is not positive or less than twice the largest delay of {longest} s");
            return Err(wrong("protocol.refresh")(reason));
        }
        Some(refresh) => Some(refresh),
        None if lossless => None,
        None => Some(refresh_default(longest)),
    };
    let discovery = match given.discovery.as_deref() {
        None | Some("standing") => Discovery::Standing,
        Some("polling") => Discovery::Polling {
            period: optional_span("protocol.poll", &given.poll)?.unwrap_or(Span::from_secs(60)),
            period_max: optional_span("protocol.poll_max", &given.poll_max)?.unwrap_or(Span::from_secs(3600)),
        },
        Some(other) => {
            let reason = unknown("rule", other, "standing or polling");
            return Err(wrong("--discovery (protocol.discovery)")(reason));
        }
    };
    if let Discovery::Polling { period, period_max } = discovery {
        if period <= Span::ZERO || period_max < period {
            return Err(wrong("protocol.poll")("sleeps must be positive and poll_max at least poll".into()));
        }
        if strategy.strategy.steal_from_homes().is_some_and(|steal| steal.order.stolen_first()) {
            let reason = "orders that steal before own work need notices; use discovery = standing".into();
            return Err(wrong("protocol.discovery")(reason));
        }
    }
    let batch = given.batch.unwrap_or(defaults.batch);
    let window = given.window.unwrap_or(defaults.steal.window);
    if batch == 0 || batch > TRANSFERS_MAX {
        return Err(wrong("protocol.batch")(format!("{batch} is not from 1 to {TRANSFERS_MAX}")));
    }
    if window == 0 {
        return Err(wrong("protocol.window")("a thief needs at least 1 request".into()));
    }
    let tries = given.tries.unwrap_or(defaults.balance.tries);
    if tries == 0 {
        return Err(wrong("protocol.tries")("a site turns to at least 1 other before it waits".into()));
    }
    let gossip = optional_span("protocol.gossip", &given.gossip)?.unwrap_or(defaults.balance.gossip);
    if gossip <= Span::ZERO {
        return Err(wrong("protocol.gossip")("the time between gossip must be positive".into()));
    }
    let presence = faults::presence(given, longest)?;
    let view = view::of(given, strategy)?;
    if view.is_some() && (presence.heartbeat.is_some() || !faults.is_empty()) {
        return Err(view::replaces_nobody());
    }
    let margin = optional_span("--margin (protocol.margin)", &given.margin)?;
    if margin.is_some() && (strategy.ideal || !strategy.strategy.nature().asks) {
        let reason = format!("under {strategy} no site asks another for jobs; leave the margin out");
        return Err(wrong("--margin (protocol.margin)")(reason));
    }
    let prefetch = optional_span("protocol.prefetch", &given.prefetch)?;
    if prefetch.is_some() && strategy.strategy.steal().is_some_and(|steal| steal.select == Selection::Easy) {
        let reason = "select=easy is told itself which processors come free; leave prefetch out".into();
        return Err(wrong("protocol.prefetch")(reason));
    }
    if prefetch.is_some() && discovery != Discovery::Standing {
        let reason =
            "a site that polls offers what is idle; use discovery = standing, or leave prefetch out".into();
        return Err(wrong("protocol.prefetch")(reason));
    }
    Ok(Options {
        // Set by who starts the nodes.
        journal: false,
        interrupted: protocol::Interrupted::Requeue,
        heartbeat: presence.heartbeat,
        suspect_after: presence.suspect_after,
        lease: presence.lease,
        discovery,
        steal: StealOptions { window, eager: given.eager.unwrap_or(defaults.steal.eager), prefetch },
        pool: PoolOptions { refresh },
        balance: BalanceOptions {
            tries,
            gossip,
            gossip_fanout: given.gossip_fanout.unwrap_or(defaults.balance.gossip_fanout),
        },
        broker: brokers::options(given, strategy)?,
        batch,
        bounces_max: given.bounces_max.unwrap_or(defaults.bounces_max),
        retry,
        recall: optional_span("protocol.recall", &given.recall)?,
        unanswered_max: given.unanswered_max.unwrap_or(defaults.unanswered_max).max(1),
        margin,
        message_events: written.outputs.message_events.unwrap_or(true),
        view,
    })
}

fn run_options(written: &Written) -> Result<RunOptions, ExperimentError> {
    let run = &written.run;
    let clock = match run.clock.as_deref() {
        None => None,
        Some("virtual") => Some(Clock::Virtual),
        Some(text) => {
            let factor = text.strip_prefix("scaled:").and_then(|factor| factor.parse::<f64>().ok());
            match factor {
                Some(factor) if factor > 0.0 && factor <= FACTOR_MAX => Some(Clock::Scaled(factor)),
                _ => {
                    let hint = spelling::hint(text, ["virtual"]);
                    let reason =
                        format!("{text:?}{hint} is not a clock; write virtual, or scaled:K with K up to 1e6");
                    return Err(wrong("--clock (run.clock)")(reason));
                }
            }
        }
    };
    let wall = |place, text: &Option<String>, default| match text {
        Some(text) => duration(place, text),
        None => Ok(default),
    };
    Ok(RunOptions {
        clock,
        discovery: match run.discovery.as_deref() {
            None | Some("static") => NodeDiscovery::Static,
            Some("mdns") => NodeDiscovery::Mdns,
            Some(other) => {
                return Err(wrong("run.discovery")(unknown("rule", other, "static or mdns")));
            }
        },
        identity: match run.identity.as_deref() {
            None | Some("derived") => Identity::Derived,
            Some("kept") => Identity::Kept,
            Some(other) => {
                return Err(wrong("run.identity")(unknown("rule", other, "derived or kept")));
            }
        },
        connect_timeout: wall("run.connect_timeout", &run.connect_timeout, Duration::from_secs(30))?,
        stall_timeout: wall("run.stall_timeout", &run.stall_timeout, Duration::from_secs(60))?,
        calibration_tolerance: match run.calibration_tolerance.unwrap_or(CALIBRATION_TOLERANCE) {
            percent if percent >= 0.0 => percent,
            percent => {
                let reason = format!("{percent} is no share; write percent from 0 on, as in 10");
                return Err(wrong("--calibration-tolerance (run.calibration_tolerance)")(reason));
            }
        },
        delay_margin: delay_margin(run.delay_margin.unwrap_or(DELAY_MARGIN))?,
        ensemble: ensemble(run.ensemble.unwrap_or(ENSEMBLE))?,
        ensemble_patience: wall("run.ensemble_patience", &run.ensemble_patience, ENSEMBLE_PATIENCE)?,
        port: run.port.unwrap_or(0),
        journal: match written.node.journal.as_deref() {
            None | Some("off") => None,
            Some("process") => Some(Durability::Process),
            Some("disk") => Some(Durability::Disk),
            Some(other) => {
                let reason = unknown("durability", other, "off, process or disk");
                return Err(wrong("node.journal")(reason));
            }
        },
        interrupted: match written.node.interrupted.as_deref() {
            None | Some("requeue") => protocol::Interrupted::Requeue,
            Some("kill") => protocol::Interrupted::Kill,
            Some(other) => {
                let reason = unknown("rule", other, "requeue or kill");
                return Err(wrong("node.interrupted")(reason));
            }
        },
        restart_nodes: written.node.restart.unwrap_or(true),
        orphan_patience: orphan_patience(&written.node.orphan_patience)?,
    })
}

/// Checks `run.delay_margin`.
///
/// # Errors
/// If it is no share that means something.
pub fn delay_margin(percent: f64) -> Result<f64, ExperimentError> {
    if percent > 0.0 && percent <= 100.0 {
        return Ok(percent);
    }
    let reason = format!("{percent} is not from above 0 to 100; write percent, as in 10");
    Err(wrong("--delay-margin (run.delay_margin)")(reason))
}

/// Checks `run.ensemble`.
///
/// # Errors
/// If so many simulations say nothing, or are too many.
pub fn ensemble(count: usize) -> Result<usize, ExperimentError> {
    if count == 0 || (SIMULATIONS_MIN..=SIMULATIONS_MAX).contains(&count) {
        return Ok(count);
    }
    let reason = format!(
        "{count} is neither 0 nor from {SIMULATIONS_MIN} to {SIMULATIONS_MAX}; write how many simulations a run is \
         compared with, or 0 for none"
    );
    Err(wrong("--ensemble (run.ensemble)")(reason))
}

fn orphan_patience(text: &Option<String>) -> Result<Duration, ExperimentError> {
    let place = "node.orphan_patience";
    let Some(text) = text else { return Ok(ORPHAN_PATIENCE) };
    let given = duration(place, text)?;
    if given.subsec_nanos() != 0 || given.as_secs() > u32::MAX.into() {
        let reason = format!("{text:?} is not whole seconds, or more than a century; write 0s, 30s or 10m");
        return Err(wrong(place)(reason));
    }
    Ok(given)
}
