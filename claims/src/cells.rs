//! Questions about means over seeds, asked until the answer is sure.
//!
//! A claim speaks of several cells: a load and a delay, a site, a strategy. In each it says where a mean lies, against a
//! margin that was written down before (`configs/theory/`). Values are paired by seed: both sides of a difference see
//! the same jobs.
//!
//! A cell is *supported* if the opposite can be rejected, *refuted* if what it says can be rejected, else *open*, by
//! one-sided t tests (for "within a margin" two of them, Schuirmann 1987). Seeds are doubled, from `seeds` to
//! `seeds_max`, until every cell of a group is settled. Looking several times is paid for by Bonferroni over the looks,
//! asking in several cells by Holm (1979) over the cells of a claim, each at [`ERROR`]: so a claim that is true is refuted
//! in at most that share of checks, however many looks and cells it has, as far as means are normal. Intervals are those of
//! one mean, 95 %, without correction.

use analysis::statistics::holm;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{Found, Parameters, Verdict};

/// How often a claim that is true may be refuted, and one that is false supported.
pub const ERROR: f64 = 0.05;

/// In which unit a mean is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Percent, as they are.
    Percent,
    /// Logarithms of ratios; shown as the change of the geometric mean in percent.
    Change,
    /// Seconds.
    Seconds,
    /// A number without a unit.
    Number,
}

impl Unit {
    /// A value as it is shown.
    fn shown(self, value: f64) -> f64 {
        if self == Unit::Change { 100.0 * value.exp_m1() } else { value }
    }

    /// A margin of the parameters as values are.
    fn stored(self, margin: f64) -> f64 {
        if self == Unit::Change { (margin / 100.0).ln_1p() } else { margin }
    }

    fn symbol(self) -> &'static str {
        match self {
            Unit::Percent | Unit::Change => " %",
            Unit::Seconds => " s",
            Unit::Number => "",
        }
    }
}

/// Where a mean lies, as a claim has it; in the unit in which it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Says {
    /// Below this.
    Below(f64),
    /// Above this.
    Above(f64),
    /// No further than this from 0.
    Within(f64),
    /// No further from a value than a tolerance.
    Near(f64, f64),
}

impl Says {
    /// In words: `below 2 %`.
    fn words(self, unit: Unit) -> String {
        let symbol = unit.symbol();
        match self {
            Says::Below(margin) => format!("below {margin}{symbol}"),
            Says::Above(margin) => format!("above {margin}{symbol}"),
            Says::Within(margin) => format!("within ±{margin}{symbol}"),
            Says::Near(value, tolerance) => format!("{value} ± {tolerance}{symbol}"),
        }
    }

    /// The chances of values at least as clear as these if the opposite were so, and if it were so.
    fn chances(self, unit: Unit, mean: f64, error: f64, freedom: f64) -> (f64, f64) {
        let above = |margin: f64| above(mean - unit.stored(margin), error, freedom);
        let between = |low: f64, high: f64| {
            let (over_low, over_high) = (above(low), above(high));
            // Two tests of one side each are both to reject; one of two may.
            (over_low.max(1.0 - over_high), (2.0 * over_high.min(1.0 - over_low)).min(1.0))
        };
        match self {
            Says::Below(margin) => (1.0 - above(margin), above(margin)),
            Says::Above(margin) => (above(margin), 1.0 - above(margin)),
            Says::Within(margin) => between(-margin, margin),
            Says::Near(value, tolerance) => between(value - tolerance, value + tolerance),
        }
    }
}

/// The chance of a mean so far above 0 or further if the true one is 0.
fn above(mean: f64, error: f64, freedom: f64) -> f64 {
    if error == 0.0 {
        // Values that are all the same leave no doubt, but for a mean that is the margin.
        return match mean.total_cmp(&0.0) {
            _ if mean == 0.0 => 0.5,
            std::cmp::Ordering::Greater => 0.0,
            _ => 1.0,
        };
    }
    student(freedom).sf(mean / error)
}

fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("two values or more have a degree of freedom")
}

/// What is averaged over seeds, by the columns of a measurement.
#[derive(Clone, Copy, Debug)]
pub enum Of {
    /// The values of a column.
    Mean(usize),
    /// Squared deviations of the first column less those of the second, in percent of the variance of the second.
    Spread(usize, usize),
}

/// A cell before it is measured.
#[derive(Clone, Debug)]
pub struct Question {
    /// Where: a load, a delay, a site.
    pub name: String,
    /// What is averaged.
    pub of: Of,
    /// In which unit.
    pub unit: Unit,
    /// What the claim says of it; `None` if it says nothing, and the mean is only reported.
    pub says: Option<Says>,
}

/// What is measured by the same runs.
pub struct Group<'a> {
    /// The cells.
    pub questions: Vec<Question>,
    /// Columns of values by seed.
    pub measure: Box<dyn Fn(u64) -> Vec<f64> + Sync + 'a>,
    /// Runs that a measurement makes.
    pub runs: u64,
}

/// What is known of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The opposite of what the claim says is rejected.
    Supported,
    /// What the claim says is rejected.
    Refuted,
    /// Neither, with as many seeds as there may be.
    Open,
    /// The claim says nothing of it.
    Reported,
}

impl Word {
    /// As in files.
    pub fn name(self) -> &'static str {
        match self {
            Word::Supported => "supported",
            Word::Refuted => "refuted",
            Word::Open => "open",
            Word::Reported => "reported",
        }
    }
}

/// A mean over seeds, and what is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Where: a load, a delay, a site.
    pub name: String,
    /// What the claim says of the mean; empty if nothing.
    pub says: String,
    /// The unit of the three numbers that follow.
    pub unit: Unit,
    /// The mean.
    pub mean: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Upper end of its 95 % interval.
    pub high: f64,
    /// Seeds that it rests on.
    pub seeds: u64,
    /// Chance of such values if the opposite of what the claim says were so, corrected for looks and cells.
    pub chance_if_wrong: f64,
    /// Chance of such values if what the claim says were so, corrected for looks and cells.
    pub chance_if_right: f64,
    /// What follows.
    pub word: Word,
}

impl Cell {
    /// The mean and its interval, as text.
    pub fn figures(&self) -> (String, String) {
        let symbol = self.unit.symbol();
        let digits = if self.unit == Unit::Seconds { 1 } else { 2 };
        let number = |value: f64| match self.unit {
            Unit::Number => format!("{value:.3}"),
            _ => format!("{value:+.digits$}{symbol}").replace('-', "−"),
        };
        (number(self.mean), format!("{} to {}", number(self.low), number(self.high)))
    }

    /// Whether the mean is above 0 by a test of one side at 5 %, corrected by Bonferroni for `among` cells: what may be said
    /// of the one that was picked of so many.
    pub(crate) fn is_above_zero_of(&self, among: usize) -> bool {
        let (mean, high) = (self.unit.stored(self.mean), self.unit.stored(self.high));
        let freedom = self.seeds as f64 - 1.0;
        let error = (high - mean) / student(freedom).inverse_cdf(0.975);
        above(mean, error, freedom) * among as f64 <= ERROR
    }

    /// In a line: the mean, its interval, and what follows.
    pub fn line(&self) -> String {
        let (mean, interval) = self.figures();
        let figures = format!("{}: {mean} ({interval}), {} seeds", self.name, self.seeds);
        match self.word {
            Word::Reported => figures,
            word => format!("{figures}: {} is {}", self.says, word.name()),
        }
    }
}

/// A group and what was measured for it so far.
struct Asked<'a> {
    group: Group<'a>,
    /// By column, then by seed.
    columns: Vec<Vec<f64>>,
    seeds: u64,
    settled: bool,
}

impl Asked<'_> {
    fn measure(&mut self, until: u64) {
        let measure = &self.group.measure;
        let rows: Vec<Vec<f64>> = (self.seeds + 1..=until).into_par_iter().map(measure).collect();
        for row in rows {
            self.columns.resize(row.len(), Vec::new());
            self.columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        self.seeds = until;
    }

    /// The mean of a cell, its standard error, and its degrees of freedom.
    fn mean(&self, of: Of) -> (f64, f64, f64) {
        let values = match of {
            Of::Mean(column) => self.columns[column].clone(),
            Of::Spread(left, right) => {
                let squares = |column: usize| -> Vec<f64> {
                    let values = &self.columns[column];
                    let mean = analysis::statistics::mean(values).unwrap_or(0.0);
                    values.iter().map(|value| (value - mean).powi(2)).collect()
                };
                let (left, right) = (squares(left), squares(right));
                let variance = analysis::statistics::mean(&right).unwrap_or(0.0).max(f64::MIN_POSITIVE);
                left.iter().zip(&right).map(|(left, right)| 100.0 * (left - right) / variance).collect()
            }
        };
        let n = values.len() as f64;
        let deviation = analysis::statistics::standard_deviation(&values).unwrap_or(0.0);
        (analysis::statistics::mean(&values).unwrap_or(0.0), deviation / n.sqrt(), n - 1.0)
    }

    fn cell(&self, question: &Question, looks: f64) -> Cell {
        let (mean, error, freedom) = self.mean(question.of);
        let unit = question.unit;
        let half = if error == 0.0 { 0.0 } else { error * student(freedom).inverse_cdf(0.975) };
        let (wrong, right) =
            question.says.map_or((1.0, 1.0), |says| says.chances(unit, mean, error, freedom));
        Cell {
            name: question.name.clone(),
            says: question.says.map_or(String::new(), |says| says.words(unit)),
            unit,
            mean: unit.shown(mean),
            low: unit.shown(mean - half),
            high: unit.shown(mean + half),
            seeds: self.seeds,
            chance_if_wrong: (looks * wrong).min(1.0),
            chance_if_right: (looks * right).min(1.0),
            word: if question.says.is_some() { Word::Open } else { Word::Reported },
        }
    }

    fn cells(&self, looks: f64) -> Vec<Cell> {
        self.group.questions.iter().map(|question| self.cell(question, looks)).collect()
    }
}

/// After how many seeds one looks: `first`, doubled until `last`.
fn looks(first: u64, last: u64) -> Vec<u64> {
    let first = first.max(2);
    let mut looks: Vec<u64> = std::iter::successors(Some(first), |seeds| Some(2 * seeds))
        .take_while(|&seeds| seeds < last)
        .collect();
    looks.push(last.max(first));
    looks
}

/// Measures until every cell is settled, or the seeds are used up.
pub(crate) fn ask(parameters: &Parameters, groups: Vec<Group>) -> Found {
    let looks = looks(parameters.seeds, parameters.seeds_max);
    let claimed = groups.iter().flat_map(|group| &group.questions).filter(|one| one.says.is_some()).count();
    let mut asked: Vec<Asked> = groups
        .into_iter()
        .map(|group| Asked { group, columns: Vec::new(), seeds: 0, settled: false })
        .collect();
    let corrected = looks.len() as f64;
    for &until in &looks {
        for one in asked.iter_mut().filter(|one| !one.settled) {
            one.measure(until);
            let least = |cell: &Cell| cell.chance_if_wrong.min(cell.chance_if_right);
            one.settled = one
                .cells(corrected)
                .iter()
                .all(|cell| cell.word == Word::Reported || least(cell) * claimed as f64 <= ERROR);
        }
    }
    let runs = asked.iter().map(|one| one.seeds * one.group.runs).sum();
    let mut cells: Vec<Cell> = asked.iter().flat_map(|one| one.cells(corrected)).collect();
    judge(&mut cells);
    let count = |word: Word| cells.iter().filter(|cell| cell.word == word).count();
    let (supported, refuted, open) = (count(Word::Supported), count(Word::Refuted), count(Word::Open));
    let verdict = match (refuted, open) {
        // Nothing that was only reported holds up a claim.
        (0, 0) if supported > 0 => Verdict::Holds,
        (0, _) => Verdict::Inconclusive,
        _ => Verdict::Fails,
    };
    let figures = vec![format!(
        "of {} cells {supported} are supported, {refuted} refuted, {open} open",
        supported + refuted + open
    )];
    Found { verdict, runs, cells, figures }
}

/// Corrects for the number of cells, and says what follows.
fn judge(cells: &mut [Cell]) {
    let claimed: Vec<usize> = (0..cells.len()).filter(|&cell| cells[cell].word != Word::Reported).collect();
    let of = |chance: fn(&Cell) -> f64| -> Vec<f64> {
        holm(&claimed.iter().map(|&cell| chance(&cells[cell])).collect::<Vec<_>>())
    };
    let (wrong, right) = (of(|cell| cell.chance_if_wrong), of(|cell| cell.chance_if_right));
    for (&cell, (wrong, right)) in claimed.iter().zip(wrong.into_iter().zip(right)) {
        let cell = &mut cells[cell];
        (cell.chance_if_wrong, cell.chance_if_right) = (wrong, right);
        cell.word = match (wrong <= ERROR, right <= ERROR) {
            (true, false) => Word::Supported,
            (false, true) => Word::Refuted,
            _ => Word::Open,
        };
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn parameters(seeds: u64, seeds_max: u64) -> Parameters {
        Parameters { seeds, seeds_max, ..Parameters::default() }
    }

    fn question(says: Option<Says>) -> Question {
        Question { name: "here".into(), of: Of::Mean(0), unit: Unit::Number, says }
    }

    /// Sums of twelve uniform values: mean `mean`, deviation 1, nearly normal.
    fn normal(experiment: u64, mean: f64) -> impl Fn(u64) -> f64 + Sync {
        move |seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(experiment * 1_000_003 + seed);
            mean - 6.0 + (0..12).map(|_| rng.random::<f64>()).sum::<f64>()
        }
    }

    fn asked(parameters: &Parameters, says: Says, cells: u64, mean: f64, experiment: u64) -> Found {
        let groups = (0..cells)
            .map(|cell| {
                let draw = normal(experiment * 64 + cell, mean);
                Group {
                    questions: vec![question(Some(says))],
                    measure: Box::new(move |seed| vec![draw(seed)]),
                    runs: 1,
                }
            })
            .collect();
        ask(parameters, groups)
    }

    #[test]
    fn seeds_are_doubled_up_to_the_most() {
        assert_eq!(looks(10, 80), [10, 20, 40, 80]);
        assert_eq!(looks(10, 75), [10, 20, 40, 75]);
        assert_eq!(looks(10, 10), [10]);
        assert_eq!(looks(0, 0), [2]);
    }

    #[test]
    fn holm_corrects_as_r_does() {
        // p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in corrected.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    #[test]
    fn chances_are_those_of_the_t_test() {
        // t.test(c(1, 2, 4, 5), alternative = "greater"): t = 3.2863, df = 3, p = 0.02311.
        let (mean, error) = (3.0, (10.0_f64 / 3.0).sqrt() / 2.0);
        let (wrong, right) = Says::Above(0.0).chances(Unit::Number, mean, error, 3.0);
        assert!((wrong - 0.02311).abs() < 1e-4, "{wrong}");
        assert!((wrong + right - 1.0).abs() < 1e-12);
        // Both tests of one side must reject.
        let (wrong, _) = Says::Within(4.0).chances(Unit::Number, mean, error, 3.0);
        let (upper, _) = Says::Below(4.0).chances(Unit::Number, mean, error, 3.0);
        assert!((wrong - upper).abs() < 1e-12, "{wrong} {upper}");
    }

    #[test]
    fn what_was_picked_of_many_cells_is_corrected_for_all() {
        let group = Group {
            questions: vec![Question { unit: Unit::Change, ..question(None) }],
            measure: Box::new(|seed| vec![[0.01, 0.02, 0.04, 0.05][seed as usize - 1]]),
            runs: 1,
        };
        let cell = &ask(&parameters(4, 4), vec![group]).cells[0];
        // As in the test of the t-test: p = 0.02311.
        assert!(cell.low > 0.0 && cell.is_above_zero_of(1) && cell.is_above_zero_of(2));
        assert!(!cell.is_above_zero_of(3));
    }

    #[test]
    fn a_claim_of_which_nothing_is_judged_is_open() {
        let group = |says| Group {
            questions: vec![question(says)],
            measure: Box::new(|seed| vec![1.0 + seed as f64 / 1e3]),
            runs: 1,
        };
        let verdict = |says| ask(&parameters(4, 4), vec![group(says)]).verdict;
        assert_eq!(verdict(None), Verdict::Inconclusive);
        assert_eq!(verdict(Some(Says::Above(0.0))), Verdict::Holds);
    }

    #[test]
    fn a_change_is_a_ratio_of_geometric_means() {
        let group = Group {
            questions: vec![Question { unit: Unit::Change, ..question(Some(Says::Within(5.0))) }],
            measure: Box::new(|_| vec![1.02_f64.ln()]),
            runs: 2,
        };
        let found = ask(&parameters(4, 4), vec![group]);
        assert_eq!((found.verdict, found.runs), (Verdict::Holds, 8));
        assert!((found.cells[0].mean - 2.0).abs() < 1e-9);
        assert_eq!(found.cells[0].says, "within ±5 %");
    }

    #[test]
    fn what_is_clear_needs_few_seeds_and_what_is_not_is_open() {
        let clear = asked(&parameters(8, 512), Says::Below(0.0), 3, -2.0, 1);
        assert_eq!((clear.verdict, clear.runs), (Verdict::Holds, 24));
        let wrong = asked(&parameters(8, 512), Says::Below(0.0), 3, 2.0, 1);
        assert_eq!(wrong.verdict, Verdict::Fails);
        let small = asked(&parameters(8, 512), Says::Below(0.0), 1, 0.25, 1);
        assert_eq!(small.verdict, Verdict::Fails);
        assert!(small.runs > 8, "{}", small.runs);
        let few = asked(&parameters(8, 8), Says::Below(0.0), 1, 0.05, 1);
        assert_eq!(few.verdict, Verdict::Inconclusive);
    }

    /// The mean is the margin itself: the worst case for both errors.
    #[test]
    fn a_true_claim_is_refuted_and_a_false_one_supported_seldom_enough() {
        let (mut refuted, mut supported) = (0, 0);
        for experiment in 0..400 {
            let found = asked(&parameters(8, 128), Says::Below(0.0), 5, 0.0, experiment);
            refuted += u64::from(found.cells.iter().any(|cell| cell.word == Word::Refuted));
            supported += u64::from(found.cells.iter().any(|cell| cell.word == Word::Supported));
        }
        // 20 of 400 are promised at most. Without the correction for looks and cells it is more than half.
        assert!(refuted <= 24 && supported <= 24, "{refuted} {supported}");
        // Bonferroni over looks that depend on each other is careful, not deaf.
        assert!(refuted + supported >= 4, "{refuted} {supported}");
    }

    #[test]
    fn a_spread_is_told_from_another() {
        let (narrow, wide) = (normal(1, 0.0), normal(2, 5.0));
        let group = |left: usize, right: usize| Group {
            questions: vec![Question {
                of: Of::Spread(left, right),
                unit: Unit::Percent,
                ..question(Some(Says::Below(0.0)))
            }],
            measure: Box::new(|seed| vec![narrow(seed), 3.0 * wide(seed)]),
            runs: 1,
        };
        assert_eq!(ask(&parameters(64, 64), vec![group(0, 1)]).verdict, Verdict::Holds);
        assert_eq!(ask(&parameters(64, 64), vec![group(1, 0)]).verdict, Verdict::Fails);
    }

    #[test]
    fn what_is_only_reported_decides_nothing() {
        let group = |says| Group {
            questions: vec![question(says)],
            measure: Box::new(|seed| vec![if seed % 2 == 0 { 1.0 } else { 2.0 }]),
            runs: 1,
        };
        let found = ask(&parameters(4, 64), vec![group(Some(Says::Above(0.0))), group(None)]);
        assert_eq!((found.verdict, found.cells[1].word), (Verdict::Holds, Word::Reported));
        assert_eq!(found.cells[1].seeds, 4);
    }
}
