//! Ideal references: brokers with a global view and no messages. Those of other strategies are in [`scheduler::ideal`].

mod broker;
mod dispatched;

pub use broker::Brokered;
pub use dispatched::{Dispatched, Executed, Outage, World};
