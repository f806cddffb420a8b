//! One protocol message on its way between two nodes, with what the nodes add to it.
//!
//! The message is opaque here. Beside it travel the true run times of the jobs in it: the receiving executor
//! needs them, and the peer, which must not see them, never gets them. Layout, little-endian:
//!
//! ```text
//! from u32 | to u32 | instance u64 | sequence u64 | sent_at i64 | injected i64
//! message length u32 | message | number of run times u32 | (job u64, run time i64)*
//! ```

use scheduler::{JobId, SiteId, Span, Time};

use crate::bytes::{LayoutError, Reader, put_count};

/// Bytes of everything that every frame has.
const FIXED_BYTES: usize = 48;
/// Bytes of one (job, run time) pair.
const RUN_TIME_BYTES: usize = 16;

/// A message between two sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The site that sent it.
    pub from: SiteId,
    /// The site that it is for.
    pub to: SiteId,
    /// Which incarnation of the sender's process sent it.
    pub instance: u64,
    /// Number of the frame on this directed link, from 1, in the order of sending.
    pub sequence: u64,
    /// When the sender's peer sent it, before any injected delay.
    pub sent_at: Time,
    /// How long the sender's node held it back on purpose.
    pub injected: Span,
    /// The message as `protocol::codec` encodes it.
    pub message: Vec<u8>,
    /// True run times of the jobs that the message carries.
    pub run_times: Vec<(JobId, Span)>,
}

impl Frame {
    /// How many bytes the frame has.
    pub fn size(&self) -> usize {
        FIXED_BYTES + self.message.len() + self.run_times.len() * RUN_TIME_BYTES
    }

    /// The bytes of the frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.size());
        out.extend_from_slice(&self.from.0.to_le_bytes());
        out.extend_from_slice(&self.to.0.to_le_bytes());
        out.extend_from_slice(&self.instance.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.sent_at.as_micros().to_le_bytes());
        out.extend_from_slice(&self.injected.as_micros().to_le_bytes());
        put_count(&mut out, self.message.len());
        out.extend_from_slice(&self.message);
        put_count(&mut out, self.run_times.len());
        for (job, run_time) in &self.run_times {
            out.extend_from_slice(&job.0.to_le_bytes());
            out.extend_from_slice(&run_time.as_micros().to_le_bytes());
        }
        out
    }

    /// The frame that these bytes are.
    ///
    /// # Errors
    /// If they end early, are followed by others, or hold a negative run time.
    pub fn decode(bytes: &[u8]) -> Result<Frame, LayoutError> {
        let mut reader = Reader::new(bytes);
        let from = SiteId(reader.u32("from")?);
        let to = SiteId(reader.u32("to")?);
        let instance = reader.u64("instance")?;
        let sequence = reader.u64("sequence")?;
        let sent_at = Time::from_micros(reader.i64("sent_at")?);
        let injected = Span::from_micros(reader.i64("injected")?);
        let len = reader.count(1, "message")?;
        let message = reader.bytes(len, "message")?.to_vec();
        let count = reader.count(RUN_TIME_BYTES, "run_times")?;
        let mut run_times = Vec::with_capacity(count);
        for _ in 0..count {
            let job = JobId(reader.u64("run_times")?);
            let micros = reader.i64("run_times")?;
            if micros < 0 {
                return Err(LayoutError::Value("run_times"));
            }
            run_times.push((job, Span::from_micros(micros)));
        }
        reader.finish()?;
        Ok(Frame { from, to, instance, sequence, sent_at, injected, message, run_times })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame {
        Frame {
            from: SiteId(1),
            to: SiteId(2),
            instance: 0x0102_0304_0506_0708,
            sequence: 9,
            sent_at: Time::from_micros(-5),
            injected: Span::from_micros(4),
            message: vec![7, 8, 9],
            run_times: vec![(JobId(11), Span::from_secs(3)), (JobId(12), Span::ZERO)],
        }
    }

    #[test]
    fn frames_round_trip() {
        assert_eq!(Frame::decode(&frame().encode()), Ok(frame()));
        assert_eq!(frame().encode().len(), frame().size());
    }

    #[test]
    fn no_prefix_of_a_frame_is_a_frame() {
        let bytes = frame().encode();
        for len in 0..bytes.len() {
            assert!(matches!(Frame::decode(&bytes[..len]), Err(LayoutError::Truncated(_))), "{len} bytes");
        }
    }

    #[test]
    fn trailing_bytes_and_negative_run_times_are_refused() {
        let mut long = frame().encode();
        long.push(0);
        assert_eq!(Frame::decode(&long), Err(LayoutError::Trailing(1)));

        let mut negative = frame();
        negative.run_times[0].1 = Span::from_micros(-1);
        assert_eq!(Frame::decode(&negative.encode()), Err(LayoutError::Value("run_times")));
    }

    #[test]
    fn a_count_beyond_the_bytes_allocates_nothing() {
        let mut bytes = Frame { run_times: Vec::new(), ..frame() }.encode();
        let at = bytes.len() - 4;
        bytes[at..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(Frame::decode(&bytes), Err(LayoutError::Truncated("run_times")));
    }
}
