//! The model at work: one message after the other.

use std::collections::BTreeMap;

use scheduler::{SiteId, Span, Time};

use crate::draw::{self, of_message};
use crate::jitter::DELAY_MAX;
use crate::model::{Link, Model};

/// The delays of the copies of one message that arrive, from its sending: none, one or two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    /// `None`: the message is lost.
    pub first: Option<Span>,
    /// The duplicate. Only if there is a first.
    pub second: Option<Span>,
}

impl Copies {
    /// No copy arrives.
    pub const LOST: Copies = Copies { first: None, second: None };

    /// The delays of the copies that arrive.
    pub fn arriving(self) -> impl Iterator<Item = Span> {
        [self.first, self.second].into_iter().flatten()
    }
}

/// What is remembered of a directed link.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Messages so far.
    sent: u64,
    /// When the last one was sent.
    sent_at: Time,
    /// What is added to those that are sent at that instant, of the first of them: they leave together, and what the
    /// network underneath does to one it does to all.
    added: [u64; 2],
    /// When the last payload has left.
    free: Time,
    /// The latest arrival so far.
    last: Time,
}

impl Default for Line {
    fn default() -> Self {
        let never = Time::from_micros(i64::MIN);
        Line { sent: 0, sent_at: never, added: [0; 2], free: never, last: never }
    }
}

/// All links, or those of one sender, with what is under way on them.
///
/// Messages are numbered per directed link, and the n-th of a link meets the same chance whatever other links do.
/// Links whose messages all take their base delay remember nothing.
#[derive(Clone, Debug)]
pub struct Links {
    model: Model,
    plain: bool,
    seed: u64,
    lines: BTreeMap<(SiteId, SiteId), Line>,
}

impl Links {
    /// Links on which nothing was sent. The seed is that of the experiment.
    pub fn new(model: Model, seed: u64) -> Links {
        Links { plain: model.is_plain(), model, seed, lines: BTreeMap::new() }
    }

    /// What they do.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Sends a message with so many bytes of payload. On each link, time does not run backwards.
    pub fn send(&mut self, now: Time, from: SiteId, to: SiteId, payload: u64) -> Copies {
        if self.plain {
            return Copies { first: Some(self.model.base.between(from, to)), second: None };
        }
        let line = self.lines.entry((from, to)).or_default();
        line.sent += 1;
        if self.model.cuts(from, to, now, now) {
            return Copies::LOST;
        }
        let link = self.model.link(now, from, to);
        let mut leaves = now;
        if let Some(bandwidth) = link.properties.bandwidth {
            leaves = now.max(line.free).saturating_add(transfer(payload, bandwidth));
            line.free = leaves;
        }
        let numbers = of_message(self.seed, from, to, line.sent);
        if link.properties.loss.happens(numbers[draw::LOSS]) {
            return Copies::LOST;
        }
        if line.sent_at != now {
            line.sent_at = now;
            line.added = draw::COPY.map(|copy| numbers[copy + 2]);
        }
        let twice = link.properties.duplication.happens(numbers[draw::DUPLICATION]);
        let mut arrive = |copy: usize| {
            let own = &numbers[draw::COPY[copy]..][..2];
            let mut at = leaves.saturating_add(delay(&self.model, &link, [own[0], own[1]], line.added[copy]));
            if !link.properties.reorder {
                at = at.max(line.last);
            }
            if self.model.cuts(from, to, now, at) {
                return None;
            }
            line.last = line.last.max(at);
            Some(at.since(now))
        };
        let first = arrive(0);
        let second = if twice { arrive(1) } else { None };
        match first {
            Some(_) => Copies { first, second },
            None => Copies { first: second, second: None },
        }
    }
}

fn delay(model: &Model, link: &Link, jitter: [u64; 2], added: u64) -> Span {
    let delay = link.delay + link.properties.jitter.sample(jitter);
    // What is added is real and not part of what the model may cut at 0.
    (delay.max(Span::ZERO) + model.added.sample([added, 0])).clamp(Span::ZERO, DELAY_MAX)
}

/// How long a payload occupies a link, rounded up.
fn transfer(payload: u64, bandwidth: u64) -> Span {
    let micros = (u128::from(payload) * 1_000_000).div_ceil(u128::from(bandwidth.max(1)));
    Span::from_micros(i64::try_from(micros).unwrap_or(i64::MAX)).min(DELAY_MAX)
}
