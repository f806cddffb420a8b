//! What is proved of a broker at several admissible parts a, as a part of `stealgrid theory`.

use analysis::theory::brokers::{self, Facts};
use outputs::table::Table;
use scheduler::strategy::Fraction;
use scheduler::{Grid, LocalScheduler, Strategy, TimedJob};
use serde::Serialize;

/// Parts a that are always shown: where the branches are far apart, and where they cross.
const SHOWN: [(u32, u32); 6] = [(1, 10), (1, 4), (1, 2), (3, 4), (9, 10), (1, 1)];

/// The theorems beside what is known of the workload.
#[derive(Debug, Serialize)]
pub(super) struct BrokerPart {
    /// Its own a.
    a: String,
    local: &'static str,
    /// Whether every job runs as long as was requested; `None` without jobs.
    exact_estimates: Option<bool>,
    /// Whether every job fits the smallest site; `None` without jobs.
    fit_smallest: Option<bool>,
    rows: Vec<Row>,
}

/// The theorems at one a; `None` is infinite.
#[derive(Debug, Serialize)]
struct Row {
    a: String,
    first_branch: Option<f64>,
    second_branch: Option<f64>,
    offline: Option<f64>,
    online: Option<f64>,
}

impl Row {
    fn of(a: Fraction) -> Row {
        let at = |part: u32| Some((u64::from(part), u64::from(a.denominator())));
        Row {
            a: a.to_string(),
            first_branch: brokers::theorem(a, at(a.denominator()), true),
            second_branch: brokers::theorem(a, at(0), true),
            offline: brokers::theorem(a, None, true),
            online: brokers::theorem(a, None, false),
        }
    }
}

/// What is known of the jobs, offline; nothing if there are none.
pub(super) fn facts(grid: &Grid, jobs: &[TimedJob]) -> Facts {
    if jobs.is_empty() {
        return Facts { offline: true, ..Facts::default() };
    }
    let smallest = grid.sizes()[grid.brokers()];
    Facts::of(smallest, jobs.iter().map(|job| job.spec.processors), true)
}

impl BrokerPart {
    /// None for other strategies.
    pub(super) fn of(
        strategy: &Strategy,
        local: LocalScheduler,
        grid: &Grid,
        jobs: &[TimedJob],
    ) -> Option<BrokerPart> {
        let admissible = strategy.broker()?.admissible;
        let parts = SHOWN.iter().filter_map(|&(part, whole)| Fraction::new(part, whole));
        let mut parts: Vec<Fraction> = parts.chain([admissible]).collect();
        parts.sort_by(|one, other| other.compare(one.numerator().into(), one.denominator().into()));
        parts.dedup();
        let is_known = |known: bool| (!jobs.is_empty()).then_some(known);
        Some(BrokerPart {
            a: admissible.to_string(),
            local: local.name(),
            exact_estimates: is_known(jobs.iter().all(|job| job.spec.requested == job.run_time)),
            fit_smallest: is_known(facts(grid, jobs).fit_smallest),
            rows: parts.into_iter().map(Row::of).collect(),
        })
    }

    /// What the ceilings assume.
    pub(super) fn assumption(&self) -> String {
        let exact = match self.exact_estimates {
            Some(true) => "as they are here",
            Some(false) => "which they are not here: a run gets no verdict",
            None => "which a workload must show",
        };
        format!(
            "Of the makespan to the bound of the proofs; a = {}, sites under {}. Assumes free and instantaneous messages \
             and exact\nestimates, {exact}.",
            self.a, self.local
        )
    }

    /// The theorems as a table, with what they assume.
    pub(super) fn table(&self) -> (Table, String) {
        let mut table = Table::new(["a", "a <= tau", "a > tau", "all at the start", "over time"]);
        let ratio = |value: Option<f64>| value.map_or("none".into(), |value| format!("{value:.2}"));
        for row in &self.rows {
            let values = [row.first_branch, row.second_branch, row.offline, row.online];
            table.push([row.a.clone()].into_iter().chain(values.map(ratio)).collect::<Vec<_>>());
        }
        let fit = match self.fit_smallest {
            Some(true) => ", as here",
            Some(false) => ", which is not so here",
            None => "",
        };
        let note = format!(
            "Theorems 1 to 3 for MLB_a and MCT_a: 1 + 2/a^2 or 1 + 2/(a (1 - a)), and 2 more over time; tau = s_f,m / s_f0,m is \
             that of\nan instance, the last two columns are for any. Where every job fits the smallest site (theorem \
             4{fit}), 1 + 2/a and 3 + 2/a.\nMCT_a by what is planned before the job comes has 4 in place of 2. Assumes \
             sites that start whatever fits (list)."
        );
        (table, note)
    }
}
