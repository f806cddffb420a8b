//! Frames of a site with a journal that wait for a write: how long, and what they wait for beside it.
//!
//! A site that has nothing else to do writes at once, unless it has just written: then it listens for a moment first.
//! One that has more to do hands over what it has to write and goes on; see [`crate::journal::Writer`].

use std::time::Duration;

use tokio::time::Instant;

use crate::network::Outgoing;

/// Bytes of facts and events in memory with which a write is due, of several hundred jobs: it takes about a millisecond.
const PENDING_BYTES: usize = 512 * 1024;
/// With so many a site waits for the write before, whatever else it has to do.
const PENDING_BYTES_MAX: usize = 8 * PENDING_BYTES;
/// Or with so many frames, looked at in each instant: they leave all at once, and queues of the network should hold
/// them.
const FRAMES_MAX: usize = 1024;
/// A site that has more to do at once lets a frame wait so long for the beginning of a write, unless one is under way:
/// some hundred jobs share one.
const WAIT_MAX: Duration = Duration::from_millis(4);
/// A site that has just written, and has nothing to do, listens for so long before it writes again: to a busy one more
/// comes meanwhile.
const LISTEN: Duration = Duration::from_micros(250);

/// Frames that leave with the next write; always none without a journal.
#[derive(Debug, Default)]
pub(super) struct Unsent {
    frames: Vec<Outgoing>,
    /// Since when the first of them waits.
    since: Option<Instant>,
    /// The last write.
    written: Option<Instant>,
}

impl Unsent {
    /// Adds a frame.
    pub(super) fn push(&mut self, now: Instant, frame: Outgoing) {
        self.since.get_or_insert(now);
        self.frames.push(frame);
    }

    /// Somebody wants to know what was noted: a write is due as if a frame waited.
    pub(super) fn asked(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Whether a site must wait for the write before, with so many bytes for the next.
    pub(super) fn is_much(&self, pending_bytes: usize) -> bool {
        pending_bytes >= PENDING_BYTES_MAX || self.frames.len() >= FRAMES_MAX
    }

    /// Whether a site that has more to do must have so many bytes written. Nobody has seen anything of what they tell,
    /// so several instants may share a write.
    pub(super) fn is_due(&self, now: Instant, pending_bytes: usize) -> bool {
        pending_bytes >= PENDING_BYTES || self.since.is_some_and(|since| now - since >= WAIT_MAX)
    }

    /// Until when a site that has nothing to do may put off a write: not at all if the last one is long ago. `active`
    /// is when it last had something to do.
    pub(super) fn listens_until(&self, now: Instant, active: Instant) -> Option<Instant> {
        let written = self.written.filter(|written| now - *written < WAIT_MAX)?;
        let until = (active + LISTEN).min(self.since.unwrap_or(written) + WAIT_MAX);
        (until > now).then_some(until)
    }

    /// Something was written.
    pub(super) fn written(&mut self, now: Instant) {
        self.written = Some(now);
    }

    /// All frames, in the order in which they came.
    pub(super) fn take(&mut self) -> Vec<Outgoing> {
        self.since = None;
        std::mem::take(&mut self.frames)
    }
}

#[cfg(test)]
mod tests {
    use scheduler::SiteId;
    use scheduler::event::MessageKind;

    use super::*;

    fn frame(number: u32) -> Outgoing {
        Outgoing { to: SiteId(2), kind: MessageKind::Grant, bytes: number.to_le_bytes().to_vec() }
    }

    /// A site that is never idle looks once in each step, after it has added a frame in some of them.
    #[test]
    fn frames_of_a_busy_site_share_writes_and_none_waits_longer_than_the_bound_and_a_step() {
        let begin = Instant::now();
        for (step, every) in [(10, 1), (10, 7), (10, 1000), (900, 1), (900, 3), (6000, 1)] {
            let step = Duration::from_micros(step);
            let (mut unsent, mut waiting) = (Unsent::default(), Vec::new());
            let (mut frames, mut writes) = (0, 0);
            for number in 0..5000 {
                let now = begin + step * number;
                if number % every == 0 {
                    unsent.push(now, frame(number));
                    waiting.push((now, frame(number)));
                    frames += 1;
                }
                // An instant takes a step of the wall clock.
                let now = now + step;
                if unsent.is_due(now, 0) {
                    writes += 1;
                    assert!(waiting.iter().all(|(since, _)| now - *since < WAIT_MAX + step), "{step:?}");
                    let sent: Vec<Outgoing> = waiting.drain(..).map(|(_, frame)| frame).collect();
                    assert_eq!(unsent.take(), sent, "all of them, in order");
                }
            }
            // Those that come before the first has waited so long share its write.
            let shared = (WAIT_MAX.as_nanos() - 1) / (step * every).as_nanos() + 1;
            assert!(writes <= frames / shared + 1, "{writes} writes of {frames} frames, {step:?}, {every}");
        }
    }

    #[test]
    fn an_idle_site_writes_at_once_and_a_busy_one_listens_no_longer_than_a_frame_may_wait() {
        let (begin, mut unsent) = (Instant::now(), Unsent::default());
        assert_eq!(unsent.listens_until(begin, begin), None, "nothing was written yet");
        unsent.written(begin);
        let soon = begin + LISTEN / 2;
        assert_eq!(unsent.listens_until(soon, soon), Some(soon + LISTEN));
        assert_eq!(unsent.listens_until(soon + LISTEN, soon), None, "nothing more has come");
        // However much comes, a frame waits no longer than the bound.
        unsent.push(soon, frame(1));
        let late = soon + WAIT_MAX - LISTEN / 4;
        unsent.written(soon + LISTEN);
        assert_eq!(unsent.listens_until(late, late), Some(soon + WAIT_MAX));
        assert_eq!(unsent.listens_until(soon + WAIT_MAX, late), None);
        unsent.take();
        let later = soon + LISTEN + WAIT_MAX;
        assert_eq!(unsent.listens_until(later, later), None, "the last write is long ago");
    }

    #[test]
    fn a_site_goes_on_beside_a_write_until_there_is_much() {
        let (begin, mut unsent) = (Instant::now(), Unsent::default());
        assert!(!unsent.is_much(PENDING_BYTES_MAX - 1) && unsent.is_much(PENDING_BYTES_MAX));
        (0..FRAMES_MAX as u32 - 1).for_each(|number| unsent.push(begin, frame(number)));
        assert!(!unsent.is_much(0));
        unsent.push(begin, frame(0));
        assert!(unsent.is_much(0));
        unsent.take();
        assert!(!unsent.is_much(0));
        // Who asks what is written finds it soon, even if no frame waits.
        unsent.asked(begin);
        assert!(!unsent.is_due(begin, 0) && unsent.is_due(begin + WAIT_MAX, 0));
    }

    #[test]
    fn without_frames_a_write_is_due_by_its_bytes_alone() {
        let (begin, mut unsent) = (Instant::now(), Unsent::default());
        let later = begin + Duration::from_secs(60);
        assert!(!unsent.is_due(later, PENDING_BYTES - 1));
        assert!(unsent.is_due(begin, PENDING_BYTES));
        unsent.push(begin, frame(1));
        assert!(!unsent.is_due(begin, 0), "the site has more to do");
        assert!(unsent.is_due(begin + WAIT_MAX, 0));
        assert_eq!(unsent.take(), [frame(1)]);
        assert!(!unsent.is_due(later, 0), "the next one waits anew");
    }
}
