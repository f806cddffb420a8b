//! The coordinator's end of registration: the list of processes that asked to be sites, and where they ask. What is said is in
//! [`node::registration`].

mod desk;
mod server;

pub use self::desk::{Applicant, Desk, Registered};
pub use self::server::{BODY_BYTES_MAX, routes};
