//! What a run means for the users and the owners of each site of a federation: the measures of Grimme, Lepping and
//! Papaspyrou, who moves what where, and who waits longest.
//!
//! A job belongs to the users of the site where it was submitted, wherever it runs; a site's processors belong to
//! its owner, whosever jobs they run. An empty set has no value, not 0. Site by site against the same site alone:
//! [`Change`]. The matrices by home site are in [`crate::migrations`].
//!
//! # Sources
//! Weights size_j p_j and the form of the utilization are those of the authors' simulation framework. What the
//! framework prints as AWRT differs from its own formula in the jobs it sums over; so all three sums are here.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use scheduler::{Grid, JobId, SiteId, Span, Submit, Time};

use crate::job::JobOutcome;
use crate::outcome::Outcome;

const MICROS: f64 = 1e6;

/// What a run meant for everybody.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Federation {
    /// Which site is that of a job's users: where it was submitted.
    pub users_at: UsersAt,
    /// All jobs and all sites.
    pub grid: Totals,
    /// One row per site, in the order of the experiment.
    pub sites: Vec<SiteTotals>,
    /// Jobs that ran at another site than that of their users.
    pub moved: Waits,
    /// Jobs wider than the site of their users, which can run elsewhere only.
    pub wider_than_site: Waits,
    /// All finished jobs.
    pub all: Waits,
    /// Jobs by the site of their users and the site that ran them; pairs that occur, a site with itself included.
    pub flows: Vec<Flow>,
}

/// The name of a [`Submit`] in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsersAt {
    /// The smallest site wide enough for the job.
    Home,
    /// The site that the workload names.
    Origin,
}

/// The measures over all jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Average weighted response time: Σ w_j (C_j − r_j) / Σ w_j with w_j = size_j p_j, in seconds.
    pub awrt_s: Option<f64>,
    /// Squashed area: Σ w_j of the jobs executed, in processor-seconds.
    pub squashed_area: f64,
    /// Squashed area over all processors from the first start to the last end.
    pub utilization: Option<f64>,
}

/// The measures of one site.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteTotals {
    /// The site that is measured.
    pub site: SiteId,
    /// Name of the site in the experiment.
    pub name: String,
    /// Jobs of its users that ended.
    pub submitted_jobs: u64,
    /// Jobs executed here.
    pub executed_jobs: u64,
    /// AWRT over the jobs of its users, wherever they ran.
    pub awrt_s: Option<f64>,
    /// AWRT over the jobs executed here, whosever they are.
    pub awrt_executed_s: Option<f64>,
    /// AWRT over the jobs executed here for users of other sites.
    pub awrt_delivered_s: Option<f64>,
    /// Squashed area of the jobs executed here, in processor-seconds.
    pub squashed_area: f64,
    /// Squashed area over the site's processors from its first start to its last end.
    pub utilization: Option<f64>,
}

/// How long some jobs waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// How many there are.
    pub jobs: u64,
    /// Their work in processor-seconds.
    pub work: f64,
    /// Their mean wait in seconds.
    pub wait_mean_s: Option<f64>,
    /// The longest wait in seconds.
    pub wait_max_s: Option<f64>,
    /// The job that waited longest; of equal waits the first of the workload.
    pub longest: Option<JobId>,
}

/// Jobs of the users of one site that ran at one site.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The site of their users.
    pub from: SiteId,
    /// Where they ran.
    pub to: SiteId,
    /// How many jobs ran there.
    pub jobs: u64,
    /// Their work in processor-seconds.
    pub work: f64,
    /// Mean width in processors.
    pub processors_mean: f64,
    /// Mean time of execution in seconds.
    pub run_time_mean_s: f64,
}

/// A site in an exchange beside the same site alone with its own jobs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The site that is compared.
    pub site: SiteId,
    /// Jobs that both runs have; AWRT is over these.
    pub compared: u64,
    /// Jobs of its users that are wider than the site: alone they cannot run, so they are left out.
    pub left_out: u64,
    /// Other jobs that only one run finished.
    pub unmatched: u64,
    /// 100 (exchange / alone − 1) of AWRT. Below 0 the users are better off.
    pub awrt_percent: Option<f64>,
    /// The same of the squashed area: how much more the site worked.
    pub squashed_area_percent: Option<f64>,
    /// The same of the utilization.
    pub utilization_percent: Option<f64>,
}

impl UsersAt {
    /// Of jobs submitted by this rule. To brokers users turn from their own site, whatever the home of the job.
    pub fn of(grid: &Grid, submit: Submit) -> UsersAt {
        match submit {
            Submit::Home if grid.brokers() == 0 => UsersAt::Home,
            Submit::Home | Submit::Origin => UsersAt::Origin,
        }
    }

    fn site(self, job: &JobOutcome) -> SiteId {
        match self {
            // Where only several sites hold a job there are brokers, or users are where the log says.
            UsersAt::Home => job.home.unwrap_or(job.origin),
            UsersAt::Origin => job.origin,
        }
    }
}

impl Federation {
    /// Measures the finished jobs of a run whose jobs were submitted by this rule.
    pub fn of(outcome: &Outcome, submit: Submit) -> Federation {
        let users_at = UsersAt::of(&outcome.grid, submit);
        let mut submitted = vec![Sums::default(); outcome.grid.len()];
        let mut executed = submitted.clone();
        let mut delivered = submitted.clone();
        let mut grid = Sums::default();
        let [mut moved, mut wider, mut all] = [WaitSums::default(); 3];
        let mut flows: BTreeMap<(SiteId, SiteId), FlowSums> = BTreeMap::new();
        for job in outcome.finished() {
            let from = users_at.site(job);
            let to = job.site.expect("a finished job has a site");
            grid.add(job);
            all.add(job);
            submitted[from.index()].add(job);
            for part in outcome.parts(job) {
                executed[part.site.unwrap_or(to).index()].add(&part);
            }
            if from != to {
                delivered[to.index()].add(job);
                moved.add(job);
            }
            if job.processors > outcome.grid.width(from) {
                wider.add(job);
            }
            flows.entry((from, to)).or_default().add(job);
        }
        let row = |site: &scheduler::Site| {
            let place = site.id.index();
            let here = &executed[place];
            SiteTotals {
                site: site.id,
                name: site.name.clone(),
                submitted_jobs: submitted[place].jobs,
                executed_jobs: here.jobs,
                awrt_s: submitted[place].awrt(),
                awrt_executed_s: here.awrt(),
                awrt_delivered_s: delivered[place].awrt(),
                squashed_area: here.area(),
                utilization: here.utilization(u64::from(site.processors)),
            }
        };
        Federation {
            users_at,
            grid: grid.totals(outcome.grid.processors()),
            sites: outcome.grid.machines().map(row).collect(),
            moved: moved.waits(),
            wider_than_site: wider.waits(),
            all: all.waits(),
            flows: flows.into_iter().map(|((from, to), sums)| sums.flow(from, to)).collect(),
        }
    }

    /// The pairs of two different sites: what moved.
    pub fn moves(&self) -> impl Iterator<Item = &Flow> {
        self.flows.iter().filter(|flow| flow.from != flow.to)
    }
}

impl Change {
    /// Compares a site in an exchange with a run of that site alone; `alone` has no other jobs than those of its
    /// users. Jobs are matched by id.
    pub fn between(exchange: &Outcome, alone: &Outcome, site: SiteId, submit: Submit) -> Change {
        let users_at = UsersAt::of(&exchange.grid, submit);
        let width = exchange.grid.width(site);
        let own = exchange.finished().filter(|job| users_at.site(job) == site);
        let (own, wider): (Vec<&JobOutcome>, Vec<&JobOutcome>) = own.partition(|job| job.processors <= width);
        let by_id: BTreeMap<JobId, &JobOutcome> = alone.finished().map(|job| (job.id, job)).collect();
        let (mut together, mut apart) = (Sums::default(), Sums::default());
        for job in &own {
            if let Some(same) = by_id.get(&job.id) {
                together.add(job);
                apart.add(same);
            }
        }
        let mut here = Sums::default();
        let parts = exchange.finished().flat_map(|job| exchange.parts(job));
        parts.filter(|part| part.site == Some(site)).for_each(|part| here.add(&part));
        let mut there = Sums::default();
        alone.finished().for_each(|job| there.add(job));
        let percent = |now: Option<f64>, then: Option<f64>| match (now, then) {
            (Some(now), Some(then)) if then > 0.0 => Some(100.0 * (now / then - 1.0)),
            _ => None,
        };
        let processors = u64::from(exchange.grid.site(site).processors);
        Change {
            site,
            compared: together.jobs,
            left_out: wider.len() as u64,
            unmatched: own.len() as u64 + there.jobs - 2 * together.jobs,
            awrt_percent: percent(together.awrt(), apart.awrt()),
            squashed_area_percent: percent(Some(here.area()), Some(there.area())),
            utilization_percent: percent(here.utilization(processors), there.utilization(processors)),
        }
    }
}

/// Sums over some finished jobs.
#[derive(Clone, Default)]
struct Sums {
    jobs: u64,
    work: i128,
    /// Work in processor-seconds times response in seconds.
    weighted_response: f64,
    first_start: Option<Time>,
    last_end: Option<Time>,
}

impl Sums {
    fn add(&mut self, job: &JobOutcome) {
        let response = job.turnaround().expect("a finished job has ended");
        self.jobs += 1;
        self.work += job.work();
        self.weighted_response += job.work() as f64 / MICROS * response.as_secs_f64();
        self.first_start = self.first_start.into_iter().chain(job.start).min();
        self.last_end = self.last_end.max(job.end);
    }

    fn area(&self) -> f64 {
        self.work as f64 / MICROS
    }

    fn awrt(&self) -> Option<f64> {
        (self.work > 0).then(|| self.weighted_response / self.area())
    }

    fn utilization(&self, processors: u64) -> Option<f64> {
        let span = self.last_end?.since(self.first_start?).as_secs_f64();
        (span > 0.0).then(|| self.area() / (processors as f64 * span))
    }

    fn totals(&self, processors: u64) -> Totals {
        Totals { awrt_s: self.awrt(), squashed_area: self.area(), utilization: self.utilization(processors) }
    }
}

#[derive(Clone, Copy, Default)]
struct WaitSums {
    jobs: u64,
    work: i128,
    wait: i128,
    longest: Option<(Span, JobId)>,
}

impl WaitSums {
    fn add(&mut self, job: &JobOutcome) {
        let wait = job.wait().expect("a finished job has started");
        self.jobs += 1;
        self.work += job.work();
        self.wait += i128::from(wait.as_micros());
        if self.longest.is_none_or(|(longest, _)| wait > longest) {
            self.longest = Some((wait, job.id));
        }
    }

    fn waits(self) -> Waits {
        Waits {
            jobs: self.jobs,
            work: self.work as f64 / MICROS,
            wait_mean_s: (self.jobs > 0).then(|| self.wait as f64 / MICROS / self.jobs as f64),
            wait_max_s: self.longest.map(|(wait, _)| wait.as_secs_f64()),
            longest: self.longest.map(|(_, job)| job),
        }
    }
}

#[derive(Default)]
struct FlowSums {
    jobs: u64,
    work: i128,
    processors: u64,
    run_time: i128,
}

impl FlowSums {
    fn add(&mut self, job: &JobOutcome) {
        let run_time = job.execution().expect("a finished job has ended");
        self.jobs += 1;
        self.work += job.work();
        self.processors += u64::from(job.processors);
        self.run_time += i128::from(run_time.as_micros());
    }

    fn flow(&self, from: SiteId, to: SiteId) -> Flow {
        let jobs = self.jobs as f64;
        Flow {
            from,
            to,
            jobs: self.jobs,
            work: self.work as f64 / MICROS,
            processors_mean: self.processors as f64 / jobs,
            run_time_mean_s: self.run_time as f64 / MICROS / jobs,
        }
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{Grid, Threshold, TimedJob};

    use super::*;
    use crate::fixtures::{completed, started, timed_job};
    use crate::outcome::OutcomeBuilder;

    /// Jobs `(id, submit, processors, run time, origin, site, start)`.
    fn outcome(sizes: &[u32], jobs: &[(u64, i64, u32, i64, u32, u32, i64)]) -> Outcome {
        let timed = |&(id, submit, processors, run, origin, ..): &(u64, i64, u32, i64, u32, u32, i64)| {
            let mut job = timed_job(id, submit, processors, run);
            job.spec.origin = SiteId(origin);
            job
        };
        let workload: Vec<TimedJob> = jobs.iter().map(timed).collect();
        let grid = Grid::of_sizes(sizes).unwrap();
        let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &workload);
        for &(id, _, processors, run, _, site, start) in jobs {
            builder.observe(&started(start, site, id, processors));
            builder.observe(&completed(start + run, site, id));
        }
        builder.finish()
    }

    /// Example P1 of the exchange under FCFS, which `scheduler/tests/exchange_examples.rs` checks.
    fn p1() -> Outcome {
        let jobs = [
            (1, 3, 3, 4, 2, 2, 7),
            (2, 4, 4, 6, 1, 1, 4),
            (3, 3, 1, 6, 1, 2, 7),
            (4, 0, 2, 5, 2, 2, 0),
            (5, 3, 1, 5, 1, 1, 10),
            (6, 1, 4, 3, 2, 1, 1),
            (7, 3, 2, 4, 2, 2, 3),
        ];
        outcome(&[4, 4], &jobs)
    }

    /// Example P2 under FCFS: three sites, one job wider than its origin.
    fn p2() -> Outcome {
        let jobs = [
            (1, 0, 2, 5, 1, 1, 0),
            (2, 0, 5, 4, 1, 3, 0),
            (3, 0, 4, 6, 2, 2, 0),
            (4, 1, 6, 2, 2, 3, 4),
            (5, 1, 2, 3, 3, 2, 4),
            (6, 2, 1, 4, 1, 1, 5),
        ];
        outcome(&[2, 6, 6], &jobs)
    }

    fn is(measured: Option<f64>, numerator: f64, denominator: f64) {
        let measured = measured.unwrap();
        assert!(
            (measured - numerator / denominator).abs() < 1e-9,
            "{measured} is not {numerator}/{denominator}"
        );
    }

    #[test]
    fn the_measures_of_the_first_example_are_those_worked_out_by_hand() {
        let federation = Federation::of(&p1(), Submit::Origin);

        let [one, two] = &federation.sites[..] else { panic!("two sites") };
        is(one.awrt_s, 264.0, 35.0);
        is(two.awrt_s, 107.0, 21.0);
        is(federation.grid.awrt_s, 478.0, 77.0);
        assert_eq!((one.squashed_area, two.squashed_area, federation.grid.squashed_area), (41.0, 36.0, 77.0));
        is(one.utilization, 41.0, 56.0);
        is(two.utilization, 9.0, 13.0);
        is(federation.grid.utilization, 77.0, 120.0);
    }

    #[test]
    fn the_measures_of_the_second_example_are_those_worked_out_by_hand() {
        let federation = Federation::of(&p2(), Submit::Origin);

        for (site, (awrt, area, utilization)) in federation.sites.iter().zip([
            ((79.0, 17.0), 14.0, (7.0, 9.0)),
            ((17.0, 3.0), 30.0, (5.0, 7.0)),
            ((6.0, 1.0), 32.0, (8.0, 9.0)),
        ]) {
            is(site.awrt_s, awrt.0, awrt.1);
            assert_eq!(site.squashed_area, area);
            is(site.utilization, utilization.0, utilization.1);
        }
        is(federation.grid.awrt_s, 199.0, 38.0);
        assert_eq!(federation.grid.squashed_area, 76.0);
        is(federation.grid.utilization, 38.0, 63.0);
    }

    #[test]
    fn executors_and_deliveries_have_their_own_response_times() {
        let federation = Federation::of(&p1(), Submit::Origin);

        // Site 1 ran jobs 2, 5 and 6, of which 6 came from site 2; site 2 ran 3 for site 1.
        is(federation.sites[0].awrt_executed_s, 24.0 * 6.0 + 5.0 * 12.0 + 12.0 * 3.0, 41.0);
        is(federation.sites[0].awrt_delivered_s, 3.0, 1.0);
        is(federation.sites[1].awrt_delivered_s, 10.0, 1.0);
    }

    #[test]
    fn flows_tell_number_work_size_and_run_time_of_what_moved() {
        let federation = Federation::of(&p2(), Submit::Origin);

        let moves: Vec<(u32, u32, u64)> =
            federation.moves().map(|flow| (flow.from.0, flow.to.0, flow.jobs)).collect();
        assert_eq!(moves, [(1, 3, 1), (2, 3, 1), (3, 2, 1)]);
        let own = federation.flows.iter().find(|flow| flow.from == flow.to).unwrap();
        assert_eq!((own.jobs, own.work, own.processors_mean, own.run_time_mean_s), (2, 14.0, 1.5, 4.5));
        assert_eq!(federation.flows.iter().map(|flow| flow.jobs).sum::<u64>(), 6);
    }

    #[test]
    fn the_longest_waits_are_named() {
        let federation = Federation::of(&p2(), Submit::Origin);

        assert_eq!((federation.wider_than_site.jobs, federation.wider_than_site.wait_max_s), (1, Some(0.0)));
        assert_eq!(federation.wider_than_site.longest, Some(JobId(2)));
        assert_eq!((federation.moved.jobs, federation.moved.wait_max_s), (3, Some(3.0)));
        assert_eq!((federation.moved.longest, federation.moved.wait_mean_s), (Some(JobId(4)), Some(2.0)));
        assert_eq!(federation.all.longest, Some(JobId(4)));
    }

    #[test]
    fn by_home_no_job_is_wider_than_its_site() {
        let federation = Federation::of(&p2(), Submit::Home);

        assert_eq!(federation.wider_than_site, Waits::default());
        assert_eq!(federation.users_at, UsersAt::Home);
        assert_eq!(federation.sites[0].submitted_jobs, 3);
        assert_eq!(federation.sites[2].awrt_s, None, "nobody's home");
    }

    #[test]
    fn a_site_is_compared_with_itself_alone() {
        // Alone, site 1 runs its jobs 1 and 6 one after the other, and cannot run job 2.
        let alone = outcome(&[2], &[(1, 0, 2, 5, 1, 1, 0), (6, 2, 1, 4, 1, 1, 8)]);

        let change = Change::between(&p2(), &alone, SiteId(1), Submit::Origin);

        assert_eq!((change.compared, change.left_out, change.unmatched), (2, 1, 0));
        // (10 * 5 + 4 * 7) / 14 against (10 * 5 + 4 * 10) / 14.
        is(change.awrt_percent, 100.0 * (78.0 - 90.0), 90.0);
        is(change.squashed_area_percent, 0.0, 1.0);
        // From the first start to the last end 9 seconds against 12.
        is(change.utilization_percent, 100.0 * (12.0 - 9.0), 9.0);
    }

    #[test]
    fn nothing_has_no_value() {
        let federation = Federation::of(&outcome(&[2, 4], &[]), Submit::Origin);

        assert_eq!((federation.grid.awrt_s, federation.grid.utilization), (None, None));
        assert_eq!((federation.sites[0].awrt_s, federation.sites[0].utilization), (None, None));
        assert_eq!(federation.all, Waits::default());
    }
}
