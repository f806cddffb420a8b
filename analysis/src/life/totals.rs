//! The wait of a job by cause: how much of it each took in all, whichever other site had room at the time.

use std::mem::{Discriminant, discriminant};

use scheduler::{Grid, SiteId, Span};

use super::{Cause, Life};

/// What one cause took of a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// The cause in words.
    pub text: String,
    /// Time in all.
    pub length: Span,
    /// In how many parts of the wait.
    pub parts: usize,
}

impl Life {
    /// What each cause took of the wait, the largest first. Together they are all of it.
    pub fn totals(&self, grid: &Grid) -> Vec<Total> {
        let mut found: Vec<(Discriminant<Cause>, SiteId, Vec<Cause>, Span)> = Vec::new();
        for wait in &self.waits {
            let key = (discriminant(&wait.cause), wait.cause.site());
            match found.iter_mut().find(|(kind, site, ..)| (*kind, *site) == key) {
                Some((_, _, causes, length)) => {
                    causes.push(wait.cause);
                    *length += wait.length();
                }
                None => found.push((key.0, key.1, vec![wait.cause], wait.length())),
            }
        }
        // The sort is stable: of equal ones the first to happen stays first.
        found.sort_by_key(|(.., length)| std::cmp::Reverse(*length));
        let total = |(_, _, causes, length): (_, _, Vec<Cause>, Span)| {
            let same = causes.iter().all(|cause| *cause == causes[0]);
            let text = if same { causes[0].text(grid) } else { causes[0].text_of_many(grid) };
            Total { text, length, parts: causes.len() }
        };
        found.into_iter().map(total).collect()
    }
}

impl Cause {
    /// Where the job is, or comes from.
    fn site(self) -> SiteId {
        match self {
            Cause::NoProcessors { site }
            | Cause::Stays { site }
            | Cause::Allocated { site }
            | Cause::Undecided { site }
            | Cause::QueueOrder { site }
            | Cause::NotAsked { site, .. }
            | Cause::Asked { site, .. }
            | Cause::OwnWorkFirst { site, .. }
            | Cause::Offered { site }
            | Cause::Claimed { site, .. }
            | Cause::InTransit { site, .. }
            | Cause::Repeated { site, .. }
            | Cause::Held { site }
            | Cause::Stranded { site }
            | Cause::Away { site } => site,
        }
    }

    /// The cause in words where the other site was not always the same.
    fn text_of_many(self, grid: &Grid) -> String {
        let name = &grid.site(self.site()).name;
        match self {
            Cause::NotAsked { .. } => {
                format!("too few idle at {name}; other sites have room and have not asked")
            }
            Cause::Asked { .. } => {
                format!("too few idle at {name}; other sites have room and wait for its answer")
            }
            Cause::OwnWorkFirst { .. } => {
                format!("too few idle at {name}; other sites have room, but jobs of their own wait there")
            }
            Cause::Claimed { .. } => format!("other sites claimed it from {name} and have no answer yet"),
            Cause::InTransit { .. } => format!("it is on its way from {name} to other sites"),
            Cause::Repeated { .. } => {
                format!("messages between {name} and other sites were lost or late, and are repeated")
            }
            one => one.text(grid),
        }
    }
}
