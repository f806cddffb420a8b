//! Which processors of a site are idle, as the page numbers them: a job gets the lowest, or where jobs share nodes the lowest places of
//! its nodes.

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

/// Places for tasks on nodes that jobs share.
#[derive(Clone, Debug)]
pub(super) struct Places {
    /// The first of each node, and where those of the last one end.
    first: Vec<u32>,
    busy: Vec<bool>,
}

impl Places {
    /// Of nodes that take so many tasks each.
    pub(super) fn new(tasks: impl Iterator<Item = u32>) -> Places {
        let mut first = vec![0];
        for tasks in tasks {
            first.push(first[first.len() - 1] + tasks);
        }
        let busy = vec![false; first[first.len() - 1] as usize];
        Places { first, busy }
    }

    /// Takes the lowest of a node, if it has one left.
    pub(super) fn take(&mut self, node: u32) -> Option<u32> {
        let node = node as usize;
        let mut places = *self.first.get(node)?..*self.first.get(node + 1)?;
        let place = places.find(|&place| !self.busy[place as usize])?;
        self.busy[place as usize] = true;
        Some(place)
    }

    /// Gives one back.
    pub(super) fn give(&mut self, place: u32) {
        self.busy[place as usize] = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_gives_its_lowest_place() {
        let mut places = Places::new([2, 1].into_iter());
        assert_eq!(
            [1, 0, 0, 0, 1, 2].map(|node| places.take(node)),
            [Some(2), Some(0), Some(1), None, None, None]
        );
        places.give(0);
        assert_eq!(places.take(0), Some(0));
    }

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
