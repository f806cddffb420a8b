//! The family of brokers before sites that they neither see into nor control (Costa 2007).
//!
//! A broker gives jobs to sites, up to a cap each, and stays responsible for them: it is their guardian until they end. Of
//! a site it learns what its own jobs tell: when each entered the queue, started and ended. Whoever waits too long there is
//! called back. A job moves by transfers of the ledger in both directions, so it is at one place at any time, and a rule
//! that has it at several is refused where strategies are read.
//!
//! | at the site | Recall | then |
//! |---|---|---|
//! | waits | | the job goes back by a route, which is always accepted |
//! | executes | | refused, with since when |
//! | not here | | refused: it is on its way back, or its end is being told |
//!
//! Each site has local users as well, whose jobs no broker hears of, and a local scheduler of its own choice.

mod desk;
mod memory;
pub(crate) mod message;
mod site;

pub(crate) use self::desk::Desk;
pub(crate) use self::site::Reporter;
