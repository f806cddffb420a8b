//! What users write: models of links with the files they name, and the words that switch things.

use std::path::Path;

use links::{Links, Model};
use scheduler::{LocalScheduler, Pass, SiteId, StrategySpec, Submit, Time};
use workload::calendar::{Weekdays, Zone};
use workload::prepare::{Estimate, Filters, Origin, Overrun, Size};

/// What separates a text from that of the files that it names: a form feed, which no such text needs.
pub(crate) const FILE: char = '\u{c}';
/// Names of the sites that links are between.
const SITES: [&str; 3] = ["site1", "site2", "site3"];

/// Text as a model of links and as a word. What follows a form feed is the content of whatever file it names.
///
/// # Panics
/// If a reader does, or if what was accepted cannot be used.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (text, file) = text.split_once(FILE).unwrap_or((text, ""));
    links(text, file);
    switches(text.trim_end());
}

fn links(text: &str, file: &str) {
    let Ok(written) = toml::from_str::<links::Written>(text) else { return };
    let read = |_: &Path| Ok(file.to_string());
    match written.resolve(&SITES, &read) {
        Ok(model) => usable(&model, SITES.len()),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// A model that was accepted tells what becomes of any message, early and late.
fn usable(model: &Model, sites: usize) {
    assert_eq!(model.check(sites), Ok(()), "a model that was accepted makes sense");
    assert!(!model.describe().is_empty());
    let mut links = Links::new(model.clone(), 1);
    let last = SiteId::from_index(sites - 1);
    for now in [0, 1, 1_000_000_000, i64::MAX] {
        for (from, to) in [(SiteId(1), last), (last, SiteId(1))] {
            let copies = links.send(Time::from_micros(now), from, to, 1 << 40);
            assert!(copies.first.is_some() || copies.second.is_none(), "a duplicate of a lost message");
            for delay in [copies.first, copies.second].into_iter().flatten() {
                assert!(delay >= scheduler::Span::ZERO, "a message arrived before it was sent");
            }
        }
    }
}

/// Words after `--strategy` and the like: what is accepted is shown as a word that means the same.
fn switches(text: &str) {
    if let Ok(spec) = text.parse::<StrategySpec>() {
        let shown = spec.to_string();
        assert_eq!(shown.parse(), Ok(spec), "{shown} was {text}");
    }
    if let Ok(jitter) = text.parse::<links::Jitter>() {
        let shown = jitter.to_string();
        assert_eq!(shown.parse(), Ok(jitter), "{shown} was {text}");
    }
    let _ = text.parse::<LocalScheduler>();
    let _ = text.parse::<Pass>();
    let _ = text.parse::<Submit>();
    let _ = text.parse::<Weekdays>();
    let _ = text.parse::<Zone>();
    let _ = text.parse::<Size>();
    let _ = text.parse::<Overrun>();
    let _ = text.parse::<Origin>();
    let _ = text.parse::<Filters>();
    if let Ok(estimate) = text.parse::<Estimate>() {
        let shown = estimate.to_string();
        assert_eq!(shown.parse(), Ok(estimate), "{shown} was {text}");
    }
}
