//! Orders of a coordinator in virtual time, and the replies of nodes.

use std::fmt::Debug;

use node::lockstep::wire::{Incoming, put};
use node::lockstep::{Order, Reply};
use scheduler::Grid;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes as orders, or replies, one after the other; the first byte says which, and in which portions they come.
///
/// # Panics
/// If portions matter, or what was read is not what it was written as.
pub fn lockstep(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let portion = 1 + usize::from(first >> 1);
    if first & 1 == 1 {
        read::<Reply>(bytes, portion);
        return;
    }
    let grid = Grid::of_sizes(&[2, 4, 8]).expect("sizes of a grid");
    for order in read::<Order>(bytes, portion) {
        if order.check(&grid).is_ok()
            && let Order::Tell { now, .. } = order
        {
            assert!(protocol::is_time(now), "a time beyond all bounds was taken");
        }
    }
}

fn read<T: Serialize + DeserializeOwned + PartialEq + Debug>(bytes: &[u8], portion: usize) -> Vec<T> {
    let mut incoming = Incoming::default();
    incoming.space().extend_from_slice(bytes);
    let (whole, outcome) = take::<T>(&mut incoming);
    let mut incoming = Incoming::default();
    let (mut portions, mut in_portions) = (Vec::new(), Ok(()));
    for some in bytes.chunks(portion) {
        incoming.space().extend_from_slice(some);
        let (more, outcome) = take::<T>(&mut incoming);
        portions.extend(more);
        in_portions = outcome;
        if in_portions.is_err() {
            break;
        }
    }
    assert_eq!((&whole, outcome), (&portions, in_portions), "portions do not matter");
    let mut written = Vec::new();
    for content in &whole {
        put(&mut written, content).expect("it was short enough to be read");
    }
    // A flag has more than one encoding, so bytes may differ, and what they say may not.
    let mut again = Incoming::default();
    again.space().extend_from_slice(&written);
    assert_eq!(take::<T>(&mut again), (whole, Ok(())), "what was read can be written, and is the same");
    portions
}

/// All that is whole.
fn take<T: DeserializeOwned>(incoming: &mut Incoming) -> (Vec<T>, Result<(), String>) {
    let mut taken = Vec::new();
    loop {
        match incoming.take() {
            Ok(Some(content)) => taken.push(content),
            Ok(None) => return (taken, Ok(())),
            Err(error) => return (taken, Err(error.to_string())),
        }
    }
}
