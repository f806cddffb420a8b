//! Formulas: how much longer computing and communicating take than on idle nodes of full power.

/// SP of a task on a node: the inverse of the node's effective power, P (1 - u) / m (Lérida 3.2, 3.3), with power P, local users who take u of
/// the processor, and m tasks, this one among them. At least 1. That tasks share alike what local users leave is a reading: the thesis has no formula for
/// A while jobs come and go, and this one gives Hanzich's factor on equal nodes without local users, as it reports.
pub fn processing(power: f64, local: f64, tasks: u32) -> f64 {
    f64::from(tasks) / (power * (1.0 - local))
}

/// How many times longer a job takes: T^p SP + T^c SC over T^p + T^c (3.1), where it computes for this share of its time. Exactly 1
/// where both are: of a share and 1 minus it, rounded, the sum is rounded to 1.
pub fn stretch(computing: f64, processing: f64, communication: f64) -> f64 {
    computing * processing + (1.0 - computing) * communication
}

/// How many times its bandwidth per task a job of so many tasks sends over the link between clusters of one that has `here` of them:
/// t (tau - t) / (tau - 1), where all talk to all (4.14, after Jones). 0 for a job of one task.
pub fn communication_share(here: u32, tasks: u32) -> f64 {
    if tasks < 2 || here > tasks {
        return 0.0;
    }
    f64::from(here) * f64::from(tasks - here) / f64::from(tasks - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn processing_follows_power_local_users_and_tasks() {
        assert_eq!(processing(1.0, 0.0, 1), 1.0);
        assert_eq!(processing(0.5, 0.0, 2), 4.0);
        assert_eq!(processing(1.0, 0.5, 3), 6.0);
    }

    #[test]
    fn between_clusters_half_the_tasks_send_most() {
        let sent: Vec<f64> = (0..=8).map(|here| 100.0 * communication_share(here, 8)).collect();
        let by_hand = [0.0, 100.0, 171.43, 214.29, 228.57, 214.29, 171.43, 100.0, 0.0];
        assert!(sent.iter().zip(by_hand).all(|(sent, by_hand)| (sent - by_hand).abs() < 0.005), "{sent:?}");
        assert_eq!(communication_share(1, 1), 0.0);
    }

    proptest! {
        #[test]
        fn a_job_that_nothing_slows_down_takes_exactly_its_time(computing in 0.0f64..=1.0, tiny in -60i32..0) {
            prop_assert_eq!(stretch(computing, 1.0, 1.0), 1.0);
            prop_assert_eq!(stretch(computing * f64::from(tiny).exp2(), 1.0, 1.0), 1.0);
        }
    }
}
