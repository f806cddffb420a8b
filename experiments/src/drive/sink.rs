//! Where events of a run go: into what is written while it goes on, and into what is measured of it.

use analysis::{
    Attribution, DecisionCost, Decisions, Deficiency, Lessons, Outcome, OutcomeBuilder, Steals, WaitCauses,
    Waits,
};
use outputs::{EventLog, EventLogError, StealsCsv};
use scheduler::event::FallbackCause;
use scheduler::{Event, EventKind, Grid, SiteId, Time, TimedJob};

use super::own::{self, Claim, Driver};
use super::{builder, decisions};
use crate::experiment::Experiment;
use crate::experiment::jobs::Jobs;
use crate::terminal::command_line;

/// Takes the events of a run.
pub struct Sink {
    pub(super) logged: Logged,
    pub(super) measures: Measures,
}

/// The result directory while the run goes on, and the log of events if there is one.
pub(super) struct Logged {
    log: Option<EventLog>,
    failed: Option<EventLogError>,
    /// Held until the results are written.
    claim: Claim,
    /// Whether the claim says that there is something to lose.
    begun: bool,
    /// Why the directory does not say whose its results are, if it does not.
    unclaimed: Option<std::io::Error>,
}

/// The measured outcome, and where the delay went.
pub(super) struct Measures {
    builder: OutcomeBuilder,
    /// Neither this nor `waits` of what goes by the order of all sites where sites know some only: who is next is another for each.
    deficiency: Option<Deficiency>,
    decisions: Decisions,
    lessons: Lessons,
    waits: Option<Waits>,
    steals: Steals,
    rows: StealsCsv,
    /// Whether jobs came that the workload does not have.
    injected: bool,
    /// Whose external strategy failed, when and how.
    fell_back: Vec<(Time, SiteId, FallbackCause)>,
}

impl Sink {
    /// A sink for a run of these jobs, with a log in the result directory if the experiment wants one.
    ///
    /// # Errors
    /// If the directory or the log cannot be made.
    pub fn new(experiment: &Experiment, jobs: &Jobs, driver: Driver) -> anyhow::Result<Sink> {
        Sink::over(own::begin(experiment, driver, &command_line())?, experiment, jobs)
    }

    /// The same into a directory that is claimed and holds no results.
    ///
    /// # Errors
    /// If the log cannot be made.
    pub fn over(claim: Claim, experiment: &Experiment, jobs: &Jobs) -> anyhow::Result<Sink> {
        let dir = &experiment.outputs.dir;
        let log = match experiment.outputs.events {
            true => Some(EventLog::create(&dir.join(outputs::EVENTS))?),
            false => None,
        };
        let arriving = jobs.arriving(experiment);
        let (grid, strategy) = (&experiment.grid, &experiment.strategy.strategy);
        let by_all = experiment.options.view.is_none() || strategy.steal().is_none();
        let measures = Measures {
            builder: builder(experiment, jobs),
            deficiency: by_all.then(|| Deficiency::new(grid, strategy, &arriving)),
            decisions: decisions(experiment, &arriving),
            lessons: Lessons::default(),
            waits: by_all.then(|| Waits::new(grid, strategy, &arriving)),
            steals: Steals::default(),
            rows: StealsCsv::new(&dir.join(outputs::STEALS)),
            injected: false,
            fell_back: Vec::new(),
        };
        Ok(Sink { logged: Logged { log, failed: None, claim, begun: false, unclaimed: None }, measures })
    }

    /// Says that jobs are commands: they take as long as they did here.
    pub fn measure_run_times(&mut self) {
        self.measures.builder.measure_run_times();
    }

    /// The clocks start: results of a former run of this are given up.
    pub fn begin(&mut self) {
        self.logged.begin();
    }

    /// Takes one event.
    pub fn take(&mut self, event: &Event) {
        self.logged.take(event);
        self.measures.take(event);
    }

    /// Takes a job that nobody knew of before the run, before any event of it.
    pub fn add(&mut self, job: &TimedJob) {
        self.measures.builder.add(job);
        self.measures.injected = true;
    }

    /// What has come of the jobs so far.
    pub fn so_far(&self) -> &Outcome {
        self.measures.builder.outcome()
    }

    /// Whether an external strategy failed.
    pub(super) fn fell_back(&self) -> bool {
        !self.measures.fell_back.is_empty()
    }

    pub(super) fn finish(self, grid: &Grid) -> Measured {
        let Sink { logged, measures: mut of } = self;
        let failed = match logged.log.map(EventLog::finish) {
            Some(Err(error)) => Some(error),
            _ => logged.failed,
        };
        let rows = &mut of.rows;
        of.steals.finish(&mut |steal| rows.write(steal));
        let rows = of.rows.finish().err().map(|error| format!("steals.csv is incomplete: {error}"));
        let log = failed.map(|error| format!("the event log is incomplete: {error}"));
        let mut warnings: Vec<String> = log.into_iter().chain(rows).collect();
        let is_whole = warnings.is_empty();
        warnings.extend(of.fell_back.iter().map(|&(at, site, cause)| failed_strategy(grid, at, site, cause)));
        if let Some(error) = logged.unclaimed {
            warnings.push(format!("the result directory does not say whose results it has: {error}"));
        }
        let mut outcome = of.builder.finish();
        if of.injected {
            // In the order of a workload.
            outcome.jobs.sort_by_key(|job| (job.submit, job.id));
        }
        // Where processors were down or worked in vain, the causes of idleness are not those that it knows; nor does it
        // know jobs of orders.
        let untold = outcome.faults.disturbed() || of.injected;
        let attribution = if untold { None } else { of.deficiency.and_then(Deficiency::finish) };
        let decisions = if untold { None } else { of.decisions.finish() };
        let waits = if untold { None } else { of.waits.and_then(Waits::finish) };
        let (lessons, steals, claim) = (of.lessons.finish(), of.steals, logged.claim);
        Measured { outcome, attribution, decisions, lessons, waits, steals, warnings, is_whole, claim }
    }
}

impl Logged {
    fn begin(&mut self) {
        if !self.begun {
            self.begun = true;
            if let Err(error) = self.claim.begin() {
                self.unclaimed = Some(error);
            }
        }
    }

    pub(super) fn take(&mut self, event: &Event) {
        self.begin();
        let Some(log) = &mut self.log else { return };
        if let Err(error) = log.write(event) {
            // The run goes on: what is measured does not need the log.
            eprintln!("warning: the event log will be incomplete: {error}");
            self.failed = Some(error);
            self.log = None;
        } else if let Some(refused) = log.refused() {
            eprintln!(
                "warning: events wait in memory, as the log cannot be written: {refused}; is the disk full? They are \
                 written when there is room"
            );
        }
    }
}

impl Measures {
    pub(super) fn take(&mut self, event: &Event) {
        if let EventKind::FellBack { cause } = event.kind {
            self.fell_back.push((event.at, event.site, cause));
        }
        self.builder.observe(event);
        self.deficiency.iter_mut().for_each(|deficiency| deficiency.observe(event));
        self.decisions.observe(event);
        self.lessons.observe(event);
        self.waits.iter_mut().for_each(|waits| waits.observe(event));
        let rows = &mut self.rows;
        self.steals.observe(event, &mut |steal| rows.write(steal));
    }
}

/// That an external strategy failed, in words.
fn failed_strategy(grid: &Grid, at: Time, site: SiteId, cause: FallbackCause) -> String {
    let what = match cause {
        FallbackCause::Start => "could not be started",
        FallbackCause::Died => "ended",
        FallbackCause::Late => "took longer for a decision than it may",
        FallbackCause::Nonsense => "answered what cannot be",
        FallbackCause::Calls => "asked to be called more often than it may (external.calls)",
    };
    format!(
        "the external strategy of {} {what} at {at} s: from then on its fallback decided, and no job is lost; why is on \
         stderr, or in the log of the node",
        grid.site(site).name
    )
}

/// What a sink has measured.
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    pub(super) attribution: Option<Attribution>,
    pub(super) decisions: Option<DecisionCost>,
    pub(super) lessons: Option<Lessons>,
    pub(super) waits: Option<WaitCauses>,
    pub(super) steals: Steals,
    /// What the reader should know.
    pub(super) warnings: Vec<String>,
    /// Whether all that happened is in the files that are written while it does.
    pub(super) is_whole: bool,
    /// Held until the results are written.
    pub(super) claim: Claim,
}
