//! Nodes that nobody started: a process asks a coordinator which site it is, is told its whole configuration, and says
//! when it is up. For containers, and for machines of their own.
//!
//! ```text
//!   node                                  coordinator
//!   POST /register        Asking    ->    [`Desk`]: remembers it
//!                         <-  Answer::Wait, until every site has asked, then Answer::Be(configuration)
//!   POST /register/ready  Ready     ->    from now on as if it had started the node itself
//! ```
//!
//! Both requests show the token that the nodes obey. A process that ends and begins again asks again, by the same
//! instance and under another process number, and is told the same.

mod api;
pub mod ask;
mod desk;
mod server;

pub use self::api::{Answer, Asking, Ready};
pub use self::desk::{Applicant, Desk, Registered};
pub use self::server::{BODY_BYTES_MAX, routes};
