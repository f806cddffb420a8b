//! Nodes that nobody started: a process asks a coordinator which site it is, is told its whole configuration, and says
//! when it is up. For containers, and for machines of their own.
//!
//! ```text
//!   node                                  coordinator
//!   POST /register        Asking    ->    its desk remembers it
//!                         <-  Answer::Wait, until every site has asked, then Answer::Be(configuration)
//!   POST /register/ready  Ready     ->    from now on as if it had started the node itself
//! ```
//!
//! Both requests show the token that the nodes obey. A process that ends and restarts asks again, by the same
//! instance and under another process number, and is told the same. The end of the coordinator is in `operation`.

mod api;
pub mod ask;

pub use self::api::{Answer, Asking, Ready};
