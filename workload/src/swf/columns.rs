//! The 18 columns: their names, in the order of the format.

/// Columns of a record.
pub const COLUMNS: usize = 18;

/// What each column holds.
pub const FIELDS: [&str; COLUMNS] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "executable",
    "queue",
    "partition",
    "preceding job",
    "think time",
];
