//! Everything that is known about one run: the input of all writers and reports.

use std::collections::BTreeMap;

use analysis::sharing::audit::audit;
use analysis::steady::Cut;
use analysis::theory::{self, Comparison, Messages, Setting, Verdict};
use analysis::{
    Agreement, Attribution, Bounds, DecisionCost, Federation, JobState, Lessons, Metrics, Migrations,
    Outcome, Price, Service, Steady, Steals, WaitCauses,
};
use scheduler::{LocalScheduler, SiteId, StrategySpec, Submit};
use serde::{Deserialize, Serialize};

use crate::compared::Compared;
use crate::missed::Missed;
use crate::orders::{self, Given};
use crate::provenance::Provenance;
use crate::quantity::percent;
use crate::scraped::Scraped;
use crate::table::Table;

/// Differences to the ideal that are kept by name.
const DIFFERENCES_KEPT: usize = 20;

/// What was run, in words that can be shown and repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct RunAbout {
    /// The name of the experiment, or of its file.
    pub experiment: String,
    /// The workload: file names or the name of a model.
    pub workload: String,
    /// The strategy that was run, ideal or not.
    pub strategy: StrategySpec,
    /// Where jobs were submitted.
    pub submit: Submit,
    /// Whether some users submitted past the broker.
    pub local_users: bool,
    /// The scheduler of each site's own queue, where the strategy has one.
    pub local: Option<String>,
    /// The scheduler of each site, where sites have one.
    pub scheduler: LocalScheduler,
    /// `simulate` or `run`.
    pub driver: String,
    /// `virtual` or `scaled:K`.
    pub clock: String,
    /// Delays and faults, such as `constant 20ms, loss 1%`.
    pub network: String,
    /// What messages cost. Nothing under ideal strategies.
    pub messages: Messages,
    /// The seed of all randomness.
    pub seed: u64,
    /// What the steady metrics leave out.
    pub cut: Cut,
    /// The switches, the logs and what was done to them.
    pub provenance: Provenance,
    /// A command line that repeats the run.
    pub command: String,
    /// Whether the run reached its end.
    pub status: Status,
    /// What the driver says of the run, a line each: how real delays were, how it compares with its simulation.
    pub lines: Vec<String>,
    /// How configured delays compare with what the network adds, if that was measured.
    pub calibration: Option<Table>,
    /// The run beside its simulations, if it was compared.
    pub compared: Option<Compared>,
    /// Whether what was scraped of the nodes is what their events say, if there were nodes that count.
    pub scraped: Option<Scraped>,
    /// Orders that were given during the run.
    pub orders: Vec<Given>,
    /// Faults of the experiment that never happened.
    pub missed: Vec<Missed>,
    /// What the reader should know before trusting the numbers.
    pub warnings: Vec<String>,
}

/// Whether a run reached its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "status", content = "reason")]
pub enum Status {
    /// Every job that could run has ended.
    Complete,
    /// It stopped before, for this reason. Metrics are over the jobs that ended.
    Partial(String),
    /// Every job has ended, but this machine did not keep to the delays, for this reason: the figures are those of other
    /// delays.
    NotMeasured(String),
}

impl Status {
    /// The word in files, without a reason.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Complete => "complete",
            Status::Partial(_) => "partial",
            Status::NotMeasured(_) => "not_measured",
        }
    }
}

/// The same workload under free communication.
#[derive(Clone, Debug, PartialEq)]
pub struct Ideal {
    /// Its metrics, with ratios to its own bounds.
    pub metrics: Metrics,
    /// How its jobs were served.
    pub service: Service,
    /// The run beside it, job by job: run first, ideal second.
    pub agreement: Agreement,
}

/// The same workload with every job at the site where it arrives, which nothing leaves: what exchange is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct WithoutExchange {
    /// Its metrics, with ratios to its own bounds.
    pub metrics: Metrics,
    /// How its jobs were served.
    pub service: Service,
    /// The site that most jobs arrive at, if that makes the baseline say nothing of exchange.
    pub overloaded: Option<Overloaded>,
}

/// A site at which over half of the jobs or of the work arrives, and more than its processors are a reason for: without
/// exchange all others are idle.
#[derive(Clone, Debug, PartialEq)]
pub struct Overloaded {
    /// Its name.
    pub site: String,
    /// Its part of all jobs, 0 to 1.
    pub jobs_share: f64,
    /// Its part of all work, 0 to 1.
    pub work_share: f64,
    /// Its part of all processors, 0 to 1.
    pub processors_share: f64,
    /// The same jobs without exchange if they arrive in proportion to processors.
    pub dealt: Option<Metrics>,
}

/// What arrives at a site beyond that is no longer its users'; half, as more than all others together.
const MOST: f64 = 0.5;
/// A site may have so many times its part of the processors: what a fair deal of few wide jobs can do.
const SLACK: f64 = 1.2;

impl Overloaded {
    /// What is said of it wherever the run stands.
    pub fn warning(&self) -> String {
        format!(
            "No gain from exchange is reported: {} of the jobs and {} of the work arrive at {}, which has {} of the processors, so \
             that without exchange the other sites would be idle (strategy.submit, workload.deal).",
            percent(self.jobs_share),
            percent(self.work_share),
            self.site,
            percent(self.processors_share)
        )
    }

    /// The site by this run without exchange, if there is one.
    pub fn of(local: &Outcome) -> Option<Overloaded> {
        let grid = &local.grid;
        let mut found: BTreeMap<SiteId, (f64, f64)> = BTreeMap::new();
        let (mut jobs, mut work) = (0.0, 0.0);
        for job in local.finished() {
            let own = f64::from(job.processors) * job.run_time.as_secs_f64();
            (jobs, work) = (jobs + 1.0, work + own);
            let (jobs_there, work_there) = found.entry(job.site?).or_default();
            (*jobs_there, *work_there) = (*jobs_there + 1.0, *work_there + own);
        }
        let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        found.into_iter().find_map(|(site, (jobs_there, work_there))| {
            let site = grid.site(site);
            let processors_share = share(f64::from(site.processors), grid.processors() as f64);
            let (jobs_share, work_share) = (share(jobs_there, jobs), share(work_there, work));
            let is_over = |share: f64| share > MOST && share > SLACK * processors_share;
            (is_over(jobs_share) || is_over(work_share)).then(|| Overloaded {
                site: site.name.clone(),
                jobs_share,
                work_share,
                processors_share,
                dealt: None,
            })
        })
    }
}

/// What steals cost.
#[derive(Clone, Debug, PartialEq)]
pub struct StealCost {
    /// The same as one figure each.
    pub price: Price,
    /// What they come from, for curves.
    pub steals: Steals,
}

/// A run, measured and compared.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// What was run.
    pub about: RunAbout,
    /// One row per job.
    pub outcome: Outcome,
    /// Lower bounds on the makespan.
    pub bounds: Bounds,
    /// All metrics of the run, with ratios to the bounds.
    pub metrics: Metrics,
    /// Metrics of the jobs between warm-up and cool-down.
    pub steady: Steady,
    /// Which site ran whose jobs.
    pub migrations: Migrations,
    /// What the run meant for the users and the owners of each site.
    pub federation: Federation,
    /// What steals cost, if sites exchanged jobs by messages.
    pub steals: Option<StealCost>,
    /// What old views did to the decisions of brokers, if there were any.
    pub decisions: Option<DecisionCost>,
    /// What brokers learned of sites that they do not see into, if there were any.
    pub lessons: Option<Lessons>,
    /// What is proved, and whether it held.
    pub theory: Vec<Comparison>,
    /// How jobs were served.
    pub service: Service,
    /// Why jobs waited; `None` for a run of which that is not known.
    pub waits: Option<WaitCauses>,
    /// The ideal run, if there was one.
    pub ideal: Option<Ideal>,
    /// The same jobs under `local`, if that was run.
    pub without_exchange: Option<WithoutExchange>,
    /// Where the delay went; `None` for a partial run and one without jobs.
    pub attribution: Option<Attribution>,
}

impl RunResult {
    /// Measures a run and compares it with theory, and with the ideal run of the same workload if given.
    ///
    /// A run that is called complete while jobs are left is partial, and says so.
    pub fn new(mut about: RunAbout, outcome: Outcome, ideal: Option<&Outcome>) -> RunResult {
        if outcome.contradictions.total() > 0 {
            about.warnings.push(format!(
                "{} events contradict each other ({:?}); the numbers below cannot be trusted",
                outcome.contradictions.total(),
                outcome.contradictions
            ));
        }
        // By the wall clock what is noticed late looks shared for too long.
        let wrong = if about.clock == "virtual" { audit(&outcome) } else { Vec::new() };
        if let Some(first) = wrong.first() {
            about.warnings.push(format!(
                "{} of the executions on shared nodes are not as the model says ({first}); the numbers below cannot be trusted",
                wrong.len()
            ));
        }
        if !matches!(about.status, Status::Partial(_)) && !outcome.is_complete() {
            let over = outcome.count(JobState::Rejected) + outcome.count(JobState::Killed);
            let left = outcome.jobs.len() - outcome.finished().count() - over;
            about.status = Status::Partial(format!("{left} jobs did not end"));
        }
        let bounds = Bounds::of(&outcome);
        let setting = Setting {
            strategy: about.strategy,
            local: about.scheduler,
            messages: about.messages,
            local_users: about.local_users,
        };
        RunResult {
            metrics: Metrics::of(&outcome, &bounds),
            steady: Steady::of(&outcome, about.cut),
            migrations: Migrations::of(&outcome),
            federation: Federation::of(&outcome, about.submit),
            steals: None,
            decisions: None,
            lessons: None,
            theory: theory::compare(&outcome, &bounds, setting),
            ideal: ideal.map(|ideal| Ideal {
                metrics: Metrics::of(ideal, &Bounds::of(ideal)),
                service: Service::of(ideal),
                agreement: Agreement::between(&outcome, ideal, DIFFERENCES_KEPT),
            }),
            service: Service::of(&outcome),
            waits: None,
            without_exchange: None,
            about,
            outcome,
            bounds,
            attribution: None,
        }
    }

    /// Adds where the delay went, and holds the run against the certificate that follows.
    #[must_use]
    pub fn with_attribution(mut self, attribution: Option<Attribution>) -> RunResult {
        if let Some(attribution) = &attribution {
            let makespan = self.outcome.makespan();
            self.theory.extend(attribution.comparisons(&self.outcome.grid, makespan, &self.bounds));
        } else if self.outcome.faults.disturbed() {
            self.about.lines.push(
                "where the delay went is not reported for a run in which sites were away or jobs were taken over"
                    .to_string(),
            );
        } else if self.outcome.grid.spreads() {
            let line = "where the delay went is not reported for a run in which jobs may be at several sites at once";
            self.about.lines.push(line.to_string());
        } else if orders::injected(&self.about.orders).next().is_some() {
            let line =
                "where the delay went is not reported for a run into which jobs were injected by order";
            self.about.lines.push(line.to_string());
        } else if self.is_complete() && self.outcome.finished().next().is_some() {
            self.about
                .warnings
                .push("the events do not say where the delay went: some start or end is missing".to_string());
        }
        self.attribution = attribution;
        self
    }

    /// Adds why jobs waited.
    #[must_use]
    pub fn with_waits(mut self, waits: Option<WaitCauses>) -> RunResult {
        self.waits = waits;
        self
    }

    /// Adds the same jobs without any exchange; and, if most of them arrive at one site, dealt to all sites in proportion to
    /// processors.
    #[must_use]
    pub fn with_local(mut self, local: Option<&Outcome>, dealt: Option<&Outcome>) -> RunResult {
        let metrics = |outcome: &Outcome| Metrics::of(outcome, &Bounds::of(outcome));
        self.without_exchange = local.map(|local| WithoutExchange {
            metrics: metrics(local),
            service: Service::of(local),
            overloaded: Overloaded::of(local).map(|found| Overloaded { dealt: dealt.map(metrics), ..found }),
        });
        self
    }

    /// The site that starves the others without exchange, if there is one and anything is compared with that.
    pub fn overloaded(&self) -> Option<&Overloaded> {
        self.without_exchange.as_ref()?.overloaded.as_ref()
    }

    /// Adds what old views did to the decisions of brokers.
    #[must_use]
    pub fn with_decisions(mut self, decisions: Option<DecisionCost>) -> RunResult {
        self.decisions = decisions;
        self
    }

    /// Adds what brokers learned.
    #[must_use]
    pub fn with_lessons(mut self, lessons: Option<Lessons>) -> RunResult {
        self.lessons = lessons;
        self
    }

    /// Adds what steals cost. `ideal` is the run that waits are compared with.
    pub fn with_steals(mut self, steals: Steals, ideal: Option<&Outcome>) -> RunResult {
        let price = steals.price(&self.outcome, ideal);
        // Jobs that brokers send are no steals.
        let price = price.filter(|price| self.decisions.is_none() || price.steals > 0);
        self.steals = price.map(|price| StealCost { price, steals });
        self
    }

    /// The judgment of all theory at once.
    pub fn verdict(&self) -> Verdict {
        theory::overall(&self.theory)
    }

    /// The same in the word that summaries begin with: that of the verdict, or `partial` for a run that violated nothing and
    /// did not reach its end.
    pub fn verdict_name(&self) -> &'static str {
        match self.verdict() {
            Verdict::Violated => Verdict::Violated.name(),
            _ if !self.is_complete() => self.about.status.name(),
            verdict => verdict.name(),
        }
    }

    /// Whether the run reached its end, measured or not.
    pub fn is_complete(&self) -> bool {
        !matches!(self.about.status, Status::Partial(_))
    }

    /// Why the figures are those of other delays than the experiment has, if they are.
    pub fn not_measured(&self) -> Option<&str> {
        match &self.about.status {
            Status::NotMeasured(reason) => Some(reason),
            _ => None,
        }
    }
}
