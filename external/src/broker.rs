//! A process that decides where jobs go.

use std::collections::BTreeMap;

use brokers::allocation::Load;
use brokers::external::{BrokerDecider, Question};
use scheduler::event::FallbackCause;
use scheduler::strategy::Count;
use scheduler::{Grid, Time};

use crate::command::Command;
use crate::limits::Limits;
use crate::process::Process;
use crate::wire::{Answer, Line, SCHEMA, put, put_job, quoted, seconds_of_work};

#[derive(Debug)]
pub(crate) struct BrokerProcess {
    process: Process,
    name: String,
    /// By place: names of sites in quotes, and their processors.
    sites: Vec<(String, u32)>,
    places: BTreeMap<String, usize>,
    /// Names of sites in quotes, by number of the site from 1.
    origins: Vec<String>,
}

impl BrokerProcess {
    pub(crate) fn new(command: Command, limits: Limits, grid: &Grid, number: u64) -> BrokerProcess {
        let brokers = grid.brokers();
        let rank = usize::try_from(number).unwrap_or(usize::MAX);
        let name = match rank < brokers {
            true => grid.site(grid.at_rank(rank)).name.clone(),
            false => "broker".to_string(),
        };
        let names = (brokers..grid.len()).map(|rank| grid.site(grid.at_rank(rank)));
        let whom = format!("the broker {name}");
        BrokerProcess {
            process: Process::new(command, limits, whom, "the fallback rule".to_string()),
            name: quoted(&name),
            sites: names.clone().map(|site| (quoted(&site.name), site.processors)).collect(),
            places: names.enumerate().map(|(place, site)| (site.name.clone(), place)).collect(),
            origins: grid.sites().iter().map(|site| quoted(&site.name)).collect(),
        }
    }

    fn begins(&self, line: &mut String, now: Time) {
        let mut line = Line::new(line, now);
        line.event(now, "SIMULATION_BEGINS", |text| {
            put(
                text,
                format_args!(
                    "\"schema\":\"{SCHEMA}\",\"role\":\"broker\",\"name\":{},\"sites\":[",
                    self.name
                ),
            );
            for (place, (name, processors)) in self.sites.iter().enumerate() {
                let comma = if place == 0 { "" } else { "," };
                put(text, format_args!("{comma}{{\"name\":{name},\"processors\":{processors}}}"));
            }
            text.push(']');
        });
        line.end();
    }

    fn question(&self, line: &mut String, question: &Question<'_>) {
        let Question { now, job, sites, admissible } = *question;
        let mut line = Line::new(line, now);
        line.event(now, "JOB_SUBMITTED", |text| {
            put_job(text, job);
            if let Some(origin) = self.origins.get(job.origin.index()) {
                put(text, format_args!(",\"origin\":{origin}"));
            }
            text.push_str(",\"sites\":[");
            let mut comma = "";
            for site in sites {
                let (name, processors) = &self.sites[site.place];
                let is_admissible = admissible.binary_search(&site.place).is_ok();
                put(
                    text,
                    format_args!(
                        "{comma}{{\"name\":{name},\"processors\":{processors},\"admissible\":{is_admissible},\"age\":"
                    ),
                );
                match site.as_of {
                    Some(as_of) => put(text, format_args!("{}", now.since(as_of))),
                    None => text.push_str("null"),
                }
                put_load(text, "load", site.book.load(Count::All));
                put_load(text, "waiting", site.book.load(Count::Waiting));
                put_load(text, "pending", site.book.pending());
                text.push('}');
                comma = ",";
            }
            text.push(']');
        });
        line.end();
    }

    fn understand(&self, line: &[u8], question: &Question<'_>) -> Result<usize, String> {
        let answer = Answer::parse(line)?;
        let mut chosen = None;
        for event in answer.events.iter().filter(|event| !event.is_idle()) {
            if event.kind != "EXECUTE_JOB" {
                return Err(event.refused());
            }
            if event.job()? != question.job.id {
                return Err(format!("job {} was asked about, and it sends another", question.job.id));
            }
            let site = event.data.site.as_deref().ok_or("EXECUTE_JOB names no site")?;
            let place = self.places.get(site).ok_or_else(|| format!("there is no site {site:?}"))?;
            if chosen.replace(*place).is_some() {
                return Err(format!("it sends job {} twice", question.job.id));
            }
        }
        chosen.ok_or_else(|| format!("it sends job {} nowhere", question.job.id))
    }
}

fn put_load(text: &mut String, name: &str, load: Load) {
    let Load { jobs, processors, work } = load;
    let work = seconds_of_work(work);
    put(text, format_args!(",\"{name}\":{{\"jobs\":{jobs},\"processors\":{processors},\"work\":{work}}}"));
}

impl BrokerDecider for BrokerProcess {
    fn choose(&self, question: &Question<'_>) -> Result<usize, FallbackCause> {
        self.process.ask(
            question.now,
            |line| self.begins(line, question.now),
            |line| self.question(line, question),
            |line| self.understand(line, question),
        )
    }

    fn end(&self, reason: &str) {
        self.process.end(reason);
    }
}
