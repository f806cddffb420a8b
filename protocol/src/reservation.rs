//! The reservation of a waiting job that does not fit yet (EASY, Lifka 1995).

use scheduler::Time;

/// Shadow time of a job this wide, and the processors that it leaves over then. `ends` are the estimated ends of running jobs
/// with their widths, ascending; one that is past counts as now. None if the job never fits.
pub(crate) fn shadow(
    width: u32,
    free: u32,
    now: Time,
    ends: impl IntoIterator<Item = (Time, u32)>,
) -> Option<(Time, u32)> {
    let mut available = free;
    let mut ends = ends.into_iter().map(|(end, processors)| (end.max(now), processors)).peekable();
    while let Some((at, processors)) = ends.next() {
        available += processors;
        while let Some((_, also)) = ends.next_if(|&(next, _)| next == at) {
            available += also;
        }
        if available >= width {
            return Some((at, available - width));
        }
    }
    None
}
