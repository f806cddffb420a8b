//! The numbers that describe a run: those of the thesis, and those that operators ask for.
//!
//! All are means or sums over the jobs that ended; a partial run says so in [`Metrics::finished`]. Sums of times
//! and work are exact integers before the one division. Bounds are computed elsewhere, in [`crate::bounds`].

use serde::{Deserialize, Serialize};

use scheduler::{Class, SiteId, Span, Submit};

use crate::bounds::Bounds;
use crate::job::{JobOutcome, JobState};
use crate::outcome::Outcome;
use crate::sharing::intrusion::intrusion;

const MICROS: f64 = 1e6;

/// The metrics of one run. Times in seconds, work in processor-seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// Jobs in the workload.
    pub jobs: usize,
    /// Jobs that ended (n of every mean).
    pub finished: usize,
    /// Of those, ended because their estimate was used up.
    pub walltime_reached: usize,
    /// Jobs wider than every site.
    pub rejected: usize,
    /// The first submission, in trace time. Makespan, utilization, throughput, ratios and bounds count from here.
    #[serde(default)]
    pub first_submission_s: f64,
    /// C_max: from the first submission to the latest end.
    pub makespan_s: f64,
    /// Makespan over the bound of the thesis (Quezada Pina 2012, §4.3). `None` if the bound is zero or the run was cut
    /// short: the bound is of all jobs.
    pub ratio_thesis: Option<f64>,
    /// Makespan over the bound the theorems are proved against.
    pub ratio_proof: Option<f64>,
    /// Makespan over the greatest bound.
    pub ratio_best: Option<f64>,
    /// SD_b of the thesis (Eq. 2): mean of turnaround / max(10 s, p_j); may be below 1.
    pub bounded_slowdown_thesis_mean: f64,
    /// The usual form: mean of max(1, turnaround / max(10 s, p_j)) (Feitelson et al. 1997).
    pub bounded_slowdown_mean: f64,
    /// The greatest of them.
    #[serde(default)]
    pub bounded_slowdown_max: f64,
    /// SD: mean of turnaround / p_j over the jobs with p_j > 0.
    pub slowdown_mean: f64,
    /// t_w (Eq. 3): mean wait.
    pub wait_mean_s: f64,
    /// The longest wait.
    pub wait_max_s: f64,
    /// SWT: the sum of waits.
    pub wait_sum_s: f64,
    /// WWT_S: mean of size_j times wait.
    pub wait_by_size_mean: f64,
    /// TA: mean turnaround.
    pub turnaround_mean_s: f64,
    /// WTA with weight size_j.
    pub turnaround_by_size_mean: f64,
    /// WTA with weight w_j, the work.
    pub turnaround_by_work_mean: f64,
    /// AWRT: Σ w_j turnaround / Σ w_j (Grimme, Lepping and Papaspyrou). `None` without work.
    pub awrt_s: Option<f64>,
    /// Sum of w_j.
    pub work: f64,
    /// U: work over makespan times all processors, so from the first submission to the latest end.
    pub utilization: f64,
    /// Th: jobs over makespan.
    pub throughput_per_s: f64,
    /// Jobs that ran elsewhere than at the site in whose queue they came first: their home, or where they were submitted
    /// and not routed further.
    pub stolen_jobs: usize,
    /// Their share of the finished jobs.
    pub stolen_share: f64,
    /// Their share of the work.
    pub stolen_work_share: f64,
    /// Jobs that ran elsewhere than at their home, the smallest site that can hold them. All stolen jobs, and no others,
    /// where jobs are submitted at home.
    #[serde(default)]
    pub away_from_home_jobs: usize,
    /// Their share of the finished jobs.
    #[serde(default)]
    pub away_from_home_share: f64,
    /// Jobs that ran elsewhere than where their users submitted them. `None` where jobs are submitted at home.
    #[serde(default)]
    pub away_from_origin_jobs: Option<usize>,
    /// Their share of the finished jobs.
    #[serde(default)]
    pub away_from_origin_share: Option<f64>,
    /// Mean time that a stolen job was under way between sites.
    pub steal_delay_mean_s: f64,
    /// The longest such time.
    pub steal_delay_max_s: f64,
    /// Most changes of site of one job.
    pub hops_max: u32,
    /// Messages sent by all sites.
    pub messages: u64,
    /// Messages sent per finished job.
    pub messages_per_job: f64,
    /// Messages sent per stolen job; `None` without stolen jobs.
    pub messages_per_stolen_job: Option<f64>,
    /// Requests for work.
    pub requests: u64,
    /// Requests refused by the victim.
    pub refusals: u64,
    /// Granted jobs that were not taken.
    pub declines: u64,
    /// Jobs of a global queue that started although an older one was on offer that would have fit in their place.
    /// `None` if no job was on offer.
    #[serde(default)]
    pub fcfs_inversions: Option<u64>,
    /// Where jobs share nodes: mean of run time over that on idle nodes of full power, T^e / (T^p + T^c) of Lérida (3.1), over the jobs
    /// that take any. `None` elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing_slowdown_mean: Option<f64>,
    /// The greatest of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing_slowdown_max: Option<f64>,
    /// SI (Lérida §4.3.3): the mean latency of calls of local users over that without jobs, see [`crate::sharing::intrusion`]. `None`
    /// where there are no local users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intrusion: Option<f64>,
    /// Jobs that ran in parts at several sites at once. `None` where nothing is spread over sites.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs_in_parts: Option<u64>,
    /// One row per site with processors, in the order of the experiment.
    pub sites: Vec<SiteMetrics>,
}

/// What one site did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteMetrics {
    /// The site that is measured.
    pub site: SiteId,
    /// Name of the site in the experiment.
    pub name: String,
    /// Processors of the site, s_i.
    pub processors: u32,
    /// Work executed here over the makespan of the grid times its processors.
    pub utilization: f64,
    /// Jobs it is the home of and executed.
    pub own_a: Share,
    /// The same, small at home.
    pub own_b: Share,
    /// Jobs of class A at their home, executed here though their home is elsewhere.
    pub stolen_a: Share,
    /// The same, small at home.
    pub stolen_b: Share,
    /// Jobs it is the home of, executed elsewhere.
    pub given: Share,
    /// Mean wait of the jobs it is the home of.
    pub wait_mean_s: f64,
}

/// A number of jobs and their work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// How many jobs there are.
    pub jobs: u64,
    /// Processor-seconds.
    pub work: f64,
}

impl Metrics {
    /// All metrics of a run, with the ratios to its bounds.
    pub fn of(outcome: &Outcome, bounds: &Bounds) -> Metrics {
        let sums = Sums::of(outcome);
        let n = sums.finished as f64;
        let mean = |sum: f64| if sums.finished == 0 { 0.0 } else { sum / n };
        let makespan = outcome.makespan();
        let makespan_s = makespan.as_secs_f64();
        let rate = |amount: f64, capacity: f64| if capacity > 0.0 { amount / capacity } else { 0.0 };
        let work = sums.work as f64 / MICROS;
        let messages = outcome.traffic.all().sent;
        let stolen = sums.stolen as f64;
        let at_origin = outcome.submit == Submit::Origin;
        // The bounds are of all jobs.
        let is_complete = outcome.is_complete();
        let sharing = sharing_slowdowns(outcome);
        // Bounds are made of run times, and where jobs share nodes a schedule decides how long they run.
        let has_bounds = is_complete && !outcome.grid.is_shared();
        let ratio = |bound| if has_bounds { Bounds::ratio(makespan, bound) } else { None };
        Metrics {
            jobs: outcome.jobs.len(),
            finished: sums.finished,
            walltime_reached: outcome.count(JobState::WalltimeReached),
            rejected: outcome.count(JobState::Rejected),
            first_submission_s: outcome.origin.as_secs_f64(),
            makespan_s,
            ratio_thesis: ratio(bounds.thesis),
            ratio_proof: ratio(bounds.proof),
            ratio_best: ratio(bounds.best),
            bounded_slowdown_thesis_mean: mean(sums.bounded_slowdown_thesis),
            bounded_slowdown_mean: mean(sums.bounded_slowdown),
            bounded_slowdown_max: sums.bounded_slowdown_max,
            slowdown_mean: rate(sums.slowdown, sums.with_run_time as f64),
            wait_mean_s: mean(sums.wait as f64 / MICROS),
            wait_max_s: sums.wait_max.as_secs_f64(),
            wait_sum_s: sums.wait as f64 / MICROS,
            wait_by_size_mean: mean(sums.wait_by_size as f64 / MICROS),
            turnaround_mean_s: mean(sums.turnaround as f64 / MICROS),
            turnaround_by_size_mean: mean(sums.turnaround_by_size as f64 / MICROS),
            turnaround_by_work_mean: mean(sums.turnaround_by_work),
            awrt_s: (work > 0.0).then(|| sums.turnaround_by_work / work),
            work,
            utilization: rate(work, makespan_s * outcome.grid.processors() as f64),
            throughput_per_s: rate(n, makespan_s),
            stolen_jobs: sums.stolen,
            stolen_share: mean(stolen),
            stolen_work_share: rate(sums.stolen_work as f64 / MICROS, work),
            away_from_home_jobs: sums.away_from_home,
            away_from_home_share: mean(sums.away_from_home as f64),
            away_from_origin_jobs: at_origin.then_some(sums.away_from_origin),
            away_from_origin_share: at_origin.then(|| mean(sums.away_from_origin as f64)),
            steal_delay_mean_s: rate(sums.steal_delay as f64 / MICROS, stolen),
            steal_delay_max_s: sums.steal_delay_max.as_secs_f64(),
            hops_max: sums.hops_max,
            messages,
            messages_per_job: mean(messages as f64),
            messages_per_stolen_job: (sums.stolen > 0).then(|| messages as f64 / stolen),
            requests: outcome.traffic.requests,
            refusals: outcome.traffic.refusals(),
            declines: outcome.traffic.declines(),
            fcfs_inversions: outcome.fcfs_inversions,
            sharing_slowdown_mean: sharing.map(|(sum, _, jobs)| sum / jobs as f64),
            sharing_slowdown_max: sharing.map(|(_, most, _)| most),
            intrusion: intrusion(outcome),
            jobs_in_parts: outcome.grid.spreads().then_some(outcome.spread.len() as u64),
            sites: site_metrics(outcome, makespan_s),
        }
    }
}

/// Sum and greatest of the slow-downs of finished jobs on shared nodes, and of how many; none if there are none.
fn sharing_slowdowns(outcome: &Outcome) -> Option<(f64, f64, usize)> {
    if outcome.placements.is_empty() {
        return None;
    }
    let slowdowns = outcome.finished().filter_map(|job| outcome.sharing_slowdown(job));
    let all =
        slowdowns.fold((0.0, 0.0, 0), |(sum, most, jobs), one| (sum + one, f64::max(most, one), jobs + 1));
    (all.2 > 0).then_some(all)
}

/// Exact sums over the finished jobs; microseconds.
#[derive(Default)]
struct Sums {
    finished: usize,
    with_run_time: usize,
    stolen: usize,
    away_from_home: usize,
    away_from_origin: usize,
    wait: i128,
    wait_max: Span,
    wait_by_size: i128,
    turnaround: i128,
    turnaround_by_size: i128,
    /// Work times turnaround exceeds 128 bits of square microseconds only in sum; seconds in floating point do.
    turnaround_by_work: f64,
    work: i128,
    stolen_work: i128,
    steal_delay: i128,
    steal_delay_max: Span,
    hops_max: u32,
    slowdown: f64,
    bounded_slowdown: f64,
    bounded_slowdown_max: f64,
    bounded_slowdown_thesis: f64,
}

impl Sums {
    fn of(outcome: &Outcome) -> Sums {
        let mut sums = Sums::default();
        for job in outcome.finished() {
            sums.add(job);
        }
        sums
    }

    fn add(&mut self, job: &JobOutcome) {
        let wait = job.wait().expect("a finished job has started");
        let turnaround = job.turnaround().expect("a finished job has ended");
        let run_time = job.service().as_secs_f64();
        let size = i128::from(job.processors);
        let turnaround_s = turnaround.as_secs_f64();
        let bounded = job.bounded_slowdown().expect("a finished job has ended");
        self.finished += 1;
        self.wait += i128::from(wait.as_micros());
        self.wait_max = self.wait_max.max(wait);
        self.wait_by_size += size * i128::from(wait.as_micros());
        self.turnaround += i128::from(turnaround.as_micros());
        self.turnaround_by_size += size * i128::from(turnaround.as_micros());
        self.turnaround_by_work += job.work() as f64 / MICROS * turnaround_s;
        self.work += job.work();
        self.bounded_slowdown_thesis += bounded;
        self.bounded_slowdown += bounded.max(1.0);
        self.bounded_slowdown_max = self.bounded_slowdown_max.max(bounded.max(1.0));
        if run_time > 0.0 {
            self.with_run_time += 1;
            self.slowdown += turnaround_s / run_time;
        }
        self.hops_max = self.hops_max.max(job.hops);
        self.away_from_home += usize::from(job.away_from_home());
        self.away_from_origin += usize::from(job.away_from_origin());
        if job.stolen() {
            self.stolen += 1;
            self.stolen_work += job.work();
            self.steal_delay += i128::from(job.steal_delay.as_micros());
            self.steal_delay_max = self.steal_delay_max.max(job.steal_delay);
        }
    }
}

/// Exact sums of one site.
#[derive(Clone, Default)]
struct SiteSums {
    /// Own A, own B, stolen A, stolen B, given away: jobs and work.
    shares: [(u64, i128); 5],
    at_home: u64,
    wait: i128,
}

fn site_metrics(outcome: &Outcome, makespan_s: f64) -> Vec<SiteMetrics> {
    let mut sums = vec![SiteSums::default(); outcome.grid.len()];
    for job in outcome.finished() {
        let class = usize::from(job.class == Class::B);
        // Of a job over several sites each has its part, and one that no site could hold has no home.
        for part in outcome.parts(job) {
            let site = part.site.expect("a finished job has a site");
            let mut add = |place: SiteId, share: usize| {
                let sum = &mut sums[place.index()].shares[share];
                *sum = (sum.0 + 1, sum.1 + part.work());
            };
            if part.home == Some(site) {
                add(site, class);
                continue;
            }
            add(site, 2 + class);
            if let Some(home) = part.home {
                add(home, 4);
            }
        }
        let Some(home) = job.home.map(SiteId::index) else { continue };
        sums[home].at_home += 1;
        sums[home].wait += i128::from(job.wait().expect("a finished job has started").as_micros());
    }
    let row = |(site, sums): (&scheduler::Site, SiteSums)| {
        let share = |index: usize| {
            let (jobs, work) = sums.shares[index];
            Share { jobs, work: work as f64 / MICROS }
        };
        let executed: i128 = sums.shares[..4].iter().map(|share| share.1).sum();
        let capacity = makespan_s * f64::from(site.processors);
        SiteMetrics {
            site: site.id,
            name: site.name.clone(),
            processors: site.processors,
            utilization: if capacity > 0.0 { executed as f64 / MICROS / capacity } else { 0.0 },
            own_a: share(0),
            own_b: share(1),
            stolen_a: share(2),
            stolen_b: share(3),
            given: share(4),
            wait_mean_s: if sums.at_home == 0 {
                0.0
            } else {
                sums.wait as f64 / MICROS / sums.at_home as f64
            },
        }
    };
    let rows = outcome.grid.sites().iter().zip(sums);
    rows.filter(|(site, _)| site.processors > 0).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;

    fn close(measured: f64, expected: f64) {
        assert!((measured - expected).abs() < 5e-5 * expected.abs().max(1.0), "{measured} is not {expected}");
    }

    /// Four jobs on sites of 2 and 4 processors, worked out by hand.
    fn four_jobs() -> (Outcome, Bounds, Metrics) {
        let jobs = [(0, 2, 10, 1, 0), (0, 4, 5, 2, 0), (2, 3, 4, 2, 5), (3, 1, 20, 1, 10)];
        let outcome = fixtures::outcome(&[2, 4], &jobs);
        let bounds = Bounds::of(&outcome);
        let metrics = Metrics::of(&outcome, &bounds);
        (outcome, bounds, metrics)
    }

    #[test]
    fn every_metric_of_the_hand_worked_example_is_right() {
        let (_, bounds, metrics) = four_jobs();

        assert_eq!(bounds.thesis, Span::from_secs(23));
        assert_eq!(bounds.area_thesis, Span::from_secs(12));
        close(metrics.makespan_s, 30.0);
        close(metrics.ratio_thesis.unwrap(), 1.3043);
        close(metrics.bounded_slowdown_thesis_mean, 0.8875);
        // By hand: turnarounds 10, 5, 7, 27 over max(10, p) are 1, 0.5, 0.7, 1.35.
        close(metrics.bounded_slowdown_mean, (1.0 + 1.0 + 1.0 + 1.35) / 4.0);
        close(metrics.bounded_slowdown_max, 1.35);
        close(metrics.slowdown_mean, 1.275);
        close(metrics.wait_mean_s, 2.5);
        close(metrics.wait_max_s, 7.0);
        close(metrics.wait_sum_s, 10.0);
        close(metrics.turnaround_mean_s, 12.25);
        close(metrics.wait_by_size_mean, 4.0);
        close(metrics.turnaround_by_size_mean, 22.0);
        close(metrics.turnaround_by_work_mean, 231.0);
        close(metrics.awrt_s.unwrap(), 924.0 / 72.0);
        close(metrics.work, 72.0);
        close(metrics.utilization, 0.4);
        close(metrics.throughput_per_s, 0.1333);
    }

    /// What the log calls 0 is arbitrary: only differences of times count.
    #[test]
    fn a_schedule_is_worth_the_same_at_whatever_time_it_begins() {
        let jobs = [(0, 2, 10, 1, 0), (0, 4, 5, 2, 0), (2, 3, 4, 2, 5), (3, 1, 20, 1, 10)];
        let (_, bounds, metrics) = four_jobs();
        for late in [1, 1_772_365, -50] {
            let later =
                jobs.map(|(submit, size, time, site, start)| (submit + late, size, time, site, start + late));
            let outcome = fixtures::outcome(&[2, 4], &later);
            assert_eq!(Bounds::of(&outcome), bounds);
            let expected = Metrics { first_submission_s: late as f64, ..metrics.clone() };
            assert_eq!(Metrics::of(&outcome, &bounds), expected);
        }
    }

    #[test]
    fn sites_share_the_work_by_class_and_owner() {
        let jobs = [(0, 2, 10, 1, 0), (0, 1, 5, 2, 0), (0, 4, 1, 2, 5), (0, 2, 2, 2, 6)];
        let outcome = fixtures::outcome(&[2, 4], &jobs);
        let metrics = Metrics::of(&outcome, &Bounds::of(&outcome));

        let (small, large) = (&metrics.sites[0], &metrics.sites[1]);
        assert_eq!(small.own_a, Share { jobs: 1, work: 20.0 });
        assert_eq!(small.given, Share { jobs: 2, work: 9.0 });
        assert_eq!(large.own_a, Share { jobs: 1, work: 4.0 });
        assert_eq!(large.stolen_b, Share { jobs: 1, work: 5.0 });
        assert_eq!(large.stolen_a, Share { jobs: 1, work: 4.0 });
        close(small.utilization, 1.0);
        close(large.utilization, 13.0 / 40.0);
        assert_eq!(metrics.stolen_jobs, 2);
        close(metrics.stolen_work_share, 9.0 / 33.0);
    }

    #[test]
    fn identities_between_metrics_hold() {
        let (outcome, _, metrics) = four_jobs();
        let mean_run_time =
            outcome.finished().map(|job| job.service().as_secs_f64()).sum::<f64>() / metrics.finished as f64;
        close(metrics.turnaround_mean_s - metrics.wait_mean_s, mean_run_time);
        close(metrics.utilization * metrics.makespan_s * 6.0, metrics.work);
        let by_site: f64 = metrics.sites.iter().map(|s| s.utilization * f64::from(s.processors)).sum();
        close(by_site / 6.0, metrics.utilization);
    }

    #[test]
    fn a_run_that_was_cut_short_has_no_ratio() {
        let mut outcome = fixtures::outcome(&[4], &[(0, 4, 10, 1, 0), (0, 4, 10, 1, 10)]);
        let whole = Metrics::of(&outcome, &Bounds::of(&outcome));
        assert_eq!((whole.ratio_best, whole.makespan_s), (Some(1.0), 20.0));
        let cut = &mut outcome.jobs[1];
        (cut.state, cut.end) = (JobState::Running, None);
        let metrics = Metrics::of(&outcome, &Bounds::of(&outcome));
        // 10 s of makespan over a bound of 20 s would be better than any schedule can be.
        assert_eq!((metrics.ratio_best, metrics.ratio_thesis, metrics.makespan_s), (None, None, 10.0));
    }

    #[test]
    fn a_run_without_finished_jobs_has_zeros_and_no_ratio() {
        let outcome = fixtures::outcome(&[2], &[]);
        let metrics = Metrics::of(&outcome, &Bounds::of(&outcome));
        assert_eq!(metrics.ratio_best, None);
        assert_eq!((metrics.makespan_s, metrics.wait_mean_s, metrics.utilization), (0.0, 0.0, 0.0));
    }
}
