//! Every order of events of a hand-over between two or three sites, tried on the real [`Ledger`].
//!
//! The network is the set of all messages ever sent: each may arrive never, late, often and in any order. A site
//! may crash after every write and before every send; what it wrote survives. In every state a job was started at
//! most once and has one owner or an unanswered transfer; from every state retries alone give each job one owner.
//! Sites here decide by themselves what to do next; how a peer decides is tested in the simulator.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use protocol::handover::{Answer, Arrival, Custody, Ledger, Record};
use protocol::message::Transfer;
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time};

#[test]
fn two_sites_one_job_two_grants_two_crashes() {
    explore(Bounds { sites: 2, jobs: 1, grants: 2, crashes: 2 });
}

#[test]
fn two_sites_one_job_three_grants_one_crash() {
    explore(Bounds { sites: 2, jobs: 1, grants: 3, crashes: 1 });
}

#[test]
fn two_sites_two_jobs_one_grant_two_crashes() {
    explore(Bounds { sites: 2, jobs: 2, grants: 1, crashes: 2 });
}

#[test]
fn three_sites_one_job_two_grants_one_crash() {
    explore(Bounds { sites: 3, jobs: 1, grants: 2, crashes: 1 });
}

#[test]
#[ignore = "a minute or more; run with --release"]
fn two_sites_one_job_three_grants_two_crashes() {
    explore(Bounds { sites: 2, jobs: 1, grants: 3, crashes: 2 });
}

#[test]
#[ignore = "a minute or more; run with --release"]
fn three_sites_one_job_three_grants_without_crash() {
    explore(Bounds { sites: 3, jobs: 1, grants: 3, crashes: 0 });
}

#[test]
#[ignore = "minutes; run with --release"]
fn three_sites_one_job_three_grants_one_crash() {
    explore(Bounds { sites: 3, jobs: 1, grants: 3, crashes: 1 });
}

#[test]
#[ignore = "minutes; run with --release"]
fn two_sites_two_jobs_two_grants_without_crash() {
    explore(Bounds { sites: 2, jobs: 2, grants: 2, crashes: 0 });
}

#[test]
fn mutant_a_grant_that_is_reclaimed_after_a_time_is_caught() {
    assert_eq!(caught(Fault::ReclaimOnTimeout), Broken::Owners(JOB));
}

#[test]
fn mutant_an_answer_that_leaves_before_it_is_written_is_caught() {
    assert_eq!(caught(Fault::AnswerBeforeJournal), Broken::Lost(JOB));
}

#[test]
fn mutant_answers_forgotten_by_age_are_caught() {
    assert_eq!(caught(Fault::TombsForgottenByAge), Broken::Owners(JOB));
}

#[test]
fn mutant_a_decline_that_is_not_written_is_caught() {
    assert_eq!(caught(Fault::DeclineNotWritten), Broken::Owners(JOB));
}

#[test]
fn mutant_a_floor_that_is_not_written_is_caught() {
    assert_eq!(caught(Fault::FloorNotWritten), Broken::Owners(JOB));
}

#[test]
fn mutant_numbers_that_start_again_after_a_crash_are_caught() {
    // A number used twice is answered with what became of the other job.
    assert_eq!(caught(Fault::CounterNotWritten), Broken::Lost(JobId(2)));
}

#[test]
fn mutant_a_state_that_retries_do_not_settle_is_caught() {
    assert_eq!(caught(Fault::AnswerGivenOnce), Broken::Stuck);
}

/// How far a search goes.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    sites: usize,
    /// All at the first site in the beginning.
    jobs: u64,
    /// How often each job is granted at most, declined grants included.
    grants: u32,
    /// How many crashes of any site.
    crashes: u8,
}

/// What is done wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// An unanswered transfer is owned again without an answer.
    ReclaimOnTimeout,
    /// Accepted leaves before the acceptance is on disk.
    AnswerBeforeJournal,
    /// Any answer may be forgotten, without a floor.
    TombsForgottenByAge,
    DeclineNotWritten,
    /// Answers below a floor are deleted on disk, the floor is not kept there.
    FloorNotWritten,
    /// Numbers to a site begin at 1 again after a crash, if nothing is out to it.
    CounterNotWritten,
    /// A receiver says nothing to a repeated grant.
    AnswerGivenOnce,
}

/// What must not happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broken {
    StartedTwice(JobId),
    /// More than one site owns the job or started it.
    Owners(JobId),
    /// No owner and no unanswered transfer.
    Lost(JobId),
    /// After retries without loss a transfer is unanswered, or a job has not one owner.
    Stuck,
}

fn explore(bounds: Bounds) {
    let mut search = Search::new(bounds, Fault::None);
    let broken = search.run();
    println!("{bounds:?}: {} states, {} transitions", search.states.len(), search.transitions);
    assert_eq!(broken, None, "after\n{}", search.path());
    assert!(search.states.len() > 1000, "the bounds leave room for crossing messages");
}

fn caught(fault: Fault) -> Broken {
    let one_job = Bounds { sites: 2, jobs: 1, grants: 2, crashes: 1 };
    let bounds =
        if fault == Fault::CounterNotWritten { Bounds { jobs: 2, grants: 1, ..one_job } } else { one_job };
    let mut search = Search::new(bounds, fault);
    // Each fault is to be seen by the check that it is about, not by the one that happens to come first.
    search.retries = fault == Fault::AnswerGivenOnce;
    let broken = search.run().expect("the fault is caught");
    println!("{fault:?}: {broken:?} after {} states, by\n{}", search.at + 1, search.path());
    broken
}

const JOB: JobId = JobId(1);
const SITES_MAX: usize = 3;
const JOBS_MAX: usize = 2;
const MESSAGES_MAX: u32 = 256;

/// What a site knows of jobs and transfers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Table {
    ledger: Ledger,
    owned: BTreeMap<JobId, Custody>,
    started: BTreeSet<JobId>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Site {
    memory: Table,
    /// Survives a crash.
    disk: Table,
    /// What is still to be done of the last handler, in order. Lost in a crash.
    steps: VecDeque<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Write,
    Send(Message),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    from: usize,
    to: usize,
    content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Grant { transfer: Transfer, floor: u64 },
    Recall { number: u64, floor: u64 },
    Reply { number: u64, answer: Answer },
    Floor(u64),
}

/// One thing that happens, always at one site.
#[derive(Clone, Copy, Debug)]
enum Action {
    /// The next step of the last handler.
    Step,
    Crash,
    Start(JobId),
    Grant(JobId, usize),
    Retry(usize, u64),
    Recall(usize, u64),
    Floor(usize),
    Deliver {
        message: u32,
        wanted: bool,
    },
    Reclaim(usize, u64),
    Forget(usize, u64),
}

/// Sites and messages by number: small, and equal exactly if what they stand for is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    sites: [u32; SITES_MAX],
    sent: [u64; MESSAGES_MAX as usize / 64],
    starts: [u8; JOBS_MAX],
    crashes: u8,
}

/// Where a state came from: the state before, the site that acted, and what it did.
type Cause = (u32, u8, Action);

struct Search {
    bounds: Bounds,
    fault: Fault,
    /// Whether it is checked in every state that retries settle everything.
    retries: bool,
    sites: Numbered<Site>,
    messages: Numbered<Message>,
    found: BTreeSet<State>,
    /// In the order in which they were found.
    states: Vec<(State, Option<Cause>)>,
    /// Sites for which retries were seen to settle everything.
    settling: BTreeSet<[u32; SITES_MAX]>,
    transitions: u64,
    /// The state looked at last.
    at: usize,
}

impl Search {
    fn new(bounds: Bounds, fault: Fault) -> Search {
        let owned = (1..=bounds.jobs).map(|job| (JobId(job), Custody::default())).collect();
        let first = Table { owned, ..Table::default() };
        let mut sites = Numbered::default();
        let mut numbers = [0; SITES_MAX];
        for (site, number) in numbers.iter_mut().enumerate().take(bounds.sites) {
            let table = if site == 0 { first.clone() } else { Table::default() };
            *number = sites.number(Site { memory: table.clone(), disk: table, steps: VecDeque::new() });
        }
        let state = State { sites: numbers, sent: [0; 4], starts: [0; JOBS_MAX], crashes: 0 };
        Search {
            bounds,
            fault,
            retries: true,
            sites,
            messages: Numbered::default(),
            found: BTreeSet::from([state]),
            states: vec![(state, None)],
            settling: BTreeSet::new(),
            transitions: 0,
            at: 0,
        }
    }

    /// Breadth first, so that what is found is found in the fewest steps.
    fn run(&mut self) -> Option<Broken> {
        while self.at < self.states.len() {
            let state = self.states[self.at].0;
            let stuck =
                |search: &mut Search| if search.retries { search.check_retries(&state) } else { None };
            if let Some(broken) = self.check(&state).or_else(|| stuck(self)) {
                return Some(broken);
            }
            for site in 0..self.bounds.sites {
                for action in self.actions(&state, site) {
                    self.transitions += 1;
                    let after = self.act(state, site, action);
                    if self.found.insert(after) {
                        let before = u32::try_from(self.at).expect("memory ends before");
                        self.states.push((after, Some((before, site as u8, action))));
                    }
                }
            }
            self.at += 1;
        }
        None
    }

    fn site(&self, state: &State, site: usize) -> &Site {
        self.sites.get(state.sites[site])
    }

    fn check(&self, state: &State) -> Option<Broken> {
        for number in 1..=self.bounds.jobs {
            let job = JobId(number);
            if state.starts[number as usize - 1] > 1 {
                return Some(Broken::StartedTwice(job));
            }
            let tables = || (0..self.bounds.sites).map(|site| &self.site(state, site).memory);
            let owners = tables().filter(|table| table.owns(job)).count();
            if owners > 1 {
                return Some(Broken::Owners(job));
            }
            let mut out = tables().flat_map(|table| table.ledger.jobs_out());
            if owners == 0 && !out.any(|(_, out)| out == job) {
                return Some(Broken::Lost(job));
            }
        }
        None
    }

    /// Drops every message, restarts every site, and lets each repeat once what is unanswered.
    fn check_retries(&mut self, state: &State) -> Option<Broken> {
        if !self.settling.insert(state.sites) {
            return None;
        }
        let mut sites: Vec<Site> = (0..self.bounds.sites).map(|at| self.site(state, at).clone()).collect();
        for site in &mut sites {
            site.restart(self.fault);
        }
        for from in 0..sites.len() {
            for to in 0..sites.len() {
                let out: Vec<Transfer> = sites[from].memory.ledger.out_to(site_id(to)).copied().collect();
                for transfer in out {
                    let floor = sites[from].memory.ledger.floor_to(site_id(to));
                    let message = Message { from, to, content: Content::Grant { transfer, floor } };
                    if let Some(answer) = sites[to].receive(&message, true, self.fault) {
                        sites[from].receive(&answer, true, self.fault);
                    }
                }
            }
        }
        let settled = sites.iter().all(|site| site.memory.ledger.is_settled());
        let owners = |job| sites.iter().filter(|site| site.memory.owns(job)).count();
        let owned = (1..=self.bounds.jobs).all(|job| owners(JobId(job)) == 1);
        (!settled || !owned).then_some(Broken::Stuck)
    }

    fn actions(&self, state: &State, at: usize) -> Vec<Action> {
        let mut actions = Vec::new();
        let site = self.site(state, at);
        if state.crashes < self.bounds.crashes {
            actions.push(Action::Crash);
        }
        if !site.steps.is_empty() {
            actions.push(Action::Step);
            return actions;
        }
        let others = || (0..self.bounds.sites).filter(|&other| other != at);
        for (&job, custody) in &site.memory.owned {
            actions.push(Action::Start(job));
            if custody.hops + custody.bounces < self.bounds.grants {
                actions.extend(others().map(|to| Action::Grant(job, to)));
            }
        }
        let ledger = &site.memory.ledger;
        for to in others() {
            for transfer in ledger.out_to(site_id(to)) {
                actions.push(Action::Retry(to, transfer.number));
                actions.push(Action::Recall(to, transfer.number));
                if self.fault == Fault::ReclaimOnTimeout {
                    actions.push(Action::Reclaim(to, transfer.number));
                }
            }
            if self.fault == Fault::TombsForgottenByAge {
                actions.extend(answers(ledger, to).map(|(number, _)| Action::Forget(to, number)));
            }
            if ledger.floor_to(site_id(to)) > 1 {
                actions.push(Action::Floor(to));
            }
        }
        for (message, Message { to, content, .. }) in self.messages.all() {
            if *to == at && state.sent[message as usize / 64] >> (message % 64) & 1 == 1 {
                actions.push(Action::Deliver { message, wanted: true });
                if matches!(content, Content::Grant { .. }) {
                    actions.push(Action::Deliver { message, wanted: false });
                }
            }
        }
        actions
    }

    fn act(&mut self, mut state: State, at: usize, action: Action) -> State {
        let mut site = self.site(&state, at).clone();
        let ledger = &mut site.memory.ledger;
        let mut sent = None;
        match action {
            Action::Step => match site.steps.pop_front().expect("offered only with steps") {
                Step::Write => site.write(),
                Step::Send(message) => sent = Some(message),
            },
            Action::Crash => {
                let before = site.clone();
                site.restart(self.fault);
                // A crash that nobody can notice is no crash.
                state.crashes += u8::from(site != before);
            }
            Action::Start(job) => {
                site.memory.owned.remove(&job);
                site.memory.started.insert(job);
                site.write();
                state.starts[job.0 as usize - 1] += 1;
            }
            Action::Grant(job, to) => {
                let custody = site.memory.owned.remove(&job).expect("only owned jobs are granted");
                let (record, transfer) = ledger.grant(site_id(to), spec(job), custody);
                ledger.apply(&record);
                let content = Content::Grant { transfer, floor: ledger.floor_to(site_id(to)) };
                site.write();
                site.steps.push_back(Step::Send(Message { from: at, to, content }));
            }
            Action::Retry(to, number) => {
                let transfer = *ledger.out(site_id(to), number).expect("it is out");
                let content = Content::Grant { transfer, floor: ledger.floor_to(site_id(to)) };
                sent = Some(Message { from: at, to, content });
            }
            Action::Recall(to, number) => {
                let content = Content::Recall { number, floor: ledger.floor_to(site_id(to)) };
                sent = Some(Message { from: at, to, content });
            }
            Action::Floor(to) => {
                let content = Content::Floor(ledger.floor_to(site_id(to)));
                sent = Some(Message { from: at, to, content });
            }
            Action::Deliver { message, wanted } => {
                let message = *self.messages.get(message);
                let before = site.memory.clone();
                let answer = site.receive(&message, wanted, self.fault);
                if site.memory == before {
                    // Nothing to write, so there is no step before the answer in which a crash could come.
                    sent = answer;
                } else if self.fault == Fault::AnswerBeforeJournal {
                    site.steps.extend(answer.map(Step::Send));
                    site.steps.push_back(Step::Write);
                } else {
                    site.write();
                    site.steps.extend(answer.map(Step::Send));
                }
            }
            Action::Reclaim(to, number) => {
                let (record, transfer) =
                    ledger.settle(site_id(to), number, Answer::Declined).expect("it is out");
                ledger.apply(&record);
                site.memory.take_back(&transfer);
                site.write();
            }
            Action::Forget(sender, forgotten) => {
                let mut records = records_of(ledger);
                records.retain(|record| match *record {
                    Record::Tombstone { from, number, .. } => (from, number) != (site_id(sender), forgotten),
                    _ => true,
                });
                *ledger = Ledger::replay(&records);
                site.write();
            }
        }
        state.sites[at] = self.sites.number(site);
        if let Some(message) = sent {
            let message = self.messages.number(message);
            assert!(message < MESSAGES_MAX, "these bounds need more messages than the search has room for");
            state.sent[message as usize / 64] |= 1 << (message % 64);
        }
        state
    }

    /// The steps to the state looked at last.
    fn path(&self) -> String {
        let mut lines = Vec::new();
        let mut at = self.at.min(self.states.len() - 1);
        while let Some((before, site, action)) = self.states[at].1 {
            let what = match action {
                Action::Deliver { message, wanted } => {
                    format!("gets {}, wanted: {wanted}", self.messages.get(message))
                }
                other => format!("{other:?}"),
            };
            lines.push(format!("  M{}: {what}", site + 1));
            at = before as usize;
        }
        lines.reverse();
        lines.join("\n")
    }
}

impl Site {
    fn write(&mut self) {
        self.disk = self.memory.clone();
    }

    /// After a crash: what was written, replayed.
    fn restart(&mut self, fault: Fault) {
        let mut records = records_of(&self.disk.ledger);
        assert_eq!(Ledger::replay(&records), self.disk.ledger, "the records say all that the ledger knows");
        match fault {
            Fault::FloorNotWritten => records.retain(|record| !matches!(record, Record::Floor { .. })),
            Fault::DeclineNotWritten => {
                records.retain(|record| !matches!(record, Record::Tombstone { answer: Answer::Declined, .. }))
            }
            Fault::CounterNotWritten => records.retain(|record| match *record {
                Record::Out { to, .. } | Record::Settled { to, .. } | Record::Voided { to, .. } => {
                    self.disk.ledger.out_count(to) > 0
                }
                Record::Tombstone { .. } | Record::Floor { .. } | Record::Renumbered { .. } => true,
            }),
            _ => {}
        }
        self.steps.clear();
        self.disk.ledger = Ledger::replay(&records);
        self.memory = self.disk.clone();
    }

    /// What a handler does in memory, and the answer it wants sent.
    fn receive(&mut self, message: &Message, wanted: bool, fault: Fault) -> Option<Message> {
        let Message { from, to, content } = *message;
        let other = site_id(from);
        let table = &mut self.memory;
        if let Content::Grant { floor, .. } | Content::Recall { floor, .. } | Content::Floor(floor) = content
            && let Some(record) = table.ledger.floor_from(other, floor)
        {
            table.ledger.apply(&record);
        }
        let number = match content {
            Content::Floor(_) => return None,
            Content::Reply { number, answer } => {
                if let Some((record, transfer)) = table.ledger.settle(other, number, answer) {
                    table.ledger.apply(&record);
                    if answer == Answer::Declined {
                        table.take_back(&transfer);
                    }
                }
                return None;
            }
            Content::Grant { transfer, .. } => transfer.number,
            Content::Recall { number, .. } => number,
        };
        let answer = match (table.ledger.arrival(other, number), content) {
            (Arrival::Settled, _) => return None,
            (Arrival::Answered(_), Content::Grant { .. }) if fault == Fault::AnswerGivenOnce => return None,
            (Arrival::Answered(answer), _) => answer,
            (Arrival::New, Content::Grant { transfer, .. }) if wanted => {
                table.ledger.apply(&table.ledger.answer(other, number, Answer::Accepted));
                table.owned.insert(
                    transfer.job.id,
                    Custody { hops: transfer.hops, bounces: transfer.bounces, ..Custody::default() },
                );
                Answer::Accepted
            }
            (Arrival::New, _) => {
                table.ledger.apply(&table.ledger.answer(other, number, Answer::Declined));
                Answer::Declined
            }
        };
        Some(Message { from: to, to: from, content: Content::Reply { number, answer } })
    }
}

impl Table {
    fn owns(&self, job: JobId) -> bool {
        self.owned.contains_key(&job) || self.started.contains(&job)
    }

    /// Hops and bounces together count grants, which bounds the search.
    fn take_back(&mut self, transfer: &Transfer) {
        let custody =
            Custody { hops: transfer.hops - 1, bounces: transfer.bounces + 1, ..Custody::default() };
        self.owned.insert(transfer.job.id, custody);
    }
}

/// The answers that a ledger still knows of transfers from one site.
fn answers(ledger: &Ledger, from: usize) -> impl Iterator<Item = (u64, Answer)> {
    (0..=ledger.seen(site_id(from))).filter_map(move |number| match ledger.arrival(site_id(from), number) {
        Arrival::Answered(answer) => Some((number, answer)),
        Arrival::Settled | Arrival::New => None,
    })
}

/// The shortest journal that makes this ledger, read from what the ledger answers.
fn records_of(ledger: &Ledger) -> Vec<Record> {
    let mut records = Vec::new();
    for other in 0..SITES_MAX {
        let site = site_id(other);
        let (_, next) = ledger.grant(site, spec(JOB), Custody::default());
        for number in 1..next.number {
            let settled = Transfer { number, ..next };
            let transfer = ledger.out(site, number).copied();
            records.push(Record::Out { to: site, transfer: transfer.unwrap_or(settled) });
            if transfer.is_none() {
                records.push(Record::Settled { to: site, number, answer: Answer::Accepted });
            }
        }
        let floor = (0..).find(|&number| ledger.arrival(site, number) != Arrival::Settled);
        if let Some(floor) = floor.filter(|&floor| floor > 0) {
            records.push(Record::Floor { from: site, floor });
        }
        records.extend(answers(ledger, other).map(|(number, answer)| Record::Tombstone {
            from: site,
            number,
            answer,
        }));
    }
    records
}

/// Gives equal things equal numbers, in the order in which they come.
struct Numbered<T> {
    numbers: BTreeMap<Rc<T>, u32>,
    things: Vec<Rc<T>>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Numbered { numbers: BTreeMap::new(), things: Vec::new() }
    }
}

impl<T: Ord> Numbered<T> {
    fn number(&mut self, thing: T) -> u32 {
        if let Some(&number) = self.numbers.get(&thing) {
            return number;
        }
        let number = self.things.len() as u32;
        let thing = Rc::new(thing);
        self.things.push(thing.clone());
        self.numbers.insert(thing, number);
        number
    }

    fn get(&self, number: u32) -> &T {
        &self.things[number as usize]
    }

    fn all(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(self.things.iter().map(Rc::as_ref))
    }
}

impl std::fmt::Display for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "M{}>M{} ", self.from + 1, self.to + 1)?;
        match self.content {
            Content::Grant { transfer, floor } => {
                write!(f, "Grant {} job {} floor {floor}", transfer.number, transfer.job.id)
            }
            Content::Recall { number, floor } => write!(f, "Recall {number} floor {floor}"),
            Content::Reply { number, answer } => write!(f, "{answer:?} {number}"),
            Content::Floor(floor) => write!(f, "Floor {floor}"),
        }
    }
}

fn site_id(at: usize) -> SiteId {
    SiteId(u32::try_from(at + 1).expect("few sites"))
}

fn spec(id: JobId) -> JobSpec {
    JobSpec {
        id,
        submit: Time::ZERO,
        processors: 1,
        requested: Span::from_secs(1),
        labels: Labels::UNKNOWN,
        origin: SiteId(1),
        payload: 0,
    }
}
