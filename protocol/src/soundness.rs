//! Whether a journal can be that of a site: what no site can have written is damage, and is told as that.

use scheduler::{JobId, JobSpec, SiteId};

use crate::bounds::{EPOCH_MAX, is_job_of, is_site_of, is_time};
use crate::config::PeerConfig;
use crate::families::begin;
use crate::journal::{Durable, Kept};
use crate::numbers::{INCARNATIONS_PER_JOURNAL, JOURNALS_MAX, journal_of};
use crate::rank::Rank;

impl Durable {
    /// Whether a peer of this configuration can have written this, as far as it can be told: [`crate::Peer::restore`]
    /// takes it then.
    ///
    /// # Errors
    /// What cannot be.
    ///
    /// # Panics
    /// If a peer could not be made with these options.
    pub fn check(&self, config: &PeerConfig) -> Result<(), String> {
        let grid = &config.grid;
        let is_other = |site: SiteId| site != config.site && is_site_of(grid, site);
        let is_job = |job: &JobSpec| match is_job_of(grid, job) {
            true => Ok(()),
            false => Err(format!("job {} is none of this grid", job.id)),
        };
        // Others say epochs up to the limit, and a site adds to them. What else they count is theirs to say.
        let counts = |job: JobId, epoch: u32| match epoch <= 2 * EPOCH_MAX {
            true => Ok(()),
            false => Err(format!("job {job} was taken over more often than can be")),
        };
        let guardian = |job: JobId, guardian: Option<SiteId>| match guardian {
            Some(site) if !is_site_of(grid, site) => Err(format!("job {job} is in the care of nobody")),
            _ => Ok(()),
        };
        let is_last = |incarnation: u32| (incarnation + 1).is_multiple_of(INCARNATIONS_PER_JOURNAL);
        if self
            .incarnation
            .is_some_and(|incarnation| journal_of(incarnation) >= JOURNALS_MAX || is_last(incarnation))
        {
            return Err("the site began more often than can be".to_string());
        }
        if self.is_new() && *self != Durable::default() {
            return Err("the site never began and has something".to_string());
        }
        let site = begin(config.clone(), 0, 0);
        for (id, Kept { job, custody, started, .. }) in &self.jobs {
            is_job(job)?;
            counts(*id, custody.epoch)?;
            guardian(*id, custody.guardian)?;
            if *id != job.id || started.is_some_and(|at| !is_time(at)) {
                return Err(format!("job {id} is another, or began at no time"));
            }
            if started.is_some() && job.processors > grid.width(config.site) {
                return Err(format!("job {id} executes and does not fit"));
            }
            if !site.may_queue(job) {
                return Err(format!("job {id} waits and does not fit"));
            }
        }
        self.ledger.check(&is_other)?;
        for (to, transfer) in self.ledger.transfers_out() {
            let id = transfer.job.id;
            if !self.routes.contains(&(to, transfer.number)) && !site.may_grant(Rank::of(grid, to)) {
                return Err(format!("job {id} is on its way to site {to}, which is granted none from here"));
            }
            is_job(&transfer.job)?;
            counts(id, transfer.epoch)?;
            guardian(id, transfer.guardian)?;
            // It may have come back before the answer: then it moved on since. A take-over voids the transfer.
            if self.jobs.get(&id).is_some_and(|kept| kept.custody.hops <= transfer.hops) {
                return Err(format!("job {id} is here and on its way elsewhere"));
            }
        }
        for (to, number) in &self.routes {
            if !self.ledger.is_out(*to, *number) {
                return Err(format!("a job is on its way home to site {to} by a transfer that is not out"));
            }
        }
        for (id, guarded) in &self.guarded_jobs {
            is_job(&guarded.job)?;
            counts(*id, guarded.epoch)?;
            if *id != guarded.job.id || !is_site_of(grid, guarded.holder) {
                return Err(format!("job {id} was given to nobody"));
            }
        }
        for (id, report) in &self.reports {
            counts(*id, report.epoch)?;
            if *id != report.job || !is_site_of(grid, report.guardian) || !is_site_of(grid, report.holder) {
                return Err(format!("job {id} is reported to nobody"));
            }
        }
        for (job, epoch) in &self.voids {
            counts(*job, *epoch)?;
        }
        site.can_remember(self)?;
        for void in &self.taken_over {
            counts(void.job, void.epoch)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::{Grid, LocalScheduler, Span, StrategySpec, Time};

    use super::*;
    use crate::config::{Options, Terms};
    use crate::handover::{Custody, Record};
    use crate::journal::{Fact, Guarded, Place, Topic, Words};
    use crate::message::{Transfer, Void};
    use scheduler::Labels;

    fn config() -> PeerConfig {
        PeerConfig {
            site: SiteId(2),
            terms: Terms {
                local: LocalScheduler::ALL[0],
                options: Options { journal: true, ..Options::default() },
                ..Terms::new(
                    Arc::new(Grid::of_sizes(&[2, 4, 8]).unwrap()),
                    "st:50".parse::<StrategySpec>().unwrap().strategy,
                )
            },
        }
    }

    const JOB: JobSpec = JobSpec {
        id: JobId(7),
        submit: Time::from_secs(3),
        processors: 4,
        requested: Span::from_secs(60),
        labels: Labels::UNKNOWN,
        origin: SiteId(2),
        payload: 0,
    };

    fn after(facts: &[Fact]) -> Result<(), String> {
        durable(facts).check(&config())
    }

    fn durable(facts: &[Fact]) -> Durable {
        let mut durable = Durable::default();
        durable.apply(&Fact::Began { incarnation: 0 });
        facts.iter().for_each(|fact| durable.apply(fact));
        durable
    }

    #[test]
    fn what_no_site_can_have_written_is_told_as_damage() {
        let owns = |job: JobSpec| Fact::Owns { job, custody: Custody::default(), place: Place::Queue };
        let out = |to: u32| {
            let (bounces, hops, epoch, moves, guardian) = (0, 1, 0, 1, None);
            let transfer = Transfer { number: 1, job: JOB, bounces, hops, epoch, moves, guardian };
            [owns(JOB), Fact::Ledger(Record::Out { to: SiteId(to), transfer })]
        };
        let started = |job: JobSpec| [owns(job), Fact::Started { job: job.id, at: Time::from_secs(4) }];
        let guarded =
            |holder: u32| Fact::Guarded(Guarded { job: JOB, epoch: 0, moves: 1, holder: SiteId(holder) });
        let wide = JobSpec { processors: 8, ..JOB };
        let home = [&out(1)[..], &[Fact::Routed { to: SiteId(1), number: 1 }]].concat();
        for whole in [&started(JOB)[..], &out(3), &home, &[owns(wide)], &[guarded(1)]] {
            assert_eq!(after(whole), Ok(()), "{whole:?}");
        }
        // Others say how often a job moved, and who has it, and may lie; that must not make the journal unreadable.
        let often = Custody { hops: u32::MAX, moves: u32::MAX, bounces: u32::MAX, ..Custody::default() };
        assert_eq!(
            after(&[Fact::Owns { job: JOB, custody: often, place: Place::Queue }, guarded(2)]),
            Ok(())
        );
        let never = JobSpec { submit: Time::from_micros(i64::MAX), ..JOB };
        let vast = JobSpec { processors: 9, ..JOB };
        let nowhere = JobSpec { origin: SiteId(4), ..JOB };
        let routed = Fact::Routed { to: SiteId(1), number: 3 };
        let custody = Custody { epoch: 2, ..Custody::default() };
        let taken_over = Fact::Owns { job: JOB, custody, place: Place::Queue };
        for damaged in [
            &[owns(never)][..],
            &[owns(vast)],
            &[owns(nowhere)],
            &started(wide),
            &out(2),
            &out(4),
            // Smaller sites are granted none, but routed to.
            &out(1),
            &[&out(3)[..], &[owns(JOB)]].concat(),
            &[&out(3)[..], &[taken_over]].concat(),
            &[guarded(4)],
            &[routed],
            &[Fact::Superseded(Void { job: JobId(7), epoch: u32::MAX })],
            &[Fact::Ledger(Record::Floor { from: SiteId(9), floor: 1 })],
        ] {
            assert!(after(damaged).is_err(), "{damaged:?}");
        }
    }

    #[test]
    fn a_family_that_remembers_nothing_has_written_nothing_down() {
        let topic = Topic { table: 0, a: 0, b: 0 };
        assert!(after(&[Fact::Remembers { topic, words: Some(Words::default()) }]).is_err());
        assert_eq!(after(&[Fact::Remembers { topic, words: None }]), Ok(()));
    }

    #[test]
    fn what_does_not_fit_waits_where_it_may() {
        let wide = JobSpec { processors: 8, ..JOB };
        let waits = durable(&[Fact::Owns { job: wide, custody: Custody::default(), place: Place::Queue }]);
        let check = |strategy: &str, heartbeat| {
            let mut config = config();
            config.strategy = strategy.parse::<StrategySpec>().unwrap().strategy;
            config.options.heartbeat = heartbeat;
            waits.check(&config).is_ok()
        };
        assert!(!check("local", None), "it went home at once");
        assert!(check("local", Some(Span::from_secs(5))), "its home may have left");
        for strategy in ["st:50", "common-pool", "steal:random", "pool:easy"] {
            assert!(check(strategy, None), "{strategy}: others can take it");
        }
    }
}
