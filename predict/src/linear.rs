//! On-line linear regression of run times on what is known of a job and of its user, with losses that need not be the same for predictions
//! that are too long and too short (Gaussier, Lelong, Reis and Trystram, SC'15, section 5: the losses and the features; Ross, Mineiro
//! and Langford, *Normalized online learning*, UAI 2013, algorithm NAG: the steps).
//!
//! ```text
//! predicted = Σ w_i x_i, in seconds;  loss = weight(job) · { over(e) if e > 0;  cost · under(−e) if e < 0 },  e = predicted − run time
//! abs(e) = e,  square(e) = e²;  x: see `features`, and with degree = 2 their products
//! ```
//!
//! Instead of the jobs of the user that run, which the reference counts, those count here that were submitted and have not ended: nobody
//! tells a predictor when a job starts.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display};

use scheduler::{JobId, JobSpec, Span, Time};

use super::last::keep;
use super::pending::Pending;
use super::spelled::{K_MAX, Options};
use super::{Rule, whole_seconds};

/// How an error counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// As it is.
    Abs,
    /// Its square, in seconds.
    Square,
}

const CURVES: [(&str, Curve); 2] = [("abs", Curve::Abs), ("square", Curve::Square)];

/// How a job counts, by its run time r in seconds and its processors m. The weights of SC'15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// All alike.
    One,
    /// 1 + ln(m r): large jobs more.
    Area,
    /// 11 + ln(1 / (m r)): small jobs more.
    Small,
    /// 5 + ln(r / m): long and narrow jobs more.
    Long,
    /// 5 + ln(m / r): short and wide jobs more.
    Wide,
}

const WEIGHTS: [(&str, Weight); 5] = [
    ("one", Weight::One),
    ("area", Weight::Area),
    ("small", Weight::Small),
    ("long", Weight::Long),
    ("wide", Weight::Wide),
];

impl Weight {
    fn of(self, processors: u32, run_time: f64) -> f64 {
        let (log_m, log_r) = (libm::log(f64::from(processors)), libm::log(run_time.max(1.0)));
        let weight = match self {
            Weight::One => 1.0,
            Weight::Area => 1.0 + log_m + log_r,
            Weight::Small => 11.0 - log_m - log_r,
            Weight::Long => 5.0 + log_r - log_m,
            Weight::Wide => 5.0 + log_m - log_r,
        };
        // Below zero it would be a reward for errors; such jobs of great machines count for nothing.
        weight.max(0.0)
    }
}

/// What is learned how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Of predictions that are too long.
    pub over: Curve,
    /// Of those that are too short.
    pub under: Curve,
    /// These count so many times as much.
    pub cost: u32,
    /// Of jobs.
    pub weight: Weight,
    /// 1: features; 2: their products, too.
    pub degree: u32,
    /// Length of steps, in seconds.
    pub eta: u32,
}

impl Linear {
    pub(super) fn read(options: &mut Options<'_>) -> Result<Linear, String> {
        Ok(Linear {
            over: options.one_of("over", &CURVES, Curve::Square)?,
            under: options.one_of("under", &CURVES, Curve::Abs)?,
            cost: options.number("cost", 1, K_MAX)?,
            weight: options.one_of("weight", &WEIGHTS, Weight::Area)?,
            degree: options.number("degree", 2, 2)?,
            eta: options.number("eta", 5000, ETA_MAX)?,
        })
    }
}

impl Display for Linear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let curve = |curve| CURVES.iter().find(|(_, other)| *other == curve).expect("all are there").0;
        let weight = WEIGHTS.iter().find(|(_, weight)| *weight == self.weight).expect("all are there").0;
        write!(
            f,
            "over={},under={},cost={},weight={weight},degree={},eta={}",
            curve(self.over),
            curve(self.under),
            self.cost,
            self.degree,
            self.eta
        )
    }
}

const FEATURES: usize = 19;
const DAY_S: f64 = 86_400.0;
/// The longest step, in seconds: arbitrary, more than a day.
const ETA_MAX: u32 = 100_000;

#[derive(Clone, Debug, Default)]
struct User {
    last: VecDeque<f64>,
    run_times: f64,
    processors: f64,
    ended: f64,
    last_end: Option<Time>,
    pending: BTreeMap<JobId, (Time, u32)>,
}

#[derive(Clone, Debug)]
pub(super) struct Experience {
    linear: Linear,
    users: BTreeMap<i32, User>,
    /// With the user.
    pending: Pending<(i32, [f64; FEATURES])>,
    model: Nag,
}

impl Experience {
    pub(super) fn new(linear: Linear) -> Experience {
        let eta = f64::from(linear.eta);
        Experience { linear, users: BTreeMap::new(), pending: Pending::new(), model: Nag::new(eta) }
    }

    fn features(&self, now: Time, job: &JobSpec) -> [f64; FEATURES] {
        let none = User::default();
        let user = self.users.get(&job.labels.user).unwrap_or(&none);
        let requested = job.requested.as_secs_f64();
        let processors = f64::from(job.processors);
        let last = |back: usize| {
            let place = user.last.len().checked_sub(back);
            place.map_or(requested, |place| user.last[place].min(requested))
        };
        let [one, two, three] = [1, 2, 3].map(last);
        let of_two = if user.last.len() < 2 { one } else { (one + two) / 2.0 };
        let of_three = if user.last.len() < 3 { of_two } else { (one + two + three) / 3.0 };
        let mean = |sum: f64| if user.ended > 0.0 { sum / user.ended } else { 0.0 };
        let width = mean(user.processors);
        let ages = || user.pending.values().map(|&(since, _)| now.since(since).as_secs_f64());
        let at = now.since(Time::ZERO).as_secs_f64();
        let of_day = std::f64::consts::TAU * (at / DAY_S);
        let of_week = of_day / 7.0;
        [
            1.0,
            one,
            two,
            three,
            requested,
            of_two,
            of_three,
            mean(user.run_times),
            user.last_end.map_or(0.0, |end| now.since(end).as_secs_f64()),
            if width > 0.0 { processors / width } else { 0.0 },
            user.pending.values().map(|&(_, processors)| f64::from(processors)).sum(),
            ages().sum(),
            user.pending.len() as f64,
            ages().fold(0.0, f64::max),
            libm::cos(of_day),
            libm::sin(of_day),
            libm::cos(of_week),
            libm::sin(of_week),
            processors,
        ]
    }

    fn expanded(&self, features: &[f64; FEATURES]) -> Vec<f64> {
        let mut all = features.to_vec();
        if self.linear.degree > 1 {
            for first in 1..FEATURES {
                for second in first..FEATURES {
                    all.push(features[first] * features[second]);
                }
            }
        }
        all
    }
}

impl Rule for Experience {
    fn predict(&mut self, now: Time, job: &JobSpec) -> Option<Span> {
        let features = self.features(now, job);
        let predicted = self.model.predict(&self.expanded(&features)).abs().max(1.0);
        if let Some((forgotten, (user, _))) = self.pending.insert(job.id, (job.labels.user, features))
            && let Some(user) = self.users.get_mut(&user)
        {
            user.pending.remove(&forgotten);
        }
        let user = self.users.entry(job.labels.user).or_default();
        user.pending.insert(job.id, (now, job.processors));
        let predicted = predicted.min(job.requested.as_secs_f64());
        Some(whole_seconds(Span::from_micros((predicted * 1e6) as i64)))
    }

    fn learn(&mut self, now: Time, job: &JobSpec, run_time: Span) {
        let known = self.pending.take(job.id).map(|(_, features)| features);
        let features = known.unwrap_or_else(|| self.features(now, job));
        let ran = run_time.as_secs_f64();
        let user = self.users.entry(job.labels.user).or_default();
        user.pending.remove(&job.id);
        keep(&mut user.last, ran, 3);
        user.run_times += ran;
        user.processors += f64::from(job.processors);
        user.ended += 1.0;
        user.last_end = Some(now);
        let Linear { over, under, cost, weight, .. } = self.linear;
        let weight = weight.of(job.processors, ran);
        let slope = |predicted: f64| {
            let error = predicted - ran;
            let of = |curve, error: f64| match curve {
                Curve::Abs => 1.0,
                Curve::Square => 2.0 * error,
            };
            weight
                * if error > 0.0 {
                    of(over, error)
                } else if error < 0.0 {
                    -f64::from(cost) * of(under, -error)
                } else {
                    0.0
                }
        };
        self.model.learn(&self.expanded(&features), slope);
    }

    fn boxed(&self) -> Box<dyn Rule> {
        Box::new(self.clone())
    }
}

/// A linear model by normalized adaptive gradients.
#[derive(Clone, Debug)]
struct Nag {
    eta: f64,
    weights: Vec<f64>,
    scales: Vec<f64>,
    gradients: Vec<f64>,
    norm: f64,
    steps: f64,
}

impl Nag {
    fn new(eta: f64) -> Nag {
        Nag { eta, weights: Vec::new(), scales: Vec::new(), gradients: Vec::new(), norm: 0.0, steps: 0.0 }
    }

    fn predict(&self, x: &[f64]) -> f64 {
        self.weights.iter().zip(x).map(|(weight, x)| weight * x).sum()
    }

    fn learn(&mut self, x: &[f64], slope: impl Fn(f64) -> f64) {
        for all in [&mut self.weights, &mut self.scales, &mut self.gradients] {
            all.resize(x.len(), 0.0);
        }
        for (place, x) in x.iter().enumerate() {
            let size = x.abs();
            if size > self.scales[place] {
                self.weights[place] *= self.scales[place] / size;
                self.scales[place] = size;
            }
        }
        let seen = |(x, scale): (&f64, &f64)| if *scale > 0.0 { (x / scale) * (x / scale) } else { 0.0 };
        self.norm += x.iter().zip(&self.scales).map(seen).sum::<f64>();
        self.steps += 1.0;
        let slope = slope(self.predict(x));
        let rate = self.eta * (self.steps / self.norm.max(f64::MIN_POSITIVE)).sqrt();
        for (place, x) in x.iter().enumerate() {
            let gradient = slope * x;
            self.gradients[place] += gradient * gradient;
            if self.gradients[place] > 0.0 {
                self.weights[place] -= rate * gradient / (self.scales[place] * self.gradients[place].sqrt());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::job;

    #[test]
    fn weights_are_those_of_the_campaign() {
        // ln 1 = 0: two of the four cancel.
        let e = std::f64::consts::E;
        for (weight, expected) in [
            (Weight::One, 1.0),
            (Weight::Area, 2.0),
            (Weight::Small, 10.0),
            (Weight::Long, 6.0),
            (Weight::Wide, 4.0),
        ] {
            assert!((weight.of(1, e) - expected).abs() < 1e-12, "{weight:?}");
        }
        assert_eq!(Weight::Small.of(1_000_000, 1_000_000.0), 0.0, "no reward for errors");
    }

    /// One feature x = 2 with run time 8. Scale 2, norm 1; the slope of |0 − 8| is −1, the gradient −2, its sum of squares 4; the step is
    /// eta √(1/1) · 2 / (2 · 2).
    #[test]
    fn a_step_is_worked_out_by_hand() {
        let mut model = Nag::new(6.0);
        let slope = |predicted: f64| if predicted < 8.0 { -1.0 } else { 1.0 };
        model.learn(&[2.0], slope);
        assert_eq!((model.weights[0], model.predict(&[2.0])), (3.0, 6.0));
        // Again: norm 2, sum of squares 8, and the step 6 √(2/2) · 2 / (2 √8).
        model.learn(&[2.0], slope);
        assert!((model.weights[0] - (3.0 + 6.0 / 8.0_f64.sqrt())).abs() < 1e-12);
        // A feature that was never so large has its weight shrunk first, so that what was learned of smaller ones stays in proportion.
        let before = model.weights[0];
        model.learn(&[4.0], |_| 0.0);
        assert_eq!(model.weights[0], before / 2.0);
        model.learn(&[0.0], slope);
        assert!(model.weights[0].is_finite());
    }

    #[test]
    fn features_are_what_is_known_at_the_submission() {
        let linear = "linear".parse();
        let Ok(crate::Predictor::Linear(linear)) = linear else { panic!("{linear:?}") };
        let mut experience = Experience::new(linear);
        let of = |id, processors| JobSpec { id: JobId(id), processors, ..job(1, 100) };
        let at = Time::from_secs;
        experience.predict(at(0), &of(1, 2));
        experience.predict(at(10), &of(2, 6));
        experience.learn(at(40), &of(1, 2), Span::from_secs(30));
        let features = experience.features(at(50), &of(3, 4));
        // One job of 30 s ended 10 s ago; one of 6 processors was submitted 40 s ago.
        let expected = [1.0, 30.0, 100.0, 100.0, 100.0, 30.0, 30.0, 30.0, 10.0, 2.0, 6.0, 40.0, 1.0, 40.0];
        assert_eq!(features[..14], expected);
        assert_eq!(features[18], 4.0);
        assert!((features[14] * features[14] + features[15] * features[15] - 1.0).abs() < 1e-12);
        assert_eq!(experience.expanded(&features).len(), 19 + 18 * 19 / 2);
    }

    #[test]
    fn predictions_come_near_to_a_user_who_always_runs_for_as_long() {
        let mut experience = Experience::new(Linear {
            over: Curve::Abs,
            under: Curve::Abs,
            cost: 1,
            weight: Weight::One,
            degree: 1,
            eta: 200,
        });
        for number in 0..1000 {
            let job = JobSpec { id: JobId(number), ..job(1, 1000) };
            let now = Time::from_secs(number as i64 * 1000);
            experience.predict(now, &job);
            experience.learn(now + Span::from_secs(400), &job, Span::from_secs(400));
        }
        let said = experience.predict(Time::from_secs(1_000_000), &job(1, 1000)).unwrap().as_secs_f64();
        assert!((300.0..500.0).contains(&said), "{said}");
    }
}
