//! Series with two labels of closed sets, found without hashing the values: every event changes some of them.

/// A series for each pair of values.
pub(super) struct Cells<C, const A: usize, const B: usize> {
    first: [&'static str; A],
    second: [&'static str; B],
    series: [[C; B]; A],
}

impl<C, const A: usize, const B: usize> Cells<C, A, B> {
    /// Of these values, each found once.
    pub(super) fn new(
        first: [&'static str; A],
        second: [&'static str; B],
        find: impl Fn(&[&str]) -> C,
    ) -> Cells<C, A, B> {
        let series = first.map(|a| second.map(|b| find(&[a, b])));
        Cells { first, second, series }
    }

    /// The series of these values, which are in the sets.
    pub(super) fn get(&self, first: &str, second: &str) -> &C {
        self.at(place(&self.first, first), second)
    }

    /// The same by the place of the first value.
    pub(super) fn at(&self, first: usize, second: &str) -> &C {
        &self.series[first][place(&self.second, second)]
    }
}

/// Sets are small.
fn place(values: &[&'static str], value: &str) -> usize {
    values.iter().position(|other| *other == value).expect("the value is in its closed set")
}
