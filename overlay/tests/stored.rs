//! What `docs/SCALE.md` says of ten thousand peers: its tables are those of the data beside it, and these are near what is
//! published, or said not to be.

use std::collections::BTreeMap;

use crate::measure::shape;
use crate::world::{Config, World};

const DATA: &str = include_str!("../../docs/data/overlay.csv");
const PAGE: &str = include_str!("../../docs/SCALE.md");

/// Values of each seed, by what was measured, when, and its name.
type Data = BTreeMap<(&'static str, i64, &'static str), Vec<f64>>;

fn data() -> Data {
    assert!(DATA.starts_with("# commit "), "the data do not say where they come from");
    let mut data = Data::new();
    for line in DATA.lines().filter(|line| !line.starts_with('#')).skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [what, _, at, name, value] = fields[..] else { panic!("{line}") };
        data.entry((what, at.parse().unwrap(), name)).or_default().push(value.parse().unwrap());
    }
    data
}

fn mean(data: &Data, what: &'static str, at: i64, name: &'static str) -> f64 {
    let values = &data[&(what, at, name)];
    assert_eq!(values.len(), 3);
    values.iter().sum::<f64>() / values.len() as f64
}

/// DSN 2007, table 1: within 5 %, but for the clustering.
#[test]
fn ten_thousand_peers_are_as_near_each_other_as_published() {
    let data = data();
    let at = |name| mean(&data, "shape", 50, name);
    for (measured, published) in [(at("path_mean"), 6.38542), (at("hops_max"), 9.0)] {
        assert!((measured / published - 1.0).abs() < 0.05, "{measured} for {published}");
    }
    // What is published is twice that.
    assert!((0.000_3..0.000_6).contains(&at("clustering")), "{}", at("clustering"));
    // SRDS 2007, table 1: payloads, and all others.
    let of_one = |name| mean(&data, "tree_of_one", 3, name);
    assert!((of_one("payloads") - 9_999.0).abs() < 0.5);
    assert!((of_one("announcements") / 29_987.33 - 1.0).abs() < 0.05, "{}", of_one("announcements"));
}

#[test]
fn the_tables_of_the_page_are_those_of_its_data() {
    let rows = rows(&data());
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert!(PAGE.contains(&row), "docs/SCALE.md has no row: {row}");
    }
}

fn rows(data: &Data) -> Vec<String> {
    let mut rows = Vec::new();
    for cycle in [0, 1, 10, 50] {
        let at = |name| mean(data, "shape", cycle, name);
        let [clustering, path, hops, most] = ["clustering", "path_mean", "hops_mean", "hops_max"].map(at);
        let full = at("degree_5") / 100.0;
        rows.push(format!("| {cycle} | {clustering:.5} | {path:.3} | {hops:.2} | {most:.1} | {full:.2} % |"));
    }
    let percent = |what, at, name| 100.0 * mean(data, what, at, name);
    let [most, nearly_all] = ["failed_90", "failed_95"].map(|gone| percent(gone, 0, "floods_1000_noticed"));
    rows.push(format!("reaches {most:.2} % of the others, when 95 % are, {nearly_all:.2} %"));
    let (sent, together) = (percent("failed_90", 0, "floods_1000"), percent("failed_90", 1, "together"));
    rows.push(format!("{sent:.2} % are reached; after one round {together:.2} % are together again"));
    let [payloads, announced, hops] =
        ["payloads", "announcements", "hops"].map(|name| mean(data, "tree_of_one", 3, name));
    let thousands = |count: f64| format!("{:.0},{:03.0}", (count / 1_000.0).floor(), count % 1_000.0);
    rows.push(format!(
        "{} payloads and {} announcements for each from the third on (published: 9,999 and 29,987), {hops:.1} hops",
        thousands(payloads),
        thousands(announced)
    ));
    let of_many = mean(data, "tree_of_many", 30, "hops");
    let [failed, optimized] =
        ["tree_after_failures", "optimized_after_failures"].map(|tree| mean(data, tree, 60, "hops"));
    rows.push(format!("{of_many:.1} from many; after a tenth is gone {failed:.1}, or {optimized:.1} with"));
    rows
}

/// That the data are those of this program: the shape of one seed comes out again, to the last digit.
#[test]
#[ignore = "ten thousand peers and fifty rounds take some twenty seconds"]
fn the_stored_shape_of_ten_thousand_peers_comes_out_again() {
    let mut world = World::of_one_contact(Config::of_cycles(1), 10_000);
    world.rounds(50);
    let shape = shape(&world, 500);
    let data = data();
    let stored = |name| format!("{:.6}", data[&("shape", 50, name)][0]);
    assert_eq!(format!("{:.6}", shape.clustering), stored("clustering"));
    assert_eq!(format!("{:.6}", shape.path_mean), stored("path_mean"));
    assert_eq!(format!("{:.6}", shape.hops_mean), stored("hops_mean"));
    assert_eq!(format!("{:.6}", f64::from(shape.hops_max)), stored("hops_max"));
    assert_eq!(format!("{:.6}", shape.together), stored("together"));
    assert_eq!(format!("{:.6}", shape.degrees[5] as f64), stored("degree_5"));
}
