//! A wrong flag is a matter of usage, a wrong file one of input, whether or not there is an experiment file.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::PROGRAM;

fn configs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs")
}

/// Exit code and stderr of `simulate` in a folder, with the quick start or with the same by flags.
fn simulate(folder: &Path, with_file: bool, flags: &[&str]) -> (i32, String) {
    let mut command = Command::new(PROGRAM);
    command.current_dir(folder).arg("simulate");
    if with_file {
        command.arg(configs().join("quickstart.toml"));
    } else {
        command.args(["--sites", "8,16,128", "--trace"]).arg(configs().join("traces/seven-sites.swf"));
    }
    let output = command.args(["--count", "20", "--no-page"]).args(flags).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn what_is_wrong_decides_and_not_whether_there_is_a_file() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bad.toml"), "delay = \"fast\"\n").unwrap();
    std::fs::write(folder.path().join("unknown.toml"), "dely = \"1s\"\n").unwrap();
    for with_file in [false, true] {
        for (flags, code, expected) in [
            (["--strategy", "pool:some"], 2, "failed to understand --strategy"),
            (["--delay", "5"], 2, "failed to understand --delay"),
            (["--submit", "there"], 2, "failed to understand --submit"),
            (["--margin", "soon"], 2, "failed to understand --margin"),
            (["--clock", "scaled:0"], 2, "failed to understand --clock"),
            (["--clock", "scaled:abc"], 2, "\"scaled:abc\" is not a clock"),
            (["--clock", "virtul"], 2, "(did you mean virtual?) is not a clock"),
            (["--network", "bad.toml"], 3, "failed to understand bad.toml: delay: \"fast\" is not a time"),
            (["--network", "unknown.toml"], 3, "failed to understand unknown.toml: "),
            (["--network", "moon"], 3, "failed to understand --network"),
        ] {
            let (found, text) = simulate(folder.path(), with_file, &flags);
            assert_eq!(found, code, "{flags:?}, with a file: {with_file}\n{text}");
            assert!(text.contains(expected), "{flags:?}: {text}");
        }
    }
}

#[test]
fn a_value_of_the_file_is_one_of_input_though_a_flag_could_give_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.toml");
    std::fs::write(
        &path,
        "[grid]\nsizes = [4]\n[workload]\ntrace = \"a.swf\"\n[network]\ndelay = \"fast\"\n",
    )
    .unwrap();

    let output = Command::new(PROGRAM).arg("simulate").arg(&path).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();

    assert_eq!(output.status.code(), Some(3));
    let place = format!("failed to understand {}:6: network.delay: \"fast\" is not a time", path.display());
    assert!(said.contains(&place) && !said.contains("--delay"), "{said}");

    // The flag is to blame if it is typed.
    let output = Command::new(PROGRAM).arg("simulate").arg(&path).args(["--delay", "5"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("failed to understand --delay"), "{said}");
}

#[test]
fn a_file_of_another_kind_is_told_with_the_command_that_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("one.toml", "[grid]\nsizes = [4]\n[workload]\ntrace = \"built-in:seven-sites\"\n");
    write("many.toml", "base = \"one.toml\"\n[parameters]\nseed = [1]\n");
    write("rows.db", "SQLite format 3\0and so on");
    write("log.swf", "; a log\n1 0 -1 60 2 -1 -1 2 120 -1 1 1 1 -1 1 1 -1 -1\n");
    std::fs::create_dir(folder.path().join("run")).unwrap();
    write("run/manifest.json", "{}");
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    write("notes/todo.txt", "nothing");
    std::fs::write(folder.path().join("x.swf"), b"\x7fELF\0\xff").unwrap();
    let experiment =
        "read trace one.toml: it is an experiment file, and not a log of jobs; `stealgrid simulate one.toml`";
    for (line, expected) in [
        ("simulate many.toml", "it is a sweep file, and not an experiment file; `stealgrid sweep many.toml`"),
        ("run many.toml", "`stealgrid sweep many.toml`"),
        ("simulate run", "it is the result directory of a run, and not an experiment file"),
        ("sweep one.toml", "it is an experiment file, and not a sweep file; `stealgrid simulate one.toml`"),
        ("sweep rows.db", "it is the database of a sweep, and not a sweep file; `stealgrid report rows.db"),
        (
            "report run --out page",
            "it is the result directory of a run, and not the database of a sweep; its page is",
        ),
        ("report many.toml --out page", "`stealgrid sweep many.toml`"),
        ("compare run rows.db", "failed to read rows.db: it is the database of a sweep"),
        ("explain rows.db 1", "failed to read rows.db: it is the database of a sweep"),
        (
            "simulate log.swf",
            "it is a log of jobs, and not an experiment file; `stealgrid simulate --trace log.swf --sites",
        ),
        ("play log.swf", "it is a log of jobs, and not an experiment file"),
        ("sweep log.swf", "it is a log of jobs, and not a sweep file"),
        ("simulate --sites 4 --trace one.toml", experiment),
        // It has the sites that are missing here.
        ("simulate --trace one.toml", experiment),
        ("trace info one.toml", experiment),
        ("genetic --trace one.toml --out g", experiment),
        (
            "simulate --sites 4 --trace run",
            "read trace run: it is the result directory of a run, and not a log of",
        ),
        ("simulate x.swf", "read x.swf: it is a binary file, and not an experiment file; experiments"),
        ("sweep x.swf", "x.swf: it is a binary file, and not a sweep file"),
        (
            "report notes",
            "notes: it is a folder without results; give the database that `stealgrid sweep` left",
        ),
    ] {
        let output = Command::new(PROGRAM).current_dir(folder.path()).args(line.split(' ')).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{line}: {said}");
        assert!(said.contains(expected), "{line}: {said}");
    }
}

#[test]
fn a_place_where_no_folder_can_be_made_is_input_that_cannot_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let log = configs().join("traces/seven-sites.swf");
    write("one.toml", "[grid]\nsizes = [128]\n[workload]\ntrace = \"built-in:seven-sites\"\ncount = 5\n");
    write("many.toml", "base = \"one.toml\"\n[parameters]\nseed = [1]\n");
    // No folder, so that nothing can be made in it, whoever asks.
    write("file", "");
    let made = Command::new(PROGRAM)
        .current_dir(folder.path())
        .args(["simulate", "one.toml", "--out", "one"])
        .output();
    assert!(made.unwrap().status.success());
    for line in [
        "simulate one.toml --out file/out",
        "run one.toml --clock virtual --out file/out",
        "run one.toml --out file/out",
        "sweep many.toml --out file/folder/many.db",
        "sweep many.toml --out file/many.db",
        "compare one one --page file/two.html",
        "genetic --trace LOG --sites 128 --batches 1 --size 5 --algorithms a1 --out file/out",
        "man --out file/out",
    ] {
        let words = line.split(' ').map(|word| if word == "LOG" { log.to_str().unwrap() } else { word });
        let output = Command::new(PROGRAM).current_dir(folder.path()).args(words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{line}: {said}");
        let flag = if line.contains("--page") { "--page" } else { "--out" };
        assert!(said.contains("error: failed to make ") && said.contains("file"), "{line}: {said}");
        assert!(said.contains(&format!("give {flag} a place where one can be made")), "{line}: {said}");
    }
}

#[test]
fn a_time_of_a_log_is_typed_alike_wherever_a_part_of_it_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let log = configs().join("traces/seven-sites.swf");
    let part = |from: &str, until: &str| {
        let (code, said) = simulate(folder.path(), false, &["--from", from, "--until", until, "--replace"]);
        assert_eq!(code, 0, "{said}");
        let mut convert = Command::new(PROGRAM);
        convert.args([
            "trace",
            "convert",
            log.to_str().unwrap(),
            "--to",
            "swf",
            "--from",
            from,
            "--until",
            until,
        ]);
        let output = convert.output().unwrap();
        assert!(output.status.success());
        (said, output.stdout)
    };
    let seconds = part("3000", "36000");
    assert!(seconds.0.contains("time 0 is 3000 s of the log"), "{}", seconds.0);
    assert_eq!(part("50min", "10h"), seconds);
    let (code, said) = simulate(folder.path(), false, &["--from", "soon"]);
    assert_eq!(code, 2);
    assert!(said.contains("\"soon\" is not a time; write 36h, 90min, or seconds"), "{said}");
}

#[test]
fn without_sites_or_workload_the_command_line_is_wrong() {
    let run =
        |flags: &[&str]| Command::new(PROGRAM).arg("simulate").args(flags).output().unwrap().status.code();
    assert_eq!(run(&[]), Some(2));
    assert_eq!(run(&["--sites", "2,8"]), Some(2));
}

#[test]
fn a_variable_that_is_empty_is_as_good_as_none() {
    let folder = tempfile::tempdir().unwrap();
    let simulate = |sizes: &str, clock: &str| {
        let output = Command::new(PROGRAM)
            .current_dir(folder.path())
            .args(["simulate", "--count", "20", "--no-page"])
            .env("STEALGRID_EXPERIMENT", configs().join("quickstart.toml"))
            .env("STEALGRID_SIZES", sizes)
            .env("STEALGRID_CLOCK", clock)
            .env("STEALGRID_NETWORK", "")
            .env("STEALGRID_REPLACE", "true")
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };

    let (code, said) = simulate("", "");
    assert_eq!(code, Some(0));
    assert!(said.contains("7 sites, 464 processors"), "{said}");

    let (code, said) = simulate("grid1", "virtual");
    assert_eq!(code, Some(0));
    assert!(said.contains("7 sites, 4,442 processors"), "{said}");

    assert_eq!(simulate("", "soon").0, Some(2));
}

#[test]
fn a_key_that_is_typed_as_a_flag_is_told_with_its_place_and_range() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = simulate(folder.path(), true, &["--loss", "2"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("under [network]:") && said.contains("from 0 to below 1"), "{said}");
    let (code, said) = simulate(folder.path(), true, &["--no-such-thing"]);
    assert_eq!(code, 2);
    assert!(said.contains("unexpected argument '--no-such-thing'"), "{said}");
}

#[test]
fn a_time_below_zero_is_refused_by_who_takes_it() {
    let folder = tempfile::tempdir().unwrap();
    for (flags, write) in [
        (&["--delay", "-5s"][..], "write 50ms"),
        (&["--delay=-5s", "--no-ideal"], "write 50ms"),
        (&["--margin", "-5s"], "write 50ms"),
        (&["--from", "-5h"], "write 36h, 90min, or seconds"),
    ] {
        let (code, text) = simulate(folder.path(), true, flags);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(&format!("below zero, and no time is; {write}")), "{flags:?}: {text}");
    }
    // Numbers below zero are values, too.
    let (code, text) = simulate(folder.path(), true, &["--week", "-1"]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("no job in week -1; the log has jobs in week 1 only"), "{text}");
}

#[test]
fn a_number_that_is_none_is_told_what_is_expected() {
    let folder = tempfile::tempdir().unwrap();
    for (line, expected) in [
        (
            "simulate x.toml --seed -1",
            "invalid value '-1' for '--seed <N>': a whole number from 0 on is expected",
        ),
        ("simulate x.toml --seed 1e3", "'1e3' for '--seed <N>': a whole number is expected"),
        ("explain out abc", "invalid value 'abc' for '[JOB]': a whole number is expected"),
        ("simulate --sites 4,x --trace a.swf", "\"x\" is no number of processors; write sizes as in 2,8"),
        ("trace convert in.swf out.swf", "name it with --out out.swf"),
    ] {
        let output = Command::new(PROGRAM).current_dir(folder.path()).args(line.split(' ')).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.contains(expected), "{line}: {said}");
    }
    let (code, said) = simulate(folder.path(), true, &["--days", "mon-fry"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("no day is `fry` (did you mean fri?)"), "{said}");
}

#[test]
fn a_name_that_is_none_gets_the_near_one() {
    let folder = tempfile::tempdir().unwrap();
    for (flag, typed, meant) in [
        ("--strategy", "comon-pool", "common-pool"),
        ("--strategy", "st-gredy:50", "st-greedy"),
        ("--strategy", "pool:esay", "easy"),
        ("--strategy", "steal:randm", "random"),
        ("--strategy", "broker:mlbb", "mlb"),
        ("--strategy", "st:50,ordr=bah", "order"),
        ("--strategy", "st:50,select=eassy", "easy"),
        ("--strategy", "st:50,order=esay", "select=easy"),
        ("--strategy", "st:50,select=bah", "order=bah"),
        ("--size", "alocated", "allocated"),
        ("--estimate", "exat", "exact"),
        ("--origin", "recordd", "recorded"),
        ("--too-wide", "drp", "drop"),
        ("--strategy", "pool:easy,via=gosip", "gossip"),
        ("--strategy", "broker:mct,plann=open", "plan"),
        ("--local", "esay", "easy"),
        ("--local", "conservativ", "conservative"),
        ("--network", "contnental", "continental"),
        ("--submit", "hme", "home"),
        ("--overrun", "kil", "kill"),
        ("--pass", "bach", "batch"),
        ("--discovery", "pollin", "polling"),
        ("--report", "chang", "change"),
        ("--clock", "virtul", "virtual"),
        ("--format", "jsn", "json"),
    ] {
        let (_, text) = simulate(folder.path(), true, &[flag, typed]);
        assert!(text.contains(&format!("(did you mean {meant}?)")), "{flag} {typed}: {text}");
    }
    let (_, text) = simulate(folder.path(), true, &["--local", "backfilling"]);
    assert!(text.contains("unknown local scheduler") && !text.contains("did you mean"), "{text}");
}

#[test]
fn the_wrong_key_of_a_file_is_named_and_no_type_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("test.toml");
    for (text, expected) in [
        ("[stratgy]\nname = \"st:50\"\n", "unknown key stratgy (did you mean strategy?)"),
        // What is read first is wrong, too, and does not hide it.
        (
            "[grid]\nsites = [8]\n[stratgy]\nname = \"st:50\"\n",
            "unknown key stratgy (did you mean strategy?)",
        ),
        ("[[grid.sites]]\nnam = \"a\"\n[stratgy]\nname = \"st:50\"\n", "unknown key stratgy (did you mean"),
        ("[[grid.sites]]\nnam = \"a\"\n", "unknown key nam (did you mean name?)"),
        ("[grid]\nsites = [8]\n", "expected a site, as in { name = \"site1\", processors = 8 }"),
        ("[grid]\nsizes = [\"x\"]\n", "expected a whole number from 0 on"),
        ("[grid]\nbrokers = 1.5\n", "expected a whole number from 0 on, or \"each\""),
        ("[network]\ndelya = \"5s\"\n", "unknown key delya (did you mean delay?)"),
        ("strategy = \"st:50\"\n", "expected the section [strategy]"),
        ("[workload]\nload = \"high\"\n", "expected a number"),
        ("[outputs]\npage = 1\n", "expected true or false"),
        ("[network]\ndelay = 5\n", "a time has its unit, as in \"5s\""),
    ] {
        std::fs::write(&path, text).unwrap();
        let output = Command::new(PROGRAM).arg("simulate").arg(&path).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(expected), "{text}{said}");
        for leak in ["Written", "struct", "u32", "f64", "enum", "unknown field"] {
            assert!(!said.contains(leak), "{leak} in {said}");
        }
    }
    let network = folder.path().join("links.toml");
    std::fs::write(&network, "jiter = \"5ms\"\n").unwrap();
    let (code, said) = simulate(folder.path(), true, &["--network", network.to_str().unwrap()]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("unknown key jiter (did you mean jitter?)"), "{said}");
}

#[test]
fn a_file_that_is_no_text_is_not_printed_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.swf");
    std::fs::write(&path, b"\x7fELF\x02\x01\x01\x00\x1b[31m\xff\xfe\x00 1 2 3\n".repeat(20)).unwrap();
    for command in [&["trace", "info"][..], &["trace", "validate"], &["simulate", "--sites", "8", "--trace"]]
    {
        let output = Command::new(PROGRAM).args(command).arg(&path).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{command:?}");
        let said = [output.stdout, output.stderr].concat();
        let printable = |byte: &u8| *byte == b'\n' || (b' '..=b'~').contains(byte);
        assert!(said.iter().all(printable), "{}", said.escape_ascii());
        assert!(String::from_utf8(said).unwrap().contains("it is binary, and not a log"), "{command:?}");
    }
}

/// Files that may not grow stand for a disk without room, which only root can have: the system refuses to write either.
#[test]
fn a_full_disk_is_told_once_and_leaves_nothing_that_passes_for_a_result() {
    let folder = tempfile::tempdir().unwrap();
    let quickstart = configs().join("quickstart.toml");
    let log = configs().join("traces/seven-sites.swf");
    let (quickstart, log) = (quickstart.to_str().unwrap(), log.to_str().unwrap());
    let sweep = format!(
        "[experiment]\ngrid.sizes = [128]\nworkload.trace = \"{log}\"\nworkload.count = 5\n[parameters]\nseed = [1]\n"
    );
    std::fs::write(folder.path().join("one.toml"), sweep).unwrap();
    let said = |blocks: &str, words: &[&str]| {
        let limited = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let output = Command::new("sh")
            .args(["-c", &limited, PROGRAM])
            .args(words)
            .current_dir(folder.path())
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let too_large = std::io::Error::from_raw_os_error(27).to_string();
    for (words, file) in [
        (&["trace", "generate", "--processors", "8", "--jobs", "3000", "--out", "made.swf"][..], "made.swf"),
        (&["trace", "convert", log, "--out", "copy.gwf"], "copy.gwf"),
        (&["simulate", quickstart, "--out", "run", "--no-events"], "run/"),
    ] {
        let (code, text) = said("16", words);
        assert_eq!(code, 1, "{words:?}: {text}");
        let line = text.lines().last().unwrap();
        assert!(line.starts_with("error: failed to write ") && line.contains(file), "{text}");
        assert_eq!(text.matches(&too_large).count(), 1, "{text}");
    }
    for gone in ["made.swf", "copy.gwf"] {
        assert!(!folder.path().join(gone).exists(), "the beginning of {gone} is left");
    }
    let left = std::fs::read_dir(folder.path().join("run")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    assert!(left.iter().all(|name| !name.ends_with(".tmp")), "{left:?}");

    let words = ["sweep", "one.toml", "--out", "one.db"];
    let (code, text) = said("0", &words);
    assert_eq!(code, 3, "{text}");
    let line = text.lines().last().unwrap();
    assert!(line.starts_with("error: failed to use one.db: ") && !line.contains("Error code"), "{text}");
    let (code, text) = said("unlimited", &words);
    assert_eq!(code, 0, "there is room again: {text}");
}

/// Whoever asks there asks in vain, for ever, also where every job has ended.
#[test]
fn a_link_that_is_cut_for_ever_does_not_keep_a_simulation_from_ending() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = |more: &str| {
        format!(
            "grid.sizes = [8, 16, 96]\nworkload.trace = \"built-in:seven-sites\"\nworkload.count = 49\n\
             strategy.name = \"st:50\"\n[network]\ndelay = \"2s\"\n[[network.partitions]]\n\
             groups = [[\"site3\"]]\nat = \"1h\"\nuntil = \"1000000h\"\n[outputs]\nmessage_events = false\n{more}"
        )
    };
    for (name, more) in [
        ("cut.toml", ""),
        (
            "faulty.toml",
            "[node]\njournal = \"process\"\n[[faults]]\nsite = \"site1\"\nwhat = \"crash\"\nat = \"1h\"\nfor = \"1h\"\n",
        ),
    ] {
        std::fs::write(folder.path().join(name), experiment(more)).unwrap();
        let mut command = Command::new(PROGRAM);
        command.current_dir(folder.path()).args(["simulate", name, "--no-page", "--no-events", "--replace"]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(4), "{name}: {said}{printed}");
        let printed = printed.replace("\n  ", " ");
        assert!((said + &printed).contains("asking in vain (the stall limit"), "{name}");
    }
}
