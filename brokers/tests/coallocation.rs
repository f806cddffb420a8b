//! Co-allocation against the values calculated by hand, and against all assignments there are.

use brokers::coallocation::{Cluster, CoallocationError, Job, Variant, best, crossing};
use scheduler::draw::Draw;

const VARIANTS: [Variant; 3] = [Variant::Optimal, Variant::NonSaturated, Variant::NonOptimal];

fn cluster(powers: &[f64], consumed: f64) -> Cluster {
    Cluster { powers: powers.to_vec(), link: 100.0, consumed }
}

fn job(bandwidth: f64) -> Job {
    Job { tasks: 4, bandwidth, computing: 60.0, communicating: 30.0 }
}

#[test]
fn the_best_is_what_was_calculated_by_hand() {
    let clusters = [cluster(&[1.0, 1.0, 0.5], 20.0), cluster(&[1.0, 0.8, 0.8], 0.0)];
    for variant in &VARIANTS[..2] {
        let found = best(*variant, &job(40.0), &clusters).unwrap().unwrap();
        assert_eq!((found.tasks, found.processing), (vec![1, 3], 1.25));
        assert!((found.time - 93.0).abs() < 1e-9 && (found.communication - 0.6).abs() < 1e-9);
    }
    let found = best(Variant::Optimal, &job(120.0), &clusters).unwrap().unwrap();
    assert!((found.time - 117.0).abs() < 1e-9 && (found.communication - 1.4).abs() < 1e-9);
    assert_eq!((found.tasks, found.processing), (vec![1, 3], 1.25));
    assert_eq!(best(Variant::NonSaturated, &job(120.0), &clusters), Ok(None));

    let clusters = [cluster(&[1.0, 1.0], 20.0), cluster(&[1.0, 1.0, 0.4, 0.4], 20.0)];
    let found = best(Variant::Optimal, &job(100.0), &clusters).unwrap().unwrap();
    assert_eq!((found.tasks, found.processing), (vec![2, 2], 1.0));
    assert!((found.time - 106.0).abs() < 1e-9);
    let found = best(Variant::NonSaturated, &job(100.0), &clusters).unwrap().unwrap();
    assert_eq!((found.tasks, found.processing), (vec![0, 4], 2.5));
    assert!((found.time - 156.0).abs() < 1e-9 && (found.communication - 0.2).abs() < 1e-9);
}

fn drawn(seed: u64) -> (Job, Vec<Cluster>) {
    let mut draw = Draw::of_stream(seed, 9);
    let clusters: Vec<Cluster> = (0..1 + draw.below(4))
        .map(|_| {
            let powers = (0..draw.below(5)).map(|_| [1.0, 0.8, 0.6, 0.5, 0.25][draw.below(5)]).collect();
            Cluster { powers, link: draw.between(50.0, 150.0), consumed: draw.between(0.0, 60.0) }
        })
        .collect();
    let communicating = [0.0, draw.between(0.0, 100.0)][draw.below(2)];
    let tasks = 1 + draw.below(8);
    (
        Job { tasks, bandwidth: draw.between(0.0, 80.0), computing: draw.between(0.0, 100.0), communicating },
        clusters,
    )
}

/// The least time over every subset of nodes, and whether there is any.
fn over_all_subsets(job: &Job, clusters: &[Cluster], limit: f64) -> Option<f64> {
    let nodes: Vec<(usize, f64)> = (0..)
        .zip(clusters)
        .flat_map(|(k, cluster)| cluster.powers.iter().map(move |&power| (k, power)))
        .collect();
    let subsets = (0u32..1 << nodes.len()).filter(|subset| subset.count_ones() as usize == job.tasks);
    let time = |subset: u32| {
        let mut counts = vec![0; clusters.len()];
        let mut slowest: f64 = 0.0;
        for (_, &(cluster, power)) in nodes.iter().enumerate().filter(|node| subset >> node.0 & 1 == 1) {
            counts[cluster] += 1;
            slowest = slowest.max(1.0 / power);
        }
        let load =
            |(cluster, &count): (&Cluster, &usize)| (cluster.consumed + crossing(job, count)) / cluster.link;
        let load = clusters.iter().zip(&counts).map(load).fold(0.0, f64::max);
        (load <= limit).then_some(job.computing * slowest + job.communicating * load)
    };
    subsets.filter_map(time).min_by(f64::total_cmp)
}

/// Instances on which the exact solution of a variant has another time than the least over all subsets within a limit.
fn differing(variant: Variant, limit: f64) -> usize {
    let differs = |&seed: &u64| {
        let (job, clusters) = drawn(seed);
        let found = best(variant, &job, &clusters).unwrap();
        if let Some(found) = &found {
            assert_eq!(found.tasks.iter().sum::<usize>(), job.tasks, "seed {seed}");
        }
        match (found.map(|found| found.time), over_all_subsets(&job, &clusters, limit)) {
            (Some(one), Some(other)) => (one - other).abs() > 1e-9 * other,
            (one, other) => one.is_some() != other.is_some(),
        }
    };
    (0..1_000).filter(differs).count()
}

#[test]
fn the_best_is_the_best_of_all_assignments() {
    assert_eq!(differing(Variant::Optimal, f64::INFINITY), 0);
    assert_eq!(differing(Variant::NonSaturated, 1.0), 0);
}

#[test]
fn mutant_other_variants_are_not_the_best() {
    let (saturated, any) = (differing(Variant::Optimal, 1.0), differing(Variant::NonOptimal, 1.0));
    eprintln!("{saturated} and {any} of 1,000");
    assert!(saturated > 0 && any > 100);
}

#[test]
fn any_solution_is_one_that_saturates_no_link() {
    let mut found = 0;
    for seed in 0..1_000 {
        let (job, clusters) = drawn(seed);
        let any = best(Variant::NonOptimal, &job, &clusters).unwrap();
        assert_eq!(any.is_some(), best(Variant::NonSaturated, &job, &clusters).unwrap().is_some());
        found += usize::from(any.as_ref().is_some_and(|any| any.communication <= 1.0));
        assert!(any.is_none_or(|any| any.communication <= 1.0));
    }
    assert!(found > 200, "{found}");
}

#[test]
fn sums_go_on_past_sixty_four_tasks() {
    let clusters = vec![cluster(&[1.0; 50], 10.0); 4];
    let wide = Job { tasks: 190, bandwidth: 0.0, ..job(0.0) };
    assert_eq!(best(Variant::Optimal, &wide, &clusters).unwrap().unwrap().tasks, [50, 50, 50, 40]);
    assert_eq!(best(Variant::Optimal, &Job { tasks: 201, ..wide }, &clusters), Ok(None));
}

#[test]
fn numbers_out_of_range_are_refused() {
    let sound = cluster(&[1.0], 0.0);
    assert_eq!(best(Variant::Optimal, &Job { tasks: 0, ..job(1.0) }, &[]), Err(CoallocationError::Job));
    assert_eq!(best(Variant::Optimal, &job(f64::NAN), &[]), Err(CoallocationError::Job));
    for wrong in [cluster(&[0.0], 0.0), cluster(&[1.0], -1.0), Cluster { link: 0.0, ..sound.clone() }] {
        let refused = best(Variant::Optimal, &job(1.0), &[sound.clone(), wrong]);
        assert_eq!(refused, Err(CoallocationError::Cluster(1)));
    }
}
