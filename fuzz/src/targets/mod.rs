//! The targets by name.

mod config;
mod message;
mod peer;
mod swf;

pub use config::config;
pub use message::message;
pub use peer::peer;
pub use swf::swf;

pub(crate) use config::FILE;
pub(crate) use peer::STRATEGIES;

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
    pub const ALL: [Target; 4] = [
        Target { name: "message", run: message },
        Target { name: "swf", run: swf },
        Target { name: "config", run: config },
        Target { name: "peer", run: peer },
    ];
}
