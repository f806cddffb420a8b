//! The switches of the exchange through a global queue (Grimme, Lepping, Papaspyrou 2007).
//!
//! Sites offer the jobs that they cannot start to one pool, and take from it when they have nothing of their own to
//! start. What each switch means is told where it is used, in [`crate::ideal`].

use serde::{Deserialize, Serialize};

use super::unknown_option;
use crate::spelling;

/// The algorithm that a site runs on its queue and on its view of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolAlgorithm {
    /// Start from the front while the first fits.
    Fcfs,
    /// FCFS, then backfill around a reservation for the first that does not fit.
    Easy,
    /// Scan once in order, start each job that fits.
    List,
}

/// Which realisation between peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Via {
    /// One elected site keeps the index of the queue and decides.
    #[default]
    Hosted,
    /// Offers are gossiped, every site decides, the owner arbitrates claims.
    Gossip,
}

/// Which waiting jobs a site gives to the pool after each run of its algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OfferRule {
    /// The first job.
    Head,
    /// All waiting jobs; the site keeps none.
    All,
    /// All jobs but the first, which the site keeps.
    AllButHead,
}

/// How own queues and the pool alternate at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Discipline {
    /// All sites serve their own queues, then all serve the pool.
    #[default]
    TwoPhase,
    /// Site by site: own queue, offer, pool. Exists in the ideal only.
    Interleaved,
}

/// In which order sites serve the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SiteOrder {
    /// The smallest first.
    #[default]
    Ascending,
    /// The widest first.
    Descending,
}

/// The order of jobs in the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PoolOrder {
    /// By submission, then id.
    #[default]
    Submit,
    /// By the time of entering the pool.
    Offered,
}

/// What a job wider than a site is to that site's view of the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum TooWide {
    /// The site looks past it, as if it were not in the pool.
    #[default]
    Skip,
    /// There, and in the way. Exists in the ideal only.
    Block,
}

/// All switches of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// What sites run on their queues and on the pool.
    pub algorithm: PoolAlgorithm,
    /// The realisation between peers.
    pub via: Via,
    /// Which jobs are offered.
    pub offer: OfferRule,
    /// Own queues against the pool.
    pub discipline: Discipline,
    /// In which order sites serve the pool.
    pub site_order: SiteOrder,
    /// The order of jobs in the pool.
    pub pool_order: PoolOrder,
    /// Jobs wider than a site.
    pub too_wide: TooWide,
    /// Whether gossiped boards tell of idle processors, so that every site can decide for all. Without it a site
    /// knows offers only, and the schedule is not that of the ideal even when messages are free.
    pub demand: bool,
}

impl PoolAlgorithm {
    /// All of them.
    pub const ALL: [PoolAlgorithm; 3] = [PoolAlgorithm::Fcfs, PoolAlgorithm::Easy, PoolAlgorithm::List];

    /// What the authors' framework reports as considered and not startable, and so offers.
    pub fn considered(self) -> OfferRule {
        match self {
            PoolAlgorithm::Fcfs => OfferRule::Head,
            PoolAlgorithm::Easy => OfferRule::AllButHead,
            PoolAlgorithm::List => OfferRule::All,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            PoolAlgorithm::Fcfs => "fcfs",
            PoolAlgorithm::Easy => "easy",
            PoolAlgorithm::List => "list",
        }
    }
}

impl Pool {
    /// Its switches.
    pub(super) const OPTIONS: [&str; 7] =
        ["via", "offer", "discipline", "site-order", "pool-order", "too-wide", "demand"];

    /// The default switches of an algorithm.
    pub fn new(algorithm: PoolAlgorithm) -> Pool {
        Pool {
            algorithm,
            via: Via::default(),
            offer: algorithm.considered(),
            discipline: Discipline::default(),
            site_order: SiteOrder::default(),
            pool_order: PoolOrder::default(),
            too_wide: TooWide::default(),
            demand: true,
        }
    }

    /// Why peers cannot run this, if they cannot: some switches need a global view.
    pub fn ideal_only(&self) -> Option<&'static str> {
        match (self.discipline, self.too_wide) {
            (Discipline::Interleaved, _) => Some("discipline=interleaved"),
            (_, TooWide::Block) => Some("too-wide=block"),
            _ => None,
        }
    }

    pub(super) fn parse(argument: &str) -> Result<Pool, String> {
        let algorithm = PoolAlgorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == argument)
            .ok_or_else(|| {
                let hint = spelling::hint(argument, ["fcfs", "easy", "list"]);
                format!("unknown pool {argument:?}{hint}; use pool:fcfs, pool:easy or pool:list")
            })?;
        Ok(Pool::new(algorithm))
    }

    /// Sets one switch.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let one_of = |names: &str| spelling::unknown(key, value, names);
        match (key, value) {
            ("via", "hosted") => self.via = Via::Hosted,
            ("via", "gossip") => self.via = Via::Gossip,
            ("via", _) => return Err(one_of("hosted or gossip")),
            ("offer", "considered") => self.offer = self.algorithm.considered(),
            ("offer", "printed" | "all") => self.offer = OfferRule::All,
            ("offer", "head") => self.offer = OfferRule::Head,
            ("offer", "all-but-head") => self.offer = OfferRule::AllButHead,
            ("offer", _) => return Err(one_of("considered, printed, head, all or all-but-head")),
            ("discipline", "two-phase") => self.discipline = Discipline::TwoPhase,
            ("discipline", "interleaved") => self.discipline = Discipline::Interleaved,
            ("discipline", _) => return Err(one_of("two-phase or interleaved")),
            ("site-order", "ascending") => self.site_order = SiteOrder::Ascending,
            ("site-order", "descending") => self.site_order = SiteOrder::Descending,
            ("site-order", _) => return Err(one_of("ascending or descending")),
            ("pool-order", "submit") => self.pool_order = PoolOrder::Submit,
            ("pool-order", "offered") => self.pool_order = PoolOrder::Offered,
            ("pool-order", _) => return Err(one_of("submit or offered")),
            ("too-wide", "skip") => self.too_wide = TooWide::Skip,
            ("too-wide", "block") => self.too_wide = TooWide::Block,
            ("too-wide", _) => return Err(one_of("skip or block")),
            ("demand", "on") => self.demand = true,
            ("demand", "off") => self.demand = false,
            ("demand", _) => return Err(one_of("on or off")),
            _ => {
                return Err(unknown_option(key, "a pool", &Pool::OPTIONS));
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "pool:{}", self.algorithm.name())?;
        let default = Pool::new(self.algorithm);
        if self.via != default.via {
            f.write_str(",via=gossip")?;
        }
        if self.offer != default.offer {
            f.write_str(match self.offer {
                OfferRule::Head => ",offer=head",
                OfferRule::All => ",offer=all",
                OfferRule::AllButHead => ",offer=all-but-head",
            })?;
        }
        if self.discipline != default.discipline {
            f.write_str(",discipline=interleaved")?;
        }
        if self.site_order != default.site_order {
            f.write_str(",site-order=descending")?;
        }
        if self.pool_order != default.pool_order {
            f.write_str(",pool-order=offered")?;
        }
        if self.too_wide != default.too_wide {
            f.write_str(",too-wide=block")?;
        }
        if !self.demand {
            f.write_str(",demand=off")?;
        }
        Ok(())
    }
}
