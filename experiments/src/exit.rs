//! Exit codes of every command.

/// Done, and within tolerance where there is one.
pub const DONE: u8 = 0;
/// Something failed that should not.
pub const UNEXPECTED: u8 = 1;
/// The command line is wrong.
pub const USAGE: u8 = 2;
/// An input file is unreadable or contradicts itself.
pub const INPUT: u8 = 3;
/// The run stopped before its end; what was computed is kept and marked as partial. Or not all that happened could be written. Or
/// a page was made of a sweep in which runs failed or are missing.
pub const INCOMPLETE: u8 = 4;
/// The run is complete, but a checked bound or tolerance does not hold; or two runs that were compared differ.
pub const OUT_OF_TOLERANCE: u8 = 5;
/// The run is complete and its results are kept, but this machine could not keep to the injected delays, so that it is
/// neither right nor wrong; or this was clear before the clocks started, and nothing was run.
pub const NOT_MEASURED: u8 = 6;
/// The run is complete and its results are kept, but an external strategy failed, and its fallback decided from then on.
pub const FELL_BACK: u8 = 7;
/// Nobody reads any more what a command prints line by line, as after `| head`: what shells tell of other programs that a closed pipe ends.
pub const UNREAD: u8 = 141;
