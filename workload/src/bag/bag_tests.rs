use proptest::prelude::*;

use super::*;

/// After Figure 5.1 of Costa 2007.
const FIGURE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<xpml>
  <qos>
    <deadline value="2007-09-27T22:59:59"/>
    <budget value="789.0"/>
    <queueWaitTime value="750"/>
    <optimisation value="NONE"/>
  </qos>
  <parameter name="X" type="integer" domain="range">
    <range from="1" to="1000" interval="1"/>
  </parameter>
  <parameter name="file" type="string" domain="single">
    <single value="arq1000.txt"/>
  </parameter>
  <task type="main">
    <copy>
      <source location="local" file="user/inputs/tiny.$sarch"/>
      <destination location="node" file="tiny.$sarch"/>
    </copy>
    <copy>
      <source location="local" file="user/inputs/$file"/>
      <destination location="node" file="$file"/>
    </copy>
    <execute location="node">
      <command value="./tiny.$sarch"/>
      <arg value="$file"/>
      <arg value="$X"/>
    </execute>
    <copy>
      <source location="node" file="mc.txt"/>
      <destination location="local" file="mc.txt.$jobname"/>
    </copy>
  </task>
</xpml>
"#;

const TABLE: &str = r#"
command = ["./tiny.$sarch", "$file", "$X"]

[qos]
deadline = "2007-09-27T22:59:59"
budget = 789.0
queue_wait_s = 750
optimisation = "NONE"

[[parameter]]
name = "X"
from = 1
to = 1000

[[parameter]]
name = "file"
value = "arq1000.txt"

[[input]]
file = "user/inputs/tiny.$sarch"

[[input]]
file = "user/inputs/$file"
"#;

fn read(text: &str) -> Result<Bag, String> {
    parse("it", text, &Limits::default()).map_err(|error| error.to_string())
}

#[test]
fn the_published_application_is_a_thousand_jobs() {
    let bag = read(FIGURE).unwrap();
    assert_eq!(bag.tasks(), 1000);
    assert_eq!(bag.wishes.queue_wait, Some(Span::from_secs(750)));
    assert_eq!((bag.wishes.budget, bag.wishes.optimisation.as_deref()), (Some(789.0), Some("NONE")));
    let last = bag.task(999).unwrap();
    assert_eq!(last.command, ["./tiny.$sarch", "arq1000.txt", "1000"]);
    assert_eq!(last.inputs[1].name, "user/inputs/arq1000.txt");
    assert_eq!((last.inputs.len(), bag.task(1000)), (2, None));
    assert_eq!(read(TABLE).unwrap(), bag, "TOML says the same");
    let more = FIGURE
        .replace("<qos>", "<qos><strategy value=\"x\"/>")
        .replace("</task>", "<substitute/></task><substitute/>");
    assert_eq!(read(&more).unwrap(), Bag { skipped: vec!["strategy".into(), "substitute".into()], ..bag });
}

#[test]
fn parameters_are_combined_and_sizes_are_kept() {
    let bag = read(
        "command = [\"$a-$b.$a_b\"]\n[[parameter]]\nname = \"a\"\nfrom = -1\nto = 2\nstep = 2\n\
         [[parameter]]\nname = \"b\"\nfrom = 5\nto = 7\n[[input]]\nfile = \"in.$b\"\nbytes = 60_000_000\n",
    )
    .unwrap();
    let all: Vec<String> = (0..bag.tasks()).map(|task| bag.task(task).unwrap().command[0].clone()).collect();
    assert_eq!(all, ["-1-5.$a_b", "-1-6.$a_b", "-1-7.$a_b", "1-5.$a_b", "1-6.$a_b", "1-7.$a_b"]);
    assert_eq!(
        bag.task(1).unwrap().inputs,
        [InputFile { name: "in.6".to_string(), bytes: Some(60_000_000) }]
    );
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let figure = |old: &str, new: &str| FIGURE.replacen(old, new, 1);
    for (text, said) in [
        (figure("to=\"1000\"", "to=\"0\""), "line 10: parameter X has no values"),
        (figure("to=\"1000\"", "to=\"many\""), "line 10: to is `many`"),
        (figure("interval=\"1\"", "interval=\"0\""), "line 10: parameter X has no values"),
        (figure("domain=\"single\"", "domain=\"set\""), "line 12: parameter file has no <set>"),
        (figure("name=\"file\" ", ""), "line 12: <parameter> has no name"),
        (figure("\"file\" type", "\"X\" type"), "parameter X is there twice"),
        (figure("NONE", "FAST"), "line 7: optimisation FAST is none"),
        (figure("value=\"750\"", "value=\"-1\""), "line 6: value is `-1`"),
        (figure("</qos>", "</qas>"), "line 8: not XML"),
        ("<html/>".to_string(), "line 1: <html> is no application"),
        ("<credentials/>".to_string(), "credentials are not read: sites stand in [grid]"),
        (TABLE.replace("to = 1000", "too = 1000"), "line 13"),
        (TABLE.replace("to = 1000", "to = -1000"), "line 10: parameter X has no values"),
        (TABLE.replace("to = 1000\n", ""), "line 10: parameter X is neither one nor a range"),
        (TABLE.replace("from = 1", "from = \"1\""), "line 12"),
        (TABLE.replace("to = 1000", "to = 9_000_000_000_000_000_000"), "rows"),
    ] {
        let error = read(&text).unwrap_err();
        assert!(error.contains(said), "{said:?} is not in: {error}");
    }
}

#[test]
fn lengths_are_those_that_were_seen_and_keep_the_order_of_photons() {
    let seconds = |model: LengthModel, photons| model.length(photons).as_secs_f64();
    assert_eq!(seconds(LengthModel::Uniform, PHOTONS_MIN), 180.0);
    assert_eq!(seconds(LengthModel::Uniform, PHOTONS_MAX), 480.0);
    assert_eq!(seconds(LengthModel::Linear, PHOTONS_MAX), 481.0);
    assert_eq!(seconds(LengthModel::Affine, PHOTONS_MAX), 481.0);
    let bag = read(FIGURE).unwrap();
    let trace = bag.trace(LengthModel::Uniform, 7);
    assert_eq!(trace.records.len(), 1000);
    assert_eq!(trace, bag.trace(LengthModel::Uniform, 7), "the same inputs for all that compare");
    assert_ne!(trace.records, bag.trace(LengthModel::Uniform, 8).records);
    let mean = trace.records.iter().map(|record| record.run_time.as_secs_f64()).sum::<f64>() / 1000.0;
    // Five deviations of the mean of 1,000 uniform times.
    assert!((mean - 330.0).abs() < 5.0 * 300.0 / 12_f64.sqrt() / 1000_f64.sqrt(), "{mean}");
    for (_, model) in LengthModel::ALL {
        let other = bag.trace(model, 7);
        for (pair, others) in trace.records.windows(2).zip(other.records.windows(2)) {
            let order = pair[0].run_time.cmp(&pair[1].run_time);
            assert_eq!(order, others[0].run_time.cmp(&others[1].run_time), "{model:?}");
        }
    }
    let prepared = crate::prepare(&trace, &Default::default(), 8).unwrap();
    assert!(prepared.jobs.iter().all(|job| job.spec.processors == 1));
    assert_eq!(prepared.jobs.len(), 1000);
}

proptest! {
    #[test]
    fn ranges_have_all_their_values(from in -50_i64..50, length in 0_i64..60, step in 1_i64..9) {
        let text = format!(
            "command = [\"$x\"]\n[[parameter]]\nname = \"x\"\nfrom = {from}\nto = {}\nstep = {step}\n", from + length
        );
        let bag = read(&text).unwrap();
        let found: Vec<String> = (0..bag.tasks()).map(|task| bag.task(task).unwrap().command[0].clone()).collect();
        let expected: Vec<String> =
            (from..=from + length).step_by(step as usize).map(|value| value.to_string()).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,80}", cut in 0_usize..1500, other in "[<>/\"=a\\n]{0,3}") {
        drop(read(&text));
        // A file that is cut and damaged.
        let cut = (0..=cut.min(FIGURE.len())).rev().find(|&place| FIGURE.is_char_boundary(place)).unwrap();
        drop(read(&format!("{}{other}{}", &FIGURE[..cut], &FIGURE[cut..])));
        drop(read(&FIGURE[..cut]));
        drop(read(&TABLE[..cut.min(TABLE.len())]));
    }
}

/// Each is compared with all others.
#[test]
fn an_element_has_so_many_attributes_and_no_more() {
    let file = |count: usize| {
        let attributes: String = (0..count).map(|number| format!(" a{number} = \"1\"")).collect();
        FIGURE.replace("<qos>", &format!("<qos{attributes}>"))
    };
    assert!(parse("bag", &file(256), &Limits::default()).is_ok());
    for count in [257, 500_000] {
        let error = parse("bag", &file(count), &Limits::default()).unwrap_err().to_string();
        assert!(error.contains("line 3: an element has more than 256 attributes"), "{error}");
    }
}
