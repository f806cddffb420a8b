//! How jobs share links that cannot carry what all of them ask for: Algorithm 3.1 of Lérida's thesis, or max-min fairness.
//!
//! A job is one flow: all its tasks get the same, whichever of its links is short. The two rules differ: Algorithm 3.1 shortens all
//! flows of a link alike, in proportion to what they have, and never gives back; max-min fairness gives none more at the expense of one that has
//! less or as much (Bertsekas and Gallager, Data Networks, 6.5.2), as SimGrid's solver does.

use serde::{Deserialize, Serialize};

/// How far over its capacity a link may be and count as not saturated, and how much more than another one it may be saturated and
/// count as equally so: relative, and far above the error of a sum of doubles.
pub const SATURATION_TOLERANCE: f64 = 1e-12;

/// How links are shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fairness {
    /// Algorithm 3.1: the most saturated link first, flows in proportion; of equal links the one with the lowest number.
    #[default]
    Proportional,
    /// Max-min fairness of the bandwidths per task.
    MaxMin,
}

/// One job on links.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// What it asks for, BW_J in Mbit/s per task.
    pub demand: f64,
    /// The links it is on, and how many times its bandwidth per task each of them carries.
    pub links: Vec<(usize, f64)>,
}

/// What each flow gets, BW_J^as in Mbit/s per task, of links of these capacities in Mbit/s: its demand, unless a link is short.
///
/// # Panics
/// If a flow is on a link that is not there.
pub fn assign(fairness: Fairness, capacities: &[f64], flows: &[Flow]) -> Vec<f64> {
    let mut network = Network::default();
    capacities.iter().for_each(|&capacity| network.add_link(capacity));
    for flow in flows {
        network.add_flow(flow.demand, flow.links.iter().map(|&(link, weight)| (link, weight)));
    }
    network.solve(fairness);
    network.assigned
}

/// Whether a link of this capacity cannot carry that (3.6).
pub(super) fn is_saturated(capacity: f64, load: f64) -> bool {
    load > 0.0 && capacity / load < 1.0 - SATURATION_TOLERANCE
}

/// Links and flows of one calculation; the lists are kept for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    capacities: Vec<f64>,
    demands: Vec<f64>,
    /// Where the links of each flow end in `uses`.
    ends: Vec<usize>,
    uses: Vec<(usize, f64)>,
    pub(super) assigned: Vec<f64>,
    loads: Vec<f64>,
    weights: Vec<f64>,
    settled: Vec<bool>,
}

impl Network {
    pub(super) fn clear(&mut self) {
        self.capacities.clear();
        self.demands.clear();
        self.ends.clear();
        self.uses.clear();
    }

    pub(super) fn add_link(&mut self, capacity: f64) {
        self.capacities.push(capacity);
    }

    pub(super) fn add_flow(&mut self, demand: f64, links: impl Iterator<Item = (usize, f64)>) {
        self.demands.push(demand);
        self.uses.extend(links);
        self.ends.push(self.uses.len());
    }

    pub(super) fn solve(&mut self, fairness: Fairness) {
        self.assigned.clone_from(&self.demands);
        match fairness {
            Fairness::Proportional => self.proportional(),
            Fairness::MaxMin => self.max_min(),
        }
    }

    fn uses_of(&self, flow: usize) -> &[(usize, f64)] {
        let begin = flow.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.uses[begin..self.ends[flow]]
    }

    /// What each link carries as things are.
    fn sum_loads(&mut self) {
        let mut loads = std::mem::take(&mut self.loads);
        loads.clear();
        loads.resize(self.capacities.len(), 0.0);
        for (flow, assigned) in self.assigned.iter().enumerate() {
            for &(link, weight) in self.uses_of(flow) {
                loads[link] += weight * assigned;
            }
        }
        self.loads = loads;
    }

    /// Algorithm 3.1. Each round mends one link for good, as the others never load it more.
    fn proportional(&mut self) {
        loop {
            self.sum_loads();
            let links = self.capacities.iter().zip(&self.loads).enumerate();
            let saturated = links.filter(|&(_, (&capacity, &load))| is_saturated(capacity, load));
            let saturated = saturated.map(|(link, (&capacity, &load))| (link, capacity / load));
            let most = saturated.clone().map(|(_, saturation)| saturation).fold(f64::INFINITY, f64::min);
            // Which of equally saturated links comes first decides what flows get, and must not hang on the last bits of sums.
            let first =
                saturated.clone().find(|&(_, saturation)| saturation <= most * (1.0 + SATURATION_TOLERANCE));
            let Some((link, saturation)) = first else { break };
            for flow in 0..self.demands.len() {
                if self.uses_of(flow).iter().any(|used| used.0 == link) {
                    self.assigned[flow] *= saturation;
                }
            }
        }
    }

    /// Progressive filling: all flows grow alike until they have what they asked for, or a link of theirs is full.
    fn max_min(&mut self) {
        self.sum_loads();
        let is_short = |(capacity, load): (&f64, &f64)| is_saturated(*capacity, *load);
        if !self.capacities.iter().zip(&self.loads).any(is_short) {
            return;
        }
        // From here on `loads` is what is left of each link, and `weights` what flows that still grow take of it.
        self.loads.clone_from(&self.capacities);
        let mut left = std::mem::take(&mut self.loads);
        let mut weights = std::mem::take(&mut self.weights);
        let mut settled = std::mem::take(&mut self.settled);
        settled.clear();
        settled.resize(self.demands.len(), false);
        while settled.contains(&false) {
            weights.clear();
            weights.resize(self.capacities.len(), 0.0);
            for flow in (0..settled.len()).filter(|&flow| !settled[flow]) {
                self.uses_of(flow).iter().for_each(|&(link, weight)| weights[link] += weight);
            }
            let (mut level, mut bottleneck) = (f64::INFINITY, None);
            for (link, (&left, &weight)) in left.iter().zip(&weights).enumerate() {
                if weight > 0.0 && left / weight < level {
                    (level, bottleneck) = (left / weight, Some(link));
                }
            }
            let has_all = |flow: usize, settled: &[bool]| !settled[flow] && self.demands[flow] <= level;
            let some_have_all = (0..settled.len()).any(|flow| has_all(flow, &settled));
            for flow in 0..settled.len() {
                let on_bottleneck = || self.uses_of(flow).iter().any(|used| Some(used.0) == bottleneck);
                let gets = match some_have_all {
                    true if has_all(flow, &settled) => self.demands[flow],
                    false if !settled[flow] && on_bottleneck() => level,
                    _ => continue,
                };
                settled[flow] = true;
                self.assigned[flow] = gets;
                let begin = flow.checked_sub(1).map_or(0, |before| self.ends[before]);
                for &(link, weight) in &self.uses[begin..self.ends[flow]] {
                    left[link] = (left[link] - weight * gets).max(0.0);
                }
            }
        }
        (self.loads, self.weights, self.settled) = (left, weights, settled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(demand: f64, links: &[usize]) -> Flow {
        Flow { demand, links: links.iter().map(|&link| (link, 1.0)).collect() }
    }

    fn slowdowns(fairness: Fairness, capacities: &[f64], flows: &[Flow]) -> Vec<f64> {
        let assigned = assign(fairness, capacities, flows);
        flows.iter().zip(assigned).map(|(flow, assigned)| flow.demand / assigned).collect()
    }

    fn near(one: &[f64], other: &[f64]) -> bool {
        one.len() == other.len() && one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-12)
    }

    #[test]
    fn the_two_rules_differ_as_calculated_by_hand() {
        let flows = [flow(60.0, &[0, 1]), flow(80.0, &[0, 2]), flow(50.0, &[1, 3])];
        let capacities = [100.0, 100.0, 100.0, 40.0];
        let printed = slowdowns(Fairness::Proportional, &capacities, &flows);
        assert!(near(&printed, &[1.4, 1.4, 1.25]), "{printed:?}");
        let max_min = slowdowns(Fairness::MaxMin, &capacities, &flows);
        assert!(near(&max_min, &[1.2, 1.6, 1.25]), "{max_min:?}");
    }

    #[test]
    fn flows_of_links_that_are_not_short_get_all() {
        for fairness in [Fairness::Proportional, Fairness::MaxMin] {
            let flows = [flow(0.1, &[0]), flow(0.2, &[0]), flow(0.0, &[0]), flow(7.0, &[])];
            // Their sum is above 0.3 by the last digit of a double.
            assert_eq!(assign(fairness, &[0.3], &flows), [0.1, 0.2, 0.0, 7.0]);
            assert_eq!(assign(fairness, &[f64::INFINITY], &flows), [0.1, 0.2, 0.0, 7.0]);
        }
    }

    /// Both links must halve. Added up in this order the sum on the second is above that on the first by its last bit.
    #[test]
    fn of_equally_saturated_links_the_first_comes_first_whatever_the_last_bits_say() {
        let parts = [0.1, 0.2, 0.3];
        assert!(parts.iter().sum::<f64>() > 2.0 * parts[2], "the last bits differ");
        let [first, second, third] = parts;
        let flows = [flow(first, &[1]), flow(second, &[1]), flow(third, &[0, 1]), flow(third, &[0])];
        let assigned = assign(Fairness::Proportional, &[0.3, 0.3], &flows);
        assert!(near(&assigned, &[0.2 / 3.0, 0.4 / 3.0, 0.1, 0.15]), "{assigned:?}");
    }

    #[test]
    fn a_flow_loads_a_link_by_its_weight() {
        for fairness in [Fairness::Proportional, Fairness::MaxMin] {
            let flows = [
                Flow { demand: 100.0, links: vec![(0, 3.0)] },
                Flow { demand: 100.0, links: vec![(0, 1.0)] },
            ];
            assert_eq!(assign(fairness, &[200.0], &flows), [50.0, 50.0]);
        }
    }
}
