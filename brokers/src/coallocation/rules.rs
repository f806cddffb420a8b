//! Rules that the exact solution is compared with: they look at nodes, and at no link.

use scheduler::strategy::JONES;

use super::exact::{Cluster, CoallocationError, Job, Solution, assigned};

/// Only a job of which one cluster takes 85 % of the tasks, rounded up, is spread: as many as fit go to the cluster with the most nodes, the
/// rest to as few others as possible. The thesis has the rule and no algorithm; of equal clusters the first is taken. None if there is
/// no such cluster, or there are too few nodes.
///
/// # Errors
/// If a number is out of its range.
pub fn mostly_in_one(job: &Job, clusters: &[Cluster]) -> Result<Option<Solution>, CoallocationError> {
    let mut order: Vec<usize> = (0..clusters.len()).collect();
    order.sort_by_key(|&cluster| std::cmp::Reverse(clusters[cluster].powers.len()));
    let mut tasks = vec![0; clusters.len()];
    let mut left = job.tasks;
    for &cluster in &order {
        tasks[cluster] = left.min(clusters[cluster].powers.len());
        left -= tasks[cluster];
    }
    let most = tasks.iter().max().copied().unwrap_or(0);
    let (part, whole) = JONES;
    let found = assigned(job, clusters, &tasks)?;
    Ok(found.filter(|_| most * whole as usize >= job.tasks * part as usize))
}

/// All clusters are one: tasks go to the most powerful nodes, wherever these are (Bucur and Epema, there). Of equal nodes those of the first
/// clusters are taken. None if there are too few.
///
/// # Errors
/// If a number is out of its range.
pub fn super_cluster(job: &Job, clusters: &[Cluster]) -> Result<Option<Solution>, CoallocationError> {
    let of = |(number, cluster): (usize, &Cluster)| -> Vec<(f64, usize)> {
        cluster.powers.iter().map(|&power| (power, number)).collect()
    };
    let mut nodes: Vec<(f64, usize)> = clusters.iter().enumerate().flat_map(|(n, c)| of((n, c))).collect();
    nodes.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    let mut tasks = vec![0; clusters.len()];
    nodes.iter().take(job.tasks).for_each(|&(_, cluster)| tasks[cluster] += 1);
    assigned(job, clusters, &tasks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(powers: &[f64]) -> Cluster {
        Cluster { powers: powers.to_vec(), link: 100.0, consumed: 0.0 }
    }

    fn job(tasks: usize) -> Job {
        Job { tasks, bandwidth: 50.0, computing: 60.0, communicating: 30.0 }
    }

    #[test]
    fn a_job_is_spread_if_one_cluster_takes_most_of_it() {
        let clusters = [cluster(&[1.0]), cluster(&[0.5; 6]), cluster(&[1.0; 2])];
        let tasks = |tasks| mostly_in_one(&job(tasks), &clusters).unwrap().map(|found| found.tasks);
        assert_eq!(tasks(6), Some(vec![0, 6, 0]));
        assert_eq!(tasks(7), Some(vec![0, 6, 1]), "six of seven are 85.7 %");
        assert_eq!(tasks(8), None, "six of eight are 75 %");
        assert_eq!(tasks(10), None, "there are nine nodes");
    }

    #[test]
    fn a_super_cluster_takes_the_most_powerful_nodes_and_saturates_links() {
        let clusters = [cluster(&[1.0, 0.5]), cluster(&[1.0, 0.8]), cluster(&[1.0, 0.9])];
        let found = super_cluster(&job(4), &clusters).unwrap().unwrap();
        assert_eq!((found.tasks, found.processing), (vec![1, 1, 2], 1.0 / 0.9));
        // Two tasks of four in a cluster send 2 · 50 · 2/3 of 100 Mbit/s, and 150 would saturate it.
        assert!((found.communication - 2.0 / 3.0).abs() < 1e-12);
        let louder = Job { bandwidth: 150.0, ..job(4) };
        assert!(super_cluster(&louder, &clusters).unwrap().unwrap().communication > 1.0);
        assert_eq!(super_cluster(&job(7), &clusters), Ok(None));
    }
}
