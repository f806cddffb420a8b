//! How much a node takes from others before it says no. Every limit has a name, a default and a metric.

use serde::{Deserialize, Serialize};

/// The most [`Limits::streams_per_connection`] can be: with more, yamux would promise a connection too much memory.
const STREAMS_MAX: usize = 2048;

/// Default of the number of events kept in memory: a million take about 60 MB.
pub const EVENTS_MAX: usize = 1_000_000;
/// Default of the number of jobs held at once: a million take about 100 MB, and the coordinator can hand them over
/// in portions.
pub const JOBS_HELD_MAX: usize = 1_000_000;
/// Messages that may wait at once. Arbitrary; far above what an experiment needs, so that hitting it says
/// something.
pub const DELAY_LINE_MAX: usize = 65_536;

/// What a journal survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The end of the process, by `kill -9` too. What is written is left to the system to bring to the disk.
    #[default]
    Process,
    /// Also a crash of the machine: every commit waits for the disk.
    Disk,
}

/// The limits of one node that can be set. All are at least 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Frames a second from one node; as many may come at once.
    pub frames_per_second: u32,
    /// Hellos and probes a second from one node; as many may come at once.
    pub requests_per_second: u32,
    /// Connections with one node. At least 2: nodes that dial each other at once have two for a moment.
    pub connections_per_peer: u32,
    /// Connections in all.
    pub connections: u32,
    /// Connections that others have opened and that have not shown the grid's key and an identity.
    pub connections_pending: u32,
    /// Streams on one connection.
    pub streams_per_connection: usize,
    /// Seconds without an answer after which a connection is closed.
    pub link_silence_secs: u32,
    /// Frames received and not handled.
    pub inbox_frames: usize,
    /// The same from one node.
    pub inbox_frames_per_peer: usize,
    /// Bytes of frames received and not handled.
    pub inbox_bytes: usize,
    /// Jobs held and waiting; beyond them a submission is answered `busy`.
    pub jobs_waiting: usize,
    /// Offences within a minute after which a node is banned.
    pub offences: u32,
    /// How long the first ban of a node lasts, in seconds of wall-clock time.
    pub ban_secs: u32,
    /// Connections to the control interface at once.
    pub control_connections: usize,
    /// Seconds for the headers of a request to the control interface, and as many for its body.
    pub control_request_secs: u32,
    /// Milliseconds of wall-clock time that a broker's plan may take, beside that of its first population. In lockstep it
    /// takes as long as it wants to.
    pub plan_millis: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // Twice what two nodes that do nothing else exchange over the loopback interface.
            frames_per_second: 20_000,
            // A calibration asks at most a thousand times a second.
            requests_per_second: 2_000,
            connections_per_peer: 3,
            connections: 4_096,
            connections_pending: 128,
            streams_per_connection: 64,
            link_silence_secs: 55,
            inbox_frames: 4_096,
            inbox_frames_per_peer: 1_024,
            inbox_bytes: 64 * 1024 * 1024,
            jobs_waiting: 1_000_000,
            offences: 10,
            ban_secs: 60,
            control_connections: 64,
            // The largest body takes a second at the speed of a slow local network.
            control_request_secs: 30,
            // A default search of some hundreds of jobs ends by itself before. A node that searches answers nobody meanwhile.
            plan_millis: 500,
        }
    }
}

/// Why limits make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// It allows nothing.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// Two nodes that dial each other at once could not keep any connection.
    #[error(
        "limits.connections_per_peer {0}: two nodes that dial each other have two for a moment; allow 2 or more"
    )]
    ConnectionsPerPeer(u32),
    /// More streams than a connection can have.
    #[error("limits.streams_per_connection {given}: {most} is the most")]
    Streams {
        /// What was given.
        given: usize,
        /// How many streams a connection can have.
        most: usize,
    },
}

impl Limits {
    /// Whether every limit allows something.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), LimitsError> {
        let zero = [
            ("limits.frames_per_second", self.frames_per_second == 0),
            ("limits.requests_per_second", self.requests_per_second == 0),
            ("limits.connections", self.connections == 0),
            ("limits.connections_pending", self.connections_pending == 0),
            ("limits.streams_per_connection", self.streams_per_connection == 0),
            ("limits.link_silence_secs", self.link_silence_secs == 0),
            ("limits.inbox_frames", self.inbox_frames == 0),
            ("limits.inbox_frames_per_peer", self.inbox_frames_per_peer == 0),
            ("limits.inbox_bytes", self.inbox_bytes == 0),
            ("limits.jobs_waiting", self.jobs_waiting == 0),
            ("limits.offences", self.offences == 0),
            ("limits.ban_secs", self.ban_secs == 0),
            ("limits.control_connections", self.control_connections == 0),
            ("limits.control_request_secs", self.control_request_secs == 0),
            ("limits.plan_millis", self.plan_millis == 0),
        ];
        if let Some((name, _)) = zero.into_iter().find(|(_, zero)| *zero) {
            return Err(LimitsError::Zero(name));
        }
        if self.connections_per_peer < 2 {
            return Err(LimitsError::ConnectionsPerPeer(self.connections_per_peer));
        }
        if self.streams_per_connection > STREAMS_MAX {
            return Err(LimitsError::Streams { given: self.streams_per_connection, most: STREAMS_MAX });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::server::BODY_BYTES_MAX;
    use crate::metrics::Limit;
    use crate::network::{FRAME_BYTES_MAX, IN_FLIGHT_MAX, OUTBOX_MAX};

    /// One limit for the documents.
    struct Described {
        name: &'static str,
        default: usize,
        of: &'static str,
        then: &'static str,
        metric: String,
    }

    /// Every limit of a node, as the documents show them.
    fn described() -> Vec<Described> {
        let limits = Limits::default();
        let row = |name, default, of, then, limit: Limit| {
            let metric = format!("`{}`", limit.name());
            Described { name, default, of, then, metric }
        };
        let other = |name, default, of, then, metric: &str| Described {
            name,
            default,
            of,
            then,
            metric: metric.to_string(),
        };
        vec![
            row(
                "limits.frames_per_second",
                limits.frames_per_second as usize,
                "frames a second from one node; as many may come at once",
                "nothing is read from the node until it is within its rate; an offence",
                Limit::Rate,
            ),
            row(
                "limits.requests_per_second",
                limits.requests_per_second as usize,
                "hellos and probes a second from one node",
                "they are not taken; an offence",
                Limit::Rate,
            ),
            row(
                "limits.connections_per_peer",
                limits.connections_per_peer as usize,
                "connections with one node",
                "the connection is closed",
                Limit::Connections,
            ),
            row(
                "limits.connections",
                limits.connections as usize,
                "connections in all",
                "the connection is closed",
                Limit::Connections,
            ),
            row(
                "limits.connections_pending",
                limits.connections_pending as usize,
                "connections from others that have not shown key and identity",
                "the connection is closed",
                Limit::Connections,
            ),
            row(
                "limits.streams_per_connection",
                limits.streams_per_connection,
                "streams on one connection, at most 2,048; a node uses about five",
                "the connection is closed",
                Limit::Streams,
            ),
            row(
                "limits.link_silence_secs",
                limits.link_silence_secs as usize,
                "seconds until a connection over which nothing comes back is noticed",
                "the connection is closed, and the site dialed anew",
                Limit::LinkSilence,
            ),
            row(
                "frame_bytes_max",
                FRAME_BYTES_MAX,
                "bytes of a frame",
                "nothing of it is kept, the connection is closed; an offence",
                Limit::FrameBytes,
            ),
            row(
                "limits.inbox_frames",
                limits.inbox_frames,
                "frames received and not handled",
                "the frame is not taken; its sender counts it as lost and repeats what matters",
                Limit::Inbox,
            ),
            row(
                "limits.inbox_frames_per_peer",
                limits.inbox_frames_per_peer,
                "the same from one node",
                "the same",
                Limit::Inbox,
            ),
            row("limits.inbox_bytes", limits.inbox_bytes, "their bytes", "the same", Limit::Inbox),
            row(
                "(unanswered frames)",
                IN_FLIGHT_MAX,
                "frames sent to one node and not answered",
                "further ones wait",
                Limit::Outbox,
            ),
            row(
                "(outbox)",
                OUTBOX_MAX,
                "frames that wait to be sent to one node",
                "the frame is lost and counted; the protocol repeats what matters",
                Limit::Outbox,
            ),
            row(
                "delay_line_max",
                DELAY_LINE_MAX,
                "messages that are being delayed",
                "the message is lost, as an event",
                Limit::DelayLine,
            ),
            row(
                "jobs_held_max",
                JOBS_HELD_MAX,
                "jobs held until their submission",
                "`busy`: none of the portion is taken, the coordinator hands it over later",
                Limit::Jobs,
            ),
            row(
                "limits.jobs_waiting",
                limits.jobs_waiting,
                "jobs held, and waiting in the queue",
                "the same",
                Limit::Jobs,
            ),
            row(
                "events_max",
                EVENTS_MAX,
                "events kept in memory",
                "the oldest are dropped; with `--events` all are in a file, with `--data-dir` they are read from the journal",
                Limit::Events,
            ),
            other(
                "limits.offences",
                limits.offences as usize,
                "offences of one node within a minute",
                "it is disconnected and banned",
                "`stealgrid_bans_total`",
            ),
            other(
                "limits.ban_secs",
                limits.ban_secs as usize,
                "seconds that the first ban lasts",
                "the node is let in again",
                "`stealgrid_bans_total`",
            ),
            other(
                "orphan_secs",
                0,
                "seconds of a running clock without a coordinator's request; 0: no limit",
                "the node ends with exit code 11",
                "`stealgrid_orphaned_seconds`",
            ),
            row(
                "limits.control_connections",
                limits.control_connections,
                "connections to the control interface; as many to the address of metrics",
                "the one that is idle longest is closed, of those without the token first; the new one if all are at \
                 work",
                Limit::ControlConnections,
            ),
            row(
                "limits.control_request_secs",
                limits.control_request_secs as usize,
                "seconds for the headers of a request to the control interface, and as many for its body",
                "the connection is closed; 408 and counted if it is the body",
                Limit::ControlTime,
            ),
            row(
                "(body)",
                BODY_BYTES_MAX,
                "bytes of a request to the control interface",
                "413, and nothing of it is kept",
                Limit::ControlBody,
            ),
            row(
                "limits.plan_millis",
                limits.plan_millis as usize,
                "milliseconds that a plan of `broker:genetic` may take on the wall clock, with what its first population takes \
                 as the least; none under `--clock virtual`",
                "the search ends, and the best rows so far are used",
                Limit::Plan,
            ),
        ]
    }

    /// The table in the documents is the one that the code gives.
    #[test]
    fn the_documents_have_every_limit_with_its_default() {
        let mut table = String::from("| name | default | of | beyond it | metric |\n|---|---|---|---|---|\n");
        for Described { name, default, of, then, metric } in described() {
            let name = if name.starts_with('(') { name.to_string() } else { format!("`{name}`") };
            table += &format!("| {name} | {} | {of} | {then} | {metric} |\n", grouped(default));
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/OPERATIONS.md");
        let text = std::fs::read_to_string(path).unwrap();
        let (_, rest) = text.split_once("<!-- limits -->\n").expect("the mark before the table");
        let (shown, _) = rest.split_once("<!-- /limits -->").expect("the mark behind the table");
        assert_eq!(shown, table, "the table between the marks in docs/OPERATIONS.md must be\n{table}");
    }

    /// No limit that can be set, and none that is counted, is missing from the documents.
    #[test]
    fn every_limit_is_described() {
        let described = described();
        let names: Vec<&str> = described.iter().map(|row| row.name).collect();
        let written = serde_json::to_value(Limits::default()).unwrap();
        for key in written.as_object().unwrap().keys() {
            assert!(names.contains(&format!("limits.{key}").as_str()), "limits.{key}");
        }
        for limit in Limit::ALL {
            let metric = format!("`{}`", limit.name());
            assert!(described.iter().any(|row| row.metric == metric), "{metric}");
        }
    }

    #[test]
    fn a_limit_that_allows_nothing_is_refused_by_name() {
        assert_eq!(Limits::default().check(), Ok(()));
        let error = Limits { inbox_bytes: 0, ..Limits::default() }.check().unwrap_err().to_string();
        assert!(error.contains("limits.inbox_bytes"), "{error}");
        let error = Limits { connections_per_peer: 1, ..Limits::default() }.check().unwrap_err().to_string();
        assert!(error.contains("allow 2 or more"), "{error}");
        let error = Limits { streams_per_connection: 4_000, ..Limits::default() }.check().unwrap_err();
        assert_eq!(error.to_string(), "limits.streams_per_connection 4000: 2048 is the most");
    }

    /// With a comma between thousands.
    fn grouped(number: usize) -> String {
        let digits = number.to_string();
        let mut text = String::new();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        text
    }
}
