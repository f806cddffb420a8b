//! A site under brokers: its local queue, and what it tells each broker of it.

use std::collections::BTreeMap;

use scheduler::{JobId, JobSpec, SiteId, Span, Time};

use super::log::Log;
use super::memory::{Foretold, Has};
use super::message::{BrokerMessage, CHANGES_MAX, Change};
use super::options::Reporting;
use super::parts::Kept;
use super::rules;
use crate::bounds::{are_counts, is_site_of, is_time};
use crate::broker::gangs::is_attempt;
use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::{Engine, Family, Giving, InParts, Lawful, Leaving, Observed, Recovery};
use crate::experience::{Experience, lessons};
use crate::gang::Attempt;
use crate::journal::Durable;
use crate::message::Transfer;
use crate::message::part::Part as _;
use crate::mutant::Mutant;
use crate::queue::{Entry, Queue};
use crate::rank::Rank;
use crate::table::Table;
use crate::timers::Alarm;

/// What a site waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SiteTimer {
    /// The broker of this rank has not said that it knows what it was told.
    Known(Rank),
    /// It is time to report.
    Report,
    /// The broker of this rank has not said what becomes of parts.
    Parts(Rank),
    /// The next part starts that all have agreed on.
    Begin,
}

impl Alarm for SiteTimer {
    fn repeats(&self) -> bool {
        matches!(self, SiteTimer::Known(_) | SiteTimer::Parts(_))
    }
}

/// The queue of a site, and a row of changes for each broker.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    pub(super) queue: Queue<Place>,
    /// Parts of jobs that start at several sites at once.
    pub(super) kept: Kept,
    /// How many jobs came, where rows are planned: jobs start in the order in which they were sent, whenever they were
    /// submitted, and rows of several brokers in the order in which they come.
    turns: Option<u64>,
    /// What waits and was sent here, where rows are planned: by rank of the sender and number of the transfer.
    sent: BTreeMap<(Rank, u64), JobId>,
    /// For each broker. None if brokers decide without reports.
    pub(super) logs: Table<Log>,
    /// Something happened since the last decision that was told.
    pub(super) is_undecided: bool,
    /// Something happened that brokers are told of before the next turn.
    pub(super) is_urgent: bool,
    /// Of the latest fact or decision.
    pub(super) now: Time,
}

/// Where a job has its place in the queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    turn: u64,
    /// Rank of who sent it, and number of the transfer, where rows are planned.
    sent: Option<(Rank, u64)>,
}

/// Turns between two jobs that come one after the other: room for what both have overtaken. Far more than the transfers that
/// can be under way.
const TURN: u64 = 1 << 32;

impl Reporter {
    /// Tells what was started at once. What waits beside it was looked at, and waits on.
    fn tell_decided(&mut self, now: Time, starts: &[Entry<Place>]) {
        starts.iter().for_each(|entry| self.forget(entry));
        if !self.is_undecided && starts.is_empty() {
            return;
        }
        self.is_undecided = false;
        self.is_urgent = true;
        let mut started = starts.iter().map(|entry| entry.job.id);
        loop {
            let started: Vec<JobId> = started.by_ref().take(CHANGES_MAX - 1).collect();
            let is_last = started.len() < CHANGES_MAX - 1;
            self.tell(&Change::Decided { at: now, started });
            if is_last {
                break;
            }
        }
    }

    pub(super) fn tell(&mut self, change: &Change) {
        for log in self.logs.rows_mut() {
            log.push(change.clone());
        }
    }

    /// What a new row begins with, jobs that wait in the order of the queue. It is never empty: whoever asked for it hears of
    /// it.
    fn all(&self, now: Time) -> Vec<Change> {
        let running = self.queue.running().values();
        let running = running.map(|entry| {
            let since = entry.started.unwrap_or(now);
            Change::Runs { at: now, job: entry.job, since }
        });
        let mut waiting: Vec<&Entry<Place>> = self.queue.waiting().values().collect();
        waiting.sort_unstable_by_key(|entry| (entry.note.turn, entry.job.key()));
        let waiting = waiting.into_iter().map(|entry| Change::Joined { at: now, job: entry.job });
        let parts = self.kept.have_processors(now);
        running
            .chain(parts)
            .chain(waiting)
            .chain([Change::Decided { at: now, started: Vec::new() }])
            .collect()
    }

    /// A job waits no longer.
    fn forget(&mut self, entry: &Entry<Place>) {
        if let Some(sent) = entry.note.sent {
            self.sent.remove(&sent);
        }
    }

    /// The turn of a job that comes now, and which of those that wait comes next, if that had overtaken it. The distance of two
    /// turns of one sender is at most that of the numbers, so that what comes late finds its place however many have.
    fn turn_of(&mut self, sent: Option<(Rank, u64)>) -> (u64, Option<JobId>) {
        let Some(turns) = &mut self.turns else { return (0, None) };
        let next = sent.and_then(|(rank, number)| {
            let (&(_, later), &job) = self.sent.range((rank, number)..=(rank, u64::MAX)).next()?;
            Some((self.queue.waiting().get(&job)?.note.turn, later - number, job))
        });
        match next {
            Some((turn, distance, job)) => {
                // A broker that restarts leaves out numbers.
                let distance = distance.min(TURN / 2);
                let least = (turn - 1) / TURN * TURN + 1;
                ((turn - distance).max(least), Some(job))
            }
            None => {
                *turns += 1;
                (*turns * TURN, None)
            }
        }
    }
}

impl Family for Reporter {
    type Message = BrokerMessage;
    type Timer = SiteTimer;

    fn of(config: &PeerConfig, first: u64) -> Reporter {
        let rules = rules(config);
        let brokers = |are: bool| Rank::of_brokers(&config.grid).filter(move |_| are);
        Reporter {
            queue: Queue::new(config),
            kept: Kept::from_brokers(brokers(rules.coallocates())),
            turns: rules.plans_batches().then_some(0),
            sent: BTreeMap::new(),
            // A row of a later incarnation is newer than all of an earlier one.
            logs: Table::of(brokers(rules.needs_reports()), |_| Log::new(first + 1)),
            is_undecided: false,
            is_urgent: false,
            now: Time::from_micros(i64::MIN),
        }
    }

    fn enqueue(engine: &mut Engine<Reporter>, now: Time, job: JobSpec) {
        engine.queue_up(now, job, None);
    }

    /// Where rows are planned a site keeps to the order in which the broker sent them, whatever arrives first.
    fn routed(engine: &mut Engine<Reporter>, now: Time, from: Rank, transfer: &Transfer) {
        engine.queue_up(now, transfer.job, Some((from, transfer.number)));
    }

    fn turn(engine: &mut Engine<Reporter>, now: Time) {
        engine.start_own(now);
    }

    fn begun(engine: &mut Engine<Reporter>, now: Time, job: &JobSpec) {
        let Engine { core, family: site, .. } = engine;
        site.now = now;
        let started: Vec<_> = site.queue.begun(core, now, job.id).into_iter().collect();
        site.tell_decided(now, &started);
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.queue.jobs()
    }

    fn take(engine: &mut Engine<Reporter>, job: &JobSpec) -> Option<JobSpec> {
        let site = &mut engine.family;
        let entry = site.queue.withdraw(job.id)?;
        site.tell(&Change::Left { at: site.now, job: job.id });
        site.is_undecided = true;
        site.is_urgent = true;
        site.forget(&entry);
        Some(entry.job)
    }

    fn heard(engine: &mut Engine<Reporter>, now: Time, rank: Rank, message: BrokerMessage) {
        match message {
            BrokerMessage::Known { epoch, next } => engine.on_known(now, rank, epoch, next),
            BrokerMessage::Probe { probe } => engine.on_probe(now, rank, probe),
            BrokerMessage::Anew { count } => engine.on_anew(now, rank, count),
            BrokerMessage::Prepare { attempt, floor, part, of, hops } => {
                let has = Has { part: *part, of, hops, since: now, began: false, foretold: None };
                engine.on_prepare(now, rank, attempt, floor, has);
            }
            BrokerMessage::PreparePredicted { attempt, floor, part, of, hops, whole, run_time } => {
                let foretold = Some(Foretold { whole, predicted: run_time });
                let has = Has { part: *part, of, hops, since: now, began: false, foretold };
                engine.on_prepare(now, rank, attempt, floor, has);
            }
            BrokerMessage::Commit { attempt, at } => engine.on_commit(now, rank, attempt, at),
            BrokerMessage::Abort { attempt } => engine.on_abort(now, rank, attempt),
            BrokerMessage::Heard { attempt } => engine.on_heard(rank, attempt),
            BrokerMessage::Fetch { job } => engine.on_fetch(now, rank, job),
            for_brokers => engine.core.ignore(engine.core.site_at(rank), for_brokers.kind()),
        }
    }

    fn fired(engine: &mut Engine<Reporter>, now: Time, timer: SiteTimer) {
        match timer {
            SiteTimer::Report => {
                engine.timers.cancel(timer);
                engine.report(now);
            }
            // Nobody sends jobs to a site that leaves, so nobody need know what happens there: a broker that restarted
            // does not even ask.
            SiteTimer::Known(_) if engine.core.is_leaving() => engine.timers.cancel(timer),
            SiteTimer::Known(broker) => {
                engine.timers.again(timer, now);
                engine.report_again(broker);
            }
            SiteTimer::Parts(broker) => {
                engine.timers.again(timer, now);
                engine.say_parts_again(broker);
            }
            SiteTimer::Begin => engine.begin_due(now),
        }
    }

    /// What no site is wide enough for is a broker's, which has several start it.
    fn belongs(core: &Core, home: Option<Rank>, job: &JobSpec) -> Option<Rank> {
        let alone = core.here_or(home, job).filter(|_| !core.is_wide(job));
        alone.or_else(|| core.broker_for_parts(job))
    }

    fn elsewhere(core: &Core, job: &JobSpec) -> Option<Rank> {
        core.room_elsewhere(job).or_else(|| core.broker_for_parts(job))
    }

    fn completed(
        engine: &mut Engine<Reporter>,
        now: Time,
        job: JobId,
        _estimated_end: Time,
        _processors: u32,
    ) {
        let is_untold = engine.core.has(Mutant::EndUntold);
        let Engine { core, family: site, .. } = engine;
        site.now = now;
        let (_, run_time) = site.queue.ended(core, now, job);
        let is_shared = core.config.grid.cluster(core.config.site).is_some() && !core.has(Mutant::WorkUntold);
        if !is_untold {
            site.tell(&match run_time.filter(|_| is_shared) {
                Some(run_time) => Change::EndedAfter { at: now, job, run_time },
                None => Change::Ended { at: now, job },
            });
        }
        site.is_undecided = true;
        site.is_urgent = true;
    }

    fn after(engine: &mut Engine<Reporter>, now: Time) {
        engine.write_parts();
        engine.report_if_due(now);
    }

    fn wake_at(&self) -> Option<Time> {
        self.queue.wake_at()
    }

    fn enters(engine: &mut Engine<Reporter>, now: Time, rank: Rank) {
        engine.reports_on(now, rank);
        if engine.core.is_broker(rank) {
            engine.awaits_word(now, rank);
        }
    }

    fn leaves(engine: &mut Engine<Reporter>, now: Time, rank: Rank, why: Leaving) {
        if why == Leaving::Gone {
            return engine.frees_held_of(now, rank);
        }
        engine.timers.cancel(SiteTimer::Known(rank));
        engine.timers.cancel(SiteTimer::Parts(rank));
        if engine.core.is_broker(rank) {
            engine.awaits_word(now, rank);
        }
        engine.core.fresh = true;
        if let Some(log) = engine.family.logs.get_mut(rank) {
            log.silence();
        }
    }
}

/// Whether a broker can ask for processors for this part.
fn is_part(core: &Core, attempt: &Attempt, floor: u64, part: &JobSpec, of: SiteId) -> bool {
    core.takes_parts()
        && is_attempt(attempt)
        && attempt.job == part.id
        && are_counts(&[floor])
        && core.is_job(part.processors, part.submit, part.requested)
        && part.processors <= core.width()
        && is_site_of(&core.config.grid, of)
        && is_site_of(&core.config.grid, part.origin)
}

impl Lawful for Reporter {
    fn is_lawful(core: &Core, rank: Rank, message: &BrokerMessage) -> bool {
        core.processors_of(rank) == 0
            && match message {
                BrokerMessage::Known { epoch, next } => are_counts(&[*epoch, *next]),
                BrokerMessage::Probe { probe: count } | BrokerMessage::Anew { count } => {
                    are_counts(&[*count])
                }
                BrokerMessage::Prepare { attempt, floor, part, of, .. } => {
                    core.config.forecast.is_none() && is_part(core, attempt, *floor, part, *of)
                }
                BrokerMessage::PreparePredicted { attempt, floor, part, of, whole, run_time, .. } => {
                    let foretold = Foretold { whole: *whole, predicted: *run_time };
                    core.config.forecast.is_some()
                        && is_part(core, attempt, *floor, part, *of)
                        && foretold.can_be(&core.config.grid, part)
                }
                BrokerMessage::Commit { attempt, at } => {
                    core.takes_parts() && is_attempt(attempt) && is_time(*at)
                }
                BrokerMessage::Abort { attempt } | BrokerMessage::Heard { attempt } => {
                    core.takes_parts() && is_attempt(attempt)
                }
                BrokerMessage::Fetch { .. } => core.takes_parts(),
                BrokerMessage::State { .. }
                | BrokerMessage::Ready { .. }
                | BrokerMessage::Refused { .. }
                | BrokerMessage::Over { .. }
                | BrokerMessage::Missing { .. } => false,
            }
    }

    fn takes_routed(core: &Core, job: &JobSpec) -> bool {
        job.processors <= core.width()
    }

    fn may_queue(core: &Core, job: &JobSpec) -> bool {
        core.may_hold(job)
    }

    fn may_grant(_core: &Core, _rank: Rank) -> bool {
        false
    }
}

impl Giving for Reporter {
    fn repeat(
        _engine: &mut Engine<Reporter>,
        _now: Time,
        _to: Rank,
        _transfer: &Transfer,
    ) -> Option<BrokerMessage> {
        // Jobs leave by routes only.
        None
    }

    /// A job that was on its way here is not coming.
    fn was_in_vain(engine: &mut Engine<Reporter>, _now: Time, transfer: &Transfer) {
        let job = transfer.job.id;
        if !engine.core.is_here(job) {
            let site = &mut engine.family;
            site.tell(&Change::Left { at: site.now, job });
            site.is_urgent = true;
        }
    }
}

impl Recovery for Reporter {
    /// A row of its earlier incarnation is over, even if nothing is here.
    fn resume(engine: &mut Engine<Reporter>, now: Time) {
        engine.resume_parts(now);
        engine.write_parts();
        engine.family.tell(&Change::Decided { at: now, started: Vec::new() });
        engine.family.is_urgent = true;
    }

    fn remember(engine: &mut Engine<Reporter>, durable: &Durable) {
        match engine.core.takes_parts() {
            true => {
                engine.remember_parts(durable);
                engine.family.queue.recall(&engine.core, lessons(durable));
            }
            false => engine.family.queue.remember(&engine.core, durable),
        }
    }

    fn can_remember(engine: &Engine<Reporter>, durable: &Durable) -> Result<(), String> {
        match engine.core.takes_parts() {
            true => {
                engine.can_remember_parts(durable)?;
                Experience::can_be(&engine.core, lessons(durable))
            }
            false => Experience::can_be(&engine.core, &durable.memory),
        }
    }

    fn agrees_with(engine: &Engine<Reporter>, durable: &Durable) -> Result<(), String> {
        match engine.core.takes_parts() {
            true => {
                engine.agrees_on_parts(durable)?;
                engine.family.queue.agrees_on(&engine.core, lessons(durable))
            }
            false => engine.family.queue.agrees_with(&engine.core, durable),
        }
    }
}

impl InParts for Reporter {
    fn part_ended(engine: &mut Engine<Reporter>, now: Time, job: JobId) -> bool {
        engine.part_has_ended(now, job)
    }

    fn kept(&self) -> u32 {
        self.kept.processors()
    }

    fn parts_are_void(engine: &mut Engine<Reporter>, now: Time, job: JobId, epoch: u32) {
        engine.parts_are_void(now, job, epoch);
    }

    fn nodes(&self, job: JobId) -> Option<&[u32]> {
        self.queue.nodes(job)
    }

    fn owes(engine: &Engine<Reporter>) -> bool {
        engine.owes_parts()
    }

    fn parts(&self) -> Vec<JobId> {
        self.kept.jobs().collect()
    }
}

impl Observed for Reporter {
    fn pooled(&self) -> impl Iterator<Item = JobId> {
        self.jobs().map(|job| job.id)
    }

    /// Whether the broker said so if it must.
    fn has_told(&self, broker: Rank) -> bool {
        let log = self.logs.get(broker);
        log.is_some_and(|log| !log.is_silent && !log.has_news() && !log.is_waiting())
    }

    fn is_open(engine: &Engine<Reporter>, timer: SiteTimer) -> bool {
        let logs = &engine.family.logs;
        match timer {
            SiteTimer::Known(broker) => logs.get(broker).is_some_and(Log::is_waiting),
            SiteTimer::Report => logs.rows().any(Log::has_news),
            SiteTimer::Parts(broker) => engine.family.kept.waits_for(broker),
            SiteTimer::Begin => engine.family.kept.next_start().is_some(),
        }
    }

    fn check(engine: &Engine<Reporter>) {
        engine.family.queue.check(&engine.core);
    }
}

/// How long it is to the next of the times that are a period apart, of which each site has its own.
fn until_report(core: &Core, now: Time, period: Span) -> Span {
    let grid = &core.config.grid;
    let (place, sites) = (core.rank.index() - grid.brokers(), grid.len() - grid.brokers());
    let period = period.as_micros();
    let offset = i128::from(period) * place as i128 / sites as i128;
    let since = (i128::from(now.as_micros()) - offset).rem_euclid(i128::from(period));
    Span::from_micros(period - i64::try_from(since).expect("less than the period"))
}

impl Engine<Reporter> {
    /// A job joins the queue of this site.
    fn queue_up(&mut self, now: Time, job: JobSpec, sent: Option<(Rank, u64)>) {
        self.comes_whole(now, job.id);
        // Whoever sent it here knows: it is told of with the decision that follows, unless there are others to know.
        let is_own = self.core.custody_of(job.id).hops == 0;
        let site = &mut self.family;
        site.now = now;
        let (turn, overtaker) = site.turn_of(sent);
        let sent = sent.filter(|_| site.turns.is_some());
        site.queue.join(now, job, turn, Place { turn, sent });
        site.sent.extend(sent.map(|sent| (sent, job.id)));
        site.tell(&match overtaker {
            Some(overtaker) => Change::JoinedBefore { at: now, job, overtaker },
            None => Change::Joined { at: now, job },
        });
        site.is_undecided = true;
        site.is_urgent |= is_own || site.logs.len() > 1;
    }

    /// Starts what the local scheduler starts.
    fn start_own(&mut self, now: Time) {
        let Engine { core, family: site, .. } = self;
        site.now = now;
        let starts = site.queue.start(core, now);
        site.tell_decided(now, &starts);
    }

    /// Reports what happened, or sees to it that it will be.
    fn report_if_due(&mut self, now: Time) {
        let report = self.core.config.options.broker.report;
        let site = &mut self.family;
        let is_urgent = std::mem::take(&mut site.is_urgent);
        if !site.logs.rows().any(Log::has_news) {
            // The broker that was to hear of it asked meanwhile, or is not heard of.
            self.timers.cancel(SiteTimer::Report);
            return;
        }
        match report {
            Reporting::Change if is_urgent => self.report(now),
            Reporting::Every(period) if !self.timers.is_set(SiteTimer::Report) => {
                self.timers.set(SiteTimer::Report, now, until_report(&self.core, now, period));
            }
            Reporting::Change | Reporting::Every(_) | Reporting::Probe(_) => {}
        }
    }

    /// Tells all brokers what they were never told.
    fn report(&mut self, now: Time) {
        for broker in Rank::of_brokers(&self.core.config.grid) {
            self.report_to(now, broker);
        }
    }

    fn report_to(&mut self, now: Time, broker: Rank) {
        let retry = self.core.config.options.retry;
        let Some(log) = self.family.logs.get_mut(broker) else { return };
        let messages = log.news(retry.is_some());
        let waits = log.is_waiting();
        for message in messages {
            self.core.send(broker, message);
        }
        if let Some(retry) = retry.filter(|_| waits && !self.timers.is_set(SiteTimer::Known(broker))) {
            self.timers.set(SiteTimer::Known(broker), now, retry);
        }
    }

    fn report_again(&mut self, broker: Rank) {
        let Some(log) = self.family.logs.get_mut(broker) else { return };
        for message in log.again() {
            self.core.send_again(broker, message, true);
        }
    }

    fn on_known(&mut self, now: Time, broker: Rank, epoch: u64, next: u64) {
        let Some(log) = self.family.logs.get_mut(broker) else { return };
        log.known(epoch, next);
        let waits = log.is_waiting();
        self.timers.cancel(SiteTimer::Known(broker));
        if let Some(retry) = self.core.config.options.retry.filter(|_| waits) {
            self.timers.set(SiteTimer::Known(broker), now, retry);
        }
    }

    /// A broker is heard of again, which was not waited for.
    fn reports_on(&mut self, now: Time, broker: Rank) {
        let site = &mut self.family;
        let all = site.all(now);
        if let Some(log) = site.logs.get_mut(broker).filter(|log| log.is_silent) {
            log.begin_anew(now, all);
            return self.report_to(now, broker);
        }
        let Some(log) = self.family.logs.get(broker) else { return };
        let waits = log.is_waiting();
        if let Some(retry) = self.core.config.options.retry.filter(|_| waits) {
            self.report_again(broker);
            self.timers.set(SiteTimer::Known(broker), now, retry);
        }
    }

    fn on_probe(&mut self, now: Time, broker: Rank, probe: u64) {
        let Some(log) = self.family.logs.get_mut(broker) else { return };
        log.probe = log.probe.max(probe);
        self.report_to(now, broker);
    }

    fn on_anew(&mut self, now: Time, broker: Rank, count: u64) {
        if !self.core.is_reachable(broker) {
            // It leaves, and decides nothing any more.
            return;
        }
        let site = &mut self.family;
        let all = site.all(now);
        let Some(log) = site.logs.get_mut(broker) else { return };
        if count > log.anew {
            log.anew = count;
            log.begin_anew(now, all);
        }
        self.report_to(now, broker);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brokers::allocation::Book;
    use scheduler::{Grid, Labels, LocalScheduler, Pass, StrategySpec};

    use super::*;
    use crate::broker::message::BrokerMessage;
    use crate::broker::view::View;
    use crate::config::Terms;

    /// One of four sites behind a broker.
    fn config(site: u32, strategy: &str) -> PeerConfig {
        let names = (1..=4).map(|number| (format!("site{number}"), 4));
        let grid = Grid::with_brokers(names, [("broker".to_string(), None)]).expect("names differ");
        let strategy = strategy.parse::<StrategySpec>().expect("a name").strategy;
        PeerConfig { site: SiteId(site), terms: Terms::new(Arc::new(grid), strategy) }
    }

    #[test]
    fn times_of_reports_are_spread_over_the_period() {
        let next = |site: u32, now: i64| {
            let core = Core::at_rest(config(site, "broker:mpl"), 0);
            let now = Time::from_secs(now);
            (now + until_report(&core, now, Span::from_secs(60))).as_secs_f64()
        };
        assert_eq!([1, 2, 3, 4].map(|site| next(site, 0)), [60.0, 15.0, 30.0, 45.0]);
        assert_eq!([1, 2, 3, 4].map(|site| next(site, 100)), [120.0, 135.0, 150.0, 105.0]);
        assert_eq!(next(2, 75), 135.0, "the next, not this one");
        assert_eq!(next(2, -75), -45.0);
    }
    /// Whoever begins a row anew plans behind the queue as it is, not as numbers of jobs or submissions have it.
    #[test]
    fn a_row_begins_with_what_waits_in_the_order_of_the_queue() {
        let mut engine = Engine::<Reporter>::at_rest(config(1, "broker:genetic"), 0, 0);
        for (id, submit) in [(3, 9), (1, 5), (2, 7)] {
            let job = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(submit),
                processors: 1,
                requested: Span::from_secs(60),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            };
            engine.queue_up(Time::from_secs(10), job, None);
        }

        let changes = engine.family.all(Time::from_secs(10));
        let joined = changes.iter().filter_map(|change| match change {
            Change::Joined { job, .. } => Some(job.id.0),
            _ => None,
        });
        assert_eq!(joined.collect::<Vec<u64>>(), [3, 1, 2]);
    }

    /// Numbers of transfers with ranks of their brokers in the order of arrival, and jobs of those numbers in the order of
    /// the queue.
    fn queued(arrivals: &[(u32, u64)]) -> (Engine<Reporter>, Vec<Change>) {
        let mut engine = Engine::<Reporter>::at_rest(config(1, "broker:genetic"), 0, 0);
        let now = Time::from_secs(10);
        for &(rank, number) in arrivals {
            let id = 100 * u64::from(rank) + number % 100;
            let job = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(9 - number as i64 % 7),
                processors: 1,
                requested: Span::from_secs(id as i64),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            };
            engine.queue_up(now, job, Some((Rank(rank), number)));
        }
        let told = engine.family.logs[Rank::FIRST].news(true);
        let told = told.into_iter().flat_map(|message| match message {
            BrokerMessage::State { changes, .. } => changes,
            other => panic!("{other:?}"),
        });
        let told = told.collect();
        (engine, told)
    }

    fn order(changes: &[Change]) -> Vec<u64> {
        let joined = changes.iter().filter_map(|change| match change {
            Change::Joined { job, .. } => Some(job.id.0),
            _ => None,
        });
        joined.collect()
    }

    /// What a broker that was told all makes of it, and the same from a row that begins anew: jobs that wait, in order.
    fn views(engine: &mut Engine<Reporter>, told: Vec<Change>) -> [Vec<(i64, u32)>; 2] {
        let now = Time::from_secs(10);
        let anew = engine.family.all(now);
        [told, anew].map(|changes| {
            let book = Book::new(LocalScheduler::Easy, Pass::Batch, 4, false).in_order_of_arrival();
            let mut view = View::new(0, book, 0);
            view.hears(1, 0, changes);
            view.book.occupied(now).waiting
        })
    }

    #[test]
    fn a_row_is_queued_as_it_was_sent_whatever_arrives_first_and_brokers_see_it_so() {
        for (arrivals, expected) in [
            (vec![(0, 1), (0, 2), (0, 3)], vec![1, 2, 3]),
            (vec![(0, 3), (0, 2), (0, 1)], vec![1, 2, 3]),
            (vec![(0, 3), (0, 1), (0, 5), (0, 2), (0, 4)], vec![1, 2, 3, 4, 5]),
            // Rows of two brokers stay in the order in which they began to come.
            (vec![(0, 2), (1, 9), (0, 1), (1, 8), (0, 3), (1, 10)], vec![1, 2, 108, 109, 3, 110]),
            // A broker has restarted: its numbers have left many out.
            (vec![(1, 4), (0, 7 << 40), (0, 2), (0, 1)], vec![104, 1, 2, (7 << 40) % 100]),
        ] {
            let (mut engine, told) = queued(&arrivals);
            let all = engine.family.all(Time::from_secs(10));
            assert_eq!(order(&all), expected, "{arrivals:?}");
            let [told, anew] = views(&mut engine, told);
            assert_eq!(told.len(), arrivals.len());
            assert_eq!(told, anew, "{arrivals:?}");
        }
    }
}
