//! Users that learn alone: one Q-learning agent each, told nothing but the times of its own jobs (Galstyan et al. 2004).
//!
//! Costs are w · queue + (1 - w) · execution. Each agent has a w of its own; agents share no state. Who is a user is said by
//! the labels of jobs.

use std::collections::BTreeMap;

use scheduler::JobSpec;
use scheduler::strategy::opaque::{Options, Tie};

use super::ag::best;
use super::memory::{Subject, Words, number, words};
use super::rule::{Ended, Round, Rule};

/// Agents that there are at most; more users share them.
const AGENTS_MAX: i32 = 1 << 16;
/// More jobs than a user can have had; so many can still be counted on.
const JOBS_MAX: u64 = 1 << 62;
/// The least weight of the queue time.
const QUEUE_WEIGHT_MIN: f64 = 0.2;

#[derive(Clone, Debug)]
struct Agent {
    queue_weight: f64,
    /// Q by site.
    values: Vec<f64>,
    /// Mean cost in seconds, of so many jobs.
    mean_s: f64,
    jobs: u64,
}

/// All agents.
#[derive(Clone, Debug)]
pub(super) struct Agents {
    exploit: f64,
    learning: f64,
    tie: Tie,
    sites: usize,
    agents: BTreeMap<i32, Agent>,
}

impl Agents {
    pub(super) fn new(options: &Options, sites: usize) -> Agents {
        let Options { exploit, learning, tie, .. } = *options;
        Agents { exploit, learning, tie, sites, agents: BTreeMap::new() }
    }
}

fn agent_of(user: i32) -> i32 {
    user.rem_euclid(AGENTS_MAX)
}

impl Rule for Agents {
    fn map(&mut self, round: &mut Round<'_>) {
        let sites = round.slots().len();
        for job in 0..round.len() {
            let open: Vec<usize> = (0..sites).filter(|&site| round.takes(job, site)).collect();
            if open.is_empty() {
                continue;
            }
            let agent = self.agents.entry(agent_of(round.job(job).labels.user)).or_insert_with(|| {
                let uniform = round.draw().below(1 << 53) as f64 / (1_u64 << 53) as f64;
                let queue_weight = QUEUE_WEIGHT_MIN + (1.0 - QUEUE_WEIGHT_MIN) * uniform;
                Agent { queue_weight, values: vec![0.0; sites], mean_s: 0.0, jobs: 0 }
            });
            let site = if round.draw().chance(self.exploit) {
                best(round, &open, self.tie, |_, site| agent.values[site])
            } else {
                open[round.draw().below(open.len())]
            };
            round.assign(job, site);
        }
    }

    fn ended(&mut self, ended: &Ended) {
        let Some(agent) = self.agents.get_mut(&agent_of(ended.job.labels.user)) else { return };
        let times = &ended.times;
        // What is no execution and no transfer is waiting to a user, wherever that was.
        let (queue, execution) = (times.volatile() - times.transfer, times.execution);
        let cost =
            agent.queue_weight * queue.as_secs_f64() + (1.0 - agent.queue_weight) * execution.as_secs_f64();
        let reward = match cost.total_cmp(&agent.mean_s) {
            _ if agent.jobs == 0 => None,
            std::cmp::Ordering::Less => Some(1.0),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(-1.0),
        };
        if let Some(reward) = reward {
            let value = &mut agent.values[ended.site];
            *value += self.learning * (reward - *value);
        }
        agent.jobs += 1;
        agent.mean_s += (cost - agent.mean_s) / agent.jobs as f64;
    }

    fn known(&self, of: Subject) -> Option<Words> {
        match of {
            Subject::User(user) => {
                let agent = self.agents.get(&agent_of(user)).filter(|_| user == agent_of(user))?;
                Some(words([agent.queue_weight.to_bits(), agent.mean_s.to_bits(), agent.jobs]))
            }
            Subject::UserAt(user, site) => {
                let agent = self.agents.get(&agent_of(user)).filter(|_| user == agent_of(user))?;
                let value = agent.values.get(site as usize).filter(|value| **value != 0.0)?;
                Some(words([value.to_bits()]))
            }
            _ => None,
        }
    }

    fn user(&self, job: &JobSpec) -> i32 {
        agent_of(job.labels.user)
    }

    fn recollect(&mut self, of: Subject, words: &Words) -> bool {
        let mut recollect = || match of {
            Subject::User(user) if user == agent_of(user) => {
                let queue_weight = number(words[0]).filter(|part| (QUEUE_WEIGHT_MIN..=1.0).contains(part))?;
                let mean_s = number(words[1]).filter(|&mean| mean >= 0.0)?;
                let values = vec![0.0; self.sites];
                let jobs = Some(words[2]).filter(|&jobs| jobs < JOBS_MAX)?;
                self.agents.insert(user, Agent { queue_weight, values, mean_s, jobs });
                Some(())
            }
            Subject::UserAt(user, site) => {
                let value = self.agents.get_mut(&user)?.values.get_mut(site as usize)?;
                *value = number(words[0]).filter(|value| (-1.0..=1.0).contains(value))?;
                Some(())
            }
            _ => None,
        };
        recollect().is_some()
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{JobId, Labels, SiteId, Span, Time};

    use super::*;
    use crate::learning::Times;

    #[test]
    fn agents_learn_from_their_own_jobs_only() {
        let mut agents = Agents::new(&Options::default(), 2);
        let fresh = Agent { queue_weight: 0.5, values: vec![0.0; 2], mean_s: 0.0, jobs: 0 };
        agents.agents = [(1, fresh.clone()), (2, fresh)].into();
        let mut ended = |user, site, queue, execution| {
            let labels = Labels { user, ..Labels::UNKNOWN };
            let (id, origin) = (JobId(1), SiteId(1));
            let requested = Span::from_secs(1);
            let job =
                JobSpec { id, submit: Time::ZERO, processors: 1, requested, labels, origin, payload: 0 };
            let [queue, execution] = [queue, execution].map(Span::from_secs);
            let times = Times { queue, execution, ..Times::default() };
            agents.ended(&Ended { job, site, times });
            [1, 2].map(|agent| (agents.agents[&agent].values.clone(), agents.agents[&agent].mean_s))
        };
        assert_eq!(ended(1, 0, 100, 100)[0], (vec![0.0, 0.0], 100.0), "the first is its own mean");
        assert_eq!(ended(1, 1, 300, 100)[0], (vec![0.0, -0.3], 150.0));
        let [one, two] = ended(1, 0, 0, 100);
        assert_eq!(one.0, vec![0.3, -0.3]);
        assert_eq!(two, (vec![0.0, 0.0], 0.0), "the other was told nothing");
    }
}
