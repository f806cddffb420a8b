//! Tests of overlays: one program, as each that is linked takes its time.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod figures;
mod graph;
mod measure;
mod stored;
mod trees;
mod views;
mod world;
