//! The targets by name.

mod config;
pub(crate) mod control;
mod frame;
mod hello;
mod lockstep;
mod message;
mod peer;
mod restore;
mod swf;

pub use config::config;
pub use control::control;
pub use frame::frame;
pub use hello::hello;
pub use lockstep::lockstep;
pub use message::message;
pub use peer::peer;
pub use restore::restore;
pub use swf::swf;

pub(crate) use config::FILE;
pub(crate) use peer::{BROKERS, BROKERS_FROM, STRATEGIES};

/// One reader under arbitrary input.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, that of its corpus and of its binary `fuzz-NAME`.
    pub name: &'static str,
    /// Panics if the reader does not do with these bytes what it must.
    pub run: fn(&[u8]),
}

impl Target {
    /// All of them.
    pub const ALL: [Target; 9] = [
        Target { name: "message", run: message },
        Target { name: "swf", run: swf },
        Target { name: "config", run: config },
        Target { name: "peer", run: peer },
        Target { name: "frame", run: frame },
        Target { name: "hello", run: hello },
        Target { name: "lockstep", run: lockstep },
        Target { name: "control", run: control },
        Target { name: "restore", run: restore },
    ];
}
