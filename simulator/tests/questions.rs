//! No timer outlives its question, whatever the strategy.

use links::Model;
use protocol::{BrokerOptions, Reporting};
use scheduler::{Event, EventKind, Span, Time};
use simulator::Simulation;

use crate::{opaque, worlds};

const BROKERS: [&str; 4] = ["broker:random", "broker:mpl", "broker:mwt", "broker:genetic,window=60s"];

/// Every question is answered within a round trip, long before it would be repeated: nobody waits for an answer after that.
#[test]
fn who_has_answered_is_not_asked_again() {
    let round_trip = Span::from_secs(4);
    let jobs = opaque::jobs(120);
    let mut came_back = 0;
    let mut check = |strategy: &str, brokers: usize, report: Reporting| {
        let mut config = opaque::config(strategy, brokers);
        config.network = Model::constant(Span::from_micros(round_trip.as_micros() / 2));
        config.options.retry = Some(Span::from_secs(600));
        config.options.broker = BrokerOptions { report, ..config.options.broker };
        let mut simulation = Simulation::new(config, &jobs);
        let mut last = Time::ZERO;
        let mut note = |event: &Event| match event.kind {
            EventKind::Completed { .. } => last = event.at,
            EventKind::Recalled { .. } => came_back += 1,
            _ => {}
        };
        while simulation.advance(&mut note).expect("no violation") {}
        let late = simulation.now().since(last);
        assert!(
            late <= round_trip.saturating_mul(3),
            "{strategy}, {report:?}: somebody waits for an answer for {late} s"
        );
    };
    for strategy in worlds::STRATEGIES {
        check(strategy, 0, Reporting::Change);
    }
    for strategy in opaque::RULES {
        check(strategy, 2, Reporting::Change);
    }
    for strategy in BROKERS {
        for report in [Reporting::Change, Reporting::Every(round_trip), Reporting::Probe(2)] {
            check(strategy, 2, report);
        }
    }
    assert!(came_back > 20, "{came_back} came back");
}
