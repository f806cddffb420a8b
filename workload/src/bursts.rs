//! Jobs that ran in several parts, as logs of machines with preemption or checkpoints have them.
//!
//! Lines of status 2, 3 and 4 are bursts of the job whose number they share (SWF definition, field 11). Where the job has a line
//! of its own, that line says it all; else the bursts are joined. Either way a job is one record, and each line is counted.

use std::collections::BTreeMap;

use scheduler::Span;

use crate::record::{Record, UNKNOWN_TIME};
use crate::repair::Repair;
use crate::trace::Trace;

/// Whether a record may be a part of a job.
pub(crate) fn is_burst(record: &Record) -> bool {
    (2..=4).contains(&record.status)
}

/// Makes one record of the parts of each job. `lines` has the line of every record that [is a burst](is_burst), in their order.
///
/// Values of jobs are noted here that readers leave to it: those of lines which are bursts by their status.
pub(crate) fn join(trace: &mut Trace, lines: &[u64], note: impl Fn(&Record, &mut dyn FnMut(bool, Repair))) {
    if lines.is_empty() {
        return;
    }
    let mut parts: BTreeMap<i64, Vec<(usize, u64)>> = BTreeMap::new();
    let bursts = trace.records.iter().enumerate().filter(|(_, record)| is_burst(record));
    for ((index, record), &line) in bursts.zip(lines) {
        // A number that is none cannot be shared.
        let key = if record.job > 0 { record.job } else { -1 - index as i64 };
        parts.entry(key).or_default().push((index, line));
    }
    let mut is_gone = vec![false; trace.records.len()];
    for record in trace.records.iter().filter(|record| record.job > 0 && !is_burst(record)) {
        for (index, line) in parts.remove(&record.job).unwrap_or_default() {
            is_gone[index] = true;
            trace.repairs.add(Repair::BurstLeftOut, line);
        }
    }
    for bursts in parts.into_values() {
        let (first, line) = bursts[0];
        let records: Vec<Record> = bursts.iter().map(|&(index, _)| trace.records[index]).collect();
        trace.records[first] = joined(&records);
        for &(index, line) in &bursts[1..] {
            is_gone[index] = true;
            trace.repairs.add(Repair::BurstJoined, line);
        }
        note(&trace.records[first], &mut |seen, repair| {
            if seen {
                trace.repairs.add(repair, line);
            }
        });
    }
    let mut gone = is_gone.iter();
    trace.records.retain(|_| !gone.next().expect("as many as records"));
}

/// One job of its bursts: submitted and first started with the first of them, as long as all of them together, as wide as the
/// widest, and ended as the last.
fn joined(bursts: &[Record]) -> Record {
    let [first, .., last] = bursts else { return bursts[0] };
    let sum = |time: fn(&Record) -> Span| {
        let known = bursts.iter().map(time).filter(|&time| time >= Span::ZERO);
        let add = |sum: Span, time: Span| Span::from_micros(sum.as_micros().saturating_add(time.as_micros()));
        known.reduce(add).unwrap_or(UNKNOWN_TIME)
    };
    let widest = |count: fn(&Record) -> i32| bursts.iter().map(count).max().unwrap_or(-1);
    Record {
        run_time: sum(|record| record.run_time),
        cpu_time: sum(|record| record.cpu_time),
        requested_time: bursts.iter().map(|record| record.requested_time).max().unwrap_or(UNKNOWN_TIME),
        allocated: widest(|record| record.allocated),
        requested: widest(|record| record.requested),
        used_memory: bursts.iter().map(|record| record.used_memory).max().unwrap_or(-1),
        status: match last.status {
            3 => 1,
            4 => 0,
            _ => -1,
        },
        ..*first
    }
}
