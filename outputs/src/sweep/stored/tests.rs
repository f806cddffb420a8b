use std::fs::File;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;

fn rows() -> Rows {
    let text = |text: &str| Cell::Text(text.to_string());
    let row = |position: i64, delay: &str, week: i64, wait: f64| Row {
        position,
        done: true,
        error: None,
        wall_s: 0.123_456,
        parameters: vec![text(delay), Cell::Integer(week), text("[1,2]")],
        metrics: vec![Cell::Integer(1000), Cell::Real(wait), Cell::Real(wait / 3.0), Cell::Null],
    };
    let mut rows = vec![row(1, "0s", 1, 4.0), row(2, "1m", 1, 12_345.678_9), row(7, "1m, \"x\"", 2, -1e-9)];
    rows[1].done = false;
    rows[1].error = Some("it stopped,\nand said \"why\"".to_string());
    rows[2].metrics[3] = text("-");
    rows[0].metrics[3] = Cell::Integer(3);
    Rows {
        name: "small".to_string(),
        text: "# a file\n[parameters]\n\"network.delay\" = [\"0s\"]\n".to_string(),
        version: "0.1.0".to_string(),
        command: "stealgrid sweep small.toml".to_string(),
        commit: Some("4f2c".to_string()),
        planned: Some(9),
        digits: Some(6),
        parameters: ["network.delay", "workload.week", "grid.sizes"].map(str::to_string).to_vec(),
        metrics: ["jobs", "wait_mean_s", "third", "odd"].map(str::to_string).to_vec(),
        rows,
    }
}

fn round_trip(name: &str, rows: &Rows, digits: usize) -> Rows {
    let path = file(name);
    write(&path, rows, digits).unwrap();
    read(&path, &Limits::default()).unwrap()
}

fn file(name: &str) -> PathBuf {
    crate::fixtures::folder(name).join("rows.csv.zst")
}

/// A stored file with its text changed.
fn changed(name: &str, change: impl Fn(String) -> String) -> (PathBuf, Result<Rows, StoredError>) {
    let path = file(name);
    write(&path, &rows(), 6).unwrap();
    let text = String::from_utf8(zstd::decode_all(File::open(&path).unwrap()).unwrap()).unwrap();
    let text = change(text);
    std::fs::write(&path, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    let read = read(&path, &Limits::default());
    (path, read)
}

#[test]
fn what_is_stored_is_read_again() {
    let mut expected = rows();
    for row in &mut expected.rows {
        row.wall_s = 0.123;
        for cell in &mut row.metrics {
            if let Cell::Real(value) = cell {
                *value = rounded(*value, 6);
            }
        }
    }

    let read = round_trip("stored-read", &rows(), 6);

    assert_eq!(read, expected);
    assert_eq!(read.rows[1].metrics[1], Cell::Real(12_345.7));
    assert_eq!(round_trip("stored-again", &read, 6), read, "rounding twice changes nothing");
}

#[test]
fn the_head_says_what_it_is_and_constants_take_no_room() {
    let path = file("stored-head");
    write(&path, &rows(), 4).unwrap();
    assert!(is_stored(&path).unwrap());

    let text = String::from_utf8(zstd::decode_all(File::open(&path).unwrap()).unwrap()).unwrap();

    assert!(text.starts_with("# stealgrid sweep, format 1\n# name \"small\"\n# commit \"4f2c\"\n"), "{text}");
    assert!(
        text.contains("# constants {\"grid.sizes\":\"[1,2]\",\"jobs\":\"1000\",\"wall_s\":\"0.123\"}\n"),
        "{text}"
    );
    assert!(text.contains("\nposition,error,network.delay,workload.week,wait_mean_s,third,odd\n"), "{text}");
    assert!(text.contains("\n1,,0s,1,4.0,1.333,3\n"), "{text}");
}

#[test]
fn a_sweep_without_rows_or_columns_is_one() {
    let mut none = rows();
    none.rows.clear();
    assert_eq!(round_trip("stored-none", &none, 6), none);
    let mut bare = rows();
    bare.parameters.clear();
    bare.metrics.clear();
    for row in &mut bare.rows {
        (row.parameters, row.metrics, row.wall_s) = (Vec::new(), Vec::new(), 1.0);
    }
    assert_eq!(round_trip("stored-bare", &bare, 6), bare);
}

#[test]
fn other_and_damaged_files_are_refused_with_their_place() {
    let refused = |name: &str, change: &dyn Fn(String) -> String, expected: &str| {
        let (path, read) = changed(name, change);
        let error = read.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(error.starts_with(&format!("read {}: line ", path.display())), "{error}");
        assert!(error.ends_with("or name another file"), "{error}");
    };
    refused("stored-other", &|_| "a,b\n1,2\n".to_string(), "line 1: it does not begin with");
    refused("stored-format", &|text| text.replace("format 1", "format 9"), "line 1: it does not begin with");
    refused(
        "stored-number",
        &|text| text.replace(",4.0,", ",4.O,"),
        "line 15: \"4.O\" is no value of the column wait_mean_s",
    );
    refused(
        "stored-short",
        &|text| text.replace("1,,0s,1,4.0,", "1,,0s,4.0,"),
        "line 15: it has 6 cells of 7",
    );
    refused("stored-key", &|text| text.replace("# planned 9\n", ""), "the head has no key \"planned\"");
    refused(
        "stored-json",
        &|text| text.replace("# planned 9", "# planned nine"),
        "line 6: planned: expected",
    );
    refused(
        "stored-column",
        &|text| text.replace("third,odd\n", "thrid,odd\n"),
        "the column third is not there",
    );
    refused(
        "stored-cut",
        &|text| text[..text.rfind("\n7,").unwrap() + 1].to_string(),
        "there are 2 rows, and the head says 3",
    );
    refused("stored-position", &|text| text.replace("\n1,,0s", "\n,,0s"), "line 15: the row has no position");

    let path = file("stored-truncated");
    write(&path, &rows(), 6).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    assert!(read(&path, &Limits::default()).is_err());
}

#[test]
fn limits_hold() {
    let path = file("stored-limits");
    write(&path, &rows(), 6).unwrap();
    let with = |change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        read(&path, &limits).unwrap_err().to_string()
    };

    assert!(with(|limits| limits.rows = 2).contains("STEALGRID_MAX_ROWS"));
    assert!(with(|limits| limits.header = 100).contains("STEALGRID_MAX"));
    assert!(with(|limits| limits.cells = 100).contains("line 15: it takes more than 100 bytes"));
    assert!(with(|limits| limits.document = 400).contains("STEALGRID_MAX_DOCUMENT"));
}

#[test]
fn digits_are_significant_ones() {
    assert_eq!(rounded(1234.567, 6), 1234.57);
    assert_eq!(rounded(-0.000_123_456, 2), -0.000_12);
    assert_eq!(rounded(0.0, 3), 0.0);
    assert!(rounded(f64::NAN, 3).is_nan());
}

fn cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        Just(Cell::Null),
        any::<i64>().prop_map(Cell::Integer),
        (-1e300..1e300).prop_map(|value: f64| Cell::Real(rounded(value, 6))),
        ".{0,12}".prop_map(Cell::Text),
    ]
}

proptest! {
    // Compressing well takes long, however little there is.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_cells_hold_comes_back(cells in prop::collection::vec((cell(), cell()), 1..12)) {
        let mut any = rows();
        any.parameters = vec!["p".to_string()];
        any.metrics = vec!["m".to_string()];
        any.rows = cells
            .into_iter()
            .zip(1..)
            .map(|((parameter, metric), position)| Row {
                position,
                done: true,
                error: None,
                wall_s: 1.0,
                parameters: vec![parameter],
                metrics: vec![metric],
            })
            .collect();

        prop_assert_eq!(round_trip("stored-any", &any, 6), any);
    }
}
