//! Rankings of what is selected: tables of degradations, plots of ranks and of performance profiles.

use analysis::ranking::{Profile, Ranking};
use outputs::table::Table;

use super::Maker;
use super::data::{Data, Selection};
use super::expression::Expression;
use crate::sweep::axis::short;
use crate::sweep::rank_chart::{ProfileChart, RankChart, RankRow};
use crate::sweep::ranking::{Common, common, draws, percents, spread};

/// A difference is told from chance if its corrected chance is at most this.
const LEVEL: f64 = 0.05;

/// The strategies that are selected, with their names, in the repetitions that all of them have.
fn selected(
    data: &Data,
    metrics: &[(String, String)],
    series: Option<&[String]>,
    selection: &Selection,
) -> Result<(Vec<String>, Common), String> {
    let groups = data.named_groups(selection, series)?;
    let point = data.point(selection)?;
    let places = metrics.iter().map(|(name, _)| data.metric(name)).collect::<Result<Vec<_>, _>>()?;
    let of = |&group: &usize| {
        places.iter().map(|&metric| data.measured(selection, group, point, metric)).collect()
    };
    let names: Vec<&str> = metrics.iter().map(|(name, _)| name.as_str()).collect();
    let common = common(&names, &groups.iter().map(of).collect::<Vec<_>>())
        .ok_or("there is nothing that can be ranked, or a value is negative")?;
    let labels = common.strategies.iter().map(|&place| data.label(groups[place], selection)).collect();
    Ok((labels, common))
}

fn order(ranking: &Ranking) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ranking.means.len()).collect();
    order.sort_by(|&a, &b| ranking.means[a].total_cmp(&ranking.means[b]));
    order
}

/// `{{table degradation metrics=}}`: strategies by rank, with the degradation of each metric.
pub(super) fn table(maker: &Maker, mut expression: Expression) -> Result<String, String> {
    let (_, data) = maker.data_of(&mut expression)?;
    let metrics = maker.metrics_of(data, &mut expression, "with several")?;
    let (series, plain) = (expression.list("series"), expression.has("plain"));
    let corner = expression.take("corner").unwrap_or_else(|| "degradation, %".to_string());
    let selection = data.selection(expression.rest()?)?;
    let (names, common) = selected(data, &metrics, series.as_deref(), &selection)?;
    let ranking = Ranking::of(&common.metrics, &draws(data.study.bootstrap));
    let head = [corner, "rank".to_string(), "mean".to_string()].into_iter();
    let head = head.chain(metrics.iter().map(|(_, words)| words.clone()));
    let mut table =
        Table::new(head.chain(["mean of ratios", "its rank", "ranks in experiments"].map(str::to_string)));
    for place in order(&ranking) {
        let told = !plain && ranking.chances[place].is_some_and(|chance| chance <= LEVEL);
        let mean = percents(ranking.means[place]);
        let (low, middle, high) = spread(&ranking.ranks_in[place]);
        let mut row = vec![
            names[place].clone(),
            ranking.ranks[place].to_string(),
            if told { format!("**{mean}**") } else { mean },
        ];
        row.extend(ranking.degradations.iter().map(|metric| percents(metric[place])));
        row.push(percents(ranking.means_of_ratios[place]));
        row.push(ranking.ranks_of_ratios[place].to_string());
        row.push(format!("{} ({} to {})", short(middle), short(low), short(high)));
        table.push(row);
    }
    Ok(table.markdown().trim_end().to_string())
}

/// `{{plot ranks metrics=}}` and `{{plot profile metric=}}`, as SVG.
pub(super) fn plot(
    data: &Data,
    kind: &str,
    metrics: &[(String, String)],
    series: Option<&[String]>,
    selection: &Selection,
    title: &str,
) -> Result<String, String> {
    let (names, common) = selected(data, metrics, series, selection)?;
    if kind == "profile" {
        let profiles = Profile::of(&common.metrics[0]);
        return Ok(ProfileChart {
            title: title.to_string(),
            lines: names
                .into_iter()
                .zip(profiles)
                .enumerate()
                .map(|(at, (name, of))| (name, at, of))
                .collect(),
        }
        .svg());
    }
    let ranking = Ranking::of(&common.metrics, &draws(data.study.bootstrap));
    let row =
        |place: usize| RankRow::new(names[place].clone(), ranking.ranks[place], &ranking.ranks_in[place]);
    Ok(RankChart { title: title.to_string(), rows: order(&ranking).into_iter().map(row).collect() }.svg())
}
