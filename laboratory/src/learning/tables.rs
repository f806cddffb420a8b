//! Rows as tables: what is found beside what was printed, verdicts, conditions, and regret.

use claims::learning::agents;
use claims::learning::judge::{
    Judged, Metric, Paired, Sample, differences, gains, setting_gains, setting_verdicts, values, verdicts,
    welch,
};
use claims::learning::{ALPHAS, CONDITIONS, DELAYS, RATES, Row, SCENARIOS, STREAM_RULES, STREAMS};
use outputs::table::Table;

use super::published::{PRINTED, Printed};

const MAKESPAN: Metric = |row| row.makespan_s;
const IDLENESS: Metric = |row| row.idleness_percent;
const RECALLED: Metric = |row| row.recalled as f64;
const RESPONSE: Metric = |row| row.response_s;
const WAIT: Metric = |row| row.wait_s;
const IMBALANCE: Metric = |row| 100.0 * row.imbalance;
/// Rounds of the author.
const PUBLISHED_ROUNDS: usize = 15;

/// A table and what stands above it.
pub(super) type Section = (&'static str, Table);

fn spread(found: Option<Sample>, digits: usize) -> String {
    found.map_or("-".to_string(), |found| printed((found.mean, found.sd), digits))
}

fn printed((mean, sd): (f64, f64), digits: usize) -> String {
    format!("{mean:.digits$} ({sd:.digits$})")
}

/// A chance as the tables print it.
fn percent(chance: Option<f64>) -> String {
    chance.map_or("-".to_string(), |chance| format!("{:.2} %", 100.0 * chance))
}

fn interval(found: Option<Paired>, digits: usize) -> String {
    found.map_or("-".to_string(), |Paired { mean, low, high, .. }| {
        format!("{mean:.digits$} ({low:.digits$} to {high:.digits$})")
    })
}

/// Everything that rows say; nothing of experiments that a file of before does not have.
pub(super) fn sections(rows: &[Row]) -> Vec<Section> {
    let of = |experiment: &str| -> Vec<Row> {
        rows.iter().filter(|row| row.experiment == experiment).cloned().collect()
    };
    let (published, stream, settings, crowds) = (of("published"), of("stream"), of("settings"), of("agents"));
    let mut sections = vec![
        ("Scenarios", scenarios()),
        (
            "Makespan in seconds and G in percent: mean (standard deviation), and the one-tailed chance of equal means",
            gain(&published),
        ),
        ("Idleness in percent", idleness(&published)),
        ("Jobs called back", recalled(&published)),
        ("Claims", claims(&verdicts(&published))),
    ];
    if !settings.is_empty() {
        sections.push((
            "Settings with time-outs of 750 s: G in percent, and what less the mean of both is than at α 0.5, l 0.3, with intervals of pairs",
            by_setting(&settings),
        ));
        sections
            .push(("The claims on settings, with time-outs of 750 s", claims(&setting_verdicts(&settings))));
    }
    sections.push((
        "What makes the choice matter: G and idleness below round-robin's, with intervals of pairs, and how far the mean G of 15 rounds may be from the true one",
        by_condition(&of("conditions")),
    ));
    sections.push(("Regret in seconds per job, with intervals of pairs", regret(&stream)));
    if !crowds.is_empty() {
        sections.push((
            "Users who learn alone: mean response in seconds, and imbalance of sites in percent, by the rate of work",
            by_rate(&crowds),
        ));
        sections.push(("The same at 80 %: mean wait in seconds, by tenths of a run", curves(&crowds)));
        sections.push(("What tasks wait longer where users are replaced, in seconds", turnover(&crowds)));
        sections.push(("What was found of users who learn alone", claims(&agents::verdicts(&crowds))));
    }
    sections
}

fn scenarios() -> Table {
    let mut table = Table::new(["scenario", "jobs", "α", "l", "T0"]);
    for scenario in SCENARIOS {
        let timeout = scenario.timeout.map_or("none".to_string(), |timeout| format!("{timeout} s"));
        table.push([
            scenario.name.to_string(),
            scenario.jobs.to_string(),
            scenario.alpha.to_string(),
            scenario.learning.to_string(),
            timeout,
        ]);
    }
    table
}

/// The chance of equal means of a rule and the baseline.
fn chance(rows: &[Row], of: &Printed, metric: Metric) -> Option<f64> {
    let sample = |rule| Sample::of(&values(rows, of.scenario, rule, metric));
    of.gain?;
    welch(sample("round-robin")?, sample(of.rule)?)
}

fn gain(rows: &[Row]) -> Table {
    let mut table =
        Table::new(["scenario", "rule", "makespan", "printed", "G", "printed", "chance", "printed"])
            .with_left(1);
    for of in &PRINTED {
        let gains = of.gain.and_then(|_| Sample::of(&gains(rows, of.scenario, of.rule)));
        table.push([
            of.scenario.to_string(),
            of.rule.to_string(),
            spread(Sample::of(&values(rows, of.scenario, of.rule, MAKESPAN)), 0),
            printed(of.makespan, 0),
            spread(gains, 2),
            of.gain.map_or("-".to_string(), |gain| printed(gain, 2)),
            percent(chance(rows, of, MAKESPAN)),
            percent(of.gain_chance.map(|chance| chance / 100.0)),
        ]);
    }
    table
}

fn idleness(rows: &[Row]) -> Table {
    let mut table = Table::new(["scenario", "rule", "idleness", "printed", "chance", "printed"]).with_left(1);
    for of in &PRINTED {
        table.push([
            of.scenario.to_string(),
            of.rule.to_string(),
            spread(Sample::of(&values(rows, of.scenario, of.rule, IDLENESS)), 2),
            printed(of.idleness, 2),
            percent(chance(rows, of, IDLENESS)),
            percent(of.idleness_chance.map(|chance| chance / 100.0)),
        ]);
    }
    table
}

fn recalled(rows: &[Row]) -> Table {
    let mut table = Table::new(["scenario", "rule", "called back", "printed"]).with_left(1);
    for of in PRINTED {
        let Some(counts) = of.recalled else { continue };
        table.push([
            of.scenario.to_string(),
            of.rule.to_string(),
            spread(Sample::of(&values(rows, of.scenario, of.rule, RECALLED)), 2),
            printed(counts, 2),
        ]);
    }
    table
}

fn claims(all: &[Judged]) -> Table {
    let mut table = Table::new(["claim", "says", "found, with intervals of pairs", "verdict"]);
    for column in 1..4 {
        table = table.with_left(column);
    }
    for judged in all {
        let verdict = judged.verdict.name();
        table.push([judged.claim, judged.says, judged.found.as_str(), verdict]);
    }
    table.within(120)
}

fn by_setting(rows: &[Row]) -> Table {
    let mut table = Table::new(["α", "l", "G of AG", "G of MQD", "less than chosen, points"]);
    let chosen = setting_gains(rows, 0.5, 0.3, &["ag", "mqd"]);
    for alpha in ALPHAS {
        for learning in RATES {
            let gains = |rules: &[&str]| setting_gains(rows, alpha, learning, rules);
            let less = differences(&chosen, &gains(&["ag", "mqd"]));
            table.push([
                alpha.to_string(),
                learning.to_string(),
                interval(Paired::of(&gains(&["ag"])), 2),
                interval(Paired::of(&gains(&["mqd"])), 2),
                if (alpha, learning) == (0.5, 0.3) {
                    "chosen".to_string()
                } else {
                    interval(Paired::of(&less), 2)
                },
            ]);
        }
    }
    table
}

fn by_condition(rows: &[Row]) -> Table {
    let mut table =
        Table::new(["what happens", "rule", "G, %", "15 rounds, ±", "idleness less by, points"]).with_left(1);
    for condition in &CONDITIONS {
        let idle = |rule| values(rows, condition.name, rule, IDLENESS);
        for rule in &condition.rules[1..] {
            // A file of before does not have all conditions.
            let Some(gained) = Paired::of(&gains(rows, condition.name, rule)) else { continue };
            let margin = gained.margin_of(PUBLISHED_ROUNDS);
            table.push([
                condition.name.to_string(),
                rule.to_string(),
                interval(Some(gained), 2),
                margin.map_or("-".to_string(), |margin| format!("{margin:.2}")),
                interval(Paired::of(&differences(&idle("round-robin"), &idle(rule))), 2),
            ]);
        }
    }
    table
}

fn by_rate(rows: &[Row]) -> Table {
    let mut table = Table::new(["rate", "rule", "response", "wait", "imbalance"]).with_left(1);
    for rate in agents::RATES {
        for rule in agents::RULES {
            let of = |metric| Paired::of(&values(rows, &agents::at_rate(rate), rule, metric));
            table.push([
                format!("{rate} %"),
                rule.to_string(),
                interval(of(RESPONSE), 0),
                interval(of(WAIT), 0),
                interval(of(IMBALANCE), 0),
            ]);
        }
    }
    table
}

fn curves(rows: &[Row]) -> Table {
    let mut header = vec!["rule".to_string(), "told after".to_string()];
    header.extend((1..=agents::PARTS).map(|part| part.to_string()));
    let mut table = Table::new(header);
    let told = agents::DELAYS.map(|delay| ("agents", delay));
    for (rule, delay) in told.into_iter().chain(agents::RULES[1..].iter().map(|&rule| (rule, 0))) {
        let mut cells = vec![rule.to_string(), format!("{delay} s")];
        cells.extend((1..=agents::PARTS).map(|part| {
            let waits = values(rows, &agents::in_part(delay, part), rule, WAIT);
            Sample::of(&waits).map_or("-".to_string(), |waits| format!("{:.0}", waits.mean))
        }));
        table.push(cells);
    }
    table
}

fn turnover(rows: &[Row]) -> Table {
    let mut table = Table::new(["who is replaced, whose tasks", "longer by"]);
    for (name, costs) in agents::turnover_costs(rows) {
        table.push([name, interval(Paired::of(&costs), 0)]);
    }
    table
}

fn regret(rows: &[Row]) -> Table {
    let mut table =
        Table::new(["load", "feedback after", "rule", "against the best fixed site", "against the oracle"])
            .with_left(2);
    for (load, _) in STREAMS {
        let of = |delay: u32, rule: &str| values(rows, &format!("{load}; {delay} s"), rule, RESPONSE);
        let (fixed, oracle) = (of(0, "best fixed"), of(0, "oracle"));
        for delay in DELAYS {
            for rule in STREAM_RULES {
                let found = of(delay, rule);
                table.push([
                    load.to_string(),
                    format!("{delay} s"),
                    rule.to_string(),
                    interval(Paired::of(&differences(&found, &fixed)), 0),
                    interval(Paired::of(&differences(&found, &oracle)), 0),
                ]);
            }
        }
    }
    table
}
