//! Counters and histograms that come from events, as plain data: a node with a journal keeps them and need not count
//! all events of its incarnation again when it starts.
//!
//! Gauges are not in it: they follow from what the site owns; see [`Metrics::take_stock`].

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use prometheus::core::{Collector, Desc};
use prometheus::{Histogram, HistogramOpts, IntCounter, IntCounterVec, proto};
use protocol::Durable;
use scheduler::{JobId, SiteId};
use serde::{Deserialize, Serialize};

use super::series::{CLASSES, PRESENCES, STATES, Series};
use super::{JobState, Metrics};

/// Values by the names of series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// How many events are counted.
    pub events: u64,
    counters: BTreeMap<String, u64>,
    /// With a label: name of the metric, and value of the label or labels in the order of their names.
    labelled: BTreeMap<(String, Vec<(String, String)>), u64>,
    histograms: BTreeMap<String, Counted>,
    /// What is believed of other sites that are not here.
    presence: BTreeMap<SiteId, String>,
    /// Jobs that no site is wide enough for.
    orphaned: BTreeSet<JobId>,
}

/// What a histogram has counted: observations by bucket, those in no bucket last, and their sum.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Counted {
    buckets: Vec<u64>,
    sum: f64,
}

/// A histogram that can go on after an earlier one.
#[derive(Clone)]
pub(super) struct Distribution {
    since: Histogram,
    before: Arc<Mutex<Counted>>,
}

impl Distribution {
    pub(super) fn new(name: &str, help: &str, buckets: &[f64]) -> prometheus::Result<Distribution> {
        let since = Histogram::with_opts(HistogramOpts::new(name, help).buckets(buckets.to_vec()))?;
        Ok(Distribution { since, before: Arc::default() })
    }

    pub(super) fn observe(&self, value: f64) {
        self.since.observe(value);
    }

    fn before(&self) -> Counted {
        self.before.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn counted(&self) -> Counted {
        let mut families = self.collect();
        let metric = families[0].mut_metric()[0].get_histogram().clone();
        let mut buckets = Vec::new();
        let mut below = 0;
        let cumulative = metric.get_bucket().iter().map(proto::Bucket::cumulative_count);
        for count in cumulative.chain([metric.get_sample_count()]) {
            buckets.push(count - below);
            below = count;
        }
        Counted { buckets, sum: metric.get_sample_sum() }
    }

    /// Goes on counting after this. A version with other buckets begins anew.
    fn go_on(&self, before: &Counted) {
        if before.buckets.len() != self.counted().buckets.len() {
            return;
        }
        before.clone_into(&mut self.before.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Collector for Distribution {
    fn desc(&self) -> Vec<&Desc> {
        self.since.desc()
    }

    fn collect(&self) -> Vec<proto::MetricFamily> {
        let mut families = self.since.collect();
        let before = self.before();
        if before.buckets.is_empty() {
            return families;
        }
        let metric = &mut families[0].mut_metric()[0];
        let mut histogram = metric.get_histogram().clone();
        let mut buckets = histogram.get_bucket().to_vec();
        let mut below = 0;
        for (bucket, count) in buckets.iter_mut().zip(&before.buckets) {
            below += count;
            bucket.set_cumulative_count(bucket.cumulative_count() + below);
        }
        histogram.set_bucket(buckets);
        histogram.set_sample_count(histogram.get_sample_count() + before.buckets.iter().sum::<u64>());
        histogram.set_sample_sum(histogram.get_sample_sum() + before.sum);
        metric.set_histogram(histogram);
        families
    }
}

impl Metrics {
    /// All that was counted of events so far.
    pub fn totals_so_far(&self) -> Totals {
        let name = |collector: &dyn Collector| collector.desc()[0].fq_name.clone();
        let mut totals = Totals { events: self.series.events.get(), ..Totals::default() };
        for counter in self.of_events() {
            totals.counters.insert(name(counter), counter.get());
        }
        for counters in self.labelled_of_events() {
            for metric in counters.collect().iter_mut().flat_map(|family| std::mem::take(family.mut_metric()))
            {
                let label = |pair: &proto::LabelPair| (pair.name().to_string(), pair.value().to_string());
                let labels = metric.get_label().iter().map(label).collect();
                // A counter is a whole number far below 2^53.
                let value = metric.get_counter().get_value() as u64;
                totals.labelled.insert((name(counters), labels), value);
            }
        }
        for histogram in self.histograms_of_events() {
            totals.histograms.insert(name(histogram), histogram.counted());
        }
        let named = |(site, presence): (&SiteId, &&str)| (*site, (*presence).to_string());
        totals.presence = self.presence.iter().map(named).collect();
        totals.orphaned.clone_from(&self.orphaned);
        totals
    }

    /// Goes on counting after these. What this version does not count is left out.
    pub fn go_on(&mut self, totals: &Totals) {
        let name = |collector: &dyn Collector| collector.desc()[0].fq_name.clone();
        for counter in self.of_events() {
            counter.inc_by(totals.counters.get(&name(counter)).copied().unwrap_or(0));
        }
        let of_name: BTreeMap<String, &IntCounterVec> =
            self.labelled_of_events().map(|counters| (name(counters), counters)).into();
        for ((name, labels), value) in &totals.labelled {
            let labels: HashMap<&str, &str> =
                labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            if let Some(counter) =
                of_name.get(name).and_then(|counters| counters.get_metric_with(&labels).ok())
            {
                counter.inc_by(*value);
            }
        }
        for histogram in self.histograms_of_events() {
            if let Some(counted) = totals.histograms.get(&name(histogram)) {
                histogram.go_on(counted);
            }
        }
        for (site, presence) in &totals.presence {
            let known = PRESENCES.into_iter().find(|known| known == presence);
            self.presence.extend(known.map(|known| (*site, known)));
        }
        self.orphaned.clone_from(&totals.orphaned);
        self.show_presence();
        self.show_orphaned();
    }

    /// Sets the gauges by what the site owns and has given away.
    pub fn take_stock(&mut self, durable: &Durable) {
        for state in STATES {
            for class in CLASSES {
                self.series.jobs_at.get(state, class).set(0);
            }
        }
        self.known.values_mut().for_each(|known: &mut JobState| known.state = None);
        self.granted.clear();
        self.processors_idle = i64::from(self.grid.site(self.site).processors);
        for kept in durable.jobs.values() {
            self.introduce(&kept.job);
            if let Some(known) = self.known.get_mut(&kept.job.id) {
                known.started = kept.started;
            }
            self.place(kept.job.id, Some(if kept.started.is_some() { "running" } else { "queued" }));
            if kept.started.is_some() {
                self.processors_idle -= i64::from(kept.job.processors);
            }
        }
        durable.ledger.transfers_out().for_each(|(_, transfer)| self.introduce(&transfer.job));
        self.leaving(durable.ledger.transfers_out());
        self.show_processors();
    }

    fn of_events(&self) -> [&IntCounter; 15] {
        [
            &self.series.submitted,
            &self.series.started,
            &self.series.finished,
            &self.series.restarts,
            &self.series.granted,
            &self.series.stolen,
            &self.series.routed_in,
            &self.series.allocated,
            &self.series.recalled,
            &self.series.returned,
            &self.series.taken_over,
            &self.series.predictions,
            &self.series.corrections,
            &self.series.orphaned_total,
            &self.series.events,
        ]
    }

    fn labelled_of_events(&self) -> [&IntCounterVec; 8] {
        let Series {
            interrupted,
            declined,
            steal_requests,
            messages,
            retries,
            membership,
            superseded,
            fallbacks,
            ..
        } = &self.series;
        [interrupted, declined, steal_requests, messages, retries, membership, superseded, fallbacks]
    }

    fn histograms_of_events(&self) -> [&Distribution; 5] {
        let Series { wait, slowdown, steal_rtt, handover, view_age, .. } = &self.series;
        [wait, slowdown, steal_rtt, handover, view_age]
    }
}

#[cfg(test)]
mod tests {
    use scheduler::event::MessageKind;
    use scheduler::{Event, EventKind, Grid, JobSpec, Labels, Span, Strategy, Time};

    use super::*;

    fn metrics() -> Metrics {
        Metrics::new(SiteId(1), Arc::new(Grid::of_sizes(&[4, 8]).unwrap()), &Strategy::default())
    }

    fn job(id: u64) -> JobSpec {
        JobSpec {
            id: JobId(id),
            submit: Time::ZERO,
            processors: 3,
            requested: Span::from_secs(60),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    #[test]
    fn a_page_that_goes_on_from_kept_totals_is_that_of_all_events() {
        let (mut whole, mut first, mut second) = (metrics(), metrics(), metrics());
        let (one, two) = (job(1), job(2));
        let submitted = |job: &JobSpec| EventKind::Submitted {
            job: job.id,
            processors: job.processors,
            requested: job.requested,
            origin: job.origin,
        };
        let to = SiteId(2);
        let before = [
            submitted(&one),
            submitted(&two),
            EventKind::Sent { to, message: MessageKind::Request, retry: true },
            EventKind::Suspected { peer: to },
            EventKind::Orphaned { job: two.id, processors: 3 },
            EventKind::Started { job: one.id, processors: 3, hops: 0 },
        ];
        let after = [
            EventKind::Completed { job: one.id, processors: 3 },
            EventKind::Started { job: two.id, processors: 3, hops: 0 },
        ];
        let tell = |metrics: &mut Metrics, kinds: &[EventKind], second: i64| {
            [one, two].iter().for_each(|job| metrics.introduce(job));
            for kind in kinds {
                metrics.observe(&Event { at: Time::from_secs(second), site: SiteId(1), kind: *kind });
            }
        };
        tell(&mut whole, &before, 5);
        tell(&mut whole, &after, 2000);
        tell(&mut first, &before, 5);
        let kept = bincode::serialize(&first.totals_so_far()).unwrap();
        let kept: Totals = bincode::deserialize(&kept).unwrap();
        assert_eq!(kept.events, 6);
        second.go_on(&kept);
        let mut durable = Durable::default();
        for (job, started) in [(one, Some(Time::from_secs(5))), (two, None)] {
            let custody = protocol::handover::Custody::default();
            let place = protocol::journal::Place::Queue;
            durable.jobs.insert(job.id, protocol::journal::Kept { job, custody, place, started });
        }
        second.take_stock(&durable);
        tell(&mut second, &after, 2000);
        assert_eq!(second.page(), whole.page());
    }
}
