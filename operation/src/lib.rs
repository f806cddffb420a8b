//! The operation of a grid of nodes: what starts, feeds, watches and ends the processes of sites.
//!
//! ```text
//!   fleet           all nodes of a run: begun or taken over, told of each other, fed, asked, ended, begun again
//!   spawn, client   one process of them, and the other end of its control interface
//!   registration    processes that came by themselves
//! ```
//! A site, and what it says on its control interface, is the crate `node`; nothing here decides where a job goes.

pub mod client;
pub mod fleet;
pub mod registration;
pub mod spawn;

pub use client::NodeClient;
pub use fleet::Fleet;
pub use spawn::NodeProcess;
