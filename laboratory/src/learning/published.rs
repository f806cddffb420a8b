//! What Costa 2007 printed (Tables 6.3 to 6.13), to stand beside what is found here.

/// A rule in a scenario: means and standard deviations over 15 rounds; times in seconds, the rest in percent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printed {
    pub(super) scenario: &'static str,
    pub(super) rule: &'static str,
    /// Tables 6.3 and 6.8.
    pub(super) makespan: (f64, f64),
    /// Tables 6.5 and 6.9; none of the baseline.
    pub(super) gain: Option<(f64, f64)>,
    /// Tables 6.4 and 6.10.
    pub(super) gain_chance: Option<f64>,
    /// Tables 6.6 and 6.11.
    pub(super) idleness: (f64, f64),
    /// Tables 6.7 and 6.12.
    pub(super) idleness_chance: Option<f64>,
    /// Table 6.13; none without a time-out.
    pub(super) recalled: Option<(f64, f64)>,
}

const fn base(scenario: &'static str, makespan: (f64, f64), idleness: (f64, f64)) -> Printed {
    Printed {
        scenario,
        rule: "round-robin",
        makespan,
        gain: None,
        gain_chance: None,
        idleness,
        idleness_chance: None,
        recalled: None,
    }
}

/// A learner: makespan, gain, its chance, idleness, its chance.
const fn learner(
    scenario: &'static str,
    rule: &'static str,
    makespan: (f64, f64),
    gain: (f64, f64, f64),
    idleness: (f64, f64, f64),
) -> Printed {
    Printed {
        scenario,
        rule,
        makespan,
        gain: Some((gain.0, gain.1)),
        gain_chance: Some(gain.2),
        idleness: (idleness.0, idleness.1),
        idleness_chance: Some(idleness.2),
        recalled: None,
    }
}

const fn recalling(printed: Printed, mean: f64, sd: f64) -> Printed {
    Printed { recalled: Some((mean, sd)), ..printed }
}

pub(super) const PRINTED: [Printed; 27] = [
    base("P1", (5023.78, 1361.92), (18.65, 10.31)),
    learner("P1", "ag", (4717.96, 891.08), (4.65, 7.44, 23.69), (17.80, 9.25, 40.60)),
    learner("P1", "mqd", (4615.34, 1351.17), (8.33, 7.11, 20.83), (16.01, 13.94, 27.96)),
    base("P2", (5187.85, 1287.75), (15.41, 5.30)),
    learner("P2", "ag", (4752.29, 1177.97), (8.36, 8.39, 14.67), (14.84, 4.58, 37.30)),
    learner("P2", "mqd", (4575.79, 1036.01), (11.62, 6.94, 6.55), (11.21, 6.41, 2.62)),
    base("P3", (5531.67, 472.76), (23.72, 4.61)),
    learner("P3", "ag", (5240.81, 448.03), (5.10, 5.81, 4.74), (21.42, 5.24, 10.65)),
    learner("P3", "mqd", (5560.21, 1158.34), (-0.49, 18.93, 46.53), (24.05, 11.77, 46.02)),
    base("P4", (5312.43, 659.89), (24.73, 4.98)),
    learner("P4", "ag", (4804.61, 308.70), (8.03, 9.86, 0.74), (23.12, 4.58, 17.39)),
    learner("P4", "mqd", (5748.85, 850.65), (-8.92, 17.28, 6.19), (32.44, 9.33, 0.39)),
    base("P5", (5730.68, 1007.68), (15.92, 4.10)),
    learner("P5", "ag", (5454.72, 971.86), (4.69, 6.98, 22.58), (13.00, 4.80, 4.24)),
    learner("P5", "mqd", (5464.11, 1059.03), (4.84, 5.42, 24.29), (12.81, 4.17, 2.45)),
    recalling(base("R1", (4919.78, 510.91), (33.74, 11.15)), 79.8, 21.91),
    recalling(
        learner("R1", "ag", (4608.74, 1037.26), (6.72, 15.18, 15.48), (12.71, 6.00, 0.00)),
        94.47,
        17.88,
    ),
    recalling(
        learner("R1", "mqd", (4325.36, 470.82), (11.56, 10.15, 0.13), (11.35, 8.06, 0.00)),
        104.0,
        16.59,
    ),
    recalling(base("R2", (4786.04, 710.14), (12.08, 2.80)), 56.6, 16.18),
    recalling(learner("R2", "ag", (4584.47, 543.81), (1.86, 6.16, 23.16), (9.48, 4.08, 18.29)), 54.73, 12.86),
    recalling(learner("R2", "mqd", (4324.76, 578.06), (6.98, 4.85, 8.24), (6.44, 2.09, 0.24)), 50.07, 17.7),
    recalling(base("R3", (7950.26, 731.14), (9.79, 10.41)), 57.4, 19.7),
    recalling(learner("R3", "ag", (7600.72, 577.55), (4.02, 7.09, 7.90), (7.38, 2.69, 19.96)), 61.2, 20.58),
    recalling(learner("R3", "mqd", (7567.04, 772.83), (4.75, 5.66, 8.70), (3.86, 2.00, 2.34)), 54.8, 22.28),
    recalling(base("R4", (5030.28, 460.72), (14.41, 11.35)), 21.47, 16.03),
    recalling(learner("R4", "ag", (4751.02, 480.07), (5.46, 5.49, 21.99), (8.74, 4.69, 22.08)), 19.67, 13.67),
    recalling(learner("R4", "mqd", (4548.43, 600.93), (9.53, 8.75, 0.52), (5.79, 5.79, 11.84)), 22.4, 14.81),
];
