//! Metrics, lower bounds, theory and statistics.
