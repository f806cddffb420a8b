//! Which clusters a job is not meant for as they are (Lérida, *M-CISNE*, appendix A: limits of nodes, here of clusters, as there).

use scheduler::local::Occupation;
use scheduler::strategy::{ClusterFilter, MetaScheduler};
use scheduler::{JobSpec, Time};

use crate::allocation::book::Book;

/// Whether the filter leaves a cluster for a job. One that has no jobs is left: what would free it is nobody's end, and the job
/// could wait forever.
pub fn leaves(rules: &MetaScheduler, now: Time, book: &Book, job: &JobSpec) -> bool {
    if rules.filter == ClusterFilter::None || book.load(scheduler::strategy::Count::All).jobs == 0 {
        return true;
    }
    let computes = book.mostly_computes(job);
    book.occupation(now).is_none_or(|occupation| passes(rules, &occupation, computes))
}

/// The same for a cluster that has jobs, of what is known of it.
fn passes(rules: &MetaScheduler, occupation: &Occupation, computes: bool) -> bool {
    let Occupation { memory_taken, memory, fullest: (tasks, most), computing, communicating } = *occupation;
    match rules.filter {
        ClusterFilter::None => true,
        ClusterFilter::Memory => !rules.level.is_exceeded(memory_taken, memory),
        ClusterFilter::Tasks => !rules.level.is_exceeded(tasks.into(), most.into()),
        ClusterFilter::Type => (if computes { computing } else { communicating }) == 0,
    }
}

#[cfg(test)]
mod tests {
    use scheduler::strategy::Chance;

    use super::*;

    fn left(filter: ClusterFilter, occupation: Occupation, computes: bool) -> bool {
        let level = Chance::millionths(750_000).unwrap();
        passes(&MetaScheduler { filter, level, ..MetaScheduler::default() }, &occupation, computes)
    }

    #[test]
    fn a_filter_leaves_what_is_at_its_level_and_nothing_above() {
        let memory = |memory_taken| Occupation { memory_taken, memory: 400, ..Occupation::default() };
        let tasks = |tasks| Occupation { fullest: (tasks, 4), ..Occupation::default() };
        assert!(left(ClusterFilter::Memory, memory(300), true));
        assert!(!left(ClusterFilter::Memory, memory(301), true));
        assert!(left(ClusterFilter::Tasks, tasks(3), true));
        assert!(!left(ClusterFilter::Tasks, tasks(4), true));
        assert!(left(ClusterFilter::None, Occupation { memory_taken: 400, ..tasks(4) }, true));
        assert!(left(ClusterFilter::Tasks, memory(400), true), "each looks at one thing");
    }

    #[test]
    fn the_type_of_a_job_is_what_it_does_for_most_of_its_time() {
        let runs =
            |computing, communicating| Occupation { computing, communicating, ..Occupation::default() };
        for (occupation, computes, is_left) in [
            (runs(1, 0), true, false),
            (runs(1, 0), false, true),
            (runs(0, 2), true, true),
            (runs(0, 2), false, false),
            (runs(0, 0), false, true),
        ] {
            assert_eq!(left(ClusterFilter::Type, occupation, computes), is_left, "{occupation:?}");
        }
    }
}
