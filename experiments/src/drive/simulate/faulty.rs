//! An experiment with `[[faults]]` in virtual time, on the driver that knows crashes, as `stealgrid swarm` uses it.

use outputs::Status;
use protocol::{Options, Terms};
use scheduler::{Event, Time};
use simulator::Checks;
use simulator::faults::{self, Check, Limits, Scenario, World};

use crate::experiment::Experiment;
use crate::experiment::faults::{Fault, What};
use crate::experiment::jobs::Jobs;
use crate::interrupt::Interrupt;

/// Runs the peers of all sites; how it ended, and what must not happen if it did.
pub(super) fn run(
    experiment: &Experiment,
    jobs: &Jobs,
    checks: Checks,
    interrupt: &Interrupt,
    sink: &mut dyn FnMut(&Event),
) -> (Status, Option<String>) {
    let scenario = scenario(experiment, jobs);
    let stop = || interrupt.is_set();
    let world = World::new(&scenario, Limits { over: Time::MAX, calls: u64::MAX }).stopping_if(&stop);
    let world = if checks == Checks::Full { world } else { world.without_agreement() };
    match world.run(&mut |event| sink(event)) {
        Ok(_) => (Status::Complete, None),
        Err(broken) if interrupt.is_set() => {
            (Status::Partial(format!("interrupted at {} s", broken.at)), None)
        }
        // Jobs that nobody who is left can execute.
        Err(broken) if broken.check == Check::Unfinished => (Status::Partial(broken.what), None),
        Err(broken) => (Status::Partial(broken.to_string()), Some(broken.to_string())),
    }
}

fn scenario(experiment: &Experiment, jobs: &Jobs) -> Scenario {
    let options = Options { journal: true, interrupted: experiment.run.interrupted, ..experiment.options };
    Scenario {
        terms: Terms { options, ..experiment.terms() },
        jobs: jobs.arriving(experiment).into_owned(),
        submit: experiment.submit,
        local_users: jobs.local_users.clone(),
        network: experiment.network.clone(),
        faults: experiment.faults.iter().map(fault).collect(),
        healed: None,
    }
}

fn fault(fault: &Fault) -> faults::Fault {
    let Fault { site, at, what, .. } = *fault;
    match what {
        // Writes take no time here, so none is cut off.
        What::Crash { down } => faults::Fault::Crash { site, at, down, written_percent: 100, torn: None },
        What::Pause { lasts } => faults::Fault::Pause { site, at, lasts },
        What::Leave => faults::Fault::Leave { site, at },
        What::Join => faults::Fault::Join { site, at },
    }
}
