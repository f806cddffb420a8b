//! Who knows whom in a grid that is too large for everybody to know everybody, and how news gets around there.
//!
//! [`Membership`] keeps a bounded view of the grid (HyParView), [`Broadcast`] tells everybody something over it along a tree
//! that mends itself (Plumtree), [`lifeline`] says who is whose lifeline where ranks are known, and [`settled`]
//! what views are after a while. Machines without
//! input or output: they are told what happened and when, and say what is to be sent. Ids of peers, and what contacts tell of
//! a peer, are whatever the caller has.
//!
//! ```
//! use overlay::{Contact, Input, Membership, Message, Options, Output};
//! use rand::SeedableRng as _;
//! use scheduler::Time;
//!
//! let contact = |peer, processors| Contact { peer, edition: 1, about: processors };
//! let rng = rand::rngs::StdRng::seed_from_u64(1);
//! let mut site = Membership::new(Time::ZERO, contact("a", 64), Options::default(), rng);
//! site.handle(Time::ZERO, Input::Join(vec!["b"]));
//! assert_eq!(site.poll_output(), Some(Output::Send { to: "b", message: Message::Join(contact("a", 64)) }));
//! let message = Message::Linked(contact("b", 128));
//! site.handle(Time::from_secs(1), Input::Message { from: "b", message });
//! assert_eq!(site.poll_output(), Some(Output::Up(contact("b", 128))));
//! assert_eq!(site.known(&"b").map(|contact| contact.about), Some(128));
//! ```

pub mod broadcast;
mod contact;
pub mod lifeline;
pub mod membership;
pub mod settled;
mod view;

pub use broadcast::Broadcast;
pub use contact::Contact;
pub use membership::{Input, Membership, Message, Options, Output, Priority};
