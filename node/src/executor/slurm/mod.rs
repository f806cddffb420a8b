//! Jobs as jobs of a cluster under Slurm. Either the queue of the site decides what starts, and what starts is submitted; or what waits at
//! the site is submitted, and Slurm decides.
//!
//! A thread of its own talks to the cluster, as its commands take their time. Each execution has a name that no other has, so that it is found
//! where nobody could say whether it was submitted: after an answer that did not come, and after this process was killed. A job writes down
//! its exit code in a file, which is looked for all the time, and so it does when it begins. What Slurm alone knows is asked every few seconds, for all jobs at once.

mod cluster;
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

use self::cluster::{Cluster, Failure, Row, Rows, Submission};
use self::state::{Meaning, meaning};
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
/// How long jobs that are to be gone may take to be gone.
const GONE_PATIENCE: Duration = Duration::from_secs(30);
/// Bytes of a file with an exit code.
const CODE_BYTES: u64 = 64;

/// What is submitted for every job: it makes the second of its words a file, runs those that follow, and writes into the first how they ended. No text of it comes from
/// anywhere else.
const SCRIPT: &str = "#!/bin/sh\n\
done=$1\n\
: > \"$2\"\n\
shift 2\n\
\"$@\"\n\
code=$?\n\
printf '%s\\n' \"$code\" > \"$done.new\" && mv \"$done.new\" \"$done\"\n\
exit \"$code\"\n";

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
        private::create(&script)?.write_all(SCRIPT.as_bytes())?;
        let prefix = format!("sg-{}-", owner(&folder)?);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let desk = Desk {
            cluster: Cluster::of(slurm, site),
            poll: Duration::from_millis(slurm.poll_millis.into()),
            done,
            begun,
            begun_changed: None,
            script: text(&script)?,
            prefix,
            since,
            submitted: 0,
            load,
            foreign: 0,
            jobs: BTreeMap::new(),
            remnants: BTreeMap::new(),
            away: None,
            next_poll: Instant::now(),
        };
        if let Some(conf) = desk.cluster.conf().filter(|conf| !Path::new(conf).is_file()) {
            return Err(io::Error::other(format!("there is no file {conf} (slurm.conf, SLURM_CONF)")));
        }
        // A cluster that is not there for a while is waited for, but not one that never will be.
        if let Err(Failure::Refused(reason)) = desk.cluster.jobs(&desk.prefix, false) {
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

/// What names of jobs of this folder have in common, and no others: drawn once.
fn owner(folder: &Path) -> io::Result<String> {
    let path = folder.join("owner");
    match bounded::read_text(&path, CODE_BYTES) {
        Ok(owner) if !owner.is_empty() && owner.chars().all(|c| c.is_ascii_hexdigit()) => return Ok(owner),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let owner: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    private::create(&path)?.write_all(owner.as_bytes())?;
    Ok(owner)
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
    /// Whether it may have been submitted.
    tried: bool,
    /// Whether it is to be gone.
    stopped: bool,
    /// Whether it is to be gone if it still waits.
    leaves: bool,
    /// Whether Slurm was told not to start it, so that it does not.
    held: bool,
    /// Whether it ran, as its ticket was told.
    begun: bool,
    /// How often in a row Slurm did not know it, or called it ended.
    looks: u32,
    /// What Slurm said last.
    said: Option<Meaning>,
}

/// What another process of this node has left.
struct Remnant {
    name: String,
    id: Option<u64>,
}

struct Desk {
    cluster: Cluster,
    poll: Duration,
    done: PathBuf,
    begun: PathBuf,
    /// When something was added there last, as far as it was looked at.
    begun_changed: Option<SystemTime>,
    script: String,
    prefix: String,
    /// When this process began, which its names have in them.
    since: u128,
    submitted: u64,
    load: Option<Load>,
    /// What was told of that last.
    foreign: u32,
    /// By attempt.
    jobs: BTreeMap<u64, Job>,
    remnants: BTreeMap<JobId, Remnant>,
    /// Since when nobody answers.
    away: Option<Instant>,
    next_poll: Instant,
}

impl Desk {
    fn work(mut self, orders: &Receiver<Order>, executing: &BTreeSet<JobId>) {
        self.look_back(executing);
        let mut ends = None;
        loop {
            let order = match (self.jobs.is_empty(), ends) {
                (true, None) if self.load.is_some() => {
                    orders.recv_timeout(self.next_poll.saturating_duration_since(Instant::now()))
                }
                (true, None) => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
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
                }
            }
            self.cancel();
            self.withdraw();
            self.submit();
            // What began later than an end is told after it.
            let begun = self.look_for_begun();
            self.look_at_files();
            self.tell_begun(&begun);
            let looks = !self.jobs.is_empty() || (self.load.is_some() && ends.is_none());
            if looks && Instant::now() >= self.next_poll {
                self.look_at_slurm();
            }
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Submit(ticket) => {
                let (id, name) = match self.remnants.remove(&ticket.job) {
                    Some(Remnant { name, id }) => {
                        tracing::info!(job = ticket.job.0, slurm = id, name, "a job of Slurm is found again");
                        // What became of it Slurm may know already.
                        self.next_poll = Instant::now();
                        (id, name)
                    }
                    None if ticket.looks => return (ticket.hears)(What::Withdrawn),
                    None => {
                        self.submitted += 1;
                        (None, format!("{}.{:012x}{:06x}", ticket.job, self.since, self.submitted))
                    }
                };
                // One of which Slurm has forgotten all has its file.
                let tried = self.done.join(&name).exists();
                let attempt = ticket.attempt;
                let job = Job {
                    ticket: *ticket,
                    name,
                    id,
                    tried,
                    stopped: false,
                    leaves: false,
                    held: false,
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
                let left: Vec<Remnant> = left.iter().filter_map(|job| self.remnants.remove(job)).collect();
                // Whoever asked may have gone.
                let _ = answer.send(self.be_rid_of(&left));
            }
        }
    }

    /// Looks for what another process of this node has left, until Slurm says what there is.
    fn look_back(&mut self, executing: &BTreeSet<JobId>) {
        let rows = loop {
            match self.jobs_of_slurm() {
                Some(rows) => break rows,
                None => std::thread::sleep(self.poll),
            }
        };
        let mut found: BTreeMap<JobId, Remnant> = BTreeMap::new();
        let mut strays: Vec<u64> = rows.again.iter().filter(|row| is_active(row)).map(|row| row.id).collect();
        let files = std::fs::read_dir(&self.done).into_iter().flatten().flatten();
        let files = files.filter_map(|entry| Some((entry.file_name().into_string().ok()?, None)));
        let files = files.filter(|(name, _)| !name.ends_with(".new"));
        let known = rows.by_name.into_iter().map(|(name, row)| (name, Some(row)));
        // Those that Slurm knows last; of each, the later.
        let mut all: Vec<(String, Option<Row>)> = files.chain(known).collect();
        all.sort_by_key(|(name, row)| (row.as_ref().is_some_and(is_active), name.clone()));
        for (name, row) in all {
            let Some(job) = name.split('.').next().and_then(|job| job.parse().ok()).map(JobId) else {
                continue;
            };
            let (active, id) = (row.as_ref().is_some_and(is_active), row.as_ref().map(|row| row.id));
            // One that was cancelled is to begin again, and so is one that never ran.
            let ended = self.done.join(&name).exists()
                || row.as_ref().is_some_and(|row| {
                    let meaning = meaning(&row.state, &row.reason);
                    !matches!(meaning, Meaning::Cut(Exit { how: ExitCause::Cancelled, .. }))
                });
            if !executing.contains(&job) {
                strays.extend(id.filter(|_| active));
            } else if active || ended {
                let former = found.insert(job, Remnant { name, id });
                strays.extend(former.and_then(|former| former.id).filter(|_| active));
            }
        }
        if !strays.is_empty() {
            tracing::warn!(jobs = strays.len(), "jobs of Slurm are cancelled that nobody waits for");
            if let Err(Failure::Away(reason) | Failure::Refused(reason)) = self.cluster.cancel(&strays) {
                tracing::error!(
                    reason,
                    ?strays,
                    "jobs of Slurm that nobody waits for could not be cancelled"
                );
            }
        }
        self.remnants = found;
    }

    /// Until nothing is left of these.
    fn be_rid_of(&mut self, left: &[Remnant]) -> Result<(), String> {
        let ids: Vec<u64> = left.iter().filter_map(|remnant| remnant.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        tracing::warn!(?ids, "jobs of Slurm are cancelled: their site does not start them again at once");
        let deadline = Instant::now() + GONE_PATIENCE;
        loop {
            let reason = match self.cluster.cancel(&ids) {
                Ok(()) => match self.jobs_of_slurm() {
                    Some(rows) => {
                        let is_left = |row: &&Row| ids.contains(&row.id) && is_active(row);
                        match rows.by_name.values().find(is_left) {
                            None => break,
                            Some(row) => format!("job {} of Slurm is {}", row.id, row.state),
                        }
                    }
                    None => "Slurm does not answer".to_string(),
                },
                Err(Failure::Away(reason) | Failure::Refused(reason)) => reason,
            };
            if Instant::now() > deadline {
                return Err(format!("jobs that this node has left cannot be cancelled: {reason}"));
            }
            std::thread::sleep(self.poll.min(Duration::from_millis(200)));
        }
        for remnant in left {
            // What ran to its end and is to run again must not be taken for the end of that.
            let _ = std::fs::remove_file(self.done.join(&remnant.name));
            let _ = std::fs::remove_file(self.begun.join(&remnant.name));
        }
        Ok(())
    }

    /// What Slurm says, if it says anything; that it does not is said once.
    fn jobs_of_slurm(&mut self) -> Option<Rows> {
        match self.cluster.jobs(&self.prefix, self.load.is_some()) {
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

    /// Cancels what was stopped, all at once.
    fn cancel(&mut self) {
        let stopped = |job: &Job| job.stopped && (job.id.is_some() || !job.tried);
        let ids: Vec<u64> = self.jobs.values().filter(|job| stopped(job)).filter_map(|job| job.id).collect();
        if !ids.is_empty() {
            // As often as Slurm is asked, if it does not answer.
            if self.away.is_some() && Instant::now() < self.next_poll {
                return;
            }
            if let Err(Failure::Away(reason) | Failure::Refused(reason)) = self.cluster.cancel(&ids) {
                self.is_away(&reason);
                self.next_poll = Instant::now() + self.poll;
                return;
            }
        }
        let attempts: Vec<u64> =
            self.jobs.iter().filter(|(_, job)| stopped(job)).map(|(&attempt, _)| attempt).collect();
        for attempt in attempts {
            self.over(attempt, Exit { how: ExitCause::Cancelled, code: None, why: None });
        }
    }

    /// Cancels what is to leave and waits. Slurm itself keeps it from starting first: what it has started by then stays.
    fn withdraw(&mut self) {
        let leaves = |job: &Job| job.leaves && !job.stopped;
        let never = |job: &Job| leaves(job) && job.id.is_none() && !job.tried;
        let unsent: Vec<u64> =
            self.jobs.iter().filter(|(_, job)| never(job)).map(|(&attempt, _)| attempt).collect();
        unsent.into_iter().for_each(|attempt| self.withdrawn(attempt, Duration::ZERO));
        // Of one that may have been submitted the next look at Slurm says what it is.
        let due: BTreeMap<u64, u64> = self
            .jobs
            .iter()
            .filter(|(_, job)| leaves(job))
            .filter_map(|(&attempt, job)| Some((job.id?, attempt)))
            .collect();
        if due.is_empty() || (self.away.is_some() && Instant::now() < self.next_poll) {
            return;
        }
        if let Err(Failure::Away(reason) | Failure::Refused(reason)) = self.withdraw_all(&due) {
            self.is_away(&reason);
            self.next_poll = Instant::now() + self.poll;
        }
    }

    /// The same for these, by their numbers at Slurm. First none of them can start any more; then Slurm says which of them wait, and only
    /// those are cancelled.
    fn withdraw_all(&mut self, due: &BTreeMap<u64, u64>) -> Result<(), Failure> {
        let asked = Instant::now();
        let ids: Vec<u64> = due.keys().copied().collect();
        self.cluster.hold("hold", &ids)?;
        let rows = self.cluster.jobs(&self.prefix, false)?.by_name.into_values();
        let rows: BTreeMap<u64, Row> = rows.map(|row| (row.id, row)).collect();
        let (mut waits, mut gone, mut stays): (Vec<u64>, Vec<u64>, Vec<u64>) = Default::default();
        for (&id, &attempt) in due {
            let Some(job) = self.jobs.get_mut(&attempt) else { continue };
            match rows.get(&id).map(|row| meaning(&row.state, &row.reason)) {
                Some(Meaning::Held) => {
                    job.held = true;
                    waits.push(id);
                }
                // The answer to an earlier time did not come.
                Some(Meaning::Cut(Exit { how: ExitCause::Cancelled, .. })) | None if job.held => {
                    gone.push(id)
                }
                Some(Meaning::Pending) | None => {
                    return Err(Failure::Away(format!("job {id} of Slurm is to leave, and cannot be held")));
                }
                // How it ends is seen as always.
                Some(_) => stays.push(id),
            }
        }
        self.cluster.cancel(&waits)?;
        for id in waits.into_iter().chain(gone) {
            let attempt = due[&id];
            // An operator may have released it between the two: then that was its execution.
            let has_begun = self.jobs.get(&attempt).is_some_and(|job| self.begun.join(&job.name).exists());
            if has_begun { stays.push(id) } else { self.withdrawn(attempt, asked.elapsed()) }
        }
        for id in &stays {
            if let Some(job) = self.jobs.get_mut(&due[id]) {
                job.leaves = false;
                begin(job);
            }
        }
        // What runs was held as well, as Slurm has it: queued again, it would wait for ever.
        self.cluster.hold("release", &stays)
    }

    fn withdrawn(&mut self, attempt: u64, took: Duration) {
        let Some(job) = self.jobs.remove(&attempt) else { return };
        tracing::info!(
            job = job.ticket.job.0,
            slurm = job.id,
            ?took,
            "a job that waited is cancelled in Slurm, to leave"
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
        let answers = self.away.is_none();
        self.jobs.iter().filter(move |(_, job)| answers && is_due(job)).map(|(&attempt, _)| attempt)
    }

    /// Submits some of what was not.
    fn submit(&mut self) {
        let due: Vec<u64> = self.to_submit().take(SUBMISSIONS).collect();
        for attempt in due {
            let Some(job) = self.jobs.get_mut(&attempt) else { continue };
            let Ticket { told, processors, job: number, .. } = &job.ticket;
            let name = format!("{}{}", self.prefix, job.name);
            let (done, begun) = (self.done.join(&job.name), self.begun.join(&job.name));
            let asked = Instant::now();
            let paths = [&done, &begun, &told.output, &told.errors].map(|path| text(path));
            let submitted = match paths {
                [Ok(done), Ok(begun), Ok(output), Ok(errors)] => {
                    let words = told.words.iter().map(String::as_str);
                    let arguments: Vec<&str> =
                        [done.as_str(), begun.as_str()].into_iter().chain(words).collect();
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
            match submitted {
                Ok(id) => {
                    tracing::info!(job = number.0, slurm = id, name, took = ?asked.elapsed(), "submitted to Slurm");
                    job.id = Some(id);
                }
                Err(Failure::Refused(reason)) => {
                    let why = Some(format!("Slurm refuses it: {reason}"));
                    self.over(attempt, Exit { how: ExitCause::NotStarted, code: None, why });
                }
                Err(Failure::Away(reason)) => {
                    job.tried = true;
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
        let Some(Rows { mut by_name, again, foreign }) = rows else { return };
        if let Some(load) = &self.load
            && foreign != self.foreign
        {
            self.foreign = foreign;
            (load.hears)(foreign);
        }
        let again: Vec<u64> = again.iter().filter(|row| is_active(row)).map(|row| row.id).collect();
        if !again.is_empty() {
            tracing::warn!(
                ?again,
                "submitted twice, as Slurm did not answer the first time; the second is cancelled"
            );
            if let Err(Failure::Away(reason) | Failure::Refused(reason)) = self.cluster.cancel(&again) {
                self.is_away(&reason);
            }
        }
        let mut over = Vec::new();
        for (&attempt, job) in &mut self.jobs {
            let row = by_name.remove(&job.name);
            // The answer to its cancellation may be lost. Whoever withdraws it asks again, and is the one to say what it was.
            if job.leaves && job.held {
                continue;
            }
            let Some(row) = row else {
                match (job.id, job.tried) {
                    (Some(_), _) => {
                        job.looks += 1;
                        if job.looks >= LOOKS {
                            let why = Some(
                                "Slurm does not know it any more, and it has not said how it ended"
                                    .to_string(),
                            );
                            over.push((attempt, Exit { how: ExitCause::Unknown, code: None, why }));
                        }
                    }
                    // It never arrived.
                    (None, true) => job.tried = false,
                    (None, false) => {}
                }
                continue;
            };
            if job.id.is_none() {
                tracing::info!(
                    job = job.ticket.job.0,
                    slurm = row.id,
                    "Slurm has a job, although it did not say so"
                );
                job.id = Some(row.id);
            }
            let meaning = meaning(&row.state, &row.reason);
            if job.said.as_ref() != Some(&meaning) {
                told_of(job, &row, &meaning);
            }
            match &meaning {
                Meaning::Ended { code } => {
                    job.looks += 1;
                    if job.looks >= LOOKS {
                        let how = if code.is_some() { ExitCause::Exit } else { ExitCause::Unknown };
                        let why = Some(format!(
                            "Slurm says {} ({}), and it has not said how itself",
                            row.state, row.reason
                        ));
                        over.push((attempt, Exit { how, code: *code, why }));
                    }
                }
                Meaning::Cut(exit) => over.push((attempt, exit.clone())),
                Meaning::Runs | Meaning::Stands => {
                    job.looks = 0;
                    begin(job);
                }
                Meaning::Pending | Meaning::Held => job.looks = 0,
            }
            job.said = Some(meaning);
        }
        for (attempt, exit) in over {
            // It may have ended by itself just before.
            let file = self.jobs.get(&attempt).and_then(|job| code(&self.done.join(&job.name)));
            let exit = file.map_or(exit, |code| Exit { how: ExitCause::Exit, code: Some(code), why: None });
            self.over(attempt, exit);
        }
    }

    fn over(&mut self, attempt: u64, exit: Exit) {
        let Some(job) = self.jobs.remove(&attempt) else { return };
        if job.stopped {
            // If it is started again here, that is another execution.
            let _ = std::fs::remove_file(self.done.join(&job.name));
        }
        let _ = std::fs::remove_file(self.begun.join(&job.name));
        (job.ticket.hears)(What::Ended(exit));
    }
}

fn begin(job: &mut Job) {
    if !std::mem::replace(&mut job.begun, true) {
        (job.ticket.hears)(What::Begun);
    }
}

/// Says what the operator of the site should know, and what becomes of the job.
fn told_of(job: &Job, row: &Row, meaning: &Meaning) {
    let (number, id, reason) = (job.ticket.job.0, row.id, row.reason.as_str());
    let ran = matches!(job.said, Some(Meaning::Runs | Meaning::Stands));
    let was_held = job.said == Some(Meaning::Held);
    let says = |state| (job.ticket.hears)(What::Said(state));
    match meaning {
        Meaning::Pending if ran => {
            tracing::warn!(job = number, slurm = id, reason, "Slurm has queued a job again that ran");
            says(BatchState::Requeued);
        }
        Meaning::Pending if was_held => says(BatchState::Released),
        Meaning::Pending => tracing::info!(job = number, slurm = id, reason, "a job waits in Slurm"),
        // To leave.
        Meaning::Held if job.leaves => {}
        Meaning::Held => {
            if ran {
                says(BatchState::Requeued);
            }
            tracing::warn!(
                job = number,
                slurm = id,
                reason,
                "a job is held in Slurm until somebody releases or cancels it"
            );
            says(BatchState::Held);
        }
        Meaning::Stands => {
            tracing::warn!(job = number, slurm = id, reason, "a job stands still in Slurm");
            says(BatchState::Suspended);
        }
        Meaning::Runs if job.said == Some(Meaning::Stands) => {
            tracing::info!(job = number, slurm = id, "a job goes on in Slurm");
            says(BatchState::Resumed);
        }
        Meaning::Runs if was_held => says(BatchState::Released),
        Meaning::Runs | Meaning::Ended { .. } | Meaning::Cut(_) => {}
    }
}

fn is_active(row: &Row) -> bool {
    !matches!(meaning(&row.state, &row.reason), Meaning::Ended { .. } | Meaning::Cut(_))
}

/// The exit code that a job wrote down.
fn code(path: &Path) -> Option<i32> {
    bounded::read_text(path, CODE_BYTES).ok()?.trim().parse().ok()
}
