//! Jobs that are submitted to Slurm: none lost and none twice, whatever the cluster, its operator and the node do. A stand-in for the commands
//! of Slurm runs the jobs; `.ci/slurm` has the real one.

mod once;
mod real;
mod stand;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use node::NodeConfig;
use operation::NodeProcess;
use operation::fleet::Fleet;
use rustix::process::{Pid, Signal, kill_process};
use scheduler::event::{BatchState, ExitCause};
use scheduler::{Event, EventKind, SiteId, Time, TimedJob};

use self::stand::Stand;
use crate::commands::{PATIENCE, job, until};

/// An answer; none where a node asks Slurm first, for longer than it lets a request wait.
fn asked<T, E: std::fmt::Debug>(answer: Result<T, E>) -> Option<T> {
    match answer {
        Ok(answer) => Some(answer),
        Err(error) if format!("{error:?}").contains("the event loop does not answer") => None,
        Err(error) => panic!("{error:?}"),
    }
}

fn kill(node: &NodeProcess, signal: Signal) {
    let id = i32::try_from(node.id().unwrap()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(id, signal).unwrap();
}

/// The events of a node once so many jobs have ended.
fn events(node: &NodeProcess, ended: usize) -> Vec<Event> {
    until("the jobs do not end", || {
        let events = asked(node.client().events(0, 1000))?;
        let completed =
            events.iter().filter(|event| matches!(event.kind, EventKind::Completed { .. })).count();
        (completed >= ended).then_some(events)
    })
}

fn exits(events: &[Event]) -> BTreeMap<u64, (ExitCause, Option<i32>)> {
    let mut exits = BTreeMap::new();
    for event in events {
        if let EventKind::Exited { job, how, code } = event.kind {
            assert_eq!(exits.insert(job.0, (how, code)), None, "job {job} ended twice");
        }
    }
    exits
}

const WELL: (ExitCause, Option<i32>) = (ExitCause::Exit, Some(0));

#[test]
fn each_job_is_submitted_to_the_cluster_of_the_site_that_starts_it() {
    let stand = Stand::new();
    let config = stand.config(&[2, 8], "0.3");
    let mut fleet = Fleet::spawn_each(&stand.order(), &stand.each(&config)).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let jobs: Vec<TimedJob> = (1..=6).map(job).collect();
    fleet.feed(&jobs, |job| job.spec.origin).unwrap();
    fleet.start(10.0, Time::ZERO, Duration::from_millis(100)).unwrap();
    let mut events = Vec::new();
    until("the jobs do not end", || {
        let is_finished = asked(fleet.is_finished(6))?;
        asked(fleet.take_events(&mut |event| events.push(event)))?;
        is_finished.then_some(())
    });
    fleet.stop(PATIENCE).unwrap();

    assert_eq!(stand.executed(), [1, 2, 3, 4, 5, 6]);
    for (job, exit) in exits(&events) {
        assert_eq!(exit, if job == 3 { (ExitCause::Exit, Some(41)) } else { WELL }, "job {job}");
    }
    let started = |site| {
        let here =
            |event: &&Event| event.site == SiteId(site) && matches!(event.kind, EventKind::Started { .. });
        events.iter().filter(here).count()
    };
    let submitted = |site: &str| {
        let conf = stand.path(&format!("{site}.conf"));
        let confs =
            std::fs::read_dir(stand.path("jobs")).unwrap().map(|job| job.unwrap().path().join("conf"));
        confs.filter(|path| std::fs::read_to_string(path).unwrap().trim() == conf.to_str().unwrap()).count()
    };
    assert_eq!([started(1), started(2)], [submitted("one"), submitted("two")]);
    assert!(started(2) > 0, "nothing was stolen");
}

#[test]
fn a_cluster_that_is_away_is_waited_for_and_an_answer_that_does_not_come_submits_nothing_twice() {
    let stand = Stand::new();
    stand.say("away");
    let (_, node) = stand.node(2, "0.1");
    until("nobody says that the cluster is away", || stand.log().contains("does not answer").then_some(()));
    assert!(stand.executed().is_empty());
    stand.say("mute");
    std::fs::remove_file(stand.path("away")).unwrap();

    let events = events(&node, 2);

    assert_eq!(exits(&events), BTreeMap::from([(1, WELL), (2, WELL)]));
    assert!(!stand.path("mute").exists(), "all answers came");
    assert_eq!(stand.executed(), [1, 2]);
    assert!(stand.log().contains("answers again"), "{}", stand.log());
}

#[test]
fn what_slurm_refuses_and_what_its_operators_do_has_its_event_or_its_line() {
    let stand = Stand::new();
    let (_, node) = stand.node(3, "1000");
    until("the jobs do not begin", || (stand.executed().len() == 3).then_some(()));
    let ids: Vec<PathBuf> = (1..=3).map(|id| stand.path(&format!("jobs/{id}"))).collect();
    let number = |path: &Path| {
        let name = std::fs::read_to_string(path.join("name")).unwrap();
        let job: u64 = name.split('-').nth(2).unwrap().split('.').next().unwrap().parse().unwrap();
        job
    };
    let jobs: Vec<u64> = ids.iter().map(|path| number(path)).collect();
    std::fs::write(ids[0].join("state"), "NODE_FAIL").unwrap();
    std::fs::write(ids[1].join("state"), "CANCELLED").unwrap();
    std::fs::write(ids[2].join("reason"), "JobHeldAdmin").unwrap();
    std::fs::write(ids[2].join("state"), "PENDING").unwrap();
    until("nobody says that a job is held", || stand.log().contains("is held in Slurm").then_some(()));
    std::fs::write(ids[2].join("state"), "TIMEOUT").unwrap();

    let exits = exits(&events(&node, 3));

    let expected = [(ExitCause::NodeFailed, None), (ExitCause::Cancelled, None), (ExitCause::WallTime, None)];
    assert_eq!(exits, jobs.iter().copied().zip(expected).collect());

    stand.say("refuse");
    node.client().jobs(&[job(9)]).unwrap();
    let events = events(&node, 4);
    assert_eq!(self::exits(&events)[&9], (ExitCause::NotStarted, None));
    assert!(stand.log().contains("violates accounting/QOS policy"), "{}", stand.log());
    for id in 1..=3 {
        // The stand-in was only told that they are gone.
        let pid: i32 =
            std::fs::read_to_string(stand.path(&format!("jobs/{id}/pid"))).unwrap().trim().parse().unwrap();
        let _ = rustix::process::kill_process_group(Pid::from_raw(pid).unwrap(), Signal::KILL);
    }
}

#[test]
fn a_node_that_is_killed_finds_its_jobs_again_and_submits_none_twice() {
    let stand = Stand::new();
    let (config, mut node) = stand.node(2, "2");
    until("the jobs do not begin", || (stand.executed().len() == 2).then_some(()));
    kill(&node, Signal::KILL);
    until("the node does not end", || node.ended().unwrap());

    let node = NodeProcess::spawn_again(&stand.order(), &config).unwrap();
    let events = events(&node, 2);

    assert_eq!(stand.executed(), [1, 2]);
    assert_eq!(exits(&events), BTreeMap::from([(1, WELL), (2, WELL)]));
    assert!(stand.log().contains("found again"), "{}", stand.log());
}

#[test]
fn a_node_that_is_killed_before_it_hears_the_answer_finds_the_job() {
    let stand = Stand::new();
    stand.say("slow");
    let (config, mut node) = stand.node(1, "1");
    until("the job does not begin", || (stand.executed().len() == 1).then_some(()));
    kill(&node, Signal::KILL);
    until("the node does not end", || node.ended().unwrap());
    std::fs::remove_file(stand.path("slow")).unwrap();
    // It ends before anybody looks for it.
    until("the job does not end", || std::fs::read_dir(stand.path("files1/done")).unwrap().next().map(drop));

    let node = NodeProcess::spawn_again(&stand.order(), &config).unwrap();
    let events = events(&node, 1);

    assert_eq!(stand.executed(), [1]);
    assert_eq!(exits(&events), BTreeMap::from([(1, WELL)]));
}

#[test]
fn a_node_that_is_told_to_end_cancels_its_jobs() {
    let stand = Stand::new();
    let (_, mut node) = stand.node(1, "1000");
    until("the job does not begin", || (stand.executed().len() == 1).then_some(()));
    kill(&node, Signal::TERM);
    until("the node does not end", || node.ended().unwrap());
    assert_eq!(std::fs::read_to_string(stand.path("jobs/1/state")).unwrap(), "CANCELLED\n");
}

#[test]
fn a_node_without_the_commands_of_slurm_says_so_and_does_not_start() {
    let stand = Stand::new();
    std::fs::remove_file(stand.path("bin/squeue")).unwrap();
    stand.program(
        "bin/squeue",
        "#!/bin/sh\necho 'squeue: fatal: Could not establish a configuration source' >&2; exit 1\n",
    );
    let error = NodeProcess::spawn(&stand.order(), &stand.config(&[2], "1")).unwrap_err().to_string();
    assert!(error.contains("Could not establish a configuration source"), "{error}");
}

/// What a node has told of a job, in order, without its name and numbers.
fn told(events: &[Event], job: u64) -> Vec<&'static str> {
    let told = |event: &Event| match event.kind {
        EventKind::Started { job: of, .. } if of.0 == job => Some("started"),
        EventKind::Completed { job: of, .. } if of.0 == job => Some("completed"),
        EventKind::Batch { job: of, state } if of.0 == job => Some(match state {
            BatchState::Held => "held",
            BatchState::Released => "released",
            BatchState::Requeued => "requeued",
            BatchState::Suspended => "suspended",
            BatchState::Resumed => "resumed",
        }),
        _ => None,
    };
    events.iter().filter_map(told).collect()
}

#[test]
fn where_the_queue_is_slurms_a_job_starts_when_slurm_starts_it_and_what_operators_do_has_its_event() {
    let stand = Stand::new();
    stand.say("one.conf.full");
    let (_, node) = stand.node_of(3, stand.queue(&[6], "0.3"));
    until("the jobs do not wait in Slurm", || (stand.ids("one").len() == 3).then_some(()));
    // There is room for all of them, as the site has it, and nobody starts them.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!((stand.executed(), node.client().status().unwrap().outstanding.waiting), (vec![], 3));

    let ids = stand.ids("one");
    let write = |id: u64, name: &str, text: &str| {
        std::fs::write(stand.path(&format!("jobs/{id}/{name}")), text).unwrap();
    };
    write(ids[&1], "reason", "JobHeldAdmin");
    let says = |job: u64, what: &str| {
        until(what, || {
            let events = asked(node.client().events(0, 1000))?;
            (told(&events, job).last() == Some(&what)).then_some(())
        });
    };
    says(1, "held");
    std::fs::remove_file(stand.path(&format!("jobs/{}/reason", ids[&1]))).unwrap();
    says(1, "released");
    // The last comes first.
    stand.begin(ids[&3]);
    says(3, "completed");
    write(ids[&2], "state", "CANCELLED");
    says(2, "completed");
    stand.begin(ids[&1]);
    says(1, "completed");

    let events = events(&node, 3);
    assert_eq!(told(&events, 1), ["held", "released", "started", "completed"]);
    assert_eq!(told(&events, 2), ["started", "completed"]);
    assert_eq!(stand.executed(), [1, 3]);
    let expected = [(1, WELL), (2, (ExitCause::Cancelled, None)), (3, (ExitCause::Exit, Some(41)))];
    assert_eq!(exits(&events), BTreeMap::from(expected));

    stand.say("refuse");
    node.client().jobs(&[job(9)]).unwrap();
    let events = self::events(&node, 4);
    assert_eq!(exits(&events)[&9], (ExitCause::NotStarted, None));
}

#[test]
fn a_job_that_ran_and_waits_again_and_one_that_stands_have_their_events() {
    let stand = Stand::new();
    let (_, node) = stand.node_of(1, stand.queue(&[2], "1000"));
    until("the job does not begin", || (stand.executed() == [1]).then_some(()));
    let state = stand.path("jobs/1/state");
    for (says, what) in
        [("RUNNING", "started"), ("SUSPENDED", "suspended"), ("RUNNING", "resumed"), ("PENDING", "requeued")]
    {
        std::fs::write(&state, says).unwrap();
        until(what, || {
            let events = asked(node.client().events(0, 1000))?;
            (told(&events, 1).last() == Some(&what)).then_some(())
        });
    }
    std::fs::write(&state, "NODE_FAIL").unwrap();
    assert_eq!(exits(&events(&node, 1)), BTreeMap::from([(1, (ExitCause::NodeFailed, None))]));
    let pid: i32 = stand.state(1, "pid").parse().unwrap();
    let _ = rustix::process::kill_process_group(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

/// Two sites, with jobs that wait at the first in a cluster that is full.
fn full(stand: &Stand, config: &NodeConfig, jobs: u64) -> Fleet {
    stand.say("one.conf.full");
    stand.fills("two");
    let mut fleet = Fleet::spawn_each(&stand.order(), &stand.each(config)).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let jobs: Vec<TimedJob> = (1..=jobs).map(job).collect();
    fleet.feed(&jobs, |job| job.spec.origin).unwrap();
    fleet.start(10.0, Time::ZERO, Duration::from_millis(100)).unwrap();
    until("the jobs do not wait in Slurm", || (stand.ids("one").len() == jobs.len()).then_some(()));
    fleet
}

/// The events of a fleet once all jobs have ended; this is done meanwhile, again and again.
fn finished(fleet: &mut Fleet, jobs: u64, mut meanwhile: impl FnMut(&mut Fleet)) -> Vec<Event> {
    let mut events = Vec::new();
    until("the jobs do not end", || {
        meanwhile(fleet);
        let Ok(is_finished) = fleet.is_finished(jobs) else { return None };
        asked(fleet.take_events(&mut |event| events.push(event)))?;
        is_finished.then_some(())
    });
    events
}

/// Slurm starts a job that waits in the full cluster, if nothing runs: nobody may be there to take it.
fn starts_one(stand: &Stand) {
    if stand.executed().len() == stand.done() {
        let waits = |id: &&u64| ["state", "pid"].iter().all(|name| stand.state(**id, name).is_empty());
        stand.ids("one").values().find(waits).iter().for_each(|&&id| stand.begin(id));
    }
}

#[test]
fn what_a_thief_gets_is_cancelled_while_it_waits() {
    for strategy in ["steal:loaded,select=easy", "st:50"] {
        let stand = Stand::new();
        let mut config = stand.queue(&[2, 8], "0.3");
        config.strategy = strategy.to_string();
        let mut fleet = full(&stand, &config, 6);
        stand.empties("two");
        finished(&mut fleet, 6, |_| {
            if stand.ids("two").len() >= 2 {
                starts_one(&stand);
            }
        });
        let is_cancelled = |id| stand.state(id, "state") == "CANCELLED";
        let stolen = stand.ids("two");
        assert!(!stolen.is_empty(), "{strategy}: nothing was stolen");
        until("what was stolen is not cancelled", || {
            // Slurm may start it just before: then it ends by itself, and did not execute.
            let is_right = |(job, &id): (&u64, &u64)| match stolen.contains_key(job) {
                true => is_cancelled(id) || stand.has_ended(id),
                false => !is_cancelled(id),
            };
            stand.ids("one").iter().all(is_right).then_some(())
        });
        fleet.stop(PATIENCE).unwrap();
        assert_eq!(stand.executed(), [1, 2, 3, 4, 5, 6], "{strategy}");
    }
}

#[test]
fn what_began_before_it_could_leave_stays() {
    for strategy in ["steal:loaded,select=easy", "st:50"] {
        let stand = Stand::new();
        let mut config = stand.queue(&[2, 8], "0.3");
        config.strategy = strategy.to_string();
        let mut fleet = full(&stand, &config, 6);
        // All have just begun, and nobody has seen that yet.
        let names = |id: u64| stand.state(id, "name").splitn(3, '-').nth(2).unwrap().to_string();
        let claims: Vec<PathBuf> = stand
            .ids("one")
            .values()
            .map(|&id| {
                let claim = stand.path("files1/attempts").join(names(id));
                std::fs::write(&claim, format!("slurm {id} 0\n")).unwrap();
                claim
            })
            .collect();
        stand.empties("two");
        let mut events = Vec::new();
        until("nothing stays", || {
            asked(fleet.take_events(&mut |event| events.push(event)))?;
            let stays = |event: &Event| matches!(event.kind, EventKind::Returned { .. });
            events.iter().any(stays).then_some(())
        });
        claims.iter().for_each(|claim| std::fs::remove_file(claim).unwrap());
        finished(&mut fleet, 6, |_| starts_one(&stand));
        fleet.stop(PATIENCE).unwrap();
        assert_eq!(stand.executed(), [1, 2, 3, 4, 5, 6], "{strategy}");
        let granted = |event: &Event| matches!(event.kind, EventKind::Granted { .. });
        assert!(events.iter().any(granted), "{strategy}: nothing was to leave");
    }
}

#[test]
fn jobs_that_others_submit_leave_no_processors_for_what_could_be_stolen() {
    let stand = Stand::new();
    std::fs::write(
        stand.path("one.conf.foreign"),
        "90|RUNNING|None|3|4711|main|theirs\n91|PENDING|Priority|2|4711|main|theirs\n92|PENDING|JobHeldUser|8|4711|main|theirs\n",
    )
    .unwrap();
    let (_, node) = stand.node_of(0, stand.queue(&[8], "0.1"));
    let idle = || node.client().status().unwrap().idle;
    until("nobody sees what others have", || (idle() == 3).then_some(()));
    std::fs::remove_file(stand.path("one.conf.foreign")).unwrap();
    until("nobody sees that it has ended", || (idle() == 8).then_some(()));
}

/// Slurm starts a job on processors of another whose end the node has not seen.
#[test]
fn what_begins_before_an_end_is_heard_of_waits_for_it() {
    let stand = Stand::new();
    stand.say("one.conf.full");
    let (_, node) = stand.node_of(2, stand.queue(&[2], "0.5"));
    until("the jobs do not wait in Slurm", || (stand.ids("one").len() == 2).then_some(()));
    stand.ids("one").values().for_each(|&id| stand.begin(id));

    let events = events(&node, 2);

    assert_eq!(exits(&events), BTreeMap::from([(1, WELL), (2, WELL)]));
    let order: Vec<&EventKind> = events
        .iter()
        .map(|event| &event.kind)
        .filter(|kind| matches!(kind, EventKind::Started { .. } | EventKind::Completed { .. }))
        .collect();
    let is_start = |kind: &&EventKind| matches!(kind, EventKind::Started { .. });
    assert_eq!(order.iter().map(is_start).collect::<Vec<_>>(), [true, false, true, false]);
}

#[test]
fn a_killed_node_finds_its_queue_again_with_what_began_and_ended_meanwhile() {
    let stand = Stand::new();
    stand.say("one.conf.full");
    let (config, mut node) = stand.node_of(3, stand.queue(&[6], "0.1"));
    until("the jobs do not wait in Slurm", || (stand.ids("one").len() == 3).then_some(()));
    kill(&node, Signal::KILL);
    until("the node does not end", || node.ended().unwrap());
    let ids = stand.ids("one");
    stand.begin(ids[&2]);
    until("the job does not end", || std::fs::read_dir(stand.path("files1/done")).unwrap().next().map(drop));

    let node = NodeProcess::spawn_again(&stand.order(), &config).unwrap();
    self::events(&node, 1);
    stand.begin(ids[&1]);
    stand.begin(ids[&3]);
    let events = events(&node, 3);

    assert_eq!((stand.executed(), stand.ids("one")), (vec![1, 2, 3], ids));
    assert_eq!(told(&events, 2), ["started", "completed"]);
}

#[test]
fn a_node_that_is_killed_before_a_granted_job_has_left_the_queue_hands_it_over_or_keeps_it() {
    for begins in [false, true] {
        let stand = Stand::new();
        let mut config = stand.queue(&[2, 8], "0.3");
        config.strategy = "steal:loaded,select=easy".to_string();
        let mut fleet = full(&stand, &config, 2);
        until("no answers come", || (stand.log().matches("submitted to Slurm").count() == 2).then_some(()));
        // Who talks to Slurm waits for it, and sees to nothing else.
        stand.say("slow");
        fleet.feed(&[job(3)], |job| job.spec.origin).unwrap();
        let ids =
            until("the last job is not submitted", || Some(stand.ids("one")).filter(|ids| ids.len() == 3));
        stand.empties("two");
        let mut events: Vec<Event> = Vec::new();
        until("nothing is granted", || {
            asked(fleet.take_events(&mut |event| events.push(event)))?;
            events.iter().any(|event| matches!(event.kind, EventKind::Granted { .. })).then_some(())
        });
        let granted = events.iter().find_map(|event| match event.kind {
            EventKind::Granted { job, .. } => Some(job.0),
            _ => None,
        });
        let id = ids[&granted.unwrap()];
        if begins {
            stand.begin(id);
            until("the job does not begin", || (!stand.executed().is_empty()).then_some(()));
        }
        let process = i32::try_from(fleet.process_ids().next().unwrap()).unwrap();
        kill_process(Pid::from_raw(process).unwrap(), Signal::KILL).unwrap();
        until("the node does not end", || {
            let is_gone = kill_process(Pid::from_raw(process).unwrap(), Signal::CONT).is_err();
            (is_gone || !fleet.restart_ended(true).unwrap().ended.is_empty()).then_some(())
        });
        stand.unsay("slow");
        finished(&mut fleet, 3, |fleet| {
            fleet.restart_ended(true).unwrap();
            // Slurm starts the others at last.
            if !stand.executed().is_empty() {
                ids.values().filter(|&&other| other != id).for_each(|&other| stand.begin(other));
            }
        });
        fleet.stop(PATIENCE).unwrap();

        assert_eq!(stand.executed(), [1, 2, 3]);
        assert_eq!(stand.ids("two").contains_key(&granted.unwrap()), !begins);
    }
}
