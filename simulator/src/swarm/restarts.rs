//! Kills that strike who restarts: while its questions are on their way, are answered, or are asked again.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use scheduler::{SiteId, Span, Time};

use super::brokers;
use super::drawing::micros;
use crate::faults::{Fault, Scenario, Torn};

/// Jobs that wait at sites for so long at most are called back, so that recalls are under way most of the time.
const LONGEST_LIMIT_S: i64 = 40;

/// In half of the seeds there are brokers that call jobs back, in some others brokers that see into sites. Every broker is
/// killed at least once, and whoever comes back is killed again, most often before it knows what it asks for.
pub(super) fn strike(rng: &mut ChaCha8Rng, scenario: &mut Scenario) {
    match rng.random_range(0..4) {
        0 => {}
        1 => brokers::join(rng, scenario),
        _ => {
            brokers::join_opaque(rng, scenario);
            if let Some(rules) = scenario.strategy.dispatch_mut() {
                rules.timeout = Some(Span::from_secs(rng.random_range(1..=LONGEST_LIMIT_S)));
            }
        }
    }
    let healed = scenario.healed.expect("what is drawn is healed");
    for rank in 0..scenario.grid.brokers() {
        let at = Time::from_micros(rng.random_range(0..healed.as_micros()));
        let down = micros(rng, Span::ZERO, Span::from_secs(60));
        let site = scenario.grid.at_rank(rank);
        scenario.faults.push(kill(site, at, down, torn(rng)));
    }
    // A question is there or answered after some of these, and asked again after all of them.
    let soon = scenario.options.retry.unwrap_or(Span::from_secs(10));
    let restarts: Vec<(SiteId, Time, Span)> = scenario
        .faults
        .iter()
        .filter_map(|fault| match *fault {
            Fault::Crash { site, at, down: Some(down), .. } => Some((site, at, down)),
            _ => None,
        })
        .collect();
    let sites = scenario.grid.len();
    for (site, at, down) in restarts {
        let begins = at.saturating_add(down);
        for _ in 0..rng.random_range(1..=2) {
            let struck = match rng.random_bool(0.7) {
                true => site,
                // Somebody that it asks, or that asks it.
                false => SiteId::from_index(rng.random_range(0..sites)),
            };
            let (at, torn) = match rng.random_range(0..4) {
                // While it is down: in the middle of its first call.
                0 if down > Span::ZERO => (begins - Span::from_micros(1), torn(rng).or(Some(CUT_OFF))),
                1 => (begins.saturating_add(micros(rng, Span::ZERO, soon.saturating_mul(4))), torn(rng)),
                _ => (begins.saturating_add(micros(rng, Span::ZERO, soon)), torn(rng)),
            };
            if at < healed {
                let down = micros(rng, Span::ZERO, Span::from_secs(30));
                scenario.faults.push(kill(struck, at, down, torn));
            }
        }
    }
}

/// All is durable, and nothing of it is said.
const CUT_OFF: Torn = Torn { written: true, outputs: 0 };

fn torn(rng: &mut ChaCha8Rng) -> Option<Torn> {
    let torn = Torn { written: rng.random_bool(0.8), outputs: rng.random_range(0..4) };
    rng.random_bool(0.5).then_some(torn)
}

fn kill(site: SiteId, at: Time, down: Span, torn: Option<Torn>) -> Fault {
    Fault::Crash { site, at, down: Some(down), written_percent: 100, torn }
}
