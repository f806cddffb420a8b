//! Events of many nodes in one order: by time, then site, then the order of the site.
//!
//! Nodes are asked one after another while trace time goes on, so events are held back until no node can have an
//! earlier one. What the coordinator says of a site goes between what the site says: by time, and where a process that
//! ended restarted, between its two incarnations.

use protocol::journal::restarts_of;
use scheduler::event::{BeginCause, EndCause};
use scheduler::{Event, EventKind, Time};

/// Events that were fetched and not passed on.
#[derive(Debug)]
pub struct Merge {
    sites: Vec<Held>,
}

#[derive(Clone, Debug)]
struct Held {
    /// What the site says, in its order, which is one of time.
    own: Vec<Event>,
    /// The time of the newest of these, passed on or not.
    latest: Time,
    /// What the coordinator says of it, in order.
    said: Vec<Event>,
    /// When it joined, or lost its journal. A node that was begun and not yet told the time takes it for earlier.
    joined: Time,
}

impl Merge {
    /// For so many sites.
    pub fn new(sites: usize) -> Merge {
        let latest = Time::from_micros(i64::MIN);
        Merge { sites: vec![Held { own: Vec::new(), latest, said: Vec::new(), joined: latest }; sites] }
    }

    /// Takes the next event of its site.
    ///
    /// # Panics
    /// If it is earlier than the one before: then the clock of the site ran backwards.
    pub fn push(&mut self, event: Event) {
        let held = &mut self.sites[event.site.index()];
        if let EventKind::Recovered { incarnation, .. } = event.kind
            && restarts_of(incarnation) == 0
        {
            // It does not know how far its clock was before it lost its journal.
            held.joined = held.joined.max(held.latest);
        }
        let event = Event { at: event.at.max(held.joined), ..event };
        assert!(held.latest <= event.at, "the clock of site {} ran backwards", event.site);
        if matches!(event.kind, EventKind::Recovered { .. }) {
            let first = |said: &Event| match said.kind {
                EventKind::Ended { how } => how.interrupts(),
                EventKind::Begun { how } => how == BeginCause::Join,
                _ => false,
            };
            let last = |said: &Event| matches!(said.kind, EventKind::Begun { .. });
            // All that was said of earlier incarnations may have come at once, and of some ends nothing was said. One that was
            // found to have ended may have restarted before it was found.
            if let Some(from) = held.said.iter().position(first) {
                let end = &held.said[from];
                let begun = held.said[from..].iter().position(last).map(|after| from + after);
                let was_found = matches!(end.kind, EventKind::Ended { how: EndCause::Found });
                let found_late = was_found && begun.is_some_and(|begun| event.at <= held.said[begun].at);
                if end.at <= event.at || found_late {
                    let to = begun.map_or(held.said.len(), |begun| begun + 1);
                    for said in held.said.drain(from..to) {
                        held.own.push(Event { at: said.at.clamp(held.latest, event.at), ..said });
                    }
                }
            }
        }
        held.latest = event.at;
        held.own.push(event);
    }

    /// Takes what the coordinator says of a site, after all that it said of it before.
    pub fn say(&mut self, event: Event) {
        let held = &mut self.sites[event.site.index()];
        if matches!(event.kind, EventKind::Begun { how: BeginCause::Join }) {
            held.joined = event.at;
        }
        held.said.push(event);
    }

    /// Passes on all events before `time`, of which every site's are known.
    pub fn release(&mut self, time: Time, sink: &mut impl FnMut(&Event)) {
        let mut batch = Vec::new();
        for Held { own, said, .. } in &mut self.sites {
            for events in [own, said] {
                let known = events.partition_point(|event| event.at < time);
                batch.extend(events.drain(..known));
            }
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
    use protocol::journal::INCARNATIONS_PER_JOURNAL;
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

    #[test]
    fn what_is_said_of_a_site_goes_between_its_lives_and_else_by_time() {
        let said = |at: i64, kind| Event { at: Time::from_secs(at), site: SiteId(1), kind };
        let ended = |at, how| said(at, EventKind::Ended { how });
        let begun = |at, how| said(at, EventKind::Begun { how });
        let recovered =
            |at| said(at, EventKind::Recovered { incarnation: 1, waiting: 0, running: 0, out: 0 });
        let mut merge = Merge::new(1);
        let mut passed = Vec::new();
        merge.say(ended(3, EndCause::Pause));
        merge.say(begun(4, BeginCause::Resume));
        merge.push(event(1, 2, 1));
        merge.push(event(1, 5, 2));
        merge.release(Time::from_secs(6), &mut |event| passed.push(*event));
        // By the clock of the site it lived a little longer, and was back a little earlier.
        merge.say(ended(6, EndCause::Pause));
        merge.say(begun(7, BeginCause::Resume));
        merge.say(ended(7, EndCause::Crash));
        merge.say(begun(10, BeginCause::Restart));
        merge.push(event(1, 8, 3));
        merge.push(recovered(9));
        merge.push(event(1, 9, 4));
        merge.say(ended(9, EndCause::Death));
        merge.finish(&mut |event| passed.push(*event));
        let expected = [
            event(1, 2, 1),
            ended(3, EndCause::Pause),
            begun(4, BeginCause::Resume),
            event(1, 5, 2),
            ended(6, EndCause::Pause),
            begun(7, BeginCause::Resume),
            event(1, 8, 3),
            ended(8, EndCause::Crash),
            begun(9, BeginCause::Restart),
            recovered(9),
            event(1, 9, 4),
            ended(9, EndCause::Death),
        ];
        assert_eq!(passed, expected);

        // The same of all incarnations at once, of which the second is known of by the site alone.
        let mut merge = Merge::new(1);
        let mut passed = Vec::new();
        let [pause, resume] = [ended(8, EndCause::Pause), begun(9, BeginCause::Resume)];
        let first = [ended(2, EndCause::Crash), begun(3, BeginCause::Restart)];
        let third = [ended(6, EndCause::Crash), begun(7, BeginCause::Restart)];
        for said in [first, third, [pause, resume]].concat() {
            merge.say(said);
        }
        for own in [event(1, 1, 1), recovered(4), event(1, 4, 2), recovered(5), event(1, 5, 3), recovered(7)]
        {
            merge.push(own);
        }
        merge.finish(&mut |event| passed.push(*event));
        let incarnations =
            [vec![event(1, 1, 1)], first.to_vec(), vec![recovered(4), event(1, 4, 2), recovered(5)]];
        let rest = [vec![event(1, 5, 3)], third.to_vec(), vec![recovered(7), pause, resume]];
        assert_eq!(passed, [incarnations.concat(), rest.concat()].concat());

        // One that somebody else started again at once was found to have ended when it was back.
        let mut merge = Merge::new(1);
        let mut passed = Vec::new();
        merge.push(event(1, 5, 1));
        merge.say(ended(8, EndCause::Found));
        merge.say(begun(9, BeginCause::Restart));
        merge.push(recovered(7));
        merge.push(event(1, 9, 2));
        merge.say(ended(12, EndCause::Found));
        merge.say(begun(13, BeginCause::Restart));
        merge.push(recovered(13));
        merge.finish(&mut |event| passed.push(*event));
        let incarnations = [vec![event(1, 5, 1), ended(7, EndCause::Found), begun(7, BeginCause::Restart)]];
        let rest = [recovered(7), event(1, 9, 2), ended(12, EndCause::Found), begun(13, BeginCause::Restart)];
        assert_eq!(passed, [incarnations.concat(), rest.to_vec(), vec![recovered(13)]].concat());

        // One that lost its journal does not know how late it was.
        let mut merge = Merge::new(1);
        let mut passed = Vec::new();
        let anew =
            EventKind::Recovered { incarnation: INCARNATIONS_PER_JOURNAL, waiting: 0, running: 0, out: 0 };
        merge.push(event(1, 5, 1));
        merge.say(ended(6, EndCause::Found));
        merge.say(begun(7, BeginCause::Restart));
        merge.push(said(3, anew));
        merge.push(event(1, 4, 2));
        merge.push(event(1, 9, 3));
        merge.finish(&mut |event| passed.push(*event));
        let incarnations = [event(1, 5, 1), ended(5, EndCause::Found), begun(5, BeginCause::Restart)];
        let rest = [said(5, anew), event(1, 5, 2), event(1, 9, 3)];
        assert_eq!(passed, [incarnations, rest].concat());

        // One that joins is told the time when it has begun.
        let mut merge = Merge::new(1);
        let mut passed = Vec::new();
        merge.say(ended(0, EndCause::Absent));
        merge.say(begun(4, BeginCause::Join));
        merge.push(recovered(0));
        merge.push(event(1, 5, 1));
        merge.finish(&mut |event| passed.push(*event));
        let expected = [ended(0, EndCause::Absent), begun(4, BeginCause::Join), recovered(4), event(1, 5, 1)];
        assert_eq!(passed, expected);
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
