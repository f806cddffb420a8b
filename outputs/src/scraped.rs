//! Whether what was scraped of the nodes is what their event logs say.

use serde::Serialize;

/// What was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scraped {
    /// `nodes`, or the address of the Prometheus server.
    pub source: String,
    /// Whether everything that was compared is equal, and nothing is missing that should be there.
    pub equal: bool,
    /// Site by site, in the order of the experiment.
    pub sites: Vec<SiteScraped>,
}

/// What was found of one site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SiteScraped {
    /// Name of the site.
    pub site: String,
    /// Events that the page had counted.
    pub events: u64,
    /// Series that were compared.
    pub compared: usize,
    /// Whether it went on with a journal, so that some series were left out.
    pub restarted: bool,
    /// How many of them differ.
    pub different: usize,
    /// The first of these.
    pub differences: Vec<Difference>,
    /// Why nothing was compared.
    pub missing: Option<String>,
}

/// A series that is not what the log says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Its name and labels.
    pub series: String,
    /// Its value; none if it was not there.
    pub scraped: Option<f64>,
    /// What the events of the site say.
    pub logged: f64,
}

impl Scraped {
    /// Whether a value is not what the log says.
    pub fn differs(&self) -> bool {
        self.sites.iter().any(|site| site.different > 0)
    }

    /// One line for the summary.
    pub fn line(&self) -> String {
        let compared: Vec<&SiteScraped> = self.sites.iter().filter(|site| site.missing.is_none()).collect();
        let series: usize = compared.iter().map(|site| site.compared).sum();
        let different: usize = compared.iter().map(|site| site.different).sum();
        let verdict = match different {
            0 => "what was scraped equals the event log".to_string(),
            count => format!("{count} values that were scraped are not what the event log says"),
        };
        let mut line =
            format!("metrics: {verdict} ({series} series of {} sites, from {})", compared.len(), self.source);
        let restarted: Vec<&str> =
            compared.iter().filter(|site| site.restarted).map(|site| site.site.as_str()).collect();
        if !restarted.is_empty() {
            line +=
                &format!("; waits, slowdowns and classes of {}, restarted, left out", restarted.join(", "));
        }
        for site in &self.sites {
            if let Some(reason) = &site.missing {
                line += &format!("; {} not compared: {reason}", site.site);
            }
        }
        line
    }

    /// What is wrong, if something is.
    pub fn refusal(&self) -> Option<String> {
        if self.equal {
            return None;
        }
        let mut text = "what was scraped is not what the event log says:".to_string();
        for site in &self.sites {
            if let Some(reason) = &site.missing {
                text += &format!("\n  {}: not compared: {reason}", site.site);
            }
            for Difference { series, scraped, logged } in &site.differences {
                let scraped = scraped.map_or("not there".to_string(), |value| value.to_string());
                text += &format!("\n  {}: {series} is {scraped}, events say {logged}", site.site);
            }
            let more = site.different - site.differences.len();
            if more > 0 {
                text += &format!("\n  {}: and {more} more", site.site);
            }
        }
        Some(text)
    }
}
