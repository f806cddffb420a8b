//! Which job of a list a site starts next.
//!
//! Where the list comes from is decided elsewhere; here is only first fit, best fit, head only and EASY
//! (Mu'alem and Feitelson 2001) inside one list.

use crate::class::Selection;
use crate::ideal::machines::Machines;
use crate::job::JobSpec;
use crate::room::Room;
use crate::time::Time;
use crate::waiting::{WaitingList, Widths};

/// The job of the list, given as a queue and a range of widths, that this site starts now.
///
/// With [`Selection::Easy`] the head of the list keeps a reservation at this site, computed from the estimated
/// ends of the jobs that run there; another job may start if it fits and either ends by its estimate no later
/// than the reservation begins, or needs no more than what the reservation leaves.
pub(crate) fn pick<'a>(
    queue: &'a WaitingList,
    widths: Widths,
    selection: Selection,
    machines: &Machines,
    rank: usize,
    now: Time,
) -> Option<&'a JobSpec> {
    let free = machines.free(rank);
    if free == 0 {
        return None;
    }
    let fitting = widths.fitting(free);
    if let Some(room) = machines.nodes(rank) {
        return pick_for(queue, widths, selection, room);
    }
    match selection {
        Selection::FirstFit => queue.first(fitting),
        Selection::BestFit => queue.widest_first(fitting),
        Selection::HeadOnly => queue.first(widths).filter(|head| head.processors <= free),
        Selection::Easy => {
            let head = queue.first(widths)?;
            if head.processors <= free {
                return Some(head);
            }
            let reserved = machines.reservation(now, rank, head.processors);
            let spare = reserved.extra.min(free);
            let beside = queue.first(widths.fitting(spare));
            let wider = Widths { above: fitting.above.max(spare), at_most: fitting.at_most };
            let before = queue.first_where(wider, |job| now.saturating_add(job.requested) <= reserved.shadow);
            beside.into_iter().chain(before).min_by_key(|job| job.key())
        }
    }
}

/// The same before nodes that jobs share, where memory decides, too. A job there ends when others let it, so nothing is reserved.
///
/// # Panics
/// With [`Selection::Easy`].
pub fn pick_for<'a>(
    queue: &'a WaitingList,
    widths: Widths,
    selection: Selection,
    room: &Room,
) -> Option<&'a JobSpec> {
    let fitting = widths.fitting(room.width());
    match selection {
        Selection::FirstFit => queue.first_where(fitting, |job| room.fits(job)),
        Selection::BestFit => {
            let fit = queue.in_order(fitting).into_iter().filter(|job| room.fits(job));
            fit.reduce(|best, job| if job.processors > best.processors { job } else { best })
        }
        Selection::HeadOnly => queue.first(widths).filter(|head| room.fits(head)),
        Selection::Easy => panic!("EASY reserves processors, and jobs share nodes"),
    }
}
