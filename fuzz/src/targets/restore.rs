//! A journal of any content: it is refused as damaged, or a peer goes on with it.

use node::doors::saved;
use protocol::handover::Ledger;

use super::peer::{World, config_of};

/// Bytes as the changes that a journal consists of; the first seven say grid, site, strategy and options, as in `peer`.
///
/// # Panics
/// If what is not refused breaks the peer, or the peer writes what would be refused.
pub fn restore(bytes: &[u8]) {
    let Some((first, changes)) = bytes.split_first_chunk::<7>() else { return };
    let Ok(saved) = saved(changes) else { return };
    let ledger = &saved.durable.ledger;
    assert_eq!(Ledger::from_entries(ledger.entries()).as_ref(), Ok(ledger), "lines say all of a ledger");
    let mut config = config_of(first);
    config.options.journal = true;
    if saved.check(&config).is_err() {
        return;
    }
    let mut world = World::restored(config, saved.durable);
    world.work();
    world.crash();
    world.work();
}
