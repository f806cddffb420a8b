//! How often intervals of few repetitions hold what many give, on the data of the delay study.

use std::collections::BTreeMap;
use std::path::Path;

use analysis::statistics::{Bootstrap, quantile};
use coordinator::sweep::source;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Draws of repetitions, for each cell.
const DRAWS: usize = 20;
/// Cells of the page that are drawn from.
const CELLS: usize = 50;
/// Bootstrap samples: fewer than pages have, as only how often counts.
const RESAMPLES: usize = 600;

/// Values of a series and of `local` in each fortnight, at each point and in three metrics.
fn cells() -> Vec<Vec<(f64, f64)>> {
    let rows =
        source::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/data/grid1.csv.zst")).unwrap();
    let place = |name: &str, names: &[String]| names.iter().position(|other| other == name).unwrap();
    let of_point = ["workload.load", "network.delay"].map(|name| place(name, &rows.parameters));
    let week = place("workload.week", &rows.parameters);
    let mut found = Vec::new();
    for metric in ["steady_wait_mean_s", "steady_awrt_s", "steady_wait_max_s"] {
        let metric = place(metric, &rows.metrics);
        // By point without series and fortnight; then by series; then by fortnight.
        let mut points: BTreeMap<String, BTreeMap<String, BTreeMap<String, f64>>> = BTreeMap::new();
        for row in &rows.rows {
            let text = |place: usize| row.parameters[place].to_string();
            let of_series =
                (0..rows.parameters.len()).filter(|place| !of_point.contains(place) && *place != week);
            let series: Vec<String> = of_series.map(text).filter(|text| !text.is_empty()).collect();
            let (point, series) = (of_point.map(text).join(" "), series.join(", "));
            let value = row.metrics[metric].number().unwrap();
            points.entry(point).or_default().entry(series).or_default().insert(text(week), value);
        }
        for series in points.into_values() {
            let local = series["local"].clone();
            for (name, values) in &series {
                if name != "local" {
                    found.push(values.iter().map(|(week, value)| (*value, local[week])).collect());
                }
            }
        }
    }
    found
}

/// The shares of draws of so many fortnights in which the interval holds the ratio over all of them, in percent: of plain
/// percentiles, and as it is computed.
fn held(cells: &[Vec<(f64, f64)>], repetitions: usize, rng: &mut ChaCha8Rng) -> (f64, f64) {
    let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::default() };
    let ratio = |pairs: &[(f64, f64)]| {
        pairs.iter().map(|pair| pair.0).sum::<f64>() / pairs.iter().map(|pair| pair.1).sum::<f64>()
    };
    let (mut plain, mut expanded, mut all) = (0, 0, 0);
    for cell in cells {
        let truth = ratio(cell);
        for _ in 0..DRAWS {
            let drawn: Vec<(f64, f64)> =
                (0..repetitions).map(|_| cell[rng.random_range(0..cell.len())]).collect();
            let side =
                |of: fn(&(f64, f64)) -> f64| drawn.iter().map(of).enumerate().collect::<BTreeMap<_, _>>();
            let found = bootstrap.paired_ratio(&side(|pair| pair.0), &side(|pair| pair.1)).unwrap();
            expanded += usize::from(found.interval.unwrap().contains(truth));
            let mut ratios: Vec<f64> = (0..RESAMPLES)
                .map(|_| {
                    let again: Vec<(f64, f64)> =
                        (0..repetitions).map(|_| drawn[rng.random_range(0..repetitions)]).collect();
                    ratio(&again)
                })
                .collect();
            ratios.sort_unstable_by(f64::total_cmp);
            let ends = [0.025, 0.975].map(|share| quantile(&ratios, share).unwrap());
            plain += usize::from(ends[0] <= truth && truth <= ends[1]);
            all += 1;
        }
    }
    let share = |count: usize| 100.0 * count as f64 / all as f64;
    (share(plain), share(expanded))
}

#[test]
fn intervals_hold_what_many_repetitions_give_as_often_as_the_page_says() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let all = cells();
    let cells: Vec<Vec<(f64, f64)>> =
        (0..CELLS).map(|_| all[rng.random_range(0..all.len())].clone()).collect();
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/SWEEPS.md")).unwrap();
    let mut table = String::new();
    for repetitions in [8, 12, 22] {
        let (plain, expanded) = held(&cells, repetitions, &mut rng);
        assert!(expanded > plain + 0.5, "{repetitions}: {plain} and {expanded}");
        table += &format!("| {repetitions} | {plain:.0} | {expanded:.0} |\n");
    }
    assert!(page.contains(&table), "docs/SWEEPS.md should say:\n{table}");
}
