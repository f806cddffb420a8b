//! The smallest family there is: first come, first served, and nobody is asked. `docs/EXTENDING.md` leads here.

use std::collections::VecDeque;
use std::sync::Arc;

use scheduler::{EventKind, Grid, JobId, JobSpec, SiteId, Span, Strategy, Time};

use super::{Engine, Family, Giving, InParts, Lawful, Observed, Recovery, Site, Wishes};
use crate::config::{Options, PeerConfig, Terms};
use crate::fixtures::{job, started};
use crate::journal::{Durable, Fact, Topic, Words};
use crate::message::{HandOverMessage, Message, Silence, Transfer};
use crate::ports::{Input, Output};
use crate::rank::Rank;
use crate::timers::Never;

#[derive(Clone, Debug)]
struct Plain {
    queue: VecDeque<JobSpec>,
    /// Jobs that ended here, in all incarnations.
    ended: u64,
}

/// The one row that it remembers.
const ENDED: Topic = Topic { table: 0, a: 0, b: 0 };

impl Family for Plain {
    type Message = Silence;
    type Timer = Never;

    fn of(_config: &PeerConfig, _first: u64) -> Plain {
        Plain { queue: VecDeque::new(), ended: 0 }
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

    fn completed(engine: &mut Engine<Plain>, _now: Time, _job: JobId, _end: Time, _processors: u32) {
        engine.family.ended += 1;
        let mut words = Words::default();
        words[0] = engine.family.ended;
        engine.core.write(Fact::Remembers { topic: ENDED, words: Some(words) });
    }
}

impl Lawful for Plain {}

impl Giving for Plain {
    fn repeat(_: &mut Engine<Plain>, _now: Time, _to: Rank, _transfer: &Transfer) -> Option<Silence> {
        None // It grants nothing: jobs leave by routes, which the engine repeats.
    }
}

impl Recovery for Plain {
    fn remember(engine: &mut Engine<Plain>, durable: &Durable) {
        engine.family.ended = durable.memory.get(&ENDED).map_or(0, |words| words[0]);
    }

    fn can_remember(_: &Engine<Plain>, durable: &Durable) -> Result<(), String> {
        let other = durable.memory.keys().find(|&&topic| topic != ENDED);
        other.map_or(Ok(()), |topic| Err(format!("{topic:?} was never written")))
    }
}

impl InParts for Plain {}

impl Observed for Plain {}

fn engine(heartbeat: Option<Span>) -> Engine<Plain> {
    let terms = Terms {
        options: Options { message_events: false, heartbeat, journal: true, ..Options::default() },
        ..Terms::new(Arc::new(Grid::of_sizes(&[4, 8]).unwrap()), Strategy::default())
    };
    Engine::at_rest(terms.at_rank(0), 0, 0)
}

/// What a site has written down in the outputs.
fn write(durable: &mut Durable, outputs: &[Output]) {
    for output in outputs {
        if let Output::Write(fact) = output {
            durable.apply(fact);
        }
    }
}

fn tell(engine: &mut Engine<Plain>, input: Input) -> Vec<Output> {
    let mut wishes = Wishes::default();
    engine.handle(Time::ZERO, input, &mut wishes);
    engine.check_invariants();
    wishes.outputs.into()
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

#[test]
fn the_smallest_family_knows_in_another_life_what_it_wrote_down() {
    let (mut durable, mut engine) = (Durable::default(), engine(None));
    durable.apply(&Fact::Began { incarnation: 0 });
    for id in [1, 2] {
        write(&mut durable, &tell(&mut engine, Input::Submitted(job(id, 3))));
        write(&mut durable, &tell(&mut engine, Input::Turn));
        write(&mut durable, &tell(&mut engine, Input::Completed(JobId(id))));
    }
    let mut again = Engine::<Plain>::at_rest(engine.core.config.clone(), 1, 0);
    assert_eq!(Site::can_remember(&again, &durable), Ok(()));
    again.go_on(&durable, Time::ZERO);
    assert_eq!((again.family.ended, Site::family_agrees_with(&again, &durable)), (2, Ok(())));

    durable.apply(&Fact::Remembers { topic: Topic { table: 1, ..ENDED }, words: Some(Words::default()) });
    assert!(Site::can_remember(&again, &durable).is_err());
}
