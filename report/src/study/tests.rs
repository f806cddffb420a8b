use outputs::sweep::{Cell, Row};

use super::*;

const DELAYS: [&str; 4] = ["0s", "10s", "1m", "10m"];
/// Name, local scheduler and window; what is empty was not given.
const STRATEGIES: [(&str, &str, &str); 4] =
    [("local", "", ""), ("local", "list", ""), ("st:50", "", "1"), ("st:50", "", "4")];

/// The mean wait: `local` 100 s, with lists 80 s, and stealing 10 s and twice the delay over the window; weeks differ.
fn wait(strategy: (&str, &str, &str), delay: f64, load: f64, week: i64) -> f64 {
    let own = match strategy {
        ("local", "", _) => 100.0,
        ("local", ..) => 80.0,
        (_, _, window) => 10.0 + 2.0 * delay / window.parse::<f64>().unwrap(),
    };
    own * load + 1000.0 * week as f64 + f64::from((week * 7 % 5) as i32)
}

fn rows() -> Rows {
    let text = |text: &str| if text.is_empty() { Cell::Null } else { Cell::Text(text.to_string()) };
    let mut rows = Vec::new();
    for load in [0.5, 1.0] {
        for delay in DELAYS {
            for strategy in STRATEGIES {
                for week in 1..=8 {
                    let seconds = humantime::parse_duration(delay).unwrap().as_secs_f64();
                    let wait = wait(strategy, seconds, load, week);
                    let site = |part: f64| Cell::Real(if strategy.0 == "local" { wait } else { wait * part });
                    let window = strategy.2.parse().map_or(Cell::Null, Cell::Integer);
                    rows.push(Row {
                        position: rows.len() as i64 + 1,
                        done: true,
                        error: None,
                        wall_s: 0.1,
                        parameters: vec![
                            text(delay),
                            window,
                            text(strategy.1),
                            text(strategy.0),
                            Cell::Real(load),
                            Cell::Integer(week),
                        ],
                        metrics: vec![
                            Cell::Integer(100),
                            Cell::Real(wait),
                            site(0.5),
                            site(1.5),
                            Cell::Real(0.125),
                        ],
                    });
                }
            }
        }
    }
    let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
    Rows {
        name: "test".to_string(),
        text: String::new(),
        planned: Some(rows.len()),
        digits: None,
        version: "0".to_string(),
        command: "stealgrid sweep test.toml".to_string(),
        commit: Some("4f2c".to_string()),
        parameters: names(&[
            "network.delay",
            "protocol.window",
            "strategy.local",
            "strategy.name",
            "workload.load",
            "workload.week",
        ]),
        metrics: names(&["jobs", "wait_mean_s", "site_a_wait_s", "site_b_wait_s", "stolen_share"]),
        rows,
    }
}

fn made_of(rows: Rows, head: &str, body: &str) -> Result<Page, String> {
    let text = format!("+++\n{head}\n[data]\nd = \"d.csv.zst\"\n+++\n# Title\n{body}\n");
    let template = Template::parse(&text).map_err(|error| error.to_string())?;
    let wishes =
        WrittenReport { panels: Some(vec!["workload.load".to_string()]), ..WrittenReport::default() };
    let sources = BTreeMap::from([("d".to_string(), Source { rows, wishes })]);
    make(&template, "test.md.in", sources).map_err(|error| error.to_string())
}

fn page(body: &str) -> Result<String, String> {
    let page = made_of(rows(), "", body)?;
    let text = page.text.split_once("again. -->\n").ok_or("no line says who made it")?.1.to_string();
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_string())
}

fn refused(body: &str) -> String {
    page(body).unwrap_err()
}

#[test]
fn single_numbers_come_from_the_rows() {
    // 4,500 s of the weeks and 1.875 s of their remainders beside what a strategy adds.
    assert_eq!(page("{{value metric=wait_mean_s series=local load=1 delay=1m unit=s}}").unwrap(), "4,602 s");
    assert_eq!(page("{{value metric=wait_mean_s series=local load=1.0 delay=60s}}").unwrap(), "76.7 min");
    assert_eq!(
        page("{{value metric=wait_mean_s series=local load=1 delay=\"1 min\" week=1}}").unwrap(),
        "18.4 min"
    );
    assert_eq!(page("{{value metric=stolen_share series=local load=1 delay=0}}").unwrap(), "12.5 %");
    let with = page("{{value metric=wait_mean_s series=local load=1 delay=1m interval}}").unwrap();
    assert!(with.starts_with("76.7 min (") && with.contains(" to "), "{with}");
    assert_eq!(
        page("{{count runs}} {{count runs load=1}} {{count repetitions}} {{count jobs delay=0}} {{count points}} {{count failed}}")
            .unwrap(),
        "256 128 8 6,400 4 0"
    );
    assert_eq!(
        page("{{commit}} `{{command}}` {{sweep}} {{version}}").unwrap(),
        "4f2c `stealgrid sweep test.toml` test 0"
    );
}

#[test]
fn series_are_found_by_their_name_or_parts_of_it() {
    let of = |series: &str| {
        page(&format!("{{{{value metric=wait_mean_s load=1 delay=0s unit=s series=\"{series}\"}}}}"))
    };
    assert_eq!(of("local").unwrap(), "4,602 s");
    assert_eq!(of("local, local list").unwrap(), "4,582 s");
    assert_eq!(of("st:50, window 4").unwrap(), "4,512 s");
    assert_eq!(of("window 4").unwrap(), "4,512 s");
    assert!(
        of("st:50")
            .unwrap_err()
            .contains("several series are \"st:50\"; there are st:50, window 1; st:50, window 4")
    );
    assert!(
        of("st:25")
            .unwrap_err()
            .contains("no series is \"st:25\"; there are local; local, local list; st:50")
    );
    // A parameter that is fixed is no part of the name, and the baseline need not have it.
    assert_eq!(
        page("{{difference metric=wait_mean_s load=1 delay=0s window=4 series=st:50 against=local plain}}")
            .unwrap(),
        "-90.0 s"
    );
}

#[test]
fn comparisons_are_paired_by_repetition() {
    let ratio = |more: &str| {
        page(&format!(
            "{{{{ratio metric=site_a_wait_s series=\"window 1\" against=local load=1 delay=10m {more}}}}}"
        ))
    };
    let ratio_words = ratio("").unwrap();
    assert!(ratio_words.starts_with("-38 % ("), "{ratio_words}");
    assert_eq!(ratio("plain").unwrap(), "-38 %");
    assert_eq!(ratio("times plain digits=3").unwrap(), "0.621 times");
    // Weeks differ by 1,000 s, and the difference of strategies is the same in each.
    let words =
        page("{{difference metric=wait_mean_s series=\"window 1\" against=local load=1 delay=10m unit=s}}");
    assert_eq!(words.unwrap(), "1,110 s (1,110 to 1,110)");
}

#[test]
fn pairs_tell_how_often_and_the_median_of_factors() {
    let pairs = |more: &str| {
        page(&format!("{{{{pairs metric=wait_mean_s series=\"window 1\" against=local load=1 {more}}}}}"))
    };
    // Of each of eight weeks alike: 90 s and 70 s less, then 30 s and 1,110 s more.
    assert_eq!(pairs("more delay=0s").unwrap(), "0 of 8");
    assert_eq!(pairs("more").unwrap(), "0 to 8 of 8");
    assert_eq!(pairs("median delay=10m").unwrap(), "1.2 times");
    assert_eq!(pairs("median").unwrap(), "0.98 to 1.2 times");
    assert!(pairs("alike").unwrap_err().contains("all are the same"));
    assert!(pairs("").unwrap_err().contains("it needs a word: more, median or alike"));
    assert!(pairs("most").unwrap_err().contains("\"most\" is none of more, median and alike"));
}

#[test]
fn ends_of_advantages_are_found_and_named() {
    let crossover = |series: &str, against: &str| {
        page(&format!(
            "{{{{crossover metric=wait_mean_s series=\"{series}\" against=\"{against}\" load=1}}}}"
        ))
        .unwrap()
    };
    // Differences of -70 at 10 s and 30 at 1 min: 10 * 6^0.7 s.
    assert_eq!(crossover("window 1", "local"), "35 s");
    assert_eq!(crossover("local, local list", "local"), "better throughout");
    assert_eq!(crossover("local", "local, local list"), "never better");
    assert_eq!(crossover("local", "local"), "no difference");
    assert_eq!(
        page("{{crossover metric=wait_mean_s series=\"window 1\" against=local load=1 delay=\"0s; 10s\"}}")
            .unwrap(),
        "better throughout"
    );
}

#[test]
fn tables_have_series_along_delays() {
    let table = page("{{table values metric=wait_mean_s load=1}}").unwrap();
    assert_eq!(
        table,
        "| Mean wait, s | 0 | 10 s | 1 min | 10 min |\n| --- | ---: | ---: | ---: | ---: |\n\
         | local | 4,602 | 4,602 | 4,602 | 4,602 |\n| local, local list | 4,582 | 4,582 | 4,582 | 4,582 |\n\
         | st:50, window 1 | 4,512 | 4,532 | 4,632 | 5,712 |\n| st:50, window 4 | 4,512 | 4,517 | 4,542 | 4,812 |"
    );
    let changes = page(
        "{{table changes metric=wait_mean_s load=1 against=local series=\"window 1\" delay=\"0s; 10m\"}}",
    );
    assert_eq!(
        changes.unwrap(),
        "| Mean wait against local | 0 | 10 min |\n| --- | ---: | ---: |\n| window 1 | **-2.0 %** | **+24 %** |"
    );
    let crossovers = page("{{table crossovers metric=wait_mean_s against=local columns=load}}").unwrap();
    assert!(
        crossovers.contains("| Mean wait, advantage over local lost at | load 0.5 | load 1 |"),
        "{crossovers}"
    );
    assert!(crossovers.contains("| st:50, window 1 | 35 s | 35 s |"), "{crossovers}");
    assert!(!crossovers.contains("| local |"), "the baseline is no row: {crossovers}");
}

#[test]
fn tables_have_metrics_and_sites_as_columns() {
    let sites =
        page("{{table changes metrics=\"site_*_wait_s\" load=1 delay=0s against=local columns=metrics}}")
            .unwrap();
    assert!(sites.starts_with("| against local | a | b |\n"), "{sites}");
    assert!(sites.contains("| st:50, window 4 | **-51 %** | **+47 %** |"), "{sites}");
    let both = page("{{table changes metrics=\"wait_mean_s; stolen_share\" load=1 delay=0s against=local}}")
        .unwrap();
    assert!(both.starts_with("| against local | Mean wait | Stolen jobs |\n"), "{both}");
    assert!(both.contains("| st:50, window 1 | **-2.0 %** | 0.0 % |"), "{both}");
    let values =
        page("{{table values metrics=\"wait_mean_s; stolen_share\" load=1 delay=0s unit=min}}").unwrap();
    assert!(values.contains("| local | 76.7 min | 12.5 % |"), "{values}");
}

#[test]
fn ranks_and_the_best_are_told() {
    let ranks = page("{{table ranks metric=wait_mean_s load=1 within=1}}").unwrap();
    assert!(ranks.contains("| local | 4 (+2.0 %) | 4 (+1.9 %) | 3 (+1.3 %) | **2 (+0.4 %)** |"), "{ranks}");
    assert!(ranks.contains("| st:50, window 4 | **1** | **1** | **1** |"), "{ranks}");
    let best = page("{{table best metric=wait_mean_s rows=load columns=delay within=0.5}}").unwrap();
    assert!(best.contains("| load 1 | st:50, window 1, st:50, window 4 |"), "{best}");
    assert_eq!(page("{{best metric=wait_mean_s load=1 delay=10m}}").unwrap(), "local, local list");
    assert_eq!(
        page("{{range metric=wait_mean_s load=1 series=\"window 1; window 4\" unit=s}}").unwrap(),
        "4,512 to 5,712 s"
    );
    assert_eq!(
        page("{{range metric=wait_mean_s load=1 series=\"window 1\" against=local}}").unwrap(),
        "-2.0 to +24 %"
    );
}

#[test]
fn plots_are_files_with_a_link() {
    let made = made_of(
        rows(),
        "",
        "{{plot values metric=wait_mean_s load=1 against=local id=wait}}\n{{plot changes metric=wait_mean_s load=0.5 \
         against=local id=change}}\n{{plot parts metrics=\"site_*_wait_s\" load=1 id=parts title=\"Where\"}}",
    )
    .unwrap();
    assert!(made.text.contains("![Mean wait, load 1](images/test-wait.svg)\n"), "{}", made.text);
    assert!(
        made.text.contains("![Mean wait against local, load 0.5](images/test-change.svg)"),
        "{}",
        made.text
    );
    assert_eq!(made.files.len(), 3);
    for (name, svg) in &made.files {
        assert!(svg.starts_with("<svg ") && svg.contains("<style>"), "{name}");
    }
    assert_eq!(made.files[0].1.matches("class=\"mark ").count(), 2, "each stealing strategy crosses once");
    assert!(refused("{{plot values metric=wait_mean_s id=a}}").contains("several series"));
    assert!(
        refused("{{plot values metric=wait_mean_s load=1 id=a title=\"17 %\"}}").contains("a figure, 17")
    );
    assert!(refused("{{plot values metric=wait_mean_s load=1 id=../a}}").contains("no name of a file"));
}

#[test]
fn a_plot_for_a_column_has_no_heading_and_says_on_its_axes_what_it_is() {
    let plot = |width: &str| {
        let body = format!("{{{{plot values metric=wait_mean_s load=1 id=a title=\"Waits\" {width}}}}}");
        made_of(rows(), "[metrics]\nwait_mean_s = \"mean wait\"", &body).map(|page| page.files[0].1.clone())
    };
    let (page, column) = (plot("").unwrap(), plot("width=column").unwrap());
    assert!(page.contains(">Waits</text>") && page.contains("width=\"900\""));
    assert!(!column.contains(">Waits</text>") && column.contains("width=\"8.5cm\""), "{column}");
    for svg in [&page, &column] {
        assert!(
            svg.contains(">mean wait (min)</text>")
                && svg.contains(">one-way delay of a message (s, min)</text>")
        );
    }
    assert!(plot("width=wide").unwrap_err().contains("width=wide is neither page nor column"));
    for kind in ["ranks metrics=wait_mean_s", "profile metric=wait_mean_s", "parts metrics=\"site_*_wait_s\""]
    {
        let body = format!("{{{{plot {kind} load=1 delay=0s id=a width=column}}}}");
        let made = made_of(rows(), "", &body).unwrap();
        assert!(made.files[0].1.contains("class=\"plot column\""), "{kind}");
    }
}

#[test]
fn a_series_has_one_color_on_the_whole_page_whatever_it_is_called() {
    let body = "{{plot values metric=wait_mean_s load=1 id=a}}\n{{plot values metric=wait_mean_s load=0.5 \
                series=\"window 4; local\" id=b}}\n{{plot profile metric=wait_mean_s load=1 delay=0s series=\"window 4; local\" id=c}}";
    let made = made_of(rows(), "[series]\n\"st:50, window 4\" = \"wide\"", body).unwrap();
    let color = |svg: &str, name: &str| {
        let line = svg.lines().find(|line| line.contains(&format!(">{name}</text>"))).unwrap().to_string();
        let (_, after) = line.rsplit_once("class=\"series ").unwrap();
        after.split('"').next().unwrap().to_string()
    };
    for name in ["wide", "local"] {
        let colors: Vec<String> = made.files.iter().map(|(_, svg)| color(svg, name)).collect();
        assert!(colors.windows(2).all(|pair| pair[0] == pair[1]), "{name}: {colors:?}");
    }
}

#[test]
fn a_table_for_latex_is_a_file_with_a_link() {
    let table = |more: &str| {
        made_of(
            rows(),
            "",
            &format!(
                "{{{{table changes metric=wait_mean_s load=1 against=local series=\"window 1\" delay=\"0s; 10m\" {more}}}}}"
            ),
        )
    };
    let made = table("format=latex id=changes").unwrap();
    assert!(
        made.text.contains("[Mean wait against local, for LaTeX](images/test-changes.tex)\n"),
        "{}",
        made.text
    );
    let whole = "{{table changes metric=wait_mean_s load=1 against=local format=latex id=a}}";
    let of_page = made_of(rows(), "family = \"page\"", whole).unwrap();
    assert_eq!(of_page.files.len(), 1, "gathering chances writes nothing");
    let (name, text) = &made.files[0];
    assert_eq!(name, "test-changes.tex");
    assert!(
        text.contains("\\begin{tabular}{lrr}\n\\toprule\nMean wait against local & 0 & 10 min \\\\\n"),
        "{text}"
    );
    assert!(text.contains("window 1 & \\textbf{$-$2.0\\,\\%} & "), "{text}");
    assert!(table("format=latex").unwrap_err().contains("it needs id="));
    assert!(table("format=html id=a").unwrap_err().contains("format=html is neither markdown nor latex"));
    assert!(table("format=latex id=A").unwrap_err().contains("no name of a file"));
    assert!(table("format=latex id=a title=\"17 %\"").unwrap_err().contains("a figure, 17"));
    assert!(beside("{{table published id=1 format=latex}}", PRINTED).unwrap_err().contains("Markdown only"));
}

#[test]
fn what_means_nothing_or_too_much_is_refused_with_its_line() {
    let line = |body: &str, words: &str| {
        let error = refused(body);
        assert!(error.starts_with("line 8: {{") && error.contains(words), "{error}");
    };
    line(
        "\n{{value metric=wait_mean_s series=local load=1}}",
        "it needs one delay; there are 0, 10 s, 1 min, 10 min",
    );
    line(
        "\n{{value metric=wait_mean_s series=local delay=0s}}",
        "several series are \"local\"; there are local (workload.load = 0.5)",
    );
    line(
        "\n{{value metric=wait_mean_s load=1 delay=0s}}",
        "it needs series=; there are local; local, local list",
    );
    line(
        "\n{{value metric=wait series=local load=1 delay=0s}}",
        "no metric is \"wait\"; there are jobs, wait_mean_s",
    );
    line(
        "\n{{value metric=wait_mean_s series=local load=2 delay=0s}}",
        "no run has workload.load = 2; there are 0.5, 1",
    );
    line("\n{{value metric=wait_mean_s series=local lod=1 delay=0s}}", "\"lod\" is neither a key");
    line("\n{{value metric=wait_mean_s series=local load=1 delay=0s intervl}}", "\"intervl\" means nothing");
    line("\n{{vlaue}}", "\"vlaue\" is no verb");
    line("\n{{table changes metric=wait_mean_s load=1}}", "it needs against=");
    line(
        "\n{{table values metric=wait_mean_s load=1 series=\"local; nobody\"}}",
        "the row \"nobody\" is empty",
    );
    line("\n{{value data=e metric=wait_mean_s}}", "no data are \"e\"; there are d");
    assert_eq!(refused("\n{{value"), "line 8: an expression has no end: }} is missing");
}

#[test]
fn mutant_a_figure_by_hand_is_refused() {
    assert!(refused("\nWaits fall by 17 %.").starts_with("line 8: the figure \"17\""));
    assert!(made_of(rows(), "allow = [\"by 17 %\"]", "\nWaits fall by 17 %.").is_ok());
    assert!(
        made_of(rows(), "[series]\n\"local\" = \"local, 17 % better\"", "")
            .unwrap_err()
            .contains("has a figure, 17")
    );
}

#[test]
fn mutant_one_changed_cell_changes_the_page() {
    let body = "{{value metric=wait_mean_s series=local load=1 delay=1m digits=8}}\n\n{{table values metric=wait_mean_s load=1 \
                digits=8}}\n\n{{plot values metric=wait_mean_s load=1 id=a}}";
    let before = made_of(rows(), "", body).unwrap();
    assert_eq!(before, made_of(rows(), "", body).unwrap(), "the same data give the same page");
    let mut other = rows();
    let row = other.rows.iter().position(|row| row.parameters[4] == Cell::Real(1.0)).unwrap() + 2 * 32;
    other.rows[row].metrics[1] = Cell::Real(1202.5);

    let after = made_of(other, "", body).unwrap();

    assert_ne!(before.text, after.text);
    assert_ne!(before.files, after.files);
}

#[test]
fn names_may_be_given_to_series_and_metrics() {
    let head = "[series]\n\"local, local list\" = \"LIST\"\n\"window 4\" = \"four\"\n[metrics]\nwait_mean_s = \"wait\"";
    let error = made_of(rows(), head, "").map(|page| page.text);
    assert!(error.is_ok(), "{error:?}");
    let made = made_of(
        rows(),
        head,
        "{{table changes metric=wait_mean_s load=1 against=LIST series=\"local; window 4\"}}",
    )
    .unwrap();
    assert!(
        made.text.contains("| wait against LIST | 0 |") && made.text.contains("| four | "),
        "{}",
        made.text
    );
}

/// Differences with nothing behind them, all tables of a page together or each for itself.
#[test]
fn a_family_is_a_table_or_the_page() {
    let noisy = || {
        let mut rows = rows();
        let mut state = 7_u64;
        for row in &mut rows.rows {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            row.metrics[1] = Cell::Real((state >> 33) as f64 / f64::from(1 << 20));
        }
        // One of them has something behind it: the least chance of 8 repetitions is 2 in 256.
        for row in rows.rows.iter_mut().filter(|row| row.parameters[1] == Cell::Integer(4)) {
            row.metrics[1] = Cell::Real(1e6);
        }
        rows
    };
    let table = |series: &str| {
        format!(
            "{{{{table changes metric=wait_mean_s load=1 delay=0s against=local series=\"{series}\"}}}}\n\n"
        )
    };
    let single = table("window 4");
    let several = table("window 4")
        + &table("window 1")
        + "{{table changes metric=wait_mean_s load=0.5 against=local}}\n";

    let bold = |family: &str, body: &str| {
        made_of(noisy(), &format!("family = \"{family}\""), body).unwrap().text.matches("**").count() / 2
    };

    assert_eq!(bold("table", &single), 1);
    assert_eq!(bold("page", &single), 1);
    assert_eq!(bold("page", &several), 0, "2 in 256 times 14 is no news");
    assert!(bold("table", &several) >= 1);
    let counted =
        made_of(noisy(), "family = \"page\"", &format!("{{{{count comparisons}}}}\n\n{several}")).unwrap();
    assert!(counted.text.contains("\n14\n"), "one is in two tables: {}", counted.text);
}

/// Two grids with a strategy each way, printed as percents.
const PRINTED: &str = r#"
source = "somebody"
[strategies]
Local = "local"
List = "local, local list"
Four = "st:50, window 4"
[before]
List = "Local"
Four = "Local"
[[tables]]
id = "1"
columns = ["Local", "List", "Four"]
rows = [
    { name = "wait", data = ["d"], metrics = ["wait_mean_s"], values = [2, 1, 0] },
    { name = "turned", data = ["d"], metrics = ["wait_mean_s"], values = [0, 1, 2.5] },
    { name = "rank", what = "rank", data = ["d", "d"], metrics = ["wait_mean_s"], values = [3, 2, 1] },
]
[[tables]]
id = "2"
columns = ["List", "Four"]
reference = ["Local"]
rows = [
    { name = "gain", what = "improvement", data = ["d"], metrics = ["wait_mean_s", "site_a_wait_s"], values = [-0.5, 20] },
    { name = "first", what = "improvement-rank", data = ["d"], metrics = ["wait_mean_s"], values = [2, 1] },
]
"#;

/// A page with printed tables, of rows at one point and one load.
fn beside(body: &str, printed: &str) -> Result<String, String> {
    let mut one = rows();
    one.rows.retain(|row| row.parameters[0].to_string() == "0s" && row.parameters[4].to_string() == "1");
    one.planned = Some(one.rows.len());
    let text = format!("+++\npublished = \"p.toml\"\n[data]\nd = \"d.csv.zst\"\n+++\n# Title\n{body}\n");
    let template = Template::parse(&text).map_err(|error| error.to_string())?;
    assert_eq!(template.published(), Some("p.toml"));
    let template = template.with_published(printed).map_err(|error| error.to_string())?;
    let wishes = WrittenReport { x: Some("network.delay".to_string()), ..WrittenReport::default() };
    let sources = BTreeMap::from([("d".to_string(), Source { rows: one, wishes })]);
    let page = make(&template, "test.md.in", sources).map_err(|error| error.to_string())?;
    let text = page.text.split_once("again. -->\n").ok_or("no line says who made it")?.1.to_string();
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_string())
}

#[test]
fn ours_stand_above_what_was_printed_with_how_far_both_agree() {
    // Waits 4,602, 4,582 and 4,512 s: 2.0 and 1.6 percent above the best, in every week.
    let table = beside("{{table published id=1}}", PRINTED).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "| table 1 | Local | List | Four | \u{3c4} |");
    assert_eq!(lines[2], "| wait | **2.0** | **1.6** | 0.0 | 1.00 (p = 0.33) |");
    assert_eq!(lines[3], "| printed | 2 | 1 | 0 |  |");
    assert_eq!(lines[4], "| turned | **2.0** | **1.6** | 0.0 | -1.00 (p = 0.33) |");
    assert_eq!(lines[5], "| printed | 0 | 1 | 2.5 |  |");
    assert_eq!(lines[6], "| rank | 3 | 2 | 1 | 1.00 (p = 0.33) |");

    let agreement = beside("{{table agreement id=\"1; 2\"}}", PRINTED).unwrap();
    assert!(agreement.contains("| 1: turned | -1.00 (p = 0.33) | -1.00 | Four | Local |"), "{agreement}");
    assert!(agreement.contains("| 2: gain | 1.00 (p = 1.0) | 1.00 | Four | Four |"), "{agreement}");

    let inline = "{{measured id=1 row=wait column=List}} {{printed id=1 row=turned column=Four}} \
                  {{agreement id=1 row=turned}} {{agreement id=1 row=* spearman}} {{agreement id=2 row=gain signs}}";
    assert_eq!(beside(inline, PRINTED).unwrap(), "1.6 2.5 -1.00 (p = 0.33) 0.33 1 of 2");
}

#[test]
fn mutant_a_printed_table_that_does_not_fit_is_refused() {
    for (from, to, reason) in [
        ("values = [2, 1, 0]", "values = [2, 1]", "2 values for 3 columns"),
        (
            "columns = [\"Local\", \"List\", \"Four\"]",
            "columns = [\"Local\", \"List\", \"Five\"]",
            "not in [strategies]",
        ),
        ("List = \"Local\"\n", "", "\"List\" is not in [before]"),
        (
            "data = [\"d\"], metrics = [\"wait_mean_s\"], values = [2",
            "data = [], metrics = [\"wait_mean_s\"], values = [2",
            "needs data",
        ),
        ("local, local list", "local, local none", "no series is"),
    ] {
        let changed = PRINTED.replacen(from, to, 1);
        assert_ne!(changed, PRINTED, "{from}");
        let error = beside("{{table published id=1}}", &changed).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
    assert!(beside("{{table published id=3}}", PRINTED).unwrap_err().contains("there are 1, 2"));
    assert!(refused("{{table published id=1}}").contains("names no file of printed tables"));
}

#[test]
fn strategies_are_ranked_by_degradation() {
    let table = beside("{{table degradation metrics=\"wait_mean_s; site_a_wait_s\"}}", PRINTED).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("| degradation, % | rank | mean |"), "{table}");
    // Stealing halves the wait of one site, where the others have twice that.
    assert!(lines[2].starts_with("| st:50, window 1 | 1 | 0 | 0 | 0 |"), "{table}");
    assert!(lines[4].starts_with("| local, local list | 3 | **52.33** | 1.551 | 103.1 |"), "{table}");
    let page =
        beside("{{plot ranks metrics=wait_mean_s id=r}}\n{{plot profile metric=wait_mean_s id=p}}", PRINTED);
    assert!(page.unwrap().contains("images/test-p.svg"));
    assert!(
        beside("{{plot profile metrics=\"wait_mean_s; jobs\" id=p}}", PRINTED)
            .unwrap_err()
            .contains("of one metric")
    );
}

/// The page of the rows after `change`, and what was said of them.
fn changed(change: impl FnOnce(&mut Rows)) -> Page {
    let mut rows = rows();
    change(&mut rows);
    made_of(rows, "", "{{count runs}} runs").unwrap()
}

#[test]
fn the_page_says_how_many_runs_failed_or_are_missing() {
    let whole = changed(|_| ());
    assert!(whole.warnings.is_empty(), "{:?}", whole.warnings);
    assert!(!whole.text.contains("left out"), "{}", whole.text);

    let some = changed(|rows| {
        rows.rows[3].done = false;
        rows.rows[7].done = false;
        rows.rows[7].error = Some("the disk is full".to_string());
        rows.planned = Some(260);
    });
    let counts = "of the data d, 2 of 260 runs failed, and 4 of 260 runs are not there";
    assert!(some.text.contains(&format!("\n> **Runs are left out**: {counts}. ")), "{}", some.text);
    assert!(some.text.contains("\n\n254 runs\n"), "{}", some.text);
    assert_eq!(some.warnings, [format!("{counts}; the first because: the disk is full")]);

    let missing = changed(|rows| rows.planned = Some(1_256));
    assert_eq!(missing.warnings, ["of the data d, 1,000 of 1,256 runs are not there"]);
}

#[test]
fn a_name_of_a_series_or_metric_that_is_none_is_refused() {
    let with = |names: &str| made_of(rows(), &format!("{names}\n"), "{{count runs}}");
    for names in [
        "[series]\n\"local, local list\" = \"list\"\n\"window 4\" = \"wide\"\n\"st:50, window 1\" = \"st\"",
        "[metrics]\nwait_mean_s = \"wait\"",
    ] {
        with(names).unwrap();
    }

    let wrong = with("[series]\n\"local\" = \"none\"\n\"local, local lst\" = \"list\"").unwrap_err();
    assert_eq!(
        wrong,
        "line 4: [series] \"local, local lst\" is the name of no series (did you mean local, local list?); write a name as it \
         is without [series], or leave the line out; there are local; local, local list; st:50, window 1; st:50, window 4"
    );
    // It may be that of the run that is not there.
    let mut some = rows();
    some.planned = Some(257);
    made_of(some, "[series]\n\"local, local lst\" = \"list\"\n", "{{count runs}}").unwrap();
    let wrong = with("[metrics]\nwait_mean = \"wait\"").unwrap_err();
    assert!(
        wrong.starts_with(
            "line 3: [metrics] \"wait_mean\" is the name of no metric (did you mean wait_mean_s?)"
        ),
        "{wrong}"
    );
}
