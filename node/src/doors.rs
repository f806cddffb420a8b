//! The ways in for bytes of others, without sockets and files: what `fuzz/` gives arbitrary bytes to. See
//! `docs/FUZZING.md`. Other ways in are public by themselves: [`crate::frame`], [`crate::lockstep`], [`crate::control`].

pub use crate::journal::doors::{changes, saved};
pub use crate::network::doors::{
    Piece, Stream, answer, hello, is_address, put, put_hello, put_request, request,
};
