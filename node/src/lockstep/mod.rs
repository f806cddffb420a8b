//! Virtual time over real processes: what a coordinator that is the time authority and a node say to each other.
//!
//! In lockstep a node has no clock. It is told one thing after another, each with its instant, and answers what its
//! peer wants done. Messages between sites go over libp2p at once, as always; the answer names them only. The
//! coordinator says when a message is due, and the receiving node waits until it is there.
//!
//! ```text
//! coordinator --- Tell: a turn ----------> node a --- frame 7 ---> node b (held in its mailbox)
//! coordinator <-- Told: sent 7 to b ------ node a
//! coordinator --- Tell: message 7 of a --------------------------> node b (waits for the frame, if it must)
//! coordinator <-- Told: started job 3 ---------------------------- node b
//! ```
//!
//! Orders travel over a connection of their own: `POST /control/lockstep` on the control interface with
//! `Upgrade: stealgrid-lockstep/4`, then frames of [`wire`]. [`Client`] is the coordinator's end. It needs the
//! token, like every order.

mod client;
mod mailbox;
pub mod wire;

use std::time::Duration;

use protocol::{Input, Output};
use scheduler::event::MessageKind;
use scheduler::{Grid, JobId, JobSpec, SiteId, Span, Time};
use serde::{Deserialize, Serialize};

pub use client::{Client, LinkError};
pub(crate) use mailbox::Mailbox;

/// What both ends must name to talk in lockstep; the number changes with the layout of orders and replies.
pub const UPGRADE: &str = "stealgrid-lockstep/4";

/// What the coordinator orders. Every order is answered by one [`Reply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The first order.
    Begin(Terms),
    /// Tell the peer this, one after the other.
    Tell {
        /// The instant of trace time at which the peer is told.
        now: Time,
        /// What the node must know beforehand.
        notes: Vec<Note>,
        /// What it is told. Whoever submits a job tells its run time in a note.
        inputs: Vec<Input<Due>>,
    },
}

impl Order {
    /// Whether all that it names can be in this grid.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self, grid: &Grid) -> Result<(), String> {
        let Order::Tell { now, notes, inputs } = self else { return Ok(()) };
        let time = |time: Time| match protocol::is_time(time) {
            true => Ok(()),
            false => Err(format!("the time {time} is beyond some 285 years")),
        };
        let site = |site: SiteId| match protocol::is_site_of(grid, site) {
            true => Ok(()),
            false => Err(format!("the grid has no site {site}")),
        };
        time(*now)?;
        for note in notes {
            match *note {
                Note::Lost { at, to, .. } => time(at).and(site(to))?,
                Note::Copies { from, .. } => site(from)?,
                Note::Waits { .. } => {}
                Note::Begins { part, at } => {
                    time(at)?;
                    if !grid.spreads() || !protocol::is_job_of(grid, &part) {
                        return Err(format!("job {} cannot be one in parts of this grid", part.id));
                    }
                }
                Note::RunTime { job, run_time } => {
                    if !(0..=protocol::MICROS_MAX).contains(&run_time.as_micros()) {
                        return Err(format!("job {job} cannot run for {run_time} s"));
                    }
                }
            }
        }
        for input in inputs {
            match *input {
                Input::Submitted(spec) => {
                    if spec.processors == 0 || spec.processors > grid.widest_job() {
                        return Err(format!("no site has the processors of job {}", spec.id));
                    }
                    if !protocol::is_job_of(grid, &spec) {
                        return Err(format!("job {} cannot be one of this grid", spec.id));
                    }
                }
                Input::Message { from, .. } => site(from)?,
                Input::Completed(_) | Input::Turn | Input::Settle | Input::Timeout => {}
                Input::Leave | Input::Adopt { .. } => {
                    return Err("nobody leaves and nobody is gone where time is virtual".to_string());
                }
                Input::Begun(_) | Input::Kept { .. } | Input::Foreign(_) => {
                    return Err("nobody else starts jobs where time is virtual".to_string());
                }
            }
        }
        Ok(())
    }
}

/// How the orders to come are to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Whether replies name the events of single messages. The node records them in any case.
    pub message_events: bool,
    /// How long to wait for a message that is due, on the wall clock.
    pub patience: Duration,
}

/// What a node must know besides what its peer is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// To its sender: a message is lost.
    Lost {
        /// When it was sent.
        at: Time,
        /// The site that will never see it.
        to: SiteId,
        /// What it was.
        kind: MessageKind,
    },
    /// To the site where a job is submitted: how long it will run.
    RunTime {
        /// The job that is submitted.
        job: JobId,
        /// Its true run time, not negative.
        run_time: Span,
    },
    /// To its receiver: a message will be due so many times, where that is not once.
    Copies {
        /// The site that sent the message.
        from: SiteId,
        /// Number of the message on this directed link, from 1.
        number: u64,
        /// How often it will be due; 0 if it is lost.
        copies: u8,
    },
    /// To a site that has just started a part of a job: it waits for the others.
    Waits {
        /// The job.
        job: JobId,
    },
    /// To the same: all have started.
    Begins {
        /// The job with the processors that it has here.
        part: JobSpec,
        /// Since when it executes.
        at: Time,
    },
}

/// A message that is due, as far as the coordinator must know it: its number on this directed link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Due {
    /// Number of the message on this directed link, from 1.
    pub number: u64,
}

/// What a node answers. Events are written field by field, so no field of theirs may be skipped on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Order::Begin`].
    Begun,
    /// One answer for each input, in order.
    Told(Vec<Answer>),
    /// The order cannot be carried out, and no later one can.
    Failed(String),
}

/// What a peer wants after it was told one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What it wants done, in order.
    pub outputs: Vec<Output<Posted>>,
    /// When it wants [`Input::Timeout`].
    pub timeout: Option<Time>,
    /// Whether it wants [`Input::Settle`] at this instant.
    pub settle: bool,
    /// Whether it waits for no answer.
    pub quiet: bool,
}

/// A message that was sent, as far as the coordinator must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posted {
    /// Its number on this directed link, from 1.
    pub number: u64,
    /// What it is.
    pub kind: MessageKind,
    /// Whether its receiver may have something to decide after it.
    pub wakes: bool,
    /// Bytes of jobs that move with it.
    pub payload: u64,
}

#[cfg(test)]
mod tests {
    use scheduler::Labels;
    use scheduler::event::MessageKind;

    use super::*;

    #[test]
    fn an_order_that_names_what_cannot_be_is_refused_in_words() {
        let grid = Grid::of_sizes(&[2, 4]).unwrap();
        let spec = JobSpec {
            id: JobId(1),
            submit: Time::ZERO,
            processors: 2,
            requested: Span::from_secs(9),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        };
        let tell = |now, notes: &[Note], inputs: &[Input<Due>]| {
            Order::Tell { now, notes: notes.to_vec(), inputs: inputs.to_vec() }.check(&grid)
        };
        let (zero, beyond) = (Time::ZERO, Time::from_micros(protocol::MICROS_MAX + 1));
        let good = [
            Input::Submitted(spec),
            Input::Message { from: SiteId(2), message: Due { number: 1 } },
            Input::Turn,
        ];
        assert_eq!(tell(zero, &[Note::Copies { from: SiteId(1), number: 1, copies: 2 }], &good), Ok(()));

        let wide = JobSpec { processors: 5, ..spec };
        let late = JobSpec { submit: beyond, ..spec };
        let endless = Note::RunTime { job: JobId(1), run_time: Span::from_micros(-1) };
        let kind = MessageKind::Grant;
        for (refused, reason) in [
            (tell(beyond, &[], &[]), "the time"),
            (tell(zero, &[], &[Input::Message { from: SiteId(3), message: Due { number: 1 } }]), "no site 3"),
            (tell(zero, &[Note::Copies { from: SiteId(0), number: 1, copies: 2 }], &[]), "no site 0"),
            (tell(zero, &[Note::Lost { at: beyond, to: SiteId(1), kind }], &[]), "the time"),
            (tell(zero, &[], &[Input::Submitted(wide)]), "no site has the processors of job 1"),
            (tell(zero, &[], &[Input::Submitted(late)]), "job 1 cannot be one of this grid"),
            (tell(zero, &[endless], &[]), "job 1 cannot run for"),
            (tell(zero, &[Note::Begins { part: spec, at: zero }], &[]), "job 1 cannot be one in parts"),
            (tell(zero, &[], &[Input::Leave]), "nobody leaves"),
        ] {
            let error = refused.unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
