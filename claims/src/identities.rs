//! Claims that two things are the same, schedule for schedule.

use scheduler::ideal::{StatefulSteal, StatelessSteal};
use scheduler::{
    Event, EventKind, JobId, Order, Pass, Policy, Selection, SiteId, Steal, Strategy, Threshold, Time,
};
use simulator::reference;

use crate::runs::{Instance, Network, named, peers};
use crate::{Found, Parameters, Verdict};

/// Q6: strategies that differ in a switch without effect start the same jobs at the same times.
pub(crate) fn switches_that_are_the_same(parameters: &Parameters) -> Found {
    let (mut runs, mut differ, mut figures) = (0, 0, Vec::new());
    for pair in parameters.strategies.chunks_exact(2) {
        let mut of_pair = 0;
        for seed in 0..parameters.instances {
            let instance = Instance::random(parameters, seed, seed % 2 == 0);
            for &delay in &parameters.delays_s {
                let starts = |name: &str| {
                    peers(&instance, named(name).strategy, &Network::delayed(delay)).map(|run| run.starts)
                };
                runs += 2;
                of_pair += u64::from(starts(&pair[0]) != starts(&pair[1]));
            }
        }
        differ += of_pair;
        figures.push(format!("{} and {}: {of_pair} schedules differ", pair[0], pair[1]));
    }
    Found { verdict: Verdict::unless(differ), runs, figures }
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

/// Q7: the forms in which the algorithm is written start the same jobs at the same times.
pub(crate) fn forms_of_the_algorithm_are_the_same(parameters: &Parameters) -> Found {
    let (mut runs, mut stateful, mut protocol) = (0, 0, 0);
    for seed in 0..parameters.instances {
        let offline = seed % 2 == 0;
        let instance = Instance::random(parameters, seed, offline);
        for &percent in &parameters.thresholds {
            let threshold = Threshold::new(percent).expect("a percentage");
            let steal = Steal { threshold, order: Order::Ahb, select: Selection::FirstFit };
            let expected = starts(&instance, &mut StatelessSteal::new(&instance.grid, steal));
            if offline {
                let found =
                    starts(&instance, &mut StatefulSteal::new(&instance.grid, threshold, steal.select));
                stateful += u64::from(found != expected);
                runs += 1;
            }
            let found = peers(&instance, Strategy::Steal(steal), &Network::delayed(0.0));
            protocol += u64::from(found.map(|run| run.starts) != Ok(expected));
            runs += 2;
        }
    }
    let figures = vec![
        format!("stateful form: {stateful} schedules differ"),
        format!("peers without delay: {protocol} schedules differ"),
    ];
    Found { verdict: Verdict::unless(stateful + protocol), runs, figures }
}
