//! Runs whose jobs are commands: what is in their results, and what is refused.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::PROGRAM;

const JOBS: usize = 8;

/// Two sites, and more jobs at the small one than it runs at once. Job 5 fails.
const EXPERIMENT: &str = r#"
grid.sizes = [1, 4]
workload.trace = "jobs.swf"
strategy.name = "steal:loaded,select=easy"
run.clock = "scaled:20"
run.calibration_tolerance = 10000.0
[execution]
by = "process"
command = ["sh", "-c", "echo $1; sleep $1; exit $((STEALGRID_JOB == 5 ? 3 : 0))", "job", "{run_time}"]
"#;

fn experiment(folder: &Path) -> String {
    let job = |job: usize| format!("{job} {job} -1 8 1 -1 -1 1 20 -1 1 1 1 1 1 -1 -1 -1\n");
    std::fs::write(folder.join("jobs.swf"), (1..=JOBS).map(job).collect::<String>()).unwrap();
    let path = folder.join("experiment.toml");
    std::fs::write(&path, EXPERIMENT).unwrap();
    path.to_str().unwrap().to_string()
}

fn stealgrid(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), said)
}

#[test]
fn a_run_of_commands_has_their_times_and_exit_codes() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path());
    let out = folder.path().join("out");

    let (code, said) = stealgrid(&["run", &file, "--out", out.to_str().unwrap()]);

    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("jobs were commands"), "{said}");
    let jobs = std::fs::read_to_string(out.join("jobs.csv")).unwrap();
    let mut lines = jobs.lines();
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    let value = |row: &Vec<&str>, name: &str| {
        row[columns.iter().position(|column| *column == name).unwrap()].to_string()
    };
    assert_eq!(rows.len(), JOBS);
    for row in &rows {
        let failed = value(row, "job_id") == "5";
        let state = if failed { "COMPLETED_FAILED" } else { "COMPLETED_SUCCESSFULLY" };
        assert_eq!(value(row, "final_state"), state, "{row:?}");
        assert!(value(row, "metadata").ends_with(if failed {
            ";ended=exit;exit=3"
        } else {
            ";ended=exit;exit=0"
        }));
        // As long as it took: no less than the 0.4 s that it sleeps.
        assert!(value(row, "execution_time").parse::<f64>().unwrap() >= 8.0, "{row:?}");
        let site = if value(row, "exec_site") == "1" { "site1" } else { "site2" };
        let output = out.join(format!("nodes/{site}.jobs/{}.out", value(row, "job_id")));
        assert_eq!(std::fs::read_to_string(output).unwrap(), "0.4\n");
    }
    let sites = rows.iter().map(|row| value(row, "exec_site")).collect::<std::collections::BTreeSet<_>>();
    assert_eq!(sites.len(), 2, "nothing was stolen");
}

#[test]
fn commands_need_the_wall_clock_and_simulations_have_timers() {
    let folder = tempfile::tempdir().unwrap();
    let file = experiment(folder.path());
    let (code, said) = stealgrid(&["run", &file, "--clock", "virtual"]);
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("virtual time waits for nobody"), "{said}");

    let out = folder.path().join("simulated");
    let (code, said) = stealgrid(&["simulate", &file, "--out", out.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{said}");
    let jobs = std::fs::read_to_string(out.join("jobs.csv")).unwrap();
    assert_eq!(jobs.matches("COMPLETED_SUCCESSFULLY").count(), JOBS);
    assert!(!jobs.contains("ended="), "{jobs}");
}
