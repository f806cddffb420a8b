//! Where the parts of a job go that starts at several clusters at once (Lérida, *M-CISNE*, §4.6), by what is free at each now.
//!
//! On sites with processors a job only computes: all are as fast, no link is loaded, and those rules that minimize (4.17) differ
//! in nothing. On nodes that jobs share, a node is as fast as it will be with a task of the job on it, and a cluster gives its nodes in the order in
//! which it places tasks, so a later one counts no faster than those before it. Which jobs are looked at is `mod.rs`'s business.

use scheduler::strategy::Coallocation;
use scheduler::{Application, JobSpec, Time};

use crate::allocation::book::Book;
use crate::coallocation::{Cluster, Job, Variant, best, crossing, mostly_in_one, super_cluster};

/// What is free at a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Room {
    /// Its place.
    pub place: usize,
    /// Nodes that take a task of the job: see [`Book::room`].
    pub powers: Vec<f64>,
    /// What its link to all others carries, in Mbit/s.
    pub link: f64,
    /// What jobs in parts send over it, in Mbit/s.
    pub consumed: f64,
}

impl Room {
    /// What a book says that is free now for a job, at a place, where jobs in parts send so much.
    pub fn of(now: Time, job: &JobSpec, place: usize, book: &Book, consumed: f64) -> Room {
        Room { place, powers: book.room(now, job), link: book.uplink(), consumed }
    }

    /// How many tasks it takes.
    pub fn free(&self) -> u32 {
        u32::try_from(self.powers.len()).unwrap_or(u32::MAX)
    }
}

/// How many of a job's tasks go to which place, those with most first, then in the order of the clusters given; none if a rule finds no such
/// parts. `rooms` are in the order of the grid. With `unsaturated` the least (4.17) must saturate no link, either.
pub fn parts(
    by: Coallocation,
    job: &JobSpec,
    program: Application,
    rooms: &[Room],
    unsaturated: bool,
) -> Option<Vec<(usize, u32)>> {
    let (job, clusters) = (as_model(job, program), rooms.iter().map(as_cluster).collect::<Vec<_>>());
    let optimal = if unsaturated { Variant::NonSaturated } else { Variant::Optimal };
    let solution = match by {
        Coallocation::None => return None,
        Coallocation::Optimal => best(optimal, &job, &clusters),
        Coallocation::NonSaturated => best(Variant::NonSaturated, &job, &clusters),
        Coallocation::NonOptimal => best(Variant::NonOptimal, &job, &clusters),
        Coallocation::Jones => mostly_in_one(&job, &clusters),
        Coallocation::SuperCluster => super_cluster(&job, &clusters),
    };
    let tasks = solution.expect("nodes and links are what a grid may have")?.tasks;
    let mut parts: Vec<(usize, u32)> = rooms
        .iter()
        .zip(tasks)
        .filter(|(_, tasks)| *tasks > 0)
        .map(|(room, tasks)| (room.place, tasks as u32))
        .collect();
    parts.sort_by_key(|&(_, tasks)| std::cmp::Reverse(tasks));
    Some(parts)
}

/// What a job sends over the link of a cluster with so many of its tasks, in Mbit/s (4.14).
pub(super) fn sent(job: &JobSpec, program: Application, here: u32) -> f64 {
    crossing(&as_model(job, program), here as usize)
}

fn as_model(job: &JobSpec, program: Application) -> Job {
    let run_time = job.requested.as_micros().max(0) as f64 / 1e6;
    Job {
        tasks: job.processors as usize,
        bandwidth: program.bandwidth,
        computing: run_time * program.computing,
        communicating: run_time * (1.0 - program.computing),
    }
}

fn as_cluster(room: &Room) -> Cluster {
    Cluster { powers: room.powers.clone(), link: room.link, consumed: room.consumed }
}

#[cfg(test)]
mod tests {
    use scheduler::{COMPUTES, JobId, Labels, SiteId, Span};

    use super::*;

    fn job(processors: u32) -> JobSpec {
        JobSpec {
            id: JobId(1),
            submit: Time::ZERO,
            processors,
            requested: Span::from_secs(60),
            labels: Labels::UNKNOWN,
            origin: SiteId(1),
            payload: 0,
        }
    }

    fn rooms(free: &[u32]) -> Vec<Room> {
        let room = |(place, &free): (usize, &u32)| Room {
            place,
            powers: vec![1.0; free as usize],
            link: f64::INFINITY,
            consumed: 0.0,
        };
        free.iter().enumerate().map(room).collect()
    }

    fn spread(by: Coallocation, processors: u32, free: &[u32]) -> Option<Vec<(usize, u32)>> {
        parts(by, &job(processors), COMPUTES, &rooms(free), false)
    }

    #[test]
    fn parts_are_free_processors_and_together_the_job_under_every_rule() {
        for &by in Coallocation::ALL {
            for processors in 1..=13 {
                for free in [[4, 8, 0], [0, 6, 6], [2, 2, 8], [0, 0, 0], [5, 0, 1]] {
                    let Some(parts) = spread(by, processors, &free) else {
                        let all: u32 = free.iter().sum();
                        let refuses = matches!(by, Coallocation::None | Coallocation::Jones);
                        assert!(refuses || all < processors, "{by:?} {processors} {free:?}");
                        continue;
                    };
                    assert!(parts.iter().all(|&(place, tasks)| tasks > 0 && tasks <= free[place]), "{by:?}");
                    assert_eq!(parts.iter().map(|part| part.1).sum::<u32>(), processors, "{by:?} {free:?}");
                    assert!(parts.is_sorted_by(|one, other| one.1 >= other.1), "the largest comes first");
                }
            }
        }
    }

    #[test]
    fn the_first_clusters_get_most_where_all_are_as_fast() {
        for by in [Coallocation::Optimal, Coallocation::NonSaturated, Coallocation::NonOptimal] {
            assert_eq!(spread(by, 10, &[4, 8, 8]), Some(vec![(1, 6), (0, 4)]), "{by:?}");
        }
        assert_eq!(spread(Coallocation::SuperCluster, 10, &[4, 8, 8]), Some(vec![(1, 6), (0, 4)]));
    }

    #[test]
    fn by_jones_one_cluster_takes_85_percent_and_the_fewest_others_the_rest() {
        // 17 of 20 are 85 %, 16 are not.
        assert_eq!(spread(Coallocation::Jones, 20, &[2, 17, 3]), Some(vec![(1, 17), (2, 3)]));
        assert_eq!(spread(Coallocation::Jones, 20, &[2, 16, 3]), None);
        assert_eq!(spread(Coallocation::Jones, 20, &[1, 17, 2]), Some(vec![(1, 17), (2, 2), (0, 1)]));
        assert_eq!(spread(Coallocation::Jones, 20, &[30, 2, 2]), Some(vec![(0, 20)]));
    }
}
