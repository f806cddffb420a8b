//! One run beside many simulations of what it should have been: could it be one of them?
//!
//! A busy grid is chaotic. A message that is a second late may change who steals what, and everything after, so that a
//! correct run agrees with no simulation job for job. What agrees is the distribution of its figures. If the run is like
//! its n simulations, each of the n + 1 is equally likely to lie furthest out: the run is called different if it lies
//! further out than all of them, which happens to a correct one once in n + 1 times, however many figures there are and
//! however they are distributed (Barnard 1963; Besag and Diggle 1977).
//!
//! How far one lies out is its distance from the mean in units of the spread of all figures together (Mahalanobis 1936).
//! It sees what no figure shows alone: waits that are usual and waits of wide jobs that are usual, but not both at once.
//! Means and spread are of all n + 1, so that the run is treated as the simulations are. Nothing else of the run goes in.

use serde::{Deserialize, Serialize};

use crate::bounds::Bounds;
use crate::metrics::Metrics;
use crate::outcome::Outcome;
use crate::statistics::{mean, quantile, standard_deviation};

/// How many figures runs are compared by.
pub const FIGURES: usize = 8;
/// How many of them are means and counts: the others are of distributions.
pub const MEANS: usize = 7;
/// What they are called, with their units.
pub const NAMES: [&str; FIGURES] = [
    "makespan, s",
    "mean wait, s",
    "wait × width, s",
    "steal delay, s",
    "messages per job",
    "requests per job",
    "stolen jobs",
    "start delay, s",
];
/// The quantile of start delays that runs are compared by. Of one correct simulation of the quick start in two hundred a stolen job
/// waits at all: means would be of these few jobs.
const START_DELAY_SHARE: f64 = 0.95;
/// The range that is shown: such a share of the simulations is below, and as many are above.
const SHOWN: f64 = 0.01;
/// What is added to the correlation of each figure with itself: figures may be all but functions of each other.
const RIDGE: f64 = 0.01;

/// What runs are compared by.
///
/// The delay of a steal is from the grant to the acceptance of a job that ran elsewhere: one message, so that a wrong
/// delay shows there, whatever the schedule did. Messages, requests, stolen jobs, and whether wide or narrow jobs wait
/// tell strategies apart. A quantile of the delay from the acceptance of a stolen job to its start shows a site that starts
/// late, which no mean does: waits are chaotic.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// From the first submission to the last end.
    pub makespan_s: f64,
    /// Mean over jobs.
    pub wait_mean_s: f64,
    /// Mean over jobs of width times wait.
    pub wait_by_size_mean: f64,
    /// Mean over stolen jobs.
    pub steal_delay_mean_s: f64,
    /// Messages sent per finished job.
    pub messages_per_job: f64,
    /// Requests for work.
    pub requests_per_job: f64,
    /// Jobs that ran elsewhere.
    pub stolen_jobs: f64,
    /// 95 % of stolen jobs started no later than this after the site where they ran had accepted them. Runs that were judged
    /// before it was a figure do not have it, and are placed by the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_delay_p95_s: Option<f64>,
}

impl Figures {
    /// Of a complete run.
    pub fn of(outcome: &Outcome) -> Figures {
        let metrics = Metrics::of(outcome, &Bounds::of(outcome));
        let requests = metrics.requests as f64;
        let stolen = outcome.finished().filter(|job| job.stolen());
        let mut start_delays: Vec<f64> = stolen.map(|job| job.start_delay.as_secs_f64()).collect();
        start_delays.sort_unstable_by(f64::total_cmp);
        Figures {
            makespan_s: metrics.makespan_s,
            wait_mean_s: metrics.wait_mean_s,
            wait_by_size_mean: metrics.wait_by_size_mean,
            steal_delay_mean_s: metrics.steal_delay_mean_s,
            messages_per_job: metrics.messages_per_job,
            requests_per_job: if metrics.finished == 0 { 0.0 } else { requests / metrics.finished as f64 },
            stolen_jobs: metrics.stolen_jobs as f64,
            start_delay_p95_s: Some(quantile(&start_delays, START_DELAY_SHARE).unwrap_or(0.0)),
        }
    }

    /// In the order of [`NAMES`]; what is not known is 0.
    pub fn values(&self) -> [f64; FIGURES] {
        [
            self.makespan_s,
            self.wait_mean_s,
            self.wait_by_size_mean,
            self.steal_delay_mean_s,
            self.messages_per_job,
            self.requests_per_job,
            self.stolen_jobs,
            self.start_delay_p95_s.unwrap_or(0.0),
        ]
    }

    /// How many of them are known: all, or the means.
    fn known(&self) -> usize {
        if self.start_delay_p95_s.is_some() { FIGURES } else { MEANS }
    }
}

/// Where a run lies among simulations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    /// How many simulations there were.
    pub simulations: usize,
    /// How many of them lie at least as far out as the run.
    pub as_far_out: usize,
    /// Its squared distance from the mean of all.
    pub distance: f64,
    /// The greatest of a simulation.
    pub distance_max: f64,
    /// The same by figure, in the order of [`NAMES`].
    pub figures: Vec<Place>,
}

/// Where one figure of a run lies among those of simulations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// What it is.
    pub name: String,
    /// Of the run.
    pub run: f64,
    /// The median of the simulations.
    pub median: f64,
    /// What 1 % of them are below.
    pub low: f64,
    /// What 1 % of them are above.
    pub high: f64,
    /// Simulations with a smaller figure, and half of those with the same, in percent.
    pub percentile: f64,
    /// How many standard deviations of the simulations the run is above their mean; 0 if they agree and it does, too.
    pub deviations: f64,
}

impl Placed {
    /// Whether the run lies further out than every simulation. Never without simulations.
    pub fn differs(&self) -> bool {
        self.simulations > 0 && self.as_far_out == 0
    }

    /// The figures that no simulation has as great, or as small, furthest first.
    pub fn beyond(&self) -> Vec<&Place> {
        let mut beyond: Vec<&Place> = self
            .figures
            .iter()
            .filter(|place| place.percentile == 0.0 || place.percentile == 100.0)
            .collect();
        beyond.sort_by(|a, b| b.deviations.abs().total_cmp(&a.deviations.abs()));
        beyond
    }
}

/// Places a run among simulations, by the figures of these indices only.
pub fn place_by(run: &Figures, simulations: &[Figures], by: &[usize]) -> Placed {
    let rows: Vec<Vec<f64>> = std::iter::once(run)
        .chain(simulations)
        .map(|figures| by.iter().map(|&index| figures.values()[index]).collect())
        .collect();
    let distances = distances(&rows);
    let place = |(column, &index): (usize, &usize)| {
        place(NAMES[index], rows[0][column], rows[1..].iter().map(|row| row[column]).collect())
    };
    Placed {
        simulations: simulations.len(),
        as_far_out: distances[1..].iter().filter(|&&distance| distance >= distances[0]).count(),
        distance: distances[0],
        distance_max: distances[1..].iter().copied().fold(0.0, f64::max),
        figures: by.iter().enumerate().map(place).collect(),
    }
}

/// Places a run among simulations, by all figures that it has.
pub fn place_among(run: &Figures, simulations: &[Figures]) -> Placed {
    place_by(run, simulations, &(0..run.known()).collect::<Vec<usize>>())
}

fn place(name: &str, run: f64, mut values: Vec<f64>) -> Place {
    values.sort_unstable_by(f64::total_cmp);
    let below = values.iter().filter(|&&value| value < run).count() as f64;
    let same = values.iter().filter(|&&value| value == run).count() as f64;
    let at = |share| quantile(&values, share).unwrap_or(run);
    let distance = run - mean(&values).unwrap_or(run);
    Place {
        name: name.to_string(),
        run,
        median: at(0.5),
        low: at(SHOWN),
        high: at(1.0 - SHOWN),
        percentile: 100.0 * (below + same / 2.0) / values.len().max(1) as f64,
        // What is beyond simulations that all agree is as far as can be written.
        deviations: match standard_deviation(&values) {
            Some(deviation) if deviation > 0.0 => distance / deviation,
            _ if distance == 0.0 => 0.0,
            _ => f64::MAX.copysign(distance),
        },
    }
}

/// The squared Mahalanobis distance of each row from the mean of all. Columns without spread count nothing.
fn distances(rows: &[Vec<f64>]) -> Vec<f64> {
    let columns = rows.first().map_or(0, Vec::len);
    let column = |index: usize| rows.iter().map(|row| row[index]).collect::<Vec<f64>>();
    let scaled: Vec<Vec<f64>> = (0..columns)
        .filter_map(|index| {
            let values = column(index);
            let (mean, deviation) = (mean(&values)?, standard_deviation(&values).filter(|&sd| sd > 0.0)?);
            Some(values.iter().map(|value| (value - mean) / deviation).collect())
        })
        .collect();
    let correlation: Vec<Vec<f64>> = scaled
        .iter()
        .map(|a| {
            scaled
                .iter()
                .map(|b| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / (rows.len() as f64 - 1.0))
                .collect()
        })
        .collect();
    let root = cholesky(correlation);
    (0..rows.len())
        .map(|row| {
            let mut solved: Vec<f64> = Vec::with_capacity(root.len());
            for (index, factors) in root.iter().enumerate() {
                let known: f64 = factors.iter().zip(&solved).map(|(factor, value)| factor * value).sum();
                solved.push((scaled[index][row] - known) / factors[index]);
            }
            solved.iter().map(|value| value * value).sum()
        })
        .collect()
}

/// The lower triangle L with L Lᵀ = a matrix of correlations and [`RIDGE`] on its diagonal.
fn cholesky(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for row in 0..matrix.len() {
        matrix[row][row] += RIDGE;
        for column in 0..=row {
            let known: f64 = (0..column).map(|k| matrix[row][k] * matrix[column][k]).sum();
            let rest = matrix[row][column] - known;
            matrix[row][column] = if row == column { rest.sqrt() } else { rest / matrix[column][column] };
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    use scheduler::event::GrantCause;
    use scheduler::{EventKind, Grid, JobId, SiteId, Threshold};

    use super::*;
    use crate::fixtures::{self, completed, event};
    use crate::outcome::OutcomeBuilder;

    fn figures(values: [f64; FIGURES]) -> Figures {
        let [
            makespan_s,
            wait_mean_s,
            wait_by_size_mean,
            steal_delay_mean_s,
            messages_per_job,
            requests_per_job,
            stolen_jobs,
            start_delay,
        ] = values;
        Figures {
            makespan_s,
            wait_mean_s,
            wait_by_size_mean,
            steal_delay_mean_s,
            messages_per_job,
            requests_per_job,
            stolen_jobs,
            start_delay_p95_s: Some(start_delay),
        }
    }

    /// Figures that depend on each other, one of them with a long tail, one always the same.
    fn drawn(rng: &mut ChaCha8Rng) -> Figures {
        let mut unit = || rng.random_range(0.0..1.0_f64);
        let sum = unit() + unit() + unit() + unit();
        let tail = -(1.0 - unit()).ln();
        let stolen = (50.0 * (sum + unit())).round();
        figures([
            1000.0 + tail,
            100.0 + sum,
            100.0 + 1.01 * sum + 0.1 * unit(),
            300.0 + unit(),
            2.0 + sum,
            7.0,
            stolen,
            0.0,
        ])
    }

    fn ensemble(seed: u64, count: usize) -> Vec<Figures> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..count).map(|_| drawn(&mut rng)).collect()
    }

    #[test]
    fn what_is_like_the_others_is_called_different_once_in_so_many_times() {
        // 39 simulations: once in 40 times, whatever the figures.
        let called = (0..4000).filter(|&seed| {
            let all = ensemble(seed, 40);
            place_among(&all[0], &all[1..]).differs()
        });
        let called = called.count();
        // 100 are expected, with a standard deviation of 10.
        assert!((60..=140).contains(&called), "{called} of 4000");
    }

    #[test]
    fn one_figure_that_is_off_is_enough_and_is_named() {
        let simulations = ensemble(1, 200);
        let right = ensemble(2, 1)[0];
        let placed = place_among(&right, &simulations);
        assert!(!placed.differs(), "{placed:?}");
        for (index, value) in
            [(0, 1030.0), (1, 180.0), (2, 20.0), (3, 150.0), (4, 30.0), (5, 8.0), (6, -300.0), (7, 0.001)]
        {
            let mut wrong = right.values();
            wrong[index] = value;
            let wrong = figures(wrong);
            let placed = place_among(&wrong, &simulations);
            assert!(placed.differs(), "{}: {placed:?}", NAMES[index]);
            assert_eq!(placed.beyond()[0].name, NAMES[index]);
            let others: Vec<usize> = (0..FIGURES).filter(|&other| other != index).collect();
            assert!(!place_by(&wrong, &simulations, &others).differs(), "{}", NAMES[index]);
        }
    }

    #[test]
    fn figures_that_are_usual_alone_can_be_unusual_together() {
        let simulations = ensemble(1, 200);
        let mut wrong = simulations[0].values();
        // Both are in the range of the simulations, where one is all but a function of the other.
        (wrong[1], wrong[2]) = (101.0, 103.0);
        let placed = place_among(&figures(wrong), &simulations);
        assert!(placed.differs(), "{placed:?}");
        assert!(placed.beyond().is_empty(), "{placed:?}");
    }

    #[test]
    fn distances_are_those_of_the_textbook_but_for_the_ridge() {
        // Uncorrelated, mean 0, variance 4/3: (1 / (4/3)) / 1.01 for each column that is off.
        let rows = [vec![1.0, 1.0], vec![1.0, -1.0], vec![-1.0, 1.0], vec![-1.0, -1.0]];
        for distance in distances(&rows) {
            assert!((distance - 2.0 * 0.75 / 1.01).abs() < 1e-12, "{distance}");
        }
        // Two columns that are one.
        let rows = [vec![1.0, 2.0], vec![-1.0, -2.0], vec![0.0, 0.0]];
        assert!((distances(&rows)[0] - 2.0 / 2.01).abs() < 1e-9, "{:?}", distances(&rows));
    }

    #[test]
    fn places_are_percentiles() {
        let simulations: Vec<Figures> = (0..200).map(|n| figures([f64::from(n); FIGURES])).collect();
        let placed = place_among(&figures([50.0; FIGURES]), &simulations);
        let place = &placed.figures[0];
        assert_eq!((place.percentile, place.median), (25.25, 99.5));
        assert!((place.low - 1.99).abs() < 1e-9 && (place.high - 197.01).abs() < 1e-9, "{place:?}");
        // 0 to 50 and about as many from 149 on lie as far out, on one side or the other.
        assert!((98..=104).contains(&placed.as_far_out), "{placed:?}");
    }

    #[test]
    fn without_simulations_or_spread_nothing_differs() {
        let same = figures([3.0; FIGURES]);
        assert!(!place_among(&same, &[]).differs());
        let placed = place_among(&same, &[same; 200]);
        assert!(!placed.differs());
        assert_eq!((placed.as_far_out, placed.figures[0].deviations), (200, 0.0));
        // And what differs from 200 that agree does.
        let other = Figures { steal_delay_mean_s: 3.5, ..same };
        let placed = place_among(&other, &[same; 200]);
        assert!(placed.differs());
        assert_eq!(placed.beyond()[0].name, "steal delay, s");
    }

    /// A stolen job: granted by the first of two sites, accepted by the second a second later, started so much later.
    fn stolen(builder: &mut OutcomeBuilder, job: u64, at: i64, start_delay: i64) {
        let (id, transfer, request) = (JobId(job), 1, 1);
        let cause = GrantCause::Request;
        let granted = EventKind::Granted { job: id, to: SiteId(2), transfer, hops: 1, cause, request };
        builder.observe(&event(at, 1, granted));
        let accepted = EventKind::Accepted { job: id, from: SiteId(1), transfer, firm: false };
        builder.observe(&event(at + 1, 2, accepted));
        let begun = EventKind::Started { job: id, processors: 1, hops: 1 };
        builder.observe(&event(at + 1 + start_delay, 2, begun));
        builder.observe(&completed(at + 1 + start_delay + 10, 2, job));
    }

    #[test]
    fn the_start_delay_is_that_of_the_naive_twin() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        for count in [1, 2, 20, 21, 100] {
            let jobs: Vec<_> = (1..=count).map(|id| fixtures::timed_job(id, 0, 1, 10)).collect();
            let grid = Grid::of_sizes(&[2, 4]).unwrap();
            let mut builder = OutcomeBuilder::new(&grid, Threshold::HALF, &jobs);
            let mut delays: Vec<i64> = (0..count).map(|_| rng.random_range(0..1000)).collect();
            for (job, &delay) in (1..).zip(&delays) {
                stolen(&mut builder, job, 5 * job as i64, delay);
            }
            // By counting: as many twentieths of the way from the least to the greatest, in order.
            delays.sort_unstable();
            let (whole, part) = (19 * (count as usize - 1) / 20, 19 * (count as usize - 1) % 20);
            let next = delays[(whole + 1).min(delays.len() - 1)];
            let naive = delays[whole] as f64 + (next - delays[whole]) as f64 * part as f64 / 20.0;
            let found = Figures::of(&builder.finish()).start_delay_p95_s.unwrap();
            assert!((found - naive).abs() < 1e-9, "{found} and {naive} of {delays:?}");
        }
    }

    #[test]
    fn runs_from_before_a_figure_are_placed_by_the_others() {
        let simulations = ensemble(1, 200);
        let run = Figures { start_delay_p95_s: None, ..ensemble(2, 1)[0] };
        let placed = place_among(&run, &simulations);
        assert_eq!(placed.figures.len(), MEANS);
        assert_eq!(placed, place_by(&run, &simulations, &[0, 1, 2, 3, 4, 5, 6]));
    }

    #[test]
    fn the_makespan_counts_from_the_first_submission() {
        let outcome = fixtures::outcome(&[2, 4], &[(100, 2, 10, 1, 130), (103, 2, 5, 2, 104)]);
        let found = Figures::of(&outcome);
        assert_eq!((found.makespan_s, found.wait_mean_s), (40.0, 15.5));
    }
}
