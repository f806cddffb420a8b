//! The family of brokers: members without processors allocate each job to a site, at once and for good; the sites start
//! what they got by their local schedulers, and tell the brokers what happened.
//!
//! Users submit to a broker. It decides in its turn, job by job in queue order, by what it knows of the sites, and routes
//! the job: the site must take it, so it changes owner exactly once whatever is lost. What it knows are rows of changes,
//! one from each site (`log.rs` of a site, `view.rs` of a broker), when [`Reporting`] says. Jobs that are on their way
//! are counted where they go ([`Pending`]). A broker that begins again asks for new rows.
//!
//! With all delays zero, and reports at once, the schedule is that of [`scheduler::ideal::Brokered`], job for job: reports of
//! what ended at an instant arrive before the turn of the broker, which comes before those of sites, because members
//! without processors have the lowest ranks.

mod batches;
mod desk;
mod log;
pub(crate) mod message;
pub(crate) mod options;
mod site;
mod view;

use scheduler::local::LocalQueue;
use scheduler::{JobId, JobSpec, Span, Strategy, Time};

use self::desk::Desk;
use self::message::{BrokerMessage, Change};
use self::options::{Failover, Reporting};
use self::site::Reporter;
use crate::bounds::{are_counts, is_time};
use crate::canary::Canary;
use crate::config::PeerConfig;
use crate::core::Core;
use crate::engine::{Engine, Family};
use crate::journal::Place;
use crate::message::Transfer;
use crate::timers::Alarm;

/// A broker, or a site under brokers.
#[derive(Clone, Debug)]
pub(crate) enum Brokering {
    Desk(Box<Desk>),
    Site(Box<Reporter>),
}

/// What they wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BrokerTimer {
    /// The broker of this rank has not said that it knows what it was told.
    Known(usize),
    /// The site of this rank has not answered a probe.
    Probe(usize),
    /// The site of this rank has begun no new row.
    Anew(usize),
    /// It is time to report.
    Report,
    /// It is time to plan a batch, however few jobs wait.
    Batch,
}

impl Alarm for BrokerTimer {
    fn repeats(&self) -> bool {
        !matches!(self, BrokerTimer::Report | BrokerTimer::Batch)
    }
}

impl Family for Brokering {
    type Message = BrokerMessage;
    type Timer = BrokerTimer;

    fn of(config: &PeerConfig, first: u64) -> Brokering {
        let Strategy::Broker(rules) = config.strategy else { panic!("a broker") };
        match config.options.broker.report {
            Reporting::Every(period) => assert!(period > Span::ZERO, "reports are some time apart"),
            Reporting::Probe(count) => assert!(count > 0, "a probe asks somebody"),
            Reporting::Change => {}
        }
        let brokers = config.grid.brokers();
        assert!(brokers > 0, "jobs are given to sites by a broker: the grid has none");
        match config.grid.site(config.site).processors {
            0 => Brokering::Desk(Box::new(Desk::new(config, rules, first))),
            _ => Brokering::Site(Box::new(Reporter::new(config, rules, first))),
        }
    }

    fn enqueue(engine: &mut Engine<Brokering>, now: Time, job: JobSpec) {
        match &mut engine.family {
            Brokering::Desk(desk) => {
                desk.take_in(now, job);
                engine.wait_for_more(now);
            }
            Brokering::Site(_) => engine.queue_up(now, job, None),
        }
    }

    /// Where rows are planned a site keeps to the order in which the broker sent them, whatever arrives first.
    fn routed(engine: &mut Engine<Brokering>, now: Time, from: usize, transfer: &Transfer) {
        match engine.family {
            Brokering::Desk(_) => Brokering::enqueue(engine, now, transfer.job),
            Brokering::Site(_) => engine.queue_up(now, transfer.job, Some((from, transfer.number))),
        }
    }

    fn turn(engine: &mut Engine<Brokering>, now: Time) {
        match engine.family {
            Brokering::Desk(_) => engine.allocate_all(now),
            Brokering::Site(_) => engine.start_own(now),
        }
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        let (desk, site) = match self {
            Brokering::Desk(desk) => (Some(desk.jobs()), None),
            Brokering::Site(site) => (None, Some(site.jobs())),
        };
        desk.into_iter().flatten().chain(site.into_iter().flatten())
    }

    fn waiting(&self) -> usize {
        match self {
            Brokering::Desk(desk) => desk.waiting(),
            Brokering::Site(site) => site.waiting(),
        }
    }

    fn take(engine: &mut Engine<Brokering>, job: &JobSpec) -> Option<JobSpec> {
        match &mut engine.family {
            Brokering::Desk(desk) => desk.take_out(job),
            Brokering::Site(site) => site.withdraw(job),
        }
    }

    fn heard(engine: &mut Engine<Brokering>, now: Time, rank: usize, message: BrokerMessage) {
        match message {
            BrokerMessage::State { epoch, first, changes, probe } => {
                engine.on_state(rank, epoch, first, changes, probe);
            }
            BrokerMessage::Known { epoch, next } => engine.on_known(now, rank, epoch, next),
            BrokerMessage::Probe { probe } => engine.on_probe(now, rank, probe),
            BrokerMessage::Anew { count } => engine.on_anew(now, rank, count),
        }
    }

    fn is_lawful(core: &Core, rank: usize, message: &BrokerMessage) -> bool {
        let sizes = core.config.grid.sizes();
        let (to_broker, from_broker) = (core.processors() == 0, sizes[rank] == 0);
        let fits = |job: &JobSpec| {
            core.is_job(job.processors, job.submit, job.requested) && job.processors <= sizes[rank]
        };
        match message {
            BrokerMessage::State { epoch, first, changes, probe } => {
                let is_change = |change: &Change| {
                    is_time(change.at())
                        && match change {
                            Change::Joined { job, .. } | Change::JoinedBefore { job, .. } => fits(job),
                            Change::Runs { job, since, .. } => fits(job) && is_time(*since),
                            Change::Decided { .. } | Change::Ended { .. } | Change::Left { .. } => true,
                        }
                };
                to_broker
                    && !from_broker
                    && are_counts(&[*epoch, *first, *probe])
                    && changes.iter().all(is_change)
            }
            BrokerMessage::Known { epoch, next } => from_broker && !to_broker && are_counts(&[*epoch, *next]),
            BrokerMessage::Probe { probe: count } | BrokerMessage::Anew { count } => {
                from_broker && !to_broker && are_counts(&[*count])
            }
        }
    }

    fn fired(engine: &mut Engine<Brokering>, now: Time, timer: BrokerTimer) {
        match timer {
            // A broker that leaves decides nothing any more.
            BrokerTimer::Probe(_) | BrokerTimer::Anew(_) if engine.core.is_leaving() => {
                engine.timers.cancel(timer);
            }
            BrokerTimer::Report => {
                engine.timers.cancel(timer);
                engine.report(now);
            }
            BrokerTimer::Batch => {
                engine.timers.cancel(timer);
                engine.waits_no_longer();
            }
            // Nobody sends jobs to a site that leaves, so nobody need know what happens there: a broker that began again
            // does not even ask.
            BrokerTimer::Known(_) if engine.core.is_leaving() => engine.timers.cancel(timer),
            BrokerTimer::Known(broker) => {
                engine.timers.again(timer, now);
                engine.report_again(broker);
            }
            BrokerTimer::Probe(site) => {
                engine.timers.again(timer, now);
                engine.probe_again(site);
            }
            BrokerTimer::Anew(site) => {
                engine.timers.again(timer, now);
                engine.ask_anew(site);
            }
        }
    }

    fn belongs(core: &Core, home: Option<usize>, job: &JobSpec) -> Option<usize> {
        core.behind_brokers(home, job)
    }

    fn takes_routed(core: &Core, job: &JobSpec) -> bool {
        let options = &core.config.options;
        // A broker takes what another one had that leaves.
        let stands_in = core.processors() == 0 && core.membership.is_some();
        job.processors <= core.processors()
            || (stands_in
                && options.broker.failover == Failover::Next
                && job.processors <= core.config.grid.widest())
    }

    fn put_back(engine: &mut Engine<Brokering>, now: Time, job: JobSpec, _place: Place) {
        if engine.core.processors() > 0 || !engine.core.has(Canary::InboxForgotten) {
            engine.enqueue(now, job);
        }
    }

    fn may_queue(core: &Core, job: &JobSpec) -> bool {
        core.may_queue_behind_brokers(job)
    }

    fn may_grant(_core: &Core, _rank: usize) -> bool {
        false
    }

    fn completed(
        engine: &mut Engine<Brokering>,
        now: Time,
        job: JobId,
        _estimated_end: Time,
        _processors: u32,
    ) {
        engine.own_ended(now, job);
    }

    fn after(engine: &mut Engine<Brokering>, now: Time) {
        engine.report_if_due(now);
        engine.stop_waiting();
    }

    fn local_queue(&self) -> Option<&LocalQueue> {
        match self {
            Brokering::Desk(_) => None,
            Brokering::Site(site) => Some(site.local_queue()),
        }
    }

    fn repeat(
        _engine: &mut Engine<Brokering>,
        _now: Time,
        _to: usize,
        _transfer: &Transfer,
    ) -> Option<BrokerMessage> {
        // Jobs leave by routes only.
        None
    }

    fn voided(engine: &mut Engine<Brokering>, rank: usize, transfer: &Transfer) {
        engine.is_not_coming(rank, transfer.job.id);
    }

    fn settled(engine: &mut Engine<Brokering>, _now: Time, transfer: &Transfer) {
        engine.has_arrived(transfer.job.id);
    }

    fn was_in_vain(engine: &mut Engine<Brokering>, _now: Time, transfer: &Transfer) {
        engine.came_in_vain(transfer.job.id);
    }

    fn resume(engine: &mut Engine<Brokering>, now: Time) {
        engine.ask_all_anew(now);
        engine.begins_rows(now);
    }

    fn met(engine: &mut Engine<Brokering>, now: Time, rank: usize) {
        engine.goes_on_with(now, rank);
        engine.reports_on(now, rank);
        engine.wait_for_more(now);
    }

    fn lost(engine: &mut Engine<Brokering>, _now: Time, rank: usize) {
        engine.expects_no_answer(rank);
        engine.falls_silent(rank);
    }

    fn gone(engine: &mut Engine<Brokering>, rank: usize) {
        engine.forgets(rank);
    }

    fn pooled(&self) -> impl Iterator<Item = JobId> {
        self.jobs().map(|job| job.id)
    }

    fn books(&self) -> Vec<(usize, Vec<(JobId, bool)>)> {
        match self {
            Brokering::Desk(desk) => desk.books(),
            Brokering::Site(_) => Vec::new(),
        }
    }

    fn has_told(&self, broker: usize) -> bool {
        match self {
            Brokering::Desk(_) => false,
            Brokering::Site(site) => site.has_told(broker),
        }
    }

    fn is_open(engine: &Engine<Brokering>, timer: BrokerTimer) -> bool {
        match (&engine.family, timer) {
            (Brokering::Desk(desk), BrokerTimer::Probe(rank)) => desk.awaits_answer(rank),
            (Brokering::Desk(desk), BrokerTimer::Anew(rank)) => desk.awaits_row(rank),
            (Brokering::Desk(desk), BrokerTimer::Batch) => desk.waiting() > 0,
            (Brokering::Site(site), BrokerTimer::Known(broker)) => site.awaits(broker),
            (Brokering::Site(site), BrokerTimer::Report) => site.has_news(),
            _ => false,
        }
    }

    fn check(engine: &Engine<Brokering>) {
        if let Brokering::Site(site) = &engine.family {
            assert_eq!(site.free(), engine.core.free, "the local queue counts the same processors");
        }
    }
}
