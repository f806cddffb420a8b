//! Which cluster a job is meant for (Lérida, *M-CISNE*, §4.3).

use scheduler::Span;
use scheduler::strategy::{ClusterSelection, MetaScheduler, Weighting, Weights};

/// A cluster that a job may be meant for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Its number in the order of the grid.
    pub number: usize,
    /// TR: how long the job would be there until it has ended, as predicted.
    pub turnaround: Span,
    /// LT: on how many of the job's nodes local users are.
    pub local_nodes: u32,
}

/// Chooses clusters; remembers whose turn it is.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    /// The number of the cluster after the one that was chosen last.
    turn: usize,
}

impl Selector {
    /// The index of the one that is chosen; none if there are none. Candidates are in any order; of equal ones the first in the
    /// order of the grid is chosen.
    pub fn choose(&self, rules: &MetaScheduler, candidates: &[Candidate]) -> Option<usize> {
        match rules.select {
            ClusterSelection::FirstFit => least(candidates, |_| 0.0),
            ClusterSelection::RoundRobin => {
                let after = |candidate: &Candidate| candidate.number < self.turn;
                least(candidates, |candidate| f64::from(u8::from(after(candidate))))
            }
            ClusterSelection::Turnaround => least(candidates, |candidate| seconds(candidate.turnaround)),
            ClusterSelection::Weighted => {
                let weigh = weighted(&rules.weights, rules.weighting, candidates);
                least(candidates, weigh)
            }
        }
    }

    /// A job goes to the cluster of this number: the next turn is that of the one after it.
    pub fn sent_to(&mut self, number: usize) {
        self.turn = number + 1;
    }
}

fn seconds(span: Span) -> f64 {
    span.as_micros() as f64 / 1e6
}

/// PTT of a candidate among these, (4.1): TR · (w · TR / max TR + (1 − w) · LT / max LT), or without the first factor. max LT is
/// 1 where no local users are. Each cluster has its own w (§4.3.2).
fn weighted(weights: &Weights, weighting: Weighting, candidates: &[Candidate]) -> impl Fn(&Candidate) -> f64 {
    let longest = candidates.iter().map(|candidate| seconds(candidate.turnaround)).fold(0.0, f64::max);
    let most = candidates.iter().map(|candidate| candidate.local_nodes).max().unwrap_or(0).max(1);
    move |candidate| {
        let w = weights.of(candidate.number).as_f64();
        let turnaround = seconds(candidate.turnaround);
        let part = if longest > 0.0 { turnaround / longest } else { 0.0 };
        let sum = w * part + (1.0 - w) * f64::from(candidate.local_nodes) / f64::from(most);
        match weighting {
            Weighting::Scaled => turnaround * sum,
            Weighting::Plain => sum,
        }
    }
}

fn least(candidates: &[Candidate], by: impl Fn(&Candidate) -> f64) -> Option<usize> {
    let key = |&index: &usize| (by(&candidates[index]), candidates[index].number);
    (0..candidates.len()).min_by(|one, other| {
        let (one, other) = (key(one), key(other));
        one.0.total_cmp(&other.0).then(one.1.cmp(&other.1))
    })
}

#[cfg(test)]
mod tests {
    use scheduler::strategy::Chance;

    use super::*;

    fn candidates(rows: &[(i64, u32)]) -> Vec<Candidate> {
        let candidate = |(number, &(turnaround, local_nodes)): (usize, &(i64, u32))| Candidate {
            number,
            turnaround: Span::from_secs(turnaround),
            local_nodes,
        };
        rows.iter().enumerate().map(candidate).collect()
    }

    fn rules(select: ClusterSelection, w: u32, weighting: Weighting) -> MetaScheduler {
        let weights = Weights::all(Chance::millionths(w).unwrap());
        MetaScheduler { select, weights, weighting, ..MetaScheduler::default() }
    }

    /// TR = (100, 80, 120), LT = (0, 4, 2), both readings of (4.1).
    #[test]
    fn ptt_of_the_worked_example() {
        let all = candidates(&[(100, 0), (80, 4), (120, 2)]);
        let rows = [
            (0, Weighting::Scaled, [0.0, 80.0, 60.0]),
            (500_000, Weighting::Scaled, [41.667, 66.667, 90.0]),
            (1_000_000, Weighting::Scaled, [83.333, 53.333, 120.0]),
            (0, Weighting::Plain, [0.0, 1.0, 0.5]),
            (500_000, Weighting::Plain, [0.4167, 0.8333, 0.75]),
            (1_000_000, Weighting::Plain, [0.8333, 0.6667, 1.0]),
        ];
        for (w, weighting, expected) in rows {
            let weights = Weights::all(Chance::millionths(w).unwrap());
            let weigh = weighted(&weights, weighting, &all);
            for (candidate, expected) in all.iter().zip(expected) {
                assert!((weigh(candidate) - expected).abs() < 1e-3, "w={w} {weighting:?} {candidate:?}");
            }
        }
    }

    /// The same example with w = 1, 0.5 and 0 by cluster: 83.333, 66.667 and 60 of its rows.
    #[test]
    fn each_cluster_may_have_a_weight_of_its_own() {
        let broker = scheduler::Broker::new(scheduler::BrokerRule::Mcisne);
        let broker = broker.with("select", "ptt").and_then(|broker| broker.with("w", "1/0.5/0")).unwrap();
        let all = candidates(&[(100, 0), (80, 4), (120, 2)]);
        let weigh = weighted(&broker.meta.weights, Weighting::Scaled, &all);
        for (candidate, expected) in all.iter().zip([83.333, 66.667, 60.0]) {
            assert!((weigh(candidate) - expected).abs() < 1e-3, "{candidate:?}");
        }
        assert_eq!(Selector::default().choose(&broker.meta, &all), Some(2));
        assert!(broker.to_string().ends_with(",w=1/0.5/0"), "{broker}");
        let [same, more] = ["0.3/0.3/0.3", "0/1/0.5/0.5"].map(|w| broker.with("w", w).unwrap().to_string());
        assert!(same.ends_with(",w=0.3") && more.ends_with(",w=0/1/0.5"), "{same} {more}");
        let many = vec!["0"; 17].join("/");
        for wrong in ["0.5/2", "", "0.5/", many.as_str()] {
            assert!(broker.with("w", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn with_all_weight_on_turnaround_ptt_is_tat() {
        let all = candidates(&[(100, 0), (80, 4), (120, 2)]);
        for weighting in [Weighting::Scaled, Weighting::Plain] {
            let ptt =
                Selector::default().choose(&rules(ClusterSelection::Weighted, 1_000_000, weighting), &all);
            assert_eq!(
                ptt,
                Selector::default().choose(&rules(ClusterSelection::Turnaround, 0, weighting), &all)
            );
            let gentle = Selector::default().choose(&rules(ClusterSelection::Weighted, 0, weighting), &all);
            assert_eq!(gentle, Some(0), "no local users are there");
        }
    }

    #[test]
    fn where_no_local_users_are_nothing_is_divided_by_zero_and_the_first_is_chosen_of_equals() {
        let all = candidates(&[(0, 0), (0, 0)]);
        for w in [0, 500_000, 1_000_000] {
            let rules = rules(ClusterSelection::Weighted, w, Weighting::Scaled);
            assert_eq!(Selector::default().choose(&rules, &all), Some(0));
        }
    }

    #[test]
    fn the_first_fits_and_turns_go_on_after_the_one_that_was_chosen() {
        let all = candidates(&[(9, 0), (1, 0), (5, 0)]);
        let first = rules(ClusterSelection::FirstFit, 0, Weighting::Scaled);
        assert_eq!(Selector::default().choose(&first, &all), Some(0));
        let turns = rules(ClusterSelection::RoundRobin, 0, Weighting::Scaled);
        let mut selector = Selector::default();
        for expected in [0, 1, 2, 0] {
            assert_eq!(selector.choose(&turns, &all), Some(expected));
            assert_eq!(selector.choose(&turns, &all), Some(expected), "nothing was sent there yet");
            selector.sent_to(expected);
        }
        // One that is too small is passed over.
        assert_eq!(selector.choose(&turns, &all[2..]), Some(0));
        selector.sent_to(2);
        assert_eq!(selector.choose(&turns, &all), Some(0));
        assert_eq!(selector.choose(&turns, &[]), None);
    }
}
