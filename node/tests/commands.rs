//! Jobs that are commands of this machine: what becomes of them, and that nothing of them outlives who wanted it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use node::NodeConfig;
use node::config::SiteEntry;
use node::executor::{By, Settings, Wall};
use operation::NodeProcess;
use operation::fleet::Fleet;
use operation::spawn::SpawnOrder;
use rustix::process::{Pid, Signal, kill_process};
use scheduler::event::ExitCause;
use scheduler::{Event, EventKind, JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

use crate::PROGRAM;

/// Ample for what takes milliseconds; reached only by a failing test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// What no job does to its end.
const LONG: &str = "1000";

fn settings(folder: &Path, command: &[&str]) -> Settings {
    let command = command.iter().map(|word| word.to_string()).collect();
    Settings { by: By::Process, command, folder: Some(folder.join("jobs")), ..Settings::default() }
}

fn config(grid: &[u32], execution: Settings) -> NodeConfig {
    let names = ["one", "two"].iter().zip(grid);
    let grid = names.map(|(name, &processors)| SiteEntry::new(*name, processors)).collect();
    let mut config = NodeConfig { execution, ..NodeConfig::new(SiteId(1), grid) };
    config.options.retry = Some(Span::from_secs(5));
    config
}

pub(crate) fn job(id: u64) -> TimedJob {
    let spec = JobSpec {
        id: JobId(id),
        submit: Time::from_secs(1),
        processors: 2,
        requested: Span::from_secs(60),
        labels: Labels { user: 7, ..Labels::UNKNOWN },
        origin: SiteId(1),
        payload: 0,
    };
    // Nothing of what follows takes so long: nobody waits for a timer.
    TimedJob { spec, run_time: Span::from_secs(500) }
}

fn order(folder: &Path) -> SpawnOrder {
    SpawnOrder { program: PROGRAM.into(), arguments: Vec::new(), folder: folder.to_path_buf() }
}

pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A fleet whose clock runs at ten times the wall clock, with these jobs.
fn begun(folder: &Path, config: &NodeConfig, jobs: u64) -> Fleet {
    let mut fleet = Fleet::spawn(&order(folder), config).unwrap();
    fleet.wait_ready(PATIENCE).unwrap();
    let jobs: Vec<TimedJob> = (1..=jobs).map(job).collect();
    fleet.feed(&jobs, |job| job.spec.origin).unwrap();
    fleet.start(10.0, Time::ZERO, Duration::from_millis(100)).unwrap();
    fleet
}

/// Runs so many jobs to their ends.
fn run(folder: &Path, config: &NodeConfig, jobs: u64) -> Vec<Event> {
    let mut fleet = begun(folder, config, jobs);
    let mut events = Vec::new();
    until("the jobs do not end", || {
        let is_finished = fleet.is_finished(jobs).unwrap();
        fleet.take_events(&mut |event| events.push(event)).unwrap();
        is_finished.then_some(())
    });
    fleet.stop(PATIENCE).unwrap();
    events
}

/// How each job ended; each ended once, right after its command.
fn exits(events: &[Event]) -> BTreeMap<u64, (ExitCause, Option<i32>)> {
    let mut exits = BTreeMap::new();
    for (place, event) in events.iter().enumerate() {
        if let EventKind::Exited { job, how, code } = event.kind {
            assert_eq!(exits.insert(job.0, (how, code)), None, "job {job} ended twice");
            let follows = events[place..].iter().any(|other| {
                matches!(other.kind, EventKind::Completed { job: ended, .. } if ended == job)
                    && other.at == event.at
            });
            assert!(follows, "job {job} has ended and is not completed");
        }
    }
    exits
}

fn output(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join("jobs").join(name)).unwrap()
}

/// Whether a process runs; one that has ended and that nobody has waited for does not.
fn is_alive(id: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn jobs_are_processes_where_they_start_and_their_exit_codes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo \"$STEALGRID_SITE $STEALGRID_JOB $1\"; echo wrong >&2; sleep 0.3; exit $((STEALGRID_JOB == 3 ? 41 : 0))";
    let command = ["sh", "-c", script, "job", "{processors} {run_time} {requested} {user} $(id)"];
    let events = run(folder.path(), &config(&[2, 8], settings(folder.path(), &command)), 6);

    let exits = exits(&events);
    assert_eq!(exits.len(), 6);
    for (job, exit) in exits {
        assert_eq!(exit, (ExitCause::Exit, Some(if job == 3 { 41 } else { 0 })), "job {job}");
    }
    let mut sites = BTreeMap::new();
    for event in &events {
        if let EventKind::Started { job, .. } = event.kind {
            *sites.entry(event.site).or_insert(0) += 1;
            let name = if event.site == SiteId(1) { "one" } else { "two" };
            // By the wall clock, ten times slower. No shell has read the word.
            assert_eq!(
                output(folder.path(), &format!("{job}.out")),
                format!("{name} {job} 2 50 6 7 $(id)\n")
            );
            assert_eq!(output(folder.path(), &format!("{job}.err")), "wrong\n");
        }
    }
    assert_eq!(sites.len(), 2, "nothing was stolen");
}

/// How jobs are run, and how one ends then.
type Case<'a> = (&'a dyn Fn(&Path) -> Settings, ExitCause, Option<i32>);

#[test]
fn limits_hold_and_a_command_that_cannot_run_is_named() {
    let nothing = |folder: &Path| settings(folder, &["/nowhere/program"]);
    let long = |folder: &Path| Settings {
        wall: Wall::Millis(200),
        // Who does not listen is killed.
        ..settings(folder, &["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.1; done"])
    };
    let large = |folder: &Path| Settings {
        memory_bytes: Some(256 << 20),
        ..settings(folder, &["dd", "if=/dev/zero", "of=/dev/null", "bs=512M", "count=1"])
    };
    let low = |folder: &Path| Settings { nice: 7, ..settings(folder, &["nice"]) };
    let loud = |folder: &Path| Settings {
        output_bytes: 1000,
        ..settings(folder, &["sh", "-c", "head -c 3000000 /dev/zero; kill -s USR1 $$"])
    };
    let cases: [Case<'_>; 5] = [
        (&nothing, ExitCause::NotStarted, Some(127)),
        (&long, ExitCause::WallTime, None),
        (&large, ExitCause::Exit, Some(1)),
        (&low, ExitCause::Exit, Some(0)),
        (&loud, ExitCause::Signal, Some(128 + 10)),
    ];
    for (place, (settings, how, code)) in cases.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let events = run(folder.path(), &config(&[2], settings(folder.path())), 1);
        assert_eq!(exits(&events), BTreeMap::from([(1, (how, code))]), "case {place}");
        let said = if place == 0 { String::new() } else { output(folder.path(), "1.out") };
        match place {
            0 => {
                let log = std::fs::read_to_string(folder.path().join("one.log")).unwrap();
                assert!(log.contains("/nowhere/program"), "{log}");
            }
            1 => assert_eq!(said, "up\n"),
            2 => assert!(
                output(folder.path(), "1.err").contains("memory"),
                "{}",
                output(folder.path(), "1.err")
            ),
            3 => assert_eq!(said, "7\n"),
            _ => assert!(said.len() < 1100 && said.contains("1000 bytes are kept"), "{} bytes", said.len()),
        }
    }
}

/// A job that starts others, one of which is in a session of its own: their numbers, once all of them run.
const FAMILY: &str = "echo \"job $$\"; sleep LONG & echo \"child $!\"; \
                      setsid sh -c 'echo \"leader $$\"; sleep LONG & echo \"stranger $!\"; wait' & wait";

fn family(folder: &Path) -> BTreeMap<String, String> {
    let found = until("the job does not start", || {
        let said = std::fs::read_to_string(folder.join("jobs/1.out")).ok()?;
        let of_line = |line: &str| line.split_once(' ').map(|(who, id)| (who.to_string(), id.to_string()));
        let numbers: BTreeMap<String, String> = said.lines().filter_map(of_line).collect();
        (numbers.len() == 4 && said.ends_with('\n')).then_some(numbers)
    });
    assert!(found.values().all(|id| is_alive(id)), "{found:?}");
    found
}

fn assert_over(family: &BTreeMap<String, String>) {
    until("a process of a job outlives who wanted it", || {
        (!family.values().any(|id| is_alive(id))).then_some(())
    });
}

/// A node with one job of [`FAMILY`].
fn node(folder: &Path) -> NodeProcess {
    let script = FAMILY.replace("LONG", LONG);
    let mut config = config(&[2], settings(folder, &["sh", "-c", &script]));
    let token = folder.join("token");
    node::control::Token::random().write_new(&token).unwrap();
    config.control_token = Some(token);
    let node = NodeProcess::spawn(&order(folder), &config).unwrap();
    node.client().jobs(&[job(1)]).unwrap();
    node.client()
        .start(&operation::fleet::start_order(10.0, Time::ZERO, Duration::from_millis(100)))
        .unwrap();
    node
}

#[test]
fn a_job_ends_with_all_that_it_started_when_its_node_does() {
    for signal in [Signal::KILL, Signal::TERM] {
        let folder = tempfile::tempdir().unwrap();
        let node = node(folder.path());
        let family = family(folder.path());
        let id = i32::try_from(node.id().unwrap()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(id, signal).unwrap();
        assert_over(&family);
    }
}

/// The holder of a job is the process that the job's own is a child of.
#[cfg(target_os = "linux")]
#[test]
fn a_job_whose_holder_is_killed_is_killed_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(folder.path());
    let family = family(folder.path());
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", family["job"])).unwrap();
    let parent: i32 = stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap();
    kill_process(Pid::from_raw(parent).unwrap(), Signal::KILL).unwrap();
    // Those in a session of their own have lost whoever would find them; the group is known.
    until("the group outlives its holder", || {
        (!is_alive(&family["job"]) && !is_alive(&family["child"])).then_some(())
    });
    let events = until("the job does not end", || {
        let events = node.client().events(0, 100).unwrap();
        events.iter().any(|event| matches!(event.kind, EventKind::Completed { .. })).then_some(events)
    });
    assert_eq!(exits(&events), BTreeMap::from([(1, (ExitCause::Unknown, None))]));
    for id in family.values().filter(|id| is_alive(id)) {
        kill_process(Pid::from_raw(id.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
}

#[test]
fn a_job_whose_node_is_killed_runs_again_and_never_beside_itself() {
    let folder = tempfile::tempdir().unwrap();
    // Says when it begins and ends; the first execution would take for ever.
    let script = "echo begin; mkdir \"$0/alone\" || exit 9; test -e \"$0/again\" || {{ mkdir \"$0/again\"; sleep 1000; }}; sleep 0.2; echo end";
    let here = folder.path().to_str().unwrap();
    let mut config = config(&[2], settings(folder.path(), &["sh", "-c", script, here]));
    config.data_dir = Some(folder.path().join("data"));
    let token = folder.path().join("token");
    node::control::Token::random().write_new(&token).unwrap();
    config.control_token = Some(token);
    let mut node = NodeProcess::spawn(&order(folder.path()), &config).unwrap();
    node.client().jobs(&[job(1)]).unwrap();
    node.client()
        .start(&operation::fleet::start_order(10.0, Time::ZERO, Duration::from_millis(100)))
        .unwrap();
    until("the job does not start", || folder.path().join("again").exists().then_some(()));
    let id = i32::try_from(node.id().unwrap()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(id, Signal::KILL).unwrap();
    until("the node does not end", || node.ended().unwrap());
    // Whoever finds the folder is not alone.
    std::fs::remove_dir(folder.path().join("alone")).unwrap();

    let node = NodeProcess::spawn_again(&order(folder.path()), &config).unwrap();
    let events = until("the job does not end", || {
        let events = node.client().events(0, 100).unwrap();
        events.iter().any(|event| matches!(event.kind, EventKind::Completed { .. })).then_some(events)
    });
    assert_eq!(exits(&events), BTreeMap::from([(1, (ExitCause::Exit, Some(0)))]));
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::Interrupted { killed: false, .. })));
    // What the killed execution said is kept.
    assert_eq!(output(folder.path(), "1.out"), "begin\n");
    assert_eq!(output(folder.path(), "1.again2.out"), "begin\nend\n");
}
