//! What every peer has, whatever its family: the job ledger, custody, processors, timers, what it knows of others, and
//! the queue of what it wants done.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use brokers::allocation::Patience;
use scheduler::event::{DeclineReason, FallbackCause, GrantCause, MessageKind};
use scheduler::{Capacity, EventKind, JobId, JobSpec, Occupancy, Prediction, Room, SiteId, Span, Time};

use crate::config::PeerConfig;
use crate::handover::{Answer, Custody, Ledger, Record};
use crate::journal::{Fact, Place};
use crate::membership::state::Membership;
use crate::membership::view::View;
use crate::message::{HandOverMessage, Message, Transfer};
use crate::mutant::Mutant;
use crate::ports::Output;
use crate::rank::Rank;
use crate::round_trips::RoundTrips;
use crate::timers::{Timer, Timers};

/// One site's books, without the queue of its family.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) config: PeerConfig,
    pub(crate) rank: Rank,
    pub(crate) free: u32,
    /// What is on the nodes, where jobs share them and no queue under a local scheduler keeps that.
    pub(crate) nodes: Option<Box<Occupancy>>,
    /// Of every job here, whether it waits, is held or runs.
    pub(crate) custody: BTreeMap<JobId, Custody>,
    pub(crate) running: BTreeMap<JobId, Running>,
    /// Facts arrived that had no turn yet.
    pub(crate) fresh: bool,
    /// Counts starts and completions, to notice that an offer changed.
    pub(crate) changes: u64,
    /// Number of this process of the site: journals lost before it times `INCARNATIONS_PER_JOURNAL`, plus
    /// restarts.
    pub(crate) incarnation: u32,
    pub(crate) ledger: Ledger,
    /// Transfers that are routes, not grants: (rank, number).
    pub(crate) routed: BTreeSet<(Rank, u64)>,
    pub(crate) timers: Timers<Timer>,
    pub(crate) round_trips: RoundTrips,
    /// Who is there, if sites say so.
    pub(crate) membership: Option<Box<Membership>>,
    /// Whom this site knows, and who of these is there.
    pub(crate) view: View,
    pub(crate) outputs: VecDeque<Output>,
    /// How long decisions may search; none: as long as they want to.
    pub(crate) patience: Option<Arc<dyn Patience>>,
    /// Whether somebody else decides what starts here, and says so.
    pub(crate) starts_outside: bool,
    /// Processors that are neither idle nor the grid's.
    pub(crate) foreign: u32,
    #[cfg(feature = "mutant")]
    pub(crate) mutant: Option<Mutant>,
}

/// A job that executes here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Running {
    pub(crate) processors: u32,
    pub(crate) estimated_end: Time,
}

/// Numbers of transfers, by what was answered to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    pub(crate) accepted: Vec<u64>,
    pub(crate) declined: Vec<u64>,
}

impl Answers {
    pub(crate) fn push(&mut self, number: u64, answer: Answer) {
        match answer {
            Answer::Accepted => self.accepted.push(number),
            Answer::Declined => self.declined.push(number),
        }
    }

    /// The answer to one transfer.
    pub(crate) fn of(number: u64, answer: Answer) -> Answers {
        let mut answers = Answers::default();
        answers.push(number, answer);
        answers
    }
}

/// Why a job is granted, as the event log tells it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reason {
    cause: GrantCause,
    /// Number of the request that is answered, 0 for none.
    request: u64,
    /// Whether whoever gives it away stays responsible, if nobody else is.
    keeps: bool,
}

impl Reason {
    /// The job goes through the global queue.
    pub(crate) const POOL: Reason = Reason { cause: GrantCause::Pool, request: 0, keeps: true };
    /// The receiver is responsible from then on.
    pub(crate) const ROUTE: Reason = Reason { cause: GrantCause::Route, request: 0, keeps: false };
    /// The job is executed there for this site.
    pub(crate) const LENT: Reason = Reason { cause: GrantCause::Route, request: 0, keeps: true };

    /// Any cause but a request.
    pub(crate) fn of(cause: GrantCause) -> Reason {
        Reason { cause, request: 0, keeps: true }
    }

    /// The answer to a request, or to one that stands.
    pub(crate) fn serving(answers: Option<u64>) -> Reason {
        match answers {
            Some(request) => Reason { cause: GrantCause::Request, request, keeps: true },
            None => Reason { cause: GrantCause::Standing, request: 0, keeps: true },
        }
    }
}

impl Core {
    /// A site with nothing to do. `incarnation` is the number of its process, counted as `Core::incarnation`.
    pub(crate) fn at_rest(config: PeerConfig, incarnation: u32) -> Core {
        let rank = Rank::of(&config.grid, config.site);
        Core {
            rank,
            free: config.grid.sizes()[rank.index()],
            nodes: nodes_of(&config),
            custody: BTreeMap::new(),
            running: BTreeMap::new(),
            fresh: false,
            changes: 0,
            incarnation,
            ledger: Ledger::new(),
            routed: BTreeSet::new(),
            timers: Timers::default(),
            round_trips: RoundTrips::default(),
            membership: Membership::of(&config),
            view: View::of(&config),
            outputs: VecDeque::new(),
            patience: None,
            starts_outside: false,
            foreign: 0,
            #[cfg(feature = "mutant")]
            mutant: None,
            config,
        }
    }

    pub(crate) fn site(&self) -> SiteId {
        self.config.site
    }

    pub(crate) fn site_at(&self, rank: Rank) -> SiteId {
        self.config.grid.at_rank(rank.index())
    }

    pub(crate) fn rank_of(&self, site: SiteId) -> Rank {
        Rank::of(&self.config.grid, site)
    }

    /// What of the site is free for jobs. Where jobs share nodes that is as of the latest start or end: their local users stay.
    pub(crate) fn room(&self) -> Room {
        self.nodes.as_ref().map_or(Room::Processors(self.free), |nodes| nodes.room())
    }

    /// Whether a job can start here now.
    pub(crate) fn fits(&self, job: &JobSpec) -> bool {
        self.nodes.as_ref().map_or(job.processors <= self.free, |nodes| nodes.room().fits(job))
    }

    /// The width of the widest job that can start here now, if it asks for no memory.
    pub(crate) fn idle(&self) -> u32 {
        self.nodes.as_ref().map_or(self.free, |nodes| nodes.room().width())
    }

    /// What executes jobs at a member.
    pub(crate) fn capacity_of(&self, rank: Rank) -> Capacity {
        self.config.grid.capacity(self.site_at(rank))
    }

    /// All processors of a member.
    pub(crate) fn processors_of(&self, rank: Rank) -> u32 {
        self.config.grid.sizes()[rank.index()]
    }

    /// The width of the widest job that fits a member.
    pub(crate) fn width_of(&self, rank: Rank) -> u32 {
        self.config.grid.widths()[rank.index()]
    }

    /// Whether a member only sends jobs to others.
    pub(crate) fn is_broker(&self, rank: Rank) -> bool {
        rank.index() < self.config.grid.brokers()
    }

    /// All processors of the site.
    pub(crate) fn processors(&self) -> u32 {
        self.processors_of(self.rank)
    }

    /// The width of the widest job that fits the site.
    pub(crate) fn width(&self) -> u32 {
        self.width_of(self.rank)
    }

    /// Whether this site has the job: it waits, is held or runs.
    pub(crate) fn is_here(&self, job: JobId) -> bool {
        self.custody.contains_key(&job)
    }

    /// The processors of a job that executes here.
    pub(crate) fn runs_with(&self, job: JobId) -> Option<u32> {
        self.running.get(&job).map(|running| running.processors)
    }

    /// Estimated ends of running jobs with their widths, in no order of time.
    pub(crate) fn releases_of_running(&self) -> impl Iterator<Item = (Time, u32)> {
        self.running.values().map(|running| (running.estimated_end, running.processors))
    }

    /// Processors that execute jobs.
    pub(crate) fn busy(&self) -> u32 {
        self.running.values().map(|running| running.processors).sum()
    }

    /// Whether a site owes so many answers that it gets no more jobs.
    pub(crate) fn is_full(&self, rank: Rank) -> bool {
        self.room_at(rank) == 0
    }

    /// Transfers that a site may be sent before it answers.
    pub(crate) fn room_at(&self, rank: Rank) -> usize {
        self.config.options.unanswered_max.saturating_sub(self.ledger.out_count(self.site_at(rank)))
    }

    /// What is known of where a job was.
    pub(crate) fn custody_of(&self, job: JobId) -> Custody {
        self.custody.get(&job).copied().unwrap_or_default()
    }

    /// The rank of a site for a job whose home means nothing if it fits here. None if it has no home among those present.
    pub(crate) fn here_or(&self, home: Option<Rank>, job: &JobSpec) -> Option<Rank> {
        home.map(|home| if job.processors <= self.width() { self.rank } else { home })
    }

    /// Whether a job can wait here for processors of this site, by a journal. What is too wide waits beside the queue, until
    /// somebody is there who can hold it.
    pub(crate) fn may_hold(&self, job: &JobSpec) -> bool {
        job.processors <= self.width() || self.membership.is_some()
    }

    /// Executes a job.
    pub(crate) fn start(&mut self, now: Time, job: JobSpec) {
        self.start_until(now, job, now.saturating_add(job.requested));
    }

    /// The same with another estimate of its end than its user's.
    pub(crate) fn start_until(&mut self, now: Time, job: JobSpec, estimated_end: Time) {
        assert!(job.processors <= self.free, "a policy started job {} that does not fit", job.id);
        let uncounted = self.has(Mutant::CountsOneLess) && job.processors > 1;
        let processors = match self.has(Mutant::NoTimeNoRoom) && job.requested == Span::ZERO {
            true => 0,
            false => job.processors - u32::from(uncounted),
        };
        self.free -= processors;
        if let Some(nodes) = &mut self.nodes {
            nodes
                .start(now, &job)
                .unwrap_or_else(|error| panic!("a policy started what does not fit: {error}"));
        }
        let running = Running { processors, estimated_end };
        let before = self.running.insert(job.id, running);
        assert!(before.is_none(), "job {} runs once", job.id);
        self.changes += 1;
        self.write(Fact::Started { job: job.id, at: now });
        let hops = self.custody_of(job.id).hops;
        self.event(EventKind::Started { job: job.id, processors: job.processors, hops });
        self.outputs.push_back(Output::Start(job));
    }

    /// What executes here, or is about to, and is none of the grid's has so many processors; no more than are idle.
    pub(crate) fn is_busy_with(&mut self, foreign: u32) {
        let idle = self.free + self.foreign;
        let foreign = foreign.min(idle);
        if foreign != self.foreign {
            (self.free, self.foreign) = (idle - foreign, foreign);
            self.fresh = true;
            self.changes += 1;
        }
    }

    /// A job has so many processors from now on, whoever was believed to have them.
    pub(crate) fn makes_room(&mut self, processors: u32) {
        self.is_busy_with(self.foreign.min((self.free + self.foreign).saturating_sub(processors)));
    }

    /// A running job is believed to end then. When it was before, and its processors; none if it does not run.
    pub(crate) fn expects_end(&mut self, job: JobId, at: Time) -> Option<(Time, u32)> {
        let running = self.running.get_mut(&job)?;
        Some((std::mem::replace(&mut running.estimated_end, at), running.processors))
    }

    /// Sends a job to a site that becomes its owner and must take it.
    pub(crate) fn route(&mut self, now: Time, to: Rank, job: JobSpec, custody: Custody) {
        let transfer = self.grant_transfer(now, to, job, custody, Reason::ROUTE);
        self.routed.insert((to, transfer.number));
        self.write(Fact::Routed { to: self.site_at(to), number: transfer.number });
        let told = if self.has(Mutant::FloorOfAnother) { Rank(to.0 % 8) } else { to };
        let floor = self.ledger.floor_to(self.site_at(told));
        self.send(to, HandOverMessage::Route { transfers: vec![transfer], floor });
    }

    /// Writes a transfer down and arms its timer; the caller sends it.
    pub(crate) fn grant_transfer(
        &mut self,
        now: Time,
        to: Rank,
        job: JobSpec,
        custody: Custody,
        why: Reason,
    ) -> Transfer {
        let site = self.site_at(to);
        let guardian = custody.guardian.or(why.keeps.then_some(self.site()));
        let (record, transfer) = self.ledger.grant(site, job, Custody { guardian, ..custody });
        self.apply(record);
        self.guarded_out(site, &transfer, custody);
        self.custody.remove(&job.id);
        self.round_trips.transfer_left(to, transfer.number, now);
        if let Some(retry) = self.config.options.retry {
            self.timers.set(Timer::Transfer(to, transfer.number), now, retry);
        }
        self.event(EventKind::Granted {
            job: job.id,
            to: site,
            transfer: transfer.number,
            hops: transfer.hops,
            cause: why.cause,
            request: why.request,
        });
        transfer
    }

    /// A copy of a job that was taken over since, and is nobody's from now on. To decline it would not do: whoever had it
    /// may not hear of the take-over for long, and would give it away again and again.
    pub(crate) fn take_void(&mut self, from: SiteId, transfer: &Transfer) -> Answer {
        self.apply(self.ledger.answer(from, transfer.number, Answer::Accepted));
        let reason = DeclineReason::Superseded;
        self.event(EventKind::Declined { job: transfer.job.id, from, transfer: transfer.number, reason });
        Answer::Accepted
    }

    /// Declines a transfer that was never answered, and writes the answer down.
    pub(crate) fn decline(&mut self, from: SiteId, transfer: &Transfer, reason: DeclineReason) -> Answer {
        self.apply(self.ledger.answer(from, transfer.number, Answer::Declined));
        self.event(EventKind::Declined { job: transfer.job.id, from, transfer: transfer.number, reason });
        Answer::Declined
    }

    /// Answers transfers; says nothing if there are none.
    pub(crate) fn reply(&mut self, to: Rank, Answers { accepted, declined }: Answers) {
        if !accepted.is_empty() || !declined.is_empty() {
            self.send(to, HandOverMessage::Reply { accepted, declined });
        }
    }

    /// Notes below which number a site asks for no answer any more.
    pub(crate) fn on_floor(&mut self, from: SiteId, floor: u64) {
        if let Some(record) = self.ledger.floor_from(from, floor) {
            self.guarded_heard(from, floor);
            self.apply(record);
        }
    }

    /// Notes what the ledger decided.
    pub(crate) fn apply(&mut self, record: Record) {
        self.ledger.apply(&record);
        let forgets = match record {
            Record::Tombstone { answer: Answer::Accepted, .. } => self.has(Mutant::AcceptedNotWritten),
            Record::Tombstone { answer: Answer::Declined, .. } => self.has(Mutant::DeclinedNotWritten),
            Record::Floor { .. } => self.has(Mutant::FloorNotWritten),
            Record::Out { .. }
            | Record::Settled { .. }
            | Record::Voided { .. }
            | Record::Renumbered { .. } => false,
        };
        if !forgets {
            self.write(Fact::Ledger(record));
        }
    }

    /// Writes down that this site owns a job that waits here.
    pub(crate) fn own_up(&mut self, job: JobSpec, custody: Custody, place: Place) {
        self.write(Fact::Owns { job, custody, place });
    }

    pub(crate) fn write(&mut self, fact: Fact) {
        if self.config.options.journal {
            self.outputs.push_back(Output::Write(fact));
        }
    }

    pub(crate) fn send(&mut self, to: Rank, message: impl Into<Message>) {
        self.send_again(to, message, false);
    }

    pub(crate) fn send_again(&mut self, to: Rank, message: impl Into<Message>, retry: bool) {
        let (to, message) = (self.site_at(to), message.into());
        if self.config.options.message_events {
            self.event(EventKind::Sent { to, message: message.kind(), retry });
        }
        self.outputs.push_back(Output::Send { to, message });
    }

    /// Says that an external strategy is not asked any more, if it is not.
    pub(crate) fn fell_back(&mut self, cause: Option<FallbackCause>) {
        if let Some(cause) = cause {
            self.event(EventKind::FellBack { cause });
        }
    }

    /// Says what was predicted.
    pub(crate) fn predicted(&mut self, predictions: impl Iterator<Item = Prediction>) {
        for Prediction { job, run_time, corrections } in predictions {
            self.event(EventKind::Predicted { job, run_time, corrections });
        }
    }

    pub(crate) fn event(&mut self, kind: EventKind) {
        self.outputs.push_back(Output::Event(kind));
    }

    /// Does nothing about a message but to say so.
    pub(crate) fn ignore(&mut self, from: SiteId, message: MessageKind) {
        self.event(EventKind::Ignored { from, message });
    }

    #[cfg(feature = "mutant")]
    pub(crate) fn has(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    #[cfg(not(feature = "mutant"))]
    pub(crate) fn has(&self, _mutant: Mutant) -> bool {
        false
    }
}

fn nodes_of(config: &PeerConfig) -> Option<Box<Occupancy>> {
    let keeps = !config.strategy.nature().queues;
    keeps.then(|| Occupancy::of(config.grid.capacity(config.site)).map(Box::new)).flatten()
}
