//! Workload traces: SWF first of all, and GWF, its OpenDC variant, Batsim and dumps of sacct, which are recognized by content.

use workload::prepare::PrepareOptions;
use workload::{Format, Record, Trace, prepare, read_from, swf as format};

/// Processors of the widest site that jobs are prepared for: arbitrary; some jobs are wider.
const WIDEST: u32 = 128;
/// First bytes of compressed files. Decompression is left to its own library and costs time, so that such inputs are
/// not read.
const COMPRESSED: [&[u8]; 2] = [&[0x1f, 0x8b], &[0x28, 0xb5, 0x2f, 0xfd]];

/// Bytes as a trace of any format, not compressed.
///
/// # Panics
/// If a reader does, if a trace cannot be prepared without an error that says why, or if its records are not read
/// back from what the writer of the standard format makes of them.
pub fn swf(bytes: &[u8]) {
    if COMPRESSED.iter().any(|magic| bytes.starts_with(magic)) {
        return;
    }
    match read_from("input", bytes) {
        Ok(trace) => written_and_read(&trace),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn written_and_read(trace: &Trace) {
    for options in [PrepareOptions::default(), every_job()] {
        match prepare(trace, &options, WIDEST) {
            Ok(prepared) => {
                assert!(prepared.jobs.is_sorted_by_key(|job| job.spec.key()), "jobs come in order");
                for job in &prepared.jobs {
                    assert!((1..=WIDEST).contains(&job.spec.processors), "{job:?}");
                }
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let written = write(trace);
    let again = format::read_trace("written", &written[..], &workload::Limits::default())
        .expect("what was written is a log");
    if trace.format == Format::Swf {
        // What is described in field 21 is read, and not written.
        let written_fields = |record: &Record| Record { described: -1, ..*record };
        let expected: Vec<Record> = trace.records.iter().map(written_fields).collect();
        assert_eq!(again.records, expected, "{}", String::from_utf8_lossy(&written));
    }
    assert_eq!(again.records.len(), trace.records.len());
}

fn write(trace: &Trace) -> Vec<u8> {
    let mut out = Vec::new();
    format::write_trace(trace, &mut out).expect("writing to memory does not fail");
    out
}

/// Nothing is dropped for its values.
fn every_job() -> PrepareOptions {
    PrepareOptions {
        filters: "none".parse().expect("a switch of preparation"),
        missing_estimate: "run-time".parse().expect("a switch of preparation"),
        ..PrepareOptions::default()
    }
}
