//! What can be observed of a run: the one event log that reports, metrics and checkers read.
//!
//! Peers and drivers emit [`Event`]s; nothing else is recorded anywhere. On disk an event is one JSON object a
//! line, times in microseconds of trace time. Add fields with a default, and never rename one.

use serde::{Deserialize, Serialize};

use crate::grid::SiteId;
use crate::job::JobId;
use crate::time::{Span, Time};

/// Something that happened at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, by the clock of the driver.
    pub at: Time,
    /// The site that it happened at, and whose log says so.
    pub site: SiteId,
    /// What happened, with the job or the other site that it is about.
    pub kind: EventKind,
}

impl Event {
    /// The sites that it names: where it happened, and the other that it is about.
    pub fn sites(&self) -> impl Iterator<Item = SiteId> {
        std::iter::once(self.site).chain(self.kind.other())
    }
}

/// What happened. One job at most per event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The site became the first owner of a job.
    Submitted {
        /// The job that enters the grid here.
        job: JobId,
        /// Processors that the job needs.
        processors: u32,
        /// The user's estimate of its run time.
        requested: Span,
        /// Where the user submitted it.
        origin: SiteId,
    },
    /// The site began to execute a job.
    Started {
        /// The job that executes here from now on.
        job: JobId,
        /// Processors that it holds from now on.
        processors: u32,
        /// How often it changed sites.
        hops: u32,
    },
    /// A job ended and freed its processors.
    Completed {
        /// The job that ended by itself.
        job: JobId,
        /// Processors that are idle again.
        processors: u32,
    },
    /// The site gave a job away; until it is settled nobody else may start it.
    Granted {
        /// The job on its way; this site remembers it until the transfer is settled or returned.
        job: JobId,
        /// The site it goes to.
        to: SiteId,
        /// Number of the transfer between the two sites.
        transfer: u64,
        /// How often the job will have changed sites when it is accepted.
        hops: u32,
        /// Why it was given away.
        #[serde(default)]
        cause: GrantCause,
        /// Number of the request that it answers, as in [`EventKind::Requested`] of the receiver; 0 if it answers none.
        #[serde(default)]
        request: u64,
    },
    /// A broker chose a site for a job.
    Allocated {
        /// The job that was waiting here.
        job: JobId,
        /// The site that it is sent to.
        to: SiteId,
        /// When the newest thing happened that the broker knew of that site, by the site's clock; none if it knew nothing.
        as_of: Option<Time>,
    },
    /// The site became the owner of a job that was granted to it.
    Accepted {
        /// The job that waits or starts here from now on.
        job: JobId,
        /// The former owner.
        from: SiteId,
        /// Number of the transfer.
        transfer: u64,
        /// Whether it had to be taken although it did not fit at once.
        firm: bool,
    },
    /// The site did not want a job that was granted to it.
    Declined {
        /// The job that stays with its owner.
        job: JobId,
        /// The owner that granted it and has it again.
        from: SiteId,
        /// Number of the transfer.
        transfer: u64,
        /// Why it was of no use here.
        reason: DeclineReason,
    },
    /// A declined job is back in the owner's queue.
    Returned {
        /// The job that waits here again.
        job: JobId,
        /// The site that declined.
        by: SiteId,
        /// Number of the transfer.
        transfer: u64,
        /// How often it was declined so far.
        bounces: u32,
    },
    /// The former owner learned that the transfer was accepted.
    Settled {
        /// The job that has another owner now.
        job: JobId,
        /// The new owner.
        to: SiteId,
        /// Number of the transfer.
        transfer: u64,
    },
    /// The site asked another for work.
    Requested {
        /// The site asked.
        victim: SiteId,
        /// Number of the request between the two sites.
        seq: u64,
        /// Processors that the thief could give to stolen jobs when the request left.
        offer: u32,
        /// How old the newest news of the victim's queue was when the request left: the time since it arrived, plus
        /// half of the round trip as far as this site has measured one. None if nothing was ever heard.
        #[serde(default)]
        view_age: Option<Span>,
    },
    /// The answer to a request arrived.
    Answered {
        /// The site that was asked.
        victim: SiteId,
        /// Number of the request.
        seq: u64,
        /// Jobs that came with the answer; 0 is a refusal.
        jobs: u32,
    },
    /// The site had nothing for a request.
    Refused {
        /// The site that asked.
        thief: SiteId,
        /// Number of the request.
        seq: u64,
        /// Why the thief got no job.
        reason: RefusalReason,
    },
    /// A message left.
    Sent {
        /// The site that the message is for.
        to: SiteId,
        /// What the message says, without its content.
        message: MessageKind,
        /// Whether it repeats an earlier one that went unanswered.
        retry: bool,
    },
    /// A message arrived.
    Received {
        /// The site that sent the message.
        from: SiteId,
        /// What the message says, without its content.
        message: MessageKind,
    },
    /// A message changed nothing because it was late, repeated or superseded.
    Ignored {
        /// The site that sent the message.
        from: SiteId,
        /// What the message says, without its content.
        message: MessageKind,
    },
    /// The site gave a waiting job to the global queue.
    Offered {
        /// The waiting job that other sites can take from now on.
        job: JobId,
        /// Counts the offers of this job by this site, from 1.
        version: u64,
    },
    /// An offer is gone: the job starts here, or was granted.
    Withdrawn {
        /// The job that was offered.
        job: JobId,
        /// Number of the offer, as in `Offered`.
        version: u64,
    },
    /// The site reserved processors for a job that another site offers, and asked for it.
    Claimed {
        /// The job that is asked for.
        job: JobId,
        /// The site that offers the job and decides on the claim.
        owner: SiteId,
        /// Counts the claims of this site.
        claim: u64,
        /// Processors that stay idle here until the claim is released.
        processors: u32,
    },
    /// The processors reserved by a claim are no longer.
    Released {
        /// The job that was claimed.
        job: JobId,
        /// Number of the claim, as in `Claimed`.
        claim: u64,
        /// Processors that were reserved.
        processors: u32,
        /// For how long.
        held: Span,
        /// What became of the claim.
        reason: ReleaseReason,
    },
    /// The owner of a job turned down a claim.
    Denied {
        /// The job that is not to be had under this claim.
        job: JobId,
        /// The site that claimed it.
        claimant: SiteId,
        /// Number of the claim, as in `Claimed` of the claimant.
        claim: u64,
    },
    /// The site follows another host of the global queue, or became it.
    Followed {
        /// The host that this site follows from now on; itself if it became the host.
        host: SiteId,
        /// Counts the hosts.
        counter: u64,
    },
    /// The site restarted after a crash, with what its journal says.
    Recovered {
        /// Number of the new process: journals lost before times 2^16, plus restarts with this one.
        incarnation: u32,
        /// Jobs that waited.
        waiting: u32,
        /// Jobs that executed.
        running: u32,
        /// Transfers that were not answered.
        out: u32,
    },
    /// A job executed here when the site crashed, or when another site lost its part of it. What it had done is lost, and its processors are free.
    Interrupted {
        /// The job whose execution was cut off.
        job: JobId,
        /// Processors that the job held.
        processors: u32,
        /// Whether it is given up; else it waits again.
        killed: bool,
    },
    /// Nothing was heard of a site for a while: it is not asked and not waited for.
    Suspected {
        /// The silent site.
        peer: SiteId,
    },
    /// A site was heard of again.
    Heard {
        /// The site that is there again.
        peer: SiteId,
        /// How long it was silent.
        after: Span,
    },
    /// Nothing was heard of a site for so long that its jobs are taken over.
    Gone {
        /// The site that is given up.
        peer: SiteId,
    },
    /// A site takes no more jobs and gives those away that wait there.
    Left {
        /// The site that leaves.
        peer: SiteId,
    },
    /// The site took a job over from one that is gone. The job may have run there.
    TookOver {
        /// The job that this site is the owner of from now on.
        job: JobId,
        /// Who had it, as far as is known.
        holder: SiteId,
        /// Counts the take-overs of the job.
        epoch: u32,
    },
    /// The site learned that a job it has was taken over by another.
    Superseded {
        /// The job that is now another site's.
        job: JobId,
        /// Counts the take-overs of the job.
        epoch: u32,
        /// Whether it executes here: then it runs twice. Else it is dropped.
        started: bool,
    },
    /// No site that is there is wide enough for a job. It waits until one is.
    Orphaned {
        /// The job that waits here.
        job: JobId,
        /// Processors that it needs: more than any site that is there has.
        processors: u32,
    },
    /// The network lost a message of this site. Emitted by drivers.
    Lost {
        /// The receiver that never sees it.
        to: SiteId,
        /// What the message said, without its content.
        message: MessageKind,
    },
    /// The process of this site ended, stands still, or is not there yet. Emitted by drivers, when it happens.
    Ended {
        /// What was done to the process.
        how: EndCause,
    },
    /// The process of this site begins, or goes on, after it was away. Emitted by drivers; not for sites that are there
    /// from the start.
    Begun {
        /// What the process comes back from.
        how: BeginCause,
    },
    /// The operator told this site to leave. Emitted by drivers.
    Dismissed {},
    /// A job that a broker had given to a site was called back for waiting too long, and waits here again.
    Recalled {
        /// The job that waits for another site, or the same.
        job: JobId,
        /// The site that gave it back.
        from: SiteId,
    },
    /// A broker learned from one of its jobs that ended. What it took in all is the sum of the four times.
    Learned {
        /// The job that ended.
        job: JobId,
        /// The site where it did.
        of: SiteId,
        /// te: how long it executed.
        execution: Span,
        /// tf: how long it was in the queue of the site.
        queue: Span,
        /// ttr: how long it, and what came of it, were on their way.
        transfer: Span,
        /// What else: where it was called back from, if that counts.
        overhead: Span,
        /// The efficiency of the site afterwards, in millionths, from -1000000 to 1000000.
        efficiency_millionths: i32,
    },
    /// The external strategy of this site is not asked any more; its fallback decides from here on.
    FellBack {
        /// Why it is not asked.
        cause: FallbackCause,
    },
    /// The site predicts how long a job runs: when it joins the queue here, or a broker looks at it first, and whenever it has run past
    /// what was predicted. Not where users are believed.
    Predicted {
        /// The job that waits or runs here.
        job: JobId,
        /// How long it is believed to run in all, from its start.
        run_time: Span,
        /// How often it ran past a prediction; 0 for the first.
        corrections: u32,
    },
    /// The site began to execute a part of a job over several sites, which started at another with the rest.
    PartStarted {
        /// The job that executes here, too, from now on.
        job: JobId,
        /// Processors that it holds here.
        processors: u32,
        /// The site that says [`EventKind::Started`] of it, with the processors there alone.
        of: SiteId,
    },
    /// A part of a job over several sites is over, and its processors are free: the job ended, or the part was stopped, as another one was lost.
    PartCompleted {
        /// The job that has ended, or begins anew.
        job: JobId,
        /// Processors that are idle again.
        processors: u32,
        /// The site that says [`EventKind::Completed`] of it.
        of: SiteId,
    },
    /// A job over several sites did not run to its end at all of them. What the first of them said of its end, if it did, counts for nothing: it had
    /// yet to hear of the others. Its broker says it, once all parts are over, of each such job that is given up, and else of those with such an
    /// end.
    Revoked {
        /// The job that waits at its broker again, or is given up.
        job: JobId,
        /// The site that may have said that it is completed.
        of: SiteId,
        /// Whether it is given up.
        killed: bool,
    },
    /// A task of a job that starts is on this node, where jobs share nodes. Emitted by drivers after the start, once for each task.
    Placed {
        /// The job that starts here.
        job: JobId,
        /// The node, counted within its site from 0.
        node: u32,
    },
    /// How fast a job on shared nodes goes on from now on, until it is said anew or it ends. Emitted by drivers.
    Paced {
        /// The job that executes here.
        job: JobId,
        /// How many times longer what is left of it takes than on idle nodes of full power, in millionths.
        slowdown_millionths: u64,
        /// The part of that time in which it computes, in millionths.
        computing_millionths: u32,
    },
    /// The command that a job was here has ended, at the time of its [`EventKind::Completed`], which follows. Emitted by drivers, only where jobs
    /// are commands.
    Exited {
        /// The job that executed here.
        job: JobId,
        /// What ended it.
        how: ExitCause,
        /// Its exit code, if it is known; 128 more than the number of the signal that ended it.
        code: Option<i32>,
    },
    /// The batch system of the site says of a job what is neither a start nor an end. Emitted by drivers.
    Batch {
        /// The job that waits or executes here.
        job: JobId,
        /// What became of it.
        state: BatchState,
    },
}

impl EventKind {
    /// The other site that it is about, if there is one.
    pub fn other(&self) -> Option<SiteId> {
        use EventKind as Kind;
        match *self {
            Kind::Submitted { origin: other, .. }
            | Kind::Granted { to: other, .. }
            | Kind::Allocated { to: other, .. }
            | Kind::Accepted { from: other, .. }
            | Kind::Declined { from: other, .. }
            | Kind::Returned { by: other, .. }
            | Kind::Settled { to: other, .. }
            | Kind::Requested { victim: other, .. }
            | Kind::Answered { victim: other, .. }
            | Kind::Refused { thief: other, .. }
            | Kind::Sent { to: other, .. }
            | Kind::Received { from: other, .. }
            | Kind::Ignored { from: other, .. }
            | Kind::Claimed { owner: other, .. }
            | Kind::Denied { claimant: other, .. }
            | Kind::Followed { host: other, .. }
            | Kind::Suspected { peer: other }
            | Kind::Heard { peer: other, .. }
            | Kind::Gone { peer: other }
            | Kind::Left { peer: other }
            | Kind::TookOver { holder: other, .. }
            | Kind::Lost { to: other, .. }
            | Kind::Recalled { from: other, .. }
            | Kind::PartStarted { of: other, .. }
            | Kind::PartCompleted { of: other, .. }
            | Kind::Revoked { of: other, .. }
            | Kind::Learned { of: other, .. } => Some(other),
            Kind::Started { .. }
            | Kind::Completed { .. }
            | Kind::Offered { .. }
            | Kind::Withdrawn { .. }
            | Kind::Released { .. }
            | Kind::Recovered { .. }
            | Kind::Interrupted { .. }
            | Kind::Superseded { .. }
            | Kind::Orphaned { .. }
            | Kind::Ended { .. }
            | Kind::Begun { .. }
            | Kind::Dismissed {}
            | Kind::FellBack { .. }
            | Kind::Predicted { .. }
            | Kind::Placed { .. }
            | Kind::Paced { .. }
            | Kind::Exited { .. }
            | Kind::Batch { .. } => None,
        }
    }
}

/// What ended a command that was a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    /// It ended by itself.
    Exit,
    /// A signal that the site did not send.
    Signal,
    /// It was killed when it had run for as long as it may.
    WallTime,
    /// It needed more memory than it may have.
    Memory,
    /// It never ran: there is no such program, or the batch system refused it.
    NotStarted,
    /// Somebody cancelled it in the batch system.
    Cancelled,
    /// The node of the batch system that it ran on failed.
    NodeFailed,
    /// Nobody can say.
    Unknown,
}

impl ExitCause {
    /// All of them.
    pub const ALL: [ExitCause; 8] = [
        ExitCause::Exit,
        ExitCause::Signal,
        ExitCause::WallTime,
        ExitCause::Memory,
        ExitCause::NotStarted,
        ExitCause::Cancelled,
        ExitCause::NodeFailed,
        ExitCause::Unknown,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            ExitCause::Exit => "exit",
            ExitCause::Signal => "signal",
            ExitCause::WallTime => "wall_time",
            ExitCause::Memory => "memory",
            ExitCause::NotStarted => "not_started",
            ExitCause::Cancelled => "cancelled",
            ExitCause::NodeFailed => "node_failed",
            ExitCause::Unknown => "unknown",
        }
    }
}

/// What a batch system does with a job between its submission and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BatchState {
    /// Somebody holds it: it does not start until it is released.
    Held,
    /// It may start again.
    Released,
    /// It ran, and waits to run again from the beginning.
    Requeued,
    /// Somebody has stopped it, and it keeps its processors.
    Suspended,
    /// It goes on.
    Resumed,
}

/// Why an external strategy is not asked any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FallbackCause {
    /// It could not be started, or said nothing for too long at its start.
    Start,
    /// It ended.
    Died,
    /// It took longer for a decision than it may.
    Late,
    /// It answered what cannot be, or more than it may.
    Nonsense,
    /// It asked to be called more often than it may (`external.calls`), while nothing changed.
    Calls,
}

impl FallbackCause {
    /// All of them.
    pub const ALL: [FallbackCause; 5] = [
        FallbackCause::Start,
        FallbackCause::Died,
        FallbackCause::Late,
        FallbackCause::Nonsense,
        FallbackCause::Calls,
    ];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            FallbackCause::Start => "start",
            FallbackCause::Died => "died",
            FallbackCause::Late => "late",
            FallbackCause::Nonsense => "nonsense",
            FallbackCause::Calls => "calls",
        }
    }
}

/// Why a site is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// A crash; it will restart.
    Crash,
    /// A crash, for good. All that the site had recorded before is in the log.
    Death,
    /// It had left: it was told to, and had nothing left to do. All that it had recorded is in the log.
    Leave,
    /// It stands still, as by SIGSTOP, with all that it has.
    Pause,
    /// It has not begun: the site joins later.
    Absent,
    /// The driver found it ended without having done it: at some time after its last event. It restarts at once, or
    /// never does.
    Found,
}

/// How the process of a site came to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BeginCause {
    /// The site was not there before.
    Join,
    /// With what its journal says, after a crash.
    Restart,
    /// It stood still, and goes on.
    Resume,
}

impl EndCause {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            EndCause::Crash => "crash",
            EndCause::Death => "death",
            EndCause::Leave => "leave",
            EndCause::Pause => "pause",
            EndCause::Absent => "absent",
            EndCause::Found => "found",
        }
    }

    /// Whether what executed there is lost with the process.
    pub fn interrupts(self) -> bool {
        matches!(self, EndCause::Crash | EndCause::Death | EndCause::Found)
    }
}

impl BeginCause {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            BeginCause::Join => "join",
            BeginCause::Restart => "restart",
            BeginCause::Resume => "resume",
        }
    }
}

/// Why a granted job was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeclineReason {
    /// The site has waiting jobs of its own, which go first.
    OwnWork,
    /// The idle processors offered are no longer idle.
    DoesNotFit,
    /// The owner asked for the job back before it had arrived.
    Recalled,
    /// The claim that it grants was given up.
    Unclaimed,
    /// The job was taken over since. This copy is dropped and does not go back.
    Superseded,
}

/// Why a claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseReason {
    /// The job was granted and starts.
    Granted,
    /// The owner turned it down.
    Denied,
    /// No answer came in time.
    Dropped,
}

impl DeclineReason {
    /// All reasons, in the order of their definition.
    pub const ALL: [DeclineReason; 5] = [
        DeclineReason::OwnWork,
        DeclineReason::DoesNotFit,
        DeclineReason::Recalled,
        DeclineReason::Unclaimed,
        DeclineReason::Superseded,
    ];

    /// The name in files and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            DeclineReason::OwnWork => "own_work",
            DeclineReason::DoesNotFit => "does_not_fit",
            DeclineReason::Recalled => "recalled",
            DeclineReason::Unclaimed => "unclaimed",
            DeclineReason::Superseded => "superseded",
        }
    }
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// No job of this site waits.
    Empty,
    /// Jobs wait, but none that the thief may take fits its offer.
    TooWide,
    /// A limit of the victim is reached.
    Busy,
    /// Jobs wait that fit, but none would start at the thief earlier by more than the margin.
    Margin,
}

impl RefusalReason {
    /// All reasons, in the order of their definition.
    pub const ALL: [RefusalReason; 4] =
        [RefusalReason::Empty, RefusalReason::TooWide, RefusalReason::Busy, RefusalReason::Margin];

    /// The name in files and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            RefusalReason::Empty => "empty",
            RefusalReason::TooWide => "too_wide",
            RefusalReason::Busy => "busy",
            RefusalReason::Margin => "margin",
        }
    }
}

/// Why a site gave a job away.
///
/// The price of a steal is read off four events of one job: [`EventKind::Requested`] at the thief (the request left),
/// [`EventKind::Granted`] at the victim (it was served), [`EventKind::Accepted`] and [`EventKind::Started`] at the
/// thief (the job arrived and began). Only the first is missing for causes other than [`GrantCause::Request`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantCause {
    /// Not recorded: the log was written by an older release.
    #[default]
    Unknown,
    /// The receiver asked for work; the event says by which request.
    Request,
    /// A standing request was served without being repeated.
    Standing,
    /// The site had too much and was not asked.
    Push,
    /// The job was submitted here and belongs to its home.
    Route,
    /// The job goes through a global queue.
    Pool,
}

impl GrantCause {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            GrantCause::Unknown => "unknown",
            GrantCause::Request => "request",
            GrantCause::Standing => "standing",
            GrantCause::Push => "push",
            GrantCause::Route => "route",
            GrantCause::Pool => "pool",
        }
    }
}

/// Kinds of messages between peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// An idle site asks for work.
    Request,
    /// There is none.
    NoWork,
    /// Jobs change owner.
    Grant,
    /// The receiver of a grant says which it took.
    Reply,
    /// A queue turned empty, non-empty, or has narrower jobs.
    Notice,
    /// A notice was seen.
    Seen,
    /// Stop serving me.
    Withdraw,
    /// A job submitted elsewhere goes to its home.
    Route,
    /// The owner would like a granted job back.
    Recall,
    /// Transfers below a number are settled.
    Floor,
    /// A site's record for the global queue changed.
    Board,
    /// Who is host of the global queue.
    Host,
    /// The host says where an offered job goes.
    Assign,
    /// A site asks for an offered job.
    Claim,
    /// It does not get it.
    Deny,
    /// An offered job changes owner.
    Award,
    /// A site asked for work by any other has none for it.
    Refuse,
    /// Jobs change owner between any two sites.
    Give,
    /// Tell me when there is work, or room.
    Watch,
    /// There is work, or room, that the receiver had asked to be told of.
    News,
    /// What sites say of their queues, passed on.
    Gossip,
    /// I am there.
    Heartbeat,
    /// What became of jobs that the receiver is responsible for.
    Reports,
    /// That was noted.
    Noted,
    /// What happened at a site, to a broker.
    State,
    /// What happened is known.
    Known,
    /// Tell me what happened.
    Probe,
    /// Tell me all, from the beginning.
    Anew,
    /// Keep processors for a part of a job that starts at several sites at once.
    Prepare,
    /// All parts of a job have processors: start.
    Commit,
    /// A job does not start in these parts.
    Abort,
    /// Processors are kept for a part.
    Ready,
    /// A part is over, and its processors are free.
    Over,
}

impl MessageKind {
    /// Whether it is about jobs on their way to another site, and no question of what there is.
    pub fn hands_over(self) -> bool {
        matches!(self, MessageKind::Route | MessageKind::Reply | MessageKind::Recall | MessageKind::Floor)
    }

    /// All kinds, in the order of their definition.
    pub const ALL: [MessageKind; 33] = [
        MessageKind::Request,
        MessageKind::NoWork,
        MessageKind::Grant,
        MessageKind::Reply,
        MessageKind::Notice,
        MessageKind::Seen,
        MessageKind::Withdraw,
        MessageKind::Route,
        MessageKind::Recall,
        MessageKind::Floor,
        MessageKind::Board,
        MessageKind::Host,
        MessageKind::Assign,
        MessageKind::Claim,
        MessageKind::Deny,
        MessageKind::Award,
        MessageKind::Refuse,
        MessageKind::Give,
        MessageKind::Watch,
        MessageKind::News,
        MessageKind::Gossip,
        MessageKind::Heartbeat,
        MessageKind::Reports,
        MessageKind::Noted,
        MessageKind::State,
        MessageKind::Known,
        MessageKind::Probe,
        MessageKind::Anew,
        MessageKind::Prepare,
        MessageKind::Commit,
        MessageKind::Abort,
        MessageKind::Ready,
        MessageKind::Over,
    ];

    /// The name in files and metric labels.
    pub fn name(self) -> &'static str {
        match self {
            MessageKind::Request => "request",
            MessageKind::NoWork => "no_work",
            MessageKind::Grant => "grant",
            MessageKind::Reply => "reply",
            MessageKind::Notice => "notice",
            MessageKind::Seen => "seen",
            MessageKind::Withdraw => "withdraw",
            MessageKind::Route => "route",
            MessageKind::Recall => "recall",
            MessageKind::Floor => "floor",
            MessageKind::Board => "board",
            MessageKind::Host => "host",
            MessageKind::Assign => "assign",
            MessageKind::Claim => "claim",
            MessageKind::Deny => "deny",
            MessageKind::Award => "award",
            MessageKind::Refuse => "refuse",
            MessageKind::Give => "give",
            MessageKind::Watch => "watch",
            MessageKind::News => "news",
            MessageKind::Gossip => "gossip",
            MessageKind::Heartbeat => "heartbeat",
            MessageKind::Reports => "reports",
            MessageKind::Noted => "noted",
            MessageKind::State => "state",
            MessageKind::Known => "known",
            MessageKind::Probe => "probe",
            MessageKind::Anew => "anew",
            MessageKind::Prepare => "prepare",
            MessageKind::Commit => "commit",
            MessageKind::Abort => "abort",
            MessageKind::Ready => "ready",
            MessageKind::Over => "over",
        }
    }
}
