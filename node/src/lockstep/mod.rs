//! Virtual time over real processes: what a coordinator that is the time authority and a node say to each other.
//!
//! In lockstep a node has no clock. It is told one fact after another, each with its instant, and answers what its
//! peer wants done. Messages between sites go over libp2p at once, as always; the answer names them only. The
//! coordinator says when a message is due, and the receiving node waits until it is there.
//!
//! ```text
//! coordinator --- Tell: a turn ----------> node a --- frame 7 ---> node b (held in its mailbox)
//! coordinator <-- Told: sent 7 to b ------ node a
//! coordinator --- Tell: letter 7 of a ---------------------------> node b (waits for the frame, if it must)
//! coordinator <-- Told: started job 3 ---------------------------- node b
//! ```
//!
//! Orders travel over a connection of their own: `POST /control/lockstep` on the control interface with
//! `Upgrade: stealgrid-lockstep/1`, then frames of [`wire`]. [`Client`] is the coordinator's end. It needs the
//! token, like every order.

mod client;
mod mailbox;
pub mod wire;

use std::time::Duration;

use scheduler::event::MessageKind;
use scheduler::{EventKind, Grid, JobId, SiteId, Time, TimedJob};
use serde::{Deserialize, Serialize};

pub use client::{Client, LinkError};
pub(crate) use mailbox::Mailbox;

/// What both ends must name to talk in lockstep; the number changes with the layout of orders and replies.
pub const UPGRADE: &str = "stealgrid-lockstep/1";

/// What the coordinator orders. Every order is answered by one [`Reply`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The first order.
    Begin(Terms),
    /// Tell the peer these facts, one after the other.
    Tell {
        /// The instant.
        now: Time,
        /// What became of letters since the last order.
        notes: Vec<Note>,
        /// The facts.
        facts: Vec<Fact>,
    },
}

impl Order {
    /// Whether all that it names can be in this grid.
    ///
    /// # Errors
    /// What cannot be.
    pub fn check(&self, grid: &Grid) -> Result<(), String> {
        let Order::Tell { now, notes, facts } = self else { return Ok(()) };
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
            }
        }
        for fact in facts {
            match *fact {
                Fact::Submitted(TimedJob { spec, run_time }) => {
                    if spec.processors == 0 || spec.processors > grid.widest() {
                        return Err(format!("no site has the processors of job {}", spec.id));
                    }
                    let run_time = (0..=protocol::MICROS_MAX).contains(&run_time.as_micros());
                    if !protocol::is_job_of(grid, &spec) || !run_time {
                        return Err(format!("job {} cannot be one of this grid", spec.id));
                    }
                }
                Fact::Letter { from, .. } => site(from)?,
                Fact::Completed(_) | Fact::Turn | Fact::Settle | Fact::Timeout => {}
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
    /// How long to wait for a letter that is due, on the wall clock.
    pub patience: Duration,
}

/// What the modelled network did to a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// To its sender: it is lost.
    Lost {
        /// When it was sent.
        at: Time,
        /// The site that will never see it.
        to: SiteId,
        /// What it was.
        kind: MessageKind,
    },
    /// To its receiver: it will be due so many times, where that is not once.
    Copies {
        /// The sender.
        from: SiteId,
        /// Its number.
        number: u64,
        /// How often.
        copies: u8,
    },
}

/// Something the peer is told. See `protocol::Input`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// A user submitted a job here.
    Submitted(TimedJob),
    /// A job that runs here ended.
    Completed(JobId),
    /// A letter is due.
    Letter {
        /// The sender.
        from: SiteId,
        /// Its number on this directed link.
        number: u64,
    },
    /// All facts of this instant are in: decide.
    Turn,
    /// Nothing is under way at this instant: decide what was put off until then.
    Settle,
    /// The time that the peer asked for has come.
    Timeout,
}

/// What a node answers. Events are written field by field, so no field of theirs may be skipped on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// To [`Order::Begin`].
    Begun,
    /// One answer for each fact, in order.
    Told(Vec<Answer>),
    /// The order cannot be carried out, and no later one can.
    Failed(String),
}

/// What a peer wants after it was told one fact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// What it wants done, in order.
    pub wishes: Vec<Wish>,
    /// When it wants [`Fact::Timeout`].
    pub timeout: Option<Time>,
    /// Whether it wants [`Fact::Settle`] at this instant.
    pub settle: bool,
    /// Whether it waits for no answer.
    pub quiet: bool,
}

/// One thing that a peer wants done. See `protocol::Output`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wish {
    /// It began to execute a job.
    Start(JobId),
    /// A letter is on its way to another site.
    Send(Letter),
    /// Something to remember.
    Event(EventKind),
}

/// A message that was sent, as far as the coordinator must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Letter {
    /// Its receiver.
    pub to: SiteId,
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
    use scheduler::{JobSpec, Span};

    use super::*;

    #[test]
    fn an_order_that_names_what_cannot_be_is_refused_in_words() {
        let grid = Grid::of_sizes(&[2, 4]).unwrap();
        let spec = JobSpec {
            id: JobId(1),
            submit: Time::ZERO,
            processors: 2,
            requested: Span::from_secs(9),
            user: -1,
            origin: SiteId(1),
            payload: 0,
        };
        let job = TimedJob { spec, run_time: Span::from_secs(5) };
        let tell = |now, notes: &[Note], facts: &[Fact]| {
            Order::Tell { now, notes: notes.to_vec(), facts: facts.to_vec() }.check(&grid)
        };
        let (zero, beyond) = (Time::ZERO, Time::from_micros(protocol::MICROS_MAX + 1));
        let good = [Fact::Submitted(job), Fact::Letter { from: SiteId(2), number: 1 }, Fact::Turn];
        assert_eq!(tell(zero, &[Note::Copies { from: SiteId(1), number: 1, copies: 2 }], &good), Ok(()));

        let wide = TimedJob { spec: JobSpec { processors: 5, ..spec }, ..job };
        let late = TimedJob { spec: JobSpec { submit: beyond, ..spec }, ..job };
        let kind = MessageKind::Grant;
        for (refused, reason) in [
            (tell(beyond, &[], &[]), "the time"),
            (tell(zero, &[], &[Fact::Letter { from: SiteId(3), number: 1 }]), "no site 3"),
            (tell(zero, &[Note::Copies { from: SiteId(0), number: 1, copies: 2 }], &[]), "no site 0"),
            (tell(zero, &[Note::Lost { at: beyond, to: SiteId(1), kind }], &[]), "the time"),
            (tell(zero, &[], &[Fact::Submitted(wide)]), "no site has the processors of job 1"),
            (tell(zero, &[], &[Fact::Submitted(late)]), "job 1 cannot be one of this grid"),
        ] {
            let error = refused.unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
