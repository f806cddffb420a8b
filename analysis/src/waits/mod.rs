//! Why jobs waited: the wait of every job, split by what is true of the grid at each instant.
//!
//! ```text
//! sum over causes of integral over t of jobs that wait for it = sum over jobs of (start - submission)
//! ```
//!
//! exactly, in microseconds (docs/THEORY.md, "Where the waits went"). [`Waits`] takes events as they come; `world` is the
//! state of the grid, `rules` who may take which job, `groups` which causes are true of whom, and `sums` what that adds
//! up to; `watch` tells the same of one job. The deficiency ([`crate::deficiency`]) is about processors and the job that ends last; this is about all jobs.

mod groups;
#[cfg(test)]
mod naive;
mod rules;
mod sums;
#[cfg(test)]
mod tests;
mod watch;
mod world;

use serde::{Deserialize, Serialize};

use scheduler::{Event, EventKind, Grid, Strategy, Time, TimedJob};

use groups::Groups;
use rules::Rules;
use sums::Sums;
pub use sums::{CAUSES, Cause, Ranges};
pub(crate) use watch::Watch;
use world::World;

/// Follows a run to say why its jobs waited.
///
/// Memory: about 60 bytes a job, and 100 per site and width of waiting jobs.
#[derive(Clone, Debug)]
pub struct Waits {
    world: World,
    groups: Groups,
    now: Time,
    /// The sum of the waits, by itself, in microseconds; and the same times widths.
    waited: [i128; 2],
    started: Vec<bool>,
    missing: usize,
}

/// Why the jobs of a run waited. See [`Waits`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitCauses {
    /// Jobs that started.
    pub jobs: u64,
    /// The sum of their waits, in seconds.
    pub total_s: f64,
    /// Whether the causes add up to the sum of the waits, exactly, and each is between its least and its greatest. A
    /// mistake of the program if not.
    pub holds: bool,
    /// In the order in which causes take.
    pub causes: Vec<CauseOfWaits>,
    /// The same by width, for classes of widths that occur: 1, 2, 3 to 4, 5 to 8, ...
    pub widths: Vec<WaitsByWidth>,
    /// The causes as whole numbers, of jobs and of processors; not in files, where they would not fit.
    #[serde(skip)]
    exact: [Ranges; 2],
}

/// One cause of waits, in seconds, and in processor-seconds: each wait times the width of its job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CauseOfWaits {
    /// What was true of the grid.
    pub cause: Cause,
    /// While it was the first in the order of causes that was true.
    pub wait_s: f64,
    /// While no other was true.
    pub least_s: f64,
    /// While it was true.
    pub greatest_s: f64,
    /// As `wait_s`, times widths.
    pub processor_wait_s: f64,
    /// As `least_s`, times widths.
    pub processor_least_s: f64,
    /// As `greatest_s`, times widths.
    pub processor_greatest_s: f64,
}

/// Why jobs of some widths waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitsByWidth {
    /// The least width of this class, in processors.
    pub narrowest: u32,
    /// The greatest.
    pub widest: u32,
    /// Jobs that started.
    pub jobs: u64,
    /// In the order in which causes take.
    pub causes: Vec<CauseOfWaits>,
}

impl WaitCauses {
    /// The waits by cause, whose sum is exact, in microseconds.
    pub fn exact(&self) -> &Ranges {
        &self.exact[0]
    }

    /// The same of each wait times the width of its job, in processor-microseconds.
    pub fn exact_by_processor(&self) -> &Ranges {
        &self.exact[1]
    }
}

const MICROS: f64 = 1e6;

/// In the order in which they take. One that is only where jobs start in parts is left out elsewhere.
fn causes(jobs: &Ranges, processors: &Ranges, in_parts: bool) -> Vec<CauseOfWaits> {
    let seconds = |micros: [i128; CAUSES], cause: Cause| micros[cause as usize] as f64 / MICROS;
    let one = |cause: Cause| CauseOfWaits {
        cause,
        wait_s: seconds(jobs.chosen, cause),
        least_s: seconds(jobs.least, cause),
        greatest_s: seconds(jobs.greatest, cause),
        processor_wait_s: seconds(processors.chosen, cause),
        processor_least_s: seconds(processors.least, cause),
        processor_greatest_s: seconds(processors.greatest, cause),
    };
    Cause::ALL.into_iter().filter(|&cause| in_parts || cause != Cause::InParts).map(one).collect()
}

impl Waits {
    /// Starts before the first event of a run of these jobs.
    pub fn new(grid: &Grid, strategy: &Strategy, workload: &[TimedJob]) -> Waits {
        let world = World::new(grid, workload);
        Waits {
            groups: Groups::new(Rules::of(strategy, grid), &world, grid.widths()),
            now: Time::from_micros(i64::MIN),
            waited: [0; 2],
            started: vec![false; workload.len()],
            missing: world.jobs.iter().filter(|job| world.can_start(job)).count(),
            world,
        }
    }

    /// Takes one event into account. Events come in the order of time; a step back of a log that was merged by the clocks
    /// of its sites has no length.
    pub fn observe(&mut self, event: &Event) {
        while let Some(at) = self.world.next_local(event.at) {
            self.reach(at);
            self.world.advance(at);
        }
        self.reach(event.at);
        if let EventKind::Started { job, .. } = event.kind
            && let Some(place) = self.world.place(job)
            && !std::mem::replace(&mut self.started[place as usize], true)
        {
            let job = &self.world.jobs[place as usize];
            let wait = i128::from(self.now.since(job.submit).as_micros());
            self.waited[0] += wait;
            self.waited[1] += wait * i128::from(job.processors);
            self.missing -= 1;
        }
        self.world.observe(event);
    }

    /// Nothing has happened until then.
    fn reach(&mut self, at: Time) {
        if at > self.now {
            self.groups.refresh(&mut self.world, self.now);
            self.now = at;
        }
    }

    /// Why the jobs waited; `None` if not every job started that some site can hold, or several together, or if sites crashed, stood still,
    /// joined or left: then idle processors do not tell why.
    pub fn finish(mut self) -> Option<WaitCauses> {
        self.groups.refresh(&mut self.world, self.now);
        if self.missing > 0 || self.world.disturbed {
            return None;
        }
        let in_parts = self.world.grid().spreads();
        let (mut all, mut by_processor) = (Sums::default(), Sums::default());
        let mut widths = Vec::new();
        for (class, sums) in self.groups.sums().iter().enumerate().filter(|(_, sums)| sums.jobs > 0) {
            all.add_all(&sums.by_job);
            by_processor.add_all(&sums.by_processor);
            let widest = 1 << class;
            widths.push(WaitsByWidth {
                narrowest: widest / 2 + 1,
                widest,
                jobs: sums.jobs,
                causes: causes(&sums.by_job.ranges(), &sums.by_processor.ranges(), in_parts),
            });
        }
        let exact = [all.ranges(), by_processor.ranges()];
        Some(WaitCauses {
            jobs: widths.iter().map(|width| width.jobs).sum(),
            total_s: self.waited[0] as f64 / MICROS,
            holds: exact.iter().zip(self.waited).all(|(ranges, waited)| ranges.hold(waited)),
            causes: causes(&exact[0], &exact[1], in_parts),
            widths,
            exact,
        })
    }
}
