//! A comparison as people and programs read it.

use analysis::compare::events::{Divergence, EventAgreement, Line, Strictness};
use outputs::csv_cell;
use outputs::table::folded;
use report::Format;
use report::quantity::{change_in_words, clock, counted, duration, grouped};

use experiments::terminal::COLUMNS;
use scheduler::{Event, SiteId};
use serde_json::Value;

use super::jobs::{JobsCompared, NAMED, Named};
use super::metrics::MetricRow;
use super::{Compared, EventsCompared, Verdict, metrics};

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Events {
    /// As they stand in the log, to be found there.
    AsLogged,
    /// As people read them.
    InWords,
}

impl Compared {
    /// The comparison in a format, with a line break at the end.
    pub(super) fn render(&self, format: Format) -> String {
        match format {
            Format::Terminal => self.text(),
            Format::Markdown => self.markdown(),
            Format::Json => {
                let document = serde_json::to_string_pretty(self).expect("plain data");
                format!("{document}\n")
            }
            Format::Csv => csv(&self.metrics),
        }
    }

    fn text(&self) -> String {
        let [first, second] = &self.directories;
        let answer = folded(&self.answer(), COLUMNS);
        let mut text = format!("{answer}\n\nfirst   {}\nsecond  {}\n\n", first.display(), second.display());
        for line in self.lines(Events::AsLogged) {
            // Events stay as they stand in the log.
            let shown = if line.contains("{\"at\":") { line } else { folded(&line, COLUMNS) };
            text += &format!("{shown}\n");
        }
        let verdict = folded(&format!("verdict: {}", self.verdict_line()), COLUMNS);
        text + &format!("\n{}\n{verdict}\n", metrics::table(&self.metrics).text())
    }

    fn markdown(&self) -> String {
        let [first, second] = &self.directories;
        let mut text = format!("## {} and {}\n\n", first.display(), second.display());
        text += &format!("**{}**\n\n```\n", self.verdict_line());
        for line in self.lines(Events::AsLogged) {
            text += &format!("{line}\n");
        }
        text + &format!("```\n\n{}", metrics::table(&self.metrics).markdown())
    }

    /// What most want to know, in two sentences.
    fn answer(&self) -> String {
        let mut text = match self.verdict {
            Verdict::Damaged => return format!("{}.", self.verdict_line()),
            Verdict::Identical => "Both are the same run, as far as they are compared.".to_string(),
            Verdict::Different => {
                let agreement = &self.jobs.agreement;
                format!(
                    "The runs differ: {} of {} that ended in both start at the same site and time.",
                    grouped(agreement.same as u64),
                    counted(agreement.compared as u64, "job")
                )
            }
        };
        let wait = self.metrics.iter().find(|row| row.name == "wait_mean_s");
        if let Some((first, second)) = wait.and_then(|row| row.left.zip(row.right))
            && first != second
        {
            text += &format!(
                "\nIn the second a job waits {} on average, in the first {} ({}).",
                duration(second),
                duration(first),
                change_in_words(second, first)
            );
        }
        text
    }

    /// What was found, from the description of the runs to their events.
    pub(super) fn lines(&self, events: Events) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, left, right) in &self.described_differently {
            lines.push(format!("{name:<11} {left} | {right}"));
        }
        lines.extend(self.sites.lines());
        lines.extend(jobs_lines(&self.jobs));
        match &self.events {
            EventsCompared::Not => lines.push("events      not compared".to_string()),
            EventsCompared::By { order, agreement } => {
                lines.extend(event_lines(*order, agreement));
                lines.extend(
                    agreement.first(*order).into_iter().flat_map(|first| self.parting(first, events)),
                );
            }
        }
        lines.extend(self.not_compared.iter().map(|what| format!("not compared: {what}")));
        lines.extend(self.damaged.iter().map(|what| format!("error: {what}")));
        lines
    }

    fn parting(&self, divergence: &Divergence, written: Events) -> Vec<String> {
        let show = |sign: char, line: &Line| {
            let event = match written {
                Events::AsLogged => serde_json::to_string(&line.event).expect("an event is plain data"),
                Events::InWords => in_words(&line.event, |site| self.sites.name(site).to_string()),
            };
            format!("  {sign} {:>8}  {event}", line.line)
        };
        let mut lines: Vec<String> = divergence.before.iter().map(|line| show('=', line)).collect();
        for (sign, name, events) in [('<', "first", &divergence.left), ('>', "second", &divergence.right)] {
            lines.extend(events.iter().map(|line| show(sign, line)));
            if events.is_empty() {
                lines.push(format!("  {sign}           nothing more in the {name}"));
            }
        }
        lines
    }

    pub(super) fn verdict_line(&self) -> String {
        match self.verdict {
            Verdict::Damaged => "DAMAGED: a directory contradicts itself; see the errors above".to_string(),
            Verdict::Different => "DIFFERENT".to_string(),
            Verdict::Identical => match &self.events {
                EventsCompared::Not => "IDENTICAL job for job; events were not compared".to_string(),
                EventsCompared::By { order, agreement } => format!(
                    "IDENTICAL job for job and event for event{}{}",
                    if *order == Strictness::PerSite { ", site by site" } else { "" },
                    if agreement.messages_compared { "" } else { ", single messages left out" }
                ),
            },
        }
    }
}

fn jobs_lines(jobs: &JobsCompared) -> Vec<String> {
    let agreement = &jobs.agreement;
    let compared = grouped(agreement.compared as u64);
    if jobs.identical() {
        return vec![format!(
            "jobs        all {compared} the same in submission, width, site, start, end and state"
        )];
    }
    let mut lines = vec![format!(
        "jobs        {} of {compared} start at the same site and time, {} at the same site; start differs by at \
         most {}, in the mean by {} (second less first)",
        grouped(agreement.same as u64),
        grouped(agreement.same_site as u64),
        duration(agreement.start_difference_max.as_secs_f64()),
        // In a way that has no -0.
        duration(0.0 - agreement.start_difference_mean_s),
    )];
    let moved = &jobs.moved;
    if let (Some(mean), Some(per_moved)) = (moved.wait_saved_mean_s, moved.wait_saved_all_per_moved_s) {
        lines.push(format!(
            "moved       {} went from one member of the grid to another in the second run; wait saved by each (first less second): {} in the \
             mean, {} waited longer",
            counted(moved.jobs, "job"),
            duration(mean),
            grouped(moved.longer)
        ));
        lines.push(format!(
            "            wait saved by all jobs together: {}, {} per job that moved",
            duration(moved.wait_saved_all_s),
            duration(per_moved)
        ));
    }
    let fields: Vec<String> =
        jobs.differing.iter().map(|(field, count)| format!("{field} {}", grouped(*count))).collect();
    if !fields.is_empty() {
        lines.push(format!("            jobs that differ, by field: {}", fields.join(", ")));
    }
    for differing in &jobs.first {
        let show = |fields: &std::collections::BTreeMap<&'static str, String>| {
            fields.iter().map(|(field, value)| format!("{field} {value}")).collect::<Vec<_>>().join(", ")
        };
        lines.push(format!(
            "            job {}: {} | {}",
            differing.job,
            show(&differing.left),
            show(&differing.right)
        ));
    }
    lines.extend(only("first", &jobs.only_left));
    lines.extend(only("second", &jobs.only_right));
    lines
}

fn only(which: &str, jobs: &Named) -> Option<String> {
    let names: Vec<String> = jobs.first.iter().map(ToString::to_string).collect();
    let more = if jobs.count > NAMED as u64 { ", …" } else { "" };
    (jobs.count > 0).then(|| {
        format!("            {} only in the {which}: {}{more}", counted(jobs.count, "job"), names.join(", "))
    })
}

fn event_lines(order: Strictness, agreement: &EventAgreement) -> Vec<String> {
    let [left, right] = agreement.events.map(grouped);
    if agreement.first(order).is_none() {
        let how = match (order, agreement.instants_reordered) {
            (Strictness::Exact, _) | (Strictness::PerSite, 0) => "in the same order".to_string(),
            (Strictness::PerSite, reordered) => format!(
                "in the same order at each site; sites come in another order at {} instants",
                grouped(reordered)
            ),
        };
        let count = if agreement.messages_compared { format!("all {left}") } else { "all".to_string() };
        return vec![format!("events      {count} the same, {how}")];
    }
    let mut lines = vec![format!("events      {left} | {right}")];
    if agreement.instants_different == 0 {
        lines.push(format!(
            "            the same at each site, in another order of sites at {} instants (--events order-per-site \
             lets that pass)",
            grouped(agreement.instants_reordered)
        ));
    } else {
        lines.push(format!(
            "            {} instants differ, at which {} | {} events have no equal one; {} more are in another \
             order of sites",
            grouped(agreement.instants_different),
            grouped(agreement.differing[0]),
            grouped(agreement.differing[1]),
            grouped(agreement.instants_reordered),
        ));
    }
    lines.push(match order {
        Strictness::Exact => "first difference:".to_string(),
        Strictness::PerSite => "first difference of a site:".to_string(),
    });
    lines
}

/// Fields of events that are sites, and those that are spans of time.
const SITES: [&str; 12] =
    ["to", "from", "by", "origin", "victim", "thief", "owner", "claimant", "host", "peer", "holder", "of"];
const SPANS: [&str; 4] = ["requested", "held", "after", "view_age"];

/// An event as people read it: `0:06:54 aspen: started, job 471, hops 0, processors 4`.
fn in_words(event: &Event, name: impl Fn(SiteId) -> String) -> String {
    let seconds = |micros: f64| micros / 1e6;
    let value = serde_json::to_value(event.kind).expect("an event is plain data");
    let (kind, fields) = match &value {
        Value::Object(kinds) => kinds.iter().next().map(|(kind, fields)| (kind.as_str(), fields)),
        Value::String(kind) => Some((kind.as_str(), &Value::Null)),
        _ => None,
    }
    .unwrap_or_default();
    let field = |(key, value): (&String, &Value)| {
        let text = match value {
            Value::Null => "unknown".to_string(),
            Value::String(text) => text.replace('_', " "),
            Value::Number(number) => {
                let site = number.as_u64().and_then(|number| u32::try_from(number).ok()).map(SiteId);
                match number.as_f64().map(seconds) {
                    Some(span) if SPANS.contains(&key.as_str()) => duration(span),
                    Some(at) if key == "as_of" => clock(at),
                    _ => site.filter(|_| SITES.contains(&key.as_str())).map_or(number.to_string(), &name),
                }
            }
            other => other.to_string(),
        };
        format!(", {} {text}", key.replace('_', " "))
    };
    let none = serde_json::Map::new();
    let fields = fields.as_object().unwrap_or(&none).iter();
    // The job first: it is what one looks for.
    let (job, others): (Vec<_>, Vec<_>) = fields.partition(|(key, _)| *key == "job");
    let fields: String = job.into_iter().chain(others).map(field).collect();
    let at = clock(seconds(event.at.as_micros() as f64));
    format!("{at} {}: {}{fields}", name(event.site), kind.replace('_', " "))
}

/// A row for each metric. Names stand in files of others.
fn csv(metrics: &[MetricRow]) -> String {
    let mut text = "metric,first,second,difference,degradation_first,degradation_second\n".to_string();
    let show = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for row in metrics {
        let degradation = |side: usize| show(row.degradation.map(|degradation| degradation[side]));
        let values = [show(row.left), show(row.right), show(row.difference), degradation(0), degradation(1)];
        text += &format!("{},{}\n", csv_cell::text(&row.name), values.join(","));
    }
    text
}

#[cfg(test)]
mod tests {
    use scheduler::{EventKind, JobId, Span, Time};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_metric_of_others_is_no_formula_and_a_difference_stays_a_number() {
        let of = |value: f64| json!({ "metrics": { "=1+1": value } });
        let rows = metrics::rows(&of(3.0), &of(1.0));
        assert_eq!(csv(&rows).lines().nth(1), Some("'=1+1,3,1,-2,,"));
    }

    #[test]
    fn an_event_in_words_names_sites_and_has_no_microseconds() {
        let said = |kind| {
            let event = Event { at: Time::from_secs(414), site: SiteId(2), kind };
            in_words(&event, |site| format!("site{}", site.0))
        };
        let started = said(EventKind::Started { job: JobId(471), processors: 4, hops: 0 });
        assert_eq!(started, "0:06:54 site2: started, job 471, hops 0, processors 4");
        let submitted = EventKind::Submitted {
            job: JobId(7),
            processors: 1,
            requested: Span::from_secs(90),
            origin: SiteId(3),
        };
        assert_eq!(
            said(submitted),
            "0:06:54 site2: submitted, job 7, origin site3, processors 1, requested 1 min 30 s"
        );
        assert_eq!(said(EventKind::Dismissed {}), "0:06:54 site2: dismissed");
    }
}
