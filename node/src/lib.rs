//! One site as a process: tokio and libp2p around one [`protocol`] peer. Decides nothing.

mod bytes;
pub mod frame;
pub mod network;
