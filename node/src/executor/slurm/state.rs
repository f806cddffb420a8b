//! What a state of Slurm means for a job of a site.

use scheduler::event::{BatchState, ExitCause};

use super::super::exit::Exit;

/// What a job does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// It waits in Slurm, for this reason.
    Pending,
    /// An operator must let it go on.
    Held,
    /// It runs, or begins or ends to.
    Runs,
    /// An operator made it stand still.
    Stands,
    /// It ran to its end, well or not, and has written down how.
    Ended { code: Option<i32> },
    /// It ended otherwise.
    Cut(Exit),
}

/// What it means that Slurm says this.
pub(super) fn meaning(state: &str, reason: &str) -> Meaning {
    let cut =
        |how| Meaning::Cut(Exit { how, code: None, why: Some(format!("Slurm says {state} ({reason})")) });
    match state {
        "PENDING" | "REQUEUED" | "REQUEUE_FED" | "RESV_DEL_HOLD"
            if reason.to_lowercase().contains("held") =>
        {
            Meaning::Held
        }
        "REQUEUE_HOLD" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => Meaning::Held,
        "PENDING" | "REQUEUED" | "REQUEUE_FED" => Meaning::Pending,
        "SUSPENDED" | "STOPPED" => Meaning::Stands,
        "COMPLETED" => Meaning::Ended { code: Some(0) },
        "FAILED" => Meaning::Ended { code: None },
        "TIMEOUT" | "DEADLINE" => cut(ExitCause::WallTime),
        "OUT_OF_MEMORY" => cut(ExitCause::Memory),
        "CANCELLED" | "REVOKED" | "PREEMPTED" => cut(ExitCause::Cancelled),
        "NODE_FAIL" | "BOOT_FAIL" => cut(ExitCause::NodeFailed),
        // RUNNING, COMPLETING, CONFIGURING, SIGNALING, STAGE_OUT, RESIZING, and what later versions say.
        _ => Meaning::Runs,
    }
}

/// What becomes of a job of which Slurm said one thing, if anything, and says another.
pub(super) fn changes(before: Option<&Meaning>, now: &Meaning) -> &'static [BatchState] {
    // One that has ended may have been queued again before its end was believed.
    let ran = matches!(before, Some(Meaning::Runs | Meaning::Stands | Meaning::Ended { .. }));
    let was_held = before == Some(&Meaning::Held);
    match now {
        Meaning::Pending if ran => &[BatchState::Requeued],
        Meaning::Held if ran => &[BatchState::Requeued, BatchState::Held],
        Meaning::Held => &[BatchState::Held],
        Meaning::Pending | Meaning::Runs if was_held => &[BatchState::Released],
        Meaning::Stands => &[BatchState::Suspended],
        Meaning::Runs if before == Some(&Meaning::Stands) => &[BatchState::Resumed],
        Meaning::Pending | Meaning::Runs | Meaning::Ended { .. } | Meaning::Cut(_) => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_what_slurm_says_is_told_once_and_as_what_it_is() {
        let ended = Meaning::Ended { code: Some(0) };
        let (held, released, requeued) = (BatchState::Held, BatchState::Released, BatchState::Requeued);
        let (suspended, resumed) = (BatchState::Suspended, BatchState::Resumed);
        let path = [
            (Meaning::Pending, vec![]),
            (Meaning::Held, vec![held]),
            (Meaning::Pending, vec![released]),
            (Meaning::Runs, vec![]),
            (Meaning::Stands, vec![suspended]),
            (Meaning::Runs, vec![resumed]),
            (Meaning::Pending, vec![requeued]),
            (Meaning::Runs, vec![]),
            (Meaning::Held, vec![requeued, held]),
            (Meaning::Runs, vec![released]),
            (ended.clone(), vec![]),
            (Meaning::Pending, vec![requeued]),
            (ended.clone(), vec![]),
            (Meaning::Held, vec![requeued, held]),
        ];
        let mut before = None;
        for (now, told) in &path {
            assert_eq!(changes(before, now), told, "{before:?}, {now:?}");
            before = Some(now);
        }
    }

    #[test]
    fn each_state_means_something() {
        for (state, reason, expected) in [
            ("PENDING", "Resources", Meaning::Pending),
            ("PENDING", "JobHeldAdmin", Meaning::Held),
            ("PENDING", "launch failed requeued held", Meaning::Held),
            ("RUNNING", "None", Meaning::Runs),
            ("COMPLETING", "None", Meaning::Runs),
            ("SUSPENDED", "None", Meaning::Stands),
            ("COMPLETED", "None", Meaning::Ended { code: Some(0) }),
            ("FAILED", "NonZeroExitCode", Meaning::Ended { code: None }),
        ] {
            assert_eq!(meaning(state, reason), expected, "{state} {reason}");
        }
        for (state, how) in [
            ("TIMEOUT", ExitCause::WallTime),
            ("OUT_OF_MEMORY", ExitCause::Memory),
            ("CANCELLED", ExitCause::Cancelled),
            ("PREEMPTED", ExitCause::Cancelled),
            ("NODE_FAIL", ExitCause::NodeFailed),
        ] {
            assert!(matches!(meaning(state, "x"), Meaning::Cut(exit) if exit.how == how), "{state}");
        }
    }
}
