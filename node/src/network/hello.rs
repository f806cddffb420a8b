//! The first request on a connection: which site is there, in which incarnation, and what grid it believes in.
//!
//! Noise has proved the key by then. The run is checked before, by the protocol name. Layout, little-endian:
//! `version u32 | site u32 | instance u64 | number of sites u32 | processors u32 each`.

use scheduler::SiteId;

use crate::bytes::{LayoutError, Reader, put_count};

const VERSION: u32 = 1;

/// What a node says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) site: SiteId,
    pub(super) instance: u64,
    /// Processors of all sites, in the order of the experiment.
    pub(super) processors: Vec<u32>,
}

impl Hello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(20 + 4 * self.processors.len());
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.site.0.to_le_bytes());
        out.extend_from_slice(&self.instance.to_le_bytes());
        put_count(&mut out, self.processors.len());
        for processors in &self.processors {
            out.extend_from_slice(&processors.to_le_bytes());
        }
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Hello, LayoutError> {
        let mut reader = Reader::new(bytes);
        if reader.u32("version")? != VERSION {
            return Err(LayoutError::Value("version"));
        }
        let site = SiteId(reader.u32("site")?);
        let instance = reader.u64("instance")?;
        let count = reader.count(4, "processors")?;
        let mut processors = Vec::with_capacity(count);
        for _ in 0..count {
            processors.push(reader.u32("processors")?);
        }
        reader.finish()?;
        Ok(Hello { site, instance, processors })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_round_trip_and_other_versions_are_refused() {
        let hello = Hello { site: SiteId(2), instance: 77, processors: vec![2, 8] };
        let mut bytes = hello.encode();
        assert_eq!(Hello::decode(&bytes), Ok(hello));

        bytes[0] = 2;
        assert_eq!(Hello::decode(&bytes), Err(LayoutError::Value("version")));
    }
}
