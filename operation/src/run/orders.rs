//! Carries out orders that somebody gives a run while it lasts, between two looks at the nodes.
//!
//! Every order is answered, and every one that is carried out is kept before. What is cut is told to the nodes again where they
//! have forgotten it: a node that restarts knows of no cut.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant, SystemTime};

use experiments::drive::own::RECORD;
use experiments::experiment::Experiment;
use experiments::interrupt::Interrupt;
use node::clock::StartOrder;
use node::control::api::{LinksOrder, Phase, Status};
use outputs::orders::{Ends, Given, Inject, Kill, Nothing, Order, Pace, injected};
use report::quantity::counted;
use scheduler::{Grid, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

use super::outages::{Killing, Observer, Outages};
use super::past::Past;
use super::plan::{Plan, trace_span};
use crate::Fleet;
use crate::fleet::{FleetError, Whereabouts, start_order};
use crate::orders::site_of;
use crate::serve::orders::Asked;

/// Orders of one run that are kept; further ones are refused.
pub const ORDERS_MAX: usize = 1000;
/// From an order to inject a job until its submission, on the wall clock: two looks at the nodes, so that it is with its
/// site by then.
const INJECT_LEAD: Duration = Duration::from_millis(500);
/// From the order to go on until trace time does, on the wall clock, and for every node: as at the start of a run.
const RESUME_LEAD: Duration = Duration::from_millis(100);
const RESUME_LEAD_PER_NODE: Duration = Duration::from_millis(10);
/// How often a run that is held looks for orders, and at its nodes.
const HOLD_POLL: Duration = Duration::from_millis(20);
const HOLD_LOOK: Duration = Duration::from_secs(1);
/// The longest run time of an injected job, in seconds of trace time: far more than that of any in published logs.
const RUN_TIME_MAX_S: f64 = 1e7;

/// Orders of a run.
#[derive(Debug)]
pub struct Orders {
    /// Where they come from; from nowhere without a page.
    come: Option<Receiver<Asked>>,
    given: Vec<Given>,
    cuts: BTreeSet<(SiteId, SiteId)>,
    /// The number of the next job.
    next_job: Option<u64>,
    /// How the trace clocks go.
    clock: StartOrder,
    /// Where the first and the last of them stand, by their answers.
    stand: Option<(Time, Time)>,
}

/// What is done for an order that makes sense.
#[derive(Debug)]
enum Task {
    Pause,
    /// By this clock.
    Resume(StartOrder),
    /// At that site.
    Inject {
        job: TimedJob,
        entry: SiteId,
    },
    /// Cuts a link, or restores it.
    Cut {
        ends: Ends,
        cut: bool,
    },
    Kill(Box<Killing>),
}

impl Task {
    /// What will have been done about sites with it, if anything.
    fn past(&self) -> Option<&Past> {
        match self {
            Task::Kill(killing) => Some(killing.past()),
            _ => None,
        }
    }
}

/// How clocks go after these orders, if they were started by that one.
pub fn clock(given: &[Given], start: StartOrder) -> StartOrder {
    given.iter().rev().find_map(|given| given.clock).map_or(start, |pace| {
        let Pace { unix_micros, factor, trace_origin_us } = pace;
        StartOrder { unix_micros, factor, trace_origin_us }
    })
}

fn pace(clock: StartOrder) -> Pace {
    let StartOrder { unix_micros, factor, trace_origin_us } = clock;
    Pace { unix_micros, factor, trace_origin_us }
}

/// Why an order is refused that could not be kept.
fn unkept(error: &io::Error) -> String {
    format!(
        "the order could not be kept for whoever would go on with the run, so it was not carried out: write {RECORD}: \
         {error}; make room and give it again"
    )
}

/// What orders are about.
pub struct Stage<'a> {
    /// What is run.
    pub plan: &'a Plan,
    /// The nodes that orders are carried out at.
    pub fleet: &'a mut Fleet,
    /// What happens to them.
    pub outages: &'a mut Outages,
}

impl Orders {
    /// Whether somebody can give some.
    pub fn may_come(&self) -> bool {
        self.come.is_some()
    }

    /// Orders that come from there after these, for a run of these jobs, those of orders among them, whose clocks were
    /// started by this order.
    pub fn new(
        come: Option<Receiver<Asked>>,
        given: Vec<Given>,
        jobs: &[TimedJob],
        start: StartOrder,
    ) -> Orders {
        let last = jobs.iter().map(|job| job.spec.id.0).max().unwrap_or(0);
        let clock = clock(&given, start);
        let mut orders = Orders {
            come,
            given: Vec::new(),
            cuts: BTreeSet::new(),
            next_job: last.checked_add(1),
            clock,
            stand: None,
        };
        for given in &given {
            match given.order {
                Order::Cut(ends) => orders.cuts.extend(ends.ways()),
                Order::Restore(ends) => {
                    orders.cuts.retain(|way| !ends.ways().any(|restored| restored == *way))
                }
                _ => {}
            }
        }
        orders.given = given;
        orders
    }

    /// Restores everything and lets time go on, where nobody could order it any more.
    pub fn release(&mut self, stage: &mut Stage<'_>) -> Vec<Given> {
        let mut done = Vec::new();
        // A coordinator that was killed may not have noted what it told them last.
        let fleet = &mut *stage.fleet;
        let reminded = fleet.statuses().and_then(|statuses| self.remind(fleet, &statuses));
        if let Err(error) = reminded {
            eprintln!("note: nodes are told later what is cut, and whether time stands still: {error}");
        }
        if let Ok((given, Task::Resume(clock))) = self.plan_resume(stage) {
            self.resume(clock, stage);
            done.push(given);
        }
        for (from, to) in self.cuts.clone() {
            let (at, ends) = (stage.outages.now(), Ends { from, to, one_way: true });
            if let Ok((given, _)) = self.plan_cut(ends, false, at, stage) {
                self.cut(ends, false, stage);
                done.push(given);
            }
        }
        self.given.extend(done.iter().cloned());
        done
    }

    /// How the trace clocks go by now.
    pub fn clock(&self) -> StartOrder {
        self.clock
    }

    /// All orders that were carried out, in order.
    pub fn given(&self) -> &[Given] {
        &self.given
    }

    /// The directed links that are cut.
    pub fn cuts(&self) -> &BTreeSet<(SiteId, SiteId)> {
        &self.cuts
    }

    /// Whether trace time stands still.
    pub fn is_paused(&self) -> bool {
        self.clock.is_halted()
    }

    /// Carries out the orders that have come: those that it could. Each is kept before it is carried out, and answered
    /// last: whoever was told that it was done finds it after a crash of this process, too. One that cannot be kept is
    /// not carried out.
    ///
    /// # Errors
    /// If a node does not do what it must.
    pub fn carry_out(
        &mut self,
        stage: &mut Stage<'_>,
        observer: &mut impl Observer,
    ) -> Result<Vec<Given>, FleetError> {
        let mut done = Vec::new();
        while let Some(Asked { order, answer }) = self.come.as_mut().and_then(|come| come.try_recv().ok()) {
            let outcome = match self.given.len() < ORDERS_MAX {
                true => self.obey(order, stage, observer)?,
                false => Err(format!("a run takes {ORDERS_MAX} orders; this one had them")),
            };
            if let Ok(given) = &outcome {
                eprintln!("note: by order: {}", given.done);
                self.given.push(given.clone());
                done.push(given.clone());
                observer.ordered(given);
            }
            // Whoever asked may be gone; then nobody wants the answer.
            let _ = answer.send(outcome);
        }
        Ok(done)
    }

    fn obey(
        &mut self,
        order: Order,
        stage: &mut Stage<'_>,
        observer: &mut impl Observer,
    ) -> Result<Result<Given, String>, FleetError> {
        let (given, task) = match self.planned(order, stage) {
            Ok(planned) => planned,
            Err(reason) => return Ok(Err(reason)),
        };
        if let Err(error) = observer.keep(&given, task.past()) {
            return Ok(Err(unkept(&error)));
        }
        self.carry(task, given, stage, observer).map(Ok)
    }

    /// What an order comes to, if it makes sense. Nothing is done yet.
    fn planned(&self, order: Order, stage: &Stage<'_>) -> Result<(Given, Task), String> {
        let at = stage.outages.now();
        match order {
            Order::Start(_) => Err("the run has begun already".to_string()),
            Order::Pause(_) => self.plan_pause(at, stage),
            Order::Resume(_) => self.plan_resume(stage),
            Order::Inject(inject) => self.plan_inject(inject, at, stage),
            Order::Cut(ends) => self.plan_cut(ends, true, at, stage),
            Order::Restore(ends) => self.plan_cut(ends, false, at, stage),
            Order::Kill(kill) => plan_kill(kill, at, stage),
        }
    }

    /// Does what was planned: what came of it.
    fn carry(
        &mut self,
        task: Task,
        given: Given,
        stage: &mut Stage<'_>,
        observer: &mut impl Observer,
    ) -> Result<Given, FleetError> {
        Ok(match task {
            Task::Pause => self.pause(given, stage),
            Task::Resume(clock) => {
                self.resume(clock, stage);
                given
            }
            Task::Inject { job, entry } => {
                self.next_job = job.spec.id.0.checked_add(1);
                stage.outages.learn(&job, entry);
                stage.fleet.hand_over(BTreeMap::from([(entry, vec![job])]));
                given
            }
            Task::Cut { ends, cut } => {
                self.cut(ends, cut, stage);
                given
            }
            Task::Kill(killing) => {
                stage.outages.kill(*killing, stage.fleet, observer)?;
                given
            }
        })
    }

    fn plan_pause(&self, at: Time, stage: &Stage<'_>) -> Result<(Given, Task), String> {
        if self.is_paused() {
            return Err("the run stands still already".to_string());
        }
        // One that is away would come back by the clock that it has.
        for site in stage.plan.grid().sites() {
            if matches!(stage.fleet.whereabouts(site.id), Whereabouts::Down | Whereabouts::Paused) {
                let name = &site.name;
                return Err(format!(
                    "{name} is away and would not hear that time stands still; wait until it is back"
                ));
            }
        }
        // Where the nodes stand they say when they do.
        let clock = StartOrder::halted_at(stage.plan.factor, at);
        let done = "trace time was stopped at all sites".to_string();
        let given = Given::new(at, Order::Pause(Nothing {}), done);
        Ok((Given { clock: Some(pace(clock)), ..given }, Task::Pause))
    }

    /// Stops the clock of every node. They stand within some milliseconds of each other, and go on together from where the
    /// last one stood.
    fn pause(&mut self, given: Given, stage: &mut Stage<'_>) -> Given {
        let mut at = given.at;
        self.stand = None;
        for site in stage.plan.grid().sites() {
            if stage.fleet.whereabouts(site.id) == Whereabouts::Up
                // One that is told too late is told again after the next look.
                && let Ok(stands) = stage.fleet.halt_clock(site.id)
            {
                self.stands(stands);
                at = at.max(stands);
            }
        }
        self.clock = StartOrder::halted_at(stage.plan.factor, at);
        stage.outages.set_clock(self.clock);
        Given { at, clock: Some(pace(self.clock)), apart: self.apart(), ..given }
    }

    /// A clock was stopped there.
    fn stands(&mut self, at: Time) {
        let (first, last) = self.stand.unwrap_or((at, at));
        self.stand = Some((first.min(at), last.max(at)));
    }

    /// Trace time does not go on from before this.
    fn stands_at_least(&mut self, at: Time) {
        let latest = at.max(self.clock.at(SystemTime::now()));
        self.clock = StartOrder::halted_at(self.clock.factor, latest);
    }

    fn apart(&self) -> Option<Span> {
        self.stand.map(|(first, last)| last.since(first))
    }

    fn plan_resume(&self, stage: &Stage<'_>) -> Result<(Given, Task), String> {
        if !self.is_paused() {
            return Err("the run does not stand still".to_string());
        }
        let nodes = u32::try_from(stage.plan.nodes.len()).unwrap_or(u32::MAX);
        let lead = RESUME_LEAD + RESUME_LEAD_PER_NODE * nodes;
        let at = self.clock.at(SystemTime::now());
        let clock = start_order(stage.plan.factor, at, lead);
        let given = Given::new(at, Order::Resume(Nothing {}), "trace time goes on".to_string());
        Ok((Given { clock: Some(pace(clock)), ..given }, Task::Resume(clock)))
    }

    fn resume(&mut self, clock: StartOrder, stage: &mut Stage<'_>) {
        for site in stage.plan.grid().sites() {
            if stage.fleet.whereabouts(site.id) == Whereabouts::Up
                && let Err(error) = stage.fleet.continue_clock(site.id, &clock)
            {
                eprintln!("note: {} is told later that time goes on: {error}", site.name);
            }
        }
        self.clock = clock;
        stage.outages.set_clock(clock);
    }

    /// The job is for the site where the experiment submits such jobs.
    fn plan_inject(&self, inject: Inject, at: Time, stage: &Stage<'_>) -> Result<(Given, Task), String> {
        let grid = stage.plan.grid();
        let id = self.next_job.ok_or("the workload has the highest number that a job can have")?;
        let mut job = job(&grid, inject, id)?;
        job.spec.submit = at.saturating_add(trace_span(INJECT_LEAD, stage.plan.factor));
        if !protocol::is_job_of(&grid, &job.spec) {
            return Err("no job can be that late".to_string());
        }
        let entry = stage
            .outages
            .entry(stage.fleet, &job, stage.plan.entry(&job))
            .ok_or("no site that is there is wide enough")?;
        let JobSpec { processors, submit, .. } = job.spec;
        let done = format!(
            "job {id} of {} for {} s is submitted at {} at {submit} s",
            counted(processors, "processor"),
            job.run_time,
            grid.site(entry).name
        );
        let given = Given::new(at, Order::Inject(inject), done);
        Ok((Given { job: Some(job), entry: Some(entry), ..given }, Task::Inject { job, entry }))
    }

    /// The directed links that are not as they should be.
    fn to_change(&self, ends: Ends, cut: bool) -> Vec<(SiteId, SiteId)> {
        ends.ways().filter(|way| self.cuts.contains(way) != cut).collect()
    }

    fn plan_cut(&self, ends: Ends, cut: bool, at: Time, stage: &Stage<'_>) -> Result<(Given, Task), String> {
        let grid = stage.plan.grid();
        let names = [ends.from, ends.to].map(|site| site_of(&grid, site).map(|site| &grid.site(site).name));
        let [from, to] = match names {
            [Ok(from), Ok(to)] => [from, to],
            [Err(wrong), _] | [_, Err(wrong)] => return Err(wrong),
        };
        if ends.from == ends.to {
            return Err(format!("{from} has no link to itself"));
        }
        if self.to_change(ends, cut).is_empty() {
            return Err(format!(
                "the link from {from} to {to} is {} already",
                if cut { "cut" } else { "whole" }
            ));
        }
        let (order, is) = if cut { (Order::Cut(ends), "cut") } else { (Order::Restore(ends), "restored") };
        let back = if ends.one_way { "" } else { " and back" };
        let done = format!("the link from {from} to {to}{back} is {is}");
        Ok((Given::new(at, order, done), Task::Cut { ends, cut }))
    }

    fn cut(&mut self, ends: Ends, cut: bool, stage: &mut Stage<'_>) {
        for way in self.to_change(ends, cut) {
            if cut {
                self.cuts.insert(way)
            } else {
                self.cuts.remove(&way)
            };
        }
        for site in [ends.from, ends.to] {
            if stage.fleet.whereabouts(site) == Whereabouts::Up
                && let Err(error) = stage.fleet.set_links(site, &self.links_of(site))
            {
                let (grid, is) = (stage.plan.grid(), if cut { "cut" } else { "restored" });
                eprintln!("note: {} is told later that a link is {is}: {error}", grid.site(site).name);
            }
        }
    }

    /// Stops the clocks that run and should stand still, or lets those go on that should.
    fn set_clocks(&mut self, fleet: &mut Fleet, statuses: &[Status]) -> Result<(), FleetError> {
        let paused = self.is_paused();
        for status in statuses.iter().filter(|status| status.paused != paused) {
            if fleet.whereabouts(status.site) != Whereabouts::Up {
                continue;
            }
            match (paused, status.phase) {
                (true, Phase::Running) => {
                    let at = fleet.halt_clock(status.site)?;
                    self.stands_at_least(at);
                    self.stands(at);
                    let apart = self.apart();
                    let pause = self.given.iter_mut().rfind(|given| given.apart.is_some());
                    pause.into_iter().for_each(|pause| pause.apart = pause.apart.max(apart));
                }
                (false, Phase::Armed) => fleet.continue_clock(status.site, &self.clock)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// What a site must know of cuts.
    fn links_of(&self, site: SiteId) -> LinksOrder {
        LinksOrder {
            cut_to: self.cuts.iter().filter(|way| way.0 == site).map(|way| way.1).collect(),
            cut_from: self.cuts.iter().filter(|way| way.1 == site).map(|way| way.0).collect(),
        }
    }

    /// Tells nodes that have not heard it, or have forgotten it, what is cut, and whether time stands still.
    ///
    /// # Errors
    /// If a node refuses, or has ended.
    pub fn remind(&mut self, fleet: &mut Fleet, statuses: &[Status]) -> Result<(), FleetError> {
        if self.is_paused() {
            // A coordinator that was killed may have kept the order before it knew where they would stand.
            let stand =
                statuses.iter().filter(|status| status.paused).map(|status| status.trace_time_us).max();
            self.stands_at_least(stand.map_or(Time::ZERO, Time::from_micros));
        }
        if statuses.iter().any(|status| status.paused != self.is_paused()) {
            self.set_clocks(fleet, statuses)?;
        }
        for status in statuses {
            if fleet.whereabouts(status.site) != Whereabouts::Up {
                continue;
            }
            let wanted = self.links_of(status.site);
            let named = |is: fn(&node::control::api::LinkStatus) -> bool| {
                status.links.iter().filter(|link| is(link)).map(|link| link.site).collect()
            };
            let known =
                LinksOrder { cut_to: named(|link| link.cut_to), cut_from: named(|link| link.cut_from) };
            if known != wanted {
                fleet.set_links(status.site, &wanted)?;
            }
        }
        Ok(())
    }
}

fn plan_kill(kill: Kill, at: Time, stage: &Stage<'_>) -> Result<(Given, Task), String> {
    let site = site_of(&stage.plan.grid(), kill.site)?;
    let down = span(kill.down_s).ok_or_else(|| format!("{} s is no time to be away", kill.down_s))?;
    // A run that starts no node again loses it, whatever the order says.
    let comes_back = !kill.for_good && stage.plan.may_restart();
    let killing = stage.outages.plan_kill(site, comes_back.then_some(down), at, stage.fleet)?;
    Ok((Given::new(at, Order::Kill(kill), killing.done().to_string()), Task::Kill(Box::new(killing))))
}

/// Seconds of trace time, if they are any and not too many.
fn span(seconds: f64) -> Option<Span> {
    (0.0..=RUN_TIME_MAX_S).contains(&seconds).then(|| Span::from_micros((seconds * 1e6).round() as i64))
}

/// The job that an order describes, without a time of submission.
fn job(grid: &Grid, inject: Inject, id: u64) -> Result<TimedJob, String> {
    let Inject { processors, run_time_s, requested_s, site } = inject;
    if processors == 0 || processors > grid.widest_job() {
        return Err(match grid.spreads() {
            true => format!(
                "{processors} processors are too many; at most {} are spread over sites",
                grid.widest_job()
            ),
            false => format!("no site has {processors} processors for it; the widest has {}", grid.widest()),
        });
    }
    let run_time = span(run_time_s).ok_or_else(|| format!("{run_time_s} s is no run time"))?;
    let requested = match requested_s {
        Some(requested_s) => {
            span(requested_s).ok_or_else(|| format!("{requested_s} s is no time to ask for"))?
        }
        None => run_time,
    };
    if run_time <= Span::ZERO || requested < run_time {
        return Err(format!(
            "a job must run for some time, and its user must ask for as much: it runs {run_time} s, and {requested} s are \
             asked for"
        ));
    }
    let origin = site_of(grid, site.unwrap_or(SiteId::from_index(0)))?;
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::ZERO,
        processors,
        requested,
        labels: Labels::UNKNOWN,
        origin,
        payload: 0,
    };
    Ok(TimedJob { spec, run_time })
}

/// The order to start, with whom it must be answered once it is kept.
#[derive(Debug)]
pub struct Starter {
    /// What is kept of it.
    pub given: Given,
    answer: oneshot::Sender<Result<Given, String>>,
}

impl Starter {
    /// It was kept, and the run begins.
    pub fn obeyed(self) {
        // Whoever asked may be gone; then nobody wants the answer.
        let _ = self.answer.send(Ok(self.given));
    }

    /// It could not be kept: the run does not begin.
    pub fn refused(self, error: &io::Error) {
        let _ = self.answer.send(Err(unkept(error)));
    }
}

/// Waits for the order to start, which is the first that a run takes that is held; `None` if interrupted.
///
/// # Errors
/// If a node ends meanwhile.
pub fn hold(
    come: &mut Receiver<Asked>,
    fleet: &mut Fleet,
    at: Time,
    interrupt: &Interrupt,
) -> Result<Option<Starter>, FleetError> {
    let mut looked = Instant::now();
    while !interrupt.is_set() {
        match come.try_recv() {
            Ok(Asked { order: Order::Start(nothing), answer }) => {
                let done = "the run was held, and begins".to_string();
                let given = Given::new(at, Order::Start(nothing), done);
                return Ok(Some(Starter { given, answer }));
            }
            Ok(Asked { answer, .. }) => {
                let _ = answer.send(Err("the run is held (--hold); the first order is to start".to_string()));
            }
            Err(_) => std::thread::sleep(HOLD_POLL),
        }
        if looked.elapsed() >= HOLD_LOOK {
            fleet.statuses()?;
            looked = Instant::now();
        }
    }
    Ok(None)
}

/// The experiment with what orders did to it, as far as a simulation can do the same; `None` if they did nothing that it
/// would notice. What was never restored is cut until the run ended: a simulation that takes longer could not end else.
/// Of sites that were killed see [`Outages::is_empty`].
pub fn ordered(experiment: &Experiment, plan: &Plan, given: &[Given], end: Time) -> Option<Experiment> {
    let cuts = crate::orders::cuts(given, end);
    if cuts.is_empty() && injected(given).next().is_none() {
        return None;
    }
    let mut ordered = experiment.clone();
    ordered.network.cuts.extend(cuts);
    // As the nodes have it: it decides the schedule where messages are lost.
    ordered.options.retry = plan.options().retry;
    ordered.options.pool.refresh = plan.options().pool.refresh;
    Some(ordered)
}

#[cfg(test)]
mod tests {
    use experiments::fixtures::{experiment, jobs};

    use super::*;
    use crate::run::plan;

    const INJECT: Inject = Inject { processors: 3, run_time_s: 1.5, requested_s: None, site: None };

    #[test]
    fn a_job_of_an_order_is_one_that_the_grid_can_run() {
        let grid = Grid::of_sizes(&[4, 8]).unwrap();
        let made = job(&grid, Inject { site: Some(SiteId(2)), requested_s: Some(9.0), ..INJECT }, 7).unwrap();
        assert_eq!((made.spec.id, made.spec.origin, made.spec.processors), (JobId(7), SiteId(2), 3));
        assert_eq!((made.run_time, made.spec.requested), (Span::from_micros(1_500_000), Span::from_secs(9)));
        assert_eq!(job(&grid, INJECT, 7).unwrap().spec.requested, Span::from_micros(1_500_000));
        for wrong in [
            Inject { processors: 0, ..INJECT },
            Inject { processors: 9, ..INJECT },
            Inject { run_time_s: 0.0, ..INJECT },
            Inject { run_time_s: -1.0, ..INJECT },
            Inject { run_time_s: f64::NAN, ..INJECT },
            Inject { run_time_s: 1e300, ..INJECT },
            Inject { requested_s: Some(1.0), ..INJECT },
            Inject { site: Some(SiteId(0)), ..INJECT },
            Inject { site: Some(SiteId(3)), ..INJECT },
        ] {
            assert!(job(&grid, wrong, 7).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn a_cut_that_nobody_restores_ends_with_the_run_where_that_is_simulated() {
        let (experiment, planned) = (experiment(""), plan::tests::planned(""));
        let (start, end) = (Time::from_secs(3600), Time::from_secs(3700));
        let ends = Ends { from: SiteId(1), to: SiteId(2), one_way: true };
        let given = [Given::new(start, Order::Cut(ends), String::new())];

        let ordered = ordered(&experiment, &planned, &given, end).unwrap();

        assert_eq!(ordered.network.cuts.iter().map(|cut| cut.until).collect::<Vec<_>>(), [end]);
        assert!(plan::simulated(&ordered, &jobs(), &Interrupt::default()).unwrap().is_some());
        assert!(super::ordered(&experiment, &planned, &given, start).is_none(), "cut after the last event");
    }

    #[test]
    fn numbers_of_injected_jobs_are_above_those_of_the_workload() {
        let grid = Grid::of_sizes(&[4]).unwrap();
        let clock = StartOrder { unix_micros: 0, factor: 1.0, trace_origin_us: 0 };
        let jobs = [job(&grid, INJECT, 12).unwrap(), job(&grid, INJECT, 5).unwrap()];
        assert_eq!(Orders::new(None, Vec::new(), &jobs, clock).next_job, Some(13));
        let last = [job(&grid, INJECT, u64::MAX).unwrap()];
        assert_eq!(Orders::new(None, Vec::new(), &last, clock).next_job, None);
    }
}
