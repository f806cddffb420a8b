//! What happens to sites (`[[faults]]`) carried out on real processes, and what the operator does about a site that
//! never comes back: its users go to the next larger site at once, and what is in its journal is adopted after the
//! lease, by the rule that the simulator follows, too ([`protocol::membership::operator`]). A site that was told to leave
//! and has nothing left to do ends. All this is said as events, which no node could say of itself.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use node::Fleet;
use node::clock::StartOrder;
use node::control::api::Adoption;
use node::fleet::{FleetError, Whereabouts};
use node::journal::inspect::Remains;
use protocol::membership::operator;
use scheduler::event::{BeginCause, EndCause};
use scheduler::{Event, EventKind, Grid, JobId, SiteId, Span, Time, TimedJob};

use super::plan::{Plan, wall_span};
use crate::experiment::faults::{Fault, What};
use crate::experiment::jobs::Jobs;

/// How long a node of a site that has left may take to end before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// What is done to a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Kill,
    /// The same, and it never comes back.
    End,
    Begin,
    /// The same, for the first time.
    Join,
    Pause,
    Resume,
    Leave,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    at: Time,
    site: SiteId,
    deed: Deed,
}

/// A site that never comes back.
#[derive(Debug)]
struct Dead {
    since: Time,
    remains: Remains,
    /// Whether others were told to adopt its jobs.
    settled: bool,
}

/// What happens to the sites of a run.
#[derive(Debug)]
pub struct Outages {
    grid: Arc<Grid>,
    run_times: BTreeMap<JobId, Span>,
    lease: Option<Span>,
    /// Whether sites that end are coped with: they leave journals, and a lease says when these are read.
    may_lose: bool,
    start: StartOrder,
    planned: bool,
    /// Whether a site was killed by order.
    ordered: bool,
    steps: VecDeque<Step>,
    /// What nobody has fetched yet of what happened to sites.
    said: Vec<Event>,
    /// Sites that were told to leave and are still there.
    leaving: BTreeSet<SiteId>,
    dead: BTreeMap<SiteId, Dead>,
    /// Epochs of adopted jobs.
    adopted: BTreeMap<JobId, u32>,
}

impl Outages {
    /// For a run whose trace clock was ordered to start like this.
    pub fn new(faults: &[Fault], plan: &Plan, jobs: &Jobs, start: StartOrder) -> Outages {
        let mut steps: Vec<Step> = faults.iter().flat_map(steps).collect();
        steps.sort_by_key(|step| step.at);
        let (at, kind) = (plan.origin, EventKind::Ended { how: EndCause::Absent });
        let said = late(faults).map(|site| Event { at, site, kind }).collect();
        Outages {
            grid: plan.grid(),
            run_times: jobs.jobs.iter().map(|job| (job.spec.id, job.run_time)).collect(),
            lease: plan.options().lease,
            may_lose: plan.options().lease.is_some() && plan.nodes.iter().all(|node| node.data_dir.is_some()),
            start,
            planned: !faults.is_empty(),
            ordered: false,
            steps: steps.into(),
            said,
            leaving: BTreeSet::new(),
            dead: BTreeMap::new(),
            adopted: BTreeMap::new(),
        }
    }

    /// Does everything that is due. Events of sites that never come back go to the sink.
    ///
    /// # Errors
    /// If a process cannot be had where it should be.
    pub fn carry_out(&mut self, fleet: &mut Fleet, sink: &mut impl FnMut(Event)) -> Result<(), FleetError> {
        while let Some(step) = self.steps.front().copied().filter(|step| step.at <= self.now()) {
            self.steps.pop_front();
            self.act(step, fleet, sink)?;
        }
        self.see_off(fleet, sink)?;
        self.settle(fleet)
    }

    /// Kills a site by order, which begins again so much later, unless it is for good. What is done, or why nothing is.
    ///
    /// # Errors
    /// If the process cannot be killed.
    pub fn kill(
        &mut self,
        site: SiteId,
        down: Option<Span>,
        fleet: &mut Fleet,
        sink: &mut impl FnMut(Event),
    ) -> Result<Result<String, String>, FleetError> {
        let name = self.grid.site(site).name.clone();
        if fleet.whereabouts(site) != Whereabouts::Up || self.leaving.contains(&site) {
            return Ok(Err(format!("{name} is not there, or is about to leave")));
        }
        if down.is_none() && !(self.may_lose && fleet.keeps_journals_here()) {
            return Ok(Err(format!(
                "nobody would take over what {name} has: that needs journals here ([node] journal, nodes that the \
                 coordinator starts) and protocol.lease"
            )));
        }
        if !fleet.keeps_journals() {
            return Ok(Err(format!(
                "{name} keeps no journal, so its jobs would be lost and the run over; give the run [node] journal"
            )));
        }
        self.ordered = true;
        let now = self.now();
        let deed = if down.is_some() { Deed::Kill } else { Deed::End };
        self.act(Step { at: now, site, deed }, fleet, sink)?;
        Ok(Ok(match down {
            None => format!("{name} was killed for good"),
            Some(down) => {
                let at = now.saturating_add(down);
                let place = self.steps.partition_point(|step| step.at <= at);
                self.steps.insert(place, Step { at, site, deed: Deed::Begin });
                format!("{name} was killed, and begins again with its journal at {at} s")
            }
        }))
    }

    /// How long a job runs that no workload has.
    pub fn learn(&mut self, job: &TimedJob) {
        self.run_times.insert(job.spec.id, job.run_time);
    }

    /// The site where such a job is submitted: the planned one, or who stands in for that if it never comes back.
    pub fn entry(&self, fleet: &Fleet, job: &TimedJob, planned: SiteId) -> Option<SiteId> {
        let stays =
            |site: SiteId| fleet.whereabouts(site) != Whereabouts::Gone && !self.leaving.contains(&site);
        match stays(planned) {
            true => Some(planned),
            false => operator::successor(&self.grid, planned, &job.spec, stays),
        }
    }

    /// The trace clocks go by this order from now on.
    pub fn set_clock(&mut self, start: StartOrder) {
        self.start = start;
    }

    /// What happened to sites since the last time, in order.
    pub fn said(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.said)
    }

    fn say(&mut self, site: SiteId, at: Time, kind: EventKind) {
        self.said.push(Event { at, site, kind });
    }

    fn act(&mut self, step: Step, fleet: &mut Fleet, sink: &mut impl FnMut(Event)) -> Result<(), FleetError> {
        let Step { at, site, deed } = step;
        if self.dead.contains_key(&site) {
            return Ok(());
        }
        let name = self.grid.site(site).name.clone();
        let now = self.now();
        let fits = match (deed, fleet.whereabouts(site)) {
            (Deed::Begin | Deed::Join, Whereabouts::Down) => true,
            (Deed::Kill | Deed::End | Deed::Pause | Deed::Leave, Whereabouts::Up) => true,
            (Deed::Resume, Whereabouts::Paused) => true,
            // Killed by order meanwhile, or back already.
            _ => !self.ordered,
        };
        if !fits {
            eprintln!(
                "note: what the experiment does to {name} at {at} s is left out: an order came before it"
            );
            return Ok(());
        }
        match deed {
            Deed::Kill => {
                eprintln!("note: node {name} is killed at {at} s");
                let killed = self.start.at(fleet.kill(site)?);
                self.say(site, killed, EventKind::Ended { how: EndCause::Crash });
            }
            Deed::End => {
                eprintln!("note: node {name} is killed at {at} s, for good");
                let killed = self.start.at(fleet.kill(site)?);
                self.bury(site, EndCause::Death, killed, fleet, sink)?;
            }
            Deed::Begin | Deed::Join => {
                eprintln!("note: node {name} begins at {at} s");
                fleet.begin_again(site, &self.start)?;
                let how = if deed == Deed::Join { BeginCause::Join } else { BeginCause::Restart };
                self.say(site, now, EventKind::Begun { how });
            }
            Deed::Pause => {
                eprintln!("note: node {name} stands still at {at} s");
                fleet.pause(site)?;
                self.say(site, self.now(), EventKind::Ended { how: EndCause::Pause });
            }
            Deed::Resume => {
                eprintln!("note: node {name} goes on at {at} s");
                fleet.resume(site)?;
                self.say(site, now, EventKind::Begun { how: BeginCause::Resume });
            }
            Deed::Leave => {
                eprintln!("note: site {name} leaves at {at} s");
                fleet.leave(site)?;
                self.leaving.insert(site);
                self.say(site, now, EventKind::Dismissed {});
            }
        }
        Ok(())
    }

    /// Ends the nodes of sites that have left.
    fn see_off(&mut self, fleet: &mut Fleet, sink: &mut impl FnMut(Event)) -> Result<(), FleetError> {
        for site in self.leaving.clone() {
            if !fleet.has_left(site) {
                continue;
            }
            let Some(remains) = fleet.dismiss(site, STOP_PATIENCE, sink)? else { continue };
            self.send_elsewhere(site, remains.arrivals, fleet);
            self.leaving.remove(&site);
            eprintln!("note: site {} has left", self.grid.site(site).name);
            self.say(site, self.now(), EventKind::Ended { how: EndCause::Leave });
        }
        Ok(())
    }

    /// Whether a site that has left is still to be ended.
    pub fn anybody_has_left(&self, fleet: &Fleet) -> bool {
        self.leaving.iter().any(|&site| fleet.has_left(site))
    }

    /// A node was found at a time to have ended, and has begun again by now.
    pub fn found_ended(&mut self, name: &str, at: Time) {
        if let Some(site) = self.site(name) {
            self.say(site, at, EventKind::Ended { how: EndCause::Found });
            self.say(site, self.now(), EventKind::Begun { how: BeginCause::Restart });
        }
    }

    /// A site has ended and never comes back: its users go elsewhere.
    ///
    /// # Errors
    /// If its journal cannot be read.
    pub fn bury(
        &mut self,
        site: SiteId,
        how: EndCause,
        at: Time,
        fleet: &mut Fleet,
        sink: &mut impl FnMut(Event),
    ) -> Result<(), FleetError> {
        let mut remains = fleet.give_up(site, sink)?;
        let arrivals = std::mem::take(&mut remains.arrivals);
        self.send_elsewhere(site, arrivals, fleet);
        self.leaving.remove(&site);
        self.dead.insert(site, Dead { since: at, remains, settled: false });
        self.say(site, at, EventKind::Ended { how });
        Ok(())
    }

    /// Users of a site that never comes back go to others.
    fn send_elsewhere(&self, site: SiteId, arrivals: Vec<TimedJob>, fleet: &mut Fleet) {
        let mut elsewhere: BTreeMap<SiteId, Vec<TimedJob>> = BTreeMap::new();
        for job in arrivals {
            let there = |other: SiteId| self.is_there(fleet, other);
            if let Some(to) = operator::successor(&self.grid, site, &job.spec, there) {
                elsewhere.entry(to).or_default().push(job);
            }
        }
        fleet.hand_over(elsewhere);
    }

    /// Others adopt what sites have left whose lease is over.
    fn settle(&mut self, fleet: &mut Fleet) -> Result<(), FleetError> {
        let Some(lease) = self.lease else { return Ok(()) };
        let now = self.now();
        let is_over = |dead: &Dead| now.since(dead.since) >= lease;
        if !self.dead.values().any(|dead| is_over(dead) && !dead.settled) {
            return Ok(());
        }
        let over = self.dead.iter().filter(|(_, dead)| is_over(dead));
        let journals = over.map(|(&site, dead)| (site, &dead.remains.durable)).collect();
        let adoptions =
            operator::adoptions(&self.grid, &journals, &self.adopted, |site| self.is_there(fleet, site));
        let mut by_site: BTreeMap<SiteId, Vec<Adoption>> = BTreeMap::new();
        for operator::Adoption { job, epoch, to } in adoptions {
            let run_time = self.run_times.get(&job.id).copied().unwrap_or(job.requested);
            by_site.entry(to).or_default().push(Adoption { job: TimedJob { spec: job, run_time }, epoch });
        }
        for (to, adoptions) in by_site {
            let name = &self.grid.site(to).name;
            eprintln!("note: site {name} adopts {} jobs of sites that are gone for good", adoptions.len());
            fleet.adopt_jobs(to, &adoptions)?;
            self.adopted.extend(adoptions.iter().map(|adoption| (adoption.job.spec.id, adoption.epoch)));
        }
        for dead in self.dead.values_mut().filter(|dead| is_over(dead)) {
            dead.settled = true;
        }
        Ok(())
    }

    /// Whether a site can be told something and stays.
    fn is_there(&self, fleet: &Fleet, site: SiteId) -> bool {
        fleet.whereabouts(site) == Whereabouts::Up && !self.leaving.contains(&site)
    }

    /// Whether nothing happens to any site.
    pub fn is_empty(&self) -> bool {
        !self.planned && !self.ordered && self.dead.is_empty()
    }

    /// Whether jobs of dead sites are still to be adopted, or sites to come back.
    pub fn is_pending(&self) -> bool {
        let unsettled = self.lease.is_some() && self.dead.values().any(|dead| !dead.settled);
        unsettled
            || self.steps.iter().any(|step| matches!(step.deed, Deed::Begin | Deed::Join | Deed::Resume))
    }

    /// The site of this name, if others may take over its jobs.
    pub fn site_to_lose(&self, name: &str) -> Option<SiteId> {
        let site = self.site(name)?;
        (self.may_lose && !self.dead.contains_key(&site)).then_some(site)
    }

    /// How long until the next thing is to be done, at most `most`.
    pub fn wait(&self, most: Duration) -> Duration {
        let next = self.steps.front().map(|step| wall_span(step.at.since(self.now()), self.start.factor));
        next.map_or(most, |next| next.min(most))
    }

    fn site(&self, name: &str) -> Option<SiteId> {
        self.grid.sites().iter().find(|site| site.name == name).map(|site| site.id)
    }

    /// Trace time.
    pub fn now(&self) -> Time {
        self.start.at(SystemTime::now())
    }
}

/// Sites that are not there at first.
pub fn late(faults: &[Fault]) -> impl Iterator<Item = SiteId> {
    faults.iter().filter(|fault| fault.what == What::Join).map(|fault| fault.site)
}

fn steps(fault: &Fault) -> Vec<Step> {
    let Fault { site, at, what, .. } = *fault;
    let step = |at, deed| Step { at, site, deed };
    let after = |away| at.saturating_add(away);
    match what {
        What::Crash { down: Some(down) } => vec![step(at, Deed::Kill), step(after(down), Deed::Begin)],
        What::Crash { down: None } => vec![step(at, Deed::End)],
        What::Pause { lasts } => vec![step(at, Deed::Pause), step(after(lasts), Deed::Resume)],
        What::Leave => vec![step(at, Deed::Leave)],
        What::Join => vec![step(at, Deed::Join)],
    }
}
