//! Random sites, and jobs of which each fits one of them: widths follow the sizes, so that all classes occur.

use std::ops::Range;

use proptest::prelude::*;
use scheduler::{JobId, JobSpec, Labels, SiteId, Span, Time, TimedJob};

/// When a job comes, its site and its user's, how much narrower than its site it is, its run time, and a factor.
type Drawn = (i64, (prop::sample::Index, prop::sample::Index), u32, i64, i64);

/// Processors of up to seven sites, and up to `most` jobs in queue order. Estimates are run times times one of these
/// factors; with the factor 0 jobs run past them. All jobs are there at the start unless `online`.
pub(crate) fn workload(
    most: usize,
    factors: Range<i64>,
    online: impl Strategy<Value = bool>,
) -> impl Strategy<Value = (Vec<u32>, Vec<TimedJob>)> {
    let index = any::<prop::sample::Index>;
    let job = (0i64..30, (index(), index()), 0u32..9, 0i64..20, factors);
    let sizes = prop::collection::vec(1u32..17, 1..=7);
    (sizes, online, prop::collection::vec(job, 1..=most)).prop_map(|(sizes, online, jobs)| {
        let place = |index: prop::sample::Index| index.index(sizes.len());
        let job = |((submit, (size, origin), less, run, factor), id): (Drawn, u64)| TimedJob {
            spec: JobSpec {
                id: JobId(id),
                submit: Time::from_secs(if online { submit } else { 0 }),
                processors: sizes[place(size)].saturating_sub(less).max(1),
                requested: Span::from_secs((run * factor).max(1)),
                labels: Labels::UNKNOWN,
                origin: SiteId::from_index(place(origin)),
                payload: 0,
            },
            run_time: Span::from_secs(run),
        };
        let mut jobs: Vec<TimedJob> = jobs.into_iter().zip(1..).map(job).collect();
        jobs.sort_by_key(|job| job.spec.key());
        (sizes, jobs)
    })
}
