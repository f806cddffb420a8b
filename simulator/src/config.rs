//! What a simulation is told.

use std::sync::Arc;

use links::Model;
use protocol::Options;
use scheduler::{External, Grid, LocalScheduler, LocalUsers, Pass, Strategy, Submit};

use crate::checks::Checks;
use crate::lateness::Lateness;

/// Everything a simulation is told besides its jobs.
#[derive(Clone, Debug)]
pub struct SimulationConfig {
    /// The sites, and members without processors.
    pub grid: Arc<Grid>,
    /// How jobs find a site.
    pub strategy: Strategy,
    /// The scheduler of local queues, for [`Strategy::Local`].
    pub local: LocalScheduler,
    /// When local schedulers decide.
    pub pass: Pass,
    /// Where jobs enter the grid.
    pub submit: Submit,
    /// Jobs that their users submit past a broker.
    pub local_users: LocalUsers,
    /// Switches and limits of the protocol.
    pub options: Options,
    /// What links do to messages.
    pub network: Model,
    /// The seed of everything random.
    pub seed: u64,
    /// What is asserted.
    pub checks: Checks,
    /// How late ends of jobs and submissions are; `None`: never.
    pub late: Option<Lateness>,
    /// Who decides elsewhere, if somebody does.
    pub external: Option<Arc<dyn External>>,
}

impl SimulationConfig {
    /// Free communication, published defaults, cheap checks.
    pub fn new(grid: Arc<Grid>, strategy: Strategy) -> SimulationConfig {
        SimulationConfig {
            grid,
            strategy,
            local: LocalScheduler::default(),
            pass: Pass::default(),
            submit: Submit::Home,
            local_users: LocalUsers::default(),
            options: Options::default(),
            network: Model::ZERO,
            seed: 1,
            checks: Checks::Cheap,
            late: None,
            external: None,
        }
    }
}
