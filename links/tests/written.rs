//! What can be written, and what is said of what cannot.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::path::Path;

use links::model::Base;
use links::{Model, ModelError, Written};
use scheduler::{SiteId, Span, Time};

const SITES: [&str; 3] = ["aspen", "birch", "cedar"];

/// Two files.
fn read(path: &Path) -> Result<String, String> {
    match path.to_str().unwrap() {
        "there/slow.toml" => Ok("model = \"world\"\nloss = 0.5\nlinks = [{ loss = 0.1, at = \"1h\" }]\n\
                                 partitions = [{ groups = [[\"aspen\"]], at = \"1h\", until = \"2h\" }]"
            .to_string()),
        "there/rows.toml" => Ok("matrix_file = \"rtt.csv\"\nround_trip = true".to_string()),
        "there/rtt.csv" => Ok("0,2,4\n2,0,6\n4,6,0\n".to_string()),
        "there/loop.toml" => Ok("model = \"slow.toml\"".to_string()),
        "there/typo.toml" => Ok("losss = 0.5".to_string()),
        _ => Err("no such file".to_string()),
    }
}

fn resolved(text: &str) -> Result<Model, ModelError> {
    let mut written: Written = toml::from_str(text).unwrap();
    written.resolve_paths(Path::new("there"));
    written.resolve(&SITES, &read)
}

fn millis(model: &Model, from: u32, to: u32) -> f64 {
    model.base.between(SiteId(from), SiteId(to)).as_micros() as f64 / 1000.0
}

#[test]
fn nothing_written_is_a_free_network() {
    assert_eq!(resolved(""), Ok(Model::ZERO));
    assert!(resolved("").unwrap().is_free());
}

#[test]
fn base_delays_come_as_a_number_a_matrix_a_file_a_name_or_places() {
    assert_eq!(resolved("delay = \"5ms\"").unwrap().base, Base::Constant(Span::from_micros(5000)));
    let inline =
        resolved("matrix = [[\"0s\", \"1s\", \"2s\"], [\"1s\", \"0s\", \"2s\"], [\"3s\", \"3s\", \"0s\"]]");
    assert_eq!(millis(&inline.unwrap(), 3, 1), 3000.0);
    let file = resolved("matrix_file = \"rtt.csv\"\nmatrix_unit = \"s\"").unwrap();
    assert_eq!(millis(&file, 2, 3), 6000.0);
    let beside = resolved("model = \"rows.toml\"").unwrap();
    assert_eq!(millis(&beside, 2, 3), 3.0, "half of a round trip, the file beside the model");
    assert_eq!(millis(&resolved("model = \"world\"").unwrap(), 1, 2), 61.5);
    let plane =
        resolved("coordinates = { kilometres = [[0, 0], [3, 4], [6, 8]], speed = 1, constant = \"1s\" }");
    assert_eq!(millis(&plane.unwrap(), 1, 2), 6000.0);
    let globe =
        resolved("coordinates = { degrees = [[59.33, 18.07], [60.17, 24.94], [59.44, 24.75]] }").unwrap();
    let helsinki = millis(&globe, 1, 2);
    assert!((1.9..2.1).contains(&helsinki), "Stockholm to Helsinki, 396 km: {helsinki} ms");
}

#[test]
fn keys_beside_a_model_win_and_lists_are_added() {
    let model =
        resolved("model = \"slow.toml\"\ndelay = \"1s\"\nlinks = [{ delay = \"9s\", from = [\"birch\"] }]");
    let model = model.unwrap();
    let link = |when, from, to| model.link(Time::from_secs(when), SiteId(from), SiteId(to));
    assert_eq!(link(0, 1, 2).delay, Span::from_secs(1));
    assert_eq!(link(0, 2, 1).delay, Span::from_secs(9));
    assert_eq!(link(0, 1, 2).properties.loss.get(), 0.5);
    assert_eq!(link(3600, 1, 2).properties.loss.get(), 0.1);
    assert_eq!(model.cuts.len(), 1);
    assert!(!model.is_lossless());
}

#[test]
fn the_short_key_for_jitter_is_uniform_and_keeps_the_order() {
    let model = resolved("delay = \"5s\"\njitter = \"10s\"").unwrap();
    assert_eq!(model.largest(), Span::from_secs(15));
    assert!(model.is_lossless());
    assert!(!resolved("jitter = \"10s\"\nreorder = true").unwrap().is_lossless());
    assert_eq!(model.describe(), "constant one-way delay of 5 s, jitter uniform:10s");
}

#[test]
fn what_means_nothing_is_refused_with_its_place_and_what_to_write() {
    let cases = [
        ("delay = \"5\"", "delay: \"5\" is not a time"),
        ("delay = \"5s\"\nmatrix = [[\"0s\"]]", "delay: delay and matrix are both given; keep one"),
        ("matrix = [[\"0s\"]]", "matrix: the matrix must have 3 rows of 3 delays, one per site"),
        (
            "matrix = [[\"1s\", \"0s\", \"0s\"], [\"0s\", \"0s\", \"0s\"], [\"0s\", \"0s\", \"0s\"]]",
            "row 1 has a delay from site 1 to itself",
        ),
        ("matrix_file = \"gone.csv\"", "matrix_file: there/gone.csv cannot be read: no such file"),
        ("delay = \"1s\"\nround_trip = true", "round_trip: there is no matrix"),
        ("model = \"moon\"", "\"there/moon\" is neither one of lan, metro, continental, world nor a file"),
        ("model = \"loop.toml\"", "there/loop.toml: model: \"there/slow.toml\" is none of lan, metro"),
        ("model = \"typo.toml\"", "unknown key losss (did you mean loss?)"),
        ("loss = 1.0", "loss: 1 is not a probability; write a number from 0 to below 1"),
        ("jitter = \"gauss:1s\"", "jitter: unknown distribution \"gauss\""),
        ("bandwidth = \"fast\"", "bandwidth: \"fast\" is not a rate; write 500KB/s"),
        ("coordinates = { degrees = [[1, 2]] }", "coordinates.degrees: there are 1 places for 3 sites"),
        ("coordinates = { degrees = [[1, 2], [95, 0], [0, 0]] }", "[95, 0] is nowhere"),
        ("coordinates = {}", "coordinates: write either degrees"),
        (
            "links = [{ from = [\"oak\"], loss = 0.1 }]",
            "links[1].from: \"oak\" is not a site of the grid, which has aspen",
        ),
        ("links = [{ at = \"1h\" }]", "links[1]: nothing is said of these links"),
        ("partitions = [{ groups = [[\"aspen\"]] }]", "partitions[1]: a partition begins and ends"),
        (
            "partitions = [{ groups = [[\"aspen\"]], at = \"2h\", until = \"1h\" }]",
            "partitions[1].until: 3600 s is not after the beginning at 7200 s",
        ),
        ("partitions = [{ at = \"1h\", until = \"2h\" }]", "partitions[1]: write groups"),
        (
            "partitions = [{ groups = [[\"aspen\", \"birch\", \"cedar\"]], at = \"1h\", until = \"2h\" }]",
            "there is nobody to be cut off from",
        ),
        (
            "partitions = [{ groups = [[\"aspen\"], [\"aspen\"]], at = \"1h\", until = \"2h\" }]",
            "site aspen is in two groups",
        ),
    ];
    for (text, expected) in cases {
        let error = resolved(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}\n{error}");
    }
}
