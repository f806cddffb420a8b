//! `steals.csv`: a row for each accepted change of site, written when it is over, while the run goes on.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use analysis::Steal;
use scheduler::{Span, Time};

use crate::backlog::Backlog;
use crate::errors::WriteError;
use crate::number::{push_integer, push_millionths};

/// The name of the file.
pub const STEALS: &str = "steals.csv";

const HEADER: &[u8] = b"job_id,hop,thief,victim,cause,requested_at,granted_at,accepted_at,started_at,\
                        request_s,transfer_s,start_s,total_s,bounces,firm,view_age_s\n";
/// Rows are handed to the file in pieces of this size; arbitrary, a few hundred rows.
const PIECE: usize = 1 << 16;

/// The file, made at the first row: a run without exchange has none.
#[derive(Debug)]
pub struct StealsCsv {
    path: PathBuf,
    lines: Vec<u8>,
    file: Option<Backlog>,
    failed: Option<WriteError>,
}

impl StealsCsv {
    /// A file of this name, not made yet.
    pub fn new(path: &Path) -> StealsCsv {
        StealsCsv { path: path.to_path_buf(), lines: Vec::new(), file: None, failed: None }
    }

    /// Appends a row. After an error nothing more is written; [`StealsCsv::finish`] returns it.
    pub fn write(&mut self, steal: &Steal) {
        if self.failed.is_some() {
            return;
        }
        if self.file.is_none() {
            match Backlog::create(&self.path) {
                Ok(file) => self.file = Some(file),
                Err(cause) => return self.fail(cause),
            }
            self.lines.extend_from_slice(HEADER);
        }
        push_row(&mut self.lines, steal);
        if self.lines.len() >= PIECE {
            self.hand_over();
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The first error of any row.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.hand_over();
        if let Some(file) = self.file.take()
            && let Err(cause) = file.finish()
        {
            self.fail(cause);
        }
        self.failed.map_or(Ok(()), Err)
    }

    fn hand_over(&mut self) {
        if let Some(file) = &mut self.file
            && let Err(cause) = file.write_all(&self.lines)
        {
            self.fail(cause);
        }
        self.lines.clear();
    }

    fn fail(&mut self, cause: io::Error) {
        self.failed.get_or_insert(WriteError { path: self.path.clone(), cause });
    }
}

fn push_row(line: &mut Vec<u8>, steal: &Steal) {
    for number in [steal.job.0, u64::from(steal.hop), u64::from(steal.thief.0), u64::from(steal.victim.0)] {
        push_integer(line, number);
        line.push(b',');
    }
    line.extend_from_slice(steal.cause.name().as_bytes());
    line.push(b',');
    for time in [steal.requested, Some(steal.granted), Some(steal.accepted), steal.started] {
        push_if_known(line, time.map(Time::as_micros));
    }
    for span in [steal.request(), Some(steal.transfer()), steal.start(), steal.total()] {
        push_if_known(line, span.map(Span::as_micros));
    }
    push_integer(line, u64::from(steal.bounces));
    line.extend_from_slice(if steal.firm { b",1," } else { b",0," });
    push_if_known(line, steal.view_age.map(Span::as_micros));
    line.pop();
    line.push(b'\n');
}

/// Seconds, or nothing, and a comma.
fn push_if_known(line: &mut Vec<u8>, micros: Option<i64>) {
    if let Some(micros) = micros {
        push_millionths(line, micros);
    }
    line.push(b',');
}

#[cfg(test)]
mod tests {
    use scheduler::event::GrantCause;
    use scheduler::{JobId, SiteId};

    use super::*;
    use crate::fixtures::folder;

    #[test]
    fn rows_have_what_is_known_and_a_run_without_steals_has_no_file() {
        let path = folder("steals_csv").join("steals.csv");
        StealsCsv::new(&path).finish().unwrap();
        assert!(!path.exists());

        let steal = Steal {
            job: JobId(7),
            hop: 1,
            thief: SiteId(2),
            victim: SiteId(1),
            cause: GrantCause::Request,
            requested: Some(Time::from_secs(1)),
            granted: Time::from_secs(3),
            accepted: Time::from_micros(4_500_000),
            started: Some(Time::from_secs(9)),
            bounces: 2,
            firm: true,
            view_age: Some(Span::from_secs(5)),
        };
        let mut file = StealsCsv::new(&path);
        file.write(&steal);
        let cause = GrantCause::Standing;
        file.write(&Steal { requested: None, started: None, view_age: None, firm: false, cause, ..steal });
        file.finish().unwrap();

        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[1],
            "7,1,2,1,request,1.000000,3.000000,4.500000,9.000000,2.000000,1.500000,4.500000,8.000000,2,1,5.000000"
        );
        assert_eq!(lines[2], "7,1,2,1,standing,,3.000000,4.500000,,,1.500000,,,2,0,");
        assert!(lines.iter().all(|line| line.split(',').count() == 16), "{text}");
    }

    #[test]
    fn the_first_error_is_kept() {
        let missing = folder("steals_csv_missing").join("no").join("steals.csv");
        let mut file = StealsCsv::new(&missing);
        let at = Time::ZERO;
        let (job, thief, victim) = (JobId(1), SiteId(2), SiteId(1));
        let cause = GrantCause::Push;
        file.write(&Steal {
            job,
            hop: 1,
            thief,
            victim,
            cause,
            requested: None,
            granted: at,
            accepted: at,
            started: None,
            bounces: 0,
            firm: false,
            view_age: None,
        });
        assert!(file.finish().unwrap_err().to_string().contains("steals.csv"));
    }
}
