//! What goes wrong, and when.

use links::{Cut, Model, Probability, Properties, Rule};
use scheduler::{SiteId, Span, Time};
use serde::Serialize;

/// One thing that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The process of a site ends, with the jobs that it executes. Messages to it are lost; users wait with theirs.
    Crash {
        /// The site whose process ends.
        site: SiteId,
        /// True time when it ends.
        at: Time,
        /// How long until it restarts; none if it never does. Then the operator acts after the lease.
        down: Option<Span>,
        /// Of calls whose facts are still being written, this share becomes durable, from the oldest.
        written_percent: u8,
        /// Not at that instant, but in the middle of the next call that has facts.
        torn: Option<Torn>,
    },
    /// A site stands still for a while, as by SIGSTOP. What happens to it meanwhile it finds when it goes on.
    Pause {
        /// The site that stands still.
        site: SiteId,
        /// When it stops, in true time.
        at: Time,
        /// How long until it goes on.
        lasts: Span,
    },
    /// The operator has a site give its jobs away. Its process ends for good when it has nothing left.
    Leave {
        /// The site that is to leave.
        site: SiteId,
        /// When it is told, in true time.
        at: Time,
    },
    /// A site is not there from the start: its process begins for the first time.
    Join {
        /// The site that joins.
        site: SiteId,
        /// When its process begins, in true time.
        at: Time,
    },
    /// Some links are cut.
    Cut(Cut),
    /// Every link loses and doubles messages, and some overtake each other.
    Noise(Properties),
    /// A site's clock is wrong all the time.
    Clock {
        /// The site whose clock is wrong.
        site: SiteId,
        /// What it shows at time zero.
        offset: Span,
        /// So many microseconds too fast in each second.
        drift_ppm: i64,
    },
    /// A site's clock is set anew: from then on it shows more, or less, than it would. A process whose clock is set back
    /// does not see that, as its time never runs backwards; the next one does.
    Step {
        /// The site whose clock is set.
        site: SiteId,
        /// When it is set, in true time.
        at: Time,
        /// By how much.
        by: Span,
    },
    /// A disk has no room: the process ends at the first write, and each that begins until there is room again.
    FullDisk {
        /// The site whose disk is full.
        site: SiteId,
        /// From then on.
        at: Time,
        /// The first instant, in true time, when there is room again.
        until: Time,
    },
    /// A disk is lost and with it all that the site knew. It comes back, see [`protocol::membership`].
    LostDisk {
        /// The site whose disk is lost.
        site: SiteId,
        /// When it is lost, in true time.
        at: Time,
        /// How long until it restarts.
        down: Span,
    },
    /// Whoever hands jobs over and plays the operator ends, in the middle of what it does next or at that instant. Nobody
    /// begins processes again, brings jobs or gives orders until another goes on with what it had noted.
    Coordinator {
        /// When it ends, in true time.
        at: Time,
        /// How long until another goes on.
        down: Span,
        /// In the middle of the next thing it does: so many orders still reach their sites.
        torn: Option<u8>,
    },
    /// What a site says is not what it means.
    Liar {
        /// The site whose messages are changed.
        site: SiteId,
        /// From then on, until all is healed.
        at: Time,
        /// So many of a hundred messages are lies.
        percent: u8,
    },
    /// What a site writes takes its time, and everything else that it wants done waits for it.
    SlowDisk {
        /// The site whose disk is slow.
        site: SiteId,
        /// From then on.
        at: Time,
        /// The first instant, in true time, when it is fast again.
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
            | Fault::Step { site, .. }
            | Fault::FullDisk { site, .. }
            | Fault::LostDisk { site, .. }
            | Fault::Liar { site, .. }
            | Fault::SlowDisk { site, .. } => Some(*site),
            Fault::Cut(_) | Fault::Noise(_) | Fault::Coordinator { .. } => None,
        }
    }
}

/// The links with all faults of links, until `healed` if they ever are, and reliable from then on.
pub(crate) fn links(network: &Model, faults: &[Fault], healed: Option<Time>) -> Model {
    let mut model = network.clone();
    for fault in faults {
        match fault {
            Fault::Cut(cut) => model.cuts.push(cut.clone()),
            Fault::Noise(properties) => {
                let bandwidth = network.properties.bandwidth;
                model.properties = Properties { bandwidth, ..*properties };
            }
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
