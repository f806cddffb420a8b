//! Dependencies point one way, and what must not be known where is not.
//!
//! Reads the manifests and sources of the workspace. The rules in words are in `docs/ARCHITECTURE.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use stealgrid_tests::rust_files;

/// A folder, crates of the workspace that it may depend on, and others where the list is closed.
type Rule = (&'static str, &'static [&'static str], Option<&'static [&'static str]>);

/// What each crate may depend on outside tests. Crates without a second list may take what they need from a registry;
/// the pure ones may not.
const ALLOWED: [Rule; 20] = [
    ("scheduler", &[], Some(&["rand", "rand_chacha", "serde", "strsim", "thiserror"])),
    ("predict", &["scheduler"], Some(&["libm"])),
    ("brokers", &["scheduler"], Some(&["num-bigint", "rand", "rand_chacha", "serde", "thiserror"])),
    ("links", &["scheduler"], Some(&["humantime", "libm", "rand_chacha", "serde", "thiserror", "toml"])),
    ("overlay", &["scheduler"], Some(&["rand", "rand_chacha", "serde"])),
    (
        "protocol",
        &["brokers", "overlay", "predict", "scheduler"],
        Some(&["bincode", "rand", "rand_chacha", "serde", "thiserror"]),
    ),
    (
        "simulator",
        &["brokers", "links", "predict", "protocol", "scheduler"],
        Some(&["rand", "rand_chacha", "serde", "thiserror"]),
    ),
    ("analysis", &["brokers", "scheduler"], Some(&["rand", "rand_chacha", "serde", "statrs", "thiserror"])),
    ("workload", &["scheduler"], None),
    ("claims", &["analysis", "brokers", "links", "protocol", "scheduler", "simulator", "workload"], None),
    // Processes of users: whoever asks them knows only the seams of brokers and of queues.
    ("external", &["brokers", "scheduler"], None),
    ("node", &["brokers", "external", "links", "predict", "protocol", "scheduler"], None),
    // Results know no driver, and who shows them only results.
    ("outputs", &["analysis", "scheduler", "workload"], None),
    ("report", &["analysis", "outputs", "scheduler"], None),
    (
        "experiments",
        &[
            "analysis",
            "brokers",
            "claims",
            "external",
            "links",
            "node",
            "outputs",
            "predict",
            "protocol",
            "report",
            "scheduler",
            "simulator",
            "workload",
        ],
        None,
    ),
    // Who begins processes of sites and asks them.
    (
        "operation",
        &[
            "analysis",
            "experiments",
            "links",
            "node",
            "outputs",
            "protocol",
            "report",
            "scheduler",
            "simulator",
            "workload",
        ],
        None,
    ),
    // What is measured and judged; no run needs it.
    (
        "laboratory",
        &[
            "analysis",
            "brokers",
            "claims",
            "experiments",
            "external",
            "links",
            "node",
            "operation",
            "outputs",
            "predict",
            "report",
            "scheduler",
            "simulator",
            "workload",
        ],
        None,
    ),
    (
        "coordinator",
        &[
            "analysis",
            "brokers",
            "experiments",
            "external",
            "laboratory",
            "links",
            "node",
            "operation",
            "outputs",
            "report",
            "scheduler",
            "simulator",
            "workload",
        ],
        None,
    ),
    ("tests", &["analysis", "brokers", "protocol", "scheduler", "simulator", "workload"], None),
    // libFuzzer searches for inputs; without the feature of that name nothing of it is built.
    (
        "fuzz",
        &["links", "node", "protocol", "scheduler", "workload"],
        Some(&["libfuzzer-sys", "serde", "serde_json", "tokio", "toml"]),
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn manifest(folder: &str) -> toml::Table {
    let path = root().join(folder).join("Cargo.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names under `[dependencies]` and `[build-dependencies]`, also those of single targets.
fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let mut tables = vec![manifest];
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    tables.extend(targets.into_iter().flat_map(|targets| targets.values()).filter_map(toml::Value::as_table));
    let mut names = BTreeSet::new();
    for table in tables {
        for kind in ["dependencies", "build-dependencies"] {
            names.extend(
                table.get(kind).and_then(toml::Value::as_table).into_iter().flat_map(|t| t.keys().cloned()),
            );
        }
    }
    names
}

#[test]
fn every_member_of_the_workspace_has_a_rule() {
    let workspace = manifest("");
    let members = workspace["workspace"]["members"].as_array().unwrap();
    let members: BTreeSet<&str> = members.iter().map(|member| member.as_str().unwrap()).collect();
    assert_eq!(members, ALLOWED.iter().map(|rule| rule.0).collect());
}

#[test]
fn dependencies_point_one_way() {
    for (folder, ..) in ALLOWED {
        let forbidden = forbidden(folder, &manifest(folder));
        assert!(
            forbidden.is_empty(),
            "{folder} must not depend on {forbidden:?}; if it is pure and a crate of others is, too, say so here"
        );
    }
}

/// Dependencies of a crate with this manifest that its rule does not allow.
fn forbidden(folder: &str, manifest: &toml::Table) -> Vec<String> {
    let (_, inside, outside) = ALLOWED.into_iter().find(|rule| rule.0 == folder).expect("a rule");
    let is_forbidden = |name: &String| match (name.strip_prefix("stealgrid-"), outside) {
        (Some(crate_of_ours), _) => !inside.contains(&crate_of_ours),
        (None, Some(outside)) => !outside.contains(&name.as_str()),
        (None, None) => false,
    };
    dependencies(manifest).into_iter().filter(is_forbidden).collect()
}

#[test]
fn mutant_a_dependency_that_points_the_other_way_or_is_not_pure_is_noticed() {
    let manifest = "[dependencies]\nstealgrid-scheduler = \"0.1\"\nstealgrid-simulator = \"0.1\"\nrand = \"0\"\ntokio = \"1\"\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n[build-dependencies]\ncc = \"1\"\n";
    let manifest = manifest.parse().unwrap();
    assert_eq!(forbidden("protocol", &manifest), ["cc", "libc", "stealgrid-simulator", "tokio"]);
    assert_eq!(forbidden("workload", &manifest), ["stealgrid-simulator"]);
}

#[test]
fn the_network_library_is_known_in_one_folder_only() {
    let users: Vec<&str> = ALLOWED
        .iter()
        .map(|rule| rule.0)
        .filter(|folder| dependencies(&manifest(folder)).contains("libp2p"))
        .collect();
    assert_eq!(users, ["node"]);
    let inside = mentions("node/src", "libp2p");
    assert!(inside.iter().any(|path| path.starts_with("node/src/network")), "the search finds nothing");
    let strays: Vec<&PathBuf> = inside.iter().filter(|path| !path.starts_with("node/src/network")).collect();
    assert!(strays.is_empty(), "libp2p must stay in node/src/network, but is in {strays:?}");
}

#[test]
fn one_module_knows_how_messages_become_bytes() {
    assert_eq!(mentions("protocol/src", "bincode"), [PathBuf::from("protocol/src/codec.rs")]);
}

/// Files below a folder that name a word in code, not in comments.
fn mentions(folder: &str, word: &str) -> Vec<PathBuf> {
    let code = |line: &str| !line.trim_start().starts_with("//");
    let mut files = rust_files([folder]);
    files.retain(|path| {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        text.lines().any(|line| code(line) && line.contains(word))
    });
    files
}

/// Files of a crate and those of the same crate that each one uses, outside its tests.
fn uses(folder: &str) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let sources = root().join(folder).join("src");
    let files = mentions(&format!("{folder}/src"), "");
    let files: BTreeSet<PathBuf> =
        files.iter().map(|file| file.strip_prefix(format!("{folder}/src")).unwrap().to_path_buf()).collect();
    let module = |path: &[String]| {
        let stem: PathBuf = path.iter().collect();
        [stem.with_extension("rs"), stem.join("mod.rs")].into_iter().find(|file| files.contains(file))
    };
    // What is used is something in a file. Who only names a module says by that how it is called from there on.
    let file_of = |path: &[String]| match module(path) {
        Some(_) => None,
        None => (1..path.len()).rev().find_map(|length| module(&path[..length])),
    };
    let of_file = |file: &PathBuf| {
        let text = std::fs::read_to_string(sources.join(file)).unwrap();
        let lines = outside_tests(&text).lines().filter(|line| !line.trim_start().starts_with("//"));
        let paths = paths(&lines.flat_map(|line| [line, "\n"]).collect::<String>());
        let own = module_of(file);
        let absolute = |path: &Vec<String>| {
            let up = path.iter().take_while(|name| *name == "super").count();
            match path[0].as_str() {
                "crate" => Some(path[1..].to_vec()),
                "self" => Some([&own[..], &path[1..]].concat()),
                "super" => Some([&own[..own.len() - up], &path[up..]].concat()),
                _ => None,
            }
        };
        // Modules go by a short name where they are declared and where they are imported.
        let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in &paths {
            let child = [&own[..], &path[..1]].concat();
            let imported = absolute(path).filter(|path| module(path).is_some());
            for path in imported.into_iter().chain(module(&child).map(|_| child)) {
                known.insert(path.last().unwrap().clone(), path);
            }
        }
        let named = |path: &Vec<String>| {
            let known = known.get(&path[0]).filter(|_| path.len() > 1)?;
            Some([known, &path[1..]].concat())
        };
        let used = paths.iter().filter_map(|path| file_of(&absolute(path).or_else(|| named(path))?));
        used.filter(|other| other != file).collect()
    };
    files.iter().map(|file| (file.clone(), of_file(file))).collect()
}

/// A file without the module of its tests, if that is its last part. One that is a file of its own is declared anywhere.
fn outside_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

/// The names that lead from the root of a crate to what is in a file.
fn module_of(file: &Path) -> Vec<String> {
    let mut names: Vec<String> = file.iter().map(|name| name.to_str().unwrap().to_string()).collect();
    let last = names.pop().unwrap();
    let name = last.strip_suffix(".rs").unwrap();
    names.extend((!["lib", "main", "mod"].contains(&name)).then(|| name.to_string()));
    names
}

/// Paths in code, with groups taken apart: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn paths(code: &str) -> Vec<Vec<String>> {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let (mut found, mut groups, mut path, mut joined) = (Vec::new(), Vec::new(), Vec::new(), false);
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = match is_word(first) {
            true => rest.find(|character| !is_word(character)).unwrap_or(rest.len()),
            false if rest.starts_with("::") => 2,
            false => first.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        if token == "::" {
            joined = true;
            continue;
        }
        let goes_on = joined && (is_word(first) || first == '{');
        if !goes_on {
            found.push(std::mem::replace(&mut path, groups.last().cloned().unwrap_or_default()));
        }
        match first {
            '{' => groups.push(if goes_on { path.clone() } else { Vec::new() }),
            '}' => drop(groups.pop()),
            _ if is_word(first) => path.push(token.to_string()),
            _ => {}
        }
        if first == '}' {
            path = groups.last().cloned().unwrap_or_default();
        }
        joined = false;
    }
    found.retain(|path| !path.is_empty());
    found
}

/// Files that use each other, directly or not, each circle once.
fn circles(uses: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> BTreeSet<BTreeSet<PathBuf>> {
    let reached = |from: &PathBuf| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            open.extend(uses[file].iter().filter(|used| reached.insert((*used).clone())));
        }
        reached
    };
    let all: BTreeMap<&PathBuf, BTreeSet<PathBuf>> = uses.keys().map(|file| (file, reached(file))).collect();
    let circle = |file: &PathBuf| -> BTreeSet<PathBuf> {
        all[file].iter().filter(|other| all[*other].contains(file)).cloned().collect()
    };
    uses.keys().map(circle).filter(|circle| circle.len() > 1).collect()
}

/// The folder whose matter a file is: that of its own name, if there is one.
fn folder_of(file: &Path, files: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> PathBuf {
    let own = file.with_extension("");
    if files.keys().any(|other| other.starts_with(&own)) { own } else { file.parent().unwrap().to_path_buf() }
}

#[test]
fn files_use_each_other_within_one_folder_only() {
    // One crate has no folder of sources, only tests.
    for krate in ALLOWED.map(|rule| rule.0).into_iter().filter(|krate| *krate != "tests") {
        let uses = uses(krate);
        for circle in circles(&uses) {
            let folders: BTreeSet<_> = circle.iter().map(|file| folder_of(file, &uses)).collect();
            let inside = folders.len() == 1 && !folders.contains(Path::new(""));
            assert!(inside, "these files of {krate} use each other: {circle:?}");
        }
    }
}

/// Files and folders right below the sources of a crate, each taken as one, and the others that each uses.
fn rooms(krate: &str) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let room = |file: &Path| PathBuf::from(file.iter().next().unwrap()).with_extension("");
    let mut rooms: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for (file, used) in uses(krate) {
        let others = used.iter().map(|file| room(file)).filter(|other| *other != room(&file));
        rooms.entry(room(&file)).or_default().extend(others);
    }
    rooms
}

/// Commands and drivers, too.
#[test]
fn rooms_of_commands_and_drivers_use_each_other_in_no_circle() {
    for (krate, user, used) in [
        ("experiments", "drive", "experiment"),
        ("operation", "run", "serve"),
        ("coordinator", "play", "sweep"),
    ] {
        let rooms = rooms(krate);
        assert!(rooms[Path::new(user)].contains(Path::new(used)), "imports of {krate} are read");
        assert_eq!(circles(&rooms), BTreeSet::new(), "in {krate}");
    }
}

#[test]
fn rooms_of_the_laboratory_do_not_use_each_other() {
    let rooms = rooms("laboratory");
    assert!(rooms.contains_key(Path::new("chaos")), "{rooms:?}");
    let not_alone: Vec<_> = rooms.iter().filter(|(_, used)| !used.is_empty()).collect();
    assert!(not_alone.is_empty(), "{not_alone:?}");
}

/// Processes of sites can be handled for other ends than a run of an experiment.
#[test]
fn who_handles_processes_knows_no_experiment() {
    let knowing = mentions("operation/src", "experiments::");
    assert!(knowing.iter().any(|file| file.starts_with("operation/src/run")), "the search finds nothing");
    let handling = ["fleet", "spawn", "client", "registration"];
    let is_of =
        |file: &Path, room: &str| file.with_extension("").starts_with(Path::new("operation/src").join(room));
    let strays: Vec<_> =
        knowing.iter().filter(|file| handling.iter().any(|room| is_of(file, room))).collect();
    assert!(strays.is_empty(), "{strays:?}");
    let rooms = rooms("operation");
    for room in handling {
        let others: Vec<_> = rooms[Path::new(room)]
            .iter()
            .filter(|used| !handling.iter().any(|own| Path::new(own) == *used))
            .collect();
        assert!(others.is_empty(), "{room} uses {others:?}");
    }
}

#[test]
fn mutant_a_circle_is_found() {
    let graph = |edges: &[(&str, &str)]| {
        let mut uses: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (from, to) in edges {
            uses.entry(to.into()).or_default();
            uses.entry(from.into()).or_default().insert(to.into());
        }
        circles(&uses)
    };
    assert!(graph(&[("a", "b"), ("b", "c"), ("a", "c")]).is_empty());
    let found = graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]);
    assert_eq!(found, [["a", "b", "c"].map(PathBuf::from).into()].into());
    let protocol = uses("protocol");
    assert!(protocol[Path::new("engine/mod.rs")].contains(Path::new("core.rs")), "imports are read");
    let declared_first =
        "#[cfg(test)]\nmod tests;\n\nuse super::other;\n#[cfg(test)]\nmod tests {\n    use super::last;\n}\n";
    assert!(
        outside_tests(declared_first).contains("other") && !outside_tests(declared_first).contains("last")
    );
    let node = uses("node");
    assert!(node[Path::new("metrics.rs")].contains(Path::new("metrics/series.rs")), "below its tests, too");
    let coordinator = uses("coordinator");
    for (by_what, file) in [("a group", "shell.rs"), ("a name that is imported", "sweep/report.rs")] {
        assert!(coordinator[Path::new("cli.rs")].contains(Path::new(file)), "{by_what} is read");
    }
    let groups = paths("use a::{self, b::{c, d}, e}; fn f() { g::h(super::i); }");
    let groups: Vec<String> = groups.iter().map(|path| path.join("::")).collect();
    for path in ["a::self", "a::b::c", "a::b::d", "a::e", "g::h", "super::i"] {
        assert!(groups.iter().any(|found| found == path), "{path} in {groups:?}");
    }
}

/// Which family of strategies is on only the family itself knows, and the lists of them all, of what each says and of what each can be told.
#[test]
fn nobody_asks_which_family_is_on() {
    for word in ["Strategy::", "Stealing", "Balancer", "Exchange", "Desk", "Reporter", "steal::", "balance::"]
    {
        let outside = |path: &&PathBuf| {
            let inside = [
                "steal",
                "balance",
                "pool",
                "broker",
                "opaque",
                "families.rs",
                "config.rs",
                "lib.rs",
                "message/mod.rs",
                "local.rs",
                "engine/example.rs",
            ];
            !inside.iter().any(|own| path.starts_with(Path::new("protocol/src").join(own)))
        };
        let found = mentions("protocol/src", word);
        let strays: Vec<&PathBuf> = found.iter().filter(outside).collect();
        assert!(strays.is_empty(), "{word} is named in {strays:?}");
        assert!(!found.is_empty(), "the search for {word} finds nothing");
    }
}

/// Files that may name strategies, besides those of their names and of [`scheduler::strategy::Nature`]: families and
/// references, what is proved of each and what each may do, and who makes one. Others ask for the nature of what they have.
const NAMES_OF_STRATEGIES: [&str; 15] = [
    "protocol/src/families.rs",
    "protocol/src/steal/lists.rs",
    "brokers/src/ideal/broker.rs",
    "scheduler/src/ideal/pool.rs",
    "scheduler/src/local/grid.rs",
    "claims/src/ideal.rs",
    "claims/src/identities.rs",
    "claims/src/invariants.rs",
    "analysis/src/theory.rs",
    "analysis/src/waits/rules.rs",
    // The twin of those rules, in tests only.
    "analysis/src/waits/naive.rs",
    "simulator/src/swarm/brokers.rs",
    "simulator/src/swarm/drawing.rs",
    "experiments/src/drive/ideal.rs",
    "experiments/src/experiment/commands.rs",
];

/// Whether code outside of tests names a strategy, or gives all of them another name.
fn names_a_strategy(text: &str) -> bool {
    let code = outside_tests(text).lines().filter(|line| !line.trim_start().starts_with("//"));
    code.into_iter().any(|line| {
        let is_one =
            |rest: &str| rest.starts_with(|first: char| first.is_ascii_uppercase() || "{*".contains(first));
        line.split("Strategy::").skip(1).any(is_one) || line.contains("Strategy as ")
    })
}

#[test]
fn which_strategy_is_on_is_asked_of_its_nature() {
    let sources = ALLOWED.map(|rule| format!("{}/src", rule.0));
    let sources = sources.iter().map(String::as_str).filter(|folder| root().join(folder).exists());
    let names = |path: &PathBuf| names_a_strategy(&std::fs::read_to_string(root().join(path)).unwrap());
    let found: BTreeSet<PathBuf> = rust_files(sources)
        .into_iter()
        .filter(|path| !path.starts_with("scheduler/src/strategy") && names(path))
        .collect();
    assert_eq!(found, NAMES_OF_STRATEGIES.map(PathBuf::from).into());
}

#[test]
fn mutant_who_names_a_strategy_is_noticed() {
    for code in [
        "let per_event = peer.strategy == Strategy::Local;",
        "if matches!(strategy, scheduler::Strategy::Pool(_)) {",
        "use scheduler::Strategy as Way;",
        "use scheduler::Strategy::{Local, Pool};",
    ] {
        assert!(names_a_strategy(code), "{code}");
    }
    for code in [
        "// Not under Strategy::Local.",
        "let all = Strategy::all();",
        "use scheduler::{Strategy, StrategySpec};",
        "#[cfg(test)]\nmod tests {\n    let strategy = Strategy::Local;\n}",
    ] {
        assert!(!names_a_strategy(code), "{code}");
    }
}

/// Files of tests that no program holds: where a crate links one program, a file that it does not name is never compiled.
fn unnamed(program: &str, files: &[String]) -> Vec<String> {
    let is_named = |file: &&String| {
        let module = file.trim_end_matches(".rs");
        program.lines().any(|line| line.strip_prefix("mod ").is_some_and(|rest| rest == format!("{module};")))
    };
    files.iter().filter(|file| *file != "main.rs" && !is_named(file)).cloned().collect()
}

#[test]
fn every_file_of_tests_is_in_a_program() {
    let mut looked_at = 0;
    for (folder, ..) in ALLOWED {
        let program = root().join(folder).join("tests/main.rs");
        let Ok(program) = std::fs::read_to_string(program) else { continue };
        let files = std::fs::read_dir(root().join(folder).join("tests")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let names: Vec<String> = names.filter(|name| name.ends_with(".rs")).collect();
        let missing = unnamed(&program, &names);
        assert!(
            missing.is_empty(),
            "{folder}/tests/main.rs does not name these, so they are never run: {missing:?}"
        );
        looked_at += names.len();
    }
    assert!(looked_at > 80, "{looked_at}");
}

#[test]
fn mutant_a_file_of_tests_that_no_program_names_is_noticed() {
    let files = ["main.rs", "grid.rs", "grid_of_names.rs"].map(String::from);
    assert_eq!(unnamed("mod grid;\n", &files), ["grid_of_names.rs"]);
    assert_eq!(unnamed("#[cfg(feature = \"otel\")]\nmod grid_of_names;\nmod grid;\n", &files), [""; 0]);
}

/// Who opens the first page of a crate sees what it is, and an example that runs as a test.
#[test]
fn the_first_page_of_each_crate_has_an_example() {
    let without: Vec<&str> =
        ALLOWED.iter().map(|(folder, ..)| *folder).filter(|folder| !has_example(&front(folder))).collect();
    assert!(without.is_empty(), "no example on the first page of {without:?}");
    assert!(
        !has_example("//! A crate.\n//! ```text\n//! a -> b\n//! ```\n//! Words.\n"),
        "a picture is none"
    );
}

fn front(folder: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let files = [root.join("src/lib.rs"), root.join("lib.rs")];
    let text =
        files.iter().find_map(|file| std::fs::read_to_string(file).ok()).expect("a crate has a library");
    text.lines().take_while(|line| line.starts_with("//!")).map(|line| format!("{line}\n")).collect()
}

/// Whether documentation has a block of Rust: the fences of others name their language where they open.
fn has_example(documentation: &str) -> bool {
    let mut fences = documentation.lines().filter(|line| line.starts_with("//! ```")).step_by(2);
    fences.any(|fence| fence == "//! ```")
}
