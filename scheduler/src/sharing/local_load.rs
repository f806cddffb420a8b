//! What local users take of a node: profiles as measured, and how they change over time.
//!
//! A load is a known function of time. Who predicts must not look ahead in it: [`LocalLoad::constant`] of what is now is what a
//! monitor tells.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::draw::Draw;
use crate::time::{Span, Time};

/// The stream of a seed that local loads are drawn from.
const STREAM: u64 = 0x6c6f_6361_6c75_7365;

/// What local users take of a node at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    computing: f64,
    memory: f64,
    bandwidth: f64,
}

/// Nobody uses the node.
pub const NOBODY: Usage = Usage { computing: 0.0, memory: 0.0, bandwidth: 0.0 };

/// Users of window systems: Lérida, Table D.2, two weeks at the University of Lleida, 62 % of users. Traffic is what is received and sent,
/// 608 and 30 bytes/s.
pub const XWINDOWS: Usage = Usage { computing: 0.15, memory: 0.35, bandwidth: 0.005_104 };

/// Users of browsers: Table D.2, 33 % of users; 3154 and 496 bytes/s.
pub const INTERNET: Usage = Usage { computing: 0.20, memory: 0.60, bandwidth: 0.029_2 };

/// Users of shells: Table D.2, 5 % of users; 108 and 3 bytes/s.
pub const SHELL: Usage = Usage { computing: 0.25, memory: 0.20, bandwidth: 0.000_888 };

/// The profile of all experiments of the thesis (3.5.1, 4.3.3): 15 % of a processor, 35 % of the memory, 0.5 MB/s.
pub const XWINDOWS_INTERNET: Usage = Usage { computing: 0.15, memory: 0.35, bandwidth: 4.0 };

/// Why local users cannot take that.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum UsageError {
    /// All of a processor, or more, or less than nothing.
    #[error("local users take {0} of a processor, which is not at least 0 and below 1")]
    Computing(f64),
    /// More than all of the memory, or less than nothing.
    #[error("local users take {0} of the memory, which is not between 0 and 1")]
    Memory(f64),
    /// Traffic that is no number.
    #[error("local users send {0} Mbit/s, which is not a number from 0 on")]
    Bandwidth(f64),
}

impl Usage {
    /// A share of the processor (below 1), a share of the memory (at most 1), and Mbit/s over the link of the node.
    ///
    /// # Errors
    /// The first of them that is out of its range.
    pub fn new(computing: f64, memory: f64, bandwidth: f64) -> Result<Usage, UsageError> {
        if !(0.0..1.0).contains(&computing) {
            return Err(UsageError::Computing(computing));
        }
        if !(0.0..=1.0).contains(&memory) {
            return Err(UsageError::Memory(memory));
        }
        if !(bandwidth >= 0.0 && bandwidth.is_finite()) {
            return Err(UsageError::Bandwidth(bandwidth));
        }
        Ok(Usage { computing, memory, bandwidth })
    }

    /// Share of the processor, at least 0 and below 1.
    pub fn computing(&self) -> f64 {
        self.computing
    }

    /// Share of the memory, from 0 to 1.
    pub fn memory(&self) -> f64 {
        self.memory
    }

    /// Traffic over the link of the node, in Mbit/s.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth
    }

    /// What is left of so much memory, in KB, rounded down.
    pub fn memory_left(&self, memory: u64) -> u64 {
        memory.saturating_sub((memory as f64 * self.memory).ceil() as u64)
    }
}

/// What local users take of one node, from when on. Nothing before the first change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LocalLoad {
    changes: Vec<(Time, Usage)>,
}

impl LocalLoad {
    /// The same at all times.
    pub fn constant(usage: Usage) -> LocalLoad {
        LocalLoad { changes: vec![(Time::from_micros(i64::MIN), usage)] }
    }

    /// These, each from its instant on.
    ///
    /// # Panics
    /// If they are not in the order of time.
    pub fn changing(changes: Vec<(Time, Usage)>) -> LocalLoad {
        assert!(changes.is_sorted_by(|one, next| one.0 < next.0), "changes of a load go forward in time");
        LocalLoad { changes }
    }

    /// What is taken at an instant.
    pub fn at(&self, time: Time) -> Usage {
        let after = self.changes.partition_point(|change| change.0 <= time);
        after.checked_sub(1).map_or(NOBODY, |index| self.changes[index].1)
    }

    /// All changes in the order of time.
    pub fn changes(&self) -> &[(Time, Usage)] {
        &self.changes
    }
}

/// Where local users sit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Anywhere: the nodes are drawn from all.
    Uniform,
    /// Together: clusters are filled one after the other, in an order that is drawn.
    Grouped,
}

/// When users leave and others come, so that the nodes with local users are drawn anew: after gaps that are uniform between half
/// and one and a half of `every`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redraws {
    /// The mean gap; at least a second counts.
    pub every: Span,
    /// No redraw from here on.
    pub until: Time,
}

/// Local users on a share of the nodes, as in the experiments of the thesis (4.3.3, 4.4.4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// What they take of each of their nodes.
    pub usage: Usage,
    /// The share of all nodes that they are on, from 0 to 1; rounded to whole nodes.
    pub share: f64,
    /// Where those nodes are.
    pub layout: Layout,
    /// Whether that changes during a run.
    pub redraws: Option<Redraws>,
}

impl Spread {
    /// The load of each node of clusters of these sizes.
    ///
    /// # Panics
    /// If the share is not between 0 and 1.
    pub fn draw(&self, clusters: &[usize], seed: u64) -> Vec<LocalLoad> {
        assert!((0.0..=1.0).contains(&self.share), "a share of {} is none", self.share);
        let mut draw = Draw::of_stream(seed, STREAM);
        let total: usize = clusters.iter().sum();
        let mut changes: Vec<Vec<(Time, Usage)>> = vec![Vec::new(); total];
        let mut now = Time::from_micros(i64::MIN);
        loop {
            let used = self.nodes(clusters, &mut draw);
            for (changes, used) in changes.iter_mut().zip(used) {
                let usage = if used { self.usage } else { NOBODY };
                if changes.last().map_or(NOBODY, |last| last.1) != usage {
                    changes.push((now, usage));
                }
            }
            let Some(Redraws { every, until }) = self.redraws else { break };
            let mean = every.max(Span::from_secs(1)).as_micros();
            let gap = Span::from_micros((mean as f64 * draw.between(0.5, 1.5)).round() as i64);
            now = now.max(Time::ZERO).saturating_add(gap);
            if now >= until {
                break;
            }
        }
        changes.into_iter().map(LocalLoad::changing).collect()
    }

    /// Whether local users are on each node, drawn once.
    fn nodes(&self, clusters: &[usize], draw: &mut Draw) -> Vec<bool> {
        let total: usize = clusters.iter().sum();
        let count = (self.share * total as f64).round() as usize;
        let mut order: Vec<usize> = match self.layout {
            Layout::Uniform => (0..total).collect(),
            Layout::Grouped => (0..clusters.len()).collect(),
        };
        draw.shuffle(&mut order);
        if self.layout == Layout::Grouped {
            let first = |cluster: usize| clusters[..cluster].iter().sum::<usize>();
            order = order
                .into_iter()
                .flat_map(|cluster| first(cluster)..first(cluster) + clusters[cluster])
                .collect();
        }
        let mut used = vec![false; total];
        order.into_iter().take(count).for_each(|node| used[node] = true);
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mbit/s of so many bytes per second received and sent.
    fn traffic(received: u32, sent: u32) -> f64 {
        f64::from(8 * (received + sent)) / 1e6
    }

    #[test]
    fn profiles_are_those_of_the_table() {
        let of = |usage: Usage| (usage.computing, usage.memory, usage.bandwidth);
        assert_eq!(of(XWINDOWS), (0.15, 0.35, traffic(608, 30)));
        assert_eq!(of(INTERNET), (0.20, 0.60, traffic(3154, 496)));
        assert_eq!(of(SHELL), (0.25, 0.20, traffic(108, 3)));
        assert_eq!(of(XWINDOWS_INTERNET), (0.15, 0.35, traffic(500_000, 0)));
        assert_eq!(XWINDOWS.memory_left(1_000), 650);
    }

    #[test]
    fn what_local_users_cannot_take_is_refused() {
        assert_eq!(Usage::new(1.0, 0.0, 0.0), Err(UsageError::Computing(1.0)));
        assert_eq!(Usage::new(0.0, 1.1, 0.0), Err(UsageError::Memory(1.1)));
        assert!(matches!(Usage::new(0.0, 0.0, f64::NAN), Err(UsageError::Bandwidth(_))));
    }

    #[test]
    fn a_load_holds_from_its_instant_on() {
        let load = LocalLoad::changing(vec![(Time::from_secs(1), SHELL), (Time::from_secs(3), NOBODY)]);
        let seen: Vec<Usage> = (0..5).map(|second| load.at(Time::from_secs(second))).collect();
        assert_eq!(seen, [NOBODY, SHELL, SHELL, NOBODY, NOBODY]);
        assert_eq!(LocalLoad::constant(SHELL).at(Time::from_secs(-9)), SHELL);
        assert_eq!(LocalLoad::default().at(Time::ZERO), NOBODY);
    }

    #[test]
    fn a_share_of_the_nodes_is_used_anywhere_or_together() {
        let spread = Spread { usage: SHELL, share: 0.5, layout: Layout::Uniform, redraws: None };
        let used = |spread: Spread, seed| -> Vec<usize> {
            let loads = spread.draw(&[8, 4, 4], seed);
            (0..loads.len()).filter(|&node| loads[node].at(Time::ZERO) == SHELL).collect()
        };
        let mut places = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let uniform = used(spread, seed);
            assert_eq!(uniform.len(), 8);
            assert_eq!(uniform, used(spread, seed));
            places.insert(uniform);
            let grouped = used(Spread { layout: Layout::Grouped, ..spread }, seed);
            // Whole clusters but for one: here all are whole, or two halves of the large one are.
            let of =
                |range: std::ops::Range<usize>| grouped.iter().filter(|node| range.contains(node)).count();
            let counts = (of(0..8), of(8..12), of(12..16));
            assert!([(8, 0, 0), (0, 4, 4), (4, 4, 0), (4, 0, 4)].contains(&counts), "{counts:?}");
        }
        assert!(places.len() > 15, "they are drawn");
        assert_eq!(used(Spread { share: 1.0, ..spread }, 1).len(), 16);
        assert_eq!(used(Spread { share: 0.0, ..spread }, 1).len(), 0);
    }

    #[test]
    fn local_users_move_at_drawn_instants_and_their_number_stays() {
        let redraws = Some(Redraws { every: Span::from_secs(100), until: Time::from_secs(10_000) });
        let spread = Spread { usage: SHELL, share: 0.3, layout: Layout::Uniform, redraws };
        let loads = spread.draw(&[5, 5], 7);
        let mut instants: Vec<Time> =
            loads.iter().flat_map(|load| load.changes.iter().map(|c| c.0)).collect();
        instants.sort_unstable();
        instants.dedup();
        assert!((60..=110).contains(&instants.len()), "{}", instants.len());
        for &instant in &instants {
            let used = loads.iter().filter(|load| load.at(instant) == SHELL).count();
            assert_eq!(used, 3, "at {instant}");
        }
        let gaps = instants[1..].windows(2).map(|two| two[1].since(two[0]));
        assert!(gaps.into_iter().all(|gap| gap >= Span::from_secs(50)));
        assert!(instants.iter().all(|&instant| instant < Time::from_secs(10_000)));
    }
}
