//! Every order of events of jobs that start in parts at two sites, tried on the real [`Decisions`] and [`Parts`].
//!
//! The network is the set of all messages ever sent: each may arrive never, late, often and in any order. Sites and the broker may crash
//! between any two events, and the broker may be gone for good, after which its jobs are taken over. In every state no part
//! runs that nobody decided on, none is freed that was and is whole, none starts twice or after it was freed, and no site has more
//! than it can; from every state repetitions alone free all processors and bring each job to its end or back to the broker.

use std::collections::BTreeSet;

use protocol::gang::{Attempt, Decisions, Effect, Order, Part, Parts, Reply, Settled};
use scheduler::{JobId, SiteId};

const SITES: [SiteId; 2] = [SiteId(1), SiteId(2)];

/// How much happens.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// Jobs, each with a processor at both sites.
    jobs: u64,
    /// Processors of each site.
    processors: u32,
    attempts: u32,
    crashes: u32,
    /// Whether the broker may be gone for good.
    gone: bool,
}

const CRASH: Bounds = Bounds { jobs: 1, processors: 1, attempts: 1, crashes: 1, gone: true };
const CRASHES: Bounds = Bounds { attempts: 1, crashes: 2, gone: false, ..CRASH };
const AGAIN: Bounds = Bounds { attempts: 2, gone: false, ..CRASH };
const WIDE: Bounds = Bounds { processors: 2, ..AGAIN };
const TWO_JOBS: Bounds = Bounds { jobs: 2, attempts: 2, crashes: 0, ..CRASHES };
const TWO_ROOMY: Bounds = Bounds { processors: 2, ..TWO_JOBS };

#[test]
fn one_attempt_one_crash_and_a_broker_that_may_be_gone() {
    assert_eq!(explore(CRASH, None), Ok(()));
}

#[test]
fn one_attempt_two_crashes() {
    assert_eq!(explore(CRASHES, None), Ok(()));
}

#[test]
fn two_attempts_one_crash() {
    assert_eq!(explore(AGAIN, None), Ok(()));
}

#[test]
fn two_attempts_one_crash_where_both_have_room() {
    assert_eq!(explore(WIDE, None), Ok(()));
}

#[test]
fn two_jobs_that_want_the_same_processors() {
    assert_eq!(explore(TWO_JOBS, None), Ok(()));
}

#[test]
fn two_jobs_that_both_have_room() {
    assert_eq!(explore(TWO_ROOMY, None), Ok(()));
}

/// Each rule is there for something: without it the search finds what goes wrong.
#[test]
fn mutant_each_rule_that_is_left_out_is_missed() {
    for (mistake, bounds, expected) in [
        (Mistake::DecisionUnwritten, CRASH, Broken::FreedThoughDecided),
        (Mistake::HoldUnwritten, CRASH, Broken::Stuck),
        (Mistake::GivesUp, CRASH, Broken::FreedThoughDecided),
        (Mistake::AbortForgotten, CRASH, Broken::StartedTwice),
        (Mistake::AbortIgnored, CRASH, Broken::Kept),
        (Mistake::NumbersReused, AGAIN, Broken::FreedThoughDecided),
        (Mistake::CommitsEarly, CRASH, Broken::Stuck),
        (Mistake::SilentOfUnknown, CRASH, Broken::Kept),
        (Mistake::EpochIgnored, CRASH, Broken::Kept),
        (Mistake::LossUntold, CRASH, Broken::HalfRuns),
        (Mistake::LossUnwritten, CRASHES, Broken::StartsTheRest),
        (Mistake::CommitsBroken, CRASH, Broken::StartsTheRest),
        (Mistake::LostPartRuns, CRASH, Broken::StartedTwice),
        (Mistake::SettledEarly, CRASH, Broken::HalfRuns),
        (Mistake::FloorTooHigh, TWO_ROOMY, Broken::Stuck),
    ] {
        let found = explore(bounds, Some(mistake)).expect_err("a mistake shows");
        assert_eq!(found, expected, "{mistake:?}");
    }
}

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// A crash of the broker forgets what it decided.
    DecisionUnwritten,
    /// A crash of a site forgets what it holds.
    HoldUnwritten,
    /// A site that is ready frees the processors by itself.
    GivesUp,
    /// A site forgets at once that it freed a part.
    AbortForgotten,
    /// A site that is ready does not obey an Abort.
    AbortIgnored,
    /// A broker that restarts gives out the same numbers.
    NumbersReused,
    /// The first that is ready is enough.
    CommitsEarly,
    /// A broker does not answer of attempts that it does not know.
    SilentOfUnknown,
    /// Sites do not care that a job was taken over.
    EpochIgnored,
    /// A broker does not tell the others that a part was lost.
    LossUntold,
    /// A crash of the broker forgets that a part was lost.
    LossUnwritten,
    /// A site that asks is told to start although a part was lost.
    CommitsBroken,
    /// A site that restarts knows nothing of what ran.
    LostPartRuns,
    /// A job waits again as soon as one part was lost.
    SettledEarly,
    /// The floor is the newest attempt.
    FloorTooHigh,
}

/// What must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    /// A part runs that nobody decided on.
    Undecided,
    /// A part is freed of an attempt that is decided on and whole.
    FreedThoughDecided,
    StartedTwice,
    StartedAfterFreed,
    /// A broker that knows of a lost part tells another to start.
    StartsTheRest,
    /// Parts of two attempts of one job run at once.
    TwoAttempts,
    /// A job is done that did not end everywhere.
    NotWhole,
    Overfull,
    /// Part of a broken attempt runs on once all messages have arrived.
    HalfRuns,
    /// Processors are kept for good.
    Kept,
    /// A decision is never settled.
    Stuck,
    /// A job is neither done nor at the broker.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Message {
    ToSite(usize, Attempt, Order),
    ToBroker(usize, Attempt, Reply),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    broker: Decisions,
    waiting: BTreeSet<JobId>,
    done: BTreeSet<JobId>,
    sites: [Parts; 2],
    network: BTreeSet<Message>,
    attempts: u32,
    crashes: u32,
    is_gone: bool,
    /// What happened, which no party knows.
    decided: BTreeSet<Attempt>,
    broken: BTreeSet<Attempt>,
    /// Those of which the broker heard it.
    known_broken: BTreeSet<Attempt>,
    started: BTreeSet<(usize, Attempt)>,
    freed: BTreeSet<(usize, Attempt)>,
    ended: BTreeSet<(usize, Attempt)>,
}

/// All states that can be reached, each with a run to its end.
fn explore(bounds: Bounds, mistake: Option<Mistake>) -> Result<(), Broken> {
    let search = Search { bounds, mistake };
    let start = State {
        broker: Decisions::new(1),
        waiting: (1..=bounds.jobs).map(JobId).collect(),
        done: BTreeSet::new(),
        sites: [Parts::default(), Parts::default()],
        network: BTreeSet::new(),
        attempts: bounds.attempts,
        crashes: bounds.crashes,
        is_gone: false,
        decided: BTreeSet::new(),
        broken: BTreeSet::new(),
        known_broken: BTreeSet::new(),
        started: BTreeSet::new(),
        freed: BTreeSet::new(),
        ended: BTreeSet::new(),
    };
    let (mut seen, mut open) = (BTreeSet::from([start.clone()]), vec![start]);
    while let Some(state) = open.pop() {
        search.check(&state)?;
        search.ends_well(&state)?;
        for next in search.nexts(&state)? {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    Ok(())
}

struct Search {
    bounds: Bounds,
    mistake: Option<Mistake>,
}

impl Search {
    fn has(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// All that may happen next.
    fn nexts(&self, state: &State) -> Result<Vec<State>, Broken> {
        let mut nexts = Vec::new();
        let mut add = |change: &dyn Fn(&mut State) -> Result<(), Broken>| {
            let mut next = state.clone();
            change(&mut next)?;
            nexts.push(next);
            Ok(())
        };
        for &message in &state.network {
            add(&|next| self.deliver(next, message))?;
        }
        if !state.is_gone {
            for &job in state.waiting.iter().filter(|&&job| state.attempts > 0 && !state.broker.has(job)) {
                add(&|next| self.begin(next, job))?;
            }
            for attempt in state.broker.preparing() {
                add(&|next| self.give_up(next, attempt))?;
            }
            if state.crashes > 0 {
                add(&|next| {
                    self.crash_broker(next);
                    Ok(())
                })?;
            }
            if self.bounds.gone {
                add(&|next| {
                    next.is_gone = true;
                    Ok(())
                })?;
            }
        }
        for place in 0..SITES.len() {
            for (attempt, part) in state.sites[place].all() {
                match part {
                    Part::Runs { .. } => add(&|next| {
                        end(next, place, attempt);
                        Ok(())
                    })?,
                    Part::Held { .. } if self.has(Mistake::GivesUp) => {
                        add(&|next| self.obey(next, place, attempt, Order::Abort))?;
                    }
                    _ => {}
                }
            }
            if state.crashes > 0 {
                add(&|next| {
                    self.crash_site(next, place);
                    Ok(())
                })?;
            }
            if state.is_gone && state.sites[place].epochs().is_empty() {
                add(&|next| {
                    self.take_over(next, place);
                    Ok(())
                })?;
            }
        }
        Ok(nexts)
    }

    fn begin(&self, state: &mut State, job: JobId) -> Result<(), Broken> {
        state.attempts -= 1;
        let orders = state.broker.begin(job, 0, SITES.map(|site| (site, 1)).into());
        self.post(state, orders)
    }

    fn give_up(&self, state: &mut State, attempt: Attempt) -> Result<(), Broken> {
        let orders = state.broker.gives_up(attempt);
        self.post(state, orders)
    }

    fn post(&self, state: &mut State, orders: Vec<(SiteId, Attempt, Order)>) -> Result<(), Broken> {
        for (site, attempt, order) in orders {
            let order = match order {
                Order::Prepare { processors, .. } if self.has(Mistake::FloorTooHigh) => {
                    Order::Prepare { processors, floor: attempt.number }
                }
                order => order,
            };
            if order == Order::Commit {
                if state.known_broken.contains(&attempt) {
                    return Err(Broken::StartsTheRest);
                }
                state.decided.insert(attempt);
            }
            state.network.insert(Message::ToSite(site.index(), attempt, order));
        }
        Ok(())
    }

    fn deliver(&self, state: &mut State, message: Message) -> Result<(), Broken> {
        match message {
            Message::ToSite(place, attempt, order) => self.obey(state, place, attempt, order),
            Message::ToBroker(..) if state.is_gone => Ok(()),
            Message::ToBroker(place, attempt, reply) => self.hear(state, place, attempt, reply),
        }
    }

    fn obey(&self, state: &mut State, place: usize, attempt: Attempt, order: Order) -> Result<(), Broken> {
        let site = &mut state.sites[place];
        let is_held = site.all().any(|part| part == (attempt, Part::Held { processors: 1 }));
        if is_held && order == Order::Abort && self.has(Mistake::AbortIgnored) {
            return Ok(());
        }
        let free = self.bounds.processors.saturating_sub(site.processors());
        let (reply, effect) = site.heard(attempt, order, free);
        if order == Order::Abort && self.has(Mistake::AbortForgotten) {
            let parts: Vec<(Attempt, Part)> = site.all().filter(|part| part.0 != attempt).collect();
            *site = Parts::restored(parts, site.epochs().clone(), site.floor());
        }
        let is_whole = state.decided.contains(&attempt) && !state.broken.contains(&attempt);
        match effect {
            Effect::Started if state.freed.contains(&(place, attempt)) => {
                return Err(Broken::StartedAfterFreed);
            }
            Effect::Started if !state.started.insert((place, attempt)) => return Err(Broken::StartedTwice),
            Effect::Freed if is_whole => return Err(Broken::FreedThoughDecided),
            Effect::Freed => drop(state.freed.insert((place, attempt))),
            Effect::Stopped => drop(state.broken.insert(attempt)),
            Effect::None | Effect::Held | Effect::Started => {}
        }
        state.network.extend(reply.map(|reply| Message::ToBroker(place, attempt, reply)));
        Ok(())
    }

    fn hear(&self, state: &mut State, place: usize, attempt: Attempt, reply: Reply) -> Result<(), Broken> {
        let is_known = state.broker.decided().contains_key(&attempt);
        let was_open = is_known || state.broker.preparing().any(|open| open == attempt);
        if is_known && reply == (Reply::Over { ended: false }) {
            state.known_broken.insert(attempt);
        }
        let (mut orders, settled) = state.broker.heard(SITES[place], attempt, reply);
        if reply == Reply::Ready && self.has(Mistake::CommitsEarly) && was_open {
            orders.extend(state.broker.heard(SITES[1 - place], attempt, reply).0);
        }
        if !was_open && self.has(Mistake::SilentOfUnknown) {
            orders.clear();
        }
        if is_known && self.has(Mistake::LossUntold) {
            orders.retain(|order| order.2 != Order::Abort);
        }
        if is_known && reply == Reply::Ready && self.has(Mistake::CommitsBroken) {
            orders = vec![(SITES[place], attempt, Order::Commit)];
        }
        match settled {
            Some(Settled::Ended(job)) => drop(state.done.insert(job)),
            Some(Settled::Waits { job, .. }) => drop(state.waiting.insert(job)),
            None => {}
        }
        if state.broker.decided().contains_key(&attempt) {
            state.waiting.remove(&attempt.job);
        }
        let is_broken = state.broker.decided().get(&attempt).is_some_and(|decision| decision.is_broken());
        if is_broken && self.has(Mistake::SettledEarly) {
            let mut decided = state.broker.decided().clone();
            decided.remove(&attempt);
            state.broker = Decisions::restored(state.broker.next(), decided);
            state.waiting.insert(attempt.job);
            orders.clear();
        }
        self.post(state, orders)
    }

    fn crash_broker(&self, state: &mut State) {
        state.crashes -= 1;
        let mut decided = state.broker.decided().clone();
        if self.has(Mistake::DecisionUnwritten) {
            state.waiting.extend(decided.keys().map(|attempt| attempt.job));
            decided.clear();
        }
        if self.has(Mistake::LossUnwritten) {
            decided.values_mut().for_each(|decision| decision.over.retain(|_, ended| *ended));
        }
        let next = if self.has(Mistake::NumbersReused) { 1 } else { state.broker.next() };
        state.broker = Decisions::restored(next, decided);
    }

    fn crash_site(&self, state: &mut State, place: usize) {
        state.crashes -= 1;
        let runs = |part: &(Attempt, Part)| matches!(part.1, Part::Runs { .. });
        let holds = |part: &(Attempt, Part)| matches!(part.1, Part::Held { .. });
        let site = &mut state.sites[place];
        state.broken.extend(site.all().filter(runs).map(|part| part.0));
        let forgets = |part: &(Attempt, Part)| {
            runs(part) && self.has(Mistake::LostPartRuns) || holds(part) && self.has(Mistake::HoldUnwritten)
        };
        let written: Vec<(Attempt, Part)> = site.all().filter(|part| !forgets(part)).collect();
        *site = Parts::restored(written, site.epochs().clone(), site.floor());
        site.begun_again();
    }

    /// A site learns that the jobs of a broker that is gone are another's.
    fn take_over(&self, state: &mut State, place: usize) {
        if self.has(Mistake::EpochIgnored) {
            return;
        }
        for job in 1..=self.bounds.jobs {
            for (attempt, effect) in state.sites[place].superseded(JobId(job), 1) {
                if effect == Effect::Stopped {
                    state.broken.insert(attempt);
                }
            }
        }
    }

    fn check(&self, state: &State) -> Result<(), Broken> {
        let running = |place: usize| {
            let runs = |part: &(Attempt, Part)| matches!(part.1, Part::Runs { .. });
            state.sites[place].all().filter(runs).map(|part| part.0).collect::<Vec<Attempt>>()
        };
        let (here, there) = (running(0), running(1));
        if here.iter().chain(&there).any(|attempt| !state.decided.contains(attempt)) {
            return Err(Broken::Undecided);
        }
        if here.iter().any(|one| there.iter().any(|other| one.job == other.job && one != other)) {
            return Err(Broken::TwoAttempts);
        }
        if state.sites.iter().any(|site| site.processors() > self.bounds.processors) {
            return Err(Broken::Overfull);
        }
        let ended =
            |attempt: &Attempt| (0..SITES.len()).all(|place| state.ended.contains(&(place, *attempt)));
        let is_whole =
            |job: &JobId| state.decided.iter().any(|attempt| attempt.job == *job && ended(attempt));
        if state.done.iter().all(is_whole) { Ok(()) } else { Err(Broken::NotWhole) }
    }

    /// All that is on its way is lost, and nothing else goes wrong: what is repeated arrives, round by round.
    fn ends_well(&self, state: &State) -> Result<(), Broken> {
        let mut state = state.clone();
        state.network.clear();
        // Each round takes every attempt one step further, and no attempt has so many.
        for _ in 0..12 {
            if state.is_gone {
                (0..SITES.len()).for_each(|place| self.take_over(&mut state, place));
            } else {
                let mut orders = state.broker.again();
                if self.has(Mistake::LossUntold) {
                    orders.retain(|order| order.2 != Order::Abort);
                }
                self.post(&mut state, orders)?;
            }
            for place in 0..SITES.len() {
                let replies: Vec<(Attempt, Reply)> = state.sites[place].again().collect();
                let replies =
                    replies.into_iter().map(|(attempt, reply)| Message::ToBroker(place, attempt, reply));
                state.network.extend(replies);
            }
            self.deliver_all(&mut state)?;
            // Of attempts that keep each other's processors one is given up.
            let stuck = state.broker.preparing().next().filter(|_| !state.is_gone);
            if let Some(attempt) = stuck {
                self.give_up(&mut state, attempt)?;
                self.deliver_all(&mut state)?;
            }
            for place in 0..SITES.len() {
                let running: Vec<Attempt> = state.sites[place]
                    .all()
                    .filter(|part| matches!(part.1, Part::Runs { .. }))
                    .map(|part| part.0)
                    .collect();
                for attempt in running {
                    if !state.is_gone && state.broken.contains(&attempt) {
                        return Err(Broken::HalfRuns);
                    }
                    end(&mut state, place, attempt);
                }
            }
            self.deliver_all(&mut state)?;
        }
        if state.sites.iter().any(|site| site.processors() > 0) {
            return Err(Broken::Kept);
        }
        if state.is_gone {
            return Ok(());
        }
        if !state.broker.decided().is_empty() {
            return Err(Broken::Stuck);
        }
        let is_somewhere = |job: &JobId| state.waiting.contains(job) || state.done.contains(job);
        if (1..=self.bounds.jobs).all(|job| is_somewhere(&JobId(job))) { Ok(()) } else { Err(Broken::Lost) }
    }

    fn deliver_all(&self, state: &mut State) -> Result<(), Broken> {
        while let Some(message) = state.network.pop_first() {
            self.deliver(state, message)?;
            self.check(state)?;
        }
        Ok(())
    }
}

/// A part runs to its end.
fn end(state: &mut State, place: usize, attempt: Attempt) {
    state.ended.insert((place, attempt));
    let reply = state.sites[place].ended(attempt);
    state.network.insert(Message::ToBroker(place, attempt, reply));
}
