//! What a state of Slurm means for a job of a site.

use scheduler::event::ExitCause;

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

#[cfg(test)]
mod tests {
    use super::*;

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
