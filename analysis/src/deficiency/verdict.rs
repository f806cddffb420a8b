//! The certificate as relations beside those of [`crate::theory`]: proved for any strategy and network.

use scheduler::{Grid, Span};

use super::Attribution;
use crate::bounds::Bounds;
use crate::theory::{Comparison, Quantity, Relation, Verdict};

const ASSUMPTION: &str = "every job ran once; any strategy, delay and loss";
const SOURCE: &str = "sums over the events of this run; docs/THEORY";

impl Attribution {
    /// The certificate in seconds and as a ratio, for a run of this makespan.
    pub fn comparisons(&self, grid: &Grid, makespan: Span, bounds: &Bounds) -> Vec<Comparison> {
        let relation = |name: &str, quantity, measured, limit, formula: &str, within| Comparison {
            name: name.into(),
            quantity,
            measured,
            relation: Relation::AtMost,
            limit,
            formula: format!("{formula}, beta = {}", f64::from(self.beta_percent) / 100.0),
            assumption: ASSUMPTION.into(),
            source: SOURCE.into(),
            verdict: if within { Verdict::Holds } else { Verdict::Violated },
        };
        let certificate = relation(
            "lower bound of the deficiency",
            Quantity::Seconds,
            Some(makespan.as_secs_f64()),
            Some(self.certificate.bound.as_secs_f64()),
            "r_j + p_j + (W_k + V_k)/(beta S_k)",
            self.certificate.holds && makespan <= self.certificate.bound,
        );
        let measured = Bounds::ratio(makespan, bounds.proof);
        let limit = self.ratio_bound(grid, bounds.proof);
        let ratio = measured.zip(limit).map(|(measured, limit)| {
            // The certificate is exact; here only what printing a ratio rounds is forgiven.
            let within = measured <= limit * (1.0 + 1e-12);
            relation(
                "ratio with deficiency",
                Quantity::Ratio,
                Some(measured),
                Some(limit),
                "1 + (1 + V_k/(S_k LB))/beta",
                within,
            )
        });
        [certificate].into_iter().chain(ratio).collect()
    }
}
