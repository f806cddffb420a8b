//! What goes wrong, and when.

use links::{Cut, Model, Probability, Properties, Rule};
use scheduler::{SiteId, Span, Time};
use serde::Serialize;

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The process of a site ends, with the jobs that it executes. Letters to it are lost; users wait with theirs.
    Crash {
        /// Where.
        site: SiteId,
        /// When.
        at: Time,
        /// How long until it begins again; none if it never does. Then the operator acts after the lease.
        down: Option<Span>,
        /// Of calls whose facts are still being written, this share becomes durable, from the oldest.
        written_percent: u8,
        /// Not at that instant, but in the middle of the next call that has facts.
        torn: Option<Torn>,
    },
    /// A site stands still for a while, as by SIGSTOP. What happens to it meanwhile it finds when it goes on.
    Pause {
        /// Where.
        site: SiteId,
        /// When.
        at: Time,
        /// How long.
        lasts: Span,
    },
    /// The operator has a site give its jobs away. Its process ends for good when it has nothing left.
    Leave {
        /// Where.
        site: SiteId,
        /// When.
        at: Time,
    },
    /// A site is not there from the start: its process begins for the first time.
    Join {
        /// Where.
        site: SiteId,
        /// When.
        at: Time,
    },
    /// Some links are cut.
    Cut(Cut),
    /// Every link loses and doubles messages, and some overtake each other.
    Noise(Properties),
    /// A site's clock is wrong all the time.
    Clock {
        /// Where.
        site: SiteId,
        /// What it shows at time zero.
        offset: Span,
        /// So many microseconds too fast in each second.
        drift_ppm: i64,
    },
    /// What a site writes takes its time, and everything else that it wants done waits for it.
    SlowDisk {
        /// Where.
        site: SiteId,
        /// From then on.
        at: Time,
        /// Until then.
        until: Time,
        /// How long a write takes.
        takes: Span,
    },
}

/// Where in a call a crash strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Torn {
    /// Whether the facts of the call are durable. If not, nothing of the call has happened.
    pub written: bool,
    /// So many of its other outputs are carried out.
    pub outputs: usize,
}

impl Fault {
    /// The site that it strikes; none for links.
    pub fn site(&self) -> Option<SiteId> {
        match self {
            Fault::Crash { site, .. }
            | Fault::Pause { site, .. }
            | Fault::Leave { site, .. }
            | Fault::Join { site, .. }
            | Fault::Clock { site, .. }
            | Fault::SlowDisk { site, .. } => Some(*site),
            Fault::Cut(_) | Fault::Noise(_) => None,
        }
    }
}

/// The links with all faults of links, until `healed` if they ever are, and reliable from then on.
pub(crate) fn links(network: &Model, faults: &[Fault], healed: Option<Time>) -> Model {
    let mut model = network.clone();
    for fault in faults {
        match fault {
            Fault::Cut(cut) => model.cuts.push(cut.clone()),
            Fault::Noise(properties) => model.properties = *properties,
            _ => {}
        }
    }
    let Some(healed) = healed else { return model };
    model.rules.push(Rule {
        at: Some(healed),
        loss: Some(Probability::ZERO),
        duplication: Some(Probability::ZERO),
        // Noise makes messages later than repetition allows for, so it must end.
        jitter: Some(network.properties.jitter),
        reorder: Some(network.properties.reorder),
        ..Rule::default()
    });
    model
}
