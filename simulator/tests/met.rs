//! How many of the runs that a mistake shows in are looked for.

/// The first that meets a mistake is enough; built with `STEALGRID_COUNT` all are, to count how often, as `docs/MUTANTS.md` says it.
pub(crate) fn met<T>(runs: impl Iterator<Item = T>) -> Vec<T> {
    match option_env!("STEALGRID_COUNT") {
        None => runs.take(1).collect(),
        Some(_) => runs.collect(),
    }
}
