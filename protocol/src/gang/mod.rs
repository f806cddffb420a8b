//! Starting a job in parts at several sites: all of them or none, whatever the network does and whoever crashes.
//!
//! Two-phase commit with presumed abort (Mohan, Lindsay, Obermarck, *Transaction management in the R\* distributed database
//! management system*, ACM TODS 11(4), 1986), over parts that hold processors. [`Decisions`] is what a broker must not forget, [`Parts`] what a
//! site must not; neither knows queues, clocks or how messages travel. The desk and the sites of brokers that spread jobs use them
//! (`broker/gangs.rs`, `broker/parts.rs`).
//!
//! | broker, attempt n | event | then |
//! | --- | --- | --- |
//! | none | a job is to be spread | preparing n, kept nowhere; send Prepare n to all its sites |
//! | preparing | Ready of all | write the decision, send Commit n to all |
//! | preparing | Refused, Over or out of patience | forget n, send Abort n to all |
//! | decided | Ready | send Commit n again |
//! | decided | Over: a part was lost | write broken, send Abort n to the others |
//! | decided, broken | Ready | send Abort n |
//! | decided | Over of all | forget n: the job has ended, or waits again |
//! | none | Ready | send Abort n: what nobody decided never starts |
//!
//! | site, attempt n | event | then |
//! | --- | --- | --- |
//! | none | Prepare | hold the processors, write it, send Ready; or send Refused if they are not free, or the job was taken over |
//! | held | any length of silence | send Ready again; **never give up** |
//! | held | Commit | write it, start |
//! | held, or runs | Abort, or the job is taken over under a newer epoch | free the processors, write over, send Over |
//! | runs | the end, or a crash | write over, send Over |
//! | over | anything | send Over again |
//! | below the floor | anything | nothing: settled |
//! | another one of the same number | Prepare | send Refused |
//! | another one of the same number | Commit, Abort | nothing |

mod decisions;
mod parts;

use scheduler::JobId;
use serde::{Deserialize, Serialize};

pub use decisions::{Decision, Decisions, Settled};
pub use parts::{Effect, Part, Parts};

/// One attempt to start a job in parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// The job.
    pub job: JobId,
    /// The take-overs of the job that the broker knew of.
    pub epoch: u32,
    /// Counts the attempts of the broker. A later incarnation begins above all of an earlier one.
    pub number: u64,
}

/// What a broker says of an attempt to a site that has a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// Keep so many processors for it.
    Prepare {
        /// Processors of the part.
        processors: u32,
        /// All attempts of this broker below are settled.
        floor: u64,
    },
    /// All are ready: start.
    Commit,
    /// It does not start, or not go on.
    Abort,
}

/// What a site says of its part of an attempt to the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reply {
    /// The processors are kept. Also the question what becomes of it.
    Ready,
    /// They are not free.
    Refused,
    /// The part is over, and its processors are free.
    Over {
        /// Whether it ran to its end; else it never started, was stopped, or was lost in a crash.
        ended: bool,
    },
}
