//! The switches of the classic load-balancing baselines: any site may take work from any other.

use serde::{Deserialize, Serialize};

use super::unknown_option;
use crate::class::Selection;
use crate::spelling;

/// Which other site is asked for work, or given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VictimRule {
    /// One at random.
    Random,
    /// The one with the shortest measured round trip.
    Nearest,
    /// The one that gossiped digests say has most waiting work.
    Loaded,
    /// The more loaded one of two random ones, by gossiped digests.
    TwoChoices,
}

/// How much changes owner at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Amount {
    /// One waiting job per answer or push.
    One,
    /// Half of the waiting jobs, rounded up.
    Half,
    /// As many jobs as fit the idle processors at once.
    #[default]
    Fit,
}

/// Who takes the initiative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Initiative {
    /// A site with idle processors asks for work.
    #[default]
    Pull,
    /// A site with waiting jobs gives them away.
    Push,
}

/// All switches of a baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balance {
    /// Which other site.
    pub victim: VictimRule,
    /// How much at once.
    pub amount: Amount,
    /// Who takes the initiative.
    pub initiative: Initiative,
    /// What starts at a site: the first that fits (LIST), or what EASY backfilling lets start.
    pub select: Selection,
}

impl VictimRule {
    /// All of them.
    pub const ALL: [VictimRule; 4] =
        [VictimRule::Random, VictimRule::Nearest, VictimRule::Loaded, VictimRule::TwoChoices];

    /// The name in `steal:NAME`.
    pub fn name(self) -> &'static str {
        match self {
            VictimRule::Random => "random",
            VictimRule::Nearest => "nearest",
            VictimRule::Loaded => "loaded",
            VictimRule::TwoChoices => "two-choices",
        }
    }

    /// Whether it chooses by what sites tell each other of their load, so that they must gossip.
    pub fn needs_gossip(self) -> bool {
        match self {
            VictimRule::Random | VictimRule::Nearest => false,
            VictimRule::Loaded | VictimRule::TwoChoices => true,
        }
    }

    /// The names of all strategies with such a rule, in words.
    pub(super) fn strategies() -> String {
        let names = VictimRule::ALL.map(|rule| format!("steal:{}", rule.name()));
        let (last, others) = names.split_last().expect("there are some");
        format!("{} or {last}", others.join(", "))
    }
}

impl Balance {
    /// Its switches.
    pub(super) const OPTIONS: [&str; 3] = ["amount", "mode", "select"];

    /// The default switches of a rule.
    pub fn new(victim: VictimRule) -> Balance {
        Balance {
            victim,
            amount: Amount::default(),
            initiative: Initiative::default(),
            select: Selection::FirstFit,
        }
    }

    pub(super) fn parse(argument: &str) -> Result<Balance, String> {
        let victim = VictimRule::ALL.into_iter().find(|rule| rule.name() == argument).ok_or_else(|| {
            let hint = spelling::hint(argument, VictimRule::ALL.map(VictimRule::name));
            format!("unknown victim {argument:?}{hint}; use {}", VictimRule::strategies())
        })?;
        Ok(Balance::new(victim))
    }

    /// Sets one switch.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let one_of = |names: &str| Err(spelling::unknown(key, value, names));
        match (key, value) {
            ("amount", "one") => self.amount = Amount::One,
            ("amount", "half") => self.amount = Amount::Half,
            ("amount", "fit") => self.amount = Amount::Fit,
            ("amount", _) => return one_of("one, half or fit"),
            ("mode", "pull") => self.initiative = Initiative::Pull,
            ("mode", "push") => self.initiative = Initiative::Push,
            ("mode", _) => return one_of("pull or push"),
            ("select", "first-fit") => self.select = Selection::FirstFit,
            ("select", "easy") => self.select = Selection::Easy,
            ("select", _) => return one_of("first-fit or easy"),
            _ => return Err(unknown_option(key, "steal", &Balance::OPTIONS)),
        }
        Ok(())
    }
}

impl std::fmt::Display for Balance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "steal:{}", self.victim.name())?;
        match self.amount {
            Amount::One => f.write_str(",amount=one")?,
            Amount::Half => f.write_str(",amount=half")?,
            Amount::Fit => {}
        }
        if self.initiative == Initiative::Push {
            f.write_str(",mode=push")?;
        }
        if self.select == Selection::Easy {
            f.write_str(",select=easy")?;
        }
        Ok(())
    }
}
