//! The section "Ranking": who is best by several metrics at once, how sure that is, and what stands behind the means.
//!
//! The mathematics is in [`analysis::ranking`]; here its tables and plots are made of the rows of a sweep.

use std::collections::{BTreeMap, BTreeSet};

use analysis::ranking::{Better, Measured, Profile, Ranking};
use analysis::statistics::Bootstrap;

use scheduler::spelling;

use super::axis::short;
use super::figures::Figure;
use super::metric::{Metric, RANKED, SHOWN};
use super::rank_chart::{ProfileChart, RankChart, RankRow};
use super::study::Study;
use super::tables::Table;
use crate::quantity::number;

/// The metrics of the thesis's ranking (Quezada Pina 2012, §4.4), if nothing else is said and a sweep has them.
pub(crate) const THESIS: [&str; 3] = ["ratio_thesis", "bounded_slowdown_thesis_mean", "wait_mean_s"];
/// How names of its plots begin.
pub(super) const PREFIX: &str = "ranking-";
/// Metrics of which more is better.
const MORE: [&str; 3] = ["utilization", "throughput_per_s", "steady_fairness"];
/// Draws for the chances of a ranking: the least chance is 1 in 5,000, which Holm's correction leaves below 5 % in a family
/// of 249.
pub(crate) const DRAWS: usize = 10_000;
/// A difference is statistically significant if its corrected chance is at most this.
const LEVEL: f64 = 0.05;
/// Ranks within which four of five experiments lie.
const SPREAD: (f64, f64) = (0.1, 0.9);
/// Lines of a plot of profiles; more cannot be told apart.
const LINES_MAX: usize = 12;

/// Which values of a metric are good ones.
pub(crate) fn better(column: &str) -> Better {
    if MORE.contains(&column) { Better::More } else { Better::Less }
}

/// The metrics that strategies are ranked by.
pub(super) fn metrics(wished: Option<&[String]>, present: &[String]) -> Result<Vec<String>, String> {
    if let Some(wished) = wished {
        if let Some(name) = wished.iter().find(|name| !present.contains(name)) {
            let hint = spelling::hint(name, present);
            return Err(format!("{name:?}{hint} is no metric of the sweep with a number in it"));
        }
        return Ok(wished.to_vec());
    }
    let is_present = |name: &&str| present.iter().any(|other| other == name);
    if THESIS.iter().all(&is_present) {
        return Ok(THESIS.map(str::to_string).to_vec());
    }
    Ok(RANKED
        .map(|metric| metric.column)
        .iter()
        .filter(|name| is_present(name))
        .map(|s| s.to_string())
        .collect())
}

/// Values by repetition.
pub(crate) type Values<'a> = BTreeMap<&'a str, f64>;

/// Metrics of those strategies that have all of them, in the repetitions that all of these have.
pub(crate) struct Common {
    /// Places of the strategies.
    pub(crate) strategies: Vec<usize>,
    /// By metric.
    pub(crate) metrics: Vec<Measured>,
    /// The repetitions, by name.
    pub(crate) repetitions: Vec<String>,
}

/// What can be ranked of values by strategy, then metric; `None` if nothing can, or a value is negative.
pub(crate) fn common(columns: &[&str], values: &[Vec<Values>]) -> Option<Common> {
    let whole = |row: &Vec<Values>| row.iter().all(|values| !values.is_empty()) && !row.is_empty();
    let strategies: Vec<usize> = (0..values.len()).filter(|&place| whole(&values[place])).collect();
    let mut all = strategies.iter().flat_map(|&place| &values[place]);
    let first: BTreeSet<&str> = all.next()?.keys().copied().collect();
    let shared =
        all.fold(first, |shared, values| shared.into_iter().filter(|key| values.contains_key(key)).collect());
    let is_amount = |value: f64| value.is_finite() && value >= 0.0;
    let mut metrics = Vec::new();
    for (metric, column) in columns.iter().enumerate() {
        let row = |&place: &usize| shared.iter().map(|key| values[place][metric][key]).collect::<Vec<f64>>();
        let rows: Vec<Vec<f64>> = strategies.iter().map(row).collect();
        if shared.is_empty() || !rows.iter().flatten().all(|&value| is_amount(value)) {
            return None;
        }
        metrics.push(Measured::new(better(column), rows));
    }
    Some(Common { strategies, metrics, repetitions: shared.into_iter().map(str::to_string).collect() })
}

/// Draws for a ranking.
pub(crate) fn draws(bootstrap: Bootstrap) -> Bootstrap {
    Bootstrap { resamples: DRAWS, ..bootstrap }
}

fn at(study: &Study, panel: usize, point: usize) -> Option<Common> {
    let columns: Vec<&str> = study.ranking.iter().map(String::as_str).collect();
    let of =
        |series: usize| columns.iter().map(|column| study.values(panel, series, point, column)).collect();
    common(&columns, &(0..study.series.len()).map(of).collect::<Vec<_>>())
}

/// A metric in words.
fn title(column: &str) -> String {
    match column {
        "ratio_thesis" => return "Competitive ratio of the thesis".to_string(),
        "bounded_slowdown_thesis_mean" => return "Bounded slowdown of the thesis".to_string(),
        _ => {}
    }
    let known = |metric: &&Metric| metric.column == column;
    SHOWN
        .iter()
        .find(known)
        .map_or_else(|| column.trim_end_matches("_s").replace('_', " "), |m| m.title.to_string())
}

/// A degradation in percent.
pub(crate) fn percents(value: f64) -> String {
    if value.is_finite() { number(value) } else { "\u{221e}".to_string() }
}

/// The ranks that most experiments give.
pub(crate) fn spread(ranks: &[usize]) -> (f64, f64, f64) {
    let mut ascending: Vec<f64> = ranks.iter().map(|&rank| rank as f64).collect();
    ascending.sort_unstable_by(f64::total_cmp);
    let at = |share| analysis::statistics::quantile(&ascending, share).unwrap_or(0.0);
    (at(SPREAD.0), at(0.5), at(SPREAD.1))
}

fn order(ranking: &Ranking) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ranking.means.len()).collect();
    order.sort_by(|&a, &b| ranking.means[a].total_cmp(&ranking.means[b]));
    order
}

fn where_of(study: &Study, point: usize) -> String {
    if study.points.len() < 2 {
        return String::new();
    }
    format!(" at {} = {}", study.x.rsplit('.').next().unwrap_or(&study.x), study.points[point].1)
}

/// The tables of the section, one for each point of the axis at which there is something to rank.
pub(super) fn tables(study: &Study, panel: usize) -> Vec<Table> {
    let ranked = |point| {
        let common = at(study, panel, point).filter(|common| common.strategies.len() > 1)?;
        let ranking = Ranking::of(&common.metrics, &draws(study.bootstrap));
        Some(table(study, point, &common, &ranking))
    };
    (0..study.points.len()).filter_map(ranked).collect()
}

/// The plots of the section, of the first point at which there is something to rank.
pub(super) fn figures(study: &Study, panel: usize) -> Vec<Figure> {
    let ranked = |point| Some((point, at(study, panel, point).filter(|common| common.strategies.len() > 1)?));
    let Some((point, common)) = (0..study.points.len()).find_map(ranked) else { return Vec::new() };
    // Plots show no chances.
    let ranking = Ranking::of(&common.metrics, &Bootstrap { resamples: 0, ..study.bootstrap });
    figures_of(study, panel, point, &common, &ranking)
}

fn table(study: &Study, point: usize, common: &Common, ranking: &Ranking) -> Table {
    let rows = order(ranking).into_iter().map(|place| {
        let told = ranking.chances[place].is_some_and(|chance| chance <= LEVEL);
        let mark = if told { " *" } else { "" };
        let (low, middle, high) = spread(&ranking.ranks_in[place]);
        let mut row = vec![
            study.series[common.strategies[place]].clone(),
            ranking.ranks[place].to_string(),
            format!("{}{mark}", percents(ranking.means[place])),
        ];
        row.extend(ranking.degradations.iter().map(|metric| percents(metric[place])));
        row.push(format!(
            "{} ({})",
            percents(ranking.means_of_ratios[place]),
            ranking.ranks_of_ratios[place]
        ));
        row.push(format!("{} ({} to {})", short(middle), short(low), short(high)));
        row
    });
    let header = ["strategy", "rank", "mean, %"].map(str::to_string).into_iter();
    let columns = study.ranking.iter().map(|column| format!("{}, %", title(column).to_lowercase()));
    let end = ["mean of ratios, % (rank)", "rank in experiments"].map(str::to_string);
    Table {
        title: format!("Ranking{}", where_of(study, point)),
        note: format!(
            "Degradation: 100 (metric / best - 1), of means over {} experiments; what is better the more of it there is loses \
             100 (1 - metric / best). The mean over metrics has equal weights and makes the rank; metrics that differ most \
             between strategies decide it. A star: statistically significant against the best at 5 %, by a paired bootstrap over experiments with \
             Holm's correction over the table. Beside: the mean of the ratios of single experiments, and the median rank in \
             them with the range of four in five.",
            common.repetitions.len()
        ),
        header: header.chain(columns).chain(end).collect(),
        rows: rows.collect(),
        is_detail: point > 0,
    }
}

fn figures_of(study: &Study, panel: usize, point: usize, common: &Common, ranking: &Ranking) -> Vec<Figure> {
    let order = order(ranking);
    let name = |place: usize| study.series[common.strategies[place]].clone();
    let suffix = match study.panels[panel].title.as_str() {
        "" => String::new(),
        title => format!(", {title}"),
    };
    let at = where_of(study, point);
    let rows =
        order.iter().map(|&place| RankRow::new(name(place), ranking.ranks[place], &ranking.ranks_in[place]));
    let ranks = RankChart { title: format!("Ranks{at}{suffix}"), rows: rows.collect() };
    let id = |what: &str| super::figures::id(study, panel, &format!("{PREFIX}{what}"));
    let mut figures = vec![Figure {
        id: id("ranks"),
        panel: Some(panel),
        is_detail: false,
        svg: ranks.svg(),
        narrow: ranks.narrow(),
        note: "Marks: the rank by the mean degradation. Bars: ranks in single experiments, four in five of them; the stroke is \
               their median."
            .to_string(),
    }];
    for (metric, column) in study.ranking.iter().enumerate() {
        let profiles = Profile::of(&common.metrics[metric]);
        let chosen = order.iter().take(LINES_MAX);
        let chart = ProfileChart {
            title: format!("{}: performance profile{at}{suffix}", title(column)),
            heading: format!("Performance profile{at}{suffix}"),
            metric: title(column).to_lowercase(),
            lines: chosen
                .map(|&place| (name(place), study.looks[common.strategies[place]], profiles[place].clone()))
                .collect(),
        };
        figures.push(Figure {
            id: id(&format!("profile-{column}")),
            panel: Some(panel),
            is_detail: false,
            svg: chart.svg(),
            narrow: chart.narrow(),
            note: format!(
                "In what share of the experiments the metric is at most so many times the best one there (Dolan and Mor\u{e9} \
                 2002). Higher is better; left: how often a strategy is the best.{}",
                if order.len() > LINES_MAX {
                    format!(" The {LINES_MAX} first by rank of {}.", order.len())
                } else {
                    String::new()
                }
            ),
        });
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::study::tests::two_strategies;

    #[test]
    fn the_best_comes_first_and_the_other_is_told_from_it() {
        let study = two_strategies();
        let (tables, figures) = (tables(&study, 0), figures(&study, 0));

        assert_eq!(tables.len(), 4, "one for each delay");
        let rows = &tables[0].rows;
        // Waits 4,510 s and 4,600 s; ratios 5.51 and 5.6; slowdowns 452 and 461.
        assert_eq!(rows[0][..3], ["st:50", "1", "0"]);
        assert_eq!(rows[1][..2], ["local", "2"]);
        assert!(rows[1][2].ends_with(" *"), "{rows:?}");
        assert_eq!(rows[0].last().unwrap(), "1 (1 to 1)");
        assert_eq!(tables[3].rows[0][0], "local");
        assert!(tables[3].is_detail && !tables[0].is_detail);
        assert_eq!(figures.len(), 4);
        assert!(figures[0].svg.contains("st:50"));
    }

    #[test]
    fn only_what_all_have_is_compared() {
        let of = |keys: &[&'static str]| keys.iter().map(|key| (*key, 1.0)).collect::<Values>();
        let values = [vec![of(&["1", "2", "3"])], vec![of(&["2", "3", "4"])], vec![Values::new()]];

        let common = common(&["wait_mean_s"], &values).unwrap();

        assert_eq!(common.strategies, [0, 1]);
        assert_eq!(common.repetitions, ["2", "3"]);
        assert!(super::common(&["x"], &[vec![Values::from([("1", -1.0)])]]).is_none());
    }

    #[test]
    fn metrics_are_those_wished_or_those_of_the_thesis_or_what_is_there() {
        let present = ["wait_mean_s", "ratio_best", "utilization"].map(str::to_string);

        assert_eq!(metrics(None, &present).unwrap(), ["ratio_best", "wait_mean_s"]);
        assert_eq!(metrics(Some(&present[2..]), &present).unwrap(), ["utilization"]);
        let all: Vec<String> = THESIS.iter().map(|name| name.to_string()).chain(present.clone()).collect();
        assert_eq!(metrics(None, &all).unwrap(), THESIS);
        let wished = ["makespan".to_string()];
        assert!(metrics(Some(&wished), &present).unwrap_err().contains("\"makespan\" is no metric"));
    }
}
