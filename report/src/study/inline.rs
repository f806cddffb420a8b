//! Single numbers and names within the text.

use super::Maker;
use super::data::{Data, Selection};
use super::expression::Expression;
use super::words::{self, Style};
use crate::quantity::grouped;
use crate::sweep::advantage;

/// Digits of factors, if nothing else is said.
const FACTOR_DIGITS: usize = 2;

/// Answers everything that is no table and no plot.
pub(super) fn inline(maker: &Maker, mut expression: Expression) -> Result<String, String> {
    let (_, data) = maker.data_of(&mut expression)?;
    match expression.verb.as_str() {
        "value" => value(data, expression),
        "ratio" => ratio(data, expression),
        "difference" => difference(data, expression),
        "pairs" => pairs(data, expression),
        "crossover" => crossover(data, expression),
        "range" => range(data, expression),
        "best" => best(data, expression),
        "count" => count(maker, data, expression),
        "commit" | "command" | "version" | "sweep" => about(data, expression),
        other => Err(format!(
            "{other:?} is no verb; there are value, ratio, difference, pairs, crossover, range, best, count, commit, command, \
             version, sweep, measured, printed, agreement, table and plot"
        )),
    }
}

/// What nearly all verbs have: a metric, and how it is written.
struct Asked {
    metric: usize,
    style: Style,
}

impl Asked {
    fn of(data: &Data, expression: &mut Expression, fallback: &str) -> Result<Asked, String> {
        let name = expression.need("metric")?;
        let metric = data.metric(&name)?;
        let (unit, digits) = (expression.take("unit"), expression.number("digits")?);
        Ok(Asked { metric, style: Style::of(&name, unit.as_deref(), digits, fallback)? })
    }
}

/// Why there is nothing to show.
fn nothing(data: &Data, group: usize, selection: &Selection) -> String {
    format!("there are no values of {:?} there", data.label(group, selection))
}

fn value(data: &Data, mut expression: Expression) -> Result<String, String> {
    let asked = Asked::of(data, &mut expression, "auto")?;
    let (series, interval) = (expression.take("series"), expression.has("interval"));
    let selection = data.selection(expression.rest()?)?;
    let group = data.group(&selection, series.as_deref())?;
    let point = data.point(&selection)?;
    let values: Vec<f64> = data.measured(&selection, group, point, asked.metric).into_values().collect();
    let mean = analysis::statistics::mean(&values).ok_or_else(|| nothing(data, group, &selection))?;
    let bounds = if interval { data.study.bootstrap.interval(&values) } else { None };
    Ok(asked.style.with_interval(mean, bounds))
}

fn ratio(data: &Data, mut expression: Expression) -> Result<String, String> {
    let name = expression.need("metric")?;
    let metric = data.metric(&name)?;
    let (series, against) = (expression.take("series"), expression.need("against")?);
    let (plain, times) = (expression.has("plain"), expression.has("times"));
    let digits = expression.number("digits")?.unwrap_or(FACTOR_DIGITS);
    let selection = data.selection(expression.rest()?)?;
    let group = data.group(&selection, series.as_deref())?;
    let other = data.against(&selection, group, &against)?;
    let point = data.point(&selection)?;
    let (left, right) = data.pair(&selection, (group, other), point, metric);
    let ratio =
        data.study.bootstrap.paired_ratio(&left, &right).ok_or_else(|| nothing(data, group, &selection))?;
    Ok(if times { words::factor(&ratio, !plain, digits) } else { words::change(&ratio, !plain) })
}

fn difference(data: &Data, mut expression: Expression) -> Result<String, String> {
    let asked = Asked::of(data, &mut expression, "auto")?;
    let (series, against) = (expression.take("series"), expression.need("against")?);
    let plain = expression.has("plain");
    let selection = data.selection(expression.rest()?)?;
    let group = data.group(&selection, series.as_deref())?;
    let other = data.against(&selection, group, &against)?;
    let point = data.point(&selection)?;
    let (left, right) = data.pair(&selection, (group, other), point, asked.metric);
    let found = data.study.bootstrap.paired(&left, &right).ok_or_else(|| nothing(data, group, &selection))?;
    Ok(asked.style.with_interval(found.mean, found.interval.filter(|_| !plain)))
}

/// The least and the greatest of some values.
fn ends(values: &[f64]) -> Option<(f64, f64)> {
    let least = values.iter().copied().min_by(f64::total_cmp)?;
    Some((least, values.iter().copied().max_by(f64::total_cmp)?))
}

/// What becomes of the pairs of a cell.
type OfCell = fn(&[(f64, f64)]) -> Option<f64>;

/// What means hide: in how many repetitions a series has more than another, by what factor it has in the median one, or
/// how alike the differences of neighbours are; from the least to the greatest of what is selected.
fn pairs(data: &Data, mut expression: Expression) -> Result<String, String> {
    let metric = data.metric(&expression.need("metric")?)?;
    let (series, against) = (expression.list("series"), expression.need("against")?);
    let what = expression.word().ok_or("it needs a word: more, median or alike")?;
    let selection = data.selection(expression.rest()?)?;
    let mut cells: Vec<Vec<(f64, f64)>> = Vec::new();
    for group in data.groups_of(&selection, series.as_deref())? {
        let other = data.against(&selection, group, &against)?;
        for point in data.points(&selection) {
            let (left, right) = data.pair(&selection, (group, other), point, metric);
            let mut pairs: Vec<(&str, (f64, f64))> =
                left.into_iter().filter_map(|(of, value)| Some((of, (value, *right.get(of)?)))).collect();
            pairs.sort_by_cached_key(|(of, _)| numbers(of));
            cells.extend((!pairs.is_empty()).then(|| pairs.into_iter().map(|(_, pair)| pair).collect()));
        }
    }
    let most = cells.iter().map(Vec::len).max().ok_or("nothing is selected")?;
    let (of_cell, show, after): (OfCell, fn(f64) -> String, String) = match what.as_str() {
        "more" => (
            |pairs| Some(pairs.iter().filter(|(left, right)| left > right).count() as f64),
            |value| value.to_string(),
            format!(" of {most}"),
        ),
        "median" => (median_factor, |value| words::significant(value, FACTOR_DIGITS), " times".to_string()),
        "alike" => (likeness, |value| format!("{value:.2}"), String::new()),
        other => return Err(format!("{other:?} is none of more, median and alike")),
    };
    let values: Vec<f64> = cells.iter().filter_map(|pairs| of_cell(pairs)).collect();
    let (least, greatest) = ends(&values).ok_or("there are too few repetitions, or all are the same")?;
    let [least, greatest] = [least, greatest].map(show);
    Ok(if least == greatest { format!("{least}{after}") } else { format!("{least} to {greatest}{after}") })
}

/// The numbers in the name of a repetition, by which those that follow each other are told.
fn numbers(of: &str) -> Vec<u64> {
    of.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn median_factor(pairs: &[(f64, f64)]) -> Option<f64> {
    let factor = |&(left, right): &(f64, f64)| if left == right { 1.0 } else { left / right };
    let mut factors: Vec<f64> = pairs.iter().map(factor).collect();
    factors.sort_by(f64::total_cmp);
    analysis::statistics::quantile(&factors, 0.5)
}

/// Correlation of the difference of a repetition with that of the next one (of lag one).
fn likeness(pairs: &[(f64, f64)]) -> Option<f64> {
    let differences: Vec<f64> = pairs.iter().map(|(left, right)| left - right).collect();
    let mean = analysis::statistics::mean(&differences)?;
    let product = |(a, b): (&f64, &f64)| (a - mean) * (b - mean);
    let of_next: f64 = differences.iter().zip(&differences[1..]).map(product).sum();
    let of_itself: f64 = differences.iter().zip(&differences).map(product).sum();
    (of_itself > 0.0).then(|| of_next / of_itself)
}

fn crossover(data: &Data, mut expression: Expression) -> Result<String, String> {
    let metric = data.metric(&expression.need("metric")?)?;
    let (series, against) = (expression.take("series"), expression.need("against")?);
    let plain = expression.has("plain");
    let selection = data.selection(expression.rest()?)?;
    let group = data.group(&selection, series.as_deref())?;
    let other = data.against(&selection, group, &against)?;
    crossover_words(data, &selection, (group, other), metric, !plain)
        .ok_or_else(|| nothing(data, group, &selection))
}

/// Where an advantage ends, in words.
pub(super) fn crossover_words(
    data: &Data,
    selection: &Selection,
    pair: (usize, usize),
    metric: usize,
    with_interval: bool,
) -> Option<String> {
    let found = data.study.bootstrap.crossover_interval(&data.differences(selection, pair, metric))?;
    let last = data.points(selection).last().map(|&point| data.study.points[point].1.as_str());
    Some(advantage::words(&found, data.study.is_time, last.unwrap_or_default(), with_interval))
}

/// The least and the greatest of what is selected: means, or changes against a series.
fn range(data: &Data, mut expression: Expression) -> Result<String, String> {
    let asked = Asked::of(data, &mut expression, "auto")?;
    let (series, against) = (expression.list("series"), expression.take("against"));
    let times = expression.has("times");
    let selection = data.selection(expression.rest()?)?;
    let groups = data.groups_of(&selection, series.as_deref())?;
    let mut found: Vec<f64> = Vec::new();
    for &group in &groups {
        let other = against.as_deref().map(|name| data.against(&selection, group, name)).transpose()?;
        for point in data.points(&selection) {
            match other {
                None => found.extend(data.mean(&selection, group, point, asked.metric)),
                Some(other) if other == group => {}
                Some(other) => {
                    let (left, right) = data.pair(&selection, (group, other), point, asked.metric);
                    // The interval is not asked for.
                    let bootstrap = analysis::statistics::Bootstrap { resamples: 0, ..data.study.bootstrap };
                    found.extend(bootstrap.paired_ratio(&left, &right).map(|ratio| ratio.ratio));
                }
            }
        }
    }
    let (least, greatest) = ends(&found).ok_or("nothing is selected")?;
    let ends = [least, greatest].map(|value| {
        let ratio = analysis::statistics::Ratio { ratio: value, interval: None };
        match (&against, times) {
            (None, _) => asked.style.full(value),
            (Some(_), false) => words::change(&ratio, false),
            (Some(_), true) => words::factor(&ratio, false, FACTOR_DIGITS),
        }
    });
    let unit = [" %", " times", " s", " min", " h", " d"]
        .into_iter()
        .find(|unit| ends.iter().all(|end| end.ends_with(unit)));
    let first = unit.and_then(|unit| ends[0].strip_suffix(unit)).unwrap_or(&ends[0]);
    Ok(format!("{first} to {}", ends[1]))
}

/// The series with the least mean, or all within so many percent of it.
fn best(data: &Data, mut expression: Expression) -> Result<String, String> {
    let metric = data.metric(&expression.need("metric")?)?;
    let within = expression.number::<f64>("within")?.unwrap_or(0.0);
    let series = expression.list("series");
    let selection = data.selection(expression.rest()?)?;
    let point = data.point(&selection)?;
    let names = best_names(data, &selection, series.as_deref(), point, metric, within)?;
    if names.is_empty() { Err("nothing is selected".to_string()) } else { Ok(names.join(", ")) }
}

/// The best first.
pub(super) fn best_names(
    data: &Data,
    selection: &Selection,
    series: Option<&[String]>,
    point: usize,
    metric: usize,
    within: f64,
) -> Result<Vec<String>, String> {
    let groups = match series {
        None => data.groups(selection),
        Some(names) => names.iter().filter_map(|name| data.group(selection, Some(name)).ok()).collect(),
    };
    let mut means: Vec<(f64, usize)> = groups
        .into_iter()
        .filter_map(|group| Some((data.mean(selection, group, point, metric)?, group)))
        .collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    let Some(&(best, _)) = means.first() else { return Ok(Vec::new()) };
    let near = means.into_iter().take_while(|(mean, _)| *mean <= best * (1.0 + within / 100.0));
    Ok(near.map(|(_, group)| data.label(group, selection)).collect())
}

fn count(maker: &Maker, data: &Data, mut expression: Expression) -> Result<String, String> {
    let what = expression
        .word()
        .ok_or("it needs a word: runs, failed, planned, jobs, repetitions, series, points or comparisons")?;
    let selection = data.selection(expression.rest()?)?;
    let rows = &data.study.rows;
    let groups = data.groups(&selection);
    let cells = || {
        let points = data.points(&selection);
        groups.iter().flat_map(move |&group| points.clone().into_iter().map(move |point| (group, point)))
    };
    let selected = || cells().flat_map(|(group, point)| data.rows(&selection, group, point));
    let number = match what.as_str() {
        "runs" => selected().count() as u64,
        "jobs" => {
            let jobs = data.metric("jobs")?;
            selected().filter_map(|(_, row)| rows.rows[row].metrics[jobs].number()).sum::<f64>() as u64
        }
        "repetitions" => {
            let counts: Vec<usize> =
                cells().map(|(group, point)| data.rows(&selection, group, point).count()).collect();
            counts.into_iter().max().unwrap_or(0) as u64
        }
        "points" => data.points(&selection).len() as u64,
        "series" => {
            let names: std::collections::BTreeSet<String> =
                groups.iter().map(|&group| data.label(group, &selection)).collect();
            names.len() as u64
        }
        "failed" | "planned" if !selection.0.is_empty() => {
            return Err(format!("{what} is of the whole sweep; select nothing"));
        }
        "failed" => data.study.failed().0 as u64,
        "planned" => rows.planned.ok_or("the data do not say how many runs were planned")? as u64,
        "comparisons" if maker.chances.is_empty() => {
            return Err("comparisons are counted with family = \"page\" in the head".to_string());
        }
        "comparisons" => maker.chances.len() as u64,
        other => return Err(format!("{other:?} cannot be counted")),
    };
    Ok(grouped(number))
}

fn about(data: &Data, mut expression: Expression) -> Result<String, String> {
    if !expression.rest()?.is_empty() {
        return Err("it selects nothing".to_string());
    }
    let rows = &data.study.rows;
    Ok(match expression.verb.as_str() {
        "commit" => rows.commit.clone().ok_or(
            "the data do not say by which commit they were made; write them with stealgrid export --commit",
        )?,
        "command" => rows.command.clone(),
        "version" => rows.version.clone(),
        _ => rows.name.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_told_by_numbers_and_their_likeness_is_a_correlation() {
        assert!(numbers("week=9, seed=2") < numbers("week=10, seed=1"));
        let of = |differences: &[f64]| {
            likeness(&differences.iter().map(|difference| (difference + 7.0, 7.0)).collect::<Vec<_>>())
        };
        // By hand: 0.75 - 0.25 + 0.75 over 2.25 + 0.25 + 0.25 + 2.25.
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0]), Some(0.25));
        assert_eq!(of(&[1.0, -1.0, 1.0, -1.0]), Some(-0.75));
        assert_eq!(of(&[5.0, 5.0]), None);
    }
}
