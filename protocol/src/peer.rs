//! The peer of one site: its state, its one door in and its one door out.
//!
//! **Facts change state, turns decide, answers continue the turn that asked.** For one instant a driver
//!
//! 1. delivers all completions, then all submissions, then all messages that are due;
//! 2. gives each site an [`Input::Turn`] in ascending order of rank, delivering every message of zero delay before
//!    the next turn, and repeats the pass until nothing starts;
//! 3. tells all sites that want it to [`Input::Settle`], then delivers what they sent, and goes back to 2;
//! 4. fires timers that are due ([`Input::Timeout`]) and, if any fired, goes back to 2.
//!
//! With all delays zero this discipline makes the schedule that of the ideal algorithm, job for job. Three rules
//! carry that equality: a notice only updates the view (Z1); a victim serves a request at once and does not start
//! own jobs first (Z2), unless it has facts it had no turn for (Z3).
//!
//! What is decided in a turn is the strategy's: `families.rs` names the families, which are behind the seam in
//! `engine/family.rs`.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use brokers::allocation::Patience;
use scheduler::waiting::WaitingList;
use scheduler::{JobId, JobSpec, SiteId, Submit, Time};

use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::{Site, Wishes};
use crate::families::begin;
use crate::handover::Ledger;
use crate::journal::Durable;
use crate::membership::Presence;
#[cfg(feature = "mutant")]
use crate::mutant::Mutant;
use crate::numbers::{INCARNATIONS_PER_JOURNAL, JOURNALS_MAX, first_number};
pub use crate::ports::{Input, Output};
use crate::rank::Rank;

/// One site's scheduler as a state machine.
#[derive(Debug)]
pub struct Peer {
    site: Box<dyn Site>,
    /// What the site wants; here, because a driver asks for it more often than for anything.
    wishes: Wishes,
}

impl Clone for Peer {
    fn clone(&self) -> Peer {
        Peer { site: self.site.boxed(), wishes: self.wishes.clone() }
    }
}

/// The queue of a site whose strategy keeps none by width.
static NONE: LazyLock<WaitingList> = LazyLock::new(WaitingList::new);

impl Peer {
    /// A peer with an empty queue that believes every other queue empty. Its journal is empty, too.
    pub fn new(config: PeerConfig) -> Peer {
        Peer::at_rest(config, 0, first_number(0))
    }

    fn at_rest(config: PeerConfig, incarnation: u32, first: u64) -> Peer {
        Peer { site: begin(config, incarnation, first), wishes: Wishes::default() }
    }

    fn collect(&mut self) {
        self.site.hand_out(&mut self.wishes);
    }

    /// A peer that goes on where its journal ends; a new one if the journal is empty. Drain [`Peer::poll_output`],
    /// then give it a turn.
    ///
    /// On links that lose messages, and a crash loses some, [`crate::Options::retry`] must be set.
    ///
    /// # Panics
    /// If the journal is of another grid or site.
    pub fn restore(config: PeerConfig, durable: &Durable, now: Time) -> Peer {
        let incarnation = durable.next_incarnation();
        let mut peer = Peer::at_rest(config, incarnation, first_number(incarnation));
        peer.site.go_on(durable, now);
        peer.collect();
        peer
    }

    /// As [`Peer::restore`], of a peer that makes a mistake.
    #[cfg(feature = "mutant")]
    pub fn restore_with(config: PeerConfig, durable: &Durable, now: Time, mutant: Option<Mutant>) -> Peer {
        let incarnation = durable.next_incarnation();
        let first = if mutant == Some(Mutant::NumbersBeginAgain) { 0 } else { first_number(incarnation) };
        let mut peer = Peer::at_rest(config, incarnation, first);
        peer.site.core_mut().mutant = mutant;
        peer.site.go_on(durable, now);
        peer.collect();
        peer
    }

    /// A peer whose site has lost so many journals, counted from 1, and begins with an empty one. Drain
    /// [`Peer::poll_output`], then give it a turn. From then on [`Peer::restore`] goes on with the new journal.
    ///
    /// Others take over what the site had, so this needs [`crate::Options::heartbeat`] and [`crate::Options::lease`]:
    /// without them a site whose journal is lost must not come back.
    ///
    /// # Panics
    /// If nobody would take over, or the site lost more journals than [`JOURNALS_MAX`] allows.
    pub fn restore_lost(config: PeerConfig, journal: u32, now: Time) -> Peer {
        assert!((1..JOURNALS_MAX).contains(&journal), "so many journals cannot be distinguished");
        let options = &config.options;
        assert!(
            options.heartbeat.is_some() && options.lease.is_some(),
            "nobody would take over what is lost"
        );
        let incarnation = journal * INCARNATIONS_PER_JOURNAL;
        let mut peer = Peer::at_rest(config, incarnation, first_number(incarnation));
        peer.site.begin_with_nothing(now);
        peer.collect();
        peer
    }

    /// Lets decisions take no longer than this says. Without, they take as long as they want to, and the same inputs make the
    /// same outputs. The peers of later incarnations must be told, too.
    pub fn limit_decisions(&mut self, patience: Arc<dyn Patience>) {
        self.site.core_mut().patience = Some(patience);
    }

    /// Leaves it to somebody else what starts here, and when, who says so with [`Input::Begun`]: nothing here promises it. Its local
    /// scheduler only plans. The peers of later incarnations must be told, too. Not for the exchange through a global queue, which
    /// decides for all sites what starts, nor for jobs in parts.
    pub fn starts_outside(&mut self) {
        self.site.core_mut().starts_outside = true;
    }

    /// Makes this peer commit a mistake.
    #[cfg(feature = "mutant")]
    pub fn set_mutant(&mut self, mutant: Mutant) {
        self.site.core_mut().mutant = Some(mutant);
    }

    /// Tells the peer one thing. Drain [`Peer::poll_output`] before the next. Within an incarnation `now` never goes back; it may
    /// jump ahead, and another incarnation may begin at any time.
    pub fn handle(&mut self, now: Time, input: Input) {
        self.site.handle(now, input, &mut self.wishes);
    }

    /// The next thing the peer wants done, in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.wishes.outputs.pop_front()
    }

    /// All that the peer wants done, in order, in place of what is in `outputs`, which must be empty. The same as polling, without a copy of
    /// each.
    pub fn take_outputs(&mut self, outputs: &mut VecDeque<Output>) {
        assert!(outputs.is_empty(), "what was wanted before is done");
        std::mem::swap(outputs, &mut self.wishes.outputs);
    }

    /// When the peer wants an [`Input::Timeout`] (and a turn) even if nothing else happens.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.wishes.timeout
    }

    /// Whether the peer wants an [`Input::Settle`] once nothing is under way at this instant.
    pub fn wants_settle(&self) -> bool {
        self.wishes.settle
    }

    pub(crate) fn core(&self) -> &Core {
        self.site.core()
    }

    /// Whether what its family knows is what is written down.
    pub(crate) fn family_agrees_with(&self, durable: &Durable) -> Result<(), String> {
        self.site.family_agrees_with(durable)
    }

    /// The site of this peer.
    pub fn site(&self) -> SiteId {
        self.core().config.site
    }

    /// How often this site restarted with its journal.
    pub fn incarnation(&self) -> u32 {
        self.core().incarnation
    }

    /// What the peer was told before it started.
    pub fn config(&self) -> &PeerConfig {
        &self.core().config
    }

    /// All processors of the site.
    pub fn processors(&self) -> u32 {
        self.core().processors()
    }

    /// Processors of the site that execute nothing; claims may have reserved some of them.
    pub fn free(&self) -> u32 {
        self.core().free
    }

    /// Processors of the site that execute jobs of the grid.
    pub fn busy(&self) -> u32 {
        self.core().busy()
    }

    /// Jobs that wait here, wherever.
    pub fn waiting(&self) -> usize {
        self.site.waiting()
    }

    /// The jobs that wait here for its processors, in any order.
    pub fn queued(&self) -> Vec<JobSpec> {
        self.site.jobs()
    }

    /// Whether this site has the job: it waits, is held or runs.
    pub fn has(&self, job: JobId) -> bool {
        self.core().is_here(job)
    }

    /// Jobs of this member that wait nowhere, as they execute in parts at others.
    pub fn apart(&self) -> usize {
        self.site.apart()
    }

    /// Jobs of others of which a part has processors here.
    pub fn parts(&self) -> impl Iterator<Item = JobId> {
        self.site.parts().into_iter()
    }

    /// The nodes of a job that runs here, or of a part that has places here, ascending. Where jobs share nodes and start in parts at several
    /// sites: a driver knows of no places that are kept, and so not where the next job is.
    pub fn nodes(&self, job: JobId) -> Option<&[u32]> {
        self.site.nodes(job)
    }

    /// Jobs that wait here, in the local queue or offered, under exchange through a global queue.
    pub fn pooled(&self) -> impl Iterator<Item = JobId> {
        self.site.pooled().into_iter()
    }

    /// Waiting jobs whose home is here, for observers. Empty under the local strategy.
    pub fn own(&self) -> &WaitingList {
        self.site.own().unwrap_or(&NONE)
    }

    /// Jobs that run here.
    pub fn running(&self) -> impl Iterator<Item = JobId> {
        self.core().running.keys().copied()
    }

    /// Firmly granted jobs that wait to fit.
    pub fn held(&self) -> impl Iterator<Item = &JobSpec> {
        self.site.held().into_iter()
    }

    /// Jobs that wait here because nobody who is there is wide enough.
    pub fn orphaned(&self) -> impl Iterator<Item = &JobSpec> {
        self.core().orphaned()
    }

    /// Transfers from and to this site.
    pub fn ledger(&self) -> &Ledger {
        &self.core().ledger
    }

    /// What this site believes of another; of itself that it is here, or leaving.
    pub fn presence(&self, site: SiteId) -> Presence {
        let core = self.core();
        core.presence(core.rank_of(site))
    }

    /// Whether this site leaves.
    pub fn is_leaving(&self) -> bool {
        self.core().is_leaving()
    }

    /// Whether this site leaves and has nothing left to do: the driver may stop it.
    pub fn has_left(&self) -> bool {
        self.site.has_left()
    }

    /// Whether no answer is outstanding and no message may have to be repeated. A site that polls always has a
    /// question open; for it only transfers count.
    pub fn is_quiet(&self) -> bool {
        self.site.is_quiet()
    }

    /// What a broker believes that sites have: jobs that are there or on their way, and whether they
    /// execute, if sites tell that. Of sites whose state it has asked for and not heard, nothing. For observers.
    pub fn books(&self) -> Vec<(SiteId, Vec<(JobId, bool)>)> {
        let by_rank = self.site.books().into_iter();
        by_rank.map(|(rank, jobs)| (self.core().site_at(rank), jobs)).collect()
    }

    /// What a broker that learns has learned of sites: how efficient they are, in [-1, 1]. For observers.
    pub fn efficiencies(&self) -> Vec<(SiteId, f64)> {
        let by_rank = self.site.efficiencies().into_iter();
        by_rank.map(|(rank, efficiency)| (self.core().site_at(rank), efficiency)).collect()
    }

    /// Whether this broker has noted all that this site is to tell it. For observers.
    pub fn has_told(&self, broker: SiteId) -> bool {
        self.site.has_told(self.core().rank_of(broker))
    }

    /// Walks the whole state and panics if it contradicts itself.
    pub fn check_invariants(&self) {
        assert!(self.wishes.outputs.is_empty(), "drivers drain outputs after every input");
        self.site.check_invariants();
    }
}

impl PeerConfig {
    /// The rank of the site that first owns a job: its home by size, or the host of the common pool. Brokers own jobs
    /// before any site does; their home is by size, too.
    /// `None` if no site is wide enough.
    pub(crate) fn home_rank(&self, job: &JobSpec) -> Option<Rank> {
        Submit::Home.rank_among_sites(&self.grid, self.strategy, job).map(Rank::at)
    }
}
