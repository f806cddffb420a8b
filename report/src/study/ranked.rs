//! Rankings of what is selected: tables of degradations, plots of ranks and of performance profiles.

use analysis::ranking::{Profile, Ranking};
use outputs::table::Table;

use super::Maker;
use super::data::{Data, Selection};
use super::expression::Expression;
use super::plot::Asked;
use crate::sweep::axis::short;
use crate::sweep::look::Looks;
use crate::sweep::rank_chart::{ProfileChart, RankChart, RankRow};
use crate::sweep::ranking::{Common, common, draws, percents, spread};

/// A difference is statistically significant if its corrected chance is at most this.
const LEVEL: f64 = 0.05;

/// Strategies that can be ranked.
struct Found {
    names: Vec<String>,
    /// As the page calls them.
    shown: Vec<String>,
    common: Common,
}

/// The strategies that are selected, in the repetitions that all of them have.
fn selected(
    data: &Data,
    metrics: &[(String, String)],
    series: Option<&[String]>,
    selection: &Selection,
) -> Result<Found, String> {
    let groups = data.named_groups(selection, series)?;
    let point = data.point(selection)?;
    let places = metrics.iter().map(|(name, _)| data.metric(name)).collect::<Result<Vec<_>, _>>()?;
    let of = |&group: &usize| {
        places.iter().map(|&metric| data.measured(selection, group, point, metric)).collect()
    };
    let names: Vec<&str> = metrics.iter().map(|(name, _)| name.as_str()).collect();
    let common = common(&names, &groups.iter().map(of).collect::<Vec<_>>())
        .ok_or("there is nothing that can be ranked, or a value is negative")?;
    let ranked = || common.strategies.iter().map(|&place| groups[place]);
    let shown = ranked().map(|group| data.label(group, selection)).collect();
    Ok(Found { names: ranked().map(|group| data.name(group, selection)).collect(), shown, common })
}

fn order(ranking: &Ranking) -> Vec<usize> {
    let mut order: Vec<usize> = (0..ranking.means.len()).collect();
    order.sort_by(|&a, &b| ranking.means[a].total_cmp(&ranking.means[b]));
    order
}

/// `{{table degradation metrics=}}`: strategies by rank, with the degradation of each metric.
pub(super) fn table(maker: &Maker, mut expression: Expression) -> Result<Table, String> {
    let (_, data) = maker.data_of(&mut expression)?;
    let metrics = maker.metrics_of(data, &mut expression, "with several")?;
    let (series, plain) = (expression.list("series"), expression.has("plain"));
    let corner = expression.take("corner").unwrap_or_else(|| "degradation, %".to_string());
    let selection = data.selection(expression.rest()?)?;
    let Found { shown: names, common, .. } = selected(data, &metrics, series.as_deref(), &selection)?;
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
    Ok(table)
}

/// `{{plot ranks metrics=}}` and `{{plot profile metric=}}`, as SVG.
pub(super) fn plot(data: &Data, kind: &str, asked: &Asked, looks: &mut Looks) -> Result<String, String> {
    let Found { names, shown, common } =
        selected(data, &asked.metrics, asked.series.as_deref(), &asked.selection)?;
    let title = asked.title.clone();
    if kind == "profile" {
        let profiles = Profile::of(&common.metrics[0]);
        let looks = looks.of(&names);
        let lines = shown.into_iter().zip(looks).zip(profiles);
        return Ok(ProfileChart {
            title,
            heading: asked.heading.clone(),
            metric: asked.metrics[0].1.to_lowercase(),
            lines: lines.map(|((name, look), of)| (name, look, of)).collect(),
        }
        .drawn(asked.room));
    }
    let ranking = Ranking::of(&common.metrics, &draws(data.study.bootstrap));
    let row =
        |place: usize| RankRow::new(shown[place].clone(), ranking.ranks[place], &ranking.ranks_in[place]);
    Ok(RankChart { title, rows: order(&ranking).into_iter().map(row).collect() }.drawn(asked.room))
}
