//! Metrics of what a node refuses: strangers, offenders, and orders without the token.

use prometheus::{IntCounter, IntCounterVec, Opts, Registry};

use super::series::register;
use crate::control::serve::ControlCounters;
use crate::network::{Counts, Offence, RefusedConnection};

/// The counters; every series starts at 0.
pub(crate) struct Refusals {
    connections: IntCounterVec,
    offences: IntCounterVec,
    bans: IntCounter,
    orders: IntCounterVec,
}

impl Refusals {
    pub(crate) fn new(registry: &Registry) -> Refusals {
        let counters = |name: &str, help: &str, label: &str| {
            register(registry, IntCounterVec::new(Opts::new(name, help), &[label]))
        };
        let refusals = Refusals {
            connections: counters(
                "stealgrid_connections_refused_total",
                "Connections of other nodes that were closed or not let in.",
                "reason",
            ),
            offences: counters(
                "stealgrid_offences_total",
                "What nodes of the grid did that they should not.",
                "kind",
            ),
            bans: register(registry, IntCounter::new("stealgrid_bans_total", "Nodes banned for a time.")),
            orders: counters(
                "stealgrid_control_refused_total",
                "Requests to the control interface without the token of the node.",
                "reason",
            ),
        };
        refusals.show(&Counts::default(), &ControlCounters::default());
        refusals
    }

    /// Shows how often each has happened so far.
    pub(crate) fn show(&self, network: &Counts, control: &ControlCounters) {
        for reason in RefusedConnection::ALL {
            raise(&self.connections.with_label_values(&[reason.name()]), network.refused(reason));
        }
        for offence in Offence::ALL {
            raise(&self.offences.with_label_values(&[offence.name()]), network.offences(offence));
        }
        raise(&self.bans, network.bans());
        for (reason, count) in ControlCounters::REASONS.into_iter().zip(control.unauthorised()) {
            raise(&self.orders.with_label_values(&[reason]), count);
        }
    }
}

/// Lets a counter catch up with what was counted elsewhere.
fn raise(counter: &IntCounter, total: u64) {
    counter.inc_by(total.saturating_sub(counter.get()));
}
