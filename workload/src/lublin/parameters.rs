//! The constants of the model, for each type of job, and how they follow the size of the machine.
//!
//! They are those of the authors' program `lublin99.c`, fitted at 128 processors. The logarithms of the
//! middle and largest size move with the machine; everything else stays.

use crate::draw::Gamma;

/// The constants of one type of job on one machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parameters {
    /// Processors of the machine.
    pub(super) processors: u32,
    /// Share of one-processor jobs.
    pub(super) serial_probability: f64,
    /// Share of all jobs whose size is rounded to a power of two.
    pub(super) power_of_two_probability: f64,
    /// Smallest logarithm (base 2) of a parallel size, ULow.
    pub(super) log_low: f64,
    /// Where the two uniform stages meet, UMed.
    pub(super) log_medium: f64,
    /// Largest logarithm, UHi.
    pub(super) log_high: f64,
    /// Probability of the lower stage, UProb.
    pub(super) low_probability: f64,
    /// Logarithm of the run time: first part of the mix.
    pub(super) run_time_first: Gamma,
    /// Second part of the mix.
    pub(super) run_time_second: Gamma,
    /// Change of the first part's share with the size.
    pub(super) mix_slope: f64,
    /// The first part's share at size 0.
    pub(super) mix_intercept: f64,
    /// Logarithm of the gap between arrivals at the peak of the day.
    pub(super) gap: Gamma,
    /// Half hour of the day of an arrival, counted from the start of the cycle.
    pub(super) daily_cycle: Gamma,
}

impl Parameters {
    /// The parameters of batch jobs on a machine of so many processors.
    pub(super) fn batch(processors: u32) -> Parameters {
        let machine = f64::from(processors).log2();
        Parameters {
            processors,
            serial_probability: 0.2927,
            power_of_two_probability: 0.6686,
            log_low: 1.2,
            log_medium: machine - 2.0,
            log_high: machine,
            low_probability: 0.875,
            run_time_first: Gamma::new(6.57, 0.823),
            run_time_second: Gamma::new(639.1, 0.0156),
            mix_slope: -0.003,
            mix_intercept: 0.6986,
            gap: Gamma::new(6.0415 * 1.0519, 0.8531),
            daily_cycle: Gamma::new(6.1271, 5.2740),
        }
        .within_machine()
    }

    /// Interactive jobs. They reach 2^5.5 of 2^7 processors in the original.
    pub(super) fn interactive(processors: u32) -> Parameters {
        let machine = f64::from(processors).log2();
        Parameters {
            processors,
            serial_probability: 0.1541,
            power_of_two_probability: 0.625,
            log_low: 1.0,
            log_medium: machine - 4.0,
            log_high: (machine - 1.5).max(machine.min(1.0)),
            low_probability: 0.705,
            run_time_first: Gamma::new(3.8351, 0.6605),
            run_time_second: Gamma::new(7.073, 0.6856),
            mix_slope: -0.0118,
            mix_intercept: 0.9156,
            gap: Gamma::new(6.5510 * 0.9797, 0.6621),
            daily_cycle: Gamma::new(8.9186, 3.6680),
        }
        .within_machine()
    }

    /// Jobs that are not told apart.
    pub(super) fn typeless(processors: u32) -> Parameters {
        let machine = f64::from(processors).log2();
        Parameters {
            processors,
            serial_probability: 0.244,
            power_of_two_probability: 0.576,
            log_low: 0.8,
            log_medium: machine - 2.5,
            log_high: machine,
            low_probability: 0.86,
            run_time_first: Gamma::new(4.2, 0.94),
            run_time_second: Gamma::new(312.0, 0.03),
            mix_slope: -0.0054,
            mix_intercept: 0.78,
            gap: Gamma::new(10.2303 * 1.0225, 0.4871),
            daily_cycle: Gamma::new(8.1737, 3.9631),
        }
        .within_machine()
    }

    /// Puts the logarithms in order on machines too small for them. The authors allow UMed from 1.5 to 3.5
    /// below UHi: the narrowest of that is tried before the lower stage collapses.
    fn within_machine(mut self) -> Parameters {
        self.log_low = self.log_low.min(self.log_high);
        if self.log_medium < self.log_low {
            self.log_medium = (self.log_high - 1.5).max(self.log_low);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_128_processors_the_constants_are_the_published_ones() {
        let stages = |p: Parameters| [p.log_low, p.log_medium, p.log_high];

        assert_eq!(stages(Parameters::batch(128)), [1.2, 5.0, 7.0]);
        assert_eq!(stages(Parameters::interactive(128)), [1.0, 3.0, 5.5]);
        assert_eq!(stages(Parameters::typeless(128)), [0.8, 4.5, 7.0]);
    }

    #[test]
    fn stages_are_in_order_on_every_machine() {
        for processors in 1..2000 {
            for p in [Parameters::batch, Parameters::interactive, Parameters::typeless] {
                let p = p(processors);
                assert!(p.log_low <= p.log_medium, "{processors}");
                assert!(p.log_medium <= p.log_high, "{processors}");
                assert!(p.log_high >= 0.0, "{processors}");
            }
        }
    }
}
