//! Ideal references: every decentralised algorithm as the paper states it, with a global view and no messages.
//!
//! Each type is a [`Policy`](crate::Policy) over a whole [`Grid`](crate::Grid). One instant: facts first, then passes over the
//! sites in ascending rank, each site starting jobs of its list until none can, repeated until a whole pass
//! starts nothing. Start with [`StatelessSteal`] for ST_x; [`definition`] is the same thing said with sets and
//! [`invariants`] what must hold after every instant. The protocol with messages lives in another crate.

pub mod closed_form;
mod common_pool;
pub mod definition;
mod greedy;
mod homes;
pub mod invariants;
mod machines;
mod pool;
mod select;
mod stateful;
mod stateless;

pub use common_pool::CommonPool;
pub use greedy::GreedySteal;
pub use homes::View;
pub use pool::PoolExchange;
pub use select::pick_for;
pub use stateful::StatefulSteal;
pub use stateless::StatelessSteal;

use crate::class::Order;

/// The three sets a site takes its list from before it takes anything a smaller site may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Set {
    /// Big own work.
    A,
    /// Big work of the list of the next smaller site.
    H,
    /// Small own work.
    B,
}

/// The sets in the order in which the first non-empty one becomes the list.
fn sequence(order: Order) -> [Set; 3] {
    match order {
        Order::Ahb => [Set::A, Set::H, Set::B],
        Order::Abh => [Set::A, Set::B, Set::H],
        Order::Bah => [Set::B, Set::A, Set::H],
        Order::Hab => [Set::H, Set::A, Set::B],
        Order::Hba => [Set::H, Set::B, Set::A],
        Order::Bha => [Set::B, Set::H, Set::A],
    }
}
