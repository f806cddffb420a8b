//! A model as people write it: TOML with the names of sites, times with units, other files.
//!
//! The same keys stand in the `[network]` part of an experiment and in a file of their own. [`Written::resolve`]
//! checks them and says what they mean. What is wrong is reported with its place, what was expected, and what to
//! write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use scheduler::{SiteId, Span, Time, spelling};
use serde::{Deserialize, Serialize};

use crate::jitter::Jitter;
use crate::matrix::{self, Unit};
use crate::model::{Base, Between, Cut, Model, Probability, Properties, Rule, Sites};
use crate::place::{FIBRE_KM_PER_S, Place};
use crate::preset::{PRESETS, Preset};
use crate::quantity::{rate, span};

/// Everything that can be said of links. Every key is optional; nothing said means free messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "the section [network]")]
pub struct Written {
    /// A named network or a file with these keys. Keys beside it win; links and partitions are added.
    pub model: Option<String>,
    /// One-way delay of every link.
    pub delay: Option<String>,
    /// Or a delay for each directed link: one row per sending site, in the order of the grid.
    pub matrix: Option<Vec<Vec<String>>>,
    /// Or the same in a file.
    pub matrix_file: Option<PathBuf>,
    /// Unit of bare numbers in that file.
    pub matrix_unit: Option<String>,
    /// Whether the values of the matrix or its file are round trips.
    pub round_trip: Option<bool>,
    /// Or by distance.
    pub coordinates: Option<WrittenCoordinates>,
    /// Random part of delays.
    pub jitter: Option<String>,
    /// Whether messages may overtake each other.
    pub reorder: Option<bool>,
    /// Probability that a message is lost.
    pub loss: Option<f64>,
    /// Probability that a message arrives twice.
    pub duplication: Option<f64>,
    /// Payload per second.
    pub bandwidth: Option<String>,
    /// What some links do instead, or from some time on.
    pub links: Option<Vec<WrittenLinks>>,
    /// Links that are cut for some time.
    pub partitions: Option<Vec<WrittenPartition>>,
}

/// `coordinates`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "coordinates, as in { places = [\"paris\", \"tokyo\"] }")]
pub struct WrittenCoordinates {
    /// Latitude and longitude of each site in degrees, in the order of the grid.
    pub degrees: Option<Vec<[f64; 2]>>,
    /// Or x and y of each site in kilometres.
    pub kilometres: Option<Vec<[f64; 2]>>,
    /// In kilometres per second.
    pub speed: Option<f64>,
    /// What comes on top of the distance.
    pub constant: Option<String>,
}

/// One entry of `links`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "links, as in { between = [\"a\", \"b\"], delay = \"50ms\" }"
)]
pub struct WrittenLinks {
    /// Sending sites by name; all if missing.
    pub from: Option<Vec<String>>,
    /// Receiving sites by name; all if missing.
    pub to: Option<Vec<String>>,
    /// The same for the way back.
    pub both: Option<bool>,
    /// From this time of the trace on; from the beginning if missing.
    pub at: Option<String>,
    /// One-way delay.
    pub delay: Option<String>,
    /// Random part of delays.
    pub jitter: Option<String>,
    /// Whether messages may overtake each other.
    pub reorder: Option<bool>,
    /// Probability that a message is lost.
    pub loss: Option<f64>,
    /// Probability that a message arrives twice.
    pub duplication: Option<f64>,
    /// Payload per second, or `unlimited`.
    pub bandwidth: Option<String>,
}

/// One entry of `partitions`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "a partition, as in { between = [\"a\", \"b\"], at = \"1h\", until = \"2h\" }"
)]
pub struct WrittenPartition {
    /// Groups of sites that do not reach each other. One alone is cut off from all others.
    pub groups: Option<Vec<Vec<String>>>,
    /// Or one way: sending sites; all if missing.
    pub from: Option<Vec<String>>,
    /// One way: receiving sites; all if missing.
    pub to: Option<Vec<String>>,
    /// Time of the trace at which it begins.
    pub at: Option<String>,
    /// Time of the trace at which it ends.
    pub until: Option<String>,
}

/// Why what was written is no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {reason}")]
pub struct ModelError {
    /// The key, with the file if it is in one of its own.
    pub place: String,
    /// What was expected and what to write.
    pub reason: String,
}

/// Reads the text of a file.
pub type Read<'a> = &'a dyn Fn(&Path) -> Result<String, String>;

/// The error of a key.
fn wrong(place: impl Into<String>) -> impl FnOnce(String) -> ModelError {
    let place = place.into();
    move |reason| ModelError { place, reason }
}

impl Written {
    /// Makes names of files relative to a folder, unless they are absolute or names of networks.
    pub fn resolve_paths(&mut self, folder: &Path) {
        if let Some(model) = &mut self.model
            && Preset::named(model).is_none()
        {
            *model = folder.join(&*model).to_string_lossy().into_owned();
        }
        if let Some(file) = &mut self.matrix_file {
            *file = folder.join(&*file);
        }
    }

    /// Whether base delays are given, besides by `model`.
    pub fn has_base(&self) -> bool {
        self.delay.is_some()
            || self.matrix.is_some()
            || self.matrix_file.is_some()
            || self.coordinates.is_some()
    }

    /// Forgets the base delays, for one that replaces them.
    pub fn clear_base(&mut self) {
        (self.delay, self.matrix, self.matrix_file, self.coordinates) = (None, None, None, None);
        (self.matrix_unit, self.round_trip) = (None, None);
    }

    /// What was written means, for sites of these names in the order of the grid. Files are read by `read`.
    ///
    /// # Errors
    /// The first key that means nothing or contradicts another.
    pub fn resolve(&self, sites: &[&str], read: Read<'_>) -> Result<Model, ModelError> {
        let model = match &self.model {
            None => Model::ZERO,
            Some(name) => named(name, sites, read)?,
        };
        Resolver { sites, read, place: "" }.model(self, model)
    }
}

/// A named network or what is in a file.
fn named(name: &str, sites: &[&str], read: Read<'_>) -> Result<Model, ModelError> {
    if let Some(preset) = Preset::named(name) {
        return Ok(Model { base: preset.base(sites.len()), ..Model::ZERO });
    }
    let names = PRESETS.map(|preset| preset.name).join(", ");
    let text = read(Path::new(name)).map_err(|error| {
        let hint = spelling::hint(name, PRESETS.map(|preset| preset.name));
        wrong("model")(format!(
            "{name:?}{hint} is neither one of {names} nor a file that can be read: {error}"
        ))
    })?;
    let place = format!("{name}: ");
    let mut written: Written = toml::from_str(&text)
        .map_err(|error| wrong(name)(format!("\n{}", spelling::of_file(&error.to_string()))))?;
    written.resolve_paths(Path::new(name).parent().unwrap_or(Path::new("")));
    let base = match written.model.as_deref().map(|inner| (inner, Preset::named(inner))) {
        None => Model::ZERO,
        Some((_, Some(preset))) => Model { base: preset.base(sites.len()), ..Model::ZERO },
        Some((inner, None)) => {
            let reason = format!("{inner:?} is none of {names}; a file may start from one of these only");
            return Err(wrong(format!("{place}model"))(reason));
        }
    };
    Resolver { sites, read, place: &place }.model(&written, base)
}

struct Resolver<'a> {
    sites: &'a [&'a str],
    read: Read<'a>,
    /// What stands in front of every key in errors.
    place: &'a str,
}

impl Resolver<'_> {
    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.place)
    }

    fn parsed<T>(
        &self,
        key: &str,
        text: &Option<String>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ModelError> {
        text.as_deref().map(|text| parse(text).map_err(wrong(self.key(key)))).transpose()
    }

    /// Lays what was written over a model.
    fn model(&self, written: &Written, under: Model) -> Result<Model, ModelError> {
        let mut model = under;
        if let Some(base) = self.base(written)? {
            model.base = base;
        }
        let Properties { jitter, reorder, loss, duplication, bandwidth } = model.properties;
        model.properties = Properties {
            jitter: self.parsed("jitter", &written.jitter, str::parse)?.unwrap_or(jitter),
            reorder: written.reorder.unwrap_or(reorder),
            loss: self.probability("loss", written.loss)?.unwrap_or(loss),
            duplication: self.probability("duplication", written.duplication)?.unwrap_or(duplication),
            bandwidth: self.parsed("bandwidth", &written.bandwidth, limit)?.unwrap_or(bandwidth),
        };
        for (index, links) in written.links.iter().flatten().enumerate() {
            model.rules.push(self.rule(&format!("links[{}].", index + 1), links)?);
        }
        // Stable: what is written later wins among rules of one time.
        model.rules.sort_by_key(|rule| rule.at);
        for (index, partition) in written.partitions.iter().flatten().enumerate() {
            model.cuts.push(self.cut(&format!("partitions[{}]", index + 1), partition)?);
        }
        Ok(model)
    }

    fn base(&self, written: &Written) -> Result<Option<Base>, ModelError> {
        let given = [
            ("delay", written.delay.is_some()),
            ("matrix", written.matrix.is_some()),
            ("matrix_file", written.matrix_file.is_some()),
            ("coordinates", written.coordinates.is_some()),
        ];
        let given: Vec<&str> = given.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
        if let [first, second, ..] = given[..] {
            return Err(wrong(self.key(first))(format!("{first} and {second} are both given; keep one")));
        }
        let (delay, file) = (&written.delay, &written.matrix_file);
        let round_trip = written.round_trip.unwrap_or(false);
        if round_trip && file.is_none() && written.matrix.is_none() {
            return Err(wrong(self.key("round_trip"))("there is no matrix; leave it out".into()));
        }
        if let Some(delay) = self.parsed("delay", delay, span)? {
            return Ok(Some(Base::Constant(delay)));
        }
        if let Some(rows) = &written.matrix {
            return self.matrix(rows, round_trip).map_err(wrong(self.key("matrix"))).map(Some);
        }
        if let Some(path) = file {
            let unit = Unit::named(written.matrix_unit.as_deref().unwrap_or("ms"), round_trip)
                .map_err(wrong(self.key("matrix_unit")))?;
            let shown = path.display();
            let rows = (self.read)(path).map_err(|error| format!("{shown} cannot be read: {error}"));
            let rows = rows.and_then(|text| {
                matrix::parse(&text, unit, self.sites).map_err(|reason| format!("{shown}: {reason}"))
            });
            return rows.map_err(wrong(self.key("matrix_file"))).map(|rows| Some(Base::Matrix(rows)));
        }
        match &written.coordinates {
            Some(coordinates) => self.coordinates(coordinates).map(Some),
            None => Ok(None),
        }
    }

    fn matrix(&self, rows: &[Vec<String>], round_trip: bool) -> Result<Base, String> {
        let sites = self.sites.len();
        if rows.len() != sites || rows.iter().any(|row| row.len() != sites) {
            return Err(format!(
                "the matrix must have {sites} rows of {sites} delays, one per site, and one per broker that is at no site"
            ));
        }
        let one_way = |span: Span| match round_trip {
            true => Span::from_micros(span.as_micros() / 2),
            false => span,
        };
        let parse = |row: &Vec<String>| row.iter().map(|text| span(text).map(one_way)).collect();
        let rows: Vec<Vec<Span>> = rows.iter().map(parse).collect::<Result<_, _>>()?;
        if let Some(site) = (0..sites).find(|&site| rows[site][site] != Span::ZERO) {
            return Err(format!("row {0} has a delay from site {0} to itself; write \"0s\" there", site + 1));
        }
        Ok(Base::Matrix(rows))
    }

    fn coordinates(&self, written: &WrittenCoordinates) -> Result<Base, ModelError> {
        let key = |key: &str| self.key(&format!("coordinates.{key}"));
        type Make = fn(f64, f64) -> Option<Place>;
        let (name, points, make, off): (_, _, Make, _) = match (&written.degrees, &written.kilometres) {
            (Some(points), None) => {
                ("degrees", points, Place::earth, "latitude from -90 to 90, longitude from -180 to 180")
            }
            (None, Some(points)) => ("kilometres", points, Place::plane, "numbers up to a billion"),
            _ => {
                let reason = "write either degrees = [[latitude, longitude], …] or kilometres = [[x, y], …]";
                return Err(wrong(self.key("coordinates"))(reason.to_string()));
            }
        };
        if points.len() != self.sites.len() {
            let reason = format!("there are {} places for {} sites", points.len(), self.sites.len());
            return Err(wrong(key(name))(reason));
        }
        let place = |[a, b]: &[f64; 2]| {
            make(*a, *b).ok_or_else(|| wrong(key(name))(format!("[{a}, {b}] is nowhere; write {off}")))
        };
        let speed = written.speed.unwrap_or(FIBRE_KM_PER_S);
        if !(0.001..=1e9).contains(&speed) {
            let reason = format!("{speed} km/s is no speed; light in fibre has {FIBRE_KM_PER_S}");
            return Err(wrong(key("speed"))(reason));
        }
        Ok(Base::Places {
            of: points.iter().map(place).collect::<Result<_, _>>()?,
            speed: (speed * 1000.0).round() as u64,
            constant: self.parsed("coordinates.constant", &written.constant, span)?.unwrap_or(Span::ZERO),
        })
    }

    fn probability(&self, key: &str, value: Option<f64>) -> Result<Option<Probability>, ModelError> {
        let parse = |value| {
            Probability::new(value).ok_or_else(|| {
                wrong(self.key(key))(format!(
                    "{value} is not a probability; write a number from 0 to below 1"
                ))
            })
        };
        value.map(parse).transpose()
    }

    fn rule(&self, place: &str, written: &WrittenLinks) -> Result<Rule, ModelError> {
        let key = |name: &str| format!("{place}{name}");
        let rule = Rule {
            at: self.parsed(&key("at"), &written.at, time)?,
            from: self.named_sites(&key("from"), &written.from)?,
            to: self.named_sites(&key("to"), &written.to)?,
            both: written.both.unwrap_or(false),
            delay: self.parsed(&key("delay"), &written.delay, span)?,
            jitter: self.parsed(&key("jitter"), &written.jitter, str::parse::<Jitter>)?,
            reorder: written.reorder,
            loss: self.probability(&key("loss"), written.loss)?,
            duplication: self.probability(&key("duplication"), written.duplication)?,
            bandwidth: self.parsed(&key("bandwidth"), &written.bandwidth, limit)?,
        };
        let Rule { at, from, to, both, .. } = &rule;
        let nothing = Rule { at: *at, from: from.clone(), to: to.clone(), both: *both, ..Rule::default() };
        if rule == nothing {
            let reason = "nothing is said of these links; write a delay, jitter, reorder, loss, duplication or \
                          bandwidth";
            return Err(wrong(self.key(place.trim_end_matches('.')))(reason.to_string()));
        }
        Ok(rule)
    }

    fn cut(&self, place: &str, written: &WrittenPartition) -> Result<Cut, ModelError> {
        let key = |name: &str| format!("{place}.{name}");
        let (Some(at), Some(until)) =
            (self.parsed(&key("at"), &written.at, time)?, self.parsed(&key("until"), &written.until, time)?)
        else {
            let reason = "a partition begins and ends; write at = \"1h\" and until = \"2h\"";
            return Err(wrong(self.key(place))(reason.to_string()));
        };
        if until <= at {
            let reason = format!("{until} s is not after the beginning at {at} s");
            return Err(wrong(self.key(&key("until")))(reason));
        }
        let one_way = written.from.is_some() || written.to.is_some();
        let between = match &written.groups {
            Some(_) if one_way => {
                let reason = "groups are cut both ways, from and to one way; keep one of the two";
                return Err(wrong(self.key(place))(reason.to_string()));
            }
            None if !one_way => {
                let reason = "write groups = [[\"a\"], [\"b\", \"c\"]], or from and to for one way";
                return Err(wrong(self.key(place))(reason.to_string()));
            }
            None => Between::OneWay {
                from: self.named_sites(&key("from"), &written.from)?,
                to: self.named_sites(&key("to"), &written.to)?,
            },
            Some(groups) => Between::Groups(self.groups(&key("groups"), groups)?),
        };
        Ok(Cut { at, until, between })
    }

    fn groups(&self, key: &str, written: &[Vec<String>]) -> Result<Vec<BTreeSet<SiteId>>, ModelError> {
        let mut groups = Vec::new();
        let mut all = BTreeSet::new();
        for names in written {
            let group: BTreeSet<SiteId> = self.sites_of(key, names)?;
            if let Some(site) = group.intersection(&all).next() {
                let name = self.sites[site.index()];
                return Err(wrong(self.key(key))(format!("site {name} is in two groups; keep one")));
            }
            all.extend(group.iter().copied());
            groups.push(group);
        }
        if groups.len() == 1 {
            let others = (0..self.sites.len()).map(SiteId::from_index).filter(|site| !all.contains(site));
            groups.push(others.collect());
        }
        if groups.iter().filter(|group| !group.is_empty()).count() < 2 {
            let reason = "there is nobody to be cut off from; name some of the sites".to_string();
            return Err(wrong(self.key(key))(reason));
        }
        Ok(groups)
    }

    fn named_sites(&self, key: &str, names: &Option<Vec<String>>) -> Result<Sites, ModelError> {
        names.as_ref().map(|names| self.sites_of(key, names)).transpose()
    }

    fn sites_of(&self, key: &str, names: &[String]) -> Result<BTreeSet<SiteId>, ModelError> {
        let of_name = |name: &String| match self.sites.iter().position(|site| site == name) {
            Some(index) => Ok(SiteId::from_index(index)),
            None => {
                let some = self.sites.iter().take(8).copied().collect::<Vec<_>>().join(", ");
                let more = if self.sites.len() > 8 { ", …" } else { "" };
                let reason = format!("{name:?} is not a site of the grid, which has {some}{more}");
                Err(wrong(self.key(key))(reason))
            }
        };
        names.iter().map(of_name).collect()
    }
}

fn time(text: &str) -> Result<Time, String> {
    span(text).map(|span| Time::ZERO + span)
}

/// A rate, or none.
fn limit(text: &str) -> Result<Option<u64>, String> {
    if text == "unlimited" { Ok(None) } else { rate(text).map(Some) }
}
