//! Events of many nodes in one order: by time, then site, then the order of the site.
//!
//! Nodes are asked one after another while trace time goes on, so events are held back until no node can have an
//! earlier one.

use scheduler::{Event, Time};

/// Events that were fetched and not passed on.
#[derive(Debug)]
pub struct Merge {
    /// By site, each in its order, which is one of time.
    held: Vec<Vec<Event>>,
}

impl Merge {
    /// For so many sites.
    pub fn new(sites: usize) -> Merge {
        Merge { held: vec![Vec::new(); sites] }
    }

    /// Takes the next event of its site.
    ///
    /// # Panics
    /// If it is earlier than the one before: then the clock of the site ran backwards.
    pub fn push(&mut self, event: Event) {
        let held = &mut self.held[event.site.index()];
        assert!(
            held.last().is_none_or(|last| last.at <= event.at),
            "the clock of site {} ran backwards",
            event.site
        );
        held.push(event);
    }

    /// Passes on all events before `time`, of which every site's are known.
    pub fn release(&mut self, time: Time, sink: &mut impl FnMut(&Event)) {
        let mut batch = Vec::new();
        for held in &mut self.held {
            let known = held.partition_point(|event| event.at < time);
            batch.extend(held.drain(..known));
        }
        // Stable, and the sites come in order.
        batch.sort_by_key(|event| event.at);
        batch.iter().for_each(sink);
    }

    /// Passes on everything: no more events will come.
    pub fn finish(&mut self, sink: &mut impl FnMut(&Event)) {
        self.release(Time::MAX, sink);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use scheduler::{EventKind, JobId, SiteId};

    use super::*;

    fn event(site: u32, at: i64, number: u64) -> Event {
        let kind = EventKind::Completed { job: JobId(number), processors: 1 };
        Event { at: Time::from_secs(at), site: SiteId(site), kind }
    }

    #[test]
    fn nothing_is_passed_on_that_another_site_could_precede() {
        let mut merge = Merge::new(2);
        let mut passed = Vec::new();
        merge.push(event(1, 5, 1));
        merge.push(event(1, 9, 2));
        merge.release(Time::from_secs(5), &mut |event| passed.push(*event));
        assert_eq!(passed, []);

        merge.push(event(2, 7, 3));
        merge.release(Time::from_secs(8), &mut |event| passed.push(*event));
        assert_eq!(passed, [event(1, 5, 1), event(2, 7, 3)]);
    }

    proptest! {
        /// However the events come in pages, the order is that of sorting all of them at the end.
        #[test]
        fn pages_change_nothing(steps in prop::collection::vec((1u32..4, 0i64..5, any::<bool>()), 0..60)) {
            let mut clock = [0; 4];
            let mut merge = Merge::new(3);
            let (mut passed, mut all) = (Vec::new(), Vec::new());
            for (number, (site, step, look)) in steps.into_iter().enumerate() {
                clock[site as usize] += step;
                let event = event(site, clock[site as usize], number as u64);
                merge.push(event);
                all.push(event);
                if look {
                    let known = clock[1..].iter().min().copied().unwrap_or(0);
                    merge.release(Time::from_secs(known), &mut |event| passed.push(*event));
                }
            }
            merge.finish(&mut |event| passed.push(*event));
            all.sort_by_key(|event| (event.at, event.site));
            prop_assert_eq!(passed, all);
        }
    }
}
