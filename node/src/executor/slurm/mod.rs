//! Jobs as jobs of a cluster under Slurm. Either the queue of the site decides what starts, and what starts is submitted; or what waits at
//! the site is submitted, and Slurm decides.
//!
//! A thread of its own talks to the cluster, as its commands take their time. Each execution has a name that no other has, and a claim on its
//! command ([`attempts`]), by which it is found, or given up, where nobody can say whether it was submitted: after an answer that did not
//! come, and after this process was killed ([`remnants`]). A job writes down its exit code in a file, which is looked for all the time, and so
//! it does when it begins. What Slurm alone knows is asked every few seconds, for all jobs at once, and what it has that nobody wants is
//! cancelled until it is gone.

mod attempts;
mod cluster;
mod remnants;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use scheduler::JobId;
use scheduler::event::{BatchState, ExitCause};
use tokio::sync::oneshot;

use self::attempts::{Attempts, Claim};
use self::cluster::{Cluster, Failure, Row, Rows, Submission};
use self::remnants::Remnant;
use self::state::{Meaning, changes, meaning};
use super::exit::Exit;
use super::hold::Told;
use super::settings::Slurm;
use crate::{bounded, private};

/// How often files of jobs that have ended are looked for: below what anybody would notice, and some hundred looks a second are nothing.
const TICK: Duration = Duration::from_millis(20);
/// So many jobs are submitted before anything else is done: with twenty milliseconds each, what is to leave waits no longer than that.
const SUBMISSIONS: usize = 4;
/// How coarse clocks of files are at most; those of some are as coarse as a timer tick.
const BEGUN_COARSE: Duration = Duration::from_millis(100);
/// So often in a row Slurm must not know a job, or call it ended, before that is believed without its file: files may be seen late.
const LOOKS: u32 = 2;
/// So often in a row Slurm must not know a job that has begun before it is lost without its file. With two seconds between looks that is a
/// minute, for as long as clients of NFS may believe that a file is not there (`acdirmax`).
const LOST_LOOKS: u32 = 30;
/// How often Slurm is asked where nothing is submitted that could end: only what it has again, or takes late, is to be seen.
const IDLE_POLL: Duration = Duration::from_secs(60);
/// How often Slurm is asked at most whether what is to be gone is gone.
const GONE_POLL: Duration = Duration::from_millis(200);
/// How long jobs that are to be gone may take to be gone.
const GONE_PATIENCE: Duration = Duration::from_secs(30);
/// The state of a job that is ending, and will not restart.
const COMPLETING: &str = "COMPLETING";
/// Bytes of a file with an exit code.
const CODE_BYTES: u64 = 64;

/// One execution of a job.
pub(super) struct Ticket {
    pub(super) attempt: u64,
    pub(super) job: JobId,
    pub(super) processors: u32,
    pub(super) told: Told,
    /// Whether it is only looked for: if another process of this node did not submit it, nobody does.
    pub(super) looks: bool,
    /// Hears what becomes of it.
    pub(super) hears: Box<dyn Fn(What) + Send>,
}

/// What becomes of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Slurm has started it.
    Begun,
    /// It will never be: it waited, and was cancelled.
    Withdrawn,
    /// Slurm says of it what is neither a start nor an end.
    Said(BatchState),
    /// It is over. Said once, and nothing after.
    Ended(Exit),
}

enum Order {
    Submit(Box<Ticket>),
    Cancel(u64),
    /// Cancels one that waits, and none that runs.
    Withdraw(u64),
    /// Cancels what another process of this node has left of all other jobs.
    Keep(BTreeSet<JobId>, oneshot::Sender<Result<(), String>>),
}

/// Who talks to a cluster. Dropping it cancels all jobs.
#[derive(Debug)]
pub(super) struct Clerk {
    orders: Sender<Order>,
}

impl Clerk {
    /// Begins to talk to the cluster of a site; `executing` did when the last process of this node ended, and may still.
    ///
    /// # Errors
    /// If there can be no files in the folder, or no thread.
    pub(super) fn begin(
        slurm: &Slurm,
        site: &str,
        folder: &Path,
        executing: BTreeSet<JobId>,
        load: Option<Load>,
    ) -> io::Result<Clerk> {
        // Slurm and its jobs must be able to write there from wherever they are.
        let folder = std::path::absolute(folder)?;
        let (done, begun, script) = (folder.join("done"), folder.join("begun"), folder.join("job.sh"));
        private::make_folder(&done)?;
        private::make_folder(&begun)?;
        let attempts = Attempts::of(&folder)?;
        private::create(&script)?.write_all(attempts::script().as_bytes())?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let desk = Desk {
            cluster: Cluster::of(slurm, site),
            poll: Duration::from_millis(slurm.poll_millis.into()),
            done,
            begun,
            begun_changed: None,
            script: text(&script)?,
            attempts,
            since,
            submitted: 0,
            load,
            foreign: 0,
            jobs: BTreeMap::new(),
            remnants: BTreeMap::new(),
            strays: BTreeSet::new(),
            away: None,
            next_poll: Instant::now(),
            next_claims: Instant::now(),
        };
        if let Some(conf) = desk.cluster.conf().filter(|conf| !Path::new(conf).is_file()) {
            return Err(io::Error::other(format!("there is no file {conf} (slurm.conf, SLURM_CONF)")));
        }
        // A cluster that is not there for a while is waited for, but not one that never will be.
        if let Err(Failure::Refused(reason)) = desk.cluster.jobs(desk.attempts.prefix(), false) {
            return Err(io::Error::other(reason));
        }
        if let Some(Load { processors, .. }) = desk.load {
            match desk.cluster.processors() {
                Ok(all) if all > processors => {
                    return Err(io::Error::other(format!(
                        "Slurm starts jobs on {all} processors, and the site has {processors}: give the site {all}, or name a \
                         partition of {processors} (execution.slurm.partition)"
                    )));
                }
                Err(Failure::Refused(reason)) => return Err(io::Error::other(reason)),
                Ok(_) | Err(Failure::Away(_)) => {}
            }
        }
        let (orders, come) = channel();
        let span = tracing::Span::current();
        let work = move || span.in_scope(|| desk.work(&come, &executing));
        Builder::new().name("slurm".to_string()).spawn(work)?;
        Ok(Clerk { orders })
    }

    /// Submits a job, or finds it if it was.
    pub(super) fn submit(&self, ticket: Ticket) {
        self.tell(Order::Submit(Box::new(ticket)));
    }

    /// Cancels an execution.
    pub(super) fn cancel(&self, attempt: u64) {
        self.tell(Order::Cancel(attempt));
    }

    /// Cancels an execution if it still waits; its ticket hears whether it did.
    pub(super) fn withdraw(&self, attempt: u64) {
        self.tell(Order::Withdraw(attempt));
    }

    /// Has everything cancelled that is left of jobs other than these, and hears when it is gone.
    pub(super) fn keep(&self, jobs: BTreeSet<JobId>) -> oneshot::Receiver<Result<(), String>> {
        let (answer, answered) = oneshot::channel();
        self.tell(Order::Keep(jobs, answer));
        answered
    }

    fn tell(&self, order: Order) {
        self.orders.send(order).expect("the clerk ends when nobody can tell it anything any more");
    }
}

/// Who wants to know what others have Slurm do, where Slurm decides what starts.
pub(super) struct Load {
    /// The processors of the site.
    pub(super) processors: u32,
    /// Hears the processors of others' jobs, when they change.
    pub(super) hears: Box<dyn Fn(u32) + Send>,
}

fn text(path: &Path) -> io::Result<String> {
    path.to_str()
        .map(str::to_string)
        .ok_or_else(|| io::Error::other(format!("{} is no text", path.display())))
}

/// A job that executes, or is to.
struct Job {
    ticket: Ticket,
    /// The end of its name.
    name: String,
    /// Its number, once it is known.
    id: Option<u64>,
    /// Whether it may have been submitted: once, as another time has another name.
    tried: bool,
    /// Whether it is to be gone.
    stopped: bool,
    /// Whether that is written down, and only Slurm has to be rid of it.
    marked: bool,
    /// Whether it is to be gone if it still waits.
    leaves: bool,
    /// Whether it ran, as its ticket was told.
    begun: bool,
    /// How often in a row Slurm did not know it, or called it ended.
    looks: u32,
    /// What Slurm said last.
    said: Option<Meaning>,
}

struct Desk {
    cluster: Cluster,
    poll: Duration,
    done: PathBuf,
    begun: PathBuf,
    /// When something was added there last, as far as it was looked at.
    begun_changed: Option<SystemTime>,
    script: String,
    attempts: Attempts,
    /// When this process began, which its names have in them.
    since: u128,
    submitted: u64,
    load: Option<Load>,
    /// What was told of that last.
    foreign: u32,
    /// By attempt.
    jobs: BTreeMap<u64, Job>,
    /// What another process of this node has left.
    remnants: BTreeMap<JobId, Remnant>,
    /// Jobs of Slurm that nobody wants and that ran at the last look: they may be about to end.
    strays: BTreeSet<u64>,
    /// Since when nobody answers.
    away: Option<Instant>,
    next_poll: Instant,
    /// When claims are tried again that could not be made.
    next_claims: Instant,
}

impl Desk {
    fn work(mut self, orders: &Receiver<Order>, executing: &BTreeSet<JobId>) {
        self.look_back(executing);
        let mut ends = None;
        loop {
            let order = match (self.jobs.is_empty(), ends) {
                (true, None) => orders.recv_timeout(self.next_poll.saturating_duration_since(Instant::now())),
                (true, Some(_)) => return,
                (false, None) if self.to_submit().next().is_some() => orders.recv_timeout(Duration::ZERO),
                (false, None) => orders.recv_timeout(TICK),
                (false, Some(deadline)) if Instant::now() > deadline => {
                    tracing::error!(
                        jobs = self.jobs.len(),
                        "Slurm has not cancelled jobs of a node that ends"
                    );
                    return;
                }
                (false, Some(_)) => {
                    std::thread::sleep(TICK);
                    Err(RecvTimeoutError::Timeout)
                }
            };
            match order {
                Ok(order) => {
                    self.obey(order);
                    while let Ok(order) = orders.try_recv() {
                        self.obey(order);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    ends = Some(Instant::now() + GONE_PATIENCE);
                    self.jobs.values_mut().for_each(|job| job.stopped = true);
                    self.next_poll = Instant::now();
                }
            }
            self.cancel();
            self.withdraw();
            self.submit();
            // What began later than an end is told after it.
            let begun = self.look_for_begun();
            self.look_at_files();
            self.tell_begun(&begun);
            let looks = !self.jobs.is_empty() || ends.is_none();
            if looks && Instant::now() >= self.next_poll {
                self.look_at_slurm();
                if ends.is_some() {
                    self.next_poll = self.next_poll.min(Instant::now() + GONE_POLL);
                }
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Submit(ticket) => {
                // Whoever asked seldom asks often now.
                self.next_poll = self.next_poll.min(Instant::now() + self.poll);
                let (id, name, tried) = match self.remnants.remove(&ticket.job) {
                    Some(Remnant { exit: Some(exit), .. }) => {
                        tracing::info!(
                            job = ticket.job.0,
                            how = exit.how.name(),
                            "the end of a job of Slurm is told again"
                        );
                        return (ticket.hears)(What::Ended(exit));
                    }
                    Some(Remnant { name, id, .. }) => {
                        tracing::info!(job = ticket.job.0, slurm = id, name, "a job of Slurm is found again");
                        // What became of it Slurm may know already.
                        self.next_poll = Instant::now();
                        (id, name, true)
                    }
                    None if ticket.looks => return (ticket.hears)(What::Withdrawn),
                    None => (None, self.new_name(ticket.job), false),
                };
                let attempt = ticket.attempt;
                let job = Job {
                    ticket: *ticket,
                    name,
                    id,
                    tried,
                    stopped: false,
                    marked: false,
                    leaves: false,
                    begun: false,
                    looks: 0,
                    said: None,
                };
                self.jobs.insert(attempt, job);
                self.begun_changed = None;
            }
            Order::Cancel(attempt) => {
                if let Some(job) = self.jobs.get_mut(&attempt) {
                    job.stopped = true;
                }
            }
            Order::Withdraw(attempt) => {
                // It may have begun just now.
                if let Some(job) = self.jobs.get_mut(&attempt).filter(|job| !job.begun) {
                    job.leaves = true;
                }
            }
            Order::Keep(jobs, answer) => {
                let left: Vec<JobId> =
                    self.remnants.keys().filter(|job| !jobs.contains(job)).copied().collect();
                // Whoever asked may have gone.
                let _ = answer.send(self.be_rid_of(&left));
            }
        }
    }

    /// A name that no execution had.
    fn new_name(&mut self, job: JobId) -> String {
        self.submitted += 1;
        format!("{job}.{:012x}{:06x}", self.since, self.submitted)
    }

    /// What Slurm says, if it says anything; that it does not is said once.
    fn jobs_of_slurm(&mut self) -> Option<Rows> {
        match self.cluster.jobs(self.attempts.prefix(), self.load.is_some()) {
            Ok(rows) => {
                if let Some(since) = self.away.take() {
                    tracing::info!(after = ?since.elapsed(), "Slurm answers again");
                }
                Some(rows)
            }
            Err(Failure::Away(reason) | Failure::Refused(reason)) => {
                self.is_away(&reason);
                None
            }
        }
    }

    fn is_away(&mut self, reason: &str) {
        if self.away.is_none() {
            tracing::warn!(
                reason,
                "Slurm does not answer; its jobs go on, and nothing is submitted until it does"
            );
            self.away = Some(Instant::now());
        }
    }

    /// Whether claims can be made, as far as is known. That they cannot is said once in a while.
    fn can_claim(&self) -> bool {
        Instant::now() >= self.next_claims
    }

    fn cannot_claim(&mut self, name: &str, error: &io::Error) {
        tracing::error!(%error, name, "nobody can say who has a job: its files cannot be made; it is tried again");
        self.next_claims = Instant::now() + self.poll;
    }

    /// Has it that what was stopped does not begin; what has begun is cancelled until Slurm says that it is gone.
    fn cancel(&mut self) {
        let due = |job: &Job| job.stopped && !job.marked;
        let due: Vec<u64> =
            self.jobs.iter().filter(|(_, job)| due(job)).map(|(&attempt, _)| attempt).collect();
        let mut marked = false;
        for attempt in due {
            let Some(job) = self.jobs.get(&attempt).filter(|job| !job.tried || self.can_claim()) else {
                continue;
            };
            if !job.tried {
                self.over(attempt, Exit { how: ExitCause::Cancelled, code: None, why: None });
                continue;
            }
            let name = job.name.clone();
            // Its end is one that the site wants, whoever comes first.
            match self.attempts.stop(&name, None).and_then(|()| self.attempts.claim(&name)) {
                Ok(_) => {
                    marked = true;
                    self.jobs.entry(attempt).and_modify(|job| job.marked = true);
                }
                Err(error) => self.cannot_claim(&name, &error),
            }
        }
        // Before the job restarts, if it does.
        if marked {
            self.look_at_slurm();
        }
    }

    /// Has it that what is to leave and waits does not begin, and cancels it with the next look at Slurm. What has begun by then stays.
    fn withdraw(&mut self) {
        let leaves = |job: &Job| job.leaves && !job.stopped;
        let due: Vec<u64> =
            self.jobs.iter().filter(|(_, job)| leaves(job)).map(|(&attempt, _)| attempt).collect();
        for attempt in due {
            let Some(job) = self.jobs.get(&attempt).filter(|job| !job.tried || self.can_claim()) else {
                continue;
            };
            let name = job.name.clone();
            let claim = if job.tried { self.attempts.claim(&name) } else { Ok(Claim::Node) };
            match claim {
                Ok(Claim::Node) => self.withdrawn(attempt),
                Ok(Claim::Script(_)) => {
                    if let Some(job) = self.jobs.get_mut(&attempt) {
                        job.leaves = false;
                        begin(job);
                    }
                }
                Err(error) => self.cannot_claim(&name, &error),
            }
        }
    }

    fn withdrawn(&mut self, attempt: u64) {
        let Some(job) = self.jobs.remove(&attempt) else { return };
        if job.tried {
            self.next_poll = Instant::now();
        }
        tracing::info!(
            job = job.ticket.job.0,
            slurm = job.id,
            "a job that waited does not begin in Slurm any more, to leave"
        );
        (job.ticket.hears)(What::Withdrawn);
    }

    /// Jobs that have written down that they began.
    fn look_for_begun(&mut self) -> BTreeSet<String> {
        if self.jobs.values().all(|job| job.begun) {
            return BTreeSet::new();
        }
        let changed = std::fs::metadata(&self.begun).and_then(|begun| begun.modified()).ok();
        // Clocks of files are coarse: something may be added at the time of the last look.
        let is_old = |at: SystemTime| at.elapsed().is_ok_and(|age| age > BEGUN_COARSE);
        if changed == self.begun_changed && changed.is_some_and(is_old) {
            return BTreeSet::new();
        }
        self.begun_changed = changed;
        let files = std::fs::read_dir(&self.begun).into_iter().flatten().flatten();
        files.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn tell_begun(&mut self, names: &BTreeSet<String>) {
        let begun = |job: &&mut Job| !job.begun && names.contains(&job.name);
        self.jobs.values_mut().filter(begun).for_each(begin);
    }

    /// Jobs that are to be submitted, unless nobody knows whether they were.
    fn to_submit(&self) -> impl Iterator<Item = u64> {
        let is_due = |job: &Job| job.id.is_none() && !job.tried && !job.stopped && !job.leaves;
        let answers = self.away.is_none() && self.can_claim();
        self.jobs.iter().filter(move |(_, job)| answers && is_due(job)).map(|(&attempt, _)| attempt)
    }

    /// Submits some of what was not.
    fn submit(&mut self) {
        let due: Vec<u64> = self.to_submit().take(SUBMISSIONS).collect();
        if due.is_empty() {
            return;
        }
        let names = due.iter().filter_map(|attempt| self.jobs.get(attempt)).map(|job| job.name.as_str());
        if let Err(error) = self.attempts.try_all(names) {
            return self.cannot_claim("", &error);
        }
        for attempt in due {
            let Some(job) = self.jobs.get_mut(&attempt) else { continue };
            let Ticket { told, processors, job: number, .. } = &job.ticket;
            let name = format!("{}{}", self.attempts.prefix(), job.name);
            let (done, begun) = (self.done.join(&job.name), self.begun.join(&job.name));
            let asked = Instant::now();
            let claim = self.attempts.path(&job.name);
            let paths = [&done, &begun, &claim, &told.output, &told.errors].map(|path| text(path));
            let submitted = match paths {
                [Ok(done), Ok(begun), Ok(claim), Ok(output), Ok(errors)] => {
                    let words = told.words.iter().map(String::as_str);
                    let arguments: Vec<&str> =
                        [done.as_str(), begun.as_str(), claim.as_str()].into_iter().chain(words).collect();
                    self.cluster.submit(&Submission {
                        name: &name,
                        processors: *processors,
                        wall: told.wall_millis.map(Duration::from_millis),
                        memory_bytes: told.memory_bytes,
                        output: &output,
                        errors: &errors,
                        environment: &told.environment,
                        script: &self.script,
                        arguments: &arguments,
                    })
                }
                _ => Err(Failure::Refused("its files have names that are no text".to_string())),
            };
            job.tried = true;
            match submitted {
                Ok(id) => {
                    tracing::info!(job = number.0, slurm = id, name, took = ?asked.elapsed(), "submitted to Slurm");
                    job.id = Some(id);
                }
                // Whatever it says: if a script has begun, Slurm took it.
                Err(Failure::Refused(reason)) => match self.attempts.claim(&job.name) {
                    Ok(Claim::Node) => {
                        let why = Some(format!("Slurm refuses it: {reason}"));
                        self.over(attempt, Exit { how: ExitCause::NotStarted, code: None, why });
                    }
                    Ok(Claim::Script(id)) => job.id = id,
                    Err(error) => {
                        let name = job.name.clone();
                        self.cannot_claim(&name, &error);
                    }
                },
                Err(Failure::Away(reason)) => {
                    self.is_away(&reason);
                    // Time for what is under way to arrive.
                    self.next_poll = Instant::now() + self.poll;
                    return;
                }
            }
        }
    }

    /// Jobs that have written down how they ended.
    fn look_at_files(&mut self) {
        let ended: Vec<(u64, i32)> = self
            .jobs
            .iter()
            .filter(|(_, job)| job.id.is_some() || job.tried)
            .filter_map(|(&attempt, job)| Some((attempt, code(&self.done.join(&job.name))?)))
            .collect();
        for (attempt, code) in ended {
            // As shells have it.
            let how = if code > 128 { ExitCause::Signal } else { ExitCause::Exit };
            self.over(attempt, Exit { how, code: Some(code), why: None });
        }
    }

    /// What Slurm says of all jobs.
    fn look_at_slurm(&mut self) {
        let rows = self.jobs_of_slurm();
        self.next_poll = Instant::now() + self.poll;
        let Some(Rows { mut by_name, foreign }) = rows else { return };
        if let Some(load) = &self.load
            && foreign != self.foreign
        {
            self.foreign = foreign;
            (load.hears)(foreign);
        }
        let (mut over, mut unwanted) = (Vec::new(), Vec::new());
        let attempts: Vec<u64> = self.jobs.keys().copied().collect();
        for attempt in attempts {
            let Some(job) = self.jobs.get_mut(&attempt) else { continue };
            let rows = by_name.remove(&job.name).unwrap_or_default();
            let (row, others) = match one_of(rows, &job.name, &self.attempts) {
                Ok(rows) => rows,
                Err(error) => {
                    let name = job.name.clone();
                    self.cannot_claim(&name, &error);
                    continue;
                }
            };
            unwanted.extend(others.iter().filter(|row| is_active(row)).map(|row| row.id));
            let exit = match row {
                Some(row) if job.stopped => {
                    let is_going = !is_active(&row) || row.state == COMPLETING;
                    unwanted.extend((!is_going).then_some(row.id));
                    is_going.then_some(Exit { how: ExitCause::Cancelled, code: None, why: None })
                }
                None if job.marked => Some(Exit { how: ExitCause::Cancelled, code: None, why: None }),
                Some(row) => self.said_of(attempt, &row),
                None => self.not_there(attempt),
            };
            over.extend(exit.map(|exit| (attempt, exit)));
        }
        for (attempt, exit) in over {
            // It may have ended by itself just before.
            let file = self.jobs.get(&attempt).and_then(|job| code(&self.done.join(&job.name)));
            let exit = file.map_or(exit, |code| Exit { how: ExitCause::Exit, code: Some(code), why: None });
            self.over(attempt, exit);
        }
        unwanted.extend(self.not_wanted(by_name));
        let is_idle = self.jobs.is_empty() && unwanted.is_empty() && self.strays.is_empty();
        self.be_rid_of_rows(unwanted);
        if is_idle && self.load.is_none() {
            self.next_poll = Instant::now() + self.poll.max(IDLE_POLL);
        }
    }

    /// What it means that Slurm says this of a job; how it ended, if that.
    fn said_of(&mut self, attempt: u64, row: &Row) -> Option<Exit> {
        let job = self.jobs.get_mut(&attempt)?;
        if job.id != Some(row.id) {
            tracing::info!(
                job = job.ticket.job.0,
                slurm = row.id,
                "Slurm has a job, although it did not say so"
            );
            job.id = Some(row.id);
        }
        let meaning = meaning(&row.state, &row.reason);
        if job.said.as_ref() != Some(&meaning) {
            told_of(job, row, &meaning);
        }
        let exit = match &meaning {
            Meaning::Ended { code } => {
                job.looks += 1;
                let says = format!("Slurm says {} ({})", row.state, row.reason);
                match self.attempts.who(&job.name) {
                    _ if job.looks < LOOKS => None,
                    // Its script did not come so far.
                    Ok(None) if code.is_none() && !job.begun => match self.attempts.claim(&job.name) {
                        Ok(Claim::Node) => {
                            let why = Some(format!(
                                "{says}, and its script could not claim its command: do the machines of the cluster have the folder?"
                            ));
                            Some(Exit { how: ExitCause::NotStarted, code: None, why })
                        }
                        Ok(Claim::Script(_)) | Err(_) => None,
                    },
                    _ => {
                        let how = if code.is_some() { ExitCause::Exit } else { ExitCause::Unknown };
                        let why =
                            Some(format!("{says}, and it has not said how itself; it is not run again"));
                        Some(Exit { how, code: *code, why })
                    }
                }
            }
            Meaning::Cut(exit) => Some(exit.clone()),
            Meaning::Runs | Meaning::Stands => {
                job.looks = 0;
                begin(job);
                None
            }
            Meaning::Pending | Meaning::Held => {
                job.looks = 0;
                None
            }
        };
        job.said = Some(meaning);
        exit
    }

    /// What it means that Slurm does not know a job: it has not come yet, or never will, or is forgotten. If it ran nobody can say how it ended;
    /// if not, it is submitted once more, by another name, and should Slurm take or have it after all it does not begin.
    fn not_there(&mut self, attempt: u64) -> Option<Exit> {
        let job = self.jobs.get_mut(&attempt)?;
        if !job.tried || job.stopped {
            return None;
        }
        job.looks += 1;
        // What has a number was there.
        let is_sure = job.id.is_none() || job.looks >= LOOKS;
        let claim = match self.attempts.who(&job.name) {
            Ok(None) if is_sure => self.attempts.claim(&job.name),
            Ok(None) => return None,
            Ok(Some(claim)) => Ok(claim),
            Err(error) => Err(error),
        };
        match claim {
            Ok(Claim::Script(id)) => {
                job.id = job.id.or(id);
                begin(job);
                let why = "Slurm does not know it any more, and it began and has not said how it ended; it is not run again";
                let exit = Exit { how: ExitCause::Unknown, code: None, why: Some(why.to_string()) };
                (job.looks >= LOST_LOOKS).then_some(exit)
            }
            Ok(Claim::Node) => {
                let (number, former, id) = (job.ticket.job, job.name.clone(), job.id);
                tracing::warn!(
                    job = number.0,
                    slurm = id,
                    former,
                    "Slurm does not have a job that has not begun: it is submitted again, and does not run if the former arrives after all"
                );
                let name = self.new_name(number);
                let job = self.jobs.get_mut(&attempt)?;
                (job.name, job.id, job.tried, job.looks, job.said) = (name, None, false, 0, None);
                None
            }
            Err(error) => {
                let name = job.name.clone();
                self.cannot_claim(&name, &error);
                None
            }
        }
    }

    /// Rows of jobs of this folder that nobody wants, which are to be cancelled. One that runs may be about to end.
    fn not_wanted(&mut self, left: BTreeMap<String, Vec<Row>>) -> Vec<u64> {
        let remnants: BTreeSet<&String> = self.remnants.values().map(|remnant| &remnant.name).collect();
        let left = left.into_iter().filter(|(name, _)| !remnants.contains(name));
        let mut running = BTreeSet::new();
        let mut unwanted = Vec::new();
        for (name, rows) in left {
            let (mut is_marked, is_done) = (false, self.done.join(&name).exists());
            for row in rows.iter().filter(|row| is_active(row) && row.state != COMPLETING) {
                let waits = matches!(meaning(&row.state, &row.reason), Meaning::Pending | Meaning::Held);
                // It has written down how it ended, and does.
                if !waits && is_done {
                    continue;
                }
                if !waits && !self.strays.contains(&row.id) {
                    running.insert(row.id);
                    continue;
                }
                running.extend((!waits).then_some(row.id));
                // It may begin before it is cancelled, and be there again.
                if !std::mem::replace(&mut is_marked, true)
                    && let Err(error) = self.attempts.stop(&name, None)
                {
                    tracing::warn!(%error, name, "a job of Slurm that nobody wants could not be marked");
                }
                unwanted.push(row.id);
            }
        }
        self.strays = running;
        unwanted
    }

    /// Cancels these, if there are any. Whether that was of use the next look says.
    fn be_rid_of_rows(&mut self, ids: Vec<u64>) {
        if ids.is_empty() {
            return;
        }
        tracing::info!(?ids, "jobs of Slurm are cancelled that nobody waits for");
        if let Err(Failure::Away(reason) | Failure::Refused(reason)) = self.cluster.cancel(&ids) {
            tracing::warn!(reason, ?ids, "Slurm does not cancel jobs; it is asked again");
        }
    }

    fn over(&mut self, attempt: u64, exit: Exit) {
        let Some(job) = self.jobs.remove(&attempt) else { return };
        // Its script does not run a command that has ended; what ended otherwise could be in Slurm again.
        let is_done = exit.code.is_some() && self.done.join(&job.name).exists();
        if job.tried
            && !is_done
            && let Err(error) = self.attempts.stop(&job.name, (!job.stopped).then_some(&exit))
        {
            tracing::error!(%error, name = job.name, "a job that is over could not be marked: it would run if Slurm had it again");
        }
        let _ = std::fs::remove_file(self.begun.join(&job.name));
        (job.ticket.hears)(What::Ended(exit));
    }
}

/// Of rows by one name the one that is the job: whichever has begun, else the first; and the others.
fn one_of(mut rows: Vec<Row>, name: &str, attempts: &Attempts) -> io::Result<(Option<Row>, Vec<Row>)> {
    rows.sort_by_key(|row| row.id);
    let mut place = Some(0);
    // One that waits or runs alone is the one.
    if (rows.len() > 1 || rows.iter().any(|row| !is_active(row)))
        && let Some(Claim::Script(Some(id))) = attempts.who(name)?
    {
        place = rows.iter().position(|row| row.id == id);
    }
    let row = place.filter(|&place| place < rows.len()).map(|place| rows.remove(place));
    Ok((row, rows))
}

fn begin(job: &mut Job) {
    if !std::mem::replace(&mut job.begun, true) {
        (job.ticket.hears)(What::Begun);
    }
}

/// Says what the operator of the site should know, and what becomes of the job.
fn told_of(job: &Job, row: &Row, meaning: &Meaning) {
    let (number, id, reason) = (job.ticket.job.0, row.id, row.reason.as_str());
    let states = changes(job.said.as_ref(), meaning);
    if states.contains(&BatchState::Requeued) {
        tracing::warn!(job = number, slurm = id, reason, "Slurm has queued a job again that ran");
    }
    match meaning {
        Meaning::Pending if states.is_empty() => {
            tracing::info!(job = number, slurm = id, reason, "a job waits in Slurm");
        }
        Meaning::Held => {
            tracing::warn!(
                job = number,
                slurm = id,
                reason,
                "a job is held in Slurm until somebody releases or cancels it"
            );
        }
        Meaning::Stands => {
            tracing::warn!(job = number, slurm = id, reason, "a job stands still in Slurm");
        }
        Meaning::Runs if states == [BatchState::Resumed] => {
            tracing::info!(job = number, slurm = id, "a job goes on in Slurm");
        }
        Meaning::Pending | Meaning::Runs | Meaning::Ended { .. } | Meaning::Cut(_) => {}
    }
    for &state in states {
        (job.ticket.hears)(What::Said(state));
    }
}

fn is_active(row: &Row) -> bool {
    !matches!(meaning(&row.state, &row.reason), Meaning::Ended { .. } | Meaning::Cut(_))
}

/// The exit code that a job wrote down.
fn code(path: &Path) -> Option<i32> {
    bounded::read_text(path, CODE_BYTES).ok()?.trim().parse().ok()
}
