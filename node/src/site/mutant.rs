//! A node by the wall clock that makes a mistake with a job, if the environment asks for it: what audits must find.

use scheduler::EventKind;

/// With which job of a node it makes its mistake. Arbitrary; early enough for short tests.
const JOB: u64 = 5;

/// Which mistake a node makes: `STEALGRID_MUTANT` is `lose`, `repeat`, something else, or not set.
pub(super) struct Mutant {
    mistake: Option<String>,
    submitted: u64,
    completed: u64,
}

impl Mutant {
    pub(super) fn from_environment() -> Mutant {
        Mutant { mistake: std::env::var("STEALGRID_MUTANT").ok(), submitted: 0, completed: 0 }
    }

    /// Whether a job that comes now is forgotten.
    pub(super) fn loses(&mut self) -> bool {
        self.submitted += 1;
        self.submitted == JOB && self.mistake.as_deref() == Some("lose")
    }

    /// What happens after this: a job that has ended is executed once more, in no time.
    pub(super) fn repeats(&mut self, kind: &EventKind) -> Vec<EventKind> {
        let EventKind::Completed { job, processors } = *kind else { return Vec::new() };
        self.completed += 1;
        match self.completed == JOB && self.mistake.as_deref() == Some("repeat") {
            true => vec![
                EventKind::Started { job, processors, hops: 0 },
                EventKind::Completed { job, processors },
            ],
            false => Vec::new(),
        }
    }
}
