//! What old views did to the decisions of brokers, as people read it.

use analysis::DecisionCost;
use analysis::spread::Distribution;
use outputs::RunResult;
use outputs::table::Table;

use super::quantity::{grouped, number, percent};

/// Distributions of ages; `None` without brokers that know sites by messages.
pub fn decisions_table(result: &RunResult) -> Option<Table> {
    let cost = result.decisions.as_ref()?;
    let mut table = Table::new(["seconds", "count", "mean", "median", "p90", "p99", "longest"]);
    let mut push = |name: &str, spread: &Distribution| {
        if spread.count == 0 {
            return;
        }
        let values = [spread.mean, spread.median, spread.p90, spread.p99, spread.max].map(number);
        table.push([name.to_string(), grouped(spread.count)].into_iter().chain(values));
    };
    push("age of the view of the chosen site", &cost.view_age_s);
    push("how long it had been wrong, 0 if it was right", &cost.stale_s);
    (cost.stale_s.count > 0).then_some(table)
}

/// What the table does not say.
pub fn decisions_lines(result: &RunResult) -> Vec<String> {
    let Some(cost) = &result.decisions else { return Vec::new() };
    let mut lines = vec![format!(
        "{} decisions; the view of the chosen site was wrong in {}{}",
        grouped(cost.decisions),
        percent(cost.stale_share),
        match cost.unheard {
            0 => String::new(),
            count => format!("; of {} nothing had been heard of it", grouped(count)),
        }
    )];
    lines.push(otherwise(cost));
    lines.push(format!(
        "herding: {} jobs in the mean, {} at most, had been sent to the chosen site since the state that was decided by",
        number(cost.unseen_mean),
        grouped(cost.unseen_max)
    ));
    lines
}

fn otherwise(cost: &DecisionCost) -> String {
    let (Some(share), Some(mean), Some(when_otherwise), Some(most)) =
        (cost.otherwise_share, cost.lost_mean_s, cost.lost_when_otherwise_s, cost.lost_max_s)
    else {
        return "no decision was held against the true state: the rule does not decide by it, or none was asked for".into();
    };
    format!(
        "the true state would have chosen another site in {} of {} decisions; by plans that cost {} s of wait a job in the \
         mean, {} s where it was another site, {} s at most",
        percent(share),
        grouped(cost.compared),
        number(mean),
        number(when_otherwise),
        number(most)
    )
}
