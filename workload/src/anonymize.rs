//! A log without names: who is who becomes a number in order of first appearance.

use std::collections::BTreeMap;

use crate::header::{Header, key_of};
use crate::trace::Trace;

/// Comments that say something of the machine or its clock, and of nobody.
const KEPT: [&str; 9] = [
    "Version",
    "MaxProcs",
    "MaxNodes",
    "MaxRecords",
    "MaxJobs",
    "MaxQueues",
    "UnixStartTime",
    "TimeZone",
    "TimeZoneString",
];

impl Trace {
    /// Numbers jobs, users, groups, executables, queues and partitions from 1 in order of first appearance, and leaves out
    /// all comments but those on machine and clock. Times, sizes, memory, states and sites stay; so does which job
    /// preceded which.
    pub fn anonymize(&mut self) {
        let mut jobs = BTreeMap::new();
        for (record, number) in self.records.iter_mut().zip(1..) {
            jobs.entry(record.job).or_insert(number);
            record.job = number;
        }
        let [mut users, mut groups, mut executables, mut queues, mut partitions] =
            [const { BTreeMap::new() }; 5];
        for record in &mut self.records {
            record.preceding = jobs.get(&record.preceding).copied().unwrap_or(-1);
            for (value, numbers) in [
                (&mut record.user, &mut users),
                (&mut record.group, &mut groups),
                (&mut record.executable, &mut executables),
                (&mut record.queue, &mut queues),
                (&mut record.partition, &mut partitions),
            ] {
                *value = number(*value, numbers);
            }
        }
        let mut header = Header::default();
        for line in &self.header.lines {
            if key_of(line).is_some_and(|key| KEPT.contains(&key.as_str())) {
                header.push(line);
            }
        }
        self.header = header;
    }
}

/// The number of a value; unknown ones stay unknown.
fn number(value: i32, numbers: &mut BTreeMap<i32, i32>) -> i32 {
    if value < 0 {
        return value;
    }
    let next = i32::try_from(numbers.len()).map_or(i32::MAX, |len| len.saturating_add(1));
    *numbers.entry(value).or_insert(next)
}

#[cfg(test)]
mod tests {
    use crate::read_from;

    const LOG: &str = "; MaxProcs: 8\n; Acknowledge: Anna\n; Queue: 4 secret\n; UnixStartTime: 900000000\n\
                       70 0 -1 60 2 -1 -1 2 120 -1 1 900 20 -1 4 9 -1 -1\n\
                       50 5 -1 60 4 -1 -1 4 30 -1 1 800 20 6 4 -1 70 3\n\
                       90 9 -1 60 4 -1 -1 4 30 -1 1 900 30 6 0 9 11 -1\n";

    #[test]
    fn only_numbers_by_first_appearance_and_the_machine_are_left() {
        let original = read_from("t", LOG.as_bytes()).unwrap();
        let mut trace = original.clone();

        trace.anonymize();

        let who: Vec<_> = trace
            .records
            .iter()
            .map(|r| (r.job, r.user, r.group, r.executable, r.queue, r.partition, r.preceding))
            .collect();
        assert_eq!(who, [(1, 1, 1, -1, 1, 1, -1), (2, 2, 1, 1, 1, -1, 1), (3, 1, 2, 1, 2, 1, -1)]);
        let lines: Vec<_> = trace.header.lines.iter().map(|line| String::from_utf8_lossy(line)).collect();
        assert_eq!(lines, ["; MaxProcs: 8", "; UnixStartTime: 900000000"]);
        assert!(trace.header.queues.is_empty());
        for (seen, original) in trace.records.iter().zip(&original.records) {
            assert_eq!((seen.submit, seen.run_time), (original.submit, original.run_time));
            assert_eq!((seen.allocated, seen.think_time), (original.allocated, original.think_time));
        }
    }
}
