//! Exit codes of a node. The first ones are those of every command of Stealgrid.

/// Stopped because it was told to.
pub const DONE: u8 = 0;
/// Something failed that should not.
pub const UNEXPECTED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// The configuration or the identity file is unreadable or contradicts itself.
pub const INPUT: u8 = 3;
/// An address cannot be listened on, because it is in use or not one of this machine.
pub const ADDRESS: u8 = 6;
/// The data directory is in use by another node.
pub const JOURNAL_IN_USE: u8 = 7;
/// The data directory belongs to another run, site or grid.
pub const JOURNAL_FOREIGN: u8 = 8;
/// The journal is damaged.
pub const JOURNAL_DAMAGED: u8 = 9;
/// There is no room for the journal.
pub const JOURNAL_FULL: u8 = 10;
/// No coordinator has asked anything for as long as the node was to wait for one.
pub const ORPHANED: u8 = 11;
/// No coordinator said which site the node is.
pub const UNREGISTERED: u8 = 12;
