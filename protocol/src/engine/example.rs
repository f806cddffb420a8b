//! The smallest family there is: first come, first served, and nobody is asked. `docs/EXTENDING.md` shows it.

use std::collections::VecDeque;
use std::sync::Arc;

use scheduler::{EventKind, Grid, JobId, JobSpec, LocalScheduler, Pass, SiteId, Span, Strategy, Time};

use super::{Engine, Family, Site, Wishes};
use crate::config::{Options, PeerConfig};
use crate::fixtures::job;
use crate::message::{HandOverMessage, Message, Silence, Transfer};
use crate::ports::{Input, Output};
use crate::timers::Never;

// docs: the smallest family
#[derive(Clone, Debug)]
struct Plain {
    queue: VecDeque<JobSpec>,
}

impl Family for Plain {
    type Message = Silence;
    type Timer = Never;

    fn of(_config: &PeerConfig, _first: u64) -> Plain {
        Plain { queue: VecDeque::new() }
    }

    fn enqueue(engine: &mut Engine<Plain>, _now: Time, job: JobSpec) {
        engine.family.queue.push_back(job);
    }

    fn turn(engine: &mut Engine<Plain>, now: Time) {
        while let Some(&job) = engine.family.queue.front().filter(|job| job.processors <= engine.core.free) {
            engine.family.queue.pop_front();
            engine.core.start(now, job);
        }
    }

    fn jobs(&self) -> impl Iterator<Item = &JobSpec> {
        self.queue.iter()
    }

    fn take(engine: &mut Engine<Plain>, job: &JobSpec) -> Option<JobSpec> {
        let place = engine.family.queue.iter().position(|waiting| waiting.id == job.id)?;
        engine.family.queue.remove(place)
    }

    fn repeat(_: &mut Engine<Plain>, _now: Time, _to: usize, _transfer: &Transfer) -> Option<Silence> {
        None // It grants nothing: jobs leave by routes, which the engine repeats.
    }
}
// docs: end

fn engine(heartbeat: Option<Span>) -> Engine<Plain> {
    let config = PeerConfig {
        site: SiteId(1),
        grid: Arc::new(Grid::of_sizes(&[4, 8]).unwrap()),
        strategy: Strategy::Local,
        local: LocalScheduler::default(),
        pass: Pass::default(),
        options: Options { message_events: false, heartbeat, journal: true, ..Options::default() },
        seed: 1,
        external: None,
    };
    Engine::at_rest(config, 0, 0)
}

fn tell(engine: &mut Engine<Plain>, input: Input) -> Vec<Output> {
    let mut wishes = Wishes::default();
    engine.handle(Time::ZERO, input, &mut wishes);
    engine.check_invariants();
    wishes.outputs.into()
}

fn started(outputs: &[Output]) -> Vec<u64> {
    let start = |output: &Output| match output {
        Output::Start(job) => Some(job.id.0),
        _ => None,
    };
    outputs.iter().filter_map(start).collect()
}

#[test]
fn the_smallest_family_executes_what_fits_and_sends_home_what_never_will() {
    let mut engine = engine(None);
    for (id, processors) in [(1, 3), (2, 2), (3, 1)] {
        assert!(started(&tell(&mut engine, Input::Submitted(job(id, processors)))).is_empty());
    }
    let sent = tell(&mut engine, Input::Submitted(job(4, 8)));
    let routes = |output: &Output| {
        matches!(
            output,
            Output::Send { to: SiteId(2), message: Message::HandOver(HandOverMessage::Route { .. }) }
        )
    };
    assert!(sent.iter().any(routes), "{sent:?}");
    assert_eq!((started(&tell(&mut engine, Input::Turn)), Site::waiting(&engine)), (vec![1], 2));
    tell(&mut engine, Input::Completed(JobId(1)));
    assert_eq!(started(&tell(&mut engine, Input::Turn)), [2, 3]);
}

/// What the engine does for every family: a site that leaves gives away what waits, and writes all of it down.
#[test]
fn a_site_of_the_smallest_family_can_leave() {
    let mut engine = engine(Some(Span::from_secs(5)));
    for id in [1, 2] {
        tell(&mut engine, Input::Submitted(job(id, 3)));
    }
    tell(&mut engine, Input::Turn);
    tell(&mut engine, Input::Leave);
    let last = tell(&mut engine, Input::Turn);
    let granted = |output: &Output| {
        matches!(output, Output::Event(EventKind::Granted { job: JobId(2), to: SiteId(2), .. }))
    };
    assert!(last.iter().any(granted), "{last:?}");
    assert!(last.iter().any(|output| matches!(output, Output::Write(_))));
    assert_eq!(Site::waiting(&engine), 0);
}
