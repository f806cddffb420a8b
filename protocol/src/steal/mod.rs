//! Job stealing (Schwiegelshohn, Tchernykh, Yahyapour 2008), greedy stealing and the common pool: idle sites take from
//! smaller ones what their lists allow.
//!
//! Asking is in `thief.rs`, being asked in `victim.rs`, which jobs a machine may take in `lists.rs`.

mod lists;
pub(crate) mod message;
pub(crate) mod options;
mod thief;
mod victim;

use std::collections::{BTreeMap, VecDeque};

use scheduler::waiting::{WaitingList, Widths};
use scheduler::{JobSpec, Room, Selection, Time};

use self::lists::{Lists, place};
use self::thief::{Polling, View};
use self::victim::{Owed, ThiefRecord};
use crate::bounds::are_counts;
use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::{Engine, Family, Giving, InParts, Lawful, Leaving, Observed, Recovery};
use crate::journal::Place;
use crate::margin::Worth;
use crate::membership;
use crate::message::part::Part as _;
use crate::message::{Offer, Release, StealMessage, Transfer};
use crate::rank::Rank;
use crate::table::Table;
use crate::timers::Alarm;

/// The queue of a site that steals, and what it knows and told of others.
#[derive(Clone, Debug)]
pub(crate) struct Stealing {
    lists: Lists,
    /// Waiting jobs whose home is here.
    own: WaitingList,
    /// Firmly granted jobs that wait to fit; they go before everything.
    held: VecDeque<JobSpec>,
    /// What this site believes of smaller sites.
    views: Table<View>,
    /// The victim that may serve this site without being asked.
    standing_at: Option<Rank>,
    polling: Option<Polling>,
    /// What this site told larger sites.
    records: Table<ThiefRecord>,
    /// What follows from `records`.
    owed: Owed,
    releases_offered: BTreeMap<Rank, Vec<Release>>,
    version: u64,
    /// When the next job of those that execute ends soon enough for [`StealOptions::prefetch`], as of the last turn.
    soon: Option<Time>,
}

/// What a site that steals waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StealTimer {
    /// A request to the victim of this rank is unanswered.
    Request(Rank),
    /// A notice to the thief of this rank was not seen.
    Notice(Rank),
    /// The sleep between two rounds of polling.
    Poll,
    /// Serve standing requests, once nothing else happens at this instant.
    Serve,
}

impl Alarm for StealTimer {
    fn repeats(&self) -> bool {
        matches!(self, StealTimer::Request(_) | StealTimer::Notice(_))
    }
}

impl Family for Stealing {
    type Message = StealMessage;
    type Timer = StealTimer;

    fn of(config: &PeerConfig, first: u64) -> Stealing {
        let view = membership::view::View::of(config);
        let records = Table::of(view.larger(), |_| ThiefRecord::default());
        Stealing {
            lists: Lists::of(&config.strategy),
            own: WaitingList::new(),
            held: VecDeque::new(),
            views: Table::of(view.smaller(), |_| View::from_number(first)),
            standing_at: None,
            polling: Polling::of(&config.options),
            owed: Owed::of(&records),
            records,
            releases_offered: BTreeMap::new(),
            version: first,
            soon: None,
        }
    }

    fn enqueue(engine: &mut Engine<Stealing>, _now: Time, job: JobSpec) {
        engine.family.own.insert(job);
    }

    fn turn(engine: &mut Engine<Stealing>, now: Time) {
        engine.follow_pool(now);
        engine.start_held(now);
        if !engine.family.lists.stolen_first() {
            engine.start_own(now);
        }
        engine.publish(now);
        engine.ask(now);
        engine.family.soon = engine.next_soon(now);
    }

    fn wake_at(&self) -> Option<Time> {
        self.soon
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.own.iter().chain(self.held.iter())
    }

    fn waiting(&self) -> usize {
        self.own.len() + self.held.len()
    }

    fn take(engine: &mut Engine<Stealing>, job: &JobSpec) -> Option<JobSpec> {
        let stealing = &mut engine.family;
        if let Some(place) = stealing.held.iter().position(|waiting| waiting.id == job.id) {
            return stealing.held.remove(place);
        }
        stealing.own.remove(job.processors, job.key())
    }

    fn heard(engine: &mut Engine<Stealing>, now: Time, rank: Rank, message: StealMessage) {
        let (from, smaller) = (engine.core.site_at(rank), rank < engine.core.rank);
        match message {
            StealMessage::Grant { transfers, answers, state, floor } if smaller => {
                engine.core.on_floor(from, floor);
                engine.on_grant(now, rank, &transfers, answers, state);
            }
            StealMessage::NoWork { seq, state } if smaller => engine.on_no_work(now, rank, seq, state),
            StealMessage::Notice { state } if smaller => engine.on_notice(now, rank, state),
            StealMessage::Request { seq, offer, seen } if !smaller => {
                engine.on_request(now, rank, seq, offer, seen);
            }
            StealMessage::Seen { version, keep, offer } if !smaller => {
                engine.on_seen(now, rank, version, keep, offer);
            }
            StealMessage::Withdraw { version } if !smaller => engine.on_withdraw(rank, version),
            // From a site that has no business saying so.
            message => engine.core.ignore(from, message.kind()),
        }
    }

    fn fired(engine: &mut Engine<Stealing>, now: Time, timer: StealTimer) {
        match timer {
            StealTimer::Request(victim) => {
                engine.timers.again(timer, now);
                engine.repeat_request(victim);
            }
            StealTimer::Notice(thief) => {
                engine.timers.again(timer, now);
                engine.repeat_notice(thief);
            }
            StealTimer::Poll => {
                engine.timers.cancel(timer);
                engine.poll_round_due();
            }
            StealTimer::Serve => {
                engine.timers.cancel(timer);
                engine.serve_standing(now);
            }
        }
    }

    fn turn_out(engine: &mut Engine<Stealing>, now: Time) {
        engine.publish(now);
    }

    fn enters(engine: &mut Engine<Stealing>, now: Time, rank: Rank) {
        if rank < engine.core.rank {
            // It may have told this site something that was lost.
            engine.family.views[rank].forget();
        } else {
            engine.notify_again(now, rank);
        }
    }

    fn leaves(engine: &mut Engine<Stealing>, now: Time, rank: Rank, _why: Leaving) {
        if rank < engine.core.rank {
            engine.give_up_request(now, rank);
        } else {
            engine.timers.cancel(StealTimer::Notice(rank));
        }
    }

    fn is_quiet(engine: &Engine<Stealing>) -> bool {
        // A site that polls always has a question open.
        let (stealing, timers) = (&engine.family, &engine.timers);
        stealing.polling.is_some()
            || (!timers.any_retry()
                && !timers.is_set(StealTimer::Serve)
                && stealing.views.rows().all(|view| !view.is_asked()))
    }
}

impl Lawful for Stealing {
    fn is_lawful(core: &Core, rank: Rank, message: &StealMessage) -> bool {
        core.view.knows(rank)
            && match message {
                StealMessage::Request { seq, offer, seen } => {
                    are_counts(&[*seq, *seen]) && core.may_offer(rank, offer)
                }
                StealMessage::NoWork { seq, state } => are_counts(&[*seq, state.version]),
                StealMessage::Grant { transfers, answers, state, floor } => {
                    are_counts(&[answers.unwrap_or(0), state.version, *floor])
                        && core.may_move(rank, transfers)
                }
                StealMessage::Notice { state } => are_counts(&[state.version]),
                StealMessage::Seen { version, offer, .. } => {
                    are_counts(&[*version]) && core.may_offer(rank, offer)
                }
                StealMessage::Withdraw { version } => are_counts(&[*version]),
            }
    }

    fn takes_routed(core: &Core, job: &JobSpec) -> bool {
        let is_home = core.config.home_rank(job) == Some(core.rank);
        // Sites that leave, or are the next larger one, send it to whoever can hold it; the pool is where the smallest is. So does
        // who does not know the home.
        let moves = core.membership.is_some() || core.view.is_bounded();
        is_home || moves && (job.processors <= core.width() || Lists::of(&core.config.strategy) == Lists::All)
    }

    fn may_grant(core: &Core, rank: Rank) -> bool {
        // Greedy lists are not ordered by size.
        rank > core.rank || matches!(Lists::of(&core.config.strategy), Lists::Greedy { .. })
    }
}

impl Giving for Stealing {
    fn repeat(
        engine: &mut Engine<Stealing>,
        _now: Time,
        to: Rank,
        transfer: &Transfer,
    ) -> Option<StealMessage> {
        // What was told with the first copy may be lost as well.
        let state = engine.told(to);
        let floor = engine.core.ledger.floor_to(engine.core.site_at(to));
        Some(StealMessage::Grant { transfers: vec![*transfer], answers: None, state, floor })
    }

    fn returned(engine: &mut Engine<Stealing>, now: Time, rank: Rank, transfer: &Transfer) {
        engine.enqueue(now, transfer.job);
        engine.forget_offer(rank);
    }

    fn replied(
        engine: &mut Engine<Stealing>,
        now: Time,
        rank: Rank,
        _accepted: &[u64],
        _declined: &[u64],
        was_full: bool,
    ) {
        let has_room = was_full && !engine.core.is_full(rank);
        let is_thief = engine.family.records.get(rank).is_some();
        if has_room && is_thief && engine.family.polling.is_none() {
            // A standing request had to wait for this.
            engine.publish_to(now, rank);
        }
    }

    fn voided(engine: &mut Engine<Stealing>, rank: Rank, _transfer: &Transfer) {
        engine.forget_offer(rank);
    }
}

impl Recovery for Stealing {
    fn place_again(core: &Core, job: &JobSpec, place: Place) -> Place {
        // If it is stolen, nobody steals it back.
        if core.config.home_rank(job) == Some(core.rank) { place } else { Place::Held }
    }

    fn put_back(engine: &mut Engine<Stealing>, now: Time, job: JobSpec, place: Place) {
        match place {
            Place::Held => engine.family.held.push_back(job),
            Place::Queue => engine.enqueue(now, job),
        }
    }

    fn resume(engine: &mut Engine<Stealing>, now: Time) {
        engine.family.views.rows_mut().for_each(View::forget);
        if engine.family.polling.is_some() {
            return;
        }
        for thief in engine.core.view.larger() {
            engine.notify(now, thief);
        }
        if engine.family.lists.stolen_first() {
            // These sites act on what smaller ones tell them unasked: ask once, for nothing.
            for victim in engine.core.view.smaller() {
                engine.request(now, victim, Room::NONE, false);
            }
        }
    }
}

impl InParts for Stealing {}

impl Observed for Stealing {
    fn is_open(engine: &Engine<Stealing>, timer: StealTimer) -> bool {
        let stealing = &engine.family;
        match timer {
            StealTimer::Request(victim) => stealing.views[victim].is_asked(),
            StealTimer::Notice(thief) => stealing.records[thief].is_unseen(),
            // While a request is open nobody sleeps.
            StealTimer::Poll => stealing.polling.is_some() && !stealing.views.rows().any(View::is_asked),
            StealTimer::Serve => stealing.polling.is_none(),
        }
    }

    fn check(engine: &Engine<Stealing>) {
        let stealing = &engine.family;
        assert_eq!(
            stealing.owed,
            Owed::of(&stealing.records),
            "who is owed something follows from what all were told"
        );
    }

    fn own(&self) -> Option<&WaitingList> {
        Some(&self.own)
    }

    fn held(&self) -> impl Iterator<Item = &JobSpec> {
        self.held.iter()
    }
}

impl Engine<Stealing> {
    fn start_held(&mut self, now: Time) {
        if self.core.starts_outside {
            return;
        }
        // What was fetched early may be overtaken by what fits; what was granted firmly may not.
        let overtaking = self.core.config.options.steal.prefetch.is_some();
        let most = if overtaking { usize::MAX } else { 1 };
        loop {
            let fits = self.family.held.iter().take(most).position(|job| self.core.fits(job));
            let Some(job) = fits.and_then(|place| self.family.held.remove(place)) else { return };
            self.core.start(now, job);
        }
    }

    /// Starts own jobs of the leading class while one is selected.
    fn start_own(&mut self, now: Time) {
        while self.family.held.is_empty() && self.start_own_one(now) {}
    }

    fn start_own_one(&mut self, now: Time) -> bool {
        let (core, stealing) = (&self.core, &self.family);
        if core.free == 0 || stealing.own.is_empty() || core.starts_outside {
            return false;
        }
        let lists = stealing.lists;
        let ranges = lists.list(&stealing.own, &core.config.grid, core.rank, core.rank, &core.view);
        let releases = self.releases(now);
        let Some(job) = lists.pick(&stealing.own, ranges, &core.room(), now, &releases) else { return false };
        let (processors, key) = place(&job);
        self.family.own.remove(processors, key).expect("it was just selected");
        self.core.start(now, job);
        true
    }

    /// The common pool is where the smallest site is that is there: what waits here goes on to it.
    fn follow_pool(&mut self, now: Time) {
        if self.family.lists != Lists::All || self.core.membership.is_none() {
            return;
        }
        let Some(host) = self.core.view.smaller().find(|&rank| self.core.is_present(rank)) else { return };
        let jobs: Vec<JobSpec> = self.family.own.iter().copied().collect();
        for job in jobs {
            self.family.own.remove(job.processors, job.key()).expect("it waits here");
            let custody = self.core.custody_of(job.id);
            self.core.route(now, host, job, custody);
        }
    }

    /// Room to offer, own queue empty: the site would take work.
    fn is_idle(&self, now: Time) -> bool {
        let stealing = &self.family;
        self.spare(now).width() > 0
            && self.may_fetch()
            && (stealing.own.is_empty() || stealing.lists.stolen_first())
    }

    /// Whether what is held does not forbid to take more: it is there by prefetching, or nothing is held.
    fn may_fetch(&self) -> bool {
        self.family.held.is_empty() || self.core.config.options.steal.prefetch.is_some()
    }

    /// What a job from elsewhere may count on: those that are idle, and with prefetching those that will be soon,
    /// less what is held for them.
    fn spare(&self, now: Time) -> Room {
        let Some(prefetch) = self.core.config.options.steal.prefetch else { return self.core.room() };
        let limit = now.saturating_add(prefetch);
        let soon: u32 =
            self.core.releases_of_running().filter(|&(end, _)| end <= limit).map(|(_, width)| width).sum();
        let held: u32 = self.family.held.iter().map(|job| job.processors).sum();
        Room::Processors((self.core.free + soon).saturating_sub(held))
    }

    /// When more processors will count, if nothing else happens.
    fn next_soon(&self, now: Time) -> Option<Time> {
        let prefetch = self.core.config.options.steal.prefetch?;
        let limit = now.saturating_add(prefetch);
        let later = self.core.releases_of_running().map(|(end, _)| end).filter(|&end| end > limit);
        later.min().map(|end| end - prefetch)
    }

    /// Estimated ends of running jobs, ascending, if the selection needs them.
    fn releases(&self, now: Time) -> Vec<Release> {
        if self.family.lists.select() != Selection::Easy {
            return Vec::new();
        }
        let mut by_time: BTreeMap<Time, u32> = BTreeMap::new();
        for (end, processors) in self.core.releases_of_running() {
            *by_time.entry(end.max(now)).or_default() += processors;
        }
        by_time.into_iter().map(|(at, processors)| Release { at, processors }).collect()
    }

    /// An offer of so much.
    fn offer(&self, now: Time, free: Room, stand: bool) -> Offer {
        let mut releases = if free.width() > 0 { self.releases(now) } else { Vec::new() };
        releases.truncate(message::RELEASES_MAX);
        Offer { free, stand, releases }
    }

    /// Which waiting jobs are worth giving to another site.
    fn worth(&self, now: Time, other: Rank) -> Worth {
        if self.core.config.options.margin.is_none() {
            return Worth::Any;
        }
        let stealing = &self.family;
        let leading = stealing.lists.leading(&stealing.own, self.core.width()).unwrap_or(Widths::ALL);
        self.core.worth(now, other, &stealing.own, stealing.held.iter(), leading)
    }
}
