use outputs::compared::{Added, Lateness};

use super::*;

const FACTOR: f64 = 8000.0;

fn seconds(seconds: i64) -> Span {
    Span::from_secs(seconds)
}

/// 5 minutes of delay: 30 s in the mean and 300 s once are allowed.
fn allowed() -> Allowed {
    Allowed { mean: seconds(30), single: seconds(300) }
}

fn late(total: i64, max: i64) -> Lateness {
    Lateness { count: 10, total: seconds(total), max: seconds(max) }
}

fn added(mean: i64, max: i64) -> Option<Added> {
    Some(Added { mean: seconds(mean), max: seconds(max) })
}

fn on_time() -> Kept {
    Kept { added: added(30, 300), submissions: late(300, 300), completions: late(300, 300) }
}

fn figures(all: f64) -> Figures {
    Figures {
        makespan_s: all,
        wait_mean_s: all,
        wait_by_size_mean: all,
        steal_delay_mean_s: all,
        messages_per_job: all,
        requests_per_job: all,
        stolen_jobs: all,
        start_delay_p95_s: Some(all),
    }
}

fn compared(verdict: Verdict, run: f64) -> Compared {
    let simulations: Vec<Figures> = (0..200).map(|n| figures(300.0 + f64::from(n) / 10.0)).collect();
    let placed = place_among(&figures(run), &simulations);
    let (figures, kept) = (figures(run), on_time());
    Compared { verdict, figures, kept, allowed_s: 30.0, placed: Some(placed), same_site: Some((9, 10)) }
}

#[test]
fn a_run_that_was_later_than_allowed_is_not_measured_and_says_what_was_late() {
    assert_eq!(too_late(&on_time(), allowed(), FACTOR), None);
    assert_eq!(too_late(&Kept { added: None, ..on_time() }, allowed(), FACTOR), None);
    let cases = [
        (
            Kept { added: added(31, 40), ..on_time() },
            "messages were 31.0 s late in the mean (3.88 ms of the wall clock)",
        ),
        (Kept { added: added(1, 301), ..on_time() }, "messages were 301.0 s late once"),
        (Kept { submissions: late(310, 40), ..on_time() }, "submissions were 31.0 s late in the mean"),
        (Kept { completions: late(10, 400), ..on_time() }, "300.0 s (37.50 ms) are allowed"),
    ];
    for (kept, expected) in cases {
        let reason = too_late(&kept, allowed(), FACTOR).unwrap();
        assert!(reason.contains(expected), "{reason}");
    }
}

#[test]
fn the_lines_show_the_run_its_place_and_the_verdict() {
    let lines = compared(Verdict::Within, 310.0).lines().join("\n");
    assert!(
        lines.contains("beside 200 simulations with the injected delays, late by up to 30.0 s"),
        "{lines}"
    );
    assert!(
        lines.contains("  steal delay, s        310.000       309.950       300.199 to 319.701      50.2"),
        "{lines}"
    );
    assert!(lines.contains("9 of 10 jobs"), "{lines}");
    assert!(
        lines.contains("  agreement        as simulated: 200 of 200 simulations lie as far out"),
        "{lines}"
    );

    let lines = compared(Verdict::Different, 900.0).lines().join("\n");
    assert!(
        lines.contains("DIFFERENT: further out than all 200 simulations, by makespan, mean wait"),
        "{lines}"
    );
    assert!(lines.contains("once in 201 times"), "{lines}");

    let lines = compared(Verdict::NotMeasured("messages were late".into()), 900.0).lines().join("\n");
    assert!(lines.contains("NOT MEASURED: messages were late; the machine is too busy"), "{lines}");
}

#[test]
fn a_simulation_that_fails_is_an_error_and_a_comparison_that_cannot_be_is_none() {
    let of = |reason: &str| Compared {
        verdict: Verdict::NotCompared(reason.to_string()),
        placed: None,
        ..compared(Verdict::Within, 310.0)
    };
    assert!(of("a simulation failed: it starves").failed().unwrap().ends_with("it starves"));
    let disturbed = of("a node ended");
    assert_eq!(disturbed.failed(), None);
    assert!(disturbed.lines().join("\n").ends_with("agreement        not compared: a node ended"));
}
