//! The rows of two `jobs.csv`, job by job.
//!
//! Both files are in the order of their workload, so rows of the same workload meet at once; only rows without a
//! partner are kept.

use std::collections::BTreeMap;

use analysis::Agreement;
use analysis::compare::{Placement, Tally};
use outputs::{DirectoryError, JobRow};
use scheduler::{JobId, Span, Time};
use serde::Serialize;

use super::sites::Sites;

/// Jobs that are kept by name: of each kind of difference the first ones.
pub const NAMED: usize = 10;

/// What the rows of two runs have in common.
#[derive(Clone, Debug, Serialize)]
pub struct JobsCompared {
    /// Rows of the two files.
    pub rows: [u64; 2],
    /// Placements: site and start.
    #[serde(flatten)]
    pub agreement: Agreement,
    /// Jobs of both runs that differ in a field, by field.
    pub differing: BTreeMap<&'static str, u64>,
    /// The first jobs that differ, by their earlier start.
    pub first: Vec<Differing>,
    /// What those that changed site in the second run saved.
    pub moved: Moved,
    /// Jobs of the first run only.
    pub only_left: Named,
    /// Jobs of the second run only.
    pub only_right: Named,
}

/// Waits of the first run less those of the second, in seconds: what stealing saved, if the first run is that of the
/// same workload with `--strategy local`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Moved {
    /// Jobs that started in both runs and changed site in the second.
    pub jobs: u64,
    /// Of those, jobs that waited longer in the second run.
    pub longer: u64,
    /// The wait that such a job saved, in the mean. `None` without such jobs.
    pub wait_saved_mean_s: Option<f64>,
    /// The wait that all jobs of both runs saved together, those that did not move included.
    pub wait_saved_all_s: f64,
    /// The same per job that moved: each also makes room where it left, and takes some where it runs.
    pub wait_saved_all_per_moved_s: Option<f64>,
}

/// Waits saved so far, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Saved {
    jobs: u64,
    longer: u64,
    moved: i128,
    all: i128,
}

impl Saved {
    fn pair(&mut self, left: &JobRow, right: &JobRow) {
        let wait = |row: &JobRow| row.start.map(|start| i128::from(start.since(row.submit).as_micros()));
        let (Some(first), Some(second)) = (wait(left), wait(right)) else { return };
        self.all += first - second;
        if right.hops > 0 {
            self.jobs += 1;
            self.longer += u64::from(second > first);
            self.moved += first - second;
        }
    }

    fn finish(self) -> Moved {
        let seconds = |micros: i128| micros as f64 / 1e6;
        let per_moved = |micros: i128| (self.jobs > 0).then(|| seconds(micros) / self.jobs as f64);
        Moved {
            jobs: self.jobs,
            longer: self.longer,
            wait_saved_mean_s: per_moved(self.moved),
            wait_saved_all_s: seconds(self.all),
            wait_saved_all_per_moved_s: per_moved(self.all),
        }
    }
}

/// A number of jobs, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Named {
    /// How many jobs there are in all.
    pub count: u64,
    /// The smallest numbers.
    pub first: Vec<JobId>,
}

/// One job that the two runs treated differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Differing {
    /// The job, by the id that both runs have.
    pub job: JobId,
    /// In the first run, field by field; only fields that differ.
    pub left: BTreeMap<&'static str, String>,
    /// In the second run.
    pub right: BTreeMap<&'static str, String>,
}

impl JobsCompared {
    /// Whether every job is in both runs with the same submission, width, site, start, end and state.
    pub fn identical(&self) -> bool {
        self.agreement.unmatched == 0 && self.differing.is_empty()
    }

    /// Compares row by row.
    ///
    /// # Errors
    /// The first row that cannot be read, or a job that is twice in one file.
    pub fn of(
        sites: &Sites,
        left: impl IntoIterator<Item = Result<JobRow, DirectoryError>>,
        right: impl IntoIterator<Item = Result<JobRow, DirectoryError>>,
    ) -> Result<JobsCompared, DirectoryError> {
        let (mut left, mut right) = (left.into_iter(), right.into_iter());
        let mut pairs = Pairs::new(sites);
        loop {
            let rows = (left.next().transpose()?, right.next().transpose()?);
            match rows {
                (None, None) => return Ok(pairs.finish()),
                (Some(left), Some(right)) if left.job == right.job => {
                    pairs.rows = pairs.rows.map(|rows| rows + 1);
                    pairs.pair(&left, &right);
                }
                (left, right) => {
                    left.into_iter().for_each(|row| pairs.single(0, row));
                    right.into_iter().for_each(|row| pairs.single(1, row));
                }
            }
        }
    }
}

/// Rows that found their partner are counted; others wait for it.
struct Pairs<'a> {
    sites: &'a Sites,
    rows: [u64; 2],
    waiting: [BTreeMap<JobId, JobRow>; 2],
    tally: Tally,
    saved: Saved,
    /// The first submission of a job that ended, and the latest end.
    extent: [Option<(Time, Time)>; 2],
    differing: BTreeMap<&'static str, u64>,
    first: BTreeMap<(Time, JobId), Differing>,
}

impl Pairs<'_> {
    fn new(sites: &Sites) -> Pairs<'_> {
        Pairs {
            sites,
            rows: [0; 2],
            waiting: [BTreeMap::new(), BTreeMap::new()],
            tally: Tally::new(0),
            saved: Saved::default(),
            extent: [None; 2],
            differing: BTreeMap::new(),
            first: BTreeMap::new(),
        }
    }
}

impl Pairs<'_> {
    fn single(&mut self, side: usize, row: JobRow) {
        self.rows[side] += 1;
        match self.waiting[1 - side].remove(&row.job) {
            Some(other) if side == 0 => self.pair(&row, &other),
            Some(other) => self.pair(&other, &row),
            None => {
                self.waiting[side].insert(row.job, row);
            }
        }
    }

    fn ended(&mut self, side: usize, row: &JobRow) {
        let Some(end) = row.end else { return };
        let (first, last) = self.extent[side].unwrap_or((row.submit, end));
        self.extent[side] = Some((first.min(row.submit), last.max(end)));
    }

    fn pair(&mut self, left: &JobRow, right: &JobRow) {
        self.ended(0, left);
        self.ended(1, right);
        self.tally.pair(left.job, placement(left), placement(right));
        self.saved.pair(left, right);
        let mut differing = Differing { job: left.job, left: BTreeMap::new(), right: BTreeMap::new() };
        for ((field, from), (_, to)) in fields(left, self.sites).into_iter().zip(fields(right, self.sites)) {
            if from != to {
                *self.differing.entry(field).or_default() += 1;
                differing.left.insert(field, from.show());
                differing.right.insert(field, to.show());
            }
        }
        if !differing.left.is_empty() {
            let start = |row: &JobRow| row.start.unwrap_or(Time::MAX);
            self.first.insert((start(left).min(start(right)), left.job), differing);
            if self.first.len() > NAMED {
                self.first.pop_last();
            }
        }
    }

    fn finish(mut self) -> JobsCompared {
        for side in [0, 1] {
            for row in std::mem::take(&mut self.waiting[side]).into_values() {
                self.ended(side, &row);
                self.tally.unmatched();
                self.waiting[side].insert(row.job, row);
            }
        }
        let named = |waiting: &BTreeMap<JobId, JobRow>| Named {
            count: waiting.len() as u64,
            first: waiting.keys().take(NAMED).copied().collect(),
        };
        let makespan = |side: usize| self.extent[side].map_or(Span::ZERO, |(first, last)| last.since(first));
        let makespan_difference = makespan(0) - makespan(1);
        JobsCompared {
            rows: self.rows,
            agreement: self.tally.finish(makespan_difference),
            differing: self.differing,
            first: self.first.into_values().collect(),
            moved: self.saved.finish(),
            only_left: named(&self.waiting[0]),
            only_right: named(&self.waiting[1]),
        }
    }
}

fn placement(row: &JobRow) -> Option<Placement> {
    Some(Placement { site: row.site?, start: row.start? })
}

/// One field of a row.
#[derive(PartialEq, Eq)]
enum Value<'a> {
    Time(Option<Time>),
    Number(u32),
    Text(&'a str),
}

impl Value<'_> {
    fn show(&self) -> String {
        match self {
            Value::Time(Some(time)) => format!("{time} s"),
            Value::Number(number) => number.to_string(),
            Value::Text(text) => (*text).to_string(),
            Value::Time(None) => "never".to_string(),
        }
    }
}

/// What is compared.
fn fields<'a>(row: &'a JobRow, sites: &'a Sites) -> [(&'static str, Value<'a>); 6] {
    [
        ("submit", Value::Time(Some(row.submit))),
        ("processors", Value::Number(row.processors)),
        ("start", Value::Time(row.start)),
        ("end", Value::Time(row.end)),
        ("site", Value::Text(row.site.map_or("nowhere", |site| sites.name(site)))),
        ("state", Value::Text(&row.state)),
    ]
}

#[cfg(test)]
mod tests {
    use scheduler::SiteId;

    use super::*;

    fn row(job: u64, start: i64) -> JobRow {
        JobRow {
            job: JobId(job),
            submit: Time::ZERO,
            processors: 2,
            requested: Span::from_secs(9),
            state: "1 COMPLETED_SUCCESSFULLY".to_string(),
            start: Some(Time::from_secs(start)),
            end: Some(Time::from_secs(start + 5)),
            site: Some(SiteId(1)),
            user: 1,
            origin: SiteId(1),
            home: Some(SiteId(1)),
            class: None,
            hops: 0,
            allocated: Vec::new(),
        }
    }

    fn compared(left: &[JobRow], right: &[JobRow]) -> JobsCompared {
        let rows = |rows: &[JobRow]| rows.iter().cloned().map(Ok).collect::<Vec<_>>();
        let list = [("a".to_string(), 8), ("b".to_string(), 8)];
        let sites = Sites::of(&list, &list);
        JobsCompared::of(&sites, rows(left), rows(right)).unwrap()
    }

    #[test]
    fn every_compared_field_counts() {
        let rows = [row(1, 0), row(2, 3), row(3, 7)];
        assert!(compared(&rows, &rows).identical());

        type Change = fn(&mut JobRow);
        let changes: [(&str, Change); 6] = [
            ("submit", |row| row.submit += Span::from_micros(1)),
            ("processors", |row| row.processors += 1),
            ("start", |row| row.start = row.start.map(|at| at + Span::from_micros(1))),
            ("end", |row| row.end = row.end.map(|at| at + Span::from_micros(1))),
            ("site", |row| row.site = Some(SiteId(2))),
            ("state", |row| row.state = "0 COMPLETED_WALLTIME_REACHED".to_string()),
        ];
        for (field, change) in changes {
            let mut changed = rows.clone();
            change(&mut changed[1]);
            let compared = compared(&rows, &changed);
            assert!(!compared.identical(), "{field}");
            assert_eq!(compared.differing, BTreeMap::from([(field, 1)]));
            assert_eq!(compared.first[0].job, JobId(2));
        }
    }

    #[test]
    fn what_moved_jobs_saved_is_told_apart_from_what_all_saved() {
        let left = [row(1, 0), row(2, 30), row(3, 7), row(4, 8)];
        // Jobs 2 and 3 moved: one waits 20 s less and one 2 s longer. Job 4 stayed, and gained 3 s.
        let mut right = [row(1, 0), row(2, 10), row(3, 9), row(4, 5)];
        (right[1].hops, right[2].hops) = (1, 2);
        let moved = compared(&left, &right).moved;
        assert_eq!((moved.jobs, moved.longer, moved.wait_saved_mean_s), (2, 1, Some(9.0)));
        assert_eq!((moved.wait_saved_all_s, moved.wait_saved_all_per_moved_s), (21.0, Some(10.5)));
        // Nobody moved in the first run.
        let moved = compared(&right, &left).moved;
        assert_eq!((moved.jobs, moved.wait_saved_mean_s, moved.wait_saved_all_s), (0, None, -21.0));
    }

    #[test]
    fn jobs_of_one_run_are_listed_and_the_others_still_meet() {
        let left = [row(1, 0), row(2, 3), row(4, 4), row(9, 8)];
        let right = [row(2, 3), row(3, 1), row(1, 0), row(9, 7)];
        let compared = compared(&left, &right);
        assert_eq!(compared.only_left, Named { count: 1, first: vec![JobId(4)] });
        assert_eq!(compared.only_right, Named { count: 1, first: vec![JobId(3)] });
        assert_eq!((compared.agreement.compared, compared.agreement.same), (3, 2));
        assert_eq!(compared.rows, [4, 4]);
        assert_eq!(compared.agreement.makespan_difference, Span::from_secs(1));
    }

    #[test]
    fn lists_are_bounded() {
        let left: Vec<JobRow> = (0..100).map(|job| row(job, 0)).collect();
        let right: Vec<JobRow> = (50..200).map(|job| row(job, 1)).collect();
        let compared = compared(&left, &right);
        assert_eq!((compared.only_left.count, compared.only_left.first.len()), (50, NAMED));
        assert_eq!((compared.first.len(), compared.differing["start"]), (NAMED, 50));
    }
}
