//! What a simulation is told.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use links::Model;
use protocol::Terms;
use scheduler::{Grid, LocalUsers, Strategy, Submit};

use crate::checks::Checks;
use crate::lateness::Lateness;

/// Everything a simulation is told besides its jobs. The terms of its grid are read and changed as if they were its own.
#[derive(Clone, Debug)]
pub struct SimulationConfig {
    /// What all members are told.
    pub terms: Terms,
    /// Where jobs enter the grid.
    pub submit: Submit,
    /// Jobs that their users submit past a broker.
    pub local_users: LocalUsers,
    /// What links do to messages.
    pub network: Model,
    /// What is asserted.
    pub checks: Checks,
    /// How late ends of jobs and submissions are; `None`: never.
    pub late: Option<Lateness>,
}

impl SimulationConfig {
    /// Free communication, published defaults, cheap checks.
    pub fn new(grid: Arc<Grid>, strategy: Strategy) -> SimulationConfig {
        SimulationConfig::on(Terms::new(grid, strategy))
    }

    /// Free communication and cheap checks.
    pub fn on(terms: Terms) -> SimulationConfig {
        SimulationConfig {
            terms,
            submit: Submit::Home,
            local_users: LocalUsers::default(),
            network: Model::ZERO,
            checks: Checks::Cheap,
            late: None,
        }
    }
}

impl Deref for SimulationConfig {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        &self.terms
    }
}

impl DerefMut for SimulationConfig {
    fn deref_mut(&mut self) -> &mut Terms {
        &mut self.terms
    }
}
