//! A run on one screen: the answer it was made for, what was run, its key figures, who stole what, what is proved, and a verdict.
//!
//! Plain text without colors, so that a pipe and a terminal get the same.

use outputs::table::folded;
use outputs::{RunResult, csv_cell};

use super::decisions::{decisions_lines, decisions_table};
use super::faults::{self, faults_lines, jobs_table, sites_table};
use super::figures::{
    cost_lines, counted_line, delay_line, delay_table, figures_table, has_thieves, ideal_line, jobs_line,
    migrations_table, starvation_line, switches_line, theory_table, verdict_line, without_home_line,
};
use super::orders::orders_lines;
use super::quantity::counted;
use super::steals::{steals_lines, steals_table};

/// Letters of a line of help and of what commands print, but for paths and matrices of sites: what fits beside another window.
pub const COLUMNS: usize = 100;

/// Letters of a line of a summary, which stands in terminals of every size and in logs.
const SUMMARY_COLUMNS: usize = 80;

/// The summary as aligned text.
pub fn terminal(result: &RunResult) -> String {
    let mut text = String::new();
    let say = |line: String, text: &mut String| {
        text.push_str(&folded(&line, SUMMARY_COLUMNS));
        text.push('\n');
    };
    // The sentences with which the page begins.
    cost_lines(result).into_iter().for_each(|line| say(line, &mut text));
    text.push('\n');
    for (label, line) in heading(result) {
        say(format!("{label:<11} {line}"), &mut text);
    }
    text.push('\n');
    text.push_str(&figures_table(result).within(SUMMARY_COLUMNS).text());
    say(counted_line(result), &mut text);
    text.push_str(&format!("\n{}\n", migrations_title(result)));
    text.push_str(&migrations_table(result).text());
    without_home_line(result).into_iter().for_each(|line| say(line, &mut text));
    if let Some(table) = decisions_table(result) {
        text.push_str("\nWhat brokers knew\n");
        text.push_str(&table.text());
        decisions_lines(result).into_iter().for_each(|line| say(line, &mut text));
    }
    if let Some(table) = steals_table(result) {
        text.push_str("\nWhat a steal costs\n");
        text.push_str(&table.text());
        steals_lines(result).into_iter().for_each(|line| say(line, &mut text));
    }
    text.push_str("\nTheory\n");
    text.push_str(&theory_table(result).within(SUMMARY_COLUMNS).text());
    text.push('\n');
    for warning in &result.about.warnings {
        say(format!("warning: {warning}"), &mut text);
    }
    for line in orders_lines(result) {
        say(format!("orders:  {line}"), &mut text);
    }
    for line in faults_lines(result) {
        say(format!("faults:  {line}"), &mut text);
    }
    if let Some(line) = starvation_line(result) {
        say(format!("pool:    {line}"), &mut text);
    }
    if let Some(line) = ideal_line(result) {
        say(format!("ideal:   {line}"), &mut text);
    }
    if let Some(line) = delay_line(result) {
        say(format!("where the delay went: {line}"), &mut text);
    }
    say(format!("verdict: {}", verdict_line(result)), &mut text);
    text
}

/// The summary as Markdown.
pub fn markdown(result: &RunResult) -> String {
    let mut text = format!("## {}\n\n", result.about.experiment);
    for (label, line) in heading(result).into_iter().skip(1) {
        text.push_str(&format!("- {label}: {line}\n"));
    }
    for line in orders_lines(result) {
        text.push_str(&format!("- orders: {line}\n"));
    }
    for line in faults_lines(result) {
        text.push_str(&format!("- faults: {line}\n"));
    }
    if let Some(line) = starvation_line(result) {
        text.push_str(&format!("- pool: {line}\n"));
    }
    if let Some(line) = ideal_line(result) {
        text.push_str(&format!("- ideal: {line}\n"));
    }
    if let Some(line) = delay_line(result) {
        text.push_str(&format!("- where the delay went: {line}\n"));
    }
    for warning in &result.about.warnings {
        text.push_str(&format!("- **warning**: {warning}\n"));
    }
    text.push_str(&format!("\n**{}**\n\n", verdict_line(result)));
    text.push_str(&figures_table(result).markdown());
    text.push_str(&format!("\n{}\n", counted_line(result)));
    text.push_str(&format!("\n### {}\n\n", migrations_title(result)));
    text.push_str(&migrations_table(result).markdown());
    without_home_line(result).iter().for_each(|line| text.push_str(&format!("\n{line}\n")));
    if let Some(table) = decisions_table(result) {
        text.push_str("\n### What brokers knew\n\n");
        text.push_str(&table.markdown());
        text.push('\n');
        decisions_lines(result).iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    }
    if let Some(table) = steals_table(result) {
        text.push_str("\n### What a steal costs\n\n");
        text.push_str(&table.markdown());
        text.push('\n');
        steals_lines(result).iter().for_each(|line| text.push_str(&format!("- {line}\n")));
    }
    if faults::anything(result) {
        text.push_str("\n### What crashes and take-overs did\n\n");
        let tables: Vec<String> = [sites_table(result), jobs_table(result)]
            .into_iter()
            .flatten()
            .map(|table| table.markdown())
            .collect();
        text.push_str(&tables.join("\n"));
    }
    text.push_str("\n### Theory\n\n");
    text.push_str(&theory_table(result).markdown());
    if let Some(table) = delay_table(result) {
        text.push_str("\n### Where the delay went\n\n");
        text.push_str(&table.markdown());
    }
    text
}

/// A header and one row, with the raw numbers of [`analysis::Metrics`].
pub fn csv(result: &RunResult) -> String {
    let metrics = &result.metrics;
    let optional = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    let delay = |value: fn(&analysis::Attribution) -> f64| optional(result.attribution.as_ref().map(value));
    let columns = [
        ("experiment", csv_cell::text(&result.about.experiment)),
        ("strategy", csv_cell::text(&result.about.strategy.to_string())),
        ("network", csv_cell::text(&result.about.network)),
        ("seed", result.about.seed.to_string()),
        ("complete", result.is_complete().to_string()),
        ("jobs", metrics.jobs.to_string()),
        ("finished", metrics.finished.to_string()),
        ("first_submission_s", metrics.first_submission_s.to_string()),
        ("makespan_s", metrics.makespan_s.to_string()),
        ("ratio_best", optional(metrics.ratio_best)),
        ("ratio_thesis", optional(metrics.ratio_thesis)),
        ("bounded_slowdown_mean", metrics.bounded_slowdown_mean.to_string()),
        ("wait_mean_s", metrics.wait_mean_s.to_string()),
        ("wait_max_s", metrics.wait_max_s.to_string()),
        ("turnaround_mean_s", metrics.turnaround_mean_s.to_string()),
        ("utilization", metrics.utilization.to_string()),
        ("throughput_per_s", metrics.throughput_per_s.to_string()),
        ("stolen_jobs", metrics.stolen_jobs.to_string()),
        ("stolen_work_share", metrics.stolen_work_share.to_string()),
        ("away_from_home_share", metrics.away_from_home_share.to_string()),
        ("away_from_origin_share", optional(metrics.away_from_origin_share)),
        ("messages", metrics.messages.to_string()),
        ("messages_per_job", metrics.messages_per_job.to_string()),
        ("certificate_s", delay(|a| a.certificate.bound.as_secs_f64())),
        ("deficiency", delay(|a| a.total)),
        ("deficiency_foreign", delay(|a| a.foreign)),
        ("deficiency_lost", delay(|a| a.lost)),
        ("deficiency_in_transit_or_asked", delay(|a| a.in_transit_or_asked())),
        ("deficiency_in_transit", delay(|a| a.in_transit)),
        ("deficiency_asked", delay(|a| a.asked)),
        ("deficiency_drain", delay(|a| a.drain)),
        ("deficiency_blind", delay(|a| a.blind)),
        ("ideal_makespan_s", optional(result.ideal.as_ref().map(|ideal| ideal.metrics.makespan_s))),
        ("ideal_wait_mean_s", optional(result.ideal.as_ref().map(|ideal| ideal.metrics.wait_mean_s))),
    ];
    let (names, values): (Vec<&str>, Vec<String>) = columns.into_iter().unzip();
    format!("{}\n{}\n", names.join(","), values.join(","))
}

/// What was run, as pairs of a label and a line.
pub(super) fn heading(result: &RunResult) -> Vec<(&'static str, String)> {
    let about = &result.about;
    let grid = &result.outcome.grid;
    let local = about.local.as_ref().map_or(String::new(), |local| format!(", local {local}"));
    let switches = switches_line(result);
    let heading = vec![
        ("experiment", about.experiment.clone()),
        ("workload", format!("{}; {}", about.workload, jobs_line(result))),
        (
            "grid",
            format!(
                "{}, {}",
                counted(grid.machines().count() as u64, "site"),
                counted(grid.processors(), "processor")
            ),
        ),
        ("strategy", format!("{}{local}", about.strategy)),
        ("network", about.network.clone()),
        (
            "run",
            format!(
                "{}, clock {}, seed {}, stealgrid {}",
                about.driver,
                about.clock,
                about.seed,
                outputs::version()
            ),
        ),
        ("switches", switches),
    ];
    heading.into_iter().filter(|(_, line)| !line.is_empty()).collect()
}

fn migrations_title(result: &RunResult) -> &'static str {
    if result.metrics.stolen_jobs == 0 && has_thieves(result) {
        "Jobs by home and executing site (none stolen)"
    } else {
        "Jobs by home and executing site"
    }
}

#[cfg(test)]
mod tests {
    use super::{SUMMARY_COLUMNS, folded};
    use crate::figures::cost_lines;
    use crate::{Format, render};
    use outputs::fixtures::{about, outcome, run};
    use outputs::{RunResult, Status};
    use scheduler::Submit;

    fn result() -> RunResult {
        let run = outcome(&[2, 4], &[(0, 2, 10, 1, 0), (0, 1, 6, 2, 2), (0, 4, 4, 2, 8)]);
        let ideal = outcome(&[2, 4], &[(0, 2, 10, 1, 0), (0, 1, 6, 2, 0), (0, 4, 4, 2, 6)]);
        RunResult::new(about(), run, Some(&ideal))
    }

    #[test]
    fn tables_by_home_say_how_many_jobs_have_none() {
        let result = RunResult::new(about(), outputs::fixtures::spread(), None);
        let line = "left out: 1 job that is wider than every site and has no home, 71.4 % of all work";
        for format in [Format::Terminal, Format::Markdown] {
            let text = render(&result, format).replace("\n  ", " ");
            assert!(text.lines().any(|found| found == line), "{text}");
        }
        let without = render(&self::result(), Format::Terminal);
        assert!(!without.contains("left out"), "{without}");
    }

    #[test]
    fn the_terminal_shows_figures_matrix_theory_and_verdict() {
        let expected = "\
With messages that take time a job waits 1.333 s more on average than at zero
  latency: 3.333 s in place of 2.000 s (+66.67 %). Makespan: +20.00 %; mean
  bounded slowdown: +6.67 %.

experiment  two sites
workload    a,b.swf; 3 jobs: 3 completed
grid        2 sites, 6 processors
strategy    ideal/st:50
network     no delay
run         simulate, clock virtual, seed 7, stealgrid 0.1.0

                                 measured    ideal    change
makespan                          12.00 s  10.00 s  +20.00 %
competitive ratio, best bound      1.2000   1.0000  +20.00 %
competitive ratio, thesis bound    1.2000   1.0000  +20.00 %
bounded slowdown, mean              1.067    1.000   +6.67 %
";
        let text = render(&result(), Format::Terminal);
        assert!(text.starts_with(expected), "{text}");
        for line in [
            "home \\ ran at  site1  site2  jobs  stolen  of its work",
            "site1              1      1     2  50.0 %       23.1 %",
            "site2              .      1     1   0.0 %        0.0 %",
            "ideal:   2 of 3 jobs start at another time or site than in the ideal; first",
            "  job 2: site 2 at 2 s, ideal site 2 at 0 s",
            "verdict: HOLDS: competitive ratio 1.2000, proved at most 3.0000",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }

    #[test]
    fn a_run_of_months_keeps_to_the_width_of_a_line() {
        let [run, ideal] =
            [3_000_000, 0].map(|start| outcome(&[2, 4], &[(0, 2, 28_763_776, 1, start), (0, 1, 6, 2, 2)]));
        let text = render(&RunResult::new(about(), run, Some(&ideal)), Format::Terminal);
        assert!(text.lines().all(|line| line.chars().count() <= SUMMARY_COLUMNS), "{text}");
        assert!(text.contains("31,763,776 s (367 d 15:16:16)  28,763,776 s  "), "{text}");
    }

    #[test]
    fn a_run_without_its_ideal_says_why() {
        for (strategy, why) in [
            ("st:50", "Run it again without --no-ideal"),
            ("ideal/st:50", "this is the ideal itself"),
            ("steal:random", "Run it again without --no-ideal"),
            ("broker:exec", "or the program that decides failed in it"),
            ("opaque:ag", "Run it again without --no-ideal"),
        ] {
            let about = outputs::RunAbout { strategy: strategy.parse().unwrap(), ..about() };
            let lines = cost_lines(&RunResult::new(about, outcome(&[4], &[(0, 4, 10, 1, 0)]), None));
            assert!(lines.len() == 1 && lines[0].contains(why), "{strategy}: {lines:?}");
        }
    }

    #[test]
    fn what_free_messages_do_worse_is_explained_and_of_no_wait_there_is_no_share() {
        let said = |start, free| {
            let [run, ideal] = [start, free].map(|start| outcome(&[4, 4], &[(0, 4, 10, 1, start)]));
            cost_lines(&RunResult::new(about(), run, Some(&ideal))).remove(0)
        };
        assert!(said(4, 6).contains("a reference, no optimum"), "{}", said(4, 6));
        assert!(!said(6, 4).contains("no optimum") && said(6, 4).contains("(+50.00 %)"), "{}", said(6, 4));
        assert!(said(6, 0).contains("in place of 0 s."), "{}", said(6, 0));
    }

    #[test]
    fn an_ideal_that_does_worse_is_said_on_the_terminal() {
        let said = |start, free| {
            let [run, ideal] = [start, free].map(|start| outcome(&[4, 4], &[(0, 4, 10, 1, start)]));
            render(&RunResult::new(about(), run, Some(&ideal)), Format::Terminal).replace("\n  ", " ")
        };
        let worse = "The ideal does worse here: its makespan is 16.00 s, that of this run 14.00 s; its mean wait is 6.000 s, \
                     that of this run 4.000 s. Zero latency is a reference, no optimum";
        assert!(said(4, 6).contains(worse), "{}", said(4, 6));
        assert!(!said(6, 4).contains("does worse"), "{}", said(6, 4));
    }

    #[test]
    fn one_machine_has_nobody_to_exchange_with() {
        let said = |sizes: &[u32]| {
            let other = if sizes.len() > 1 { 2 } else { 1 };
            let [run, local] =
                [6, 0].map(|start| outcome(sizes, &[(0, 4, 10, 1, start), (0, 4, 10, other, 20)]));
            cost_lines(&RunResult::new(about(), run, None).with_local(Some(&local), None)).pop().unwrap()
        };
        assert!(said(&[4]).starts_with("One machine has nobody to exchange with"), "{}", said(&[4]));
        assert!(said(&[4, 4]).contains("exchange costs"), "{}", said(&[4, 4]));
    }

    #[test]
    fn a_pool_tells_who_waited_longest() {
        let mut about = about();
        about.strategy = "ideal/pool:fcfs".parse().unwrap();
        about.submit = Submit::Origin;
        // The second job is wider than site 1, where all are submitted; the third runs there.
        let jobs = [(0, 4, 10, 2, 0), (1, 4, 10, 2, 10), (2, 1, 5, 1, 2)];
        let text = render(&RunResult::new(about, outcome(&[2, 4], &jobs), None), Format::Terminal);
        let text = text.replace("\n  ", " ");
        let line = "pool:    longest wait 9.000 s (job 2), mean 3.000 s; 2 jobs run elsewhere: \
                    9.000 s (job 2), mean 4.500 s; 2 jobs wider than their site: 9.000 s (job 2), mean 4.500 s";
        assert!(text.lines().any(|found| found == line), "{text}");
    }

    #[test]
    fn a_partial_run_says_so_in_its_verdict() {
        let mut about = about();
        about.status = Status::Partial("interrupted".into());
        let result = RunResult::new(about, outcome(&[4], &[(0, 4, 10, 1, 0)]), None);
        assert!(render(&result, Format::Terminal).contains("PARTIAL: interrupted"));
    }

    #[test]
    fn a_delayed_run_is_within_and_never_holds() {
        let mut about = about();
        about.messages = analysis::Messages::FREE.hindered_if(true, analysis::Hindrance::Delay);
        let result = RunResult::new(about, outcome(&[4], &[(0, 4, 10, 1, 0)]), None);
        let text = render(&result, Format::Terminal);
        assert!(text.contains("verdict: WITHIN: competitive ratio 1.0000"), "{text}");
    }

    #[test]
    fn an_idle_site_is_explained_and_a_broken_certificate_is_a_violation() {
        let result = with_attribution(|_| {});
        let text = render(&result, Format::Terminal);
        let line = "where the delay went: blind 100.0 % of 20.00 processor-seconds while job 2 of home site1 waited, \
                    0 s to 10.00 s";
        assert!(text.contains(&folded(line, SUMMARY_COLUMNS)), "{text}");
        assert_eq!(result.verdict(), analysis::Verdict::Holds);
        let markdown = render(&result, Format::Markdown);
        assert!(markdown.contains("| blind | 20.00 | 100.0 % | 50.0 % |"), "{markdown}");
        let json: serde_json::Value = serde_json::from_str(&render(&result, Format::Json)).unwrap();
        assert_eq!(json["deficiency"]["blind"], 20.0);

        let broken = with_attribution(|attribution| attribution.certificate.holds = false);
        assert_eq!(broken.verdict(), analysis::Verdict::Violated);
        assert!(
            render(&broken, Format::Terminal).contains("verdict: VIOLATED: lower bound of the deficiency")
        );
    }

    /// Two jobs as wide as site 1, one after the other, beside an idle site 2.
    fn with_attribution(change: impl Fn(&mut analysis::Attribution)) -> RunResult {
        let jobs = [(0, 2, 10, 1, 0), (0, 2, 10, 1, 10)];
        let (workload, events) = run(&[2, 4], &jobs);
        let grid = scheduler::Grid::of_sizes(&[2, 4]).unwrap();
        let strategy = about().strategy.strategy;
        let mut deficiency = analysis::Deficiency::new(&grid, &strategy, &workload);
        events.iter().for_each(|event| deficiency.observe(event));
        let mut attribution = deficiency.finish();
        attribution.iter_mut().for_each(change);
        RunResult::new(about(), outcome(&[2, 4], &jobs), None).with_attribution(attribution)
    }

    #[test]
    fn every_format_is_complete() {
        let result = result();
        let csv = render(&result, Format::Csv);
        let columns: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
        assert_eq!(columns[0], columns[1], "{csv}");
        let markdown = render(&result, Format::Markdown);
        assert!(markdown.contains("| makespan | 12.00 s | 10.00 s | +20.00 % |"), "{markdown}");
        let json: serde_json::Value = serde_json::from_str(&render(&result, Format::Json)).unwrap();
        assert_eq!(json["ideal"]["agreement"]["same"], 1);
    }

    #[test]
    fn names_of_others_are_no_formulas() {
        let mut about = about();
        (about.experiment, about.network) = ("-1+1".into(), "=x".into());
        let result = RunResult::new(about, outcome(&[4], &[(0, 4, 10, 1, 0)]), None);
        let csv = render(&result, Format::Csv);
        let mut lines = csv.lines();
        assert!(lines.next().unwrap().starts_with("experiment,strategy,network,"), "{csv}");
        assert!(lines.next().unwrap().starts_with("'-1+1,ideal/st:50,'=x,"), "{csv}");
    }

    #[test]
    fn many_sites_are_shown_as_their_greatest_flows() {
        let sizes = vec![2; 40];
        let result = RunResult::new(about(), outcome(&sizes, &[(0, 2, 10, 7, 0), (0, 1, 6, 9, 2)]), None);
        let text = render(&result, Format::Terminal);
        assert!(text.contains("home site  ran at  jobs   share  share of work"), "{text}");
        assert!(text.contains("site1      site7      1  50.0 %         76.9 %"), "{text}");
    }
}
