//! Sweeps that others compute: the rows are those of one machine, and who is killed, refused, late or doubled loses none.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use stealgrid_tests::small_disk::{self, SmallDisk};

use crate::PROGRAM;
use crate::sweep::{sweep, timeless};

/// Ample for what takes seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// A sweep of six runs, planned in so many chunks of two, and the rows of it as one machine has them.
struct Planned {
    folder: tempfile::TempDir,
    sweep: PathBuf,
    plan: PathBuf,
}

fn said(output: Output) -> (i32, String) {
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), text)
}

fn stealgrid(arguments: &[&str]) -> (i32, String) {
    said(Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap())
}

impl Planned {
    fn new() -> Planned {
        let folder = tempfile::tempdir().unwrap();
        let sweep = sweep(folder.path(), 3, 150);
        let plan = folder.path().join("plan");
        let planned = Planned { folder, sweep, plan };
        let (code, text) =
            stealgrid(&["sweep", "plan", planned.of_sweep(), "--out", planned.of_plan(), "--chunk", "2"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("6 runs in 3 chunks, 0 to 2"), "{text}");
        planned
    }

    fn of_sweep(&self) -> &str {
        self.sweep.to_str().unwrap()
    }

    fn of_plan(&self) -> &str {
        self.plan.to_str().unwrap()
    }

    fn work(&self, chunk: &str, flags: &[&str]) -> (i32, String) {
        stealgrid(&[&["sweep", "work", self.of_plan(), chunk], flags].concat())
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("collected.db")
    }

    fn collect(&self) -> (i32, String) {
        stealgrid(&["sweep", "collect", self.of_plan(), "--out", self.database().to_str().unwrap()])
    }

    /// That the database has what one machine computes.
    fn assert_same_rows(&self) {
        let here = self.folder.path().join("here.db");
        let (code, text) = stealgrid(&["sweep", self.of_sweep(), "--out", here.to_str().unwrap()]);
        assert_eq!(code, 0, "{text}");
        let rows = timeless(&self.database());
        assert_eq!(rows.len(), 6);
        assert_eq!(rows, timeless(&here));
    }

    fn head(&self) -> PathBuf {
        self.plan.join("plan.json")
    }
}

#[test]
fn chunks_that_are_computed_one_by_one_give_the_rows_of_one_machine() {
    let planned = Planned::new();
    for chunk in ["2", "0"] {
        let (code, text) = planned.work(chunk, &[]);
        assert_eq!((code, text), (0, format!("chunk {chunk}: 2 runs done, 0 failed\n")));
    }
    let (code, text) = planned.collect();
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("4 runs done, 0 failed\n2 runs in 1 chunks are left"), "{text}");

    assert_eq!(planned.work("1", &["--jobs", "2"]).0, 0);
    assert_eq!(planned.work("1", &[]), (0, "chunk 1 has a result already\n".to_string()));

    let (code, text) = planned.collect();
    assert_eq!(code, 0, "{text}");
    planned.assert_same_rows();
}

/// Killed at an instant that nobody chose, which leaves an attempt and no result.
#[test]
fn a_killed_attempt_leaves_nothing_half() {
    let planned = Planned::new();
    let mut child = Command::new(PROGRAM)
        .args(["sweep", "work", planned.of_plan(), "0"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    // On a busy machine it may begin and be done between two looks.
    let is_empty = |folder: &str| fs::read_dir(planned.plan.join(folder)).unwrap().next().is_none();
    while is_empty("attempts") && is_empty("done") {
        assert!(begun.elapsed() < PATIENCE, "nobody began");
    }
    child.kill().unwrap();
    child.wait().unwrap();

    let left = fs::read_dir(planned.plan.join("attempts")).unwrap().count();
    let done = fs::read_dir(planned.plan.join("done")).unwrap().count();
    // It may have been done before the signal came.
    assert_eq!(left + done, 1);
    for chunk in ["0", "1", "2"] {
        assert_eq!(planned.work(chunk, &[]).0, 0);
    }
    let (code, text) = planned.collect();
    assert_eq!(code, 0, "{text}");
    planned.assert_same_rows();
}

#[test]
fn what_is_computed_twice_is_compared() {
    let planned = Planned::new();
    for chunk in ["0", "1", "2"] {
        planned.work(chunk, &[]);
    }
    let (code, text) = planned.work("1", &["--again"]);
    assert_eq!((code, text.as_str()), (0, "chunk 1: 2 runs done, 0 failed, after somebody else\n"));
    let (code, text) = planned.collect();
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("2 computed twice with the same result"), "{text}");
    planned.assert_same_rows();
}

#[test]
fn mutant_a_second_result_with_another_digit_is_an_error_that_names_both() {
    let planned = Planned::new();
    for chunk in ["0", "1", "2"] {
        planned.work(chunk, &[]);
    }
    planned.work("1", &["--again"]);
    let second =
        fs::read_dir(planned.plan.join("twice")).unwrap().next().unwrap().unwrap().path().join("rows.jsonl");
    let text = fs::read_to_string(&second).unwrap();
    let changed = text.replacen("[\"finished\",{\"Integer\":150}]", "[\"finished\",{\"Integer\":149}]", 1);
    assert_ne!(text, changed);
    fs::write(&second, changed).unwrap();

    let (code, text) = planned.collect();

    assert_eq!(code, 5, "{text}");
    assert!(text.contains("finished is 150 and 149"), "{text}");
    assert!(text.contains("done/1 and ") && text.contains("twice/1-"), "{text}");
}

#[test]
fn another_program_and_a_log_that_changed_are_refused() {
    let planned = Planned::new();
    let text = fs::read_to_string(planned.head()).unwrap();
    let of_another = text.replacen("\"program\":\"", "\"program\":\"9.", 1);
    fs::write(planned.head(), of_another).unwrap();
    let (code, said) = planned.work("0", &[]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("it was planned by version 9.") && said.contains("use the same program"), "{said}");

    let digest = text.find("\"logs\":{").map(|at| at + text[at..].find(":\"").unwrap() + 2).unwrap();
    let mut changed = text;
    changed.replace_range(digest..digest + 4, "0000");
    fs::write(planned.head(), changed).unwrap();
    let (code, said) = planned.work("0", &[]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("it is not the log that the plan was made with"), "{said}");
    assert_eq!(fs::read_dir(planned.plan.join("attempts")).unwrap().count(), 0);
}

#[test]
fn what_is_no_plan_no_chunk_or_no_new_folder_is_told() {
    let planned = Planned::new();
    let cases = [
        (planned.work("3", &[]), 3, "it has chunks 0 to 2, and no 3"),
        (planned.work("0", &["--offer", "7"]), 3, "offers/7"),
        (stealgrid(&["sweep", "work", planned.of_plan()]), 2, "which chunk is meant"),
        (stealgrid(&["sweep", "collect", planned.folder.path().to_str().unwrap()]), 3, "it has no plan.json"),
        (stealgrid(&["sweep", "plan", planned.of_sweep(), "--out", planned.of_plan()]), 3, "it is there"),
        (stealgrid(&["sweep", planned.of_sweep(), "--workers", "pbs"]), 2, "there is no engine"),
    ];
    for ((code, text), expected, word) in cases {
        assert_eq!(code, expected, "{text}");
        assert!(text.contains(word), "{text}");
    }
}

/// A sweep of six runs that an engine computes; whatever it is, the rows are those of one machine.
fn with_workers(
    workers: &str,
    flags: &[&str],
    prepare: impl Fn(&Path, &mut Command),
) -> (tempfile::TempDir, i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let sweep = sweep(folder.path(), 3, 150);
    let out = folder.path().join("test.db");
    let mut command = Command::new(PROGRAM);
    command.arg("sweep").arg(&sweep).arg("--out").arg(&out);
    command.args(["--chunk", "1", "--jobs", "2", "--workers", workers]).args(flags);
    prepare(folder.path(), &mut command);
    let (code, text) = said(command.stdin(Stdio::null()).output().unwrap());
    (folder, code, text)
}

fn assert_rows_of_one_machine(folder: &tempfile::TempDir) {
    let here = folder.path().join("here.db");
    let sweep = folder.path().join("test.toml");
    let (code, text) = stealgrid(&["sweep", sweep.to_str().unwrap(), "--out", here.to_str().unwrap()]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(timeless(&folder.path().join("test.db")), timeless(&here));
}

fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_command_for_each_chunk_computes_a_sweep_and_the_same_command_adds_nothing() {
    let (folder, code, text) = with_workers("exec:{program} sweep work {plan} {chunk}", &[], |_, _| {});
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("6 runs done, 0 failed"), "{text}");
    assert_rows_of_one_machine(&folder);
    let page = fs::read_to_string(folder.path().join("test.plan/progress.html")).unwrap();
    assert!(page.contains("<td>done<td>6") && !page.contains("refresh"), "{page}");

    let sweep = folder.path().join("test.toml");
    let out = folder.path().join("test.db");
    let again = ["sweep", sweep.to_str().unwrap(), "--out", out.to_str().unwrap(), "--workers", "exec:false"];
    let (code, text) = stealgrid(&again);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("nothing is left to compute"), "{text}");
}

#[test]
fn a_command_that_reads_all_chunks_computes_a_sweep() {
    let mut commands = vec!["exec:xargs -n 1 -P 2 {program} sweep work {plan}"];
    match Command::new("parallel").arg("--version").output() {
        Ok(output) if String::from_utf8_lossy(&output.stdout).starts_with("GNU parallel") => {
            commands.push("exec:parallel --will-cite -j 2 {program} sweep work {plan}");
        }
        _ => eprintln!("SKIPPED: GNU parallel is not installed; xargs took its place alone"),
    }
    for workers in commands {
        let (folder, code, text) = with_workers(workers, &[], |_, _| {});
        assert_eq!(code, 0, "{workers}: {text}");
        assert_rows_of_one_machine(&folder);
    }
}

/// The first attempt at each chunk ends before it begins.
#[test]
fn a_chunk_that_ends_without_a_result_is_offered_again_and_at_last_named() {
    let stumbling = "if [ -e $0.$1 ]; then exec \"$PROGRAM\" sweep work \"$2\" $1; fi; : > $0.$1; kill -9 $$";
    let prepare = |folder: &Path, command: &mut Command| {
        script(&folder.join("stumble"), &format!("#!/bin/sh\n{stumbling}\n"));
        command.env("PROGRAM", PROGRAM).current_dir(folder);
    };
    let (folder, code, text) = with_workers("exec:./stumble {chunk} {plan}", &[], prepare);
    assert_eq!(code, 0, "{text}");
    for chunk in 0..6 {
        assert!(
            text.contains(&format!("chunk {chunk} ended without a result and is offered again (2 of 3)")),
            "{text}"
        );
    }
    assert_rows_of_one_machine(&folder);

    let (_folder, code, text) = with_workers("exec:false {chunk}", &["--attempts", "2"], |_, _| {});
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("chunk 0 has no result after 2 attempts"), "{text}");
    assert!(text.contains("6 runs in 6 chunks are left; go on with: stealgrid sweep"), "{text}");
}

#[test]
fn an_interrupted_sweep_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = sweep(folder.path(), 3, 150);
    let out = folder.path().join("test.db");
    let slow = "exec:sh -c 'sleep 0.3; exec {program} sweep work {plan} {chunk}'";
    let command = || {
        let mut command = Command::new(PROGRAM);
        command.arg("sweep").arg(&sweep).arg("--out").arg(&out);
        command.args(["--chunk", "1", "--jobs", "1", "--workers", slow]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let child = command().spawn().unwrap();
    let begun = Instant::now();
    let done = folder.path().join("test.plan/done");
    while fs::read_dir(&done).map_or(0, Iterator::count) == 0 {
        assert!(begun.elapsed() < PATIENCE, "nothing was computed");
        std::thread::sleep(Duration::from_millis(10));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let (code, text) = said(child.wait_with_output().unwrap());
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("are left; the same command goes on: stealgrid sweep"), "{text}");

    let (code, text) = said(command().output().unwrap());

    assert_eq!(code, 0, "{text}");
    assert!(text.contains("6 runs done, 0 failed"), "{text}");
    assert_rows_of_one_machine(&folder);
}

/// Runs that have a row are in no chunk, and keep their place when the rest is collected.
#[test]
fn a_sweep_that_was_begun_here_ends_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let (smaller, out) = (sweep(folder.path(), 2, 150), folder.path().join("test.db"));
    let [path, database] = [smaller.to_str().unwrap(), out.to_str().unwrap()];
    assert_eq!(stealgrid(&["sweep", path, "--out", database]).0, 0);
    sweep(folder.path(), 3, 150);
    let none = [
        "sweep",
        path,
        "--out",
        database,
        "--chunk",
        "1",
        "--attempts",
        "1",
        "--workers",
        "exec:false {chunk}",
    ];
    let (code, text) = stealgrid(&none);
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("2 runs in 2 chunks are left"), "{text}");
    let plan = folder.path().join("test.plan");
    for chunk in ["0", "1"] {
        assert_eq!(stealgrid(&["sweep", "work", plan.to_str().unwrap(), chunk]).0, 0);
    }
    let (code, text) = stealgrid(&["sweep", "collect", plan.to_str().unwrap(), "--out", database]);
    assert_eq!(code, 0, "{text}");
    assert_rows_of_one_machine(&folder);
}

#[test]
fn another_sweep_file_does_not_go_on_in_a_plan() {
    let (folder, code, _) = with_workers("exec:false {chunk}", &["--attempts", "1"], |_, _| {});
    assert_eq!(code, 4);
    let path = sweep(folder.path(), 2, 150);
    let out = folder.path().join("test.db");
    let (code, text) = stealgrid(&[
        "sweep",
        path.to_str().unwrap(),
        "--out",
        out.to_str().unwrap(),
        "--workers",
        "exec:false {chunk}",
    ]);
    assert_eq!(code, 3, "{text}");
    assert!(text.contains("it is a plan of another sweep file"), "{text}");
}

/// What `sbatch`, `squeue` and `scontrol` do, in little: two elements at a time, arrays of four at most; the first array is accepted once it was refused,
/// and its second element cannot be started and is held.
const SBATCH: &str = r#"#!/bin/sh
for word in "$@"; do
    case $word in
        --array=*) last=${word#--array=0-} ;;
        --job-name=*) name=${word#--job-name=} ;;
    esac
done
last=${last%%\%*}
id=${name##*-}
[ "$last" -lt 4 ] || { echo "sbatch: error: Batch job submission failed: Invalid job array specification" >&2; exit 1; }
cat > "$FAKE/$name.script"
for index in $(seq 0 "$last"); do
    echo "$name $index PD $id Resources" > "$FAKE/$name.$index.job"
done
(
    for index in $(seq 0 "$last"); do
        echo "$name $index R $id None" > "$FAKE/$name.$index.job"
        if [ "$id" = 0 ] && [ "$index" = 1 ]; then
            echo "$name $index PD $id launch failed requeued held" > "$FAKE/$name.$index.job"
        else
            SLURM_ARRAY_TASK_ID=$index sh "$FAKE/$name.script"
            rm "$FAKE/$name.$index.job"
        fi
    done
) > /dev/null 2>&1 &
echo "$id"
"#;
const SQUEUE: &str = r#"#!/bin/sh
[ -e "$FAKE/away" ] || { : > "$FAKE/away"; echo "slurm_load_jobs error: Unable to contact slurm controller" >&2; exit 1; }
echo "somebody-else 1 R 41 None"
cat "$FAKE"/*.job 2> /dev/null
exit 0
"#;

/// Has a command find these in place of Slurm's.
fn stand_in_for_slurm(folder: &Path, command: &mut Command) {
    let bin = folder.join("bin");
    if fs::create_dir(&bin).is_ok() {
        script(&bin.join("sbatch"), SBATCH);
        script(&bin.join("squeue"), SQUEUE);
        script(&bin.join("scancel"), "#!/bin/sh\nrm \"$FAKE\"/*-\"${1%_*}\".\"${1#*_}\".job\n");
        script(&bin.join("scontrol"), "#!/bin/sh\necho 'MaxArraySize            = 4'\n");
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("FAKE", folder);
}

/// A command that computes a sweep of six runs in six chunks, with either engine that needs no cluster.
fn by_engine(folder: &Path, sweep: &Path, workers: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("sweep").arg(sweep).arg("--out").arg(folder.join("test.db"));
    command.args(["--chunk", "1", "--jobs", "1", "--workers", workers]);
    stand_in_for_slurm(folder, &mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

const EACH_ENGINE: [&str; 2] =
    ["exec:sh -c 'sleep 0.3; exec {program} sweep work {plan} {chunk}'", "slurm:partition=main,poll=1s"];

fn until_one_is_done(folder: &Path) {
    let begun = Instant::now();
    while fs::read_dir(folder.join("test.plan/done")).map_or(0, Iterator::count) == 0 {
        assert!(begun.elapsed() < PATIENCE, "nothing was computed");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What it had begun may go on, and is compared where it was done twice.
#[test]
fn a_sweep_that_is_killed_goes_on_with_the_same_command() {
    for workers in EACH_ENGINE {
        let folder = tempfile::tempdir().unwrap();
        let sweep = sweep(folder.path(), 3, 150);
        let mut child = by_engine(folder.path(), &sweep, workers).spawn().unwrap();
        until_one_is_done(folder.path());
        child.kill().unwrap();
        child.wait().unwrap();

        let (code, text) = said(by_engine(folder.path(), &sweep, workers).output().unwrap());

        assert_eq!(code, 0, "{workers}: {text}");
        assert!(text.contains("6 runs done, 0 failed"), "{workers}: {text}");
        assert_rows_of_one_machine(&folder);
    }
}

#[test]
fn a_plan_on_a_full_disk_goes_on_when_there_is_room() {
    let test = "chunks::a_plan_on_a_full_disk_goes_on_when_there_is_room";
    small_disk::in_namespace(test, || EACH_ENGINE.into_iter().for_each(full_for_a_while));
}

fn full_for_a_while(workers: &str) {
    let folder = tempfile::tempdir().unwrap();
    let sweep = sweep(folder.path(), 3, 150);
    let plan = folder.path().join("test.plan");
    // A plan of which nothing is computed moves to the small disk.
    let planned = by_engine(folder.path(), &sweep, "exec:false {chunk}").args(["--attempts", "1"]).output();
    assert_eq!(said(planned.unwrap()).0, 4);
    let aside = folder.path().join("aside");
    fs::rename(&plan, &aside).unwrap();
    let disk = SmallDisk::mount(plan.clone(), 512);
    let copied = Command::new("cp").arg("-a").arg(aside.join(".")).arg(&plan).status();
    assert!(copied.unwrap().success());

    let told = folder.path().join("told.txt");
    let file = fs::File::create(&told).unwrap();
    let mut command = by_engine(folder.path(), &sweep, workers);
    let mut child = command.stdout(file.try_clone().unwrap()).stderr(file).spawn().unwrap();
    until_one_is_done(folder.path());
    disk.fill(512);
    // Full until a chunk has failed of it, however long that takes on a busy machine.
    let begun = Instant::now();
    while !fs::read_to_string(&told).unwrap().contains("is offered again")
        && child.try_wait().unwrap().is_none()
    {
        assert!(begun.elapsed() < PATIENCE, "{workers}: nothing failed on a full disk");
        std::thread::sleep(Duration::from_millis(20));
    }
    disk.make_room();
    let code = child.wait().unwrap().code().unwrap();
    let text = fs::read_to_string(&told).unwrap();
    assert!(code != 0 || text.contains("is offered again"), "{workers}: nothing failed: {text}");
    // Where the sweep itself could not go on, the same command does.
    if code != 0 {
        let (code, text) = said(by_engine(folder.path(), &sweep, workers).output().unwrap());
        assert_eq!(code, 0, "{workers}: {text}");
    }
    assert_rows_of_one_machine(&folder);
}

#[test]
fn arrays_of_slurm_keep_to_its_limit_and_held_elements_are_offered_again() {
    let (folder, code, text) = with_workers("slurm:partition=main,poll=1s", &[], stand_in_for_slurm);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("Slurm does not say what it has") && text.contains("Unable to contact"), "{text}");
    assert!(text.contains("chunk 1 ended without a result and is offered again (2 of 3)"), "{text}");
    assert_rows_of_one_machine(&folder);
    assert!(
        !fs::read_dir(folder.path())
            .unwrap()
            .any(|entry| entry.unwrap().path().extension() == Some("job".as_ref()))
    );
    // Six chunks in arrays of four at most, and the killed one once more.
    let scripts = fs::read_dir(folder.path())
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    assert!(scripts.filter(|name| name.ends_with(".script")).count() >= 3);
}

#[test]
fn slurm_that_takes_nothing_is_told_with_its_words() {
    let prepare = |folder: &Path, command: &mut Command| {
        let bin = folder.join("bin");
        fs::create_dir(&bin).unwrap();
        script(
            &bin.join("sbatch"),
            "#!/bin/sh\necho 'sbatch: error: invalid partition specified: nowhere' >&2\nexit 1\n",
        );
        script(&bin.join("squeue"), "#!/bin/sh\n");
        script(&bin.join("scontrol"), "#!/bin/sh\necho 'MaxArraySize            = 1001'\n");
        command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    };
    let (_folder, code, text) = with_workers("slurm:partition=nowhere,poll=1s", &[], prepare);
    assert_eq!(code, 4, "{text}");
    assert!(
        text.contains("slurm takes nothing: sbatch: sbatch: error: invalid partition specified: nowhere"),
        "{text}"
    );
}

#[test]
fn kubernetes_gets_a_manifest_of_what_is_left_and_the_same_command_collects() {
    let flags = ["image=a:1,claim=sweeps,mount=/"];
    let (folder, code, text) = with_workers(&format!("kubernetes:{}", flags[0]), &[], |_, _| {});
    assert_eq!(code, 4, "{text}");
    let manifest = folder.path().join("test.plan/kubernetes-0.json");
    assert!(text.contains(&format!("kubectl apply -f {}", manifest.display())), "{text}");
    let job: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    assert_eq!(job["spec"]["completions"], 6);
    // What the pods do.
    let arguments = job["spec"]["template"]["spec"]["containers"][0]["args"].as_array().unwrap().clone();
    for index in 0..6 {
        let mut pod = Command::new(PROGRAM);
        pod.args(arguments.iter().map(|word| word.as_str().unwrap()))
            .env("JOB_COMPLETION_INDEX", index.to_string());
        let (code, text) = said(pod.stdin(Stdio::null()).output().unwrap());
        assert_eq!(code, 0, "{text}");
    }
    let sweep = folder.path().join("test.toml");
    let out = folder.path().join("test.db");
    let workers = format!("kubernetes:{}", flags[0]);
    let (code, text) =
        stealgrid(&["sweep", sweep.to_str().unwrap(), "--out", out.to_str().unwrap(), "--workers", &workers]);
    assert_eq!(code, 0, "{text}");
    assert_rows_of_one_machine(&folder);
}
