//! The limits of a node that are counted in a metric and shown in `/status`.
//!
//! What each of them is, and its default, is in the table of limits in `docs/OPERATIONS.md`.

/// A limit of the node that can be hit, for the metric that counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Limit {
    /// Frames waiting to be sent.
    Outbox,
    /// Frames waiting to be handled.
    Inbox,
    /// Messages being delayed.
    DelayLine,
    /// Jobs held until their submission, and waiting.
    Jobs,
    /// Events kept in memory.
    Events,
    /// Bytes of a frame.
    FrameBytes,
    /// Frames and requests a second from one node.
    Rate,
    /// Connections with other nodes.
    Connections,
    /// Streams on one connection.
    Streams,
    /// Time without an answer from another node.
    LinkSilence,
    /// Connections to the control interface.
    ControlConnections,
    /// Bytes of a request to the control interface.
    ControlBody,
    /// Time of a request to the control interface.
    ControlTime,
    /// Time of a broker's plan.
    Plan,
}

impl Limit {
    /// Every limit, in the order of the enum.
    pub const ALL: [Limit; 14] = [
        Limit::Outbox,
        Limit::Inbox,
        Limit::DelayLine,
        Limit::Jobs,
        Limit::Events,
        Limit::FrameBytes,
        Limit::Rate,
        Limit::Connections,
        Limit::Streams,
        Limit::LinkSilence,
        Limit::ControlConnections,
        Limit::ControlBody,
        Limit::ControlTime,
        Limit::Plan,
    ];

    /// The name in metrics and in `/status`.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Outbox => "outbox",
            Limit::Inbox => "inbox",
            Limit::DelayLine => "delay_line",
            Limit::Jobs => "jobs",
            Limit::Events => "events",
            Limit::FrameBytes => "frame_bytes",
            Limit::Rate => "rate",
            Limit::Connections => "connections",
            Limit::Streams => "streams",
            Limit::LinkSilence => "link_silence",
            Limit::ControlConnections => "control_connections",
            Limit::ControlBody => "control_body",
            Limit::ControlTime => "control_time",
            Limit::Plan => "plan",
        }
    }
}
