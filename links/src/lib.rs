//! What links do to messages: base delay, jitter, loss, duplication, bandwidth, partitions, and changes over time.
//!
//! One model for simulated and for real sites. [`Model`] says what each directed link does, [`Links`] applies it
//! to one message after the other, and [`Written`] is how people write it down. What happens to a message is a
//! function of the seed, the two sites, its number on that directed link and the time it is sent: in which order
//! different links send changes nothing, so a simulation, a node and a replay agree.
//!
//! Start with [`model`]. Distributions are in [`jitter`], published figures in [`preset`].
//!
//! ```
//! use links::{Links, Model};
//! use scheduler::{SiteId, Span, Time};
//!
//! let written: links::Written = toml::from_str("delay = \"50ms\"\nbandwidth = \"1MB/s\"").unwrap();
//! let model = written.resolve(&["a", "b"], &|_| unreachable!("names no file")).unwrap();
//! let mut links = Links::new(model, 1);
//! let copies = links.send(Time::ZERO, SiteId(1), SiteId(2), 500_000);
//! assert_eq!(copies.first, Some(Span::from_micros(550_000)));
//! assert_eq!(copies.second, None);
//! ```

mod draw;
pub mod jitter;
mod matrix;
pub mod model;
pub mod place;
pub mod preset;
pub mod quantity;
mod sending;
pub mod written;

pub use jitter::Jitter;
pub use model::{Between, Cut, Link, Model, Probability, Properties, Rule};
pub use sending::{Copies, Links};
pub use written::{ModelError, Written};
