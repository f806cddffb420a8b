//! What a job asks for on shared nodes, and how its run time is made up.

use thiserror::Error;

use crate::time::Span;

/// The longest run time that the model takes: 2^53 microseconds, some 285 years, as a double counts no further one by one.
pub const RUN_TIME_MAX: Span = Span::from_micros(9_007_199_254_740_992);

/// What a job asks for: tasks that are alike, each on a node of its own, from the start to the end (thesis 2.1 and Table 3.2).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Demand {
    /// Tasks, and nodes: at least 1.
    pub tasks: u32,
    /// Run time T^e on idle nodes of full power, from 0 to [`RUN_TIME_MAX`].
    pub run_time: Span,
    /// The share of that time in which it computes, T^p / T^e, from 0 to 1; in the rest T^c it communicates.
    pub computing: f64,
    /// What each task takes of the link of its node, BW_J in Mbit/s, not negative.
    pub bandwidth: f64,
    /// What each task takes of the memory of its node, in KB.
    pub memory: u64,
}

/// Why no job can ask for that.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum DemandError {
    /// A job without tasks.
    #[error("a job has no tasks: give it at least 1")]
    NoTasks,
    /// A negative run time, or one past [`RUN_TIME_MAX`].
    #[error("a run time of {0} s is not between 0 and {RUN_TIME_MAX} s")]
    RunTime(Span),
    /// A share that is none.
    #[error("a computing share of {0} is not between 0 and 1")]
    Computing(f64),
    /// A bandwidth that is none.
    #[error("a bandwidth of {0} Mbit/s is not a number from 0 on")]
    Bandwidth(f64),
}

impl Demand {
    /// Its type (appendix B of the thesis, `BoundedBy`): whether it computes for half of its time on idle nodes, or more.
    pub fn mostly_computes(&self) -> bool {
        self.computing >= 0.5
    }

    /// Whether a job can ask for this.
    ///
    /// # Errors
    /// The first number that is out of its range.
    pub fn check(&self) -> Result<(), DemandError> {
        match self {
            Demand { tasks: 0, .. } => Err(DemandError::NoTasks),
            &Demand { run_time, .. } if run_time < Span::ZERO || run_time > RUN_TIME_MAX => {
                Err(DemandError::RunTime(run_time))
            }
            &Demand { computing, .. } if !(0.0..=1.0).contains(&computing) => {
                Err(DemandError::Computing(computing))
            }
            &Demand { bandwidth, .. } if !(bandwidth >= 0.0 && bandwidth.is_finite()) => {
                Err(DemandError::Bandwidth(bandwidth))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_out_of_range_is_refused_by_its_number() {
        let good = Demand { tasks: 1, run_time: RUN_TIME_MAX, computing: 1.0, bandwidth: 0.0, memory: 0 };
        assert_eq!(good.check(), Ok(()));
        assert_eq!(Demand { tasks: 0, ..good }.check(), Err(DemandError::NoTasks));
        let longer = RUN_TIME_MAX + Span::from_micros(1);
        for run_time in [Span::from_micros(-1), longer] {
            assert_eq!(Demand { run_time, ..good }.check(), Err(DemandError::RunTime(run_time)));
        }
        assert_eq!(Demand { computing: 1.1, ..good }.check(), Err(DemandError::Computing(1.1)));
        assert!(matches!(Demand { computing: f64::NAN, ..good }.check(), Err(DemandError::Computing(_))));
        for bandwidth in [-1.0, f64::INFINITY] {
            assert_eq!(Demand { bandwidth, ..good }.check(), Err(DemandError::Bandwidth(bandwidth)));
        }
        let text = Demand { run_time: Span::from_secs(-2), ..good }.check().unwrap_err().to_string();
        assert_eq!(text, "a run time of -2 s is not between 0 and 9007199254.740992 s");
    }
}
