//! What a seed stands for: how a round is run, and which faults strike it when. A pure function of the seed and of the
//! shape of the experiment.
//!
//! When a fault strikes is wall time, so what it hits is not the same twice. What is carried out, and how, is in
//! [`super::round`].

use std::fmt;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// So many rounds have heartbeats and a lease.
const LEASE_SHARE: f64 = 0.5;
/// Of those, so many start no node again that has ended.
const NO_RESTART_SHARE: f64 = 0.25;
/// So many rounds damage or lose journals, too: in the others no job may be missing, whatever strikes.
const DAMAGE_SHARE: f64 = 0.3;
/// So many faults come within [`CLOSE_MS`] of the one before.
const CLOSE_SHARE: f64 = 0.3;
/// Milliseconds between faults that are close to each other.
const CLOSE_MS: u64 = 20;
/// So many rounds are struck before their clocks start.
const EARLY_SHARE: f64 = 0.1;
/// Milliseconds from the start of the coordinator until then, at most: a run is there in less.
const EARLY_MS: u64 = 2_000;

/// Milliseconds that a process stands still, at most: longer than the shortest lease of a run.
const STOP_MS: u64 = 4_500;
/// Milliseconds without room or descriptors, at most.
const WANT_MS: u64 = 2_500;
/// Milliseconds until somebody attaches, at most.
const ATTACH_MS: u64 = 2_000;
/// Milliseconds that an attaching coordinator lives, at most, if it is to be killed while it attaches.
const ATTACHING_MS: u64 = 1_200;
/// Milliseconds that a successor lives, at most.
const SUCCESSOR_MS: u64 = 300;

/// What is drawn for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// How many sites the grid has.
    pub sites: usize,
    /// Milliseconds of wall time in which faults strike, from the start of the clocks.
    pub span_ms: u64,
    /// How many faults there are, at most; at least one.
    pub faults_max: usize,
}

/// How a round is run, and what strikes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Schedule {
    /// It is all drawn from this.
    pub seed: u64,
    /// `node.journal`.
    pub journal: Durability,
    /// Heartbeats and a lease, if any.
    pub lease: Option<Lease>,
    /// `node.restart`.
    pub restart: bool,
    /// `node.interrupted`.
    pub interrupted: Interrupted,
    /// Whether a process that reaches its limit on the size of files gets an error, and not the signal that ends it.
    pub limits_are_errors: bool,
    /// Which folder is a file system of its own.
    pub disk: Disk,
    /// Strikes before the clocks start; the run is started again then.
    pub early: Option<Early>,
    /// In order of time.
    pub faults: Vec<Fault>,
}

/// How long a journal lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Through the end of the process.
    Process,
    /// Through a crash of the machine.
    Disk,
}

/// What becomes of jobs that a crash interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Interrupted {
    /// They wait again.
    Requeue,
    /// They are reported as killed.
    Kill,
}

/// Times of the failure detector, in milliseconds of wall time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lease {
    /// `protocol.heartbeat`.
    pub heartbeat_ms: u64,
    /// `protocol.suspect_after`.
    pub suspect_after_ms: u64,
    /// `protocol.lease`.
    pub lease_ms: u64,
}

/// What is on a small file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Disk {
    /// The data directory of one site, by its place in the grid.
    Site(usize),
    /// All nodes: their directories, configurations and logs.
    Nodes,
    /// The whole result directory, that of the coordinator with it.
    All,
}

/// A kill before the clocks start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Early {
    /// Milliseconds from the start of the coordinator on.
    pub after_ms: u64,
    /// Which node; the coordinator if none.
    pub site: Option<usize>,
}

/// Something that strikes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Milliseconds of wall time from the start of the clocks.
    pub at_ms: u64,
    /// What is done at that time, and to whom.
    pub what: What,
}

/// What a fault does. Sites are places in the grid, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// SIGKILL to these nodes at once; then to each successor of the first, so many milliseconds after its process
    /// appeared.
    Kill {
        /// The nodes that are killed, as places in the grid; only the first has successors that are.
        sites: Vec<usize>,
        /// When each successor is killed.
        again_ms: Vec<u64>,
    },
    /// SIGSTOP, and SIGCONT later.
    Stop {
        /// The node that stands still.
        site: usize,
        /// How long it stands still.
        for_ms: u64,
    },
    /// The small file system is filled up to so much room.
    Full {
        /// KiB that are left.
        room_kib: u64,
        /// Until there is room again.
        for_ms: u64,
    },
    /// The node may write no file beyond the size that its journal has, and so much more.
    FileLimit {
        /// The node that gets the limit.
        site: usize,
        /// KiB that it may grow.
        room_kib: u64,
        /// Until the limit is gone.
        for_ms: u64,
    },
    /// The process may open so many files beyond those that are open.
    Descriptors {
        /// The site; the coordinator if none: what it starts meanwhile inherits the limit.
        site: Option<usize>,
        /// How many more.
        spare: u64,
        /// Until the limit is gone.
        for_ms: u64,
    },
    /// The node is killed, and its journal damaged while it is down.
    Damage {
        /// The node that is killed.
        site: usize,
        /// Which file of its journal is damaged.
        file: JournalFile,
        /// What is done to it.
        harm: Harm,
    },
    /// The node is killed, and its data directory is gone.
    Lose {
        /// The node that is killed.
        site: usize,
    },
    /// SIGSTOP to the coordinator, and SIGCONT later.
    StopCoordinator {
        /// How long it stands still.
        for_ms: u64,
    },
    /// SIGKILL to the coordinator; then `stealgrid attach`, once for each entry.
    KillCoordinator {
        /// Who attaches when.
        attach: Vec<Attach>,
    },
}

/// A file of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum JournalFile {
    /// The database itself, `journal.sqlite`.
    Database,
    /// Its write-ahead log.
    Log,
}

/// What is done to a file. Places are thousandths of its length.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Harm {
    /// One bit each is turned over.
    Flip {
        /// Places of the bytes that are changed, in thousandths.
        permille: Vec<u16>,
        /// Which bit of the byte.
        bit: u8,
    },
    /// It ends there.
    Truncate {
        /// Place of the new end, in thousandths.
        permille: u16,
    },
    /// Other bytes stand there.
    Garbage {
        /// Place of the first such byte, in thousandths.
        permille: u16,
        /// How many bytes are replaced.
        bytes: u16,
    },
}

/// A coordinator that attaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Attach {
    /// Milliseconds after the end of the one before.
    pub after_ms: u64,
    /// Milliseconds that it lives, if it is killed while it attaches.
    pub killed_after_ms: Option<u64>,
}

impl Schedule {
    /// Draws what a seed stands for.
    pub fn draw(seed: u64, shape: Shape) -> Schedule {
        let stream = |number| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            rng.set_stream(number);
            rng
        };
        let mut rng = stream(1);
        let lease = rng.random_bool(LEASE_SHARE).then(|| Lease {
            heartbeat_ms: rng.random_range(100..=300),
            suspect_after_ms: rng.random_range(1_000..=1_500),
            lease_ms: rng.random_range(3_000..=4_000),
        });
        let mut schedule = Schedule {
            seed,
            journal: if rng.random_bool(0.75) { Durability::Process } else { Durability::Disk },
            lease,
            restart: lease.is_none() || !rng.random_bool(NO_RESTART_SHARE),
            interrupted: if rng.random_bool(0.9) { Interrupted::Requeue } else { Interrupted::Kill },
            limits_are_errors: rng.random_bool(0.5),
            disk: match rng.random_range(0..4) {
                0 => Disk::All,
                1 => Disk::Nodes,
                _ => Disk::Site(rng.random_range(0..shape.sites)),
            },
            early: None,
            faults: Vec::new(),
        };
        schedule.early = early(&mut stream(2), shape);
        schedule.faults = faults(&mut stream(3), &schedule, shape);
        schedule
    }

    /// Keeps the faults in these places alone.
    pub fn keep(&mut self, places: &[usize]) {
        let mut place = 0;
        self.faults.retain(|_| {
            place += 1;
            places.contains(&(place - 1))
        });
    }
}

fn early(rng: &mut ChaCha8Rng, shape: Shape) -> Option<Early> {
    rng.random_bool(EARLY_SHARE).then(|| Early {
        after_ms: rng.random_range(0..=EARLY_MS),
        site: rng.random_bool(0.6).then(|| rng.random_range(0..shape.sites)),
    })
}

fn faults(rng: &mut ChaCha8Rng, schedule: &Schedule, shape: Shape) -> Vec<Fault> {
    let damages = rng.random_bool(DAMAGE_SHARE);
    let count = rng.random_range(1..=shape.faults_max);
    let mut at_ms: Vec<u64> = (0..count).map(|_| rng.random_range(0..=shape.span_ms)).collect();
    at_ms.sort_unstable();
    for place in 1..count {
        if rng.random_bool(CLOSE_SHARE) {
            at_ms[place] = at_ms[place - 1] + rng.random_range(0..=CLOSE_MS);
        }
    }
    at_ms.sort_unstable();
    // Who ends is gone for good then: one site stays.
    let mut mortal = match schedule.restart {
        true => (0..shape.sites).collect(),
        false => {
            let stays = rng.random_range(0..shape.sites);
            let others: Vec<usize> = (0..shape.sites).filter(|site| *site != stays).collect();
            others.sample(rng, shape.sites / 2).copied().collect::<Vec<_>>()
        }
    };
    mortal.sort_unstable();
    let one_of = |rng: &mut ChaCha8Rng, sites: &[usize]| sites.choose(rng).copied().unwrap_or(0);
    let what = |rng: &mut ChaCha8Rng| {
        let any = rng.random_range(0..shape.sites);
        let kind = rng.random_range(0..if damages { 24 } else { 20 });
        match kind {
            0..6 => {
                let count = [1, 1, 1, 2, 3, shape.sites][rng.random_range(0..6usize)];
                let mut sites: Vec<usize> = mortal.sample(rng, count).copied().collect();
                sites.sort_unstable();
                let again = if schedule.restart { rng.random_range(0..=3) } else { 0 };
                let again_ms = (0..again).map(|_| rng.random_range(0..=SUCCESSOR_MS)).collect();
                What::Kill { sites, again_ms }
            }
            6..10 => What::Stop { site: any, for_ms: rng.random_range(1..=STOP_MS) },
            10 if schedule.restart => {
                What::Full { room_kib: rng.random_range(0..=64), for_ms: rng.random_range(100..=WANT_MS) }
            }
            10..12 => What::FileLimit {
                site: one_of(rng, &mortal),
                room_kib: rng.random_range(0..=64),
                for_ms: rng.random_range(100..=WANT_MS),
            },
            12..14 => What::Descriptors {
                // What a coordinator does about it ends nodes that would be gone for good.
                site: (!schedule.restart || rng.random_bool(0.75)).then(|| one_of(rng, &mortal)),
                spare: rng.random_range(0..=4),
                for_ms: rng.random_range(100..=WANT_MS),
            },
            14..16 => What::StopCoordinator { for_ms: rng.random_range(1..=STOP_MS) },
            16..20 => What::KillCoordinator { attach: attach(rng) },
            20..23 => What::Damage { site: one_of(rng, &mortal), file: file(rng), harm: harm(rng) },
            _ => What::Lose { site: one_of(rng, &mortal) },
        }
    };
    at_ms.into_iter().map(|at_ms| Fault { at_ms, what: what(rng) }).collect()
}

fn attach(rng: &mut ChaCha8Rng) -> Vec<Attach> {
    let killed = [0, 0, 1, 2][rng.random_range(0..4usize)];
    let after_ms = |rng: &mut ChaCha8Rng| match rng.random_bool(0.5) {
        true => rng.random_range(0..=50),
        false => rng.random_range(0..=ATTACH_MS),
    };
    let mut attach: Vec<Attach> = (0..killed)
        .map(|_| Attach {
            after_ms: after_ms(rng),
            killed_after_ms: Some(rng.random_range(0..=ATTACHING_MS)),
        })
        .collect();
    attach.push(Attach { after_ms: after_ms(rng), killed_after_ms: None });
    attach
}

fn file(rng: &mut ChaCha8Rng) -> JournalFile {
    if rng.random_bool(0.5) { JournalFile::Database } else { JournalFile::Log }
}

fn harm(rng: &mut ChaCha8Rng) -> Harm {
    match rng.random_range(0..3) {
        0 => {
            let flips = rng.random_range(1..=3);
            let permille = (0..flips).map(|_| rng.random_range(0..1000)).collect();
            Harm::Flip { permille, bit: rng.random_range(0..8) }
        }
        1 => Harm::Truncate { permille: rng.random_range(0..1000) },
        _ => Harm::Garbage { permille: rng.random_range(0..1000), bytes: rng.random_range(1..=4096) },
    }
}

impl What {
    /// In a word, for counts.
    pub fn name(&self) -> &'static str {
        match self {
            What::Kill { .. } => "kill",
            What::Stop { .. } => "stop",
            What::Full { .. } => "full disk",
            What::FileLimit { .. } => "limit on file size",
            What::Descriptors { .. } => "no descriptors",
            What::Damage { .. } => "damaged journal",
            What::Lose { .. } => "lost directory",
            What::StopCoordinator { .. } => "stopped coordinator",
            What::KillCoordinator { .. } => "killed coordinator",
        }
    }
}

impl fmt::Display for Schedule {
    /// A line for how it is run, and one for each fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Schedule { seed, journal, restart, interrupted, limits_are_errors, disk, .. } = self;
        write!(f, "seed {seed}: journal {journal:?}, restart {restart}, interrupted {interrupted:?}, ")?;
        match self.lease {
            Some(Lease { heartbeat_ms, suspect_after_ms, lease_ms }) => {
                write!(
                    f,
                    "heartbeat {heartbeat_ms} ms, suspect {suspect_after_ms} ms, lease {lease_ms} ms, "
                )?;
            }
            None => write!(f, "no lease, ")?,
        }
        writeln!(f, "disk {disk:?}, limits are errors {limits_are_errors}")?;
        if let Some(Early { after_ms, site }) = self.early {
            writeln!(f, "before the start: kill {site:?} after {after_ms} ms")?;
        }
        for (place, Fault { at_ms, what }) in self.faults.iter().enumerate() {
            writeln!(f, "{place}: at {at_ms} ms {what:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use sha2::{Digest as _, Sha256};

    use super::*;

    const SHAPE: Shape = Shape { sites: 7, span_ms: 6_000, faults_max: 20 };

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let texts = |seeds: std::ops::Range<u64>| -> String {
            seeds.map(|seed| Schedule::draw(seed, SHAPE).to_string()).collect()
        };
        assert_eq!(texts(0..200), texts(0..200));
        // On every machine: what a printed seed stands for changes only with the drawing, and then here.
        let sum = Sha256::digest(texts(0..200).as_bytes());
        assert_eq!(experiments::hex::hex(&sum[..8]), "ccc5b55b20479ce6");
    }

    #[test]
    fn everything_is_drawn_and_within_its_bounds() {
        let (mut names, mut kinds) = (BTreeSet::new(), BTreeSet::new());
        for seed in 0..500 {
            let schedule = Schedule::draw(seed, SHAPE);
            assert!((1..=SHAPE.faults_max).contains(&schedule.faults.len()), "{schedule}");
            assert!(schedule.faults.is_sorted_by_key(|fault| fault.at_ms), "{schedule}");
            assert!(schedule.restart || schedule.lease.is_some(), "nobody would take over: {schedule}");
            names.extend(schedule.faults.iter().map(|fault| fault.what.name()));
            kinds.insert((
                schedule.lease.is_some(),
                schedule.restart,
                schedule.journal == Durability::Disk,
                schedule.interrupted == Interrupted::Kill,
            ));
            for fault in &schedule.faults {
                if let What::Kill { sites, .. } = &fault.what {
                    assert!(!sites.is_empty() && sites.iter().all(|site| *site < SHAPE.sites), "{schedule}");
                }
            }
        }
        assert_eq!(names.len(), 9, "{names:?}");
        assert!(kinds.len() >= 10, "{kinds:?}");
    }

    #[test]
    fn faults_can_be_left_out() {
        let mut schedule = Schedule::draw(3, Shape { faults_max: 20, ..SHAPE });
        let all = schedule.faults.clone();
        assert!(all.len() >= 2);
        schedule.keep(&[1]);
        assert_eq!(schedule.faults, [all[1].clone()]);
    }
}
