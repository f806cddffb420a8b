//! The numbers that a summary and the page show, and the sentences that judge a run.

use analysis::federation::Waits;
use analysis::migrations::Cell;
use analysis::theory::{Comparison, Quantity, Relation};
use analysis::waits::Cause;
use analysis::{JobOutcome, JobState, Metrics, Verdict};
use outputs::table::Table;
use outputs::{Overloaded, RunResult, Status};
use scheduler::{Class, Grid, Submit};

use super::quantity::{change, change_in_words, counted, duration, grouped, number, percent, seconds};

/// Up to this many sites a matrix is shown; above, the pairs with most jobs.
const MATRIX_SITES: usize = 16;
/// An ideal is worse than a run from this share on: what is less is written alike.
const WORSE_FROM: f64 = 1e-3;
/// Letters of a line of a terminal that nobody has made wider.
const TERMINAL: usize = 80;
/// Pairs shown in place of a matrix; arbitrary, what fits a screen beside the rest.
const PAIRS_SHOWN: usize = 12;

/// One number of the run, beside the ideal's.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is.
    pub name: &'static str,
    /// Value of the run, as text for a table.
    pub measured: String,
    /// The ideal's, as shown.
    pub ideal: Option<String>,
    /// How much the measured is above the ideal's.
    pub change: Option<String>,
}

/// The key figures of a run, the most important first.
pub fn key_figures(result: &RunResult) -> Vec<Figure> {
    let ideal = result.ideal.as_ref().map(|ideal| &ideal.metrics);
    let figure = |name, value: &dyn Fn(&Metrics) -> Option<f64>, show: &dyn Fn(f64) -> String| {
        let text = |metrics| value(metrics).map_or("-".into(), show);
        let change = |metrics| {
            let (measured, ideal) = (value(&result.metrics), value(metrics));
            measured.zip(ideal).map_or("-".into(), |(measured, ideal)| change(measured, ideal))
        };
        Figure { name, measured: text(&result.metrics), ideal: ideal.map(text), change: ideal.map(change) }
    };
    let ratio = |value: f64| format!("{value:.4}");
    // A mean over no job is none, however it is stored.
    let of_jobs = |value: fn(&Metrics) -> f64| move |m: &Metrics| (m.finished > 0).then(|| value(m));
    let mut figures = vec![
        figure("makespan", &|m| Some(m.makespan_s), &seconds),
        figure("competitive ratio, best bound", &|m| m.ratio_best, &ratio),
        figure("competitive ratio, thesis bound", &|m| m.ratio_thesis, &ratio),
        figure("bounded slowdown, mean", &of_jobs(|m| m.bounded_slowdown_mean), &number),
        figure("wait, mean", &of_jobs(|m| m.wait_mean_s), &seconds),
        figure("wait, longest", &of_jobs(|m| m.wait_max_s), &seconds),
        figure("turnaround, mean", &of_jobs(|m| m.turnaround_mean_s), &seconds),
        figure("turnaround by work (AWRT)", &|m| m.awrt_s, &seconds),
        figure("utilization", &|m| Some(m.utilization), &percent),
        figure("throughput, jobs an hour", &|m| Some(m.throughput_per_s * 3600.0), &number),
    ];
    if result.metrics.sharing_slowdown_mean.is_some() {
        figures.push(figure("slow-down on shared nodes, mean", &|m| m.sharing_slowdown_mean, &number));
    }
    if result.metrics.intrusion.is_some() {
        figures.push(figure("intrusion on local users (SI)", &|m| m.intrusion, &number));
    }
    if result.metrics.jobs_in_parts.is_some() {
        figures.push(figure(
            "jobs in parts at several sites",
            &|m| m.jobs_in_parts.map(|jobs| jobs as f64),
            &|n| grouped(n as u64),
        ));
    }
    let has_thieves = has_thieves(result);
    if has_thieves {
        figures.extend([
            figure("stolen jobs", &|m| Some(m.stolen_jobs as f64), &|n| grouped(n as u64)),
            figure("stolen share of jobs", &|m| Some(m.stolen_share), &percent),
            figure("stolen share of work", &|m| Some(m.stolen_work_share), &percent),
        ]);
    }
    // Where jobs are submitted at home, stolen and away from home are the same, and nobody has an origin.
    if result.about.submit == Submit::Origin {
        figures.extend([
            figure("share of jobs away from home", &|m| Some(m.away_from_home_share), &percent),
            figure("share of jobs away from origin", &|m| m.away_from_origin_share, &percent),
        ]);
    }
    if has_thieves {
        figures.push(figure("steal delay, mean", &|m| Some(m.steal_delay_mean_s), &seconds));
    }
    figures.extend([
        figure("messages", &|m| Some(m.messages as f64), &|n| grouped(n as u64)),
        figure("messages per job", &|m| Some(m.messages_per_job), &number),
    ]);
    if has_thieves {
        figures.push(figure("messages per stolen job", &|m| m.messages_per_stolen_job, &number));
    }
    figures
}

/// The key figures as a table, with the ideal's if there is one.
pub fn figures_table(result: &RunResult) -> Table {
    let figures = key_figures(result);
    if result.ideal.is_none() {
        let mut table = Table::new(["", "measured"]);
        for figure in figures {
            table.push([figure.name.to_string(), figure.measured]);
        }
        return table;
    }
    // A baseline has no ideal: it is held against itself at zero latency.
    let strategy = &result.about.strategy.strategy;
    let is_pool_of_nodes = strategy.pool().is_some() && result.outcome.grid.is_shared();
    let has_ideal = strategy.nature().has_ideal && !is_pool_of_nodes;
    let against = if has_ideal { "ideal" } else { "zero latency" };
    let table = |show: fn(&str) -> &str| {
        let mut table = Table::new(["", "measured", against, "change"]);
        for Figure { name, measured, ideal, change } in &figures {
            let [ideal, change] = [ideal, change].map(|text| text.as_deref().unwrap_or_default());
            table.push([*name, measured, show(ideal), change]);
        }
        table
    };
    let whole = table(|ideal| ideal);
    let fits = whole.text().lines().all(|line| line.chars().count() <= TERMINAL);
    // Of hours and more, days and hours beside the seconds are told once.
    if fits { whole } else { table(|ideal| ideal.split(" (").next().unwrap_or_default()) }
}

/// From when the key figures count, and where in the trace that is.
pub fn counted_line(result: &RunResult) -> String {
    format!(
        "Makespan, utilization, throughput, ratios and bounds count from the first submission, at {} of the trace.",
        seconds(result.metrics.first_submission_s)
    )
}

/// Whether what moves is stolen, as sites exchange jobs: brokers give them.
pub fn has_thieves(result: &RunResult) -> bool {
    result.outcome.grid.brokers() == 0
}

/// The kind of a job in drawings of a schedule: 0 own A, 1 own B, 2 stolen A, 3 stolen B; under brokers, who send every job,
/// away from home in place of stolen.
pub fn kind(grid: &Grid, job: &JobOutcome) -> u8 {
    let moved = if grid.brokers() == 0 { job.stolen() } else { job.away_from_home() };
    u8::from(job.class == Class::B) + 2 * u8::from(moved)
}

/// What jobs were whose [`kind`] says that they moved.
pub fn moved(result: &RunResult) -> &'static str {
    if has_thieves(result) { "stolen" } else { "elsewhere" }
}

/// Whether jobs that ran away from home were stolen: where users submit at home, and no broker sends jobs elsewhere.
pub fn away_is_stolen(result: &RunResult) -> bool {
    has_thieves(result) && result.about.submit == Submit::Home
}

/// What jobs were that ran away from home.
pub fn away(result: &RunResult) -> &'static str {
    if away_is_stolen(result) { "stolen" } else { "elsewhere" }
}

/// Who ran whose jobs: a matrix by rank of size, or the greatest flows if there are many sites.
pub fn migrations_table(result: &RunResult) -> Table {
    let grid = &result.outcome.grid;
    let by_rank = || (grid.brokers()..grid.len()).map(|rank| grid.site(grid.at_rank(rank)));
    if grid.len() > MATRIX_SITES {
        let mut pairs: Vec<_> = result.migrations.stolen().collect();
        pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.jobs), pair.home, pair.site));
        let mut table = Table::new(["home site", "ran at", "jobs", "share", "share of work"]).with_left(1);
        for pair in pairs.into_iter().take(PAIRS_SHOWN) {
            let name = |site| grid.site(site).name.clone();
            let shares = [percent(pair.jobs_share), percent(pair.work_share)];
            table.push([name(pair.home), name(pair.site), grouped(pair.jobs)].into_iter().chain(shares));
        }
        return table;
    }
    let header = ["home \\ ran at".to_string()]
        .into_iter()
        .chain(by_rank().map(|site| site.name.clone()))
        .chain(["jobs".into(), away(result).into(), "of its work".into()]);
    let mut table = Table::new(header);
    for home in by_rank() {
        let all = result.migrations.home(home.id);
        let own = result.migrations.cell(home.id, home.id);
        let share = |own: f64, all: f64| if all > 0.0 { percent(1.0 - own / all) } else { "-".into() };
        let cells = by_rank().map(|site| match result.migrations.cell(home.id, site.id).jobs {
            0 => ".".into(),
            jobs => grouped(jobs),
        });
        let ends =
            [grouped(all.jobs), share(own.jobs as f64, all.jobs as f64), share(own.work_s(), all.work_s())];
        table.push([home.name.clone()].into_iter().chain(cells).chain(ends));
    }
    table
}

/// What tables by home leave out: jobs that are wider than every site, and ran at several at once. None where all have a home.
pub fn without_home_line(result: &RunResult) -> Option<String> {
    let Cell { jobs, work } = result.migrations.without_home();
    if jobs == 0 {
        return None;
    }
    let all: i128 = result.outcome.finished().map(JobOutcome::work).sum();
    let of_work =
        if all > 0 { format!(", {} of all work", percent(work as f64 / all as f64)) } else { String::new() };
    let (which, have) = if jobs == 1 { ("job that is", "has") } else { ("jobs that are", "have") };
    Some(format!("left out: {} {which} wider than every site and {have} no home{of_work}", grouped(jobs)))
}

/// Who waited longest, where jobs are exchanged through a pool: nothing protects a job of the pool, and a mean
/// does not show it.
pub fn starvation_line(result: &RunResult) -> Option<String> {
    if !result.about.strategy.strategy.nature().offers {
        return None;
    }
    let federation = &result.federation;
    let of = |waits: &Waits| {
        let (longest, job) = (waits.wait_max_s?, waits.longest?);
        Some(format!("{} (job {job}), mean {}", seconds(longest), seconds(waits.wait_mean_s?)))
    };
    let longest = of(&federation.all)?;
    let others =
        [("run elsewhere", &federation.moved), ("wider than their site", &federation.wider_than_site)];
    let others = others
        .into_iter()
        .filter_map(|(which, waits)| Some(format!("; {} jobs {which}: {}", grouped(waits.jobs), of(waits)?)));
    let inversions = result.metrics.fcfs_inversions.map(|count| {
        format!(
            "; {} jobs started though an older one would have fit there (FCFS inversions)",
            grouped(count)
        )
    });
    Some(format!("longest wait {longest}{}{}", others.collect::<String>(), inversions.unwrap_or_default()))
}

/// What is proved beside what was measured.
pub fn theory_table(result: &RunResult) -> Table {
    let mut table =
        Table::new(["", "measured", "", "proved", "verdict", "formula"]).with_left(4).with_left(5);
    for comparison in &result.theory {
        let (measured, limit) = comparison_values(comparison);
        table.push([
            comparison.name.clone(),
            measured,
            relation_sign(comparison).into(),
            limit,
            verdict_words(comparison),
            comparison.formula.clone(),
        ]);
    }
    table
}

/// The two numbers of a comparison as shown.
pub fn comparison_values(comparison: &Comparison) -> (String, String) {
    let show = |value: Option<f64>| match (value, comparison.quantity) {
        (None, _) => "-".into(),
        (Some(value), Quantity::Ratio) => format!("{value:.4}"),
        (Some(value), Quantity::Seconds) => format!("{} s", number(value)),
    };
    (show(comparison.measured), show(comparison.limit))
}

/// `<=` or `>=`, as it should be.
pub fn relation_sign(comparison: &Comparison) -> &'static str {
    match (comparison.limit, comparison.relation) {
        (None, _) => "",
        (Some(_), Relation::AtMost) => "<=",
        (Some(_), Relation::AtLeast) => ">=",
    }
}

/// A name of files, as people write it.
pub(crate) fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// A verdict in a few words.
pub fn verdict_words(comparison: &Comparison) -> String {
    let verdict = &comparison.verdict;
    let word = words(verdict.name());
    match (verdict, verdict.reason()) {
        (Verdict::Violated, _) => word.to_uppercase(),
        (Verdict::NoCeiling(_), Some(reason)) => format!("{word}: {reason}"),
        (_, Some(reason)) => format!("{word}, not proved: {reason}"),
        (_, None) => word,
    }
}

/// The run in one sentence.
pub fn verdict_line(result: &RunResult) -> String {
    let word = words(result.verdict_name()).to_uppercase();
    if let Some(broken) = result.theory.iter().find(|comparison| comparison.verdict == Verdict::Violated) {
        let (measured, limit) = comparison_values(broken);
        let sign = if broken.relation == Relation::AtMost { "above" } else { "below" };
        return format!("{word}: {} {measured} is {sign} the proved {limit}", broken.name);
    }
    if let Status::Partial(reason) = &result.about.status {
        return format!("{word}: {reason}; the numbers cover the jobs that ended");
    }
    if let Some(reason) = result.not_measured() {
        return format!("NOT MEASURED: {reason}");
    }
    let Some(ratio) = result.theory.first() else { return "nothing was compared".into() };
    let (measured, limit) = comparison_values(ratio);
    let beside = |place: &str, reason: &str| {
        format!(
            "{word}: competitive ratio {measured} is {place} the {limit} that is proved for zero latency; {reason}"
        )
    };
    match &ratio.verdict {
        Verdict::Within(reason) => beside("within", reason),
        Verdict::Outside(reason) => beside("above", reason),
        Verdict::NoCeiling(reason) => {
            format!("{word}: competitive ratio {measured}; nothing proved: {reason}")
        }
        Verdict::Holds | Verdict::Violated => {
            format!("{word}: competitive ratio {measured}, proved at most {limit}")
        }
    }
}

/// How the run differs from the ideal, in one sentence.
pub fn ideal_line(result: &RunResult) -> Option<String> {
    let agreement = &result.ideal.as_ref()?.agreement;
    if agreement.identical() {
        return Some("identical to the ideal schedule, job for job".into());
    }
    let differing = (agreement.compared - agreement.same) as u64;
    let first = agreement.first_differences.first().map_or(String::new(), |difference| {
        let place = |placement: Option<analysis::compare::Placement>| {
            placement.map_or("never started".into(), |p| format!("site {} at {} s", p.site, p.start))
        };
        let (left, right) = (place(difference.left), place(difference.right));
        format!("; first job {}: {left}, ideal {right}", difference.job)
    });
    let differ = format!(
        "{} of {} jobs start at another time or site than in the ideal{first}",
        grouped(differing),
        grouped(agreement.compared as u64),
    );
    Some(match worse_ideal(result) {
        Some(worse) => format!("{differ}. {worse}"),
        None => differ,
    })
}

/// That the ideal does worse than the run, in a sentence: whoever reads of it looks for a mistake.
fn worse_ideal(result: &RunResult) -> Option<String> {
    let (this, ideal) = (&result.metrics, &result.ideal.as_ref()?.metrics);
    let of = |name: &str, this: f64, ideal: f64| {
        (ideal > this * (1.0 + WORSE_FROM))
            .then(|| format!("its {name} is {}, that of this run {}", duration(ideal), duration(this)))
    };
    let worse = [
        of("makespan", this.makespan_s, ideal.makespan_s),
        of("mean wait", this.wait_mean_s, ideal.wait_mean_s),
    ];
    let worse: Vec<String> = worse.into_iter().flatten().collect();
    (!worse.is_empty()).then(|| format!("The ideal does worse here: {}. {NO_OPTIMUM}", worse.join("; ")))
}

/// Why less delay may be worse.
const NO_OPTIMUM: &str =
    "Zero latency is a reference, no optimum: the same strategy may do worse with fresher information";

/// What messages that take time cost, and what exchange is worth: the answer that a run is made for, a sentence each. A run that
/// was not measured has none.
pub fn cost_lines(result: &RunResult) -> Vec<String> {
    if result.not_measured().is_some() {
        return vec![
            "What delay cost is not known: this machine did not keep to the delays, so the figures below are those of longer \
             ones."
                .to_string(),
        ];
    }
    let this = &result.metrics;
    let mut lines = Vec::new();
    if !result.about.strategy.strategy.nature().talks {
        lines.push(
            "No job leaves the site where it arrives: there is nothing that messages could cost.".to_string(),
        );
    }
    if let Some(ideal) = &result.ideal {
        let free = &ideal.metrics;
        lines.push(if ideal.agreement.identical() {
            "Delay cost nothing: every job started where and when it would have at zero latency.".to_string()
        } else {
            let more = this.wait_mean_s - free.wait_mean_s;
            let sign = if more < 0.0 { "less" } else { "more" };
            let lost = if result.about.network.contains("loss") { " or are lost" } else { "" };
            let disturbed = if result.outcome.faults.disturbed() { ", and with faults" } else { "" };
            let other = |this: f64, free: f64| match change_in_words(this, free).as_str() {
                "0" => "the same".to_string(),
                change => change.to_string(),
            };
            // Of nothing there is no percentage.
            let share = match change_in_words(this.wait_mean_s, free.wait_mean_s).as_str() {
                "-" => String::new(),
                change => format!(" ({change})"),
            };
            let no_optimum = if more < 0.0 { format!(" {NO_OPTIMUM}.") } else { String::new() };
            format!(
                "With messages that take time{lost}{disturbed} a job waits {} {sign} on average than at zero latency: {} in place \
                 of {}{share}. Makespan: {}; mean bounded slowdown: {}.{no_optimum}",
                duration(more.abs()),
                duration(this.wait_mean_s),
                duration(free.wait_mean_s),
                other(this.makespan_s, free.makespan_s),
                other(this.bounded_slowdown_mean, free.bounded_slowdown_mean)
            )
        });
    } else if let Some(why) = no_ideal(result) {
        lines.push(why);
    }
    if let Some(local) = &result.without_exchange {
        let without = local.metrics.wait_mean_s;
        let difference = (without - this.wait_mean_s).abs();
        lines.push(if let Some(overloaded) = &local.overloaded {
            overloaded_line(overloaded)
        } else if result.outcome.grid.machines().count() == 1 {
            format!(
                "One machine has nobody to exchange with: in the order of its local scheduler jobs would have waited {}.",
                duration(without)
            )
        } else if difference < 0.005 {
            format!("Without any exchange jobs would have waited as long, {}.", duration(without))
        } else {
            let worth = if without > this.wait_mean_s { "saves" } else { "costs" };
            format!(
                "Without any exchange{} jobs would have waited {}: {} {worth} {} a job.",
                if result.outcome.faults.disturbed() { " and without faults" } else { "" },
                duration(without),
                if has_thieves(result) { "exchange" } else { "brokering" },
                duration(difference)
            )
        });
    }
    lines
}

/// Why a run does not say what exchange is worth, and what it would be compared with in place of that.
fn overloaded_line(overloaded: &Overloaded) -> String {
    let dealt = overloaded.dealt.as_ref().map_or(String::new(), |metrics| {
        format!(
            " With the same jobs dealt to all sites in proportion to processors, a job waits {} without exchange.",
            duration(metrics.wait_mean_s)
        )
    });
    format!("{}{dealt}", overloaded.warning())
}

/// Why a run does not say what messages cost, if it is none of those without messages.
fn no_ideal(result: &RunResult) -> Option<String> {
    let spec = result.about.strategy;
    let nature = spec.strategy.nature();
    Some(match () {
        _ if !nature.talks => return None,
        _ if spec.is_free() => "Messages took no time: this is the ideal itself.".to_string(),
        _ if !result.is_complete() => {
            "What messages cost is not reported for an incomplete run.".to_string()
        }
        _ if nature.external => {
            "What messages cost is not known: no ideal was run beside this run. Either it was not asked for (--no-ideal, \
             outputs.ideal = false), or the program that decides failed in it, which a warning said."
                .to_string()
        }
        _ => "What messages cost is not known: no ideal was run beside this run. Run it again without --no-ideal \
              (outputs.ideal = true)."
            .to_string(),
    })
}

/// A cause of waits in a sentence.
pub fn wait_cause_meaning(cause: Cause) -> &'static str {
    match cause {
        Cause::InTransit => "it was between sites, or declined and not yet back",
        Cause::Queue => "it fitted at its site, and the order of the queue or a reservation kept it",
        Cause::Asked => "a site with room for it had asked for work, and the answer was under way",
        Cause::Offered => "it was in the global queue, and another site had room for it",
        Cause::Blind => "another site had room for it and did not know",
        Cause::Ineligible => "another site had room for it and may not take it",
        Cause::InParts => {
            "it is wider than every site, all together had room for it, and it had not started in parts yet"
        }
        Cause::Full => "no site had room for it: no messages could have helped",
    }
}

/// Where the delay went, in one line: why processors that the bound counts on were idle.
pub fn delay_line(result: &RunResult) -> Option<String> {
    let attribution = result.attribution.as_ref()?;
    let home = &result.outcome.grid.site(attribution.k).name;
    let window = format!(
        "while job {} of home {home} waited, {} s to {} s",
        attribution.job,
        number(attribution.from.as_secs_f64()),
        number(attribution.until.as_secs_f64())
    );
    if attribution.from == attribution.until {
        return Some(format!("nowhere: job {}, which ends last, started at once", attribution.job));
    }
    if attribution.total == 0.0 {
        return Some(format!("nowhere: no processor that the bound counts on was idle {window}"));
    }
    let mut causes: Vec<(&str, f64)> =
        attribution.causes().into_iter().filter(|&(_, value)| value > 0.0).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let causes: Vec<String> = causes
        .into_iter()
        .map(|(name, value)| format!("{name} {}", percent(value / attribution.total)))
        .collect();
    Some(format!("{} of {} processor-seconds {window}", causes.join(", "), number(attribution.total)))
}

/// The deficiency by cause as a table.
pub fn delay_table(result: &RunResult) -> Option<Table> {
    let attribution = result.attribution.as_ref()?;
    let mut table =
        Table::new(["idle because", "processor-seconds", "share", "of the work", "meaning"]).with_left(4);
    let share = |value: f64, of: f64| if of > 0.0 { percent(value / of) } else { "-".into() };
    for (name, value) in attribution.causes() {
        table.push([
            name.to_string(),
            number(value),
            share(value, attribution.total),
            share(value, attribution.work),
            cause_meaning(name).to_string(),
        ]);
    }
    table.push([
        "all".to_string(),
        number(attribution.total),
        share(attribution.total, attribution.total),
        share(attribution.total, attribution.work),
        String::new(),
    ]);
    Some(table)
}

/// A cause in a sentence.
pub fn cause_meaning(cause: &str) -> &'static str {
    match cause {
        "foreign" => "ran jobs of smaller homes than that of the job that ends last",
        "lost" => "a message between site and victim was lost and not yet repeated",
        "in transit" => "jobs that may run there were between sites, or kept where they arrived",
        "asked" => "processors were on offer or reserved, and no job was granted for them",
        "drain" => "nothing that the site may take fits; the ideal waits, too",
        _ => "a job that the ideal would start fits, and nothing was under way",
    }
}

/// How many jobs are in which state, in words.
pub fn jobs_line(result: &RunResult) -> String {
    let outcome = &result.outcome;
    let words = [
        (JobState::Completed, "completed"),
        (JobState::WalltimeReached, "cut at their estimate"),
        (JobState::Killed, "killed"),
        (JobState::Running, "running"),
        (JobState::Waiting, "waiting"),
        (JobState::Pending, "not submitted"),
        (JobState::Rejected, "rejected"),
    ];
    let counts = words.into_iter().filter_map(|(state, word)| {
        let count = outcome.count(state);
        (count > 0).then(|| format!("{} {word}", grouped(count as u64)))
    });
    let jobs = format!("{}: {}", counted(outcome.jobs.len(), "job"), counts.collect::<Vec<_>>().join(", "));
    let preparation = &result.about.provenance.preparation;
    let mut text = jobs;
    if preparation.jobs_dropped > 0 {
        let work = match preparation.work_dropped_share {
            share if share > 0.0 => format!(", with {} of the work", percent(share)),
            _ => String::new(),
        };
        text += &format!("; {} of the log left out{work}", grouped(preparation.jobs_dropped));
    }
    if preparation.work_cut_share > 0.0 {
        text += &format!("; {} of the work cut off at requested times", percent(preparation.work_cut_share));
    }
    text
}

/// The switches that decide what the numbers are of, in a line.
pub fn switches_line(result: &RunResult) -> String {
    let shown = [
        "protocol.view",
        "strategy.submit",
        "strategy.submit_delay",
        "workload.deal",
        "workload.overrun",
        "workload.estimate",
        "workload.correction",
        "strategy.backfill",
        "strategy.pass",
    ];
    let provenance = &result.about.provenance;
    // Of those that most runs leave as they are, what does something.
    let is_silent = |key: &str, value: &str| match key {
        "strategy.submit_delay" => value == "none",
        "workload.missing_estimate" => provenance.preparation.jobs_changed == 0,
        _ => false,
    };
    let parts = shown.iter().chain(&["workload.missing_estimate"]).filter_map(|key| {
        let name = words(key.split('.').next_back().unwrap_or(key));
        let value = provenance.switches.get(*key).filter(|value| !is_silent(key, value))?;
        Some(format!("{name} {value}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}
