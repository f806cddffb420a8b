//! The reservation of a waiting job that does not fit yet (EASY, Lifka 1995).
//!
//! [`shadow`] walks the ends of running jobs, one by one. The queue of a large machine keeps sums over many of them and skips
//! these (`local::machine`); a property test there holds it against this.

use crate::time::Time;

/// When a job that does not fit now could start if nothing else did, by estimates; of an instant `T`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reservation<T = Time> {
    /// The shadow time: the earliest estimated end at which enough processors are free.
    pub shadow: T,
    /// Processors free then beyond those of the job.
    pub extra: u32,
}

/// The reservation of a job of `width` processors where `free` are idle now. `ends` are the estimated ends of running jobs with
/// their widths, ascending; one that is past counts as now. None if the job never fits.
pub fn shadow<T: Copy + Ord>(
    width: u32,
    free: u32,
    now: T,
    ends: impl IntoIterator<Item = (T, u32)>,
) -> Option<Reservation<T>> {
    let mut available = free;
    let mut reached = None;
    for (end, processors) in ends {
        let end = end.max(now);
        // What else ends at the shadow time is free by then, too.
        if reached.is_some_and(|shadow| end > shadow) {
            break;
        }
        available += processors;
        if reached.is_none() && available >= width {
            reached = Some(end);
        }
    }
    reached.map(|shadow| Reservation { shadow, extra: available - width })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_ends_at_the_shadow_time_counts() {
        let ends = [(5, 1), (9, 2), (9, 3), (12, 8)];
        assert_eq!(shadow(3, 1, 0, ends), Some(Reservation { shadow: 9, extra: 4 }));
        assert_eq!(shadow(2, 1, 0, ends), Some(Reservation { shadow: 5, extra: 0 }));
        assert_eq!(shadow(15, 1, 0, ends), Some(Reservation { shadow: 12, extra: 0 }));
        assert_eq!(shadow(16, 1, 0, ends), None, "it never fits");
    }

    #[test]
    fn a_job_past_its_estimate_ends_now() {
        let ends = [(5, 1), (9, 2), (12, 1)];
        assert_eq!(shadow(2, 1, 7, ends), Some(Reservation { shadow: 7, extra: 0 }));
        assert_eq!(
            shadow(2, 1, 9, ends),
            Some(Reservation { shadow: 9, extra: 2 }),
            "and so do all that are"
        );
    }
}
