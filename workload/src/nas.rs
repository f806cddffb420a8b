//! The parallel jobs of M-CISNE's experiments: eighteen NAS benchmarks, and arrivals by a Poisson process.
//!
//! After appendix D of J. Ll. Lérida's thesis (Universitat de Lleida). [`APPLICATIONS`] is its table D.1, [`Nas`] the generator of
//! D.1.1.1 as the experiments use it (§3.5, §4.3.3, §4.4.4), [`closest`] its rule for records of another source. What an
//! application does to nodes and links is of the grid.
//!
//! Anomalies of the source, and how they are read:
//!
//! - Columns "CPU (%)" have values from 120 to 11939, which are no percent. Read as jiffies of 10 ms they give a share of the run time
//!   between 0 and 1 in every row; so they are read.
//! - MG.A on 8 nodes has 120 jiffies, which may be a misprint of 420 (a share of 0.47 and not 0.13). It is kept as printed.
//! - "18 applications, 8 IS and 8 MG" are nine of each: three node counts times three classes.
//! - IS.A and IS.AB take as long on 8 nodes as on 2, as printed, and IS.B on 4 as on 2.
//! - What an application sends (PNBW) is not in the table: [`Application::bandwidth`] is ours.
//! - Records of the model of Feitelson (1996), which D.1.1.1 replaces by the closest applications, are not made here: the experiments draw
//!   applications at random from the set.

use std::str::FromStr;

use scheduler::spelling::unknown;
use scheduler::{Span, TimedJob};

use crate::draw::Draw;
use crate::record::Record;
use crate::trace::{Format, Trace};

/// One row of table D.1: a benchmark on so many nodes, which counts as a program of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Application {
    /// Benchmark, class and nodes, as in `is.a.2`.
    pub name: &'static str,
    /// Nodes, with one task each.
    pub nodes: u32,
    /// Processor time of a task, in jiffies of 10 ms.
    pub jiffies: u32,
    /// Memory of a task, in MB of 1024 KB.
    pub memory: u32,
    /// Run time on idle nodes of full power, in seconds.
    pub seconds: u32,
}

const fn row(name: &'static str, nodes: u32, [jiffies, memory, seconds]: [u32; 3]) -> Application {
    Application { name, nodes, jiffies, memory, seconds }
}

/// Table D.1. An application's number, field 14 of SWF, is its place from 1.
pub const APPLICATIONS: [Application; 18] = [
    row("is.a.2", 2, [1015, 150, 19]),
    row("is.a.4", 4, [695, 73, 19]),
    row("is.a.8", 8, [602, 37, 19]),
    row("is.ab.2", 2, [2438, 297, 29]),
    row("is.ab.4", 4, [1600, 144, 29]),
    row("is.ab.8", 8, [1139, 74, 29]),
    row("is.b.2", 2, [5326, 593, 69]),
    row("is.b.4", 4, [3216, 285, 69]),
    row("is.b.8", 8, [2455, 152, 49]),
    row("mg.a.2", 2, [2133, 227, 29]),
    row("mg.a.4", 4, [984, 117, 19]),
    row("mg.a.8", 8, [120, 62, 9]),
    row("mg.ab.2", 2, [6746, 227, 79]),
    row("mg.ab.4", 4, [3448, 117, 39]),
    row("mg.ab.8", 8, [1294, 62, 19]),
    row("mg.b.2", 2, [11939, 227, 130]),
    row("mg.b.4", 4, [5961, 117, 69]),
    row("mg.b.8", 8, [1640, 62, 39]),
];

/// Tasks of IS, which sends keys from all to all, in Mbit/s: the middle of the range of §4.6.3 on a link of 1 Gbit/s. Ours.
const IS_MBIT: u32 = 500;
/// Tasks of MG, which sends to neighbours, in Mbit/s: the lower end of that range. Ours.
const MG_MBIT: u32 = 250;

impl Application {
    /// The share of its run time on idle nodes in which it computes, from 0 to 1.
    pub fn computing(&self) -> f64 {
        f64::from(self.jiffies) / 100.0 / f64::from(self.seconds)
    }

    /// What each task takes of the link of its node while it communicates (PNBW), in Mbit/s.
    pub fn bandwidth(&self) -> u32 {
        if self.name.starts_with("is.") { IS_MBIT } else { MG_MBIT }
    }

    /// Memory of a task in KB.
    pub fn memory_kb(&self) -> i64 {
        i64::from(self.memory) * 1024
    }
}

/// Which applications come more often (D.1.1.1, which names the flavours and no numbers).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavor {
    /// All alike.
    #[default]
    Balanced,
    /// Those that compute for half of their time or more, [`FAVORED`] times as often.
    Computing,
    /// Those that communicate for more than half of their time, as much.
    Communicating,
}

/// How much more often an application of the flavor comes than another: enough to tell flavors apart in some dozen jobs. Ours.
pub const FAVORED: usize = 3;

impl Flavor {
    /// All of them by name, the default first.
    pub const ALL: [(&'static str, Flavor); 3] = [
        ("balanced", Flavor::Balanced),
        ("computing", Flavor::Computing),
        ("communicating", Flavor::Communicating),
    ];

    /// How often an application comes, relative to others.
    fn weight(self, application: &Application) -> usize {
        let computes = application.jiffies * 2 >= application.seconds * 100;
        let favored = match self {
            Flavor::Balanced => false,
            Flavor::Computing => computes,
            Flavor::Communicating => !computes,
        };
        if favored { FAVORED } else { 1 }
    }
}

impl FromStr for Flavor {
    type Err = String;

    fn from_str(text: &str) -> Result<Flavor, String> {
        let found = Flavor::ALL.into_iter().find(|(name, _)| *name == text);
        found
            .map(|(_, flavor)| flavor)
            .ok_or_else(|| unknown("flavor", text, "balanced, computing or communicating"))
    }
}

/// The generator: so many jobs, applications drawn from the table, and times between arrivals that are exponential.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nas {
    /// How many jobs, at least 1.
    pub jobs: usize,
    /// The mean time between two arrivals.
    pub interarrival: Span,
    /// Which applications come more often.
    pub flavor: Flavor,
    /// Applications on more nodes are not drawn; at least 2.
    pub nodes: u32,
    /// The probability that a job fails (D.1.1.1), from 0 to 1: it then ends after a uniform part of its run time, as an
    /// error that the executor sees. When is ours.
    pub failing: f64,
    /// How many users the jobs are of, each as often; 0 if they are nobody's, as in the thesis, which names users (`User` of Table B) and
    /// says nothing of how many there are.
    pub users: u32,
}

/// The stream of random numbers of these jobs: beyond those of the other models.
const STREAM: u64 = 1 << 43;
/// That of whose they are, which changes nothing of the rest.
const USER_STREAM: u64 = STREAM + 1;
/// SWF field 11: failed, and completed.
const FAILED: i32 = 0;
const COMPLETED: i32 = 1;

impl Nas {
    /// The jobs of a seed as a log. Requested times are those of the table.
    ///
    /// # Panics
    /// If no application is on so few nodes.
    pub fn trace(&self, seed: u64) -> Trace {
        let mut draw = Draw::of_stream(seed, STREAM);
        let mut draw_user = Draw::of_stream(seed, USER_STREAM);
        // Each as often as it weighs.
        let deck: Vec<usize> = (0..APPLICATIONS.len())
            .filter(|&index| APPLICATIONS[index].nodes <= self.nodes)
            .flat_map(|index| std::iter::repeat_n(index, self.flavor.weight(&APPLICATIONS[index])))
            .collect();
        let mut trace = Trace::empty("m-cisne", Format::Swf);
        let mean = self.interarrival.as_micros() as f64;
        let mut arrival = 0.0;
        trace.records.reserve_exact(self.jobs);
        for job in 1..=self.jobs as i64 {
            // Each job has three numbers, so that one option changes nothing that another one decides.
            let [gap, application, failure] = [draw.uniform(), draw.uniform(), draw.uniform()];
            arrival -= mean * (1.0 - gap).ln();
            let index = deck[(application * deck.len() as f64) as usize];
            let Application { nodes, seconds, .. } = APPLICATIONS[index];
            let whole = Span::from_secs(i64::from(seconds));
            let fails = failure < self.failing;
            // Where it fails, the number is uniform below the probability.
            let part = if fails { failure / self.failing } else { 1.0 };
            let run_time = ((whole.as_micros() as f64 * part).round() as i64).max(1);
            let processors = i32::try_from(nodes).expect("8 at most");
            let user = match self.users {
                0 => Record::default().user,
                users => 1 + (draw_user.uniform() * f64::from(users)) as i32,
            };
            trace.records.push(Record {
                job,
                submit: Span::from_micros(arrival.round() as i64),
                run_time: Span::from_micros(run_time),
                allocated: processors,
                requested: processors,
                requested_time: whole,
                requested_memory: APPLICATIONS[index].memory_kb(),
                status: if fails { FAILED } else { COMPLETED },
                executable: number(index),
                user,
                ..Record::default()
            });
        }
        trace
    }
}

/// The number of an application, by its place.
fn number(index: usize) -> i32 {
    i32::try_from(index + 1).expect("18 at most")
}

/// The number and the row of the application that is closest to a record (D.1.1.1): by nodes first, then by time, each as a ratio; of
/// equally close ones the first. The thesis names no distance.
///
/// # Panics
/// If there are no nodes.
pub fn closest(nodes: u32, time: Span) -> (i32, &'static Application) {
    assert!(nodes > 0, "a job has nodes");
    let micros = u64::try_from(time.as_micros()).unwrap_or(0).max(1);
    let distance = |application: &Application| {
        let seconds = u64::from(application.seconds) * 1_000_000;
        [ratio(nodes.into(), application.nodes.into()), ratio(micros, seconds)]
    };
    let mut best = 0;
    for (index, application) in APPLICATIONS.iter().enumerate() {
        let (this, least) = (distance(application), distance(&APPLICATIONS[best]));
        let order = this[0].compare(least[0]).then(this[1].compare(least[1]));
        if order.is_lt() {
            best = index;
        }
    }
    (number(best), &APPLICATIONS[best])
}

/// The larger of two numbers over the smaller one.
#[derive(Clone, Copy)]
struct Ratio(u64, u64);

fn ratio(a: u64, b: u64) -> Ratio {
    Ratio(a.max(b), a.min(b))
}

impl Ratio {
    fn compare(self, other: Ratio) -> std::cmp::Ordering {
        (u128::from(self.0) * u128::from(other.1)).cmp(&(u128::from(other.0) * u128::from(self.1)))
    }
}

/// Has jobs of another log be of these applications: each executable of the log is the application that is [`closest`] to the
/// median width and the median requested time of its jobs, and jobs without an executable are each for themselves. They keep their
/// width, times, and memory if they ask for some. Run times are not looked at, as schedulers see what a job's program is.
pub fn assign(jobs: &mut [TimedJob]) {
    let mut groups: std::collections::BTreeMap<i32, Vec<(u32, Span)>> = Default::default();
    let known = |job: &TimedJob| Some(job.spec.labels.executable).filter(|&executable| executable > 0);
    for job in jobs.iter() {
        if let Some(executable) = known(job) {
            groups.entry(executable).or_default().push((job.spec.processors, job.spec.requested));
        }
    }
    let of_group = |mut shapes: Vec<(u32, Span)>| {
        let middle = shapes.len() / 2;
        let nodes = shapes.select_nth_unstable_by_key(middle, |&(nodes, _)| nodes).1.0;
        let time = shapes.select_nth_unstable_by_key(middle, |&(_, time)| time).1.1;
        closest(nodes, time)
    };
    let applications: std::collections::BTreeMap<i32, (i32, &Application)> =
        groups.into_iter().map(|(executable, shapes)| (executable, of_group(shapes))).collect();
    for job in jobs {
        let (number, application) = match known(job) {
            Some(executable) => applications[&executable],
            None => closest(job.spec.processors, job.spec.requested),
        };
        job.spec.labels.executable = number;
        if job.spec.labels.memory <= 0 {
            job.spec.labels.memory = application.memory_kb();
        }
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, JobSpec, Labels, SiteId, Time};

    use super::*;

    const PUBLISHED: Nas = Nas {
        jobs: 700,
        interarrival: Span::from_secs(4),
        flavor: Flavor::Balanced,
        nodes: 8,
        failing: 0.0,
        users: 0,
    };

    fn of(nas: Nas, jobs: usize) -> Vec<Record> {
        Nas { jobs, ..nas }.trace(5).records
    }

    /// The mean and the standard deviation of times between arrivals, in seconds.
    fn gaps(records: &[Record]) -> (f64, f64) {
        let times: Vec<f64> = records.iter().map(|record| record.submit.as_secs_f64()).collect();
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        (mean, square.sqrt())
    }

    /// Pearson's statistic against these weights.
    fn chi_square(records: &[Record], weights: &[usize]) -> f64 {
        let all: usize = weights.iter().sum();
        let term = |(index, &weight): (usize, &usize)| {
            let seen = records.iter().filter(|record| record.executable == number(index)).count() as f64;
            let expected = records.len() as f64 * weight as f64 / all as f64;
            if weight == 0 {
                assert_eq!(seen, 0.0)
            }
            if weight == 0 { 0.0 } else { (seen - expected).powi(2) / expected }
        };
        weights.iter().enumerate().map(term).sum()
    }

    /// What 17 degrees of freedom exceed once in 1,000 times.
    const CHI_SQUARE_17: f64 = 40.79;

    /// A standard error at 100,000 jobs is 0.32 % of the mean; deviation and mean are the same for exponential times.
    #[test]
    fn arrivals_are_a_poisson_process_with_the_mean_that_is_asked_for() {
        for seconds in [4, 6] {
            let interarrival = Span::from_secs(seconds);
            let (mean, deviation) = gaps(&of(Nas { interarrival, ..PUBLISHED }, 100_000));
            assert!((mean / seconds as f64 - 1.0).abs() < 0.013, "{mean}");
            assert!((deviation / mean - 1.0).abs() < 0.02, "{deviation} of {mean}");
        }
    }

    #[test]
    fn applications_come_as_often_as_the_flavor_says_and_fit_the_widest_cluster() {
        let records = of(PUBLISHED, 100_000);
        assert!(chi_square(&records, &[1; 18]) < CHI_SQUARE_17);
        for (flavor, computes) in [(Flavor::Computing, true), (Flavor::Communicating, false)] {
            let favored = |application: &Application| (application.computing() >= 0.5) == computes;
            let weights = APPLICATIONS.map(|application| if favored(&application) { 3 } else { 1 });
            let records = of(Nas { flavor, ..PUBLISHED }, 100_000);
            assert!(chi_square(&records, &weights) < CHI_SQUARE_17, "{flavor:?}");
        }
        let narrow = of(Nas { nodes: 5, ..PUBLISHED }, 10_000);
        let weights = APPLICATIONS.map(|application| usize::from(application.nodes <= 5));
        assert!(chi_square(&narrow, &weights) < CHI_SQUARE_17);
    }

    /// The same checks over arrivals at a fixed pace, and over applications of which one is never drawn.
    #[test]
    fn mutant_a_fixed_pace_and_a_missing_application_show() {
        let mut records = of(PUBLISHED, 100_000);
        for (record, index) in records.iter_mut().zip(0..) {
            record.submit = Span::from_secs(4 * index);
        }
        let (mean, deviation) = gaps(&records);
        assert!((mean / 4.0 - 1.0).abs() < 0.013 && (deviation / mean - 1.0).abs() > 0.02);
        records.iter_mut().for_each(|record| record.executable = record.executable.max(2));
        assert!(chi_square(&records, &[1; 18]) > CHI_SQUARE_17);
    }

    /// Rows of table D.1, and ratios that its jiffies give.
    #[test]
    fn the_table_is_the_published_one() {
        let by_name = |name: &str| *APPLICATIONS.iter().find(|row| row.name == name).unwrap();
        for (name, nodes, jiffies, memory, seconds, computing) in [
            ("is.a.2", 2, 1015, 150, 19, 0.534),
            ("is.ab.4", 4, 1600, 144, 29, 0.552),
            ("is.b.8", 8, 2455, 152, 49, 0.501),
            ("mg.a.8", 8, 120, 62, 9, 0.133),
            ("mg.ab.4", 4, 3448, 117, 39, 0.884),
            ("mg.b.2", 2, 11939, 227, 130, 0.918),
        ] {
            let row = by_name(name);
            assert_eq!((row.nodes, row.jiffies, row.memory, row.seconds), (nodes, jiffies, memory, seconds));
            assert!((row.computing() - computing).abs() < 5e-4, "{name}: {}", row.computing());
        }
        let sum = |of: fn(&Application) -> u32| APPLICATIONS.iter().map(of).sum::<u32>();
        let sums = [sum(|row| row.jiffies), sum(|row| row.memory), sum(|row| row.seconds)];
        assert_eq!(sums, [52_751, 3_023, 763]);
        assert!(APPLICATIONS.iter().all(|row| row.computing() > 0.0 && row.computing() < 1.0));
        let jobs = of(PUBLISHED, 700);
        for job in &jobs {
            let row = APPLICATIONS[job.executable as usize - 1];
            assert_eq!((job.requested as u32, job.requested_memory), (row.nodes, row.memory_kb()));
            assert_eq!(
                (job.run_time, job.requested_time),
                (Span::from_secs(row.seconds.into()), job.run_time)
            );
        }
    }

    /// Five standard errors at 50,000 jobs of which a fifth fails.
    #[test]
    fn jobs_fail_as_often_as_told_after_a_part_of_their_time_and_nothing_else_changes() {
        let (sound, failing) = (of(PUBLISHED, 50_000), of(Nas { failing: 0.2, ..PUBLISHED }, 50_000));
        let mut parts = Vec::new();
        for (sound, failing) in sound.iter().zip(&failing) {
            let same = [sound, failing].map(|job| (job.submit, job.executable, job.requested_time));
            assert_eq!(same[0], same[1]);
            if failing.status == FAILED {
                parts.push(failing.run_time.as_secs_f64() / failing.requested_time.as_secs_f64());
            } else {
                assert_eq!(failing.run_time, failing.requested_time);
            }
        }
        assert!((parts.len() as f64 / 50_000.0 - 0.2).abs() < 0.009, "{}", parts.len());
        assert!((parts.iter().sum::<f64>() / parts.len() as f64 - 0.5).abs() < 0.0145);
    }

    #[test]
    fn the_closest_application_is_closest_by_nodes_and_then_by_time() {
        let name = |nodes, seconds| closest(nodes, Span::from_secs(seconds)).1.name;
        assert_eq!(name(2, 19), "is.a.2");
        assert_eq!(name(1, 100_000), "mg.b.2");
        assert_eq!(name(3, 1), "is.a.4");
        assert_eq!(name(64, 9), "mg.a.8");
        assert_eq!(name(4, 60), "is.b.4", "of two that take 69 s the first");
        for (index, row) in APPLICATIONS.iter().enumerate() {
            let (number, found) = closest(row.nodes, Span::from_secs(row.seconds.into()));
            assert_eq!((found.nodes, found.seconds), (row.nodes, row.seconds));
            assert!(number as usize <= index + 1);
        }
    }

    #[test]
    fn programs_of_another_log_are_each_one_application_whatever_their_run_times() {
        let job = |id: u64, executable, nodes, requested: i64, run: i64| TimedJob {
            spec: JobSpec {
                id: JobId(id),
                submit: Time::ZERO,
                processors: nodes,
                requested: Span::from_secs(requested),
                origin: SiteId(1),
                payload: 0,
                labels: Labels { executable, ..Labels::default() },
            },
            run_time: Span::from_secs(run),
        };
        let mut jobs = [
            job(1, 7, 8, 40, 1),
            job(2, 7, 2, 9, 40),
            job(3, 7, 8, 40, 9),
            job(4, -1, 2, 140, 1),
            job(5, 0, 4, 19, 9),
        ];
        jobs[4].spec.labels.memory = 5;
        assign(&mut jobs);
        let found = jobs.map(|job| APPLICATIONS[job.spec.labels.executable as usize - 1].name);
        assert_eq!(found, ["mg.b.8", "mg.b.8", "mg.b.8", "mg.b.2", "is.a.4"]);
        assert_eq!(jobs.map(|job| job.spec.labels.memory), [63_488, 63_488, 63_488, 232_448, 5]);
        assert_eq!(jobs.map(|job| job.spec.processors), [8, 2, 8, 2, 4]);
    }
}
