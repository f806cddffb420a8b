//! What happens to sites (`[[faults]]`, and kills by order) carried out on real processes. A site that was told to leave
//! and has nothing left to do ends. All this is said as events, which no node could say of itself. What the operator does
//! about a site that never comes back is in `decisions`.

mod decisions;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use experiments::experiment::faults::{Fault, What};
use node::clock::StartOrder;
use node::journal::inspect::Remains;
use outputs::orders::Given;
use protocol::Failover;
use protocol::membership::operator;
use scheduler::event::{BeginCause, EndCause};
use scheduler::{Event, EventKind, Grid, JobId, JobSpec, SiteId, Span, Time, TimedJob};

use super::past::{Deed, Late, Loss, Parted, Past, Step};
use super::plan::{Plan, wall_span};
use crate::Fleet;
use crate::fleet::{FleetError, Whereabouts};

/// How long a node of a site that has left may take to end before it is killed.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Who hears what is done.
pub trait Observer {
    /// Something happened at a site that never comes back.
    fn event(&mut self, event: Event);
    /// So much was done, to be kept before anything follows from it.
    /// False if it cannot be kept.
    fn note(&mut self, past: &Past) -> bool;
    /// An order is about to be carried out, and with it this will have been done about sites, if anything.
    ///
    /// # Errors
    /// If it cannot be kept: then it must not be carried out.
    fn keep(&mut self, given: &Given, past: Option<&Past>) -> io::Result<()>;
    /// That order was carried out, and this came of it; before any event of the job that it made.
    fn ordered(&mut self, given: &Given);
}

/// A kill by order that makes sense.
#[derive(Debug)]
pub struct Killing {
    step: Step,
    done: String,
    past: Past,
}

impl Killing {
    /// What comes of it, in words.
    pub fn done(&self) -> &str {
        &self.done
    }

    /// What will have been done about sites before it.
    pub fn past(&self) -> &Past {
        &self.past
    }
}

/// What happens to the sites of a run.
#[derive(Debug)]
pub struct Outages {
    grid: Arc<Grid>,
    run_times: BTreeMap<JobId, Span>,
    lease: Option<Span>,
    /// Who stands in for brokers.
    failover: Failover,
    /// Whether sites that end are coped with: they leave journals, and a lease says when these are read.
    may_lose: bool,
    start: StartOrder,
    planned: bool,
    past: Past,
    /// How much of what was said of sites was fetched.
    fetched: usize,
    /// What sites that died have left.
    remains: BTreeMap<SiteId, Remains>,
    /// All jobs, and where they are meant to be submitted.
    meant: BTreeMap<JobId, (JobSpec, SiteId)>,
    /// Those that were submitted, and those that have ended, as far as is known.
    submitted: BTreeSet<JobId>,
    over: BTreeSet<JobId>,
    /// Who is to submit jobs of sites that never come back, once that is noted.
    elsewhere: BTreeMap<SiteId, Vec<TimedJob>>,
    /// Whether something that others are to be told could not be noted.
    unnoted: bool,
    /// How often the events of all nodes were fetched.
    looks: u64,
    /// Jobs that nobody had, and after how many looks that was so.
    suspects: Option<(u64, BTreeSet<JobId>)>,
    /// When it was decided last who adopts what is missing, with a site that had not heard of a loss.
    unheard_at: Option<Time>,
    /// Whether it was said that a journal cannot be read for now.
    unreadable: bool,
    /// Until when there was no coordinator, if another went on.
    alone_until: Option<Time>,
    /// Sites that leave and restarted since, which have forgotten it.
    forgetful: BTreeSet<SiteId>,
}

impl Outages {
    /// For a run whose trace clock was ordered to start like this.
    pub fn new(faults: &[Fault], plan: &Plan, jobs: &[TimedJob], start: StartOrder) -> Outages {
        let mut steps: Vec<Step> = faults.iter().flat_map(steps).collect();
        steps.sort_by_key(|step| step.at);
        let (at, kind) = (plan.origin, EventKind::Ended { how: EndCause::Absent });
        let said = late(faults).map(|site| Event { at, site, kind }).collect();
        let past = Past { steps: steps.into(), said, down: late(faults).collect(), ..Past::default() };
        Outages {
            grid: plan.grid(),
            run_times: jobs.iter().map(|job| (job.spec.id, job.run_time)).collect(),
            lease: plan.options().lease,
            failover: plan.options().broker.failover,
            may_lose: plan.may_lose(),
            meant: jobs.iter().map(|job| (job.spec.id, (job.spec, plan.entry(job)))).collect(),
            submitted: BTreeSet::new(),
            over: BTreeSet::new(),
            elsewhere: BTreeMap::new(),
            unnoted: false,
            looks: 0,
            suspects: None,
            unheard_at: None,
            unreadable: false,
            start,
            planned: !faults.is_empty(),
            past,
            fetched: 0,
            remains: BTreeMap::new(),
            alone_until: None,
            forgetful: BTreeSet::new(),
        }
    }

    /// The same for a run that another coordinator has left, with what it has done. The nodes were taken over, and those
    /// that stood still go on: the system continues processes whose parent has ended.
    pub fn resumed(self, past: Past, remains: BTreeMap<SiteId, Remains>, fleet: &Fleet) -> Outages {
        let mut outages = Outages { past, remains, ..self };
        let now = outages.now();
        outages.alone_until = Some(now);
        // What the lost journals said is known as far as they can be read still: what others said of it counts.
        outages.past.losses.iter_mut().for_each(|loss| loss.settled = false);
        outages.forgetful.clone_from(&outages.past.leaving);
        for site in std::mem::take(&mut outages.past.paused) {
            if let Some(step) = outages.past.take_step(site, &[Deed::Resume]) {
                outages.come_late(step, now);
            }
            outages.say(site, now, EventKind::Begun { how: BeginCause::Resume });
        }
        for site in outages.past.down.clone() {
            // It was begun, and that was not kept.
            if fleet.whereabouts(site) == Whereabouts::Up {
                outages.past.down.remove(&site);
                let step = outages.past.take_step(site, &[Deed::Begin, Deed::Join]);
                let join = step.is_some_and(|step| step.deed == Deed::Join);
                let how = if join { BeginCause::Join } else { BeginCause::Restart };
                outages.say(site, step.map_or(now, |step| step.at), EventKind::Begun { how });
            }
        }
        for site in outages.grid.clone().sites() {
            // It had ended, and was started again only now.
            let found = outages.past.how_ended(site.id) == Some(EndCause::Found);
            if found && fleet.whereabouts(site.id) == Whereabouts::Up {
                outages.begun(site.id);
            }
        }
        outages
    }

    /// What was done so far.
    pub fn past(&self) -> &Past {
        &self.past
    }

    /// Does everything that is due. What is done is told to the observer.
    ///
    /// # Errors
    /// If a process cannot be had where it should be.
    pub fn carry_out(&mut self, fleet: &mut Fleet, observer: &mut impl Observer) -> Result<(), FleetError> {
        while let Some(step) = self.past.steps.front().copied().filter(|step| step.at <= self.now()) {
            // What could not be noted is not done: what is noted already shows whether it could.
            if !observer.note(&self.past) {
                return Ok(());
            }
            self.past.steps.pop_front();
            self.act(step, fleet, observer)?;
        }
        self.remind(fleet);
        self.see_off(fleet, observer)?;
        if !self.elsewhere.is_empty() && observer.note(&self.past) {
            fleet.hand_over(std::mem::take(&mut self.elsewhere));
        }
        self.settle(fleet, observer)
    }

    /// What killing a site by order comes to at this time, which restarts so much later, unless it is for good.
    ///
    /// # Errors
    /// Why it cannot be done.
    pub fn plan_kill(
        &self,
        site: SiteId,
        down: Option<Span>,
        now: Time,
        fleet: &Fleet,
    ) -> Result<Killing, String> {
        let name = self.grid.site(site).name.clone();
        if fleet.whereabouts(site) != Whereabouts::Up || self.past.leaving.contains(&site) {
            return Err(format!("{name} is not there, or is about to leave"));
        }
        if down.is_none() && !(self.may_lose && fleet.keeps_journals_here()) {
            return Err(format!(
                "nobody would take over what {name} has: that needs journals here ([node] journal, nodes that the \
                 coordinator starts) and protocol.lease"
            ));
        }
        let will_end = |other: SiteId| {
            let mut steps = self.past.steps.iter();
            steps.any(|step| step.site == other && matches!(step.deed, Deed::End | Deed::Leave))
        };
        if down.is_none() && !self.other_sites(site).any(|other| self.stays(fleet, other) && !will_end(other))
        {
            return Err(format!("no other site stays to take over what {name} has; stop the run instead"));
        }
        if !fleet.keeps_journals() {
            return Err(format!(
                "{name} keeps no journal, so its jobs would be lost and the run over; give the run [node] journal"
            ));
        }
        let mut past = Past { ordered: true, ..self.past.clone() };
        let (deed, done) = match down {
            None => (Deed::End, format!("{name} was killed for good")),
            Some(down) => {
                let at = now.saturating_add(down);
                let place = past.steps.partition_point(|step| step.at <= at);
                // Before the kill, with which it is kept.
                past.steps.insert(place, Step { at, site, deed: Deed::Begin });
                (Deed::Kill, format!("{name} was killed, and restarts with its journal at {at} s"))
            }
        };
        Ok(Killing { step: Step { at: now, site, deed }, done, past })
    }

    /// Kills a site by order, as was planned a moment ago.
    ///
    /// # Errors
    /// If the process cannot be killed.
    pub fn kill(
        &mut self,
        killing: Killing,
        fleet: &mut Fleet,
        observer: &mut impl Observer,
    ) -> Result<(), FleetError> {
        self.past = killing.past;
        self.act(killing.step, fleet, observer)
    }

    /// How long a job runs that no workload has.
    pub fn learn(&mut self, job: &TimedJob, meant: SiteId) {
        self.run_times.insert(job.spec.id, job.run_time);
        self.meant.insert(job.spec.id, (job.spec, meant));
    }

    /// Takes the next event of any site.
    pub fn observe(&mut self, event: &Event) {
        match event.kind {
            EventKind::Submitted { job, .. } => drop(self.submitted.insert(job)),
            EventKind::Completed { job, .. }
            | EventKind::Interrupted { job, killed: true, .. }
            | EventKind::Revoked { job, killed: true, .. } => {
                self.over.insert(job);
            }
            EventKind::Revoked { job, .. } => {
                self.over.remove(&job);
            }
            _ => {}
        }
    }

    /// All events that there were at some time since the last call were observed.
    pub fn looked(&mut self) {
        self.looks += 1;
    }

    /// The site where such a job is submitted: the planned one, or who stands in for that if it never comes back.
    pub fn entry(&self, fleet: &Fleet, job: &TimedJob, planned: SiteId) -> Option<SiteId> {
        let stays = |site: SiteId| self.stays(fleet, site);
        match stays(planned) {
            true => Some(planned),
            false => operator::successor(&self.grid, self.failover, planned, &job.spec, stays),
        }
    }

    /// All that could take over what a member has, as brokers cannot.
    fn other_sites(&self, site: SiteId) -> impl Iterator<Item = SiteId> {
        let sites = self.grid.sites().iter().filter(|other| other.processors > 0);
        sites.map(|other| other.id).filter(move |&other| other != site)
    }

    /// Whether a site is there or comes back, so that users may wait for it.
    fn stays(&self, fleet: &Fleet, site: SiteId) -> bool {
        fleet.whereabouts(site) != Whereabouts::Gone && !self.past.leaving.contains(&site)
    }

    /// The trace clocks go by this order from now on.
    pub fn set_clock(&mut self, start: StartOrder) {
        self.start = start;
    }

    /// What happened to sites since the last time, in order.
    pub fn said(&mut self) -> Vec<Event> {
        let said = self.past.said[self.fetched..].to_vec();
        self.fetched = self.past.said.len();
        said
    }

    /// What the reader should know.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let lost = |loss: &Loss| {
            let (name, at) = (self.name(loss.site), loss.at);
            format!(
                "{name} restarted without its journal at {at} s, and others took over what it had had; a job whose end it \
                 alone knew of has run twice"
            )
        };
        self.past.late.iter().map(ToString::to_string).chain(self.past.losses.iter().map(lost))
    }

    fn say(&mut self, site: SiteId, at: Time, kind: EventKind) {
        self.past.said.push(Event { at, site, kind });
    }

    fn come_late(&mut self, step: Step, done: Time) {
        let site = self.grid.site(step.site).name.clone();
        self.past.late.push(Late { site, step, done });
    }

    fn act(&mut self, step: Step, fleet: &mut Fleet, observer: &mut impl Observer) -> Result<(), FleetError> {
        let Step { at, site, deed } = step;
        if self.past.is_dead(site) {
            return Ok(());
        }
        let name = self.grid.site(site).name.clone();
        let now = self.now();
        let fits = match (deed, fleet.whereabouts(site)) {
            (Deed::Begin | Deed::Join, Whereabouts::Down) => true,
            (Deed::Kill | Deed::End | Deed::Pause | Deed::Leave, Whereabouts::Up) => true,
            (Deed::Resume, Whereabouts::Paused) => true,
            // Killed by order meanwhile, or back already.
            _ => !self.past.ordered,
        };
        if !fits {
            eprintln!(
                "note: what the experiment does to {name} at {at} s is left out: an order came before it"
            );
            return Ok(());
        }
        if self.alone_until.is_some_and(|until| at < until) {
            self.come_late(step, now);
        }
        match deed {
            Deed::Kill => {
                eprintln!("note: node {name} is killed at {at} s");
                let killed = self.start.at(fleet.kill(site)?);
                self.past.down.insert(site);
                self.say(site, killed, EventKind::Ended { how: EndCause::Crash });
            }
            Deed::End => {
                eprintln!("note: node {name} is killed at {at} s, for good");
                let killed = self.start.at(fleet.kill(site)?);
                self.bury(site, EndCause::Death, killed, None, fleet, observer)?;
            }
            Deed::Begin | Deed::Join => {
                eprintln!("note: node {name} begins at {at} s");
                self.past.down.remove(&site);
                if fleet.begin_again(site, &self.start) {
                    self.begun(site);
                }
            }
            Deed::Pause => {
                eprintln!("note: node {name} stands still at {at} s");
                fleet.pause(site)?;
                self.past.paused.insert(site);
                self.say(site, self.now(), EventKind::Ended { how: EndCause::Pause });
            }
            Deed::Resume => {
                eprintln!("note: node {name} goes on at {at} s");
                fleet.resume(site)?;
                self.past.paused.remove(&site);
                self.say(site, now, EventKind::Begun { how: BeginCause::Resume });
            }
            Deed::Leave => {
                eprintln!("note: site {name} leaves at {at} s");
                self.past.leaving.insert(site);
                // One whose clock is about to go on refuses; one that has ended is seen at the next look.
                if fleet.leave(site).is_err() {
                    self.forgetful.insert(site);
                }
                self.say(site, now, EventKind::Dismissed {});
            }
        }
        observer.note(&self.past);
        Ok(())
    }

    /// Tells sites to leave once more that have forgotten it. One that is not ready for that is told later.
    fn remind(&mut self, fleet: &mut Fleet) {
        for site in std::mem::take(&mut self.forgetful) {
            let up = fleet.whereabouts(site) == Whereabouts::Up;
            if self.past.leaving.contains(&site) && !(up && fleet.leave(site).is_ok()) {
                self.forgetful.insert(site);
            }
        }
    }

    /// Ends the nodes of sites that have left.
    fn see_off(&mut self, fleet: &mut Fleet, observer: &mut impl Observer) -> Result<(), FleetError> {
        for site in self.past.leaving.clone() {
            if !fleet.has_left(site) {
                continue;
            }
            let dismissed = fleet.dismiss(site, STOP_PATIENCE, &mut |event| {
                self.observe(&event);
                observer.event(event);
            })?;
            let Some(remains) = dismissed else { continue };
            let at = self.now();
            self.part(site, at, false, remains.arrivals, fleet);
            eprintln!("note: site {} has left", self.grid.site(site).name);
            self.say(site, at, EventKind::Ended { how: EndCause::Leave });
            observer.note(&self.past);
        }
        Ok(())
    }

    /// Whether a site that has left is still to be ended.
    pub fn anybody_has_left(&self, fleet: &Fleet) -> bool {
        self.past.leaving.iter().any(|&site| fleet.has_left(site))
    }

    /// A node was found at a time to have ended.
    pub fn found_ended(&mut self, site: SiteId, at: Time, observer: &mut impl Observer) {
        self.say(site, at, EventKind::Ended { how: EndCause::Found });
        observer.note(&self.past);
    }

    /// A node that had ended was found to have restarted. How it had ended, if that was said.
    pub fn found_begun(&mut self, site: SiteId, observer: &mut impl Observer) -> Option<EndCause> {
        let how = self.begun(site);
        observer.note(&self.past);
        how
    }

    /// Says that a site is there again, if it was said that it had ended: how.
    fn begun(&mut self, site: SiteId) -> Option<EndCause> {
        if self.past.leaving.contains(&site) {
            self.forgetful.insert(site);
        }
        let ended = self.past.how_ended(site)?;
        let how = if ended == EndCause::Absent { BeginCause::Join } else { BeginCause::Restart };
        self.say(site, self.now(), EventKind::Begun { how });
        Some(ended)
    }

    /// A node has ended, and its journal cannot be read: its site restarts without it. Others take over what it had.
    ///
    /// # Errors
    /// If the journal cannot be set aside, or it cannot be noted. Then it is to be tried again.
    pub fn begin_anew(
        &mut self,
        site: SiteId,
        at: Time,
        fleet: &mut Fleet,
        observer: &mut impl Observer,
    ) -> io::Result<()> {
        fleet.set_journal_aside(site)?;
        let before = self.past.clone();
        self.past.losses.push(Loss { site, at, settled: false });
        self.has_been_told(site);
        // Else another coordinator would hand it again what it may have executed.
        if !observer.note(&self.past) {
            self.past = before;
            return Err(io::Error::other("what is done cannot be noted"));
        }
        let clock = self.start;
        let mut hear = |event: Event| {
            self.observe(&event);
            observer.event(event);
        };
        fleet.begin_anew(site, &clock, &mut hear);
        if self.past.how_ended(site).is_none() {
            // What it executed ended with it, and the new incarnation does not say so.
            self.say(site, at, EventKind::Ended { how: EndCause::Found });
        }
        let to_come = self.never_submitted(site, at);
        // In place of what it did not hear of yet, which is among these, or others take it over.
        self.elsewhere.insert(site, to_come);
        Ok(())
    }

    /// A site whose journal is lost may have adopted what it did not confirm: nobody adopts that once more under the same
    /// epoch.
    fn has_been_told(&mut self, site: SiteId) {
        let adopting = self.past.adopting.remove(&site).unwrap_or_default();
        self.past.adopted.extend(adopting.iter().map(|adoption| (adoption.job.spec.id, adoption.epoch)));
    }

    /// Whether nothing happens to any site.
    pub fn is_empty(&self) -> bool {
        !self.planned && !self.past.ordered && self.past.parted.is_empty() && self.past.losses.is_empty()
    }

    /// Whether something is to come that nobody can hasten: a lease that is not over, with somebody there to take over
    /// what it is about, or a site that comes back.
    pub fn is_pending(&self, fleet: &Fleet) -> bool {
        let now = self.now();
        let lasts = |since: Time| self.lease.is_some_and(|lease| now.since(since) < lease);
        let waits = |parted: &Parted| parted.died && !parted.settled && lasts(parted.at);
        let forgotten = self.past.losses.iter().any(|loss| !loss.settled && lasts(loss.at));
        let somebody = self.grid.sites().iter().any(|site| fleet.whereabouts(site.id) != Whereabouts::Gone);
        somebody && (forgotten || self.past.parted.iter().any(waits))
            || self.past.steps.iter().any(|step| {
                // What is due and not done, as it cannot be noted, may never be.
                step.at > now && matches!(step.deed, Deed::Begin | Deed::Join | Deed::Resume)
            })
    }

    /// Whether others may take over the jobs of a site, and somebody is there who could.
    pub fn may_lose(&self, site: SiteId, fleet: &Fleet) -> bool {
        let others = &mut self.other_sites(site);
        self.may_lose && !self.past.is_dead(site) && others.any(|other| fleet.may_come_back(other))
    }

    /// How long until the next thing is to be done, at most `most`; also where it should have been done by then, and was not
    /// because it cannot be noted.
    pub fn wait(&self, most: Duration) -> Duration {
        let Some(step) = self.past.steps.front() else { return most };
        let (now, factor) = (self.now(), self.start.factor);
        if wall_span(now.since(step.at), factor) >= most {
            return most;
        }
        wall_span(step.at.since(now), factor).min(most)
    }

    /// The name of a site.
    pub fn name(&self, site: SiteId) -> String {
        self.grid.site(site).name.clone()
    }

    /// Trace time now, by the wall clock and the start order.
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
