//! The price of a steal as people read it: a table of the phases, and a few sentences.

use std::collections::BTreeMap;

use analysis::Price;
use analysis::spread::Distribution;
use outputs::table::Table;
use outputs::{RunResult, StealCost};

use super::figures::has_thieves;
use super::quantity::{grouped, number, percent};

fn exchange(result: &RunResult) -> Option<&StealCost> {
    result.steals.as_ref().filter(|_| has_thieves(result))
}

/// The phases and ages in a table; `None` without exchange.
pub fn steals_table(result: &RunResult) -> Option<Table> {
    let price = &exchange(result)?.price;
    let mut table = Table::new(["seconds", "count", "mean", "median", "p90", "p99", "longest"]);
    let mut push = |name: &str, spread: &Distribution| {
        if spread.count > 0 {
            let values = [spread.mean, spread.median, spread.p90, spread.p99, spread.max].map(number);
            table.push([name.to_string(), grouped(spread.count)].into_iter().chain(values));
        }
    };
    push("request, until served", &price.request_s);
    push("grant and transfer", &price.transfer_s);
    push("until the start", &price.start_s);
    push("all of it", &price.total_s);
    push("age of the view, request served", &price.view_age_granted_s);
    push("age of the view, request refused", &price.view_age_refused_s);
    if let Some(over) = &price.wait_over_ideal_s {
        push("wait of stolen jobs over the ideal", over);
    }
    Some(table)
}

/// What the table does not say.
pub fn steals_lines(result: &RunResult) -> Vec<String> {
    let Some(exchange) = exchange(result) else { return Vec::new() };
    let price = &exchange.price;
    let mut lines = vec![format!(
        "{} steals{}{}",
        grouped(price.steals),
        in_brackets(&price.by_cause),
        match price.routes {
            0 => String::new(),
            routes => format!("; {} routes to a home, not counted below", grouped(routes)),
        }
    )];
    // Who pushes or is assigned jobs asks for none; only a queue kept by gossip has claims.
    let share = |counts: &BTreeMap<String, u64>, all: u64, rate: f64, what: &str| {
        let count = grouped(counts.values().sum());
        (all > 0)
            .then(|| format!("{count} of {} {what}, {}{}", grouped(all), percent(rate), in_brackets(counts)))
    };
    let mut turned_down: Vec<String> = [
        share(&price.refusals, price.requests, price.refusal_rate, "requests refused"),
        share(&price.denials, price.claims, price.denial_rate, "claims in vain"),
    ]
    .into_iter()
    .flatten()
    .collect();
    turned_down.push(format!(
        "{} grants declined, {}{}",
        grouped(price.declines.values().sum()),
        percent(price.decline_rate),
        in_brackets(&price.declines),
    ));
    lines.push(turned_down.join("; "));
    lines.push(format!(
        "jobs by changes of site: {}; by times declined: {}",
        histogram(&price.jobs_by_hops),
        histogram(&price.jobs_by_bounces)
    ));
    if let Some(line) = concentration(price, result) {
        lines.push(line);
    }
    if price.steals > 0 && !price.messages_per_steal.is_empty() {
        let all: f64 = price.messages_per_steal.values().sum();
        let kinds: Vec<String> =
            price.messages_per_steal.iter().map(|(kind, rate)| format!("{kind} {}", number(*rate))).collect();
        lines.push(format!("{} messages per steal: {}", number(all), kinds.join(", ")));
    }
    lines
}

fn concentration(price: &Price, result: &RunResult) -> Option<String> {
    let top = price
        .thieves
        .iter()
        .max_by(|a, b| a.work_share.total_cmp(&b.work_share).then(b.site.cmp(&a.site)))?;
    (top.work_share > 0.0).then(|| {
        format!(
            "{} executed {} of the stolen work; as concentrated as {} equal thieves of {} sites (Gini {:.2})",
            result.outcome.grid.site(top.site).name,
            percent(top.work_share),
            number(price.concentration.effective_thieves),
            price.thieves.len(),
            price.concentration.gini,
        )
    })
}

/// ` (empty 3, busy 1)`, or nothing.
fn in_brackets(counts: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> = counts
        .iter()
        .map(|(name, count)| format!("{} {}", name.replace('_', " "), grouped(*count)))
        .collect();
    if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) }
}

/// `0: 12, 1: 3`, without empty values.
fn histogram(counts: &[u64]) -> String {
    let words: Vec<String> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(value, count)| format!("{value}: {}", grouped(*count)))
        .collect();
    words.join(", ")
}
