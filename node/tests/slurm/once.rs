//! A job runs once at most, and is not lost: whenever Slurm takes it, whatever it forgets or has again, and whatever it refuses.

use std::time::Duration;

use node::executor::By;
use operation::NodeProcess;
use rustix::process::Signal;
use scheduler::event::ExitCause;

use super::stand::Stand;
use super::{WELL, asked, events, exits, finished, full, kill, starts_one, told};
use crate::commands::{PATIENCE, job, until};

/// How long what must not happen has to happen: several looks at Slurm.
const WHILE: Duration = Duration::from_millis(1200);
/// The exit code of a script that may not run its command.
const REFUSED: &str = "94";

/// Until what `sbatch` had under way has arrived, was started, and is over.
fn arrives(stand: &Stand, job: u64, before: u64) -> u64 {
    std::fs::remove_file(stand.late().unwrap()).unwrap();
    let id = until("what is late does not arrive", || {
        let id = before + 1;
        (!stand.state(id, "name").is_empty()).then_some(id)
    });
    assert!(stand.state(id, "name").contains(&format!("-{job}.")));
    stand.begin(id);
    stand.is_over(id);
    id
}

#[test]
fn what_slurm_takes_after_a_node_that_was_killed_has_begun_again_runs_no_second_time() {
    for by in [By::Slurm, By::SlurmQueue] {
        let stand = Stand::new();
        stand.say("late");
        let mut config = stand.config(&[2], "0.2");
        config.execution.by = by;
        let (config, mut node) = stand.node_of(1, config);
        until("nothing is submitted", || stand.late());
        kill(&node, Signal::KILL);
        until("the node does not end", || node.ended().unwrap());

        let node = NodeProcess::spawn_again(&stand.order(), &config).unwrap();
        assert_eq!(exits(&events(&node, 1)), [(1, WELL)].into());
        arrives(&stand, 1, 1);

        assert_eq!(stand.executed(), [1], "{by:?}");
    }
}

#[test]
fn what_arrives_after_slurm_did_not_answer_runs_no_second_time() {
    for by in [By::Slurm, By::SlurmQueue] {
        let stand = Stand::new();
        stand.say("lost");
        let mut config = stand.config(&[2], "0.2");
        config.execution.by = by;
        let (_, node) = stand.node_of(1, config);
        assert_eq!(exits(&events(&node, 1)), [(1, WELL)].into());
        arrives(&stand, 1, 1);

        assert_eq!(stand.executed(), [1], "{by:?}");
        assert!(stand.log().contains("is submitted again"), "{}", stand.log());
    }
}

#[test]
fn what_arrives_late_and_waits_is_cancelled_until_it_is_gone() {
    let stand = Stand::new();
    stand.say("lost");
    let (_, node) = stand.node(1, "0.2");
    events(&node, 1);
    stand.say("one.conf.full");
    stand.say("stubborn");
    std::fs::remove_file(stand.late().unwrap()).unwrap();
    // Whoever asks now and then only sees it with the next job.
    node.client().jobs(&[job(2)]).unwrap();
    until("what is late does not arrive", || {
        (stand.state(2, "name").len() > 2 && stand.state(3, "name").len() > 2).then_some(())
    });
    std::thread::sleep(WHILE);
    stand.unsay("stubborn");
    let late = [2, 3].into_iter().find(|&id| stand.state(id, "name").contains("-1.")).unwrap();
    until("it is not cancelled", || (stand.state(late, "state") == "CANCELLED").then_some(()));
    assert_eq!(stand.state(5 - late, "state"), "");
}

/// Both clusters are those of sites whose queue is Slurm's.
#[test]
fn what_arrives_late_does_not_run_where_its_job_is_no_longer() {
    let stand = Stand::new();
    stand.say("lost");
    let mut config = stand.queue(&[2, 8], "0.3");
    config.strategy = "steal:loaded,select=easy".to_string();
    let mut fleet = full(&stand, &config, 4);
    // Of a job that may have been submitted nobody knew whether it was.
    let late = until("no answer is lost", || stand.late());
    stand.empties("two");
    finished(&mut fleet, 4, |_| {
        if stand.ids("two").len() >= 2 {
            starts_one(&stand);
        }
    });
    let before: Vec<String> =
        (1..).map(|id| stand.state(id, "name")).take_while(|name| !name.is_empty()).collect();
    std::fs::remove_file(late).unwrap();
    let id = before.len() as u64 + 1;
    until("what is late does not arrive", || (!stand.state(id, "name").is_empty()).then_some(()));
    stand.begin(id);
    stand.is_over(id);

    assert_eq!(stand.executed(), [1, 2, 3, 4]);
    fleet.stop(PATIENCE).unwrap();
}

#[test]
fn a_job_that_ended_unheard_of_while_the_node_was_dead_is_unknown_and_runs_no_second_time() {
    for by in [By::Slurm, By::SlurmQueue] {
        let stand = Stand::new();
        let mut config = stand.config(&[2], "1000");
        config.execution.by = by;
        let (config, mut node) = stand.node_of(1, config);
        until("the job does not begin", || (stand.executed() == [1]).then_some(()));
        kill(&node, Signal::KILL);
        until("the node does not end", || node.ended().unwrap());
        let pid: i32 = stand.state(1, "pid").parse().unwrap();
        rustix::process::kill_process_group(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL)
            .unwrap();
        stand.say("jobs/1/forgotten");

        let node = NodeProcess::spawn_again(&stand.order(), &config).unwrap();
        let exits = exits(&events(&node, 1));

        assert_eq!((stand.executed(), exits), (vec![1], [(1, (ExitCause::Unknown, None))].into()), "{by:?}");
        assert!(stand.log().contains("is not run again"), "{}", stand.log());
    }
}

/// A node is killed between what it writes down of an end and what its journal has of it.
#[test]
fn an_end_that_the_journal_does_not_have_is_told_again_and_what_the_site_wanted_gone_begins_again() {
    for (said, executed, exit) in
        [("cancelled \n", vec![], (ExitCause::Cancelled, None)), ("wanted\n", vec![1], WELL)]
    {
        let stand = Stand::new();
        stand.say("one.conf.full");
        let (config, mut node) = stand.node_of(1, stand.queue(&[2], "0.2"));
        until("the job does not wait in Slurm", || (stand.ids("one").len() == 1).then_some(()));
        kill(&node, Signal::KILL);
        until("the node does not end", || node.ended().unwrap());
        let name = stand.state(1, "name").splitn(3, '-').nth(2).unwrap().to_string();
        std::fs::write(stand.path(&format!("files1/attempts/{name}.stop")), said).unwrap();
        stand.unsay("one.conf.full");

        let node = NodeProcess::spawn_again(&stand.order(), &config).unwrap();
        assert_eq!(exits(&events(&node, 1)), [(1, exit)].into());
        // It waits there all the same.
        until("it is not cancelled", || (stand.state(1, "state") == "CANCELLED").then_some(()));
        assert_eq!(stand.executed(), executed);
    }
}

#[test]
fn a_job_that_slurm_forgot_before_it_began_is_submitted_again() {
    for killed in [false, true] {
        let stand = Stand::new();
        stand.say("one.conf.full");
        let (config, mut node) = stand.node_of(1, stand.queue(&[2], "0.2"));
        until("the job does not wait in Slurm", || (stand.ids("one").len() == 1).then_some(()));
        if killed {
            kill(&node, Signal::KILL);
            until("the node does not end", || node.ended().unwrap());
        }
        stand.unsay("one.conf.full");
        stand.say("jobs/1/forgotten");
        if killed {
            node = NodeProcess::spawn_again(&stand.order(), &config).unwrap();
        }
        assert_eq!(exits(&events(&node, 1)), [(1, WELL)].into());
        // It has it again.
        stand.unsay("jobs/1/forgotten");
        stand.begin(1);
        until("nobody sees it", || {
            (!stand.state(1, "pid").is_empty() || !stand.state(1, "state").is_empty()).then_some(())
        });
        std::thread::sleep(WHILE);
        assert_eq!(stand.executed(), [1], "killed: {killed}");
    }
}

#[test]
fn a_job_that_was_cancelled_does_not_run_when_slurm_has_it_again() {
    // By an operator, while it waits or runs.
    for runs in [false, true] {
        let stand = Stand::new();
        if !runs {
            stand.say("one.conf.full");
        }
        let (_, node) = stand.node_of(1, stand.queue(&[2], "1000"));
        until("the job is not in Slurm", || (stand.ids("one").len() == 1).then_some(()));
        if runs {
            until("the job does not begin", || (stand.executed() == [1]).then_some(()));
        }
        let cancel = std::process::Command::new(stand.path("bin/scancel")).arg("1").status().unwrap();
        assert!(cancel.success());
        assert_eq!(exits(&events(&node, 1)), [(1, (ExitCause::Cancelled, None))].into());
        let executed = stand.executed();
        // Another slurmctld begins with what the former had saved before.
        stand.waits_again(1, None);
        stand.begin(1);
        stand.is_over(1);
        assert_eq!(stand.executed(), executed, "ran before: {runs}");
    }
}

#[test]
fn a_job_that_was_handed_over_does_not_run_when_slurm_has_it_again() {
    let stand = Stand::new();
    let mut config = stand.queue(&[2, 8], "0.3");
    config.strategy = "steal:loaded,select=easy".to_string();
    let mut fleet = full(&stand, &config, 3);
    stand.empties("two");
    finished(&mut fleet, 3, |_| {
        if !stand.ids("two").is_empty() {
            starts_one(&stand);
        }
    });
    let stolen = stand.ids("two");
    for (_, id) in stand.ids("one").into_iter().filter(|(job, _)| stolen.contains_key(job)) {
        stand.waits_again(id, None);
        stand.begin(id);
        stand.is_over(id);
    }
    assert!(!stolen.is_empty(), "nothing was stolen");
    assert_eq!(stand.executed(), [1, 2, 3]);
    fleet.stop(PATIENCE).unwrap();
}

#[test]
fn what_has_ended_and_is_queued_again_does_not_run_again_and_is_cancelled() {
    let stand = Stand::new();
    // One that goes on, as the node asks seldom where nothing does.
    let (_, node) = stand.node_of(1, stand.queue(&[4], "0.1"));
    events(&node, 1);
    stand.say("one.conf.full");
    node.client().jobs(&[job(2)]).unwrap();
    until("the second does not wait", || (stand.ids("one").len() == 2).then_some(()));
    // RequeueExit of slurm.conf.
    stand.is_over(1);
    stand.waits_again(1, Some(1));
    stand.begin(1);
    stand.is_over(1);
    assert_eq!(stand.executed(), [1]);
    // RequeueExitHold.
    stand.waits_again(1, Some(2));
    std::fs::write(stand.path("jobs/1/reason"), "JobHeldUser").unwrap();
    until("it is not cancelled", || (stand.state(1, "state") == "CANCELLED").then_some(()));
}

#[test]
fn what_slurm_starts_once_more_is_the_same_execution_and_its_number_counts() {
    let stand = Stand::new();
    let (_, node) = stand.node_of(1, stand.queue(&[2], "1000"));
    until("the job does not begin", || (stand.executed() == [1]).then_some(()));
    let says = |what: &str| {
        until(what, || {
            let events = asked(node.client().events(0, 1000))?;
            (told(&events, 1).last() == Some(&what)).then_some(())
        });
    };
    says("started");
    let machine_fails = || {
        let pid: i32 = stand.state(1, "pid").parse().unwrap();
        rustix::process::kill_process_group(rustix::process::Pid::from_raw(pid).unwrap(), Signal::KILL)
            .unwrap();
        stand.is_over(1);
    };
    // Until it waits again Slurm says that it runs: of one that has ended the node believes it at the second look.
    let runs = || std::fs::write(stand.path("jobs/1/state"), "RUNNING").unwrap();
    runs();
    // Of what nobody saw run nobody can say that it waits again.
    stand.is_seen("one");
    machine_fails();
    // The same again, as a slurmctld has it that forgot the first time.
    stand.waits_again(1, None);
    says("requeued");
    stand.begin(1);
    runs();
    stand.is_over(1);
    assert_eq!(stand.executed(), [1]);
    stand.waits_again(1, Some(1));
    stand.begin(1);
    until("it does not begin again", || (stand.executed() == [1, 1]).then_some(()));
    runs();
    machine_fails();
    // Each time counts once.
    stand.waits_again(1, Some(1));
    stand.begin(1);
    runs();
    stand.is_over(1);
    assert_eq!(stand.executed(), [1, 1]);
    let cancel = std::process::Command::new(stand.path("bin/scancel")).arg("1").status().unwrap();
    assert!(cancel.success());
    assert_eq!(exits(&events(&node, 1)), [(1, (ExitCause::Cancelled, None))].into());
}

#[test]
fn a_refused_cancellation_is_repeated_until_the_job_is_gone() {
    let stand = Stand::new();
    let (_, mut node) = stand.node(1, "1000");
    until("the job does not begin", || (stand.executed() == [1]).then_some(()));
    stand.say("stubborn");
    kill(&node, Signal::TERM);
    std::thread::sleep(WHILE);
    stand.unsay("stubborn");
    until("the node does not end", || node.ended().unwrap());
    assert_eq!(stand.state(1, "state"), "CANCELLED");
}

#[test]
fn a_job_that_cannot_be_cancelled_blocks_no_other_and_runs_where_it_was_handed_to() {
    let stand = Stand::new();
    // Nor held.
    stand.program("bin/scontrol", "#!/bin/sh\nexit 0\n");
    let mut config = stand.queue(&[2, 8], "0.3");
    config.strategy = "steal:loaded,select=easy".to_string();
    let mut fleet = full(&stand, &config, 3);
    stand.ids("one").values().for_each(|id| stand.say(&format!("jobs/{id}/stubborn")));
    stand.empties("two");
    until("nothing is handed over", || (!stand.ids("two").is_empty()).then_some(()));
    fleet.feed(&[job(4)], |job| job.spec.origin).unwrap();
    until("nothing else is submitted", || stand.ids("one").contains_key(&4).then_some(()));
    finished(&mut fleet, 4, |_| starts_one(&stand));
    for &id in stand.ids("one").values() {
        stand.begin(id);
        stand.is_over(id);
    }
    assert_eq!(stand.executed(), [1, 2, 3, 4]);
    fleet.stop(PATIENCE).unwrap();
}

#[test]
fn a_second_node_in_the_same_folder_is_refused() {
    let stand = Stand::new();
    let _first = NodeProcess::spawn(&stand.order(), &stand.config(&[2], "1")).unwrap();
    let mut config = stand.config(&[2, 2], "1");
    config.site = scheduler::SiteId(2);
    let error = NodeProcess::spawn(&stand.order(), &config).unwrap_err().to_string();
    assert!(error.contains("another node"), "{error}");
}

#[test]
fn variables_of_who_starts_a_node_change_nothing_of_what_it_asks() {
    let stand = Stand::new();
    stand.wrap("export SQUEUE_USERS=nobody SCANCEL_NAME=none SBATCH_QOS=low SLURM_CLUSTERS=other");
    let (_, node) = stand.node(1, "0.1");
    assert_eq!(exits(&events(&node, 1)), [(1, WELL)].into());
}

#[test]
fn many_jobs_of_others_hide_none_of_ours() {
    let stand = Stand::new();
    // More than four megabytes.
    let line = format!("90|PENDING|Priority|1|4711|main|{}\n", "x".repeat(200));
    std::fs::write(stand.path("one.conf.foreign"), line.repeat(25_000)).unwrap();
    let (_, node) = stand.node_of(0, stand.queue(&[8], "0.1"));
    until("nobody counts them", || (node.client().status().unwrap().idle == 0).then_some(()));
    node.client().jobs(&[job(1)]).unwrap();
    assert_eq!(exits(&events(&node, 1)), [(1, WELL)].into());
    assert!(!stand.log().contains("does not answer"), "{}", stand.log());
}

#[test]
fn a_script_that_may_not_run_says_so_and_ends_with_a_code_of_its_own() {
    let stand = Stand::new();
    stand.say("lost");
    let (_, node) = stand.node(1, "0.2");
    events(&node, 1);
    // The node cancels it as soon as it sees it, maybe before the script has said a word.
    stand.say("stubborn");
    let id = arrives(&stand, 1, 1);
    let errors = std::fs::read_to_string(stand.state(id, "errors")).unwrap();
    assert!(errors.contains("does not run here"), "{errors}");
    let again = std::process::Command::new("sh")
        .args(["-c", ". \"$0/environment\"; export SLURM_JOB_ID=77; xargs -0 -a \"$0/words\" sh -c 'sh \"$@\"; echo $?' sh"])
        .arg(stand.path(&format!("jobs/{id}")))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&again.stdout).trim(), REFUSED);
}

/// What all of this is worth: a script that claims nothing.
#[cfg(feature = "mutant")]
#[test]
fn mutant_a_script_that_claims_nothing_runs_what_arrives_late_a_second_time() {
    let stand = Stand::new();
    stand.wrap("export STEALGRID_MUTANT=unclaimed");
    stand.say("lost");
    let (_, node) = stand.node(1, "0.2");
    assert_eq!(exits(&events(&node, 1)), [(1, WELL)].into());
    arrives(&stand, 1, 1);
    assert_eq!(stand.executed(), [1, 1]);
}
