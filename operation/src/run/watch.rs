//! The time a run takes: looks at all nodes a few times a second, fetches their events as they come, and says how
//! it ended.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use experiments::interrupt::Interrupt;
use experiments::progress::Progress;
use node::control::api::{Outstanding, Phase, Status};
use outputs::orders::Given;
use scheduler::event::EndCause;
use scheduler::{Event, EventKind, JobId, SiteId, TimedJob};

use super::merge::Merge;
use super::orders::{Orders, Stage};
use super::outages::{Observer, Outages};
use super::past::Past;
use super::plan::{Plan, wall_span};
use super::remaining::Remaining;
use crate::Fleet;
use crate::fleet::{FleetError, Limit, Restarted, Whereabouts};

/// How often nodes are asked. Each question takes a node some tenths of a millisecond, in which it does nothing
/// else, so not more often than a user would want to look.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// The same once all jobs have ended: nothing is left that could be disturbed.
const LOOK_EVERY_AT_THE_END: Duration = Duration::from_millis(50);

/// How long a node that does not answer is watched for its end, and how often.
const END_PATIENCE: Duration = Duration::from_secs(1);
const END_POLL: Duration = Duration::from_millis(10);

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every job has ended, and every transfer is settled.
    Finished,
    /// The user wanted it to stop.
    Interrupted {
        /// Jobs that had ended.
        completed: u64,
    },
    /// A node has ended, or does not answer.
    Lost {
        /// Which, and how.
        reason: String,
        /// The end of its log, if it has ended.
        log: Option<String>,
    },
    /// Nothing happened for too long, and nothing was to come.
    Stalled {
        /// How long nothing had happened, on the wall clock.
        patience: Duration,
        /// What is left, site by site.
        outstanding: Vec<String>,
    },
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ending::Finished => f.write_str("finished"),
            Ending::Interrupted { completed } => write!(f, "interrupted after {completed} jobs"),
            Ending::Lost { reason, .. } => f.write_str(reason),
            Ending::Stalled { patience, outstanding } => write!(
                f,
                "nothing happened for {patience:?} (run.stall_timeout); outstanding: {}",
                outstanding.join("; ")
            ),
        }
    }
}

/// Who is told what happens, as it does.
pub trait Onlooker {
    /// An event, in the order of time.
    fn event(&mut self, event: &Event);
    /// An order is about to be carried out, and with it this will have been done about sites, if anything.
    ///
    /// # Errors
    /// If it cannot be kept: then it must not be carried out.
    fn order(&mut self, given: &Given, past: Option<&Past>) -> io::Result<()>;
    /// That order was carried out, and this came of it; before any event of the job that it made.
    fn ordered(&mut self, given: &Given);
    /// All nodes, after each look at them, and what is ordered by then.
    fn look(&mut self, fleet: &Fleet, statuses: &[Status], orders: &Orders);
    /// So much was done about sites, to be kept before anything follows from it.
    /// False if that is impossible.
    fn noted(&mut self, past: &Past) -> bool;
    /// Whether what is done can be kept; tries again if it could not.
    fn keeps(&mut self) -> bool;
    /// Nothing else is to come, and the last events are to be fetched.
    fn last(&mut self, fleet: &mut Fleet);
}

/// What is seen of a run while it lasts.
pub struct Watch<'a> {
    plan: &'a Plan,
    orders: Orders,
    interrupt: &'a Interrupt,
    jobs: u64,
    stall: Duration,
    merge: Merge,
    progress: Progress,
    remaining: Remaining,
    statuses: Vec<Status>,
    silent: Vec<String>,
    /// Jobs that have ended.
    ended: BTreeSet<JobId>,
    outages: Outages,
    /// Whether nodes that end are started again, and how often each was.
    restart: bool,
    restarts: BTreeMap<SiteId, u32>,
    /// How often in a row one could not be started again.
    failures: BTreeMap<SiteId, u32>,
    /// Limits on that, and how often each was hit.
    limits_hit: Vec<(Limit, u64)>,
}

impl<'a> Watch<'a> {
    /// For a run of these jobs.
    pub fn new(
        plan: &'a Plan,
        jobs: &[TimedJob],
        outages: Outages,
        orders: Orders,
        interrupt: &'a Interrupt,
    ) -> Watch<'a> {
        Watch {
            plan,
            orders,
            interrupt,
            jobs: jobs.len() as u64,
            stall: plan.stall,
            merge: Merge::new(plan.nodes.len()),
            progress: Progress::new(jobs.len()),
            remaining: Remaining::new(jobs, plan.end),
            statuses: Vec::new(),
            silent: Vec::new(),
            ended: BTreeSet::new(),
            outages,
            restart: plan.restart,
            restarts: BTreeMap::new(),
            failures: BTreeMap::new(),
            limits_hit: Vec::new(),
        }
    }

    /// Watches until the run ends, one way or another, and carries out orders meanwhile.
    pub fn until_end(&mut self, fleet: &mut Fleet, onlooker: &mut impl Onlooker) -> Ending {
        let ending = match self.look_on(fleet, onlooker) {
            Ok(ending) => ending,
            Err(FleetError::Ended { name, status, log }) => {
                let reason = format!("node {name} ended with {status} during the run");
                Ending::Lost { reason, log: Some(log) }
            }
            Err(error) => Ending::Lost { reason: error.to_string(), log: None },
        };
        onlooker.last(fleet);
        let merge = &mut self.merge;
        self.outages.said().into_iter().for_each(|event| merge.say(event));
        self.silent = fleet.salvage_events(&mut |event| merge.push(event));
        merge.finish(&mut |event| onlooker.event(event));
        ending
    }

    fn look_on(&mut self, fleet: &mut Fleet, onlooker: &mut impl Onlooker) -> Result<Ending, FleetError> {
        let mut seen = Vec::new();
        let mut changed = Instant::now();
        let mut failing: Option<Instant> = None;
        loop {
            let looked = self.act(fleet, onlooker).and_then(|acted| {
                self.look(fleet)?;
                Ok(acted)
            });
            let completed = self.ended.len() as u64;
            match looked {
                Ok(acted) => {
                    failing = None;
                    if acted || self.orders.is_paused() {
                        changed = Instant::now();
                    }
                }
                Err(_) if self.interrupt.is_set() => return Ok(Ending::Interrupted { completed }),
                Err(error) => {
                    let since = *failing.get_or_insert_with(Instant::now);
                    let copes = self.copes_with(&error, since, fleet, onlooker)?;
                    if copes && since.elapsed() < self.stall {
                        continue;
                    }
                    // What cannot be started again may be tried for ever while no look gets through.
                    return if copes { Ok(self.stalled(fleet)) } else { Err(error) };
                }
            }
            self.merge.release(fleet.known_until(), &mut |event| onlooker.event(event));
            onlooker.look(fleet, &self.statuses, &self.orders);
            let left = self.remaining.left(self.outages.now(), &self.ended);
            self.progress.expect(left.map(|left| wall_span(left, self.orders.clock().factor)));
            self.progress.set(completed);
            let quiet = fleet.is_quiet_by(&self.statuses);
            if quiet && completed >= self.jobs && !self.outages.anybody_has_left(fleet) {
                return Ok(Ending::Finished);
            }
            if self.interrupt.is_set() {
                return Ok(Ending::Interrupted { completed });
            }
            let now = moves(&self.statuses);
            // What one said last that does not answer says nothing of what is to come.
            let here = |status: &&Status| fleet.whereabouts(status.site) == Whereabouts::Up;
            let to_come = |status: &Status| status.outstanding.arrivals > 0 || status.outstanding.running > 0;
            let to_come = self.statuses.iter().filter(here).any(to_come);
            if now != seen || to_come || self.outages.is_pending(fleet) {
                (seen, changed) = (now, Instant::now());
            }
            let all_ended = completed >= self.jobs;
            if changed.elapsed() >= self.stall {
                // Each job has ended, and for so long nobody did anything but send heartbeats.
                let settled =
                    self.statuses.iter().filter(here).all(|status| status.outstanding.has_only_frames());
                let is_over =
                    all_ended && settled && !fleet.awaits_any() && !self.outages.anybody_has_left(fleet);
                return Ok(if is_over { Ending::Finished } else { self.stalled(fleet) });
            }
            let pause = if all_ended { LOOK_EVERY_AT_THE_END } else { LOOK_EVERY };
            std::thread::sleep(self.outages.wait(pause));
        }
    }

    /// Does what is due, and what was ordered. Whether anything was ordered.
    fn act(&mut self, fleet: &mut Fleet, onlooker: &mut impl Onlooker) -> Result<bool, FleetError> {
        // What was said of a site comes before what is read of it now.
        self.outages.said().into_iter().for_each(|event| self.merge.say(event));
        if fleet.awaits_any() {
            self.tend(fleet, onlooker)?;
        }
        let mut ear = Ear { merge: &mut self.merge, ended: &mut self.ended, onlooker: &mut *onlooker };
        if !self.interrupt.is_set() && ear.onlooker.keeps() {
            self.outages.carry_out(fleet, &mut ear)?;
        }
        let mut stage = Stage { plan: self.plan, fleet: &mut *fleet, outages: &mut self.outages };
        let done = self.orders.carry_out(&mut stage, &mut ear)?;
        self.outages.said().into_iter().for_each(|event| self.merge.say(event));
        for given in &done {
            self.jobs += u64::from(given.job.is_some());
            if let Some(job) = &given.job {
                self.progress.add();
                self.remaining.add(job);
            }
        }
        Ok(!done.is_empty())
    }

    /// Looks at all nodes, tells them what they have not heard or have forgotten, and fetches their events.
    fn look(&mut self, fleet: &mut Fleet) -> Result<(), FleetError> {
        let statuses = fleet.statuses()?;
        self.orders.remind(fleet, &statuses)?;
        let unstarted = |status: &&Status| status.phase < Phase::Armed && !self.orders.is_paused();
        for status in statuses.iter().filter(unstarted) {
            if fleet.whereabouts(status.site) == Whereabouts::Up {
                fleet.continue_clock(status.site, &self.orders.clock())?;
            }
        }
        self.statuses = statuses;
        // After the look, so that what is fetched is all that happened before it.
        let (merge, ended) = (&mut self.merge, &mut self.ended);
        let outages = &mut self.outages;
        fleet.take_events(&mut |event| {
            outages.observe(&event);
            take(event, merge, ended);
        })?;
        self.outages.looked();
        Ok(())
    }

    fn stalled(&self, fleet: &Fleet) -> Ending {
        let cut = self.orders.cuts().iter().map(|(from, to)| format!("site {from} to {to} is cut by order"));
        let away = |status: &Status| {
            let words = match fleet.whereabouts(status.site) {
                Whereabouts::Up => return None,
                Whereabouts::Gone => "has ended for good",
                Whereabouts::Down => "has ended",
                Whereabouts::Paused => "stands still",
            };
            Some(format!("{} {words}", status.name))
        };
        let away = self.statuses.iter().filter_map(away);
        let outstanding = self.statuses.iter().filter_map(outstanding).chain(cut).chain(away).collect();
        Ending::Stalled { patience: self.stall, outstanding }
    }

    /// A look has failed, as all have since then: whether to take another. Nodes that have ended are started again, or
    /// others go on without them; one that runs and does not answer may do so at the next look.
    fn copes_with(
        &mut self,
        error: &FleetError,
        since: Instant,
        fleet: &mut Fleet,
        onlooker: &mut impl Onlooker,
    ) -> Result<bool, FleetError> {
        let unanswered = matches!(error, FleetError::Client(error) if error.is_of_one_that_ends());
        if !unanswered && !matches!(error, FleetError::Ended { .. }) {
            return Ok(false);
        }
        // A process ends a moment after its connections.
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            if self.tend(fleet, onlooker)? {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(END_POLL);
        }
        let again = unanswered && since.elapsed() < self.stall;
        if again {
            eprintln!("note: {error}; it is asked again");
        }
        Ok(again)
    }

    /// Starts the nodes again that have ended, or goes on without them. Whether there was anything to be seen.
    fn tend(&mut self, fleet: &mut Fleet, onlooker: &mut impl Onlooker) -> Result<bool, FleetError> {
        let found = self.outages.now();
        let restarted = fleet.restart_ended(self.restart)?;
        self.limits_hit = fleet.limits_hit().collect();
        let any = !restarted.is_empty();
        let Restarted { ended, begun, failed, lost } = restarted;
        let mut ear = Ear { merge: &mut self.merge, ended: &mut self.ended, onlooker: &mut *onlooker };
        ended.into_iter().for_each(|site| self.outages.found_ended(site, found, &mut ear));
        for site in begun {
            let name = self.outages.name(site);
            self.failures.remove(&site);
            if self.outages.found_begun(site, &mut ear) == Some(EndCause::Found) {
                eprintln!("note: node {name} has ended and was started again");
                *self.restarts.entry(site).or_default() += 1;
            }
        }
        for (site, reason) in failed {
            self.tell_failure(site, &reason);
        }
        for (site, error) in lost {
            if !self.go_on_without(site, &error, fleet, onlooker)? {
                return Err(error);
            }
        }
        Ok(any)
    }

    fn tell_failure(&mut self, site: SiteId, reason: &str) {
        let times = self.failures.entry(site).or_default();
        *times += 1;
        if times.is_power_of_two() {
            let name = self.outages.name(site);
            eprintln!("note: node {name} could not be started again, and is tried again: {reason}");
        }
    }

    /// A node has ended and is not started again: others take over what it had, if they may; false if not. Its site begins
    /// again without its journal if it is for want of that.
    fn go_on_without(
        &mut self,
        site: SiteId,
        error: &FleetError,
        fleet: &mut Fleet,
        onlooker: &mut impl Onlooker,
    ) -> Result<bool, FleetError> {
        if !self.outages.may_lose(site, fleet) {
            return Ok(false);
        }
        if !onlooker.noted(self.outages.past()) {
            // Another coordinator would not know of it.
            return Ok(true);
        }
        let name = self.outages.name(site);
        let at = self.outages.now();
        let mut ear = Ear { merge: &mut self.merge, ended: &mut self.ended, onlooker };
        let is_lost = self.restart && (error.is_about_a_journal() || fleet.lost_journal(site).is_some());
        if is_lost && fleet.may_begin_anew(site) {
            match self.outages.begin_anew(site, at, fleet, &mut ear) {
                Ok(()) => eprintln!(
                    "note: {error}\nnode {name} restarts without its journal; others take over what it had, at the \
                     latest after the lease, and a job whose end is not known may run twice"
                ),
                Err(reason) => self.tell_failure(site, &reason.to_string()),
            }
            return Ok(true);
        }
        eprintln!("note: node {name} has ended for good; others take over its jobs after the lease: {error}");
        fleet.kill(site)?;
        let lost = error.is_about_a_journal().then_some(error);
        self.outages.bury(site, EndCause::Found, at, lost, fleet, &mut ear)?;
        Ok(true)
    }

    /// Whether no node ended or stood still: only then does a simulation say what should have happened.
    pub fn was_undisturbed(&self) -> bool {
        self.statuses.iter().all(|status| status.restarts == 0) && self.outages.is_empty()
    }

    /// All orders that were carried out.
    pub fn given(&self) -> &[Given] {
        self.orders.given()
    }

    /// All nodes at the last look.
    pub fn last_statuses(&self) -> &[Status] {
        &self.statuses
    }

    /// What the reader should know of a run that ended like this.
    pub fn warnings(&self, ending: &Ending) -> Vec<String> {
        let mut warnings: Vec<String> = self.outages.warnings().collect();
        for (site, times) in &self.restarts {
            let name = self.outages.name(*site);
            warnings.push(format!("node {name} ended {times} times and was started again"));
        }
        for (limit, hits) in self.limits_hit.iter().filter(|(_, hits)| *hits > 0) {
            let (name, most) = (limit.name(), limit.most());
            warnings.push(format!("{hits} nodes hit the limit of {most} {name} and had ended for good"));
        }
        if let Ending::Lost { log: Some(log), .. } = ending {
            warnings.push(format!("the log of that node ends with\n{log}"));
        }
        if !self.silent.is_empty() {
            let names = self.silent.join(", ");
            warnings.push(format!("the last events of {names} are missing: no answer"));
        }
        let lost: u64 = self.statuses.iter().map(|status| status.frames_lost).sum();
        if lost > 0 {
            warnings.push(format!(
                "{lost} messages were not acknowledged and may be lost; the protocol repeats what matters, but later"
            ));
        }
        for status in &self.statuses {
            for (limit, hits) in status.limits_hit.iter().filter(|(_, hits)| **hits > 0) {
                warnings.push(format!("site {} hit its limit {limit} {hits} times", status.name));
            }
        }
        warnings
    }
}

/// Hears what is done about sites.
struct Ear<'a, O> {
    merge: &'a mut Merge,
    ended: &'a mut BTreeSet<JobId>,
    onlooker: &'a mut O,
}

impl<O: Onlooker> Observer for Ear<'_, O> {
    fn event(&mut self, event: Event) {
        take(event, self.merge, self.ended);
    }

    fn note(&mut self, past: &Past) -> bool {
        self.onlooker.noted(past)
    }

    fn keep(&mut self, given: &Given, past: Option<&Past>) -> io::Result<()> {
        self.onlooker.order(given, past)
    }

    fn ordered(&mut self, given: &Given) {
        self.onlooker.ordered(given);
    }
}

/// Takes an event that was fetched.
fn take(event: Event, merge: &mut Merge, ended: &mut BTreeSet<JobId>) {
    match event.kind {
        EventKind::Completed { job, .. }
        | EventKind::Interrupted { job, killed: true, .. }
        | EventKind::Revoked { job, killed: true, .. } => {
            ended.insert(job);
        }
        EventKind::Revoked { job, .. } => {
            ended.remove(&job);
        }
        _ => {}
    }
    merge.push(event);
}

/// What changes whenever a job gets further; messages alone do not.
fn moves(statuses: &[Status]) -> Vec<(u64, u64, usize, usize)> {
    let of_site = |status: &Status| {
        let Outstanding { waiting, leaving, .. } = status.outstanding;
        (status.submitted, status.completed, waiting, leaving)
    };
    statuses.iter().map(of_site).collect()
}

/// What a site has not finished, in words.
fn outstanding(status: &Status) -> Option<String> {
    let Outstanding { arrivals, waiting, running, leaving, delayed, in_flight, inbox, unanswered } =
        status.outstanding;
    let counts = [
        ("to come", arrivals as u64),
        ("waiting", waiting as u64),
        ("running", running as u64),
        ("given away and not settled", leaving as u64),
        ("messages under way", delayed as u64 + in_flight + inbox as u64),
    ];
    let mut words: Vec<String> = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{count} {what}"))
        .collect();
    if unanswered {
        words.push("a question without an answer".to_string());
    }
    (!words.is_empty()).then(|| format!("{}: {}", status.name, words.join(", ")))
}

/// Who misses whom while nodes connect, a line for each node that does.
pub fn missing(statuses: &[Status]) -> Vec<String> {
    let of_node = |status: &Status| {
        let missing: Vec<String> = status
            .links
            .iter()
            .filter(|link| !link.connected || link.rtt_us.is_none())
            .map(|link| match &link.problem {
                Some(problem) => format!("{} ({problem})", link.name),
                None => link.name.clone(),
            })
            .collect();
        (!status.connected).then(|| match missing.is_empty() {
            true => format!("{} does not listen yet", status.name),
            false => format!("{} misses {}", status.name, missing.join(", ")),
        })
    };
    statuses.iter().filter_map(of_node).collect()
}
