//! Causes of a wait: what they are, their words, and what each took in all.

use scheduler::{Grid, SiteId, Span};
use serde::{Serialize, Serializer};

use super::Life;
use crate::waits;

/// Why a job does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cause {
    /// What is true of the grid.
    #[serde(rename = "cause")]
    pub reason: Reason,
    /// Where the job is, or comes from.
    pub site: SiteId,
    /// The other site that it is about: of several with room the smallest; where a job on its way goes to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<SiteId>,
    /// What more is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<Note>,
}

/// What is true of the grid: as in section `waits` of the metrics, or that faults are in the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// One of those that are true where nothing fails.
    Of(waits::Cause),
    /// No site that is there is wide enough.
    Orphaned,
    /// Its site is down, or stands still.
    Away,
}

/// What more is known of a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The other site claimed it in a global queue, and has no answer.
    Claimed,
    /// A message of this hand-over was lost or had to be repeated.
    Repeated,
    /// It was submitted, and the log has it only later.
    Late,
    /// Its site is a broker that has given it to no site yet.
    Undecided,
    /// Its site is a broker that has not started it in parts at several sites yet.
    InParts,
    /// It is at the site where it starts, which a reference of brokers does not log before that.
    Allocated,
}

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

impl Reason {
    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Of(cause) => cause.name(),
            Reason::Orphaned => "orphaned",
            Reason::Away => "away",
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Cause {
    /// The cause as a clause in words, with the names of the sites.
    pub fn text(self, grid: &Grid) -> String {
        let room = self.room.map_or("another site", |room| &grid.site(room).name);
        self.words(grid, room, "has")
    }

    fn words(self, grid: &Grid, room: &str, has: &str) -> String {
        let site = &grid.site(self.site).name;
        let idle = if grid.cluster(self.site).is_some() { "nodes with room and memory" } else { "idle" };
        let busy = format!("too few {idle} at {site}");
        let cause = match (self.reason, self.note) {
            (Reason::Orphaned, _) => {
                return format!("no site that is there is wide enough; it waits at {site}");
            }
            (Reason::Away, _) => return format!("{site} is down or stands still"),
            (Reason::Of(_), Some(Note::Repeated)) => {
                return format!("a message between {site} and {room} was lost or late, and is repeated");
            }
            (Reason::Of(_), Some(Note::Claimed)) => {
                return format!("{room} claimed it from {site} and {has} no answer yet");
            }
            (Reason::Of(_), Some(Note::Late)) => {
                return format!("it is submitted and has not reached {room} yet");
            }
            (Reason::Of(_), Some(Note::Allocated)) => {
                return format!(
                    "{site} gave it to the site where it starts, and it waits for its turn there"
                );
            }
            (Reason::Of(waits::Cause::InParts), Some(Note::InParts)) => {
                return format!(
                    "{site} has not started it in parts yet, though enough are idle at all sites together: it asks them, or may not use these"
                );
            }
            (Reason::Of(_), Some(Note::InParts)) => {
                return format!(
                    "{site} has not started it in parts yet: too few are idle at all sites together"
                );
            }
            (Reason::Of(waits::Cause::Full), Some(Note::Undecided)) => {
                return format!("{site} has not given it to a site yet, and none has room");
            }
            (Reason::Of(_), Some(Note::Undecided)) => {
                return format!("{site} has not given it to a site yet, though {room} {has} room");
            }
            (Reason::Of(cause), None) => cause,
        };
        match cause {
            waits::Cause::InTransit => format!("it is on its way from {site} to {room}"),
            waits::Cause::Queue => match grid.cluster(self.site) {
                Some(_) => {
                    format!(
                        "enough nodes have room and memory at {site}, but others go first by the rules of its queue"
                    )
                }
                None => {
                    format!("enough are idle at {site}, but others go first by the rules of its queue")
                }
            },
            waits::Cause::Asked => format!("{busy}; {room} {has} room and no answer to its question yet"),
            waits::Cause::Offered => {
                format!("{busy}; {room} {has} room, and nobody took it from the global queue yet")
            }
            waits::Cause::Blind => format!("{busy}; {room} {has} room and {has} not asked"),
            waits::Cause::Ineligible => {
                format!("{busy}; {room} {has} room, but may not take it by the rules of the strategy")
            }
            waits::Cause::InParts => {
                format!(
                    "enough are idle at all sites together, and it waits at {site} to be started in parts"
                )
            }
            waits::Cause::Full => format!("{busy} and wherever else it fits"),
        }
    }
}

impl Life {
    /// What each cause took of the wait, whichever other site had room at the time, the largest first. Together they are all
    /// of it.
    pub fn totals(&self, grid: &Grid) -> Vec<Total> {
        let mut found: Vec<(Cause, bool, Total)> = Vec::new();
        for wait in &self.waits {
            let of = |cause: Cause| (cause.reason, cause.note, cause.site);
            match found.iter_mut().find(|(cause, ..)| of(*cause) == of(wait.cause)) {
                Some((first, same, total)) => {
                    *same &= *first == wait.cause;
                    total.length += wait.length();
                    total.parts += 1;
                }
                None => {
                    let total = Total { text: String::new(), length: wait.length(), parts: 1 };
                    found.push((wait.cause, true, total));
                }
            }
        }
        // The sort is stable: of equal ones the first to happen stays first.
        found.sort_by_key(|(.., total)| std::cmp::Reverse(total.length));
        let told = |(cause, same, total): (Cause, bool, Total)| {
            let text = if same { cause.text(grid) } else { cause.words(grid, "other sites", "have") };
            Total { text, ..total }
        };
        found.into_iter().map(told).collect()
    }
}
