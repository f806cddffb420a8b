//! Orders of the control interface: every body that a node reads as JSON, and what becomes of those that it takes.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use node::arrivals::Arrivals;
use node::clock::{StartOrder, TraceClock};
use node::control::api::{Adoption, CalibrateOrder, Calibration, ConnectOrder, Failure, Status};
use node::doors::is_address;
use protocol::{Input, Options, Output, Peer, PeerConfig, Terms};
use scheduler::{Event, Grid, JobId, LocalScheduler, SiteId, Span, StrategySpec, Time, TimedJob};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

/// Sizes of the sites; the node is the second.
const SIZES: [u32; 3] = [2, 4, 8];
/// Jobs that the node holds at most: few, so that inputs reach the limit.
const HELD_MAX: usize = 8;
/// Kinds of bodies: the first byte of an input is one of these.
pub(crate) const CONNECT: u8 = 0;
pub(crate) const CALIBRATE: u8 = 1;
pub(crate) const START: u8 = 2;
pub(crate) const JOBS: u8 = 3;
pub(crate) const ADOPT: u8 = 4;
pub(crate) const ANSWER: u8 = 5;

/// Bytes as the body of a request, of the kind that the first byte says, or of an answer.
///
/// # Panics
/// If what was read is not what it was written as, a refused order changed something, or one that was taken breaks the
/// node.
pub fn control(bytes: &[u8]) {
    let Some((&kind, body)) = bytes.split_first() else { return };
    match kind % 6 {
        CONNECT => {
            for peer in read::<ConnectOrder>(body).into_iter().flat_map(|order| order.peers) {
                let _: bool = is_address(&peer.address);
            }
        }
        CALIBRATE => drop(read::<CalibrateOrder>(body)),
        START => drop(read::<StartOrder>(body).map(start)),
        JOBS => drop(read::<Vec<TimedJob>>(body).map(|jobs| hand_over(&jobs))),
        ADOPT => drop(read::<Vec<Adoption>>(body).map(adopt)),
        _ => {
            read::<Status>(body);
            read::<Failure>(body);
            read::<Calibration>(body);
            // What a node says happened, a line of JSON each.
            for line in body.split(|byte| *byte == b'\n') {
                read::<Event>(line);
            }
        }
    }
}

fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(body: &[u8]) -> Option<T> {
    let content: T = serde_json::from_slice(body).ok()?;
    let written = serde_json::to_vec(&content).expect("what was read can be written");
    let again = serde_json::from_slice(&written);
    assert_eq!(again.ok().as_ref(), Some(&content), "it is the same when it is read again");
    Some(content)
}

fn start(order: StartOrder) {
    let (mut clock, now) = (TraceClock::default(), Instant::now());
    // The second is always the same, so that a finding is one again.
    let wall = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    if clock.start(&order, wall, now).is_err() {
        assert!(!clock.is_armed(), "a refused start is none");
        return;
    }
    let at = clock.at(now);
    assert!(protocol::is_time(at), "trace time is beyond all bounds");
    for ahead in [Span::ZERO, Span::from_secs(1), Span::from_micros(protocol::MICROS_MAX)] {
        let instant = clock.instant(at + ahead).expect("the clock is started");
        assert!(instant >= now, "nothing is due before now");
    }
}

fn hand_over(jobs: &[TimedJob]) {
    let (mut peer, grid) = (peer(), Grid::of_sizes(&SIZES).expect("sizes of a grid"));
    let mut arrivals = Arrivals::new(HELD_MAX, HELD_MAX);
    if arrivals.take(jobs, 0, &grid).is_err() {
        assert_eq!(arrivals.held(), 0, "of a refused portion none is taken");
        assert_eq!(arrivals.unknown(jobs.to_vec()), jobs, "nor known");
        return;
    }
    assert_eq!(arrivals.held(), jobs.len());
    assert!(arrivals.take(jobs, 0, &grid).is_err() || jobs.is_empty(), "none is taken twice");
    let mut now = Time::ZERO;
    while let Some(due) = arrivals.next_due() {
        now = now.max(due);
        let (job, _) = arrivals.pop_due(now).expect("it is due");
        work(&mut peer, &mut now, Input::Submitted(job.spec), job.run_time);
    }
}

fn adopt(adoptions: Vec<Adoption>) {
    let (mut peer, mut now) = (peer(), Time::ZERO);
    for adoption in adoptions {
        let Adoption { job, epoch } = adoption;
        if adoption.is_lawful(&peer.config().grid) {
            work(&mut peer, &mut now, Input::Adopt { job: job.spec, epoch }, job.run_time);
        }
    }
}

fn peer() -> Peer {
    let strategy = "st:50".parse::<StrategySpec>().expect("the name of a strategy").strategy;
    let options = Options {
        heartbeat: Some(Span::from_secs(10)),
        retry: Some(Span::from_secs(5)),
        ..Options::default()
    };
    let grid = Arc::new(Grid::of_sizes(&SIZES).expect("sizes of a grid"));
    let terms = Terms { local: LocalScheduler::ALL[0], options, ..Terms::new(grid, strategy) };
    Peer::new(PeerConfig { site: SiteId(2), terms })
}

/// Tells a peer one thing, and lets it work on what starts.
fn work(peer: &mut Peer, now: &mut Time, input: Input, run_time: Span) {
    let mut started: Vec<JobId> = Vec::new();
    let mut tell = |peer: &mut Peer, now: Time, input: Input| {
        peer.handle(now, input);
        while let Some(output) = peer.poll_output() {
            if let Output::Start(job) = output {
                started.push(job.id);
            }
        }
        std::mem::take(&mut started)
    };
    let mut running = tell(peer, *now, input);
    running.extend(tell(peer, *now, Input::Turn));
    peer.check_invariants();
    *now = now.saturating_add(run_time).min(Time::from_micros(2 * protocol::MICROS_MAX)).max(*now);
    for job in running {
        tell(peer, *now, Input::Completed(job));
    }
    tell(peer, *now, Input::Timeout);
    let _: Vec<JobId> = tell(peer, *now, Input::Turn);
    peer.check_invariants();
}
