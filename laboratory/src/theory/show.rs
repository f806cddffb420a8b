//! The theory of a grid as tables, for a terminal and as Markdown.

use experiments::terminal::COLUMNS;
use outputs::table::{Table, folded};
use report::quantity::{counted, grouped, number};

use super::Theory;

/// Homes shown; all are in the JSON. Arbitrary, what fits a screen.
const HOMES_SHOWN: usize = 24;

/// A part: a title, a table, and what it assumes.
struct Section {
    title: &'static str,
    table: Table,
    note: String,
}

pub(super) fn terminal(theory: &Theory) -> String {
    let mut text = format!("{}\n", folded(&heading(theory), COLUMNS));
    for Section { title, table, note } in parts(theory) {
        text += &format!("\n{title}\n{}", table.within(COLUMNS).text());
        for line in note.lines() {
            text += &format!("{}\n", folded(&format!("  {line}"), COLUMNS));
        }
    }
    text
}

pub(super) fn markdown(theory: &Theory) -> String {
    let mut text = format!("{}\n", heading(theory));
    for Section { title, table, note } in parts(theory) {
        text += &format!("\n## {title}\n\n{}\n{note}\n", table.markdown());
    }
    text
}

fn heading(theory: &Theory) -> String {
    let jobs = theory.workload.as_ref().map_or("no workload".to_string(), |workload| {
        format!(
            "{} of {}, {}",
            counted(workload.jobs as u64, "job"),
            workload.name,
            if workload.offline { "all there at the start" } else { "submitted over time" }
        )
    });
    format!(
        "{} on {} with {}; {jobs}; one-way delay {} s",
        theory.strategy,
        counted(theory.grid.sites, "site"),
        counted(theory.grid.processors, "processor"),
        number(theory.delay_s)
    )
}

fn optional(value: Option<f64>) -> String {
    value.map_or("-".into(), number)
}

fn ratio(value: Option<f64>) -> String {
    value.map_or("-".into(), |value| format!("{value:.4}"))
}

fn parts(theory: &Theory) -> Vec<Section> {
    let mut parts = Vec::new();
    parts.extend(lower_bounds(theory));
    parts.push(ceilings(theory));
    parts.extend(theory.brokers.as_ref().map(|part| {
        let (table, note) = part.table();
        Section { title: "Theorems of brokers", table, note }
    }));
    parts.push(fetch(theory));
    parts.push(certificate(theory));
    parts.extend(unavoidable(theory));
    parts.extend(little(theory));
    parts.extend(work_stealing(theory));
    parts
}

fn lower_bounds(theory: &Theory) -> Option<Section> {
    let workload = theory.workload.as_ref()?;
    let bounds = &workload.bounds;
    let mut table = Table::new(["bound", "seconds", "formula"]).with_left(2);
    for (name, value, formula) in [
        ("time", bounds.time_s, "max_j (r_j + p_j)"),
        ("area, thesis", bounds.area_thesis_s, "sum w_j / S_1"),
        ("area, from the start", bounds.area_start_s, "max_k W_k / S_k"),
        ("area", bounds.area_s, "max_k,rho rho + W_k(r >= rho) / S_k"),
        ("count", bounds.count_s, "max_q,rho rho + sum p_j(size >= q, r >= rho) / sum floor(s_i / q)"),
        ("of the proofs", bounds.proof_s, "max(time, area from the start)"),
        ("best", bounds.best_s, "max of all"),
    ] {
        table.push([name.to_string(), number(value), formula.to_string()]);
    }
    let note = format!(
        "No schedule is shorter. p_max {} s, r_last {} s, mean work of a job {} processor-seconds, p_w {} s.",
        number(workload.run_time_max_s),
        number(workload.submit_last_s),
        number(workload.work_per_job),
        optional(workload.weighted_run_time_s)
    );
    Some(Section { title: "Lower bounds", table, note })
}

fn ceilings(theory: &Theory) -> Section {
    let mut table = Table::new(["jobs", "ratio at most"]);
    table.push(["all at the start".to_string(), ratio(theory.ceilings.offline)]);
    table.push(["over time".to_string(), ratio(theory.ceilings.online)]);
    let note = match (&theory.ceilings.reason, &theory.brokers) {
        (Some(reason), _) => format!("Nothing is proved: {reason}."),
        (None, Some(part)) => part.assumption(),
        (None, None) => format!(
            "Of the makespan to the bound of the proofs; beta = {}. Assumes free and instantaneous messages.",
            theory.beta
        ),
    };
    Section { title: "Ceilings without delay", table, note }
}

fn fetch(theory: &Theory) -> Section {
    let mut table = Table::new([
        "a steal costs",
        "d",
        "Delta s",
        "Delta/p_w",
        "crude",
        "bound",
        "reference",
        "makespan <=",
        "reference s",
    ]);
    for row in &theory.protocols {
        table.push([
            row.name.clone(),
            row.delays.to_string(),
            number(row.delta_s),
            ratio(row.relative),
            ratio(row.ratio_crude),
            ratio(row.ratio),
            ratio(row.reference_ratio),
            optional(row.makespan_s),
            optional(row.reference_makespan_s),
        ]);
    }
    let note = "Delta: how long processors are idle per stolen job. Crude, bound and reference are ratios to the bound of \
                the proofs:\nwhatever is stolen, with what the reference steals, and what it comes to. Assumes that lists \
                are known at once and each\nstolen job holds its processors for Delta (ideal/st:X,fetch=Delta); order \
                AHB, no reservations. Not proved for peers,\nwhich learn late."
        .to_string();
    Section { title: "Reserve, then fetch: bounds by protocol", table, note }
}

fn certificate(theory: &Theory) -> Section {
    let mut table = Table::new([
        "k",
        "s_k",
        "S_k",
        "jobs",
        "W_k",
        "W_k/S_k s",
        "W_k/(beta S_k) s",
        "s per processor-hour idle",
    ]);
    for home in theory.homes.iter().take(HOMES_SHOWN) {
        table.push([
            home.name.clone(),
            grouped(u64::from(home.processors)),
            grouped(home.processors_from_here),
            grouped(home.jobs),
            number(home.work),
            number(home.area_s),
            number(home.allowed_s),
            number(3600.0 * home.per_deficiency),
        ]);
    }
    let mut note =
        "C_max <= r_j + p_j + (W_k + V_k)/(beta S_k), j the job that ends last, k its home, V_k the idle \
                    processors that count.\nHolds for any strategy, delay and loss; W_k in processor-seconds."
            .to_string();
    if theory.homes.len() > HOMES_SHOWN {
        note += &format!(" {} more sites are in --format json.", theory.homes.len() - HOMES_SHOWN);
    }
    Section { title: "Certificate by home", table, note }
}

fn unavoidable(theory: &Theory) -> Option<Section> {
    let found = theory.unavoidable.as_ref()?;
    let mut table = Table::new(["jobs reach other sites by", "makespan at least, s", "formula"]).with_left(2);
    table.push(["push".to_string(), number(found.push_s), "(W + d (S_1 - s_1)) / S_1".to_string()]);
    table.push(["pull".to_string(), number(found.pull_s), "(W + 2 d (S_1 - s_1)) / S_1".to_string()]);
    let note = format!(
        "Assumes that all jobs are queued at the smallest site at time 0, which is {} here.",
        if found.applies {
            "so"
        } else {
            "not so: read it as what such a workload of the same work would cost"
        }
    );
    Some(Section { title: "Unavoidable delay", table, note })
}

fn little(theory: &Theory) -> Option<Section> {
    if theory.little.is_empty() {
        return None;
    }
    let mut table =
        Table::new(["site", "processors", "round trip at most, s", "stolen processors busy at 2 d"]);
    for cap in theory.little.iter().take(HOMES_SHOWN) {
        table.push([
            cap.name.clone(),
            grouped(u64::from(cap.processors)),
            number(cap.round_trip_max_s),
            optional(cap.busy_max),
        ]);
    }
    let note = "tau <= E[size p]/(beta s_i), and busy <= E[size p]/tau. Assumes one outstanding request and one job per \
                answer;\nk requests or batches of b jobs allow k or b times as much. Jobs may be of any home."
        .to_string();
    Some(Section { title: "Little's cap on serial pulling", table, note })
}

fn work_stealing(theory: &Theory) -> Option<Section> {
    let part = theory.work_stealing.as_ref()?;
    let values = &part.values;
    let mut table = Table::new(["", "seconds", "formula"]).with_left(2);
    let seconds = |tasks: f64| number(tasks * part.task_s);
    table.push(["at least".to_string(), seconds(values.area), "W/p".to_string()]);
    table.push([
        "expected about".to_string(),
        seconds(values.estimate),
        format!("W/p + {:.2} lambda log2(W/lambda)", values.constant),
    ]);
    table.push([
        "mean at most".to_string(),
        seconds(values.bound),
        "W/p + 16.12 lambda log2(W/(2 lambda)) + 3 lambda".to_string(),
    ]);
    let note = format!(
        "Speed-up at most {} on any number of processors. Assumes {} unit tasks that start at one site, a random victim, \
         half\nof its tasks per steal (steal:random,amount=half), lambda = d.{}",
        number(values.speedup_max),
        grouped(part.tasks as u64),
        if part.equal_tasks { "" } else { " The tasks are not equal here: the mean is used." }
    );
    Some(Section { title: "Work stealing with latency", table, note })
}
