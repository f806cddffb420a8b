//! Tables that others printed, beside which a page puts its own: a file of numbers with their source.
//!
//! ```toml
//! source = "who printed them"
//! [strategies]                    # what a column is called, and the strategy that it is
//! MPL = "ideal/broker:mpl"
//! MPL_a = "ideal/broker:mpl,a=0.5"
//! [before]                        # of improvements: what a strategy improves on
//! MPL_a = "MPL"
//! [[tables]]
//! id = "7"
//! columns = ["MPL_a", "MPL"]
//! rows = [{ name = "wait", data = ["grid3"], metrics = ["wait_mean_s"], values = [0, 5] }]
//! ```
//!
//! A row is about the metrics and data that it names, with equal weights. What its numbers are is said by `what`; `before` of a
//! row is what all of its columns improve on.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A file of printed tables.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Published {
    /// Who printed them.
    #[serde(rename = "source")]
    pub(super) _source: String,
    /// Strategies by what columns are called.
    pub(super) strategies: BTreeMap<String, String>,
    /// What a column improves on.
    #[serde(default)]
    pub(super) before: BTreeMap<String, String>,
    pub(super) tables: Vec<PrintedTable>,
}

/// A printed table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrintedTable {
    pub(super) id: String,
    pub(super) columns: Vec<String>,
    /// Columns of other tables among which the best is, too.
    #[serde(default)]
    pub(super) reference: Vec<String>,
    pub(super) rows: Vec<PrintedRow>,
}

/// A row of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrintedRow {
    pub(super) name: String,
    #[serde(default)]
    pub(super) what: What,
    /// Names of the data of the page.
    pub(super) data: Vec<String>,
    pub(super) metrics: Vec<String>,
    /// The strategies, where columns have other names than these.
    pub(super) strategies: Option<Vec<String>>,
    pub(super) values: Vec<f64>,
    /// What all columns improve on, where a table has a reference for each row.
    before: Option<String>,
}

/// What numbers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum What {
    /// The mean degradation, in percent.
    #[default]
    Degradation,
    /// Its rank among the strategies of the row.
    Rank,
    /// The mean improvement on what is before, in percent.
    Improvement,
    /// Its rank: the greatest is first.
    ImprovementRank,
    /// The mean of one metric as it is.
    Mean,
}

impl What {
    /// Whether numbers are ranks.
    pub(super) fn is_rank(self) -> bool {
        matches!(self, What::Rank | What::ImprovementRank)
    }

    /// Whether more is better.
    pub(super) fn is_improvement(self) -> bool {
        matches!(self, What::Improvement | What::ImprovementRank)
    }
}

impl PrintedTable {
    /// What the columns of a row are called in the file's list of strategies.
    pub(super) fn columns_of<'a>(&'a self, row: &'a PrintedRow) -> &'a [String] {
        row.strategies.as_deref().unwrap_or(&self.columns)
    }

    /// The row of this name.
    pub(super) fn row(&self, name: &str) -> Result<&PrintedRow, String> {
        self.rows.iter().find(|row| row.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.rows.iter().map(|row| row.name.as_str()).collect();
            format!("table {} has no row {name:?}; there are {}", self.id, names.join("; "))
        })
    }
}

impl Published {
    /// Reads a file.
    ///
    /// # Errors
    /// In words, if it is no such file, or a row does not fit its table.
    pub(super) fn parse(text: &str) -> Result<Published, String> {
        let found: Published = toml::from_str(text).map_err(|error| error.to_string())?;
        for table in &found.tables {
            for row in &table.rows {
                let place = format!("table {}, row {:?}", table.id, row.name);
                let columns = table.columns_of(row);
                if row.values.len() != table.columns.len() || columns.len() != table.columns.len() {
                    return Err(format!(
                        "{place}: {} values for {} columns",
                        row.values.len(),
                        table.columns.len()
                    ));
                }
                if row.data.is_empty() || row.metrics.is_empty() {
                    return Err(format!("{place}: it needs data and metrics"));
                }
                let unknown = |name: &&String| !found.strategies.contains_key(*name);
                if let Some(name) = columns.iter().chain(&table.reference).find(unknown) {
                    return Err(format!("{place}: {name:?} is not in [strategies]"));
                }
                let alone = |name: &&String| found.before_of(row, name).is_none_or(|other| unknown(&other));
                if let Some(name) = columns.iter().find(alone).filter(|_| row.what.is_improvement()) {
                    return Err(format!(
                        "{place}: {name:?} is not in [before], with one that is in [strategies]"
                    ));
                }
                if row.what == What::Mean && (row.metrics.len(), row.data.len()) != (1, 1) {
                    return Err(format!("{place}: a mean is of one metric in one of the data"));
                }
            }
        }
        Ok(found)
    }

    /// What a column improves on in a row.
    pub(super) fn before_of<'a>(&'a self, row: &'a PrintedRow, column: &str) -> Option<&'a String> {
        row.before.as_ref().or_else(|| self.before.get(column))
    }

    /// The table of this name.
    pub(super) fn table(&self, id: &str) -> Result<&PrintedTable, String> {
        self.tables.iter().find(|table| table.id == id).ok_or_else(|| {
            let ids: Vec<&str> = self.tables.iter().map(|table| table.id.as_str()).collect();
            format!("no table is {id:?}; there are {}", ids.join(", "))
        })
    }
}
