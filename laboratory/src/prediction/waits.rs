//! How long jobs wait, and who says so when they come: predictors of waits beside one machine under EASY by users' estimates.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::{Duration, Instant};

use predict::score::{Coverage, Errors, within};
use predict::waits::{Ahead, Arrival, WaitPredictor, Waits};
use scheduler::local::{Estimator, LocalQueue, Watch, replay_seen};
use scheduler::{JobId, JobSpec, Pass, Span, Time, TimedJob, spelling};

use super::choice::Order;
use super::schedules::parts;
use super::stored::{CurveRow, WaitCost, WaitRow};

/// Who says how long jobs wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WhoWaits {
    /// The queue played forward by one who knows all run times, but not who comes later: what is left of an error is theirs.
    Exact,
    /// A predictor.
    Predictor(WaitPredictor),
}

const EXACT: &str = "plan:by=exact";

/// Who is tried if nobody says so.
const TRIED: [&str; 8] =
    ["plan", "plan:by=avg2", "plan:by=template", EXACT, "quantile", "smith", "li", "ibl"];

impl FromStr for WhoWaits {
    type Err = String;

    fn from_str(text: &str) -> Result<WhoWaits, String> {
        if text == EXACT {
            return Ok(WhoWaits::Exact);
        }
        text.parse().map(WhoWaits::Predictor).map_err(|error: String| {
            let hint = if text.starts_with("plan:") && !error.contains("did you mean") {
                format!("; or {EXACT}{}", spelling::hint(text, [EXACT]))
            } else {
                String::new()
            };
            format!("{error}{hint}")
        })
    }
}

impl Display for WhoWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhoWaits::Exact => f.write_str(EXACT),
            WhoWaits::Predictor(predictor) => Display::fmt(predictor, f),
        }
    }
}

impl WhoWaits {
    /// Those that are tried if nobody says so.
    pub(super) fn all() -> Vec<WhoWaits> {
        TRIED.iter().map(|name| name.parse().expect("each name is one")).collect()
    }

    /// How it is shown: by its name alone where its options are the defaults.
    pub(super) fn short(name: &str) -> &str {
        let is_default = |short: &&&str| short.parse().is_ok_and(|of: WhoWaits| of.to_string() == name);
        TRIED.iter().find(is_default).copied().unwrap_or(name)
    }

    fn waits(self, jobs: &[TimedJob]) -> Waits {
        match self {
            WhoWaits::Predictor(predictor) => predictor.waits(),
            WhoWaits::Exact => {
                let run_times = jobs.iter().map(|job| (job.spec.id, job.run_time)).collect();
                Waits::by_plan(Box::new(Knowing { run_times }))
            }
        }
    }

    fn bound(self) -> Option<(f64, f64)> {
        match self {
            WhoWaits::Exact => None,
            WhoWaits::Predictor(predictor) => predictor.bound(),
        }
    }
}

/// One who knows how long jobs run.
#[derive(Clone, Debug)]
struct Knowing {
    run_times: BTreeMap<JobId, Span>,
}

impl Estimator for Knowing {
    fn predict(&mut self, _now: Time, job: &JobSpec) -> Span {
        self.run_times[&job.id]
    }

    fn correct(&self, _job: &JobSpec, predicted: Span, _before: u32) -> Span {
        predicted
    }

    fn learn(&mut self, _now: Time, _job: &JobSpec, _run_time: Span) {}

    fn boxed(&self) -> Box<dyn Estimator> {
        Box::new(self.clone())
    }
}

/// What is said of a job when it comes, and what comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waited {
    /// None where nothing is known that it could be taken from.
    pub(super) predicted: Option<Span>,
    pub(super) wait: Span,
    /// What waited before it.
    pub(super) ahead: Ahead,
}

/// Somebody who predicts beside a replay.
struct Beside {
    waits: Waits,
    ahead: Ahead,
    said: BTreeMap<JobId, Waited>,
    took: Duration,
}

impl Watch for Beside {
    fn submitted(&mut self, queue: &LocalQueue, now: Time, job: &JobSpec) {
        let arrival = Arrival { now, job, queue, ahead: self.ahead };
        let begun = Instant::now();
        let predicted = self.waits.predict(&arrival);
        self.took += begun.elapsed();
        self.said.insert(job.id, Waited { predicted, wait: Span::ZERO, ahead: self.ahead });
        self.ahead.add(job);
    }

    fn started(&mut self, now: Time, job: &TimedJob) {
        self.ahead.remove(&job.spec);
        self.said.get_mut(&job.spec.id).expect("it was submitted").wait = now.since(job.spec.submit);
        let begun = Instant::now();
        self.waits.started(now, &job.spec);
        self.took += begun.elapsed();
    }

    fn ended(&mut self, now: Time, job: &TimedJob) {
        let begun = Instant::now();
        self.waits.ended(now, &job.spec, job.run_time);
        self.took += begun.elapsed();
    }
}

/// A predictor of waits on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) who: WhoWaits,
    pub(super) order: Order,
}

impl Waiting {
    pub(super) fn is(&self, row: &WaitRow) -> bool {
        self.who.to_string() == row.predictor && self.order.to_string() == row.backfill
    }

    pub(super) fn took(&self, cost: &WaitCost) -> bool {
        self.who.to_string() == cost.predictor && self.order.to_string() == cost.backfill
    }

    pub(super) fn drew(&self, row: &CurveRow) -> bool {
        self.who.to_string() == row.predictor && self.order.to_string() == row.backfill
    }

    /// What is said of each job, and how long that took; jobs that were there before are met first, on a machine of so many processors.
    pub(super) fn run(
        &self,
        processors: u32,
        pass: Pass,
        earlier: &[(u32, Vec<TimedJob>)],
        jobs: &[TimedJob],
    ) -> (Vec<Waited>, Duration) {
        let mut waits = self.who.waits(jobs);
        for (processors, earlier) in earlier {
            // One who knows has nothing to learn.
            if self.who == WhoWaits::Exact {
                break;
            }
            waits = self.met(waits, *processors, pass, earlier).waits;
        }
        let mut beside = self.met(waits, processors, pass, jobs);
        let all = jobs.iter().map(|job| beside.said.remove(&job.spec.id).expect("each was submitted"));
        (all.collect(), beside.took)
    }

    fn met(&self, waits: Waits, processors: u32, pass: Pass, jobs: &[TimedJob]) -> Beside {
        let mut beside =
            Beside { waits, ahead: Ahead::default(), said: BTreeMap::new(), took: Duration::ZERO };
        replay_seen(LocalQueue::new(self.order.0, pass, processors), jobs, &mut beside);
        beside
    }

    /// Figures of the log and its halves.
    pub(super) fn rows(
        &self,
        processors: u32,
        pass: Pass,
        earlier: &[(u32, Vec<TimedJob>)],
        jobs: &[TimedJob],
    ) -> (Vec<WaitRow>, Vec<CurveRow>, WaitCost) {
        let (all, took) = self.run(processors, pass, earlier, jobs);
        let rows = parts(all.len()).into_iter().filter_map(|(part, range)| self.row(part, &all[range]));
        let rows = rows.collect();
        let said = all.iter().filter_map(|job| Some((job.predicted?, job.wait)));
        let pairs: Vec<(Span, Span)> = said.collect();
        let curves = CurveRow::all(&self.who.to_string(), &self.order.to_string(), &pairs);
        let cost = WaitCost {
            predictor: self.who.to_string(),
            backfill: self.order.to_string(),
            predictions: all.len(),
            cost_us: took.as_secs_f64() * 1e6 / all.len().max(1) as f64,
        };
        (rows, curves, cost)
    }

    /// Figures of some jobs; nothing if nothing was said of any.
    fn row(&self, part: &str, waited: &[Waited]) -> Option<WaitRow> {
        let pairs: Vec<(Span, Span)> =
            waited.iter().filter_map(|job| job.predicted.map(|predicted| (predicted, job.wait))).collect();
        let errors = Errors::of(&pairs)?;
        let coverage = self.who.bound().and_then(|_| Coverage::of(&pairs));
        Some(WaitRow {
            predictor: self.who.to_string(),
            backfill: self.order.to_string(),
            part: part.to_string(),
            jobs: errors.jobs,
            wait_mean_s: errors.run_time_mean_s,
            mae_s: errors.mae_s,
            mae_share: errors.mae_share,
            error_median_s: errors.error_median_s,
            under_share: errors.under_share,
            within_1min_share: within(&pairs, MINUTE)?,
            within_10min_share: within(&pairs, TEN_MINUTES)?,
            slope: errors.slope,
            correlation: errors.correlation,
            quantile: self.who.bound().map(|(quantile, _)| quantile),
            confidence: self.who.bound().map(|(_, confidence)| confidence),
            coverage: coverage.map(|coverage| coverage.share),
            coverage_half_width: coverage.and_then(|coverage| coverage.half_width),
        })
    }
}

/// Errors that a user hardly notices, and that are good enough to go for a coffee; as measured for ARCHER2 and Cirrus (Brown and others 2022).
const MINUTE: Span = Span::from_secs(60);
const TEN_MINUTES: Span = Span::from_secs(600);

#[cfg(test)]
mod tests {
    use scheduler::{Labels, LocalScheduler, SiteId};

    use super::*;

    fn job(id: u64, submit: i64, processors: u32, requested: i64, run_time: i64) -> TimedJob {
        TimedJob {
            spec: JobSpec {
                id: JobId(id),
                submit: Time::from_secs(submit),
                processors,
                requested: Span::from_secs(requested),
                labels: Labels { user: 1, ..Labels::UNKNOWN },
                origin: SiteId(1),
                payload: 0,
            },
            run_time: Span::from_secs(run_time),
        }
    }

    /// On 4 processors job 1 asks for 100 s and runs 60. Job 2 comes at 10 s and needs all: by its user it waits for 90 s, by one who knows
    /// for 50. Job 3 comes at 20 s and needs all for 5 s: 120 s by users, as job 2 asks for 40 s, and 45 s by one who knows; job 2 runs for 5 s.
    #[test]
    fn a_row_is_worked_out_by_hand() {
        let jobs = [job(1, 0, 3, 100, 60), job(2, 10, 4, 40, 5), job(3, 20, 4, 5, 5)];
        let seconds = |who: &str| {
            let waiting = Waiting { who: who.parse().unwrap(), order: Order(LocalScheduler::Easy) };
            let (all, _) = waiting.run(4, Pass::PerEvent, &[], &jobs);
            all.iter()
                .map(|job| [job.predicted.unwrap(), job.wait].map(|span| span.as_micros() / 1_000_000))
                .collect::<Vec<_>>()
        };
        assert_eq!(seconds("plan"), [[0, 0], [90, 50], [120, 45]]);
        assert_eq!(seconds("plan:by=exact"), [[0, 0], [50, 50], [45, 45]]);
        let waiting = Waiting { who: "plan".parse().unwrap(), order: Order(LocalScheduler::Easy) };
        let (rows, curves, cost) = waiting.rows(4, Pass::PerEvent, &[], &jobs);
        assert_eq!((rows.len(), cost.predictions, curves.len()), (3, 3, 3));
        // Errors 0, 40 and 75 of waits 0, 50 and 45.
        assert_eq!(
            (rows[0].wait_mean_s, rows[0].error_median_s, rows[0].under_share),
            (95.0 / 3.0, 40.0, 0.0)
        );
        assert!((rows[0].mae_share - 115.0 / 95.0).abs() < 1e-12);
        assert_eq!((rows[0].within_1min_share, rows[0].within_10min_share), (2.0 / 3.0, 1.0));
        assert_eq!((rows[0].coverage, rows[0].quantile), (None, None));
        let (all, _) = waiting.run(4, Pass::PerEvent, &[], &jobs);
        assert_eq!(all[2].ahead, Ahead { jobs: 1, work: 160_000_000 });
    }

    /// Jobs of a log before this one are learned from, and the same as if they had come first.
    #[test]
    fn who_met_an_earlier_log_knows_its_waits() {
        let earlier: Vec<TimedJob> = (0..60).map(|id| job(id, 0, 4, 10, 10)).collect();
        let jobs = [job(1, 0, 4, 10, 10)];
        for (who, expected) in
            [("quantile", Some(Span::from_secs(590))), ("smith", Some(Span::from_secs(295)))]
        {
            let waiting = Waiting { who: who.parse().unwrap(), order: Order(LocalScheduler::Easy) };
            assert_eq!(waiting.run(4, Pass::Batch, &[], &jobs).0[0].predicted, None, "{who}");
            let (all, _) = waiting.run(4, Pass::Batch, &[(4, earlier.clone())], &jobs);
            assert_eq!(all[0].predicted, expected, "{who}");
        }
    }

    #[test]
    fn names_are_read_and_shown_short() {
        assert_eq!("plan:by=exact".parse::<WhoWaits>().unwrap(), WhoWaits::Exact);
        assert_eq!(
            WhoWaits::all()
                .iter()
                .map(|who| WhoWaits::short(&who.to_string()).to_string())
                .collect::<Vec<_>>(),
            TRIED
        );
        let error = "plan:by=exakt".parse::<WhoWaits>().unwrap_err();
        assert!(error.contains("plan:by=exact"), "{error}");
    }
}
