//! Which processors of a site are idle, as the page numbers them: a job gets the lowest.

use std::collections::BTreeMap;

/// Runs of idle processors: the first of each, and how many.
#[derive(Clone, Debug)]
pub(super) struct Free {
    runs: BTreeMap<u32, u32>,
}

impl Free {
    /// All of a site.
    pub(super) fn new(processors: u32) -> Free {
        Free { runs: (processors > 0).then_some((0, processors)).into_iter().collect() }
    }

    /// Takes so many, or as many as there are: runs of them from the lowest on.
    pub(super) fn take(&mut self, mut wanted: u32) -> Vec<(u32, u32)> {
        let mut taken = Vec::new();
        while wanted > 0 {
            let Some((first, count)) = self.runs.pop_first() else { break };
            let part = count.min(wanted);
            if part < count {
                self.runs.insert(first + part, count - part);
            }
            taken.push((first, part));
            wanted -= part;
        }
        taken
    }

    /// Gives a run of them back.
    pub(super) fn give(&mut self, mut first: u32, mut count: u32) {
        if let Some(after) = self.runs.remove(&(first + count)) {
            count += after;
        }
        if let Some((&before, &length)) = self.runs.range(..first).next_back()
            && before + length == first
        {
            (first, count) = (before, length + count);
        }
        self.runs.insert(first, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_are_taken_and_neighbours_become_one_again() {
        let mut free = Free::new(10);
        assert_eq!(free.take(3), [(0, 3)]);
        assert_eq!(free.take(4), [(3, 4)]);
        free.give(0, 3);
        assert_eq!(free.take(5), [(0, 3), (7, 2)]);
        assert_eq!(free.take(5), [(9, 1)], "there are no more");
        for (first, count) in [(3, 4), (7, 2), (0, 3), (9, 1)] {
            free.give(first, count);
        }
        assert_eq!(free.take(10), [(0, 10)]);
        assert_eq!(Free::new(0).take(1), []);
    }
}
