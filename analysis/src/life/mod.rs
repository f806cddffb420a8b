//! The life of one job, told from the events of a run: what happened to it, and why it waited when it did.
//!
//! Between two instants nothing changes, so each such interval of the wait has one [`Cause`], that of [`crate::waits`];
//! equal neighbors are one. Causes are what the events show, not what a site knew: a site can have room for long before
//! news of the job reach it. [`LifeBuilder`] takes the events; `cause` has the words.

mod builder;
mod cause;
#[cfg(test)]
mod tests;

use scheduler::event::RefusalReason;
use scheduler::time::seconds;
use scheduler::{Class, JobId, SiteId, Span, Time};
use serde::Serialize;

pub use builder::LifeBuilder;
pub use cause::{Cause, Note, Reason, Total};

/// Everything that is known of one job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Life {
    /// The job that all this is about.
    pub job: JobId,
    /// Processors that it needs.
    pub processors: u32,
    /// Its requested time.
    #[serde(rename = "requested_s", with = "seconds")]
    pub requested: Span,
    /// Where the user submitted it.
    pub origin: SiteId,
    /// The smallest site that can hold it.
    pub home: Option<SiteId>,
    /// Its class at home.
    pub class: Option<Class>,
    /// When it was submitted.
    #[serde(rename = "submit_s", with = "seconds")]
    pub submit: Time,
    /// When it started; of several executions the one that counts.
    #[serde(rename = "start_s", with = "seconds")]
    pub start: Option<Time>,
    /// Where that was.
    pub site: Option<SiteId>,
    /// Its parts at other sites, if it runs at several at once, in the order in which they start.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// When it ended.
    #[serde(rename = "end_s", with = "seconds")]
    pub end: Option<Time>,
    /// How often it ended by itself: more than once only if it was taken over.
    pub ends: u32,
    /// Changes of site.
    pub hops: u32,
    /// How often a crash interrupted it.
    #[serde(skip_serializing_if = "is_zero")]
    pub interrupted: u32,
    /// How often it was taken over from a site that was gone.
    #[serde(skip_serializing_if = "is_zero")]
    pub taken_over: u32,
    /// Whether it was on nodes that jobs share: what was predicted of its run time is then of idle nodes.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shares_nodes: bool,
    /// What was predicted of its run time, in order; empty if nobody predicts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Predicted>,
    /// When it should have started, by the plan of the queue that started it. None if nobody asked, or that queue has no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<Planned>,
    /// What happened to it, in order.
    pub steps: Vec<Step>,
    /// Why it waited, from submission to start, without gaps.
    pub waits: Vec<Wait>,
    /// The event that let it start when it did, if it waited and the log shows one: it was given to a site where it could start
    /// at once, or another job made room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<Step>,
    /// Requests that its owner refused while it waited there, by thief and reason.
    pub refusals: Vec<Refusals>,
    /// Whether the log has events about single messages. Without them a lost message is not seen.
    pub messages_known: bool,
}

/// A part of a job that runs at several sites at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Where it runs.
    pub site: SiteId,
    /// With how many processors.
    pub processors: u32,
}

/// What somebody predicted of the job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Predicted {
    /// When, in trace time.
    #[serde(rename = "at_s", with = "seconds")]
    pub at: Time,
    /// Who: where it waited or ran, or a broker.
    pub site: SiteId,
    /// How long it was believed to run in all.
    #[serde(rename = "run_time_s", with = "seconds")]
    pub run_time: Span,
    /// How often it had run past a prediction there.
    pub corrections: u32,
}

/// When the job should have started, by what was known when it joined a queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Planned {
    /// When that was, in trace time.
    #[serde(rename = "at_s", with = "seconds")]
    pub at: Time,
    /// Where.
    pub site: SiteId,
    /// The start that was planned if nothing came and all ran for as long as was believed.
    #[serde(rename = "start_s", with = "seconds")]
    pub start: Time,
}

/// Something that happened to the job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// When it happened, in trace time.
    #[serde(rename = "at_s", with = "seconds")]
    pub at: Time,
    /// Line of the event in the log.
    pub line: u64,
    /// The site that the event is of.
    pub site: SiteId,
    /// In words, to read after the time.
    pub text: String,
}

impl Life {
    /// How much later than planned it started; none if there is no plan, or it did not start.
    pub fn later_than_planned(&self) -> Option<Span> {
        Some(self.start?.since(self.planned.as_ref()?.start))
    }

    /// What the site where it started predicted when it joined the queue there, and how often that was corrected. None if nobody
    /// predicts, or it did not start.
    pub fn predicted(&self) -> Option<(Span, u32)> {
        let at = self.site?;
        let there = || self.predictions.iter().filter(|predicted| predicted.site == at);
        let first = there().rfind(|predicted| predicted.corrections == 0)?;
        Some((first.run_time, there().next_back()?.corrections))
    }
}

/// A part of the wait with one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wait {
    /// The first instant of this part.
    #[serde(rename = "from_s", with = "seconds")]
    pub from: Time,
    /// The first instant after this part.
    #[serde(rename = "to_s", with = "seconds")]
    pub to: Time,
    /// Why the job did not start meanwhile.
    #[serde(flatten)]
    pub cause: Cause,
    /// Lines of the log between which nothing changed the cause: the last event before, and the first after.
    pub lines: (u64, u64),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Requests that were refused for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusals {
    /// The site that asked.
    pub thief: SiteId,
    /// Why it got nothing.
    pub reason: RefusalReason,
    /// How many requests were refused for this reason.
    pub count: u64,
    /// How often its offer was too small for this very job.
    pub too_small: u64,
    /// Line of the first refusal.
    pub line: u64,
}

impl Wait {
    /// How long this part of the wait lasted.
    pub fn length(&self) -> Span {
        self.to.since(self.from)
    }
}
