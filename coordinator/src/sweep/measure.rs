//! One run of a sweep: simulate, measure, and put every number under the name of its column.
//!
//! Columns are named as in `metrics.json`; parts of it other than `metrics` get a prefix. Of single sites there is what users got and
//! how many jobs were executed, on grids with few.

use std::collections::BTreeMap;

use analysis::metrics::SiteMetrics;
use analysis::outcome::Traffic;
use analysis::{
    Attribution, Bounds, Deficiency, Hindrance, Metrics, Migrations, Outcome, Setting, Steady, WaitCauses,
    Waits, theory,
};
use experiments::drive::{self, simulate};
use experiments::experiment::Experiment;
use experiments::experiment::jobs::Jobs;
use experiments::interrupt::Interrupt;
use outputs::sweep::Cell;
use outputs::{Overloaded, Status};
use scheduler::{EventKind, Grid, SiteId, Span, TimedJob};
use serde::Serialize;
use serde_json::Value;
use simulator::Checks;

use super::database::Measures;

/// A workload and what depends on it alone.
pub struct Prepared {
    /// All jobs of the workload, in queue order.
    pub jobs: Jobs,
    /// Lower bounds on the makespan of any schedule of them.
    pub bounds: Bounds,
    /// p_w: their work over their widths, the mean run time weighted by width, in seconds.
    pub run_time_by_size_s: f64,
    /// The least p_w of the jobs of home k and above, over all k, in seconds.
    pub run_time_by_size_min_s: f64,
}

impl Prepared {
    /// Computes what depends on the jobs and the grid alone.
    pub fn new(grid: &Grid, jobs: Jobs) -> Prepared {
        let bounds = Bounds::of_workload(grid, &jobs.jobs);
        let mut by_home = vec![(0.0, 0.0); grid.len()];
        for job in &jobs.jobs {
            if let Some(rank) = grid.home_rank(job.spec.processors) {
                by_home[rank].0 += job.run_time.as_secs_f64() * width(job);
                by_home[rank].1 += width(job);
            }
        }
        let (mut work, mut sizes, mut least) = (0.0, 0.0, f64::INFINITY);
        for (work_here, sizes_here) in by_home.into_iter().rev() {
            (work, sizes) = (work + work_here, sizes + sizes_here);
            if sizes > 0.0 {
                least = least.min(work / sizes);
            }
        }
        let run_time_by_size_s = if sizes > 0.0 { work / sizes } else { 0.0 };
        let run_time_by_size_min_s = if least.is_finite() { least } else { 0.0 };
        Prepared { jobs, bounds, run_time_by_size_s, run_time_by_size_min_s }
    }
}

fn width(job: &TimedJob) -> f64 {
    f64::from(job.spec.processors)
}

/// Simulates and measures.
///
/// # Errors
/// In words, if the run violated a check or did not end.
pub fn measure(experiment: &Experiment, prepared: &Prepared) -> Result<Measures, String> {
    let jobs = &prepared.jobs;
    let mut builder = drive::builder(experiment, jobs);
    let arriving = jobs.arriving(experiment);
    let mut deficiency = Deficiency::new(&experiment.grid, &experiment.strategy.strategy, &arriving);
    let mut decisions = drive::decisions(experiment, &arriving);
    let mut waits = Waits::new(&experiment.grid, &experiment.strategy.strategy, &arriving);
    let mut fell_back = None;
    let ended = simulate::simulate(experiment, jobs, Checks::Cheap, &Interrupt::default(), &mut |event| {
        if let EventKind::FellBack { cause } = event.kind {
            fell_back.get_or_insert((event.site, cause));
        }
        builder.observe(event);
        deficiency.observe(event);
        decisions.observe(event);
        waits.observe(event);
    })
    .map_err(|error| format!("{error:#}"))?;
    if let Some(violation) = ended.violation {
        return Err(violation);
    }
    if let Status::Partial(reason) = ended.status {
        return Err(reason);
    }
    if let Some((site, cause)) = fell_back {
        let name = &experiment.grid.site(site).name;
        return Err(format!(
            "the external strategy of {name} failed: {}; its fallback decided (stealgrid simulate with these settings shows \
             what its program said)",
            cause.name()
        ));
    }
    let outcome = builder.finish();
    if outcome.contradictions.total() > 0 {
        return Err(format!("events contradict each other: {:?}", outcome.contradictions));
    }
    if let Some(wrong) = analysis::sharing::audit::audit(&outcome).first() {
        return Err(format!("an execution on shared nodes is not as the model says: {wrong}"));
    }
    let bounds = &prepared.bounds;
    let metrics = Metrics::of(&outcome, bounds);
    let messages = experiment.messages();
    let setting = Setting {
        strategy: experiment.strategy,
        local: experiment.local,
        messages: messages.hindered_if(outcome.faults.disturbed(), Hindrance::Absence),
        local_users: jobs.past_broker(experiment).is_some(),
    };
    let comparisons = theory::compare(&outcome, bounds, setting);
    let mut measures = Measures::new();
    put(&mut measures, "", &metrics);
    put_sites(&mut measures, &metrics.sites);
    put_homes(&mut measures, &outcome);
    put_steady(&mut measures, &Steady::of(&outcome, experiment.steady));
    for (name, bound) in [
        ("bound_time_s", bounds.time),
        ("bound_area_s", bounds.area),
        ("bound_count_s", bounds.count),
        ("bound_thesis_s", bounds.thesis),
        ("bound_proof_s", bounds.proof),
        ("bound_best_s", bounds.best),
    ] {
        measures.insert(name.to_string(), seconds(bound));
    }
    let preparation = &jobs.preparation;
    for (name, count) in [
        ("jobs_dropped", preparation.jobs_dropped),
        ("jobs_changed", preparation.jobs_changed),
        ("jobs_cut", preparation.jobs_cut),
    ] {
        measures.insert(name.to_string(), Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX)));
    }
    measures.insert("work_cut_share".to_string(), Cell::Real(preparation.work_cut_share));
    measures.insert("work_dropped_share".to_string(), Cell::Real(preparation.work_dropped_share));
    measures.insert("run_time_by_size_s".to_string(), Cell::Real(prepared.run_time_by_size_s));
    measures.insert("run_time_by_size_min_s".to_string(), Cell::Real(prepared.run_time_by_size_min_s));
    measures.insert("delay_s".to_string(), seconds(experiment.network.largest()));
    let (sites, processors) =
        (experiment.grid.machines().count() as i64, experiment.grid.processors() as i64);
    measures.insert("sites".to_string(), Cell::Integer(sites));
    measures.insert("processors".to_string(), Cell::Integer(processors));
    measures.insert("free_messages".to_string(), Cell::Integer(i64::from(messages.are_free())));
    if let Some(ratio) = comparisons.first() {
        measures.insert("ceiling".to_string(), ratio.limit.map_or(Cell::Null, Cell::Real));
    }
    let violated = theory::overall(&comparisons) == analysis::Verdict::Violated;
    measures.insert("violated".to_string(), Cell::Integer(i64::from(violated)));
    // Of a run with exchange it is not known, as jobs are elsewhere than where they arrived.
    let exchanges = experiment.strategy.strategy.nature().talks;
    let overloaded = Cell::Integer(i64::from(!exchanges && Overloaded::of(&outcome).is_some()));
    measures.insert("overloaded".to_string(), if exchanges { Cell::Null } else { overloaded });
    put_traffic(&mut measures, &outcome.traffic);
    if let Some(cost) = decisions.finish() {
        put(&mut measures, "decisions_", &cost);
        for (name, spread) in [("view_age", &cost.view_age_s), ("stale", &cost.stale_s)] {
            measures.insert(format!("decisions_{name}_mean_s"), Cell::Real(spread.mean));
            measures.insert(format!("decisions_{name}_p90_s"), Cell::Real(spread.p90));
        }
    }
    if let Some(attribution) = deficiency.finish() {
        put_attribution(&mut measures, &experiment.grid, &attribution);
    }
    if let Some(waits) = waits.finish() {
        if !waits.holds {
            return Err(format!("the causes of waits do not add up to the waits: {:?}", waits.exact()));
        }
        put_waits(&mut measures, &waits);
    }
    Ok(measures)
}

/// Grids with more sites than this have no columns for single sites.
const SITES_MAX: usize = 16;

/// The name of a site as it stands in the name of a column.
fn in_column(site: &str) -> String {
    site.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// How many jobs each site executed, of all.
fn put_sites(measures: &mut Measures, sites: &[SiteMetrics]) {
    if sites.len() > SITES_MAX {
        return;
    }
    for site in sites {
        let shares = [site.own_a, site.own_b, site.stolen_a, site.stolen_b];
        let jobs: u64 = shares.iter().map(|share| share.jobs).sum();
        let column = format!("site_{}_jobs", in_column(&site.name));
        measures.insert(column, Cell::Integer(i64::try_from(jobs).unwrap_or(i64::MAX)));
    }
}

/// How many jobs each site is home to, the smallest wide enough; which share of these other sites executed, and how many each
/// executed for others (tables 8 and 9 of Quezada Pina 2012).
fn put_homes(measures: &mut Measures, outcome: &Outcome) {
    if outcome.grid.machines().count() > SITES_MAX {
        return;
    }
    let migrations = Migrations::of(outcome);
    let mut steals: BTreeMap<SiteId, u64> = BTreeMap::new();
    for stolen in migrations.stolen() {
        *steals.entry(stolen.site).or_default() += stolen.jobs;
    }
    let whole = |count: u64| Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX));
    for site in outcome.grid.machines() {
        let (all, kept) = (migrations.home(site.id).jobs, migrations.cell(site.id, site.id).jobs);
        let share = if all > 0 { Cell::Real((all - kept) as f64 / all as f64) } else { Cell::Null };
        let name = in_column(&site.name);
        let mut put = |what: &str, cell: Cell| measures.insert(format!("site_{name}_{what}"), cell);
        put("home_jobs", whole(all));
        put("stolen_share", share);
        put("steals", whole(steals.get(&site.id).copied().unwrap_or(0)));
    }
    // These are home to no site, and would be missing from a sum over sites.
    if outcome.grid.spreads() {
        measures.insert("jobs_without_home".to_string(), whole(migrations.without_home().jobs));
    }
}

/// The jobs between warm-up and cool-down, and what users of each site got of a grid with few.
fn put_steady(measures: &mut Measures, steady: &Steady) {
    put(measures, "steady_", steady);
    if steady.sites.len() > SITES_MAX {
        return;
    }
    for site in &steady.sites {
        let name = in_column(&site.name);
        for (what, value) in
            [("wait_mean_s", site.wait_mean_s), ("bounded_slowdown_mean", site.bounded_slowdown_mean)]
        {
            measures.insert(format!("steady_site_{name}_{what}"), value.map_or(Cell::Null, Cell::Real));
        }
    }
}

/// The deficiency as the time that it may add to the makespan, V_k / (beta S_k), in whole and by cause.
fn put_attribution(measures: &mut Measures, grid: &Grid, attribution: &Attribution) {
    let processors = grid.suffix_processors(grid.rank(attribution.k)) as f64;
    let counted_on = processors * f64::from(attribution.beta_percent) / 100.0;
    let mut put = |name: &str, deficiency: f64| {
        measures.insert(format!("deficiency_{name}_s"), Cell::Real(deficiency / counted_on));
    };
    put("total", attribution.total);
    for (place, (cause, deficiency)) in attribution.causes().into_iter().enumerate() {
        // Words of a page, and columns of a database.
        let cause = &cause.replace(' ', "_");
        put(cause, deficiency);
        put(&format!("{cause}_least"), attribution.least[place]);
        put(&format!("{cause}_greatest"), attribution.greatest[place]);
    }
    let holds = i64::from(attribution.certificate.holds);
    measures.insert("certificate_holds".to_string(), Cell::Integer(holds));
}

/// The mean wait by cause, in seconds per job; with the least and the greatest that it is in any order of causes.
fn put_waits(measures: &mut Measures, waits: &WaitCauses) {
    let jobs = waits.jobs.max(1) as f64;
    for part in &waits.causes {
        let name = part.cause.name();
        measures.insert(format!("wait_{name}_s"), Cell::Real(part.wait_s / jobs));
        measures.insert(format!("wait_{name}_least_s"), Cell::Real(part.least_s / jobs));
        measures.insert(format!("wait_{name}_greatest_s"), Cell::Real(part.greatest_s / jobs));
    }
}

fn seconds(span: Span) -> Cell {
    Cell::Real(span.as_secs_f64())
}

/// Every plain number of a structure, under its field's name behind a prefix.
fn put(measures: &mut Measures, prefix: &str, structure: &impl Serialize) {
    let value = serde_json::to_value(structure).expect("numbers become JSON");
    let Value::Object(fields) = value else { return };
    for (name, value) in fields {
        let cell = match &value {
            Value::Number(number) => match number.as_i64() {
                Some(whole) if !number.is_f64() => Cell::Integer(whole),
                _ => number.as_f64().map_or(Cell::Null, Cell::Real),
            },
            Value::Bool(value) => Cell::Integer(i64::from(*value)),
            Value::Null => Cell::Null,
            Value::String(_) | Value::Array(_) | Value::Object(_) => continue,
        };
        measures.insert(format!("{prefix}{name}"), cell);
    }
}

/// What `metrics.json` has under `requests`.
fn put_traffic(measures: &mut Measures, traffic: &Traffic) {
    for (name, count) in [
        ("answers", traffic.answers),
        ("empty_answers", traffic.empty_answers),
        ("grants", traffic.grants),
        ("accepts", traffic.accepts),
        ("returns", traffic.returns),
    ] {
        measures.insert(name.to_string(), Cell::Integer(i64::try_from(count).unwrap_or(i64::MAX)));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use experiments::experiment::file::Written;
    use experiments::experiment::jobs;

    use super::*;

    #[test]
    fn each_job_is_counted_at_the_site_that_executed_it() {
        let text = "[grid]\nsites = [{ name = \"a-b\", processors = 4 }, { name = \"c\", processors = 64 }]\n\
            [workload]\ntrace = \"built-in:seven-sites\"\ncount = 200\ntoo_wide = \"drop\"\n[strategy]\nname = ";
        let measured = |strategy: &str| {
            let written = Written::parse(&format!("{text}{strategy:?}\n"), Path::new("x.toml")).unwrap();
            let experiment = Experiment::resolve(&written).unwrap();
            let jobs = jobs::read(&experiment).unwrap();
            let measures = measure(&experiment, &Prepared::new(&experiment.grid, jobs)).unwrap();
            let of = |column: &str| match measures[column] {
                Cell::Integer(count) => count,
                ref other => panic!("{column} is {other:?}"),
            };
            [of("site_a_b_jobs"), of("site_c_jobs"), of("jobs")]
        };
        // Jobs of more than 4 processors run at the larger site alone, whoever decides.
        for strategy in ["local", "steal:random", "opaque:round-robin"] {
            let [narrow, wide, all] = measured(strategy);
            assert_eq!(narrow + wide, all, "{strategy}");
            assert!(narrow > 0 && wide > 0, "{strategy}: {narrow} and {wide}");
        }
        assert_ne!(measured("local"), measured("steal:random"));
    }

    /// Jobs wider than every site are home to none, and are counted all the same; why they waited has a column of its own.
    #[test]
    fn jobs_that_start_in_parts_are_in_the_columns() {
        let measured = |strategy: &str| {
            let text = format!(
                "[grid]\nsizes = [48, 64]\n[workload]\ntrace = \"built-in:seven-sites\"\ncount = 400\ntoo_wide = \"drop\"\n\
                 [strategy]\nname = {strategy:?}\n"
            );
            let written = Written::parse(&text, Path::new("x.toml")).unwrap();
            let experiment = Experiment::resolve(&written).unwrap();
            let jobs = jobs::read(&experiment).unwrap();
            measure(&experiment, &Prepared::new(&experiment.grid, jobs)).unwrap()
        };
        let spread = measured("ideal/broker:mcisne,coallocate=dp");
        let of = |column: &str| spread[column].number().unwrap();
        assert!(of("jobs_without_home") > 0.0 && of("wait_in_parts_s") >= 0.0);
        let at_home = of("site_site1_home_jobs") + of("site_site2_home_jobs");
        assert_eq!(at_home + of("jobs_without_home"), of("jobs"));
        let whole = measured("ideal/broker:mcisne");
        assert!(!whole.contains_key("jobs_without_home") && !whole.contains_key("wait_in_parts_s"));
    }

    /// Charts of a page find columns by these names.
    #[test]
    fn columns_are_named_in_one_word_and_each_part_of_the_deficiency_has_one() {
        let text = "[grid]\nsizes = [4, 64]\n[workload]\ntrace = \"built-in:seven-sites\"\ncount = 200\ntoo_wide = \"drop\"\n\
            [strategy]\nname = \"st:50\"\n[network]\ndelay = \"30s\"\n";
        let written = Written::parse(text, Path::new("x.toml")).unwrap();
        let experiment = Experiment::resolve(&written).unwrap();
        let jobs = jobs::read(&experiment).unwrap();
        let measures = measure(&experiment, &Prepared::new(&experiment.grid, jobs)).unwrap();
        let odd: Vec<&String> = measures.keys().filter(|column| column.contains(' ')).collect();
        assert!(odd.is_empty(), "{odd:?}");
        for cause in ["drain", "foreign", "in_transit", "asked", "blind", "lost"] {
            for column in [format!("deficiency_{cause}_s"), format!("deficiency_{cause}_least_s")] {
                assert!(measures.contains_key(&column), "{column}");
            }
        }
    }
}
