//! The parts that one site has for one broker.

use std::collections::BTreeMap;

use scheduler::JobId;

use super::{Attempt, Order, Reply};

/// What a site knows of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// It has processors, and the site has said that it is ready.
    Held {
        /// How many.
        processors: u32,
    },
    /// It executes.
    Runs {
        /// Processors that it has.
        processors: u32,
    },
    /// It has none any more, and never will.
    Over {
        /// Whether it ran to its end.
        ended: bool,
    },
}

impl Part {
    /// Processors that it keeps from others.
    pub fn processors(self) -> u32 {
        match self {
            Part::Held { processors } | Part::Runs { processors } => processors,
            Part::Over { .. } => 0,
        }
    }
}

/// What a site does because of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing but the reply.
    None,
    /// Processors are kept.
    Held,
    /// The part starts.
    Started,
    /// Processors are free that were kept, and nothing ran on them.
    Freed,
    /// What ran is stopped, and its processors are free.
    Stopped,
}

/// What one site must not forget of the parts that one broker sent it: all that is here is written down before a reply leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parts {
    parts: BTreeMap<Attempt, Part>,
    /// Take-overs of jobs that the site knows of.
    epochs: BTreeMap<JobId, u32>,
    floor: u64,
}

impl Parts {
    /// What was written down.
    pub fn restored(
        parts: impl IntoIterator<Item = (Attempt, Part)>,
        epochs: BTreeMap<JobId, u32>,
        floor: u64,
    ) -> Parts {
        Parts { parts: parts.into_iter().collect(), epochs, floor }
    }

    /// Take-overs of jobs that the site knows of.
    pub fn epochs(&self) -> &BTreeMap<JobId, u32> {
        &self.epochs
    }

    /// All attempts below are settled.
    pub fn floor(&self) -> u64 {
        self.floor
    }

    /// All that are not settled.
    pub fn all(&self) -> impl Iterator<Item = (Attempt, Part)> + '_ {
        self.parts.iter().map(|(&attempt, &part)| (attempt, part))
    }

    /// Processors that parts keep from others.
    pub fn processors(&self) -> u32 {
        self.parts.values().map(|part| part.processors()).sum()
    }

    /// The broker gives an order. `free` are processors that nothing keeps.
    pub fn heard(&mut self, attempt: Attempt, order: Order, free: u32) -> (Option<Reply>, Effect) {
        if let Order::Prepare { floor, .. } = order {
            self.floor = self.floor.max(floor);
            let floor = self.floor;
            self.parts.retain(|known, part| known.number >= floor || !matches!(part, Part::Over { .. }));
        }
        let known = self.parts.get(&attempt).copied();
        if known.is_none() && attempt.number < self.floor {
            return (None, Effect::None);
        }
        if self.is_other(attempt) {
            let refused = matches!(order, Order::Prepare { .. }).then_some(Reply::Refused);
            return (refused, Effect::None);
        }
        match (order, known) {
            (_, Some(Part::Over { ended })) => (Some(Reply::Over { ended }), Effect::None),
            (Order::Prepare { .. }, Some(Part::Held { .. })) => (Some(Reply::Ready), Effect::None),
            (Order::Prepare { processors, .. }, None) => {
                if self.is_void(attempt) || processors > free {
                    return (Some(Reply::Refused), Effect::None);
                }
                self.parts.insert(attempt, Part::Held { processors });
                (Some(Reply::Ready), Effect::Held)
            }
            (Order::Commit, Some(Part::Held { processors })) => {
                self.parts.insert(attempt, Part::Runs { processors });
                (None, Effect::Started)
            }
            (Order::Abort, part) => {
                // Written even if nothing was held: an older Prepare may still be on its way, and a Commit behind it.
                let over = self.close(attempt, false);
                let effect = match part {
                    Some(Part::Runs { .. }) => Effect::Stopped,
                    Some(_) => Effect::Freed,
                    None => Effect::None,
                };
                (Some(over), effect)
            }
            (Order::Prepare { .. } | Order::Commit, Some(Part::Runs { .. })) | (Order::Commit, None) => {
                (None, Effect::None)
            }
        }
    }

    /// A part has run to its end.
    pub fn ended(&mut self, attempt: Attempt) -> Reply {
        self.close(attempt, true)
    }

    /// The site restarts after a crash: what ran is lost, and what was held is held.
    pub fn begun_again(&mut self) {
        for part in self.parts.values_mut().filter(|part| matches!(part, Part::Runs { .. })) {
            *part = Part::Over { ended: false };
        }
    }

    /// The job was taken over: attempts of older epochs are void. Those that kept processors here.
    pub fn superseded(&mut self, job: JobId, epoch: u32) -> Vec<(Attempt, Effect)> {
        let newest = self.epochs.entry(job).or_default();
        *newest = (*newest).max(epoch);
        let void: Vec<Attempt> =
            self.parts.keys().copied().filter(|&attempt| self.is_void(attempt)).collect();
        let mut effects = Vec::new();
        for attempt in void {
            let effect = match self.parts[&attempt] {
                Part::Held { .. } => Effect::Freed,
                Part::Runs { .. } => Effect::Stopped,
                Part::Over { .. } => continue,
            };
            self.close(attempt, false);
            effects.push((attempt, effect));
        }
        effects
    }

    /// What is said again until the broker answers or has settled it.
    pub fn again(&self) -> impl Iterator<Item = (Attempt, Reply)> + '_ {
        self.all().filter_map(|(attempt, part)| match part {
            Part::Held { .. } => Some((attempt, Reply::Ready)),
            Part::Over { ended } => Some((attempt, Reply::Over { ended })),
            Part::Runs { .. } => None,
        })
    }

    fn close(&mut self, attempt: Attempt, ended: bool) -> Reply {
        self.parts.insert(attempt, Part::Over { ended });
        Reply::Over { ended }
    }

    /// Whether the number of an attempt is that of another one here. A broker gives each its own, so one of the two was never begun: what
    /// lies has named it, and the broker has said to the liar that it does not start.
    fn is_other(&self, attempt: Attempt) -> bool {
        self.parts.keys().any(|known| known.number == attempt.number && *known != attempt)
    }

    fn is_void(&self, attempt: Attempt) -> bool {
        self.epochs.get(&attempt.job).is_some_and(|&epoch| attempt.epoch < epoch)
    }
}
