use proptest::prelude::*;

use super::*;

/// A job with times in microseconds, so that rounding is exercised.
fn job((release, processors, run_time): (i64, u32, i64)) -> BoundJob {
    BoundJob { release: Span::from_micros(release), processors, run_time: Span::from_micros(run_time) }
}

/// The bounds by their definition: every k, every q up to the widest site, every release.
fn naive(grid: &Grid, jobs: &[BoundJob]) -> Bounds {
    let ceil = |weight: i128, capacity: i128| (weight + capacity - 1).div_euclid(capacity);
    let time = jobs.iter().map(|job| (job.release + job.run_time).as_micros()).max().unwrap_or(0);
    let (mut area_start, mut area, mut count) = (0, 0, 0);
    for k in 0..grid.len() {
        let capacity = i128::from(grid.suffix_processors(k));
        let inside = |job: &&BoundJob| grid.home_rank(job.processors).unwrap() >= k;
        area_start = area_start.max(ceil(jobs.iter().filter(inside).map(work).sum(), capacity));
        for rho in jobs.iter().map(|job| job.release) {
            let since: Vec<&BoundJob> = jobs.iter().filter(inside).filter(|job| job.release >= rho).collect();
            if !since.is_empty() {
                let weight = since.into_iter().map(work).sum();
                area = area.max(i128::from(rho.as_micros()) + ceil(weight, capacity));
            }
        }
    }
    for q in 1..=grid.widest() {
        let slots = grid.sizes().iter().map(|size| i128::from(size / q)).sum();
        for rho in jobs.iter().map(|job| job.release) {
            let since: Vec<&BoundJob> =
                jobs.iter().filter(|job| job.processors >= q && job.release >= rho).collect();
            if !since.is_empty() {
                let weight = since.iter().map(|job| i128::from(job.run_time.as_micros())).sum();
                count = count.max(i128::from(rho.as_micros()) + ceil(weight, slots));
            }
        }
    }
    let total = ceil(jobs.iter().map(work).sum(), i128::from(grid.processors()));
    let span = |micros: i128| Span::from_micros(i64::try_from(micros).unwrap());
    let (time, area_thesis) = (Span::from_micros(time), span(total));
    let (area_start, area, count) = (span(area_start), span(area), span(count));
    Bounds {
        time,
        area_thesis,
        area_start,
        area,
        count,
        thesis: time.max(area_thesis),
        proof: time.max(area_start),
        best: [time, area_thesis, area, count].into_iter().max().unwrap(),
    }
}

/// The optimal makespan by trying every order of jobs and every site for each, earliest feasible start first.
/// Some order gives an optimum, because an optimal schedule can be rebuilt in the order of its starts.
fn optimum(grid: &Grid, jobs: &[BoundJob]) -> i64 {
    fn earliest(placed: &[(i64, i64, u32, usize)], site: usize, free: u32, job: &BoundJob) -> i64 {
        let (release, length) = (job.release.as_micros(), job.run_time.as_micros());
        let mut candidates: Vec<i64> = placed.iter().map(|p| p.1).filter(|&end| end > release).collect();
        candidates.push(release);
        candidates.sort_unstable();
        let fits = |start: i64| {
            let instants =
                placed.iter().map(|p| p.0.max(start)).filter(|&t| t < start + length).chain([start]);
            instants.into_iter().all(|t| {
                let running = placed.iter().filter(|p| p.3 == site && p.0 <= t && t < p.1);
                running.map(|p| p.2).sum::<u32>() + job.processors <= free
            })
        };
        candidates.into_iter().find(|&start| fits(start)).unwrap()
    }
    fn search(grid: &Grid, left: &mut Vec<BoundJob>, placed: &mut Vec<(i64, i64, u32, usize)>) -> i64 {
        if left.is_empty() {
            return placed.iter().map(|p| p.1).max().unwrap_or(0);
        }
        let mut best = i64::MAX;
        for index in 0..left.len() {
            let job = left.remove(index);
            for (site, &size) in grid.sizes().iter().enumerate() {
                if job.processors <= size {
                    let start = earliest(placed, site, size, &job);
                    placed.push((start, start + job.run_time.as_micros(), job.processors, site));
                    best = best.min(search(grid, left, placed));
                    placed.pop();
                }
            }
            left.insert(index, job);
        }
        best
    }
    search(grid, &mut jobs.to_vec(), &mut Vec::new())
}

fn instances(jobs: std::ops::Range<usize>) -> impl Strategy<Value = (Vec<u32>, Vec<BoundJob>)> {
    let sizes = prop::collection::vec(1u32..9, 1..5);
    let jobs = prop::collection::vec((0i64..12, 1u32..9, 0i64..10), jobs);
    (sizes, jobs).prop_map(|(sizes, jobs)| {
        let widest = *sizes.iter().max().unwrap();
        let jobs = jobs.into_iter().map(|(release, width, length)| job((release, width.min(widest), length)));
        (sizes, jobs.collect())
    })
}

proptest! {
    #[test]
    fn equals_the_definition((sizes, mut jobs) in instances(0..40)) {
        let grid = Grid::of_sizes(&sizes).unwrap();
        let expected = naive(&grid, &jobs);
        prop_assert_eq!(Bounds::of_jobs(&grid, &mut jobs), expected);
    }

    /// More jobs than a block, so that whole blocks are skipped.
    #[test]
    fn equals_the_definition_over_several_blocks(
        seed in prop::collection::vec((0i64..3, 1u32..7, 0i64..9), 12),
        stretch in 1i64..5,
    ) {
        let grid = Grid::of_sizes(&[2, 6]).unwrap();
        let mut release = 0;
        let mut jobs: Vec<BoundJob> = (0..1100).map(|index| {
            let (gap, width, length) = seed[index * 7 % seed.len()];
            release += gap * stretch;
            job((release, width.min(6), length))
        }).collect();
        let expected = naive_by_scan(&grid, &jobs);
        let bounds = Bounds::of_jobs(&grid, &mut jobs);
        prop_assert_eq!((bounds.area.as_micros(), bounds.count.as_micros()), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_bound_exceeds_the_optimum((sizes, mut jobs) in instances(1..5)) {
        let grid = Grid::of_sizes(&sizes[..sizes.len().min(2)]).unwrap();
        jobs.retain(|job| job.processors <= grid.widest());
        let bounds = Bounds::of_jobs(&grid, &mut jobs);
        prop_assert!(bounds.best.as_micros() <= optimum(&grid, &jobs));
    }
}

/// The two searched bounds with one scan of running sums for each k and q.
fn naive_by_scan(grid: &Grid, jobs: &[BoundJob]) -> (i64, i64) {
    let scan = |weight: &dyn Fn(&BoundJob) -> Option<i128>, capacity: i128| {
        let mut sum = 0;
        let mut best = 0;
        for job in jobs.iter().rev() {
            if let Some(weight) = weight(job) {
                sum += weight;
                best = best.max(i128::from(job.release.as_micros()) + (sum + capacity - 1) / capacity);
            }
        }
        best as i64
    };
    let area = (0..grid.len()).map(|k| {
        let weight = |job: &BoundJob| (grid.home_rank(job.processors).unwrap() >= k).then(|| work(job));
        scan(&weight, i128::from(grid.suffix_processors(k)))
    });
    let count = (1..=grid.widest()).map(|q| {
        let weight = |job: &BoundJob| (job.processors >= q).then(|| i128::from(job.run_time.as_micros()));
        scan(&weight, grid.sizes().iter().map(|size| i128::from(size / q)).sum())
    });
    (area.max().unwrap(), count.max().unwrap())
}

#[test]
fn the_published_bound_ignores_that_wide_jobs_fit_few_sites() {
    // Two jobs as wide as the wide site must run one after the other there; the small site does not help.
    let grid = Grid::of_sizes(&[4, 8]).unwrap();
    let mut jobs = [job((0, 8, 10)), job((0, 8, 10))];

    let bounds = Bounds::of_jobs(&grid, &mut jobs);

    assert_eq!(bounds.thesis, Span::from_micros(14));
    assert_eq!(bounds.proof, Span::from_micros(20));
    assert_eq!(bounds.best, Span::from_micros(20));
}

#[test]
fn slots_count_when_area_is_wasted() {
    // Jobs of width 3 on 4 processors: one slot, although a quarter of the area stays idle.
    let grid = Grid::of_sizes(&[4]).unwrap();
    let mut jobs = [job((0, 3, 10)), job((0, 3, 10))];

    let bounds = Bounds::of_jobs(&grid, &mut jobs);

    assert_eq!(bounds.area, Span::from_micros(15));
    assert_eq!(bounds.count, Span::from_micros(20));
}

#[test]
fn no_job_means_no_bound() {
    let grid = Grid::of_sizes(&[4]).unwrap();
    assert_eq!(Bounds::of_jobs(&grid, &mut []), Bounds::default());
}

/// Turns an instance, jobs and sizes, into another.
type Slip<'a> = &'a dyn Fn(&mut Vec<BoundJob>, &mut Vec<u32>);

/// Twins that differ from the definition in one place each are told apart on the instances that are drawn.
#[test]
fn mutant_a_bound_with_a_slip_is_not_its_twin() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    const INSTANCES: usize = 256;
    let mut runner = TestRunner::deterministic();
    let drawn: Vec<(Vec<u32>, Vec<BoundJob>)> =
        (0..INSTANCES).map(|_| instances(0..40).new_tree(&mut runner).unwrap().current()).collect();
    let noticed = |slip: Slip<'_>| {
        let differs = |(sizes, jobs): &&(Vec<u32>, Vec<BoundJob>)| {
            let (mut jobs, mut other_jobs, mut other_sizes) = (jobs.clone(), jobs.clone(), sizes.clone());
            slip(&mut other_jobs, &mut other_sizes);
            let grid = Grid::of_sizes(sizes).unwrap();
            Bounds::of_jobs(&grid, &mut jobs) != naive(&Grid::of_sizes(&other_sizes).unwrap(), &other_jobs)
        };
        drawn.iter().filter(differs).count()
    };
    assert_eq!(noticed(&|_, _| {}), 0);
    let slips: [(&str, Slip<'_>); 4] = [
        ("releases are forgotten", &|jobs, _| jobs.iter_mut().for_each(|job| job.release = Span::ZERO)),
        ("the last job is forgotten", &|jobs, _| jobs.truncate(jobs.len().saturating_sub(1))),
        ("widths are forgotten", &|jobs, _| jobs.iter_mut().for_each(|job| job.processors = 1)),
        ("the widest site has one processor more", &|_, sizes| *sizes.iter_mut().max().unwrap() += 1),
    ];
    for (what, slip) in slips {
        let noticed = noticed(slip);
        println!("{what}: noticed in {noticed} of {INSTANCES} instances");
        assert!(noticed > INSTANCES / 10, "{what}: noticed in {noticed} of {INSTANCES} instances");
    }
}
