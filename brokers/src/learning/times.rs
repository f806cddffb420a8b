//! The parts of the time that a job takes, and that they are all of it.

use scheduler::Span;
use serde::{Deserialize, Serialize};

/// What the time from scheduling to the end of a job went into (Costa 2007, §5.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// te: from just before the program begins to just after it ends, as measured where it runs.
    pub execution: Span,
    /// tf: in the queue of the site.
    pub queue: Span,
    /// ttr: transfer of input and output.
    pub transfer: Span,
    /// What else brokers and sites do: submission, updates of states.
    pub overhead: Span,
}

/// Why parts are not the parts of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// A part is negative.
    #[error("the {0} of a job is negative; take times of one clock only")]
    Negative(&'static str),
    /// Parts that are more than the whole.
    #[error("execution, queue and transfer take {parts} s of {total} s; take times of one clock only")]
    Beyond {
        /// Their sum.
        parts: Span,
        /// tto.
        total: Span,
    },
}

impl Times {
    /// The parts of tto; what is left is overhead (formula 5.1).
    ///
    /// # Errors
    /// If a part is negative, or they are more than the whole.
    pub fn of_total(total: Span, execution: Span, queue: Span, transfer: Span) -> Result<Times, TimesError> {
        for (part, name) in [(execution, "execution"), (queue, "queue time"), (transfer, "transfer")] {
            if part < Span::ZERO {
                return Err(TimesError::Negative(name));
            }
        }
        let parts =
            execution.as_micros().saturating_add(queue.as_micros()).saturating_add(transfer.as_micros());
        match total.as_micros().checked_sub(parts) {
            Some(overhead) if overhead >= 0 => {
                Ok(Times { execution, queue, transfer, overhead: Span::from_micros(overhead) })
            }
            _ => Err(TimesError::Beyond { parts: Span::from_micros(parts), total }),
        }
    }

    /// The parts of tto where clocks may disagree: what the site measured goes before what was in between, and no part is
    /// more than what is left.
    pub fn fitted(total: Span, execution: Span, queue: Span, transfer: Span) -> Times {
        let mut left = total.max(Span::ZERO);
        let [execution, queue, transfer] = [execution, queue, transfer].map(|part| {
            let part = part.max(Span::ZERO).min(left);
            left -= part;
            part
        });
        Times { execution, queue, transfer, overhead: left }
    }

    /// tto: all of it.
    pub fn total(&self) -> Span {
        [self.execution, self.queue, self.transfer, self.overhead]
            .into_iter()
            .fold(Span::ZERO, |sum, part| Span::from_micros(sum.as_micros().saturating_add(part.as_micros())))
    }

    /// tto - te: what is called volatile.
    pub fn volatile(&self) -> Span {
        self.total() - self.execution
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_total_is_the_sum_of_its_parts(total in 0_i64..1000, te in -9_i64..400, tf in -9_i64..400, ttr in -9_i64..400) {
            let [whole, execution, queue, transfer] = [total, te, tf, ttr].map(Span::from_secs);
            let times = Times::of_total(whole, execution, queue, transfer);
            let fits = te.min(tf).min(ttr) >= 0 && te + tf + ttr <= total;
            prop_assert_eq!(times.is_ok(), fits);
            let fitted = Times::fitted(whole, execution, queue, transfer);
            prop_assert_eq!(fitted.total(), whole);
            if let Ok(times) = times {
                prop_assert_eq!(fitted, times);
                prop_assert_eq!(times.total(), whole);
                prop_assert_eq!(times.execution + times.volatile(), whole);
                prop_assert!(times.overhead >= Span::ZERO);
            }
        }
    }

    #[test]
    fn what_does_not_add_up_is_refused_with_what_to_do() {
        let second = Span::from_secs(1);
        let beyond = Times::of_total(second, second, second, Span::ZERO).unwrap_err();
        assert!(beyond.to_string().contains("2 s of 1 s"), "{beyond}");
        assert!(Times::of_total(second, Span::MAX, Span::MAX, Span::MAX).is_err());
        let negative = Times::of_total(second, Span::ZERO, -second, Span::ZERO).unwrap_err();
        assert!(negative.to_string().contains("queue time"), "{negative}");
    }
}
