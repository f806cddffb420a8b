//! A site's clock beside true time.

use scheduler::{Span, Time};

/// Runs steadily, but not as fast as true time, and was set wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Clock {
    /// What it shows at true time zero.
    pub offset: Span,
    /// So many microseconds too fast in each second; negative if too slow. Above -1,000,000.
    pub drift_ppm: i64,
}

impl Clock {
    /// What it shows at a true time.
    pub fn shows(self, at: Time) -> Time {
        let drift = i128::from(at.as_micros()) * i128::from(self.drift_ppm) / 1_000_000;
        Time::from_micros(at.as_micros() + self.offset.as_micros() + drift as i64)
    }

    /// The first true time at which it shows this or later.
    pub fn reaches(self, shown: Time) -> Time {
        let since = i128::from(shown.as_micros()) - i128::from(self.offset.as_micros());
        let guess = since * 1_000_000 / (1_000_000 + i128::from(self.drift_ppm));
        let mut at = Time::from_micros(guess as i64 - 2);
        while self.shows(at) < shown {
            at += Span::from_micros(1);
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_a_time_when_it_reaches_it_and_not_before() {
        for drift_ppm in [-90_000, -1, 0, 7, 100_000] {
            let clock = Clock { offset: Span::from_secs(-30), drift_ppm };
            for shown in [0, 1, 12_345_678_901, -29_999_999].map(Time::from_micros) {
                let at = clock.reaches(shown);
                assert!(clock.shows(at) >= shown);
                assert!(clock.shows(at - Span::from_micros(1)) < shown, "{clock:?} {shown:?}");
            }
        }
    }
}
