//! The worked examples of the exchange through a global queue: for every configuration, when and where each job
//! starts, and which jobs their sites offer when. Two independent models agree on them.

use std::collections::BTreeSet;

use scheduler::ideal::{CommonPool, PoolExchange};
use scheduler::{
    Grid, JobId, JobSpec, Labels, Policy, SiteId, Span, Strategy, StrategySpec, Submit, Time, TimedJob,
};

use crate::ideal_twin::play_with;

/// One workload and what becomes of it.
struct Example {
    sizes: &'static [u32],
    /// `id:submit,size,run,estimate,origin`.
    jobs: &'static str,
    /// Configurations, `job@start/site` and `job@time` of the offers.
    rows: &'static [(&'static str, &'static str, &'static str)],
}

/// Nine different schedules.
const P1: Example = Example {
    sizes: &[4, 4],
    jobs: "1:3,3,4,4,2; 2:4,4,6,9,1; 3:3,1,6,6,1; 4:0,2,5,5,2; 5:3,1,5,6,1; 6:1,4,3,3,2; 7:3,2,4,4,2",
    rows: &[
        ("fcfs/head", "1@7/2 2@4/1 3@7/2 4@0/2 5@10/1 6@1/1 7@3/2", "6@1 3@3 5@3 1@3"),
        ("fcfs/all", "1@5/2 2@4/1 3@5/2 4@0/2 5@9/2 6@1/1 7@9/2", "6@1 3@3 5@3 1@3 7@3"),
        ("fcfs/all-but-head", "1@8/2 2@9/1 3@3/1 4@0/2 5@3/1 6@5/2 7@12/2", "1@3 7@3"),
        ("easy/head", "1@7/2 2@4/1 3@5/2 4@0/2 5@10/1 6@1/1 7@3/2", "6@1 3@3 5@3 1@3"),
        ("easy/all", "1@5/2 2@4/1 3@3/2 4@0/2 5@9/2 6@1/1 7@9/2", "6@1 3@3 5@3 1@3 7@3"),
        ("easy/all-but-head", "1@8/2 2@9/1 3@3/1 4@0/2 5@3/1 6@5/2 7@3/1", "1@3 7@3"),
        ("list/head, list/all", "1@10/1 2@4/1 3@5/2 4@0/2 5@5/2 6@1/1 7@3/2", "6@1 3@3 5@3 1@3"),
        ("list/all-but-head", "1@8/1 2@12/1 3@3/1 4@0/2 5@3/1 6@7/2 7@3/2", "1@3"),
        ("lcp", "1@4/2 2@8/2 3@3/1 4@0/1 5@3/1 6@1/2 7@5/1", ""),
    ],
};

/// A job wider than its origin; equal sites.
const P2: Example = Example {
    sizes: &[2, 6, 6],
    jobs: "1:0,2,5,5,1; 2:0,5,4,4,1; 3:0,4,6,6,2; 4:1,6,2,2,2; 5:1,2,3,3,3; 6:2,1,4,4,1",
    rows: &[
        ("fcfs/head, fcfs/all", "1@0/1 2@0/3 3@0/2 4@4/3 5@4/2 6@5/1", "4@1 5@1 6@2"),
        (
            "fcfs/all-but-head, easy/all-but-head, list/all-but-head",
            "1@0/1 2@0/3 3@0/2 4@6/2 5@4/3 6@5/1",
            "",
        ),
        ("easy/head, easy/all", "1@0/1 2@0/3 3@0/2 4@4/3 5@1/2 6@4/2", "4@1 5@1 6@2"),
        ("list/head, list/all", "1@0/1 2@0/3 3@0/2 4@6/2 5@1/2 6@2/3", "4@1 5@1 6@2"),
        ("lcp", "1@0/1 2@0/2 3@0/3 4@6/2 5@1/3 6@2/2", ""),
    ],
};

/// Who holds the reservation.
const P3: Example = Example {
    sizes: &[4],
    jobs: "1:0,3,10,10,1; 2:1,4,5,5,1; 3:2,1,9,9,1; 4:3,1,6,6,1; 5:9,2,7,7,1; 6:9,1,4,4,1",
    rows: &[
        (
            "fcfs/head, fcfs/all, easy/head, easy/all",
            "1@0/1 2@11/1 3@2/1 4@16/1 5@16/1 6@16/1",
            "2@1 4@3 5@9 6@9",
        ),
        ("fcfs/all-but-head", "1@0/1 2@10/1 3@15/1 4@15/1 5@15/1 6@21/1", "3@2 4@3 5@9 6@9"),
        ("easy/all-but-head", "1@0/1 2@10/1 3@15/1 4@3/1 5@15/1 6@15/1", "3@2 5@9 6@9"),
        ("list/head, list/all", "1@0/1 2@17/1 3@2/1 4@10/1 5@10/1 6@11/1", "2@1 4@3 5@9 6@9"),
        ("list/all-but-head", "1@0/1 2@17/1 3@2/1 4@10/1 5@10/1 6@11/1", "4@3 5@9 6@9"),
        ("lcp", "1@0/1 2@17/1 3@2/1 4@10/1 5@10/1 6@11/1", ""),
    ],
};

/// A second pass at one instant.
const P4: Example = Example {
    sizes: &[4, 4],
    jobs: "1:3,2,3,5,2; 2:2,1,5,5,1; 3:2,4,3,5,1; 4:2,4,2,4,1",
    rows: &[
        ("fcfs/head, fcfs/all, easy/head, easy/all", "1@5/1 2@2/1 3@2/2 4@5/2", "3@2 4@2 1@3"),
        ("fcfs/all-but-head, easy/all-but-head, list/all-but-head", "1@4/2 2@2/1 3@7/1 4@2/2", "4@2"),
        ("list/head, list/all", "1@3/1 2@2/1 3@2/2 4@5/2", "3@2 4@2 1@3"),
        ("lcp", "1@3/1 2@2/1 3@2/2 4@5/2", ""),
    ],
};

/// Two sites want the same job.
const P5: Example = Example {
    sizes: &[6, 6],
    jobs: "1:1,5,4,4,2; 2:3,4,5,5,2; 3:2,5,3,5,1",
    rows: &[
        ("fcfs/head, fcfs/all, easy/head, easy/all, list/head, list/all", "1@1/2 2@5/1 3@2/1", "2@3"),
        ("fcfs/all-but-head, easy/all-but-head, list/all-but-head", "1@1/2 2@5/2 3@2/1", ""),
        ("lcp", "1@1/1 2@5/1 3@2/2", ""),
    ],
};

/// Estimates too long and too short.
const P6: Example = Example {
    sizes: &[4, 4],
    jobs: "1:0,3,4,8,1; 2:0,4,9,5,2; 3:1,2,3,3,1; 4:1,1,6,7,1; 5:2,1,2,9,2; 6:5,3,2,2,2",
    rows: &[
        (
            "fcfs/head, easy/head, easy/all, list/head, list/all",
            "1@0/1 2@0/2 3@4/1 4@1/1 5@4/1 6@7/1",
            "3@1 5@2 6@5",
        ),
        ("lcp", "1@0/1 2@0/2 3@4/1 4@1/1 5@4/1 6@7/1", ""),
        ("fcfs/all", "1@0/1 2@0/2 3@4/1 4@4/1 5@4/1 6@7/1", "3@1 4@1 5@2 6@5"),
        ("fcfs/all-but-head", "1@0/1 2@0/2 3@4/1 4@4/1 5@9/2 6@7/1", "4@1 6@5"),
        ("easy/all-but-head, list/all-but-head", "1@0/1 2@0/2 3@4/1 4@1/1 5@9/2 6@7/1", "6@5"),
    ],
};

/// Starvation: a stream of narrow jobs holds back a wide one.
const P7: Example = Example {
    sizes: &[4],
    jobs: "1:0,2,6,6,1; 2:1,4,5,5,1; 3:4,2,6,6,1; 4:8,2,6,6,1; 5:12,2,6,6,1; 6:16,2,6,6,1",
    rows: &[
        (
            "fcfs/head, fcfs/all, easy/head, easy/all, list/head, list/all",
            "1@0/1 2@22/1 3@4/1 4@8/1 5@12/1 6@16/1",
            "2@1",
        ),
        ("list/all-but-head, lcp", "1@0/1 2@22/1 3@4/1 4@8/1 5@12/1 6@16/1", ""),
        ("fcfs/all-but-head, easy/all-but-head", "1@0/1 2@6/1 3@11/1 4@11/1 5@17/1 6@17/1", "3@4 6@16"),
    ],
};

#[test]
fn every_job_starts_and_is_offered_as_worked_out_by_hand() {
    for (name, example) in
        [("P1", P1), ("P2", P2), ("P3", P3), ("P4", P4), ("P5", P5), ("P6", P6), ("P7", P7)]
    {
        let grid = Grid::of_sizes(example.sizes).unwrap();
        let jobs = parse(example.jobs);
        let mut configurations = 0;
        for &(names, starts, offers) in example.rows {
            for configuration in names.split(", ") {
                let ran = run(configuration, &grid, &jobs);
                assert_eq!(ran, (words(starts), words(offers)), "{name} {configuration}");
                configurations += 1;
            }
        }
        assert_eq!(
            configurations, 10,
            "{name} is known under three algorithms, three offers, and the common pool"
        );
    }
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().map(String::from).collect()
}

fn parse(jobs: &str) -> Vec<TimedJob> {
    let mut jobs: Vec<TimedJob> = jobs
        .split("; ")
        .map(|job| {
            let (id, rest) = job.split_once(':').expect("an id");
            let numbers: Vec<i64> = rest.split(',').map(|number| number.parse().expect("a number")).collect();
            let [submit, processors, run, estimate, origin] = numbers[..] else {
                panic!("five numbers: {job}")
            };
            TimedJob {
                spec: JobSpec {
                    id: JobId(id.parse().expect("an id")),
                    submit: Time::from_secs(submit),
                    processors: processors as u32,
                    requested: Span::from_secs(estimate),
                    labels: Labels::UNKNOWN,
                    origin: SiteId(origin as u32),
                    payload: 0,
                },
                run_time: Span::from_secs(run),
            }
        })
        .collect();
    jobs.sort_by_key(|job| job.spec.key());
    jobs
}

/// `job@start/site` and `job@time` of the offers.
fn run(configuration: &str, grid: &Grid, jobs: &[TimedJob]) -> (BTreeSet<String>, BTreeSet<String>) {
    let Some((algorithm, offer)) = configuration.split_once('/') else {
        return drive(CommonPool::new(grid), jobs, |_| Vec::new());
    };
    let strategy: StrategySpec = format!("pool:{algorithm},offer={offer}").parse().expect("a strategy");
    let Strategy::Pool(pool) = strategy.strategy else { unreachable!("the name of a pool") };
    drive(PoolExchange::new(grid, pool, Submit::Origin), jobs, |policy| policy.offered().to_vec())
}

fn drive<P: Policy>(
    mut policy: P,
    jobs: &[TimedJob],
    offered: impl Fn(&P) -> Vec<JobId>,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let mut offers = BTreeSet::new();
    let ran = play_with(&mut policy, jobs, |now, policy| {
        offers.extend(offered(policy).into_iter().map(|id| format!("{id}@{now}")));
    });
    (ran.into_iter().map(|(id, site, start, _)| format!("{id}@{start}/{site}")).collect(), offers)
}
