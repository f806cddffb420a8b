//! One site as a process: tokio and libp2p around one [`protocol`] peer. Decides nothing.
