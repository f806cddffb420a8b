//! A site under brokers: its local queue, and what it tells each broker of it.

use std::collections::BTreeMap;

use scheduler::local::LocalQueue;
use scheduler::{Broker, JobId, JobSpec, Span, Time};

use super::log::Log;
use super::message::{CHANGES_MAX, Change};
use super::options::Reporting;
use super::{BrokerTimer, Brokering};
use crate::canary::Canary;
use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::Engine;

/// The queue of a site, and a row of changes for each broker.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    queue: LocalQueue,
    /// How many jobs came, where rows are planned: jobs start in the order in which they were sent, whenever they were
    /// submitted, and rows of several brokers in the order in which they come.
    turns: Option<u64>,
    waiting: BTreeMap<JobId, Queued>,
    /// What waits and was sent here, where rows are planned: by rank of the sender and number of the transfer.
    sent: BTreeMap<(usize, u64), JobId>,
    /// What executes, and since when.
    running: BTreeMap<JobId, (JobSpec, Time)>,
    /// By rank of the broker. None if brokers decide without reports.
    logs: Vec<Log>,
    /// Something happened since the last decision that was told.
    is_undecided: bool,
    /// Something happened that brokers are told of before the next turn.
    is_urgent: bool,
    /// Of the latest fact or decision.
    now: Time,
}

/// A job that waits.
#[derive(Clone, Copy, Debug)]
struct Queued {
    turn: u64,
    job: JobSpec,
    /// Rank of who sent it, and number of the transfer.
    sent: Option<(usize, u64)>,
}

/// Turns between two jobs that come one after the other: room for what both have overtaken. Far more than the transfers that
/// can be under way.
const TURN: u64 = 1 << 32;

impl Reporter {
    pub(super) fn new(config: &PeerConfig, rules: Broker, first: u64) -> Reporter {
        let brokers = if rules.needs_reports() { config.grid.brokers() } else { 0 };
        Reporter {
            queue: config.queue(),
            turns: rules.plans_batches().then_some(0),
            waiting: BTreeMap::new(),
            sent: BTreeMap::new(),
            running: BTreeMap::new(),
            // A row of a later life is newer than all of an earlier one.
            logs: vec![Log::new(first + 1); brokers],
            is_undecided: false,
            is_urgent: false,
            now: Time::from_micros(i64::MIN),
        }
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.waiting.values().map(|queued| &queued.job)
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn free(&self) -> u32 {
        self.queue.free()
    }

    pub(super) fn local_queue(&self) -> &LocalQueue {
        &self.queue
    }

    fn tell(&mut self, change: &Change) {
        for log in &mut self.logs {
            log.push(change.clone());
        }
    }

    /// What a new row begins with, jobs that wait in the order of the queue. It is never empty: whoever asked for it hears of
    /// it.
    fn all(&self, now: Time) -> Vec<Change> {
        let running = self.running.values();
        let running = running.map(|&(job, since)| Change::Runs { at: now, job, since });
        let mut waiting: Vec<Queued> = self.waiting.values().copied().collect();
        waiting.sort_unstable_by_key(|queued| (queued.turn, queued.job.key()));
        let waiting = waiting.into_iter().map(|queued| Change::Joined { at: now, job: queued.job });
        running.chain(waiting).chain([Change::Decided { at: now, started: Vec::new() }]).collect()
    }

    pub(super) fn withdraw(&mut self, job: &JobSpec) -> Option<JobSpec> {
        self.queue.withdraw(job.id)?;
        self.tell(&Change::Left { at: self.now, job: job.id });
        self.is_undecided = true;
        self.is_urgent = true;
        self.forget(job.id)
    }

    /// A job waits no longer.
    fn forget(&mut self, job: JobId) -> Option<JobSpec> {
        let queued = self.waiting.remove(&job)?;
        if let Some(sent) = queued.sent {
            self.sent.remove(&sent);
        }
        Some(queued.job)
    }

    /// The turn of a job that comes now, and which of those that wait comes next, if that had overtaken it. The distance of two
    /// turns of one sender is at most that of the numbers, so that what comes late finds its place however many have.
    fn turn_of(&mut self, sent: Option<(usize, u64)>) -> (u64, Option<JobId>) {
        let Some(turns) = &mut self.turns else { return (0, None) };
        let next = sent.and_then(|(rank, number)| {
            let (&(_, later), &job) = self.sent.range((rank, number)..=(rank, u64::MAX)).next()?;
            Some((self.waiting.get(&job)?.turn, later - number, job))
        });
        match next {
            Some((turn, distance, job)) => {
                // A broker that begins again leaves out numbers.
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

    /// Whether the broker of this rank was told all, and said so if it must.
    pub(super) fn has_told(&self, broker: usize) -> bool {
        let log = self.logs.get(broker);
        log.is_some_and(|log| !log.is_silent && !log.has_news() && !log.is_waiting())
    }

    /// Whether the broker of this rank has not said that it knows what it was told.
    pub(super) fn awaits(&self, broker: usize) -> bool {
        self.logs.get(broker).is_some_and(Log::is_waiting)
    }

    pub(super) fn has_news(&self) -> bool {
        self.logs.iter().any(Log::has_news)
    }
}

/// How long it is to the next of the times that are a period apart, of which each site has its own.
fn until_report(core: &Core, now: Time, period: Span) -> Span {
    let grid = &core.config.grid;
    let (place, sites) = (core.rank - grid.brokers(), grid.len() - grid.brokers());
    let period = period.as_micros();
    let offset = i128::from(period) * place as i128 / sites as i128;
    let since = (i128::from(now.as_micros()) - offset).rem_euclid(i128::from(period));
    Span::from_micros(period - i64::try_from(since).expect("less than the period"))
}

impl Engine<Brokering> {
    fn reporter(&mut self) -> Option<&mut Reporter> {
        match &mut self.family {
            Brokering::Site(site) => Some(site),
            Brokering::Desk(_) => None,
        }
    }

    /// A job joins the queue of this site.
    pub(super) fn queue_up(&mut self, now: Time, job: JobSpec, sent: Option<(usize, u64)>) {
        // Whoever sent it here knows: it is told of with the decision that follows, unless there are others to know.
        let is_own = self.core.custody_of(job.id).hops == 0;
        let Some(site) = self.reporter() else { return };
        site.now = now;
        let (turn, overtaker) = site.turn_of(sent);
        let sent = sent.filter(|_| site.turns.is_some());
        site.queue.submit_in_turn(now, job, turn);
        site.waiting.insert(job.id, Queued { turn, job, sent });
        site.sent.extend(sent.map(|sent| (sent, job.id)));
        site.tell(&match overtaker {
            Some(overtaker) => Change::JoinedBefore { at: now, job, overtaker },
            None => Change::Joined { at: now, job },
        });
        site.is_undecided = true;
        site.is_urgent |= is_own || site.logs.len() > 1;
    }

    /// Starts what the local scheduler starts.
    pub(super) fn start_own(&mut self, now: Time) {
        let Some(site) = self.reporter() else { return };
        let mut starts = Vec::new();
        site.now = now;
        site.queue.decide(now, &mut starts);
        let failure = site.queue.failure();
        for job in &starts {
            site.forget(job.id);
            site.running.insert(job.id, (*job, now));
        }
        if site.is_undecided || !starts.is_empty() {
            site.is_undecided = false;
            site.is_urgent = true;
            let mut started = starts.iter().map(|job| job.id);
            loop {
                let started: Vec<JobId> = started.by_ref().take(CHANGES_MAX - 1).collect();
                let is_last = started.len() < CHANGES_MAX - 1;
                site.tell(&Change::Decided { at: now, started });
                if is_last {
                    break;
                }
            }
        }
        self.core.fell_back(failure);
        for job in starts {
            self.core.start(now, job);
        }
    }

    pub(super) fn own_ended(&mut self, now: Time, job: JobId) {
        let untold = self.core.has(Canary::EndUntold);
        let Some(site) = self.reporter() else { return };
        site.now = now;
        site.queue.complete(now, job);
        site.running.remove(&job);
        if !untold {
            site.tell(&Change::Ended { at: now, job });
        }
        site.is_undecided = true;
        site.is_urgent = true;
    }

    /// Reports what happened, or sees to it that it will be.
    pub(super) fn report_if_due(&mut self, now: Time) {
        let report = self.core.config.options.broker.report;
        let Some(site) = self.reporter() else { return };
        let is_urgent = std::mem::take(&mut site.is_urgent);
        if !site.has_news() {
            // The broker that was to hear of it asked meanwhile, or is not heard of.
            self.timers.cancel(BrokerTimer::Report);
            return;
        }
        match report {
            Reporting::Change if is_urgent => self.report(now),
            Reporting::Every(period) if !self.timers.is_set(BrokerTimer::Report) => {
                self.timers.set(BrokerTimer::Report, now, until_report(&self.core, now, period));
            }
            Reporting::Change | Reporting::Every(_) | Reporting::Probe(_) => {}
        }
    }

    /// Tells all brokers what they were never told.
    pub(super) fn report(&mut self, now: Time) {
        for broker in 0..self.core.config.grid.brokers() {
            self.report_to(now, broker);
        }
    }

    fn report_to(&mut self, now: Time, broker: usize) {
        let retry = self.core.config.options.retry;
        let Some(log) = self.reporter().and_then(|site| site.logs.get_mut(broker)) else { return };
        let messages = log.news(retry.is_some());
        let waits = log.is_waiting();
        for message in messages {
            self.core.send(broker, message);
        }
        if let Some(retry) = retry.filter(|_| waits && !self.timers.is_set(BrokerTimer::Known(broker))) {
            self.timers.set(BrokerTimer::Known(broker), now, retry);
        }
    }

    pub(super) fn report_again(&mut self, broker: usize) {
        let Some(log) = self.reporter().and_then(|site| site.logs.get_mut(broker)) else { return };
        for message in log.again() {
            self.core.send_again(broker, message, true);
        }
    }

    pub(super) fn on_known(&mut self, now: Time, broker: usize, epoch: u64, next: u64) {
        let Some(log) = self.reporter().and_then(|site| site.logs.get_mut(broker)) else { return };
        log.known(epoch, next);
        let waits = log.is_waiting();
        self.timers.cancel(BrokerTimer::Known(broker));
        if let Some(retry) = self.core.config.options.retry.filter(|_| waits) {
            self.timers.set(BrokerTimer::Known(broker), now, retry);
        }
    }

    /// A broker is not heard of.
    pub(super) fn falls_silent(&mut self, broker: usize) {
        if let Some(log) = self.reporter().and_then(|site| site.logs.get_mut(broker)) {
            log.silence();
        }
    }

    /// This site begins again: a row of its earlier life is over, even if nothing is here.
    pub(super) fn begins_rows(&mut self, now: Time) {
        let Some(site) = self.reporter() else { return };
        site.tell(&Change::Decided { at: now, started: Vec::new() });
        site.is_urgent = true;
    }

    /// A job that was on its way here is not coming.
    pub(super) fn came_in_vain(&mut self, job: JobId) {
        let is_here = self.core.is_here(job);
        let Some(site) = self.reporter() else { return };
        if !is_here {
            site.tell(&Change::Left { at: site.now, job });
            site.is_urgent = true;
        }
    }

    /// A broker is heard of again, which was not waited for.
    pub(super) fn reports_on(&mut self, now: Time, broker: usize) {
        let Some(site) = self.reporter() else { return };
        let all = site.all(now);
        if let Some(log) = site.logs.get_mut(broker).filter(|log| log.is_silent) {
            log.begin_anew(all.into_iter());
            return self.report_to(now, broker);
        }
        let Some(log) = self.reporter().and_then(|site| site.logs.get(broker)) else { return };
        let waits = log.is_waiting();
        if let Some(retry) = self.core.config.options.retry.filter(|_| waits) {
            self.report_again(broker);
            self.timers.set(BrokerTimer::Known(broker), now, retry);
        }
    }

    pub(super) fn on_probe(&mut self, now: Time, broker: usize, probe: u64) {
        let Some(log) = self.reporter().and_then(|site| site.logs.get_mut(broker)) else { return };
        log.probe = log.probe.max(probe);
        self.report_to(now, broker);
    }

    pub(super) fn on_anew(&mut self, now: Time, broker: usize, count: u64) {
        if !self.core.is_reachable(broker) {
            // It leaves, and decides nothing any more.
            return;
        }
        let Some(site) = self.reporter() else { return };
        let all = site.all(now);
        let Some(log) = site.logs.get_mut(broker) else { return };
        if count > log.anew {
            log.anew = count;
            log.begin_anew(all.into_iter());
        }
        self.report_to(now, broker);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::allocation::Book;
    use scheduler::{Grid, Labels, LocalScheduler, Pass, SiteId, StrategySpec};

    use super::*;
    use crate::broker::message::BrokerMessage;
    use crate::broker::view::View;
    use crate::config::Options;

    /// One of four sites behind a broker.
    fn config(site: u32, strategy: &str) -> PeerConfig {
        let names = (1..=4).map(|number| (format!("site{number}"), 4));
        let grid = Grid::with_brokers(names, [("broker".to_string(), None)]).expect("names differ");
        PeerConfig {
            site: SiteId(site),
            grid: Arc::new(grid),
            strategy: strategy.parse::<StrategySpec>().expect("a name").strategy,
            local: LocalScheduler::Easy,
            pass: Pass::Batch,
            options: Options::default(),
            seed: 1,
            external: None,
        }
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
        let mut engine = Engine::<Brokering>::at_rest(config(1, "broker:genetic"), 0, 0);
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

        let changes = engine.reporter().expect("a site").all(Time::from_secs(10));
        let joined = changes.iter().filter_map(|change| match change {
            Change::Joined { job, .. } => Some(job.id.0),
            _ => None,
        });
        assert_eq!(joined.collect::<Vec<u64>>(), [3, 1, 2]);
    }

    /// Numbers of transfers with ranks of their brokers in the order of arrival, and jobs of those numbers in the order of
    /// the queue.
    fn queued(arrivals: &[(usize, u64)]) -> (Engine<Brokering>, Vec<Change>) {
        let mut engine = Engine::<Brokering>::at_rest(config(1, "broker:genetic"), 0, 0);
        let now = Time::from_secs(10);
        for &(rank, number) in arrivals {
            let id = 100 * rank as u64 + number % 100;
            let job = JobSpec {
                id: JobId(id),
                submit: Time::from_secs(9 - number as i64 % 7),
                processors: 1,
                requested: Span::from_secs(id as i64),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            };
            engine.queue_up(now, job, Some((rank, number)));
        }
        let told = engine.reporter().expect("a site").logs[0].news(true);
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
    fn views(engine: &mut Engine<Brokering>, told: Vec<Change>) -> [Vec<(i64, u32)>; 2] {
        let now = Time::from_secs(10);
        let anew = engine.reporter().expect("a site").all(now);
        [told, anew].map(|changes| {
            let book = Book::new(LocalScheduler::Easy, Pass::Batch, 4, false).in_order_of_arrival();
            let mut view = View::new(book, 0);
            view.hear(1, 0, changes);
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
            // A broker has begun again: its numbers have left many out.
            (vec![(1, 4), (0, 7 << 40), (0, 2), (0, 1)], vec![104, 1, 2, (7 << 40) % 100]),
        ] {
            let (mut engine, told) = queued(&arrivals);
            let all = engine.reporter().expect("a site").all(Time::from_secs(10));
            assert_eq!(order(&all), expected, "{arrivals:?}");
            let [told, anew] = views(&mut engine, told);
            assert_eq!(told.len(), arrivals.len());
            assert_eq!(told, anew, "{arrivals:?}");
        }
    }
}
