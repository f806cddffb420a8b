//! Max-min shares of links beside those of SimGrid's solver, where its library is installed (Debian: libsimgrid-dev); else a loud skip.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use scheduler::draw::Draw;
use scheduler::sharing::{Fairness, Flow, assign};

/// How far two shares may be apart that are the same, as a part of them.
const TOLERANCE: f64 = 1e-9;
const NETWORKS: u64 = 150;

fn network(seed: u64) -> (Vec<f64>, Vec<Flow>) {
    let mut draw = Draw::of_stream(seed, 19);
    let capacities: Vec<f64> = (0..1 + draw.below(6)).map(|_| draw.between(10.0, 100.0)).collect();
    let flows = (0..1 + draw.below(8)).map(|_| {
        let mut links: Vec<usize> = (0..capacities.len()).collect();
        draw.shuffle(&mut links);
        links.truncate(1 + draw.below(capacities.len()));
        Flow { demand: draw.between(1.0, 80.0), links: links.into_iter().map(|link| (link, 1.0)).collect() }
    });
    let flows = flows.collect();
    (capacities, flows)
}

/// The program that asks SimGrid; none where it cannot be built.
fn oracle() -> Option<std::path::PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("simgrid/shares.cpp");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("simgrid-shares");
    let built = Command::new("c++")
        .args(["-std=c++17", "-O1"])
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .arg("-lsimgrid")
        .output();
    let reason = match built {
        Ok(built) if built.status.success() => return Some(program),
        Ok(built) => String::from_utf8_lossy(&built.stderr).lines().next().unwrap_or_default().to_string(),
        Err(error) => format!("c++: {error}"),
    };
    eprintln!(
        "SKIPPED: max-min shares are not compared with SimGrid; install libsimgrid-dev and a C++ compiler ({reason})"
    );
    None
}

#[test]
fn max_min_shares_are_those_of_simgrid() {
    let Some(program) = oracle() else { return };
    let drawn: Vec<(Vec<f64>, Vec<Flow>)> = (0..NETWORKS).map(network).collect();
    let mut text = format!("{NETWORKS}\n");
    for (capacities, flows) in &drawn {
        writeln!(text, "{} {}", capacities.len(), flows.len()).unwrap();
        capacities.iter().for_each(|capacity| write!(text, "{capacity} ").unwrap());
        for flow in flows {
            write!(text, "\n{} {}", flow.demand, flow.links.len()).unwrap();
            flow.links.iter().for_each(|(link, _)| write!(text, " {link}").unwrap());
        }
        text.push('\n');
    }
    let mut asked = Command::new(program)
        .arg("--log=root.thres:error")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was just built");
    asked.stdin.take().expect("it is piped").write_all(text.as_bytes()).expect("it reads all");
    let answered = asked.wait_with_output().expect("it ends");
    assert!(answered.status.success(), "{:?}", answered.status);
    let said = String::from_utf8(answered.stdout).expect("numbers");
    let mut said = said.lines().map(|line| line.parse::<f64>().expect("a number"));
    let mut proportional = 0;
    for (seed, (capacities, flows)) in drawn.iter().enumerate() {
        let ours = assign(Fairness::MaxMin, capacities, flows);
        let others: Vec<f64> = said.by_ref().take(flows.len()).collect();
        assert_eq!(ours.len(), others.len(), "seed {seed}");
        let is_same = |ours: &[f64]| {
            ours.iter().zip(&others).all(|(own, other)| (own - other).abs() <= TOLERANCE * other.max(1.0))
        };
        assert!(is_same(&ours), "seed {seed}: {ours:?}, and SimGrid says {others:?}");
        proportional += usize::from(is_same(&assign(Fairness::Proportional, capacities, flows)));
    }
    assert!(said.next().is_none(), "it says no more");
    // The printed rule is another one, which this would tell.
    assert!(proportional < drawn.len() / 2, "{proportional} of {}", drawn.len());
}
