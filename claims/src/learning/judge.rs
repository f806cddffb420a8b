//! What rows say: means, the tests of the published tables, and a verdict on each of its claims.
//!
//! The author's test is Welch's, one-tailed and unpaired; rounds are paired, so verdicts are by the paired one, two-sided,
//! at 5 %, with Holm's correction within a claim. Where a difference matters only from some size on, a verdict may also be that
//! it is less than that, by two one-sided tests.

use analysis::statistics::{holm, mean, standard_deviation};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::{Row, setting};

/// How often a difference that is none may be called one.
pub const LEVEL: f64 = 0.05;
/// Settings whose G differs by less than this differ by nothing that matters, in points; the printed gains of settings differ
/// by 3 to 20.
pub const LEAST_POINTS: f64 = 1.0;
/// The least gain that is said to be usual of the method, in percent (C3).
const GAIN_LEAST: f64 = 3.0;

/// Mean, standard deviation and number of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Arithmetic mean.
    pub mean: f64,
    /// With n - 1.
    pub sd: f64,
    /// At least 2.
    pub count: usize,
}

impl Sample {
    /// Of values; `None` of fewer than two.
    pub fn of(values: &[f64]) -> Option<Sample> {
        Some(Sample { mean: mean(values)?, sd: standard_deviation(values)?, count: values.len() })
    }
}

/// The chance of means so far apart if they were equal, one-tailed (Welch 1947). `None` where neither sample varies.
pub fn welch(one: Sample, other: Sample) -> Option<f64> {
    let part = |sample: Sample| sample.sd * sample.sd / sample.count as f64;
    let (a, b) = (part(one), part(other));
    let degrees = |part: f64, sample: Sample| part * part / (sample.count - 1) as f64;
    let freedom = (a + b) * (a + b) / (degrees(a, one) + degrees(b, other));
    let t = (one.mean - other.mean).abs() / (a + b).sqrt();
    Some(1.0 - StudentsT::new(0.0, 1.0, freedom).ok()?.cdf(t))
}

/// A mean of differences of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// The mean.
    pub mean: f64,
    /// Its interval, 95 %.
    pub low: f64,
    /// See `low`.
    pub high: f64,
    /// The chance of a mean so far from 0 if there were no difference, two-sided.
    pub chance: f64,
    /// The standard error of the mean.
    pub error: f64,
    /// Differences less one.
    pub freedom: usize,
}

impl Paired {
    /// Of differences; `None` of fewer than two.
    pub fn of(differences: &[f64]) -> Option<Paired> {
        let Sample { mean, sd, count } = Sample::of(differences)?;
        let freedom = count - 1;
        let student = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
        let error = sd / (count as f64).sqrt();
        let margin = error * student.inverse_cdf(1.0 - LEVEL / 2.0);
        let chance = match (error > 0.0, mean == 0.0) {
            (true, _) => 2.0 * (1.0 - student.cdf(mean.abs() / error)),
            (false, true) => 1.0,
            (false, false) => 0.0,
        };
        Some(Paired { mean, low: mean - margin, high: mean + margin, chance, error, freedom })
    }

    /// The chance of a mean so low if the difference were `limit`, one-sided.
    fn chance_below(&self, limit: f64) -> f64 {
        let Ok(student) = StudentsT::new(0.0, 1.0, self.freedom as f64) else { return 1.0 };
        match self.error > 0.0 {
            true => student.cdf((self.mean - limit) / self.error),
            false => f64::from(u8::from(self.mean >= limit)),
        }
    }

    /// The chance of a mean so far within these limits on both sides if the difference were one of them.
    pub fn chance_within(&self, limit: f64) -> f64 {
        let other = Paired { mean: -self.mean, ..*self };
        self.chance_below(limit).max(other.chance_below(limit))
    }

    /// How far the mean of so many rounds would be from the true one at most, in 95 of 100 cases.
    pub fn margin_of(&self, rounds: usize) -> Option<f64> {
        let student = StudentsT::new(0.0, 1.0, rounds.checked_sub(1)? as f64).ok()?;
        let sd = self.error * ((self.freedom + 1) as f64).sqrt();
        Some(student.inverse_cdf(1.0 - LEVEL / 2.0) * sd / (rounds as f64).sqrt())
    }
}

/// A number of a row.
pub type Metric = fn(&Row) -> f64;

/// Numbers of a scenario and rule, by round.
pub fn values(rows: &[Row], scenario: &str, rule: &str, metric: Metric) -> Vec<f64> {
    let mut found: Vec<(u64, f64)> = rows
        .iter()
        .filter(|row| row.scenario == scenario && row.rule == rule)
        .map(|row| (row.round, metric(row)))
        .collect();
    found.sort_by_key(|(round, _)| *round);
    found.into_iter().map(|(_, value)| value).collect()
}

/// G of each round: by how much less than the baseline's makespan that of a rule is, in percent (§5.4).
pub fn gains(rows: &[Row], scenario: &str, rule: &str) -> Vec<f64> {
    let of = |rule| values(rows, scenario, rule, |row| row.makespan_s);
    of(rule).iter().zip(of("round-robin")).map(|(own, base)| 100.0 * (1.0 - own / base)).collect()
}

/// First minus second, pair by pair.
pub fn differences(first: &[f64], second: &[f64]) -> Vec<f64> {
    first.iter().zip(second).map(|(first, second)| first - second).collect()
}

/// What runs say of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All that it says is found.
    Confirmed,
    /// The opposite of a part of it is found.
    Refuted,
    /// All that it says is found to be less than what matters.
    TooSmall,
    /// Neither.
    NotDecided,
}

impl Verdict {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Confirmed => "confirmed",
            Verdict::Refuted => "refuted",
            Verdict::TooSmall => "no difference that matters",
            Verdict::NotDecided => "not decided",
        }
    }
}

/// A claim, what was found, and what that means.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// C1 to C8.
    pub claim: &'static str,
    /// What it says, as it was tested.
    pub says: &'static str,
    /// The numbers, each with its interval.
    pub found: String,
    /// By them.
    pub verdict: Verdict,
}

/// What a part of a claim says of a mean of differences.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Says {
    /// That it is above 0; and matters only from here on, if anything is said.
    Above(Option<f64>),
    /// That it is 0: no further from it than this, if anything is said.
    None(Option<f64>),
}

/// One part of a claim.
#[derive(Clone, Debug)]
pub(super) struct Part {
    name: String,
    paired: Paired,
    says: Says,
}

impl Part {
    fn of(name: impl Into<String>, differences: &[f64], says: Says) -> Option<Part> {
        Some(Part { name: name.into(), paired: Paired::of(differences)?, says })
    }

    /// Differences that are said to be above 0.
    pub(super) fn above(name: impl Into<String>, differences: &[f64]) -> Option<Part> {
        Part::of(name, differences, Says::Above(None))
    }

    /// Differences that are said to be above 0, and that matter from `least` on.
    fn above_by(name: impl Into<String>, differences: &[f64], least: f64) -> Option<Part> {
        Part::of(name, differences, Says::Above(Some(least)))
    }

    /// Differences that are said to be none; no test that finds none can confirm it.
    fn none(name: impl Into<String>, differences: &[f64]) -> Option<Part> {
        Part::of(name, differences, Says::None(None))
    }

    /// Differences that are said to be within these limits on both sides.
    pub(super) fn same(name: impl Into<String>, differences: &[f64], limit: f64) -> Option<Part> {
        Part::of(name, differences, Says::None(Some(limit)))
    }
}

/// All parts together, with Holm's correction. "No difference" without a limit is never confirmed by a test that finds none: it is
/// then not decided.
fn judge(parts: &[Part]) -> Verdict {
    let corrected = |chance: &dyn Fn(&Part) -> f64| holm(&parts.iter().map(chance).collect::<Vec<f64>>());
    let differ = corrected(&|part| part.paired.chance);
    let within = corrected(&|part| {
        let (Says::Above(limit) | Says::None(limit)) = part.says;
        limit.map_or(1.0, |limit| part.paired.chance_within(limit))
    });
    let is = |chance: f64| chance <= LEVEL;
    let all = |holds: &dyn Fn(&Part, f64, f64) -> bool| {
        !parts.is_empty()
            && parts.iter().zip(differ.iter().zip(&within)).all(|(part, (&a, &b))| holds(part, a, b))
    };
    let against = |part: &Part, differs: f64, within: f64| match part.says {
        Says::Above(_) => is(differs) && part.paired.mean < 0.0,
        Says::None(_) => is(differs) && !is(within),
    };
    let for_it = |part: &Part, differs: f64, within: f64| match part.says {
        Says::Above(_) => is(differs) && part.paired.mean > 0.0,
        Says::None(_) => is(within),
    };
    let too_small = |part: &Part, _: f64, within: f64| matches!(part.says, Says::Above(_)) && is(within);
    if all(&too_small) {
        Verdict::TooSmall
    } else if !all(&|part, a, b| !against(part, a, b)) && !parts.is_empty() {
        Verdict::Refuted
    } else if all(&for_it) {
        Verdict::Confirmed
    } else {
        Verdict::NotDecided
    }
}

fn found(parts: &[Part], unit: &str) -> String {
    let one = |part: &Part| {
        let Paired { mean, low, high, .. } = part.paired;
        format!("{} {mean:.2}{unit} ({low:.2} to {high:.2})", part.name)
    };
    parts.iter().map(one).collect::<Vec<String>>().join("; ")
}

pub(super) fn judged(
    claim: &'static str,
    says: &'static str,
    parts: Vec<Option<Part>>,
    unit: &str,
) -> Judged {
    let parts: Vec<Part> = parts.into_iter().flatten().collect();
    Judged { claim, says, found: found(&parts, unit), verdict: judge(&parts) }
}

const LEARNERS: [(&str, &str); 2] = [("ag", "AG"), ("mqd", "MQD")];

/// Claims C1 to C8 (§5.8 of the extract) by the rows of all scenarios.
pub fn verdicts(rows: &[Row]) -> Vec<Judged> {
    let gain = |scenario: &str, rule: &str| gains(rows, scenario, rule);
    let both = |scenario: &str| -> Vec<f64> {
        gain(scenario, "ag").iter().zip(gain(scenario, "mqd")).map(|(ag, mqd)| (ag + mqd) / 2.0).collect()
    };
    let idle = |scenario: &str, rule: &str| values(rows, scenario, rule, |row| row.idleness_percent);
    let recalled = |scenario: &str, rule: &str| values(rows, scenario, rule, |row| row.recalled as f64);
    let less_idle =
        |scenario: &str, rule: &str| differences(&idle(scenario, "round-robin"), &idle(scenario, rule));

    let best = ["P1", "P3", "P4", "P5"].map(|other| {
        let more = differences(&both("P2"), &both(other));
        Part::above_by(format!("P2 - {other}"), &more, LEAST_POINTS)
    });
    let more = differences(&gain("P2", "mqd"), &gain("P4", "mqd"));
    let large = Part::above_by("MQD, G at P2 - G at P4", &more, LEAST_POINTS);
    let usual: Vec<f64> = gain("P2", "mqd").iter().map(|gain| gain - GAIN_LEAST).collect();
    let small = ["R2", "R4"].map(|other| {
        Part::above(format!("R1 - {other}"), &differences(&gain("R1", "mqd"), &gain(other, "mqd")))
    });
    let kept = LEARNERS.map(|(rule, name)| Part::above(name, &gain("R3", rule)));
    // Where there is a gain that is no chance, balance is said to gain, too.
    let mut balance = Vec::new();
    for scenario in super::SCENARIOS {
        for (rule, name) in LEARNERS {
            let gained = Paired::of(&gain(scenario.name, rule));
            if gained.is_some_and(|gained| gained.mean > 0.0 && gained.chance <= LEVEL) {
                balance
                    .push(Part::above(format!("{} {name}", scenario.name), &less_idle(scenario.name, rule)));
            }
        }
    }
    let mut most = Vec::new();
    for (rule, name) in LEARNERS {
        for other in ["R2", "R4"] {
            let difference = differences(&less_idle("R1", rule), &less_idle(other, rule));
            most.push(Part::above(format!("{name} R1 - {other}"), &difference));
        }
    }
    let mut counts = Vec::new();
    for (scenario, is_none) in [("R1", false), ("R2", true), ("R3", true), ("R4", true)] {
        for (rule, name) in LEARNERS {
            let difference = differences(&recalled(scenario, rule), &recalled(scenario, "round-robin"));
            let name = format!("{scenario} {name}");
            counts.push(if is_none { Part::none(name, &difference) } else { Part::above(name, &difference) });
        }
    }
    vec![
        judged("C1", "α = 0.5, l = 0.3 gains most: mean G of AG and MQD", best.into(), " points"),
        judged("C2", "l = 0.7 hurts MQD", vec![large], " points"),
        judged("C3", "MQD gains 3 % and more at P2: G - 3", vec![Part::above("MQD", &usual)], " points"),
        judged("C4", "MQD gains most with the least time-out", small.into(), " points"),
        judged("C5", "1,000 jobs keep the gains: G at R3", kept.into(), " %"),
        judged("C6", "where makespan gains, idleness falls", balance, " points"),
        judged("C7", "idleness falls most at T0 = 500 s", most, " points"),
        judged("C8", "AG and MQD call back more than RR at T0 = 500 s, and as many at others", counts, ""),
    ]
}

/// G of both learners at a setting with time-outs, in each round; or of one.
pub fn setting_gains(rows: &[Row], alpha: f64, learning: f64, rules: &[&str]) -> Vec<f64> {
    let of = |scenario: &str, rule: &str| values(rows, scenario, rule, |row| row.makespan_s);
    let base = of("any", "round-robin");
    let mut sums = vec![0.0; base.len()];
    for rule in rules {
        let own = of(&setting(alpha, learning), rule);
        let gains = own.iter().zip(&base).map(|(own, base)| 100.0 * (1.0 - own / base));
        sums.iter_mut().zip(gains).for_each(|(sum, gain)| *sum += gain / rules.len() as f64);
    }
    sums
}

/// C1 and C2 where tasks are called back, so that α and l can change something: the published settings with a time-out.
pub fn setting_verdicts(rows: &[Row]) -> Vec<Judged> {
    let gains = |alpha: f64, learning: f64, rules: &[&str]| setting_gains(rows, alpha, learning, rules);
    let both = ["ag", "mqd"];
    let best = [(0.2, 0.3), (0.5, 0.5), (0.5, 0.7), (0.8, 0.3)].map(|(alpha, learning)| {
        let more = differences(&gains(0.5, 0.3, &both), &gains(alpha, learning, &both));
        Part::above_by(format!("less G at {}", setting(alpha, learning)), &more, LEAST_POINTS)
    });
    let more = differences(&gains(0.5, 0.3, &["mqd"]), &gains(0.5, 0.7, &["mqd"]));
    let large = Part::above_by("MQD, less G at l 0.7", &more, LEAST_POINTS);
    vec![
        judged("C1", "α = 0.5, l = 0.3 gains most: mean G of AG and MQD", best.into(), " points"),
        judged("C2", "l = 0.7 hurts MQD", vec![large], " points"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 6.3 and the chances that Table 6.4 prints for it, in percent.
    #[test]
    fn the_published_chances_come_out_of_the_published_means() {
        let of = |mean, sd| Sample { mean, sd, count: 15 };
        for (base, other, printed) in [
            (of(5023.78, 1361.92), of(4717.96, 891.08), 23.69),
            (of(5023.78, 1361.92), of(4615.34, 1351.17), 20.83),
            (of(5531.67, 472.76), of(5240.81, 448.03), 4.74),
            (of(5531.67, 472.76), of(5560.21, 1158.34), 46.53),
            (of(5730.68, 1007.68), of(5464.11, 1059.03), 24.29),
            (of(4919.78, 510.91), of(4608.74, 1037.26), 15.48),
        ] {
            let chance = 100.0 * welch(base, other).unwrap();
            assert!((chance - printed).abs() < 0.1, "{chance} {printed}");
        }
    }

    #[test]
    fn a_paired_test_is_as_in_a_book() {
        // Mean 2, standard deviation 1: t = 2 √3, 2 degrees of freedom.
        let found = Paired::of(&[1.0, 2.0, 3.0]).unwrap();
        assert!((found.chance - 0.0742).abs() < 1e-4, "{found:?}");
        assert!((found.high - found.mean - 4.3027 / 3_f64.sqrt()).abs() < 1e-4, "{found:?}");
        assert_eq!(Paired::of(&[0.0, 0.0]).unwrap().chance, 1.0);
        assert_eq!(Paired::of(&[1.0]), None);
    }

    /// Rows in which everything that is claimed is so, by far.
    fn rows(change: impl Fn(&mut Row)) -> Vec<Row> {
        let mut rows = Vec::new();
        for scenario in crate::learning::SCENARIOS {
            for rule in ["round-robin", "ag", "mqd"] {
                for round in 1..=10 {
                    let gain = match (rule, scenario.name) {
                        ("round-robin", _) => 0.0,
                        (_, "P2" | "R1") => 0.12,
                        ("mqd", "P4") => -0.08,
                        _ => 0.05,
                    };
                    let mut row = Row {
                        experiment: "published".to_string(),
                        scenario: scenario.name.to_string(),
                        rule: rule.to_string(),
                        round,
                        sites: 5,
                        makespan_s: 5000.0 * (1.0 - gain + 0.001 * (round % 3) as f64),
                        idleness_percent: 30.0 - 100.0 * gain + 0.1 * (round % 2) as f64,
                        recalled: 50
                            + if scenario.name == "R1" { (1000.0 * gain) as u64 + round } else { round % 2 },
                        response_s: 1.0,
                        response_ratio: 1.0,
                        wait_s: 1.0,
                        imbalance: 0.0,
                    };
                    change(&mut row);
                    rows.push(row);
                }
            }
        }
        rows
    }

    #[test]
    fn claims_that_are_so_are_confirmed_but_for_equality() {
        let found = verdicts(&rows(|_| ()));
        for judged in &found[..7] {
            assert_eq!(judged.verdict, Verdict::Confirmed, "{judged:?}");
        }
        assert_eq!(found[7].verdict, Verdict::NotDecided, "no test confirms that two counts are equal");
        let nothing = verdicts(&rows(|row| {
            // The same for all rules.
            row.makespan_s = 5000.0 + row.round as f64;
            row.idleness_percent = 20.0;
            row.recalled = 50;
        }));
        assert!(nothing.iter().all(|judged| match judged.claim {
            "C3" => judged.verdict == Verdict::Refuted,
            "C1" | "C2" => judged.verdict == Verdict::TooSmall,
            _ => judged.verdict == Verdict::NotDecided,
        }));
    }

    #[test]
    fn limits_are_tested_from_both_sides() {
        // Mean 0.2, error 0.1, 3 degrees of freedom: 8 errors below 1, 12 above -1.
        let small = Paired::of(&[0.0, 0.1, 0.3, 0.4]).unwrap();
        assert!((small.error - 0.0913).abs() < 1e-4 && small.freedom == 3);
        assert!(small.chance_below(1.0) < 0.005 && small.chance_below(0.2) == 0.5);
        assert_eq!(small.chance_within(1.0), small.chance_below(1.0));
        let low = Paired::of(&[-2.0, -1.9, -2.1]).unwrap();
        assert!(low.chance_below(1.0) < 0.005 && low.chance_within(1.0) > 0.99);
        // Half of the standard deviation times Student's quantile of 3 degrees of freedom.
        let margin = small.margin_of(4).unwrap();
        assert!((margin - (small.high - small.mean)).abs() < 1e-9, "{margin}");
        assert_eq!(small.margin_of(0), None);
    }

    /// Rows of settings with these losses against the chosen one, in points.
    fn settings(loss: impl Fn(f64, f64) -> f64) -> Vec<Row> {
        let mut rows = Vec::new();
        let row = |scenario: String, rule: &str, round: u64, makespan_s: f64| Row {
            experiment: "settings".to_string(),
            scenario,
            rule: rule.to_string(),
            round,
            sites: 5,
            makespan_s,
            idleness_percent: 0.0,
            recalled: 0,
            response_s: 1.0,
            response_ratio: 1.0,
            wait_s: 1.0,
            imbalance: 0.0,
        };
        for round in 1..=10 {
            rows.push(row("any".to_string(), "round-robin", round, 5000.0));
            for alpha in crate::learning::ALPHAS {
                for learning in crate::learning::RATES {
                    for rule in ["ag", "mqd"] {
                        let noise = (round * (1000.0 * (alpha + learning)) as u64 % 7) as f64;
                        let makespan = 4800.0 + 50.0 * loss(alpha, learning) + noise;
                        rows.push(row(setting(alpha, learning), rule, round, makespan));
                    }
                }
            }
        }
        rows
    }

    #[test]
    fn mutant_settings_with_time_outs_are_best_worse_or_the_same() {
        let found = |loss: &dyn Fn(f64, f64) -> f64| -> Vec<Verdict> {
            setting_verdicts(&settings(loss)).iter().map(|judged| judged.verdict).collect()
        };
        let is_chosen = |alpha: f64, learning: f64| (alpha, learning) == (0.5, 0.3);
        let other =
            |points: f64| move |alpha, learning| if is_chosen(alpha, learning) { 0.0 } else { points };
        assert_eq!(found(&other(5.0)), [Verdict::Confirmed; 2]);
        assert_eq!(found(&other(-5.0)), [Verdict::Refuted; 2]);
        assert_eq!(found(&other(0.3)), [Verdict::TooSmall; 2]);
    }

    #[test]
    fn mutant_rows_that_contradict_each_claim_refute_it() {
        let is = |row: &Row, rule: &str, scenarios: &[&str]| {
            row.rule == rule && scenarios.contains(&row.scenario.as_str())
        };
        let refuted = |claim: usize, change: &dyn Fn(&mut Row)| {
            let found = &verdicts(&rows(change))[claim - 1];
            assert_eq!(found.verdict, Verdict::Refuted, "{found:?}");
        };
        refuted(1, &|row| {
            if is(row, "ag", &["P5"]) {
                row.makespan_s *= 0.5
            }
        });
        refuted(2, &|row| {
            if is(row, "mqd", &["P4"]) {
                row.makespan_s *= 0.5
            }
        });
        refuted(3, &|row| {
            if is(row, "mqd", &["P2"]) {
                row.makespan_s *= 1.2
            }
        });
        refuted(4, &|row| {
            if is(row, "mqd", &["R4"]) {
                row.makespan_s *= 0.5
            }
        });
        refuted(5, &|row| {
            if is(row, "ag", &["R3"]) {
                row.makespan_s *= 1.2
            }
        });
        refuted(6, &|row| {
            if is(row, "ag", &["P2"]) {
                row.idleness_percent += 30.0
            }
        });
        refuted(7, &|row| {
            if is(row, "mqd", &["R2"]) {
                row.idleness_percent -= 30.0
            }
        });
        refuted(8, &|row| {
            if is(row, "mqd", &["R4"]) {
                row.recalled += 20 + row.round
            }
        });
    }
}
