//! The sites of two runs, matched by name: a number is a place in a list, and lists differ.

use std::collections::BTreeMap;

use outputs::{JobRow, Manifest};
use scheduler::SiteId;
use serde::Serialize;

/// All sites of either run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sites {
    /// Names of sites that only the first run has.
    pub only_left: Vec<String>,
    /// Names of sites that only the second run has.
    pub only_right: Vec<String>,
    /// Sites with other processors: name, in the first run, in the second.
    pub resized: Vec<(String, u32, u32)>,
    /// Whether both runs have the same names in the same order, and so the same numbers.
    pub same_numbers: bool,
    /// Those of the first run, then those of the second only: the common numbers.
    #[serde(skip)]
    names: Vec<String>,
    /// Common number by number in the second run.
    #[serde(skip)]
    of_right: BTreeMap<SiteId, SiteId>,
}

impl Sites {
    /// Of names and processors by their numbers.
    pub fn of(left: &[(String, u32)], right: &[(String, u32)]) -> Sites {
        let mut sites = Sites {
            same_numbers: left.iter().map(|(name, _)| name).eq(right.iter().map(|(name, _)| name)),
            names: left.iter().map(|(name, _)| name.clone()).collect(),
            ..Sites::default()
        };
        let find = |list: &[(String, u32)], name: &str| list.iter().position(|(other, _)| other == name);
        for (place, (name, processors)) in right.iter().enumerate() {
            let common = match find(left, name) {
                Some(common) => {
                    if left[common].1 != *processors {
                        sites.resized.push((name.clone(), left[common].1, *processors));
                    }
                    common
                }
                None => {
                    sites.only_right.push(name.clone());
                    sites.names.push(name.clone());
                    sites.names.len() - 1
                }
            };
            sites.of_right.insert(SiteId::from_index(place), SiteId::from_index(common));
        }
        let missing = left.iter().filter(|(name, _)| find(right, name).is_none());
        sites.only_left = missing.map(|(name, _)| name.clone()).collect();
        sites
    }

    /// Of two manifests.
    pub fn of_manifests(left: &Manifest, right: &Manifest) -> Sites {
        let list = |manifest: &Manifest| -> Vec<(String, u32)> {
            manifest.sites.iter().map(|site| (site.name.clone(), site.processors)).collect()
        };
        Sites::of(&list(left), &list(right))
    }

    /// Whether both runs have the same sites, in whichever order.
    pub fn same(&self) -> bool {
        self.only_left.is_empty() && self.only_right.is_empty() && self.resized.is_empty()
    }

    /// A row of the second run with the common number of its site.
    pub fn common(&self, row: JobRow) -> JobRow {
        let site = row.site.map(|site| self.of_right.get(&site).copied().unwrap_or(site));
        JobRow { site, ..row }
    }

    /// The name of a common number.
    pub fn name(&self, site: SiteId) -> &str {
        self.names.get(site.index()).map_or("unknown", String::as_str)
    }

    /// What is not in both, in words.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (which, names) in [("first", &self.only_left), ("second", &self.only_right)] {
            if !names.is_empty() {
                lines.push(format!("sites       only in the {which}: {}", names.join(", ")));
            }
        }
        let resized: Vec<String> =
            self.resized.iter().map(|(name, left, right)| format!("{name} {left} | {right}")).collect();
        if !resized.is_empty() {
            lines.push(format!("sites       with other processors: {}", resized.join(", ")));
        }
        if self.same() && !self.same_numbers {
            lines.push("sites       the same in another order".to_string());
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(sites: &[(&str, u32)]) -> Vec<(String, u32)> {
        sites.iter().map(|(name, processors)| (name.to_string(), *processors)).collect()
    }

    #[test]
    fn sites_are_matched_by_name_and_what_is_not_in_both_is_said() {
        let sites = Sites::of(&list(&[("a", 2), ("b", 4), ("c", 8)]), &list(&[("c", 8), ("a", 3), ("d", 1)]));
        assert!(!sites.same() && !sites.same_numbers);
        assert_eq!((&sites.only_left, &sites.only_right), (&vec!["b".to_string()], &vec!["d".to_string()]));
        let common = |site: u32| sites.of_right[&SiteId(site)];
        assert_eq!([1, 2, 3].map(|site| sites.name(common(site)).to_string()), ["c", "a", "d"]);
        assert_eq!(
            sites.lines(),
            [
                "sites       only in the first: b",
                "sites       only in the second: d",
                "sites       with other processors: a 2 | 3"
            ]
        );
    }
}
