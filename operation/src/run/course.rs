//! A run from the start of its clocks to the end of its nodes: hands each event to the audit, the page and the
//! results, and judges it. How it comes there is in [`super`].

use std::collections::BTreeSet;

use analysis::Outcome;
use analysis::compare::events::is_about_a_message;
use experiments::drive::{Ended, Sink};
use experiments::experiment::jobs::Jobs;
use experiments::experiment::{Clock, Experiment};
use experiments::interrupt::Interrupt;
use node::control::api::Status as NodeStatus;
use node::executor::By;
use outputs::Status;
use outputs::compared::{self, Kept};
use outputs::orders::Given;
use scheduler::{Event, SiteId, Time, TimedJob};

use super::nodes::STOP_PATIENCE;
use super::orders::{self, Orders};
use super::outages::Outages;
use super::past::Past;
use super::plan::{self, Plan};
use super::record::Record;
use super::scraped::{Comparison, Source};
use super::watch::{Ending, Onlooker, Watch};
use super::{compare, links, reception};
use crate::audit::Audit;
use crate::fleet::{Fleet, Whereabouts};
use crate::serve::Server;
use crate::serve::live::{About, AboutSite, Live, Phase};

/// Why a run is not compared with simulations in which nothing happens to sites.
const DISTURBED: &str = "nodes ended or stood still, and in simulations they do not, or not then";

/// Why a run whose jobs are commands is not.
const COMMANDS: &str = "jobs were commands, which take the time that they take";

/// A run whose clocks are started.
pub(super) struct Course<'a> {
    pub(super) experiment: &'a Experiment,
    pub(super) plan: &'a Plan,
    pub(super) jobs: &'a Jobs,
    /// What the reader should know already.
    pub(super) warnings: Vec<String>,
    /// The same in virtual time; `None` if interrupted.
    pub(super) simulated: &'a dyn Fn() -> anyhow::Result<Option<Outcome>>,
    pub(super) interrupt: &'a Interrupt,
    /// Where it is shown.
    pub(super) server: Option<&'a Server>,
    /// What the event log is compared with.
    pub(super) source: Source,
    /// Orders that are given meanwhile.
    pub(super) orders: Orders,
    /// What happens to sites.
    pub(super) outages: Outages,
    /// What another coordinator would need.
    pub(super) record: Option<&'a mut Record>,
}

/// What is shown of a run that is about to begin.
pub(super) fn live(experiment: &Experiment, plan: &Plan, jobs: &Jobs, orders: bool) -> Live {
    let about = About {
        name: experiment.name.clone(),
        strategy: experiment.strategy.to_string(),
        network: experiment.network(),
        clock: Clock::Scaled(plan.factor).to_string(),
        factor: Some(plan.factor),
        jobs: jobs.jobs.len(),
        sites: AboutSite::all(&experiment.grid),
        users: jobs.jobs.iter().any(|job| job.spec.labels.user >= 0),
        orders,
        starts: false,
        replay: false,
        span: [0, 0],
    };
    let threshold = experiment.strategy.strategy.threshold();
    let live = Live::new(about, &experiment.grid, threshold, &jobs.arriving(experiment));
    if experiment.strategy.strategy.nature().queues { live.with_plans(experiment.local) } else { live }
}

/// Hands each event of the run to whoever needs it: the audit, the comparison, the results and the page.
struct Eyes<'a> {
    /// Of the run.
    name: &'a str,
    plan: &'a Plan,
    audit: Audit,
    comparison: Comparison,
    interrupt: &'a Interrupt,
    sink: &'a mut Sink,
    server: Option<&'a Server>,
    record: Option<&'a mut Record>,
    /// Jobs of orders.
    injected: Vec<TimedJob>,
    /// When the last event was.
    last: Time,
    /// What could not be kept.
    failed: Option<std::io::Error>,
}

impl Eyes<'_> {
    /// Writes down what was done, if anybody could go on with the run. False if that is impossible for now.
    fn write(&mut self) -> bool {
        let Some(record) = &self.record else { return true };
        match (record.write(), self.failed.is_some()) {
            (Ok(()), failed) => {
                if failed {
                    eprintln!("note: what is done can be noted again, and the run goes on as before");
                }
                self.failed = None;
                true
            }
            (Err(error), failed) => {
                if !failed {
                    eprintln!(
                        "note: what is done cannot be noted: {error}; make room. Until then no site is given up, nothing \
                         is adopted, nothing that is planned happens to sites, and no order is taken"
                    );
                }
                self.failed = Some(error);
                false
            }
        }
    }

    fn show(&self, change: impl FnOnce(&mut Live)) {
        if let Some(server) = self.server {
            server.shown.change(change);
        }
    }
}

impl Onlooker for Eyes<'_> {
    fn event(&mut self, event: &Event) {
        self.last = self.last.max(event.at);
        self.comparison.observe(event);
        self.audit.observe(event);
        self.show(|live| {
            live.observe(event);
            live.judge(self.audit.failed());
        });
        if self.plan.message_events || !is_about_a_message(event) {
            self.sink.take(event);
        }
    }

    fn order(&mut self, given: &Given, past: Option<&Past>) -> std::io::Result<()> {
        self.record.as_mut().map_or(Ok(()), |record| record.note_order(given, past))
    }

    fn ordered(&mut self, given: &Given) {
        if let Some(job) = &given.job {
            self.audit.add(job);
            self.comparison.add(job);
            self.sink.add(job);
            self.injected.push(*job);
        }
        // Only the order to stand still has come to something else than was kept: where they stand.
        if let Some(record) = self.record.as_mut().filter(|record| record.orders.last() != Some(given)) {
            record.orders.pop();
            record.orders.push(given.clone());
            self.failed = record.write().err().or(self.failed.take());
        }
        self.show(|live| live.ordered(given));
    }

    fn look(&mut self, fleet: &Fleet, statuses: &[NodeStatus], orders: &Orders) {
        if let Some(server) = self.server {
            // A node that was started again listens elsewhere.
            server.shown.set_targets(reception::targets(self.name, fleet));
        }
        let sites = statuses.iter().map(|status| status.site);
        let away: BTreeSet<SiteId> =
            sites.filter(|site| fleet.whereabouts(*site) != Whereabouts::Up).collect();
        let now = statuses.iter().map(|status| status.trace_time_us).max().map(Time::from_micros);
        self.show(|live| {
            live.look(statuses, &away, orders.cuts());
            live.hit(fleet.limits_hit());
            live.pass(now.unwrap_or(Time::ZERO));
            live.enter(if orders.is_paused() { Phase::Paused } else { Phase::Running });
        });
    }

    fn noted(&mut self, past: &Past) -> bool {
        if let Some(record) = &mut self.record {
            record.past.clone_from(past);
        }
        self.write()
    }

    fn keeps(&mut self) -> bool {
        self.failed.is_none() || self.write()
    }

    fn last(&mut self, fleet: &mut Fleet) {
        self.comparison.scrape(fleet, self.interrupt);
    }
}

/// To the end of the nodes, and judges what they did. Also all jobs that there were in the end.
pub(super) fn drive(course: Course<'_>, mut fleet: Fleet, sink: &mut Sink) -> anyhow::Result<(Ended, Jobs)> {
    let Course { experiment, plan, jobs, mut warnings, .. } = course;
    let Course { simulated, interrupt, server, mut orders, mut outages, record, source, .. } = course;
    let arriving = jobs.arriving(experiment);
    let are_commands = experiment.execution.by != By::Timer;
    let mut audit = Audit::new(&experiment.grid, &arriving);
    if are_commands {
        audit = audit.of_commands();
        sink.measure_run_times();
    }
    let comparison = Comparison::new(source, &experiment.grid, &arriving);
    let (injected, failed, name) = (Vec::new(), None, experiment.name.as_str());
    let last = plan.origin;
    let mut eyes =
        Eyes { name, plan, audit, comparison, interrupt, sink, server, record, injected, last, failed };
    eyes.show(|live| live.enter(Phase::Running));
    if !orders.may_come() {
        let mut stage = orders::Stage { plan, fleet: &mut fleet, outages: &mut outages };
        for given in orders.release(&mut stage) {
            // They are done already: a run that nobody can order to go on must.
            eyes.failed = eyes.order(&given, None).err().or(eyes.failed.take());
            eyes.ordered(&given);
        }
    }
    let mut watch = Watch::new(plan, &arriving, outages, orders, interrupt);
    let ending = watch.until_end(&mut fleet, &mut eyes);
    if let Some(server) = server {
        server.close_desk();
    }
    eyes.show(|live| {
        live.say(format!("the run has ended: {ending}"));
        if ending == Ending::Finished { live.enter(Phase::Ended) } else { live.fail() }
    });
    let Eyes { audit, comparison, sink, injected, last, failed, .. } = eyes;
    if let Some(error) = failed {
        warnings.push(format!("what was done could not be kept for `stealgrid attach`: {error}"));
    }
    let mut jobs = jobs.with(injected);
    if are_commands {
        // What the run is held against has jobs that take as long as they did.
        jobs = jobs.measured(sink.so_far());
    }
    let statuses = watch.last_statuses();
    let status = match &ending {
        Ending::Finished => Status::Complete,
        other => Status::Partial(other.to_string()),
    };
    if let Err(error) = fleet.stop(STOP_PATIENCE)
        && ending == Ending::Finished
    {
        warnings.push(error.to_string());
    }
    let complete = status == Status::Complete;
    let links = links::Links::of(statuses, plan.factor);
    if let Err(error) = links.write(&experiment.outputs.dir.join("links.csv"), &experiment.grid) {
        warnings.push(format!("links.csv is incomplete: {error:#}"));
    }
    warnings.extend(links.warning(&jobs));
    warnings.extend(watch.warnings(&ending));
    let audited = audit.finish(complete);
    let scraped = comparison.finish();
    let mut lines = vec![audited.line(plan.factor), links.line(), scraped.line()];
    let (mut violation, mut out_of_tolerance, mut compared) = (audited.violation, false, None);
    if complete {
        // The same experiment with what orders did to it, where a simulation can do that.
        let ordered = orders::ordered(experiment, plan, watch.given(), last);
        let expected = match &ordered {
            None => simulated(),
            Some(experiment) => plan::simulated(experiment, &jobs, interrupt),
        };
        let expected = expected.unwrap_or_else(|error| {
            warnings.push(format!("the run was not compared with its simulation: {error:#}"));
            violation
                .get_or_insert_with(|| format!("the run was not compared with its simulation: {error:#}"));
            None
        });
        let question = compare::Question {
            experiment: ordered.as_ref().unwrap_or(experiment),
            plan,
            jobs: &jobs,
            kept: Kept {
                added: links.added(),
                submissions: audited.submissions,
                completions: audited.completions,
            },
            disturbed: match are_commands {
                true => Some(COMMANDS),
                false => (!watch.was_undisturbed()).then_some(DISTURBED),
            },
            interrupt,
        };
        let answer = question.answer(sink.so_far(), expected.as_ref());
        lines.extend(answer.lines());
        if ordered.is_some() {
            lines.push(
                "  orders      jobs that were injected and links that were cut are in the simulation, too"
                    .to_string(),
            );
        }
        warnings.extend(answer.failed());
        violation = violation.or(answer.failed());
        out_of_tolerance = answer.verdict == compared::Verdict::Different;
        compared = Some(answer);
    }
    // A run that did not end by itself has another reason why something is missing.
    if let Some(refusal) = scraped.refusal().filter(|_| complete || scraped.differs()) {
        eprintln!("error: {refusal}");
        // Of a run that is not complete, its exit code must say that: somebody can go on with it.
        out_of_tolerance |= complete;
    }
    let ended = Ended {
        scraped: Some(scraped),
        driver: "run",
        clock: Clock::Scaled(plan.factor).to_string(),
        status,
        violation,
        calibration: None,
        warnings,
        lines,
        out_of_tolerance,
        compared,
        orders: watch.given().to_vec(),
        bars: None,
    };
    Ok((ended, jobs))
}
