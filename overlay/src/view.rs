//! Contacts in order of their ids, so that a drawn one is the same in every run. Knows no limit: whoever has a view keeps it.

use rand::seq::index;
use rand::{Rng, RngExt as _};

use crate::contact::Contact;

/// A few contacts, at most one for each peer.
#[derive(Clone, Debug)]
pub(crate) struct View<I, A> {
    /// By peer. A view is so small that moving its rest costs less than a tree does.
    contacts: Vec<Contact<I, A>>,
}

impl<I, A> Default for View<I, A> {
    fn default() -> View<I, A> {
        View { contacts: Vec::new() }
    }
}

impl<I: Ord + Clone, A: Clone> View<I, A> {
    pub(crate) fn len(&self) -> usize {
        self.contacts.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.contacts.is_empty()
    }

    pub(crate) fn contacts(&self) -> &[Contact<I, A>] {
        &self.contacts
    }

    pub(crate) fn get(&self, peer: &I) -> Option<&Contact<I, A>> {
        self.place(peer).ok().map(|place| &self.contacts[place])
    }

    pub(crate) fn has(&self, peer: &I) -> bool {
        self.place(peer).is_ok()
    }

    /// Adds a contact, or replaces that of the same peer if this one is newer. Whether anything changed.
    pub(crate) fn insert(&mut self, contact: Contact<I, A>) -> bool {
        match self.place(&contact.peer) {
            Ok(place) if !contact.is_newer_than(&self.contacts[place]) => return false,
            Ok(place) => self.contacts[place] = contact,
            Err(place) => self.contacts.insert(place, contact),
        }
        true
    }

    pub(crate) fn remove(&mut self, peer: &I) -> Option<Contact<I, A>> {
        self.place(peer).ok().map(|place| self.contacts.remove(place))
    }

    /// One of those that pass, each with the same chance.
    pub(crate) fn draw(&self, rng: &mut impl Rng, passes: impl Fn(&I) -> bool) -> Option<&Contact<I, A>> {
        let count = self.contacts.iter().filter(|contact| passes(&contact.peer)).count();
        let drawn = (count > 0).then(|| rng.random_range(0..count))?;
        self.contacts.iter().filter(|contact| passes(&contact.peer)).nth(drawn)
    }

    /// So many different ones, or all if there are fewer, each set of them with the same chance.
    pub(crate) fn sample(&self, rng: &mut impl Rng, count: usize) -> Vec<Contact<I, A>> {
        let drawn = index::sample(rng, self.len(), count.min(self.len()));
        drawn.into_iter().map(|place| self.contacts[place].clone()).collect()
    }

    fn place(&self, peer: &I) -> Result<usize, usize> {
        self.contacts.binary_search_by(|contact| contact.peer.cmp(peer))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    fn contact(peer: u32, edition: u64) -> Contact<u32, u64> {
        Contact { peer, edition, about: edition * 10 }
    }

    fn of(peers: impl IntoIterator<Item = u32>) -> View<u32, u64> {
        let mut view = View::default();
        for peer in peers {
            assert!(view.insert(contact(peer, 1)));
        }
        view
    }

    #[test]
    fn an_older_contact_does_not_replace_a_newer_one() {
        let mut view = of([7]);
        assert!(view.insert(contact(7, 3)));
        assert!(!view.insert(contact(7, 2)));
        assert!(!view.insert(contact(7, 3)));
        assert_eq!(view.get(&7).map(|contact| contact.about), Some(30));
        assert_eq!(view.len(), 1);
    }

    #[test]
    fn contacts_are_in_order_whatever_the_order_in_which_they_came() {
        let view = of([5, 1, 4, 2, 3]);
        let peers: Vec<u32> = view.contacts().iter().map(|contact| contact.peer).collect();
        assert_eq!(peers, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn each_that_passes_is_drawn_as_often_and_no_other_ever() {
        let view = of(0..10);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut often: BTreeMap<u32, u32> = BTreeMap::new();
        for _ in 0..5_000 {
            let drawn = view.draw(&mut rng, |peer| peer % 2 == 0).expect("some pass");
            *often.entry(drawn.peer).or_default() += 1;
        }
        assert_eq!(often.keys().copied().collect::<Vec<_>>(), [0, 2, 4, 6, 8]);
        // 1,000 each is expected, with a deviation of 28.
        assert!(often.values().all(|&times| (880..1_120).contains(&times)), "{often:?}");
        assert!(view.draw(&mut rng, |_| false).is_none());
    }

    #[test]
    fn a_sample_has_no_peer_twice_and_as_many_as_there_are() {
        let view = of(0..10);
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for count in [0, 3, 10, 20] {
            let mut peers: Vec<u32> =
                view.sample(&mut rng, count).into_iter().map(|contact| contact.peer).collect();
            peers.sort_unstable();
            peers.dedup();
            assert_eq!(peers.len(), count.min(10));
        }
    }
}
