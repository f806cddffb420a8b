//! The `stealgrid-node` executable, for containers.

fn main() {}
