//! What brokers before opaque sites learned of them, over time: efficiencies, and which jobs came back.

use std::collections::BTreeMap;

use scheduler::{Event, EventKind, SiteId, Time};

/// What one broker learned of one site.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lesson {
    /// Jobs of the broker that ended there, as far as it was told.
    pub ended: u64,
    /// Times that it called a job back from there.
    pub recalled: u64,
    /// The efficiency of the site in [-1, 1] after jobs that changed it, and when the broker learned of these. Blame for what was
    /// called back or failed shows with the next job that ended.
    pub efficiency: Vec<(Time, f64)>,
}

impl Lesson {
    /// The efficiency now; nothing was learned at 0.
    pub fn last(&self) -> f64 {
        self.efficiency.last().map_or(0.0, |&(_, efficiency)| efficiency)
    }
}

/// Follows the events of a run, and has what all brokers learned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lessons {
    by_broker: BTreeMap<SiteId, BTreeMap<SiteId, Lesson>>,
}

impl Lessons {
    /// Takes the next event.
    pub fn observe(&mut self, event: &Event) {
        let (of, learned) = match event.kind {
            EventKind::Recalled { from, .. } => (from, None),
            EventKind::Learned { of, efficiency_millionths, .. } => (of, Some(efficiency_millionths)),
            _ => return,
        };
        let lesson = self.by_broker.entry(event.site).or_default().entry(of).or_default();
        let Some(millionths) = learned else {
            lesson.recalled += 1;
            return;
        };
        lesson.ended += 1;
        let efficiency = f64::from(millionths) / 1e6;
        if lesson.last().total_cmp(&efficiency).is_ne() {
            lesson.efficiency.push((event.at, efficiency));
        }
    }

    /// All of it; none if no broker learned anything.
    pub fn finish(self) -> Option<Lessons> {
        (!self.by_broker.is_empty()).then_some(self)
    }

    /// What each broker learned, by broker and site.
    pub fn brokers(&self) -> impl Iterator<Item = (SiteId, &BTreeMap<SiteId, Lesson>)> {
        self.by_broker.iter().map(|(&broker, lessons)| (broker, lessons))
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, Span};

    use super::*;

    #[test]
    fn efficiencies_are_followed_by_broker_and_site_and_only_changes_are_kept() {
        let (broker, other) = (SiteId(3), SiteId(4));
        let mut lessons = Lessons::default();
        assert_eq!(lessons.clone().finish(), None);
        let mut learned = |site, at, of, efficiency_millionths| {
            let job = JobId(1);
            let [execution, queue, transfer, overhead] = [Span::ZERO; 4];
            let kind =
                EventKind::Learned { job, of, execution, queue, transfer, overhead, efficiency_millionths };
            lessons.observe(&Event { at: Time::from_secs(at), site, kind });
        };
        learned(broker, 1, SiteId(1), 0);
        learned(broker, 2, SiteId(1), 300_000);
        learned(broker, 3, SiteId(1), 300_000);
        learned(broker, 4, SiteId(2), -300_000);
        learned(other, 5, SiteId(1), -300_000);
        let kind = EventKind::Recalled { job: JobId(2), from: SiteId(1) };
        lessons.observe(&Event { at: Time::from_secs(6), site: broker, kind });
        let found: Vec<(SiteId, SiteId, u64, u64, Vec<f64>)> = lessons
            .brokers()
            .flat_map(|(broker, of)| of.iter().map(move |(&site, lesson)| (broker, site, lesson)))
            .map(|(broker, site, lesson)| {
                let values = lesson.efficiency.iter().map(|&(_, value)| value).collect();
                (broker, site, lesson.ended, lesson.recalled, values)
            })
            .collect();
        assert_eq!(
            found,
            [
                (broker, SiteId(1), 3, 1, vec![0.3]),
                (broker, SiteId(2), 1, 0, vec![-0.3]),
                (other, SiteId(1), 1, 0, vec![-0.3]),
            ]
        );
    }
}
