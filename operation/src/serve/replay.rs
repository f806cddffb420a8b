//! A run that has ended, as frames that a page shows by a clock of its own: who stops or sets it moves nobody else's.
//!
//! They are made while the log is read, and are kept as text: whoever looks on costs nothing but their transfer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use outputs::orders::Given;
use scheduler::Event;

use super::Shown;
use super::live::{Frame, Live, ROW, Told};
use crate::audit::Audit;

/// Bytes of frames in one answer, more or less: what a browser reads without stumbling.
const ANSWER: usize = 128 * 1024;
/// A frame tells of all sites again after so many others have told of as many sites as there are: a page that goes to some
/// time reads so many at the most.
const KEY_EVERY: usize = 8;
/// A run has some so many frames, and more if its sites come and go: as many as a minute of a screen has pictures.
const FRAMES: u64 = 5000;

/// What is known of such a run so far.
#[derive(Debug)]
pub struct Replay {
    read: Mutex<Read>,
}

#[derive(Debug, Default)]
struct Read {
    frames: Vec<String>,
    /// Lines of the log that were read, and all that there are.
    lines: [u64; 2],
    is_whole: bool,
}

impl Replay {
    /// Of a log with so many lines, of which nothing was read.
    pub fn new(lines: u64) -> Replay {
        Replay { read: Mutex::new(Read { lines: [0, lines], ..Read::default() }) }
    }

    fn read(&self) -> MutexGuard<'_, Read> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frames from this number on, some of them, as JSON: `{"frames": […], "read": [lines, of], "whole": …}`.
    pub fn frames(&self, from: usize) -> String {
        let read = self.read();
        let mut answer = String::with_capacity(ANSWER + ANSWER / 4);
        answer.push_str("{\"frames\":[");
        let from = from.min(read.frames.len());
        for (count, frame) in read.frames[from..].iter().enumerate() {
            if answer.len() > ANSWER {
                break;
            }
            if count > 0 {
                answer.push(',');
            }
            answer.push_str(frame);
        }
        let Read { lines: [lines, of], is_whole, .. } = *read;
        // Of a log without messages the manifest counts more than there are.
        let lines = if is_whole { of } else { lines.min(of) };
        answer.push_str(&format!("],\"read\":[{lines},{of}],\"whole\":{is_whole}}}"));
        answer
    }
}

/// Makes frames of a log.
#[derive(Debug)]
pub struct Framer<'a> {
    replay: &'a Replay,
    shown: &'a Shown,
    orders: &'a [Given],
    audit: Audit,
    told: Told,
    sites: usize,
    /// Sites that were told of since all were.
    rows: usize,
    /// Changes that make a frame, and the version at the last one.
    step: u64,
}

impl<'a> Framer<'a> {
    /// Of a run that is shown from now on: as it was before the first event.
    pub fn new(
        replay: &'a Replay,
        shown: &'a Shown,
        live: Live,
        audit: Audit,
        orders: &'a [Given],
    ) -> Framer<'a> {
        let (sites, jobs) = (live.about().sites.len(), live.about().jobs as u64);
        let (told, step) = (Told::default(), 1 + 4 * jobs / FRAMES);
        let mut framer = Framer { replay, shown, orders, audit, told, sites, rows: 0, step };
        let first = framer.next(&live);
        replay.read().frames.push(text(&first));
        shown.set_live(live);
        framer
    }

    /// Takes the next events of the log, of which so many lines were read.
    pub fn take(&mut self, events: &[Event], lines: u64) {
        let (mut frames, shown) = (Vec::new(), self.shown);
        shown.change(|live| {
            for event in events {
                // All of an instant is one picture.
                if event.at > live.now() && live.version() > self.told.version + self.step {
                    frames.push(text(&self.next(live)));
                }
                self.obey(live, |given| given.at <= event.at);
                self.audit.observe(event);
                live.observe(event);
            }
        });
        let mut read = self.replay.read();
        read.frames.append(&mut frames);
        read.lines[0] = lines;
    }

    /// The log has ended: the last picture.
    pub fn finish(mut self) {
        let (mut frames, shown) = (Vec::new(), self.shown);
        shown.change(|live| {
            self.obey(live, |_| true);
            live.judge(self.audit.failed());
            live.enter(super::live::Phase::Ended);
            frames.push(text(&self.next(live)));
            while live.has_more(&self.told) {
                frames.push(text(&self.next(live)));
            }
        });
        let mut read = self.replay.read();
        read.frames.append(&mut frames);
        read.is_whole = true;
    }

    fn obey(&mut self, live: &mut Live, is_due: impl Fn(&Given) -> bool) {
        let due = self.orders.iter().take_while(|given| is_due(given)).count();
        let (now, later) = self.orders.split_at(due);
        self.orders = later;
        for given in now {
            given.job.iter().for_each(|job| self.audit.add(job));
            live.pass(given.at);
            live.ordered(given);
        }
    }

    fn next(&mut self, live: &Live) -> Frame {
        if self.rows >= KEY_EVERY * self.sites {
            (self.told.version, self.rows) = (0, 0);
        }
        let frame = live.since(&mut self.told);
        self.rows += frame.sites.len() / ROW;
        frame
    }
}

fn text(frame: &Frame) -> String {
    serde_json::to_string(frame).expect("a frame is plain data")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use scheduler::{EventKind, Grid, JobId, JobSpec, Labels, SiteId, Span, Threshold, Time, TimedJob};
    use serde_json::Value;

    use super::*;
    use crate::serve::Place;
    use crate::serve::live::{About, AboutSite, BAR};

    /// A thousand jobs, one after the other at two sites.
    fn frames_of(jobs: u64) -> (Replay, usize) {
        let grid = Grid::of_sizes(&[1, 1]).unwrap();
        let job = |id: u64| TimedJob {
            spec: JobSpec {
                id: JobId(id),
                submit: Time::from_secs(id as i64),
                processors: 1,
                requested: Span::from_secs(1),
                labels: Labels::UNKNOWN,
                origin: SiteId(1),
                payload: 0,
            },
            run_time: Span::from_secs(1),
        };
        let jobs: Vec<TimedJob> = (1..=jobs).map(job).collect();
        let about = About { jobs: jobs.len(), sites: AboutSite::all(&grid), ..About::default() };
        let (live, audit) = (Live::new(about, &grid, Threshold::HALF, &jobs), Audit::new(&grid, &jobs));
        let replay = Arc::new(Replay::new(jobs.len() as u64 * 3));
        let place = Place::new("127.0.0.1:0", &[]);
        let shown = Shown::new(Some(Arc::clone(&replay)), None, place.hosts());
        let mut reader = Framer::new(&replay, &shown, live, audit, &[]);
        for (count, job) in jobs.iter().enumerate() {
            let (id, at, site) = (job.spec.id, job.spec.submit, SiteId(1 + id_of(job) % 2));
            let event = |at, kind| Event { at, site, kind };
            let (processors, requested, origin) = (1, Span::from_secs(1), SiteId(1));
            let events = [
                event(at, EventKind::Submitted { job: id, processors, requested, origin }),
                event(at, EventKind::Started { job: id, processors, hops: 0 }),
                event(at + Span::from_secs(1), EventKind::Completed { job: id, processors }),
            ];
            reader.take(&events, 3 * (count as u64 + 1));
        }
        reader.finish();
        drop(shown);
        let count = replay.read().frames.len();
        (Arc::try_unwrap(replay).unwrap(), count)
    }

    fn id_of(job: &TimedJob) -> u32 {
        u32::try_from(job.spec.id.0).unwrap()
    }

    #[test]
    fn all_frames_together_say_what_the_last_picture_is() {
        let (replay, count) = frames_of(1000);
        let (mut frames, mut answers) = (Vec::<Value>::new(), 0);
        while frames.len() < count {
            let answer: Value = serde_json::from_str(&replay.frames(frames.len())).unwrap();
            assert_eq!(
                (&answer["read"], &answer["whole"]),
                (&serde_json::json!([3000, 3000]), &Value::Bool(true))
            );
            frames.extend(answer["frames"].as_array().unwrap().iter().cloned());
            answers += 1;
        }
        assert!(answers > 1, "{count} frames came in one answer");
        assert_eq!(replay.frames(count), "{\"frames\":[],\"read\":[3000,3000],\"whole\":true}");
        assert_eq!(frames.last().unwrap()["jobs"], serde_json::json!([0, 0, 1000]));
        assert_eq!(frames.last().unwrap()["phase"], "ended");
        let numbers = |name: &str| -> usize {
            frames.iter().filter_map(|frame| frame[name].as_array()).map(Vec::len).sum()
        };
        assert_eq!(numbers("bars"), BAR * 1000);
        let keys: Vec<usize> =
            (0..count).filter(|&place| frames[place]["sites"].as_array().unwrap().len() == 2 * ROW).collect();
        assert_eq!(keys[0], 0);
        assert!(keys.windows(2).all(|pair| pair[1] - pair[0] <= 1 + 2 * KEY_EVERY), "{keys:?}");
    }
}
