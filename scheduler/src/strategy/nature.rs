//! What others must know of a strategy, so that nobody asks which one it is.
//!
//! Whoever needs the switches of a family gets them here as well, or learns that it is another family.

use super::{Balance, Broker, BrokerRule, DispatchOptions, Pool, PoolAlgorithm, Steal, Strategy};

/// Answers to what drivers, checks, reports and those who read experiments ask of a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nature {
    /// Sites tell each other something, so that jobs may leave where they arrive, and messages cost something.
    pub talks: bool,
    /// Sites that have room ask others for jobs, or are given what they would ask for.
    pub asks: bool,
    /// There is one queue for all sites, which the smallest has.
    pub one_queue: bool,
    /// Sites offer what they cannot start to all others, over and over while nobody can take it.
    pub offers: bool,
    /// Who is asked to watch for work is asked again until there is news.
    pub repeats: bool,
    /// Sites may know some others only, and not all.
    pub views: bool,
    /// Each site starts what it has by a local scheduler of the user's choice.
    pub queues: bool,
    /// Those may decide after every event instead of once per instant.
    pub per_event: bool,
    /// Users submit to brokers, members without processors, and not to sites.
    pub brokers: bool,
    /// Brokers know of sites only what became of their own jobs.
    pub learns: bool,
    /// Those who plan may predict run times, and not believe users.
    pub predicts: bool,
    /// A process of the user decides, see `brokers::external`.
    pub external: bool,
    /// Jobs may start in parts at several sites at once.
    pub coallocates: bool,
    /// There is a reference, which decides by the true state of all sites.
    pub has_ideal: bool,
}

impl Strategy {
    /// What is asked of it. A family that is new answers here.
    pub fn nature(&self) -> Nature {
        let peers = Nature {
            talks: true,
            asks: false,
            one_queue: false,
            offers: false,
            repeats: false,
            views: false,
            queues: false,
            per_event: false,
            brokers: false,
            learns: false,
            predicts: false,
            external: false,
            coallocates: false,
            has_ideal: true,
        };
        let behind_brokers = Nature { queues: true, brokers: true, predicts: true, ..peers };
        match self {
            Strategy::Local => {
                Nature { talks: false, queues: true, per_event: true, predicts: true, ..peers }
            }
            Strategy::Steal(_) | Strategy::StealGreedy(_) => Nature { asks: true, views: true, ..peers },
            Strategy::CommonPool => Nature { asks: true, one_queue: true, ..peers },
            // FCFS and LIST look at no estimate.
            Strategy::Pool(pool) => {
                Nature { offers: true, predicts: pool.algorithm == PoolAlgorithm::Easy, ..peers }
            }
            Strategy::Balance(_) => {
                Nature { asks: true, repeats: true, views: true, predicts: true, has_ideal: false, ..peers }
            }
            Strategy::Broker(rules) => {
                let coallocates = rules.coallocates();
                Nature { external: rules.rule == BrokerRule::External, coallocates, ..behind_brokers }
            }
            Strategy::Opaque(_) => Nature { learns: true, ..behind_brokers },
        }
    }

    /// The width of the widest job that it spreads over several sites whose widest jobs are these; 0 if it spreads none.
    pub fn spread(&self, widths: &[u32]) -> u32 {
        let rules = self.broker().filter(|rules| rules.coallocates());
        rules.map_or(0, |rules| rules.meta.coallocation.widest(widths))
    }

    /// The switches of stealing from smaller sites, whichever of these are asked.
    pub fn steal(&self) -> Option<&Steal> {
        match self {
            Strategy::Steal(steal) | Strategy::StealGreedy(steal) => Some(steal),
            _ => None,
        }
    }

    /// Those of ST_x, whose sites take jobs from the queues of their homes only: what is proved is proved of it.
    pub fn steal_from_homes(&self) -> Option<&Steal> {
        match self {
            Strategy::Steal(steal) => Some(steal),
            _ => None,
        }
    }

    /// The switches of the exchange through a global queue.
    pub fn pool(&self) -> Option<&Pool> {
        match self {
            Strategy::Pool(pool) => Some(pool),
            _ => None,
        }
    }

    /// The switches of a baseline.
    pub fn balance(&self) -> Option<&Balance> {
        match self {
            Strategy::Balance(balance) => Some(balance),
            _ => None,
        }
    }

    /// The switches of brokers that see into sites.
    pub fn broker(&self) -> Option<&Broker> {
        match self {
            Strategy::Broker(broker) => Some(broker),
            _ => None,
        }
    }

    /// The options of brokers that see into no site.
    pub fn dispatch(&self) -> Option<&DispatchOptions> {
        match self {
            Strategy::Opaque(options) => Some(options),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn dispatch_mut(&mut self) -> Option<&mut DispatchOptions> {
        match self {
            Strategy::Opaque(options) => Some(options),
            _ => None,
        }
    }
}
