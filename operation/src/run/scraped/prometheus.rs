//! Pages of sites as a Prometheus server has scraped them, by its HTTP API.
//!
//! All series of a scrape come in together, so one query gives one page of each site. It is one after the end of the
//! run if it has counted the events that the node had by then, and of this run if no more than the node has by now;
//! clocks of the two machines do not matter.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use experiments::interrupt::Interrupt;
use scheduler::Grid;
use serde::Deserialize;

use super::{EVENTS, Page, events, key};
use crate::Fleet;

/// How often the server is asked.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long one answer may take.
const ANSWER_PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of an answer; some hundred bytes for each of about 200 series of a site.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// The metrics of sites.
const SELECTED: &str = "stealgrid_(jobs|steal_requests|messages|restarts|events)_.*|\
                        stealgrid_job_(wait_seconds|bounded_slowdown)_(count|sum)";

/// The address of a server as it is used.
///
/// # Errors
/// If it is none that can be asked.
pub fn address(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").unwrap_or_default();
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() || text.contains(char::is_whitespace) {
        return Err("write the address of a Prometheus server that is reached by plain HTTP, as in \
                    http://127.0.0.1:9090"
            .to_string());
    }
    Ok(text.trim_end_matches('/').to_string())
}

/// A server that scrapes the nodes.
#[derive(Debug)]
pub struct Prometheus {
    url: String,
    run: String,
    patience: Duration,
    agent: ureq::Agent,
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    error: Option<String>,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    result: Vec<Sample>,
}

#[derive(Deserialize)]
struct Sample {
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

impl Prometheus {
    /// The server at a checked address, for a run of this name.
    pub fn new(url: &str, run: &str, patience: Duration) -> Prometheus {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(ANSWER_PATIENCE))
            .proxy(None)
            .build();
        Prometheus { url: url.to_string(), run: run.to_string(), patience, agent: config.into() }
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A page of each site that is up, scraped after now; or why there is none.
    pub fn pages(
        &self,
        fleet: &mut Fleet,
        grid: &Grid,
        up: &[bool],
        interrupt: &Interrupt,
    ) -> Vec<Result<Page, String>> {
        let events_of = |fleet: &Fleet| -> Vec<Option<u64>> {
            let of_node = |(client, up): (&crate::NodeClient, &bool)| {
                up.then(|| client.status().ok().map(|status| status.events)).flatten()
            };
            fleet.clients().zip(up).map(of_node).collect()
        };
        let names: Vec<&str> = grid.sites().iter().map(|site| site.name.as_str()).collect();
        let at_end = events_of(fleet);
        let begun = Instant::now();
        loop {
            let answered = self.ask(&names);
            let by_now = events_of(fleet);
            let site = |place: usize| -> Result<Page, String> {
                let (Some(least), Some(most)) = (at_end[place], by_now[place]) else {
                    return Err("its node is gone".to_string());
                };
                let sites = answered.as_ref().map_err(String::clone)?;
                let page = sites
                    .get(names[place])
                    .ok_or_else(|| format!("{} has no {EVENTS} of it; does it scrape this run?", self.url))?;
                match events(page) {
                    found if found < least => Err(format!(
                        "{} has not scraped it since the end of the run: it has {found} of {least} events",
                        self.url
                    )),
                    found if found > most => Err(format!(
                        "{} has {found} events of a site of this name, and there were {most}: those of another run",
                        self.url
                    )),
                    _ => Ok(page.clone()),
                }
            };
            let pages: Vec<Result<Page, String>> = (0..names.len()).map(site).collect();
            let complete = pages.iter().zip(&at_end).all(|(page, up)| page.is_ok() || up.is_none());
            if complete || interrupt.is_set() {
                return pages;
            }
            if begun.elapsed() >= self.patience {
                let waited = format!(" (waited {:?}, --prometheus-patience)", self.patience);
                return pages.into_iter().map(|page| page.map_err(|reason| reason + &waited)).collect();
            }
            std::thread::sleep(ASK_EVERY);
        }
    }

    /// The newest page of each site that has one.
    fn ask(&self, names: &[&str]) -> Result<BTreeMap<String, Page>, String> {
        let failed = |reason: String| format!("failed to ask Prometheus at {}: {reason}", self.url);
        let sites: Vec<String> = names.iter().map(|name| escaped(name)).collect();
        // Nodes that are found otherwise than by the coordinator's list have no label `run`.
        let query = format!(
            "{{__name__=~\"{SELECTED}\",site=~\"{}\",run=~\"{}|\"}}",
            sites.join("|"),
            escaped(&self.run)
        );
        let sent =
            self.agent.post(format!("{}/api/v1/query", self.url)).send_form([("query", query.as_str())]);
        let mut answer = sent.map_err(|error| failed(error.to_string()))?;
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
        let answer: Answer = body.read_json().map_err(|error| {
            failed(format!("it answers {status}, and not as Prometheus does ({error}); is it one?"))
        })?;
        if answer.status != "success" {
            return Err(failed(format!("it says: {}", answer.error.unwrap_or(answer.status))));
        }
        Ok(by_site(answer.data.map(|data| data.result).unwrap_or_default()))
    }
}

/// Samples by site. Of several targets of one name, the one that has counted most events.
fn by_site(samples: Vec<Sample>) -> BTreeMap<String, Page> {
    let mut targets: BTreeMap<(String, String), Page> = BTreeMap::new();
    for Sample { metric, value } in samples {
        let label = |name: &str| metric.get(name).map_or("", String::as_str);
        let Ok(value) = value.1.parse() else { continue };
        let labels = metric.iter().map(|(label, value)| (label.as_str(), value.as_str()));
        let target = (label("site").to_string(), label("instance").to_string());
        targets.entry(target).or_default().insert(key(label("__name__"), labels), value);
    }
    let mut sites: BTreeMap<String, Page> = BTreeMap::new();
    for ((site, _), page) in targets {
        if page.contains_key(EVENTS) && sites.get(&site).is_none_or(|known| events(known) < events(&page)) {
            sites.insert(site, page);
        }
    }
    sites
}

/// A name as a regular expression within a string of a query.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            '"' => text += "\\\"",
            '\\' => text += "\\\\\\\\",
            c if c.is_ascii_punctuation() && !"_-".contains(c) => text += &format!("\\\\{c}"),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_plain_http() {
        assert_eq!(address("http://127.0.0.1:9090/").unwrap(), "http://127.0.0.1:9090");
        assert_eq!(address("http://prometheus:9090/prefix").unwrap(), "http://prometheus:9090/prefix");
        for wrong in ["127.0.0.1:9090", "https://here", "http://", "http:// here", ""] {
            assert!(address(wrong).unwrap_err().contains("as in http://127.0.0.1:9090"), "{wrong}");
        }
    }

    #[test]
    fn names_are_no_patterns() {
        assert_eq!(escaped("site-1_a b"), "site-1_a b");
        assert_eq!(escaped("a.b|c"), "a\\\\.b\\\\|c");
        assert_eq!(escaped("a\"b"), "a\\\"b");
        assert_eq!(escaped("a\\b"), "a\\\\\\\\b");
    }

    #[test]
    fn samples_of_an_answer_are_pages_by_site_and_the_newest_target_counts() {
        let sample = |name: &str, site: &str, instance: &str, kind: &str, value: &str| {
            let labels = [("__name__", name), ("site", site), ("instance", instance), ("kind", kind)];
            let labels = labels.into_iter().filter(|(_, value)| !value.is_empty());
            let metric = labels.map(|(name, value)| (name.to_string(), value.to_string())).collect();
            Sample { metric, value: (1.5, value.to_string()) }
        };
        let found = by_site(vec![
            sample(EVENTS, "a", "1", "", "7"),
            sample("stealgrid_messages_total", "a", "1", "grant", "3"),
            sample(EVENTS, "a", "2", "", "9"),
            sample("stealgrid_messages_total", "a", "2", "grant", "4"),
            sample("stealgrid_messages_total", "b", "3", "grant", "5"),
        ]);
        assert_eq!(found.len(), 1, "a target without {EVENTS} is none");
        assert_eq!(found["a"]["stealgrid_messages_total{kind=grant}"], 4.0);
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        let server = Prometheus::new("http://127.0.0.1:1", "run", Duration::from_millis(1));
        let error = server.ask(&["a"]).unwrap_err();
        assert!(error.starts_with("failed to ask Prometheus at http://127.0.0.1:1: "), "{error}");
    }
}
