//! Looks of series: which color, dash and marker a name has, in all plots of all reports and studies.
//!
//! Names that this project compares often have looks of their own, far apart where they are drawn together; others get one
//! by a hash of their name. Only where two of one plot would have the same color does one of them give way, and
//! in which plots both are decides nothing else. What a look is drawn as is in `chart`.

use std::collections::{BTreeMap, BTreeSet};

use super::chart::COLORS;

/// Looks that are given; the first of two that clash keeps its own. Those of one study of the project differ.
const KNOWN: [(&str, usize); 37] = [
    ("local", 0),
    ("st:50", 1),
    ("pool:easy", 2),
    ("steal:random", 3),
    ("steal:loaded,select=easy", 5),
    ("steal:loaded", 5),
    ("broker:mst", 6),
    ("common-pool", 6),
    ("local, local list", 8),
    ("pool:list", 4),
    ("pool:easy,via=gossip", 4),
    ("steal:random,select=easy", 11),
    ("steal:loaded,mode=push", 7),
    ("steal:loaded,select=easy, gossip 10m, margin 0s", 9),
    ("steal:loaded,mode=push,select=easy, gossip 10m, margin 0s", 10),
    ("st-greedy:50", 10),
    ("broker:mst, brokers each", 11),
    ("broker:mpl", 8),
    ("broker:mct", 10),
    ("broker:random", 3),
    ("broker:mlp", 1),
    ("broker:lbal-s", 2),
    ("broker:mlb", 4),
    ("broker:mwt", 9),
    ("broker:mwwt-s", 5),
    ("broker:genetic", 2),
    // Of searches off-line.
    ("front", 0),
    ("nsga2", 0),
    ("b1", 1),
    ("b2", 2),
    ("b3", 3),
    ("b4", 4),
    ("c1", 5),
    ("c2", 6),
    ("c3", 9),
    ("spt", 7),
    ("all runs", 1),
];

/// What a name would have if it were alone: its place among those known, if it is one, and its look.
fn preferred(name: &str) -> (usize, usize) {
    // The reference of a strategy is drawn like it; a plot has one of them, or they clash.
    let name = name.strip_prefix("ideal/").unwrap_or(name);
    let known = |name: &str| KNOWN.iter().position(|(other, _)| *other == name);
    if let Some(place) = known(name) {
        return (place, KNOWN[place].1);
    }
    // A variant has the color of its strategy, with another dash and marker, where the strategy itself is not drawn.
    let variant = name.split(", ").next().and_then(known);
    (KNOWN.len(), variant.map_or(hash(name) % COLORS, |place| KNOWN[place].1 + COLORS))
}

/// FNV-1a: the same in every version of the program, which that of the standard library is not.
fn hash(name: &str) -> usize {
    let mixed =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // The low bits of short names differ too little.
    (mixed ^ (mixed >> 16)) as usize
}

/// Looks that have been given to names, which keep them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks(BTreeMap<String, usize>);

impl Looks {
    /// Looks of the series of one plot, in their order. The colors of all differ as long as there are enough.
    ///
    /// A name that was given a look before keeps it, unless two of them clash here.
    pub(crate) fn of(&mut self, names: &[impl AsRef<str>]) -> Vec<usize> {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        let mut order: Vec<(usize, &str)> = names.iter().map(|name| (preferred(name).0, *name)).collect();
        order.sort_unstable();
        order.dedup();
        let mut here: BTreeMap<&str, usize> = BTreeMap::new();
        let mut taken: BTreeSet<usize> = BTreeSet::new();
        // Who has its look already comes before who has none.
        for is_given in [true, false] {
            for &(_, name) in order.iter().filter(|(_, name)| self.0.contains_key(*name) == is_given) {
                let look = self.0.get(name).copied().unwrap_or_else(|| preferred(name).1);
                if taken.insert(look % COLORS) {
                    here.insert(name, look);
                }
            }
        }
        for &(_, name) in &order {
            if here.contains_key(name) {
                continue;
            }
            let first = hash(name) % COLORS;
            let free = (0..COLORS).map(|step| (first + step) % COLORS).find(|color| !taken.contains(color));
            // Without a free color: the next of its own with another dash and marker.
            let look = free.unwrap_or_else(|| {
                let own = preferred(name).1 % COLORS;
                let is_used = |look: &usize| here.values().any(|other| other == look);
                (0..).map(|cycle| own + COLORS * cycle).find(|look| !is_used(look)).unwrap_or(own)
            });
            taken.insert(look % COLORS);
            here.insert(name, look);
        }
        for (name, look) in &here {
            self.0.entry(name.to_string()).or_insert(*look);
        }
        names.iter().map(|name| here[name]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(names: &[&str]) -> Vec<usize> {
        Looks::default().of(names)
    }

    #[test]
    fn a_name_has_its_look_whatever_stands_beside_it_and_in_which_order() {
        assert_eq!(looks(&["st:50", "local", "broker:mst"]), [1, 0, 6]);
        assert_eq!(looks(&["broker:mst", "steal:random", "st:50"]), [6, 3, 1]);
        assert_eq!(looks(&["ideal/broker:mst"]), [6]);
        let alone = looks(&["st:25,order=bah"]);
        assert_eq!(looks(&["st:50", "st:25,order=bah"])[1], alone[0]);
    }

    #[test]
    fn of_two_with_one_color_the_same_gives_way_in_any_order() {
        let (one, two) = ("common-pool", "broker:mst");
        let there = looks(&[one, two]);
        assert_eq!(there[1], 6, "the first of the list keeps its own");
        assert_ne!(there[0] % COLORS, 6);
        let back = looks(&[two, one]);
        assert_eq!((there[0], there[1]), (back[1], back[0]));
    }

    #[test]
    fn a_variant_has_the_color_of_its_strategy_where_that_is_not_drawn() {
        let name = "st:50, overrun kill";
        assert_eq!(looks(&[name]), [1 + COLORS]);
        let beside = looks(&["st:50", name]);
        assert_eq!(beside[0], 1);
        assert_ne!(beside[1] % COLORS, 1);
    }

    #[test]
    fn a_page_keeps_what_it_gave() {
        let mut page = Looks::default();
        let given = page.of(&["common-pool", "broker:mst"])[0];
        assert_eq!(page.of(&["common-pool", "local"]), [given, 0], "although its own color is free here");
    }

    #[test]
    fn plots_of_the_projects_studies_have_a_color_for_each_series() {
        for names in [
            &[
                "st:50",
                "pool:easy",
                "steal:random",
                "steal:loaded,select=easy",
                "steal:loaded,mode=push",
                "broker:mst",
            ][..],
            &[
                "local",
                "local, local list",
                "st:50",
                "common-pool",
                "pool:easy",
                "pool:easy,via=gossip",
                "steal:random",
                "steal:random,select=easy",
                "steal:loaded,mode=push",
                "steal:loaded,select=easy, gossip 10m, margin 0s",
                "steal:loaded,mode=push,select=easy, gossip 10m, margin 0s",
            ],
            &[
                "local",
                "st:50",
                "pool:easy",
                "pool:list",
                "steal:random",
                "steal:loaded,select=easy, gossip 10m, margin 0s",
                "broker:mst",
                "broker:mst, brokers each",
                "broker:mpl",
                "broker:mct",
            ],
            &["b1", "b2", "b3", "b4", "c1", "c2", "c3"],
        ] {
            let expected: Vec<usize> = names.iter().map(|name| preferred(name).1).collect();
            assert_eq!(looks(names), expected, "nobody gives way");
        }
    }

    #[test]
    fn more_series_than_colors_differ_in_dash_and_marker() {
        let names: Vec<String> = (0..30).map(|number| format!("series {number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let looks = looks(&names);
        let colors: BTreeSet<usize> = looks.iter().map(|look| look % COLORS).collect();
        let all: BTreeSet<usize> = looks.iter().copied().collect();
        assert_eq!((colors.len(), all.len()), (COLORS, 30));
    }
}
