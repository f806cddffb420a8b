//! What a shell meets: completions, man pages, one word per thing, and lines that fit a terminal.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::PROGRAM;

/// Letters that a line of output may have.
const COLUMNS: usize = 100;

#[test]
fn bash_accepts_the_completions_and_every_shell_has_some() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&["completions", shell]);
        assert!(output.status.success(), "{shell}");
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("no-ideal") && script.contains("explain"), "{shell}");
        if ["bash", "zsh", "fish"].contains(&shell) {
            for value in ["broker:mst", "easy-best-fit", "continental"] {
                let escaped = value.replace(':', "\\:");
                assert!(script.contains(value) || script.contains(&escaped), "{value} for {shell}");
            }
        }
        if shell == "bash" {
            let mut bash = Command::new("bash").arg("-n").stdin(Stdio::piped()).spawn().unwrap();
            bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            assert!(bash.wait().unwrap().success());
        }
    }
    assert_eq!(run(&["completions", "cmd"]).status.code(), Some(2));
}

#[test]
fn every_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("man");
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let commands: Vec<&str> = commands(&help).collect();
    assert!(commands.len() > 20 && commands.contains(&"man"), "{commands:?}");

    // A thousand million seconds after 1970, as packages of these sources would say.
    let made = Command::new(PROGRAM)
        .args(["man", "--out"])
        .arg(&out)
        .env("SOURCE_DATE_EPOCH", "1000000000")
        .status();
    assert!(made.unwrap().success());

    for name in
        commands.iter().map(|command| format!("stealgrid-{command}")).chain(["stealgrid-trace-info".into()])
    {
        let page =
            std::fs::read_to_string(out.join(format!("{name}.1"))).unwrap_or_else(|_| panic!("{name}"));
        for part in [".TH", ".SH NAME", ".SH SYNOPSIS"] {
            assert!(page.contains(part), "{part} in {name}");
        }
    }
    let title = |name: &str| {
        let page = std::fs::read_to_string(out.join(format!("{name}.1"))).unwrap();
        page.lines().find(|line| line.starts_with(".TH")).unwrap().to_string()
    };
    for name in ["stealgrid", "stealgrid-simulate", "stealgrid-trace-info"] {
        let (title, version) = (title(name), format!("stealgrid {}", env!("CARGO_PKG_VERSION")));
        assert!(title.contains("2001-09-09") && title.contains(&version), "{title}");
    }
    assert!(!out.join("stealgrid-sweep-worker.1").exists(), "what is hidden has no page");
    assert!(String::from_utf8(run(&["man"]).stdout).unwrap().contains(".TH"));
}

#[test]
fn work_that_takes_long_says_how_far_it_is_also_into_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let status = Command::new(PROGRAM)
        .args(["simulate", "--trace", "built-in:seven-sites", "--sites", "16,32,48,64,80,96,128"])
        .args(["--delay", "5m", "--no-page", "--out", folder.path().join("out").to_str().unwrap()])
        .env("STEALGRID_PROGRESS_EVERY", "0.005")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&said).unwrap())
        .status()
        .unwrap();
    assert!(status.success());
    let said = std::fs::read_to_string(&said).unwrap();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains(" of 2000 jobs")).collect();
    assert!(!lines.is_empty(), "{said}");
    let expected = |line: &&str| line.ends_with(" left") || line.ends_with(", nearly done");
    assert!(lines.iter().all(expected) && !said.contains(" 0:00:00 left"), "{said}");
}

/// Commands on logs: reading, preparing, drawing and writing are each told.
#[test]
fn a_long_log_is_made_checked_and_replayed_with_progress() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.swf");
    let (log, out) = (log.to_str().unwrap(), folder.path().join("out"));
    let said = |arguments: &[&str]| {
        let output =
            Command::new(PROGRAM).args(arguments).env("STEALGRID_PROGRESS_EVERY", "0").output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        said
    };
    let generate = said(&["trace", "generate", "--processors", "64", "--jobs", "20000", "--out", log]);
    let validate = said(&["trace", "validate", log]);
    let convert = said(&["trace", "convert", log, "--prepare", "--to", "swf"]);
    let replay = ["simulate", "--sites", "64", "--trace", log, "--count", "1", "--no-page", "--out"];
    let simulate = said(&[&replay[..], &[out.to_str().unwrap()]].concat());

    let told = |said: &str, what: &str| {
        let lines: Vec<&str> = said.lines().filter(|line| line.contains(what)).collect();
        assert!(!lines.is_empty(), "nothing of {what}: {said}");
        let expected = |line: &&str| line.ends_with(" left") || line.ends_with(", nearly done");
        assert!(lines.iter().all(expected), "{said}");
    };
    told(&generate, " of 20000 jobs drawn, ");
    told(&generate, " of 20000 lines written, ");
    told(&validate, " bytes of the log, ");
    told(&validate, " of 20000 jobs prepared, ");
    told(&convert, " of 20000 jobs prepared, ");
    told(&simulate, " bytes of the log, ");
}

/// Whether all runs of a sweep are runs is looked at before the first begins; of thousands on large grids that takes minutes.
#[test]
fn the_runs_of_a_sweep_are_checked_with_progress() {
    let sweep = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/sweeps/small.toml");
    let output = Command::new(PROGRAM)
        .args(["sweep", "--dry-run", sweep.to_str().unwrap()])
        .env("STEALGRID_PROGRESS_EVERY", "0")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("/96 runs checked, ")).collect();
    assert_eq!(lines.len(), 96, "{said}");
    assert!(lines[..95].iter().all(|line| line.ends_with(" left")), "{said}");
}

#[test]
fn a_name_of_another_list_is_told_with_its_option() {
    let said = |flags: &[&str]| {
        let output =
            run(&[&["simulate", "--sites", "8,96", "--trace", "built-in:seven-sites"], flags].concat());
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    for (flags, hint) in [
        (["--strategy", "esay"], "(did you mean --local easy?)"),
        (["--strategy", "conservativ"], "(did you mean --local conservative?)"),
        (["--local", "comon-pool"], "(did you mean --strategy common-pool?)"),
        (["--local", "st:50"], "(did you mean --strategy st:50?)"),
        (["--strategy", "comon-pool"], "(did you mean common-pool?)"),
        (["--local", "esay"], "(did you mean easy?)"),
    ] {
        assert!(said(&flags).contains(hint), "{hint} in {}", said(&flags));
    }
}

#[test]
fn a_log_is_sliced_by_the_same_words_as_an_experiment() {
    let trace = configs().join("traces/seven-sites.swf");
    let convert = |flags: &[&str]| {
        let mut arguments = vec!["trace", "convert", trace.to_str().unwrap(), "--to", "swf"];
        arguments.extend(flags);
        let output = run(&arguments);
        assert!(output.status.success(), "{flags:?}: {}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    assert_eq!(convert(&["--days", "mon-wed"]), convert(&["--weekdays", "mon-wed"]));
    assert_eq!(
        convert(&["--from", "2h", "--until", "36h"]),
        convert(&["--from", "7200", "--until", "129600"])
    );
    assert_ne!(convert(&["--from", "2h"]), convert(&["--from", "3h"]));
    let output = run(&["trace", "convert", trace.to_str().unwrap(), "--to", "swf", "--from", "soon"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn the_name_of_the_output_says_its_format() {
    let folder = tempfile::tempdir().unwrap();
    let trace = configs().join("traces/seven-sites.swf");
    for (name, to) in [("a.swf", "swf"), ("a.gwf", "gwf"), ("a.json", "batsim")] {
        let (named, told) = (folder.path().join(name), folder.path().join("told"));
        let convert = |out: &Path, flags: &[&str]| {
            let mut arguments =
                vec!["trace", "convert", trace.to_str().unwrap(), "--out", out.to_str().unwrap()];
            arguments.extend(flags);
            assert!(run(&arguments).status.success(), "{name}");
        };
        convert(&named, &[]);
        convert(&told, &["--to", to]);
        assert_eq!(std::fs::read(&named).unwrap(), std::fs::read(&told).unwrap(), "{name}");
    }
    let output = run(&["trace", "convert", trace.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("write --to swf"));
}

#[test]
fn lines_fit_a_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let (config, trace) = (configs().join("quickstart.toml"), configs().join("traces/seven-sites.swf"));
    let (config, trace) = (config.to_str().unwrap(), trace.to_str().unwrap());
    let sweep = format!(
        "base = \"{config}\"\n[experiment.workload]\ntrace = \"{trace}\"\ncount = 300\n\
         [parameters]\n\"strategy.name\" = [\"local\", \"st:50\"]\n\"network.delay\" = [\"0s\", \"1m\"]\n"
    );
    std::fs::write(folder.path().join("s.toml"), sweep).unwrap();
    for line in [
        &["simulate", config, "--count", "900", "--out", "a", "--no-page"][..],
        &["simulate", config, "--count", "900", "--out", "b", "--no-page", "--strategy", "broker:mct"],
        &["simulate", config, "--count", "900", "--out", "a-ideal", "--no-page", "--strategy", "ideal/st:50"],
        &["compare", "a", "b"],
        &["explain", "a", "471"],
        &["explain", "a", "471", "--full"],
        &["explain", "b", "471"],
        &["theory", config, "--count", "300"],
        &["trace", "info", trace],
        &["sweep", "s.toml", "--out", "s.db"],
        &["report", "s.db", "--out", "page"],
        &[
            "genetic",
            "--trace",
            trace,
            "--batches",
            "2",
            "--size",
            "40",
            "--generations-max",
            "3",
            "--out",
            "g",
        ],
    ] {
        let output = Command::new(PROGRAM).current_dir(folder.path()).args(line).output().unwrap();
        let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        assert!(matches!(output.status.code(), Some(0 | 5)), "{line:?}\n{said}");
        // Paths and commands that were typed are as long as they are.
        let given = |text: &str| text.contains(config) || text.contains(trace) || text.contains("stealgrid ");
        // So are events, which stay as they stand in the log.
        let given = |text: &str| given(text) || text.contains("{\"at\":");
        for text in said.lines().filter(|text| !given(text)) {
            assert!(text.chars().count() <= COLUMNS, "{line:?}: {} letters\n{text}", text.chars().count());
        }
    }
}

/// Words without a space, as lists with bars between, stand out where help breaks lines at spaces.
#[test]
fn no_line_of_help_is_wider_than_a_terminal() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    let commands = commands(&help);
    let mut seen = 0;
    for command in commands {
        for flag in ["-h", "--help"] {
            let text = String::from_utf8(run(&[command, flag]).stdout).unwrap();
            for line in text.lines() {
                assert!(line.chars().count() <= COLUMNS, "{command} {flag}: {line}");
                seen += 1;
            }
        }
    }
    assert!(seen > 500, "{seen} lines");
}

/// The commands in the groups of the help, before its flags.
fn commands(help: &str) -> impl Iterator<Item = &str> {
    help.lines()
        .skip_while(|line| !line.starts_with("Usage:"))
        .take_while(|line| *line != "Options:")
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
}

#[test]
fn the_help_of_help_is_the_help_with_its_groups_and_examples() {
    let help = run(&["--help"]);
    for arguments in [&["help"][..], &["help", "-h"], &["help", "--help"]] {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(output.stdout, help.stdout, "{arguments:?}");
    }
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.lines().all(|line| line.chars().count() <= COLUMNS), "{help}");
    for words in ["Look at results:\n  compare ", "Options:\n", "Examples:\n  stealgrid play "] {
        assert!(help.contains(words), "{words}: {help}");
    }
    assert_eq!(run(&["help", "sweep", "-h"]).status.code(), Some(0));
}

fn run(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}
