//! Strategies that are processes of the user, in any language: a line of JSON in, a line of JSON out, for each decision.
//!
//! [`Settings`] say which command decides what, and within which [`Limits`]; [`Settings::external`] makes of them what
//! schedulers ask ([`brokers::External`]). Each broker and each site has a process of its own, which begins with the first
//! question. What a process breaks ends it, is said on stderr, and the fallback decides from then on: that is the
//! schedulers' part. The lines are those of `docs/EXTERNAL.md`.
//!
//! No strategy is here, and nothing that jobs run: those that are commands are in the crate `node`.
//!
//! ```
//! use external::{Command, Settings};
//!
//! let command = Command::parse("python3 'my broker.py' --fast").unwrap();
//! let settings = Settings { broker: Some(command), ..Settings::default() };
//! assert_eq!(settings.commands().count(), 1);
//! assert!(settings.external().is_some(), "a process begins with the first question, and none yet");
//!
//! let error = Command::parse("python3 'my broker.py").unwrap_err();
//! assert!(error.to_string().contains("not closed"));
//! ```

mod broker;
mod command;
mod limits;
mod patience;
mod process;
mod queue;
mod remains;
mod stderr;
mod wire;

use std::sync::Arc;

use brokers::External;
use brokers::external::BrokerDecider;
use scheduler::local::QueueDecider;
use scheduler::{Grid, LocalScheduler, SiteId};
use serde::{Deserialize, Serialize};

pub use command::{Command, CommandError};
pub use limits::Limits;
pub use wire::SCHEMA;

/// A command for local queues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSettings {
    /// Decides what starts.
    pub command: Command,
    /// Decides once the command does not.
    pub fallback: LocalScheduler,
}

/// Which commands decide what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Of brokers. What decides once it does not is one of their rules.
    #[serde(default)]
    pub broker: Option<Command>,
    /// Of local queues.
    #[serde(default)]
    pub queue: Option<QueueSettings>,
    /// The same for all.
    #[serde(default)]
    pub limits: Limits,
}

impl Settings {
    /// Whether nobody is asked.
    pub fn is_none(&self) -> bool {
        self.broker.is_none() && self.queue.is_none()
    }

    /// The commands, each once for what it decides.
    pub fn commands(&self) -> impl Iterator<Item = &Command> {
        self.broker.iter().chain(self.queue.iter().map(|queue| &queue.command))
    }

    /// What schedulers ask; none if nobody is to be asked.
    pub fn external(&self) -> Option<Arc<dyn External>> {
        (!self.is_none()).then(|| Arc::new(self.clone()) as Arc<dyn External>)
    }
}

/// What is asked without a command: it ends at once.
fn none() -> Command {
    Command::nothing()
}

impl External for Settings {
    fn broker(&self, grid: &Grid, number: u64) -> Arc<dyn BrokerDecider> {
        let command = self.broker.clone().unwrap_or_else(none);
        Arc::new(broker::BrokerProcess::new(command, self.limits, grid, number))
    }

    fn queue(&self, grid: &Grid, site: SiteId) -> Arc<dyn QueueDecider> {
        let QueueSettings { command, fallback } = self
            .queue
            .clone()
            .unwrap_or_else(|| QueueSettings { command: none(), fallback: LocalScheduler::Easy });
        Arc::new(queue::QueueProcess::new(command, fallback, self.limits, grid, site))
    }
}
