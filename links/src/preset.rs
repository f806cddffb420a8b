//! Named networks with published figures.
//!
//! All figures are round trips between virtual machines of one provider, averages of 30 days (28 June to 27 July
//! 2025), in milliseconds, as published by IBM Cloud: *Network latency dashboards* of the documentation of Virtual
//! Private Cloud, <https://cloud.ibm.com/docs/vpc?topic=vpc-network-latency-dashboard>, source in
//! <https://github.com/ibm-cloud-docs/vpc>, `_include-segments/network-latency.md`. Half a round trip is taken for
//! the one-way delay. Of the two directions of a pair, which differ by a few milliseconds, the one of the city that
//! comes first is used for both. The source has no figures for jitter, loss or bandwidth; add your own.
//!
//! Sites are assigned to places in order, the first site to the first place, over and over again. Two sites in one
//! place are as far from each other as the table beside each network says.

use scheduler::Span;

use crate::model::Base;

/// A named network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// What it is called.
    pub name: &'static str,
    /// What network it stands for, in words for a reader.
    pub about: &'static str,
    /// Places in the order in which sites get them.
    pub places: &'static [&'static str],
    /// Round trip of two sites in one place, in microseconds.
    within_us: i64,
    /// Round trips between places, in microseconds: the row of each place from the place after it on.
    between_us: &'static [&'static [i64]],
}

/// Round trip within one data centre: the diagonal of the Dallas table, 0.1 ms.
const WITHIN_CENTRE_US: i64 = 100;
/// Round trip between two data centres of one city: the median of the three of Dallas below.
const WITHIN_CITY_US: i64 = 1_960;

/// All of them, near ones first.
pub const PRESETS: [Preset; 4] = [
    Preset {
        name: "lan",
        about: "one data centre: 0.05 ms",
        places: &["data centre"],
        within_us: WITHIN_CENTRE_US,
        between_us: &[&[]],
    },
    Preset {
        name: "metro",
        about: "three data centres of one city: 0.96 to 1.03 ms, 0.05 ms within each",
        places: &["Dallas 10", "Dallas 12", "Dallas 13"],
        within_us: WITHIN_CENTRE_US,
        between_us: &[&[1_910, 2_060], &[1_960], &[]],
    },
    Preset {
        name: "continental",
        about: "four cities of North America: 5 to 21 ms, 0.98 ms within each",
        places: &["Dallas", "Toronto", "Washington DC", "Montreal"],
        within_us: WITHIN_CITY_US,
        between_us: &[&[34_000, 31_000, 42_000], &[20_000, 10_000], &[16_000], &[]],
    },
    Preset {
        name: "world",
        about: "eleven cities of five continents: 4.5 to 163 ms, 0.98 ms within each",
        places: &[
            "Dallas",
            "Frankfurt",
            "Tokyo",
            "Sao Paulo",
            "Sydney",
            "London",
            "Washington DC",
            "Madrid",
            "Osaka",
            "Toronto",
            "Montreal",
        ],
        within_us: WITHIN_CITY_US,
        between_us: &[
            // Frankfurt, Tokyo, Sao Paulo, Sydney, London, Washington DC, Madrid, Osaka, Toronto, Montreal
            &[123_000, 142_000, 143_000, 184_000, 112_000, 31_000, 115_000, 150_000, 34_000, 42_000],
            &[230_000, 197_000, 249_000, 13_000, 85_000, 29_000, 232_000, 92_000, 89_000],
            &[283_000, 117_000, 241_000, 154_000, 257_000, 9_000, 149_000, 158_000],
            &[326_000, 186_000, 117_000, 200_000, 290_000, 130_000, 125_000],
            &[260_000, 214_000, 275_000, 124_000, 215_000, 222_000],
            &[76_000, 27_000, 244_000, 82_000, 79_000],
            &[85_000, 162_000, 19_000, 16_000],
            &[258_000, 101_000, 100_000],
            &[156_000, 164_000],
            &[10_000],
            &[],
        ],
    },
];

impl Preset {
    /// The network of this name.
    pub fn named(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// One-way delays for so many sites.
    pub fn base(&self, sites: usize) -> Base {
        let places = self.places.len();
        let round_trip = |a: usize, b: usize| match (a.min(b), a.max(b)) {
            (a, b) if a == b => self.within_us,
            (a, b) => self.between_us[a][b - a - 1],
        };
        let row = |a| (0..places).map(|b| Span::from_micros(round_trip(a, b) / 2)).collect();
        Base::Regions {
            of: (0..sites).map(|site| site % places).collect(),
            rows: (0..places).map(row).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use scheduler::SiteId;

    use super::*;

    #[test]
    fn every_pair_of_places_has_a_figure_and_the_words_say_the_range() {
        for preset in &PRESETS {
            let places = preset.places.len();
            assert_eq!(preset.between_us.len(), places, "{}", preset.name);
            for (place, row) in preset.between_us.iter().enumerate() {
                assert_eq!(row.len(), places - 1 - place, "{} row {place}", preset.name);
            }
            let all = || preset.between_us.iter().flat_map(|row| row.iter());
            let (Some(least), Some(most)) = (all().min(), all().max()) else { continue };
            let ms = |round_trip_us: i64| (round_trip_us as f64 / 20.0).round() / 100.0;
            let range = format!("{} to {} ms", ms(*least), ms(*most));
            assert!(preset.about.contains(&range), "{range}: {}", preset.about);
        }
    }

    #[test]
    fn sites_are_assigned_to_places_in_order_and_again() {
        let world = Preset::named("world").unwrap().base(13);
        let delay = |from, to| world.between(SiteId(from), SiteId(to)).as_micros();
        assert_eq!(delay(1, 2), 61_500, "Dallas to Frankfurt");
        assert_eq!(delay(2, 1), 61_500);
        assert_eq!(delay(4, 5), 163_000, "Sao Paulo to Sydney");
        assert_eq!(delay(1, 12), 980, "both in Dallas");
        assert_eq!(delay(12, 2), 61_500, "the twelfth is in Dallas again");
        assert_eq!(delay(1, 1), 0);
        assert_eq!(Preset::named("moon"), None);
    }
}
