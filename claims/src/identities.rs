//! Claims that two things are the same, schedule for schedule.

use scheduler::ideal::{StatefulSteal, StatelessSteal, definition};
use scheduler::{
    Event, EventKind, JobId, JobSpec, Order, Pass, Policy, Selection, SiteId, Steal, Strategy, Threshold,
    Time,
};
use simulator::reference;

use crate::runs::{Instance, Network, named, peers};
use crate::tally::Tally;
use crate::{Found, Parameters};

/// Orders of classes that are said to give the same lists, and pairs that do not.
const SAME: [(Order, Order); 2] = [(Order::Ahb, Order::Abh), (Order::Hba, Order::Bha)];
const OTHER: [(Order, Order); 2] = [(Order::Ahb, Order::Bah), (Order::Hba, Order::Hab)];

/// Q6: ST0 and ST100 start the same jobs at the same times, and the orders AHB and ABH, HBA and BHA give the same lists
/// by their definition as sets. Wrong: ST50 in place of ST100, BAH and HAB in place of ABH and BHA.
///
/// Peers and fast forms know of an order only what is the same for both of a pair, so that running those would compare a
/// thing with itself; that they follow the definition is tested in `scheduler`.
pub(crate) fn switches_that_are_the_same(parameters: &Parameters, wrong: bool) -> Found {
    let second = if wrong { "st:50" } else { "st:100" };
    let schedules = Tally::over(0..parameters.instances, |seed| {
        let instance = Instance::random(parameters, seed, seed % 2 == 0);
        let mut tally = Tally::default();
        for &delay in &parameters.delays_s {
            let starts = |name: &str| {
                peers(&instance, named(name).strategy, &Network::delayed(delay)).map(|run| run.starts)
            };
            tally.runs += 2;
            if starts("st:0") != starts(second) {
                tally.violated(|| format!("st:0 and {second}, d = {delay} s, seed {seed}"));
            }
        }
        tally
    });
    let lists = Tally::over(0..parameters.instances, |seed| {
        let instance = Instance::random(parameters, seed, true);
        let mut tally = Tally::default();
        // What waits at some time: from each job on, those whose number has a bit of the seed.
        for from in 0..instance.jobs.len() {
            let waiting: Vec<JobSpec> = instance.jobs[from..]
                .iter()
                .map(|job| job.spec)
                .filter(|job| (job.id.0.wrapping_mul(seed | 1) >> 3) % 4 != 0)
                .collect();
            for &percent in &parameters.thresholds {
                let threshold = Threshold::new(percent).expect("a percentage");
                for (one, other) in if wrong { OTHER } else { SAME } {
                    let lists = |order| definition::lists(&instance.grid, threshold, order, &waiting);
                    tally.runs += 1;
                    if lists(one) != lists(other) {
                        tally.violated(|| format!("{} and {}, seed {seed}", one.name(), other.name()));
                    }
                }
            }
        }
        tally
    });
    let figures = vec![
        format!("st:0 and {second}: {} schedules differ in {} runs", schedules.violations, schedules.runs),
        format!(
            "lists: {} of {} comparisons differ, of {} sets of waiting jobs with {} thresholds and 2 pairs of orders",
            lists.violations,
            lists.runs,
            lists.runs / (2 * parameters.thresholds.len() as u64).max(1),
            parameters.thresholds.len(),
        ),
    ];
    schedules.and(lists).found("runs and comparisons", figures)
}

type Starts = Vec<(JobId, Time, SiteId)>;

fn starts(instance: &Instance, policy: &mut impl Policy) -> Starts {
    let mut starts = Vec::new();
    let mut sink = |event: Event| {
        if let EventKind::Started { job, .. } = event.kind {
            starts.push((job, event.at, event.site));
        }
    };
    reference::run(policy, &instance.jobs, &instance.grid, Pass::Batch, &mut sink)
        .expect("the workload fits");
    starts.sort_unstable();
    starts
}

/// Q7: the forms in which the algorithm is written start the same jobs at the same times. Wrong: the stateful form and the
/// peers have half the threshold.
pub(crate) fn forms_of_the_algorithm_are_the_same(parameters: &Parameters, wrong: bool) -> Found {
    let tally = Tally::over(0..parameters.instances, |seed| {
        let offline = seed % 2 == 0;
        let instance = Instance::random(parameters, seed, offline);
        let mut tally = Tally::default();
        for &percent in &parameters.thresholds {
            let of = |percent: u8| {
                let threshold = Threshold::new(percent).expect("a percentage");
                Steal { threshold, order: Order::Ahb, select: Selection::FirstFit }
            };
            let (steal, other) = (of(percent), of(if wrong { percent / 2 } else { percent }));
            let expected = starts(&instance, &mut StatelessSteal::new(&instance.grid, steal));
            if offline {
                let mut stateful = StatefulSteal::new(&instance.grid, other.threshold, other.select);
                tally.runs += 1;
                if starts(&instance, &mut stateful) != expected {
                    tally.violated(|| format!("stateful form, st:{percent}, seed {seed}"));
                }
            }
            let found = peers(&instance, Strategy::Steal(other), &Network::delayed(0.0));
            tally.runs += 2;
            if found.map(|run| run.starts) != Ok(expected) {
                tally.violated(|| format!("peers without delay, st:{percent}, seed {seed}"));
            }
        }
        tally
    });
    tally.found("runs", Vec::new())
}

#[cfg(test)]
mod tests {
    use scheduler::Grid;

    use super::*;
    use crate::{CLAIMS, Scale};

    /// How many of some sets of waiting jobs have other lists in the second order.
    fn sets_that_differ(sites: &[u32], one: Order, other: Order) -> usize {
        let grid = Grid::of_sizes(sites).unwrap();
        let threshold = Threshold::new(50).unwrap();
        (0..500)
            .filter(|&seed| {
                let instance = Instance::model(sites, 30, 0.0, seed);
                let waiting: Vec<JobSpec> = instance.jobs.iter().map(|job| job.spec).collect();
                let lists = |order| definition::lists(&grid, threshold, order, &waiting);
                lists(one) != lists(other)
            })
            .count()
    }

    /// Comparing orders says nothing on a grid where they are one.
    #[test]
    fn orders_that_q14_compares_are_several_on_its_grids() {
        for scale in [Scale::Quick, Scale::Full] {
            let claim = CLAIMS.iter().find(|claim| claim.name == "Q14").unwrap();
            let sites = claim.parameters(None).unwrap().at(scale).sites.clone();
            for (one, other) in OTHER.into_iter().chain([(Order::Ahb, Order::Hab)]) {
                assert!(
                    sets_that_differ(&sites, one, other) > 0,
                    "{sites:?}: {} {}",
                    one.name(),
                    other.name()
                );
            }
        }
        // Where each site is twice the one before it, what is big for a site has its home there, and H is empty.
        assert_eq!(sets_that_differ(&[4, 4, 8, 16, 32], Order::Ahb, Order::Hab), 0);
    }
}
