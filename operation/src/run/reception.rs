//! Runs on nodes that nobody here started: they register, and which of them is which site is decided here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use clap::ValueEnum;
use experiments::drive::own::ORDERS_TOKEN;
use experiments::experiment::faults::What;
use experiments::experiment::{Clock, Experiment, Identity, NodeDiscovery};
use experiments::interrupt::Interrupt;
use node::NodeConfig;
use node::control::Token;
use node::executor::By;
use node::network::GridKey;
use scheduler::Grid;
use tokio::sync::mpsc::Receiver;

use super::plan::Plan;
use crate::Fleet;
use crate::registration::{Applicant, Desk, routes};
use crate::serve::orders::{Asked, Desk as OrderDesk};
use crate::serve::{Place, Server, Target, opened};

/// After the last node that has registered, how long others are waited for once there are enough.
const SETTLE: Duration = Duration::from_secs(3);

/// The least time for which nodes that registered work without a coordinator: it simulates the experiment meanwhile.
const ORPHAN_SECS_MIN: u64 = 60;

/// Where nodes come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Nodes {
    /// They are started here.
    #[default]
    Spawn,
    /// They come by themselves.
    Register,
}

/// Where nodes come from and what is served meanwhile.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ReceptionArgs {
    /// spawn: start a node for each site here; register: wait for nodes that were started elsewhere with
    /// `stealgrid node --register` [default: spawn]
    #[arg(long, value_enum, value_name = "FROM", help_heading = "Nodes", requires_ifs = [("register", "serve"), ("register", "keys")])]
    pub nodes: Option<Nodes>,

    /// With --nodes register: how many sites there are. The sizes of the grid are repeated if it has fewer, and cut if it
    /// has more [default: as many as the grid has, or more if more register]
    #[arg(
        long,
        value_name = "N",
        env = "STEALGRID_REGISTER_SITES",
        help_heading = "Nodes",
        requires = "nodes"
    )]
    pub register_sites: Option<usize>,

    /// With --nodes register: folder with grid.key and control.token, which are made if missing and which nodes must have
    #[arg(long, value_name = "DIR", help_heading = "Nodes", requires = "nodes")]
    pub keys: Option<PathBuf>,

    /// Serve the live page, registration, health and the addresses of the nodes for Prometheus (/sd) here, as in 127.0.0.1:8080
    #[arg(long, value_name = "ADDRESS", help_heading = "Nodes")]
    pub serve: Option<String>,

    /// With --serve: a further name by which the page may be opened; may be given several times
    ///
    /// Always allowed are addresses, localhost, names without a dot, and the one that --serve has.
    #[arg(
        long,
        value_name = "NAME",
        env = "STEALGRID_SERVE_HOST",
        value_delimiter = ',',
        help_heading = "Nodes",
        requires = "serve"
    )]
    pub serve_host: Vec<String>,

    /// Wait for the order to start, from the page or by POST /orders/start, when everything is ready
    #[arg(long, env = "STEALGRID_HOLD", help_heading = "Nodes", requires = "serve")]
    pub hold: bool,

    /// Go on serving after the run until told to stop
    #[arg(long, env = "STEALGRID_SERVE_AFTER", help_heading = "Nodes", requires = "serve")]
    pub serve_after: bool,
}

/// Where nodes register.
#[derive(Debug)]
pub struct Reception {
    desk: Arc<Desk>,
    token: Token,
    sites: Option<usize>,
}

/// What serves a run.
#[derive(Debug, Default)]
pub struct Open {
    /// The page, if there is one.
    pub server: Option<Server>,
    /// Where nodes come, if they are to.
    pub reception: Option<Reception>,
    /// Orders, as they come.
    pub come: Option<Receiver<Asked>>,
    /// What those who order must show, if it is in no file yet.
    pub token: Option<Token>,
}

/// The token of a run's orders in its result directory, readable by its owner alone; gone when this is dropped.
#[derive(Debug)]
pub struct TokenFile(PathBuf);

impl TokenFile {
    /// Writes it, and says where it is: what it says is in no log.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(token: &Token, dir: &Path) -> anyhow::Result<TokenFile> {
        let path = dir.join(ORDERS_TOKEN);
        token.write_new(&path).context("failed to make the token for orders")?;
        eprintln!("note: for orders add /#token= and what is in {}", path.display());
        Ok(TokenFile(path))
    }
}

impl Drop for TokenFile {
    fn drop(&mut self) {
        // Whoever comes next removes it, too.
        let _ = fs::remove_file(&self.0);
    }
}

impl ReceptionArgs {
    /// Begins to serve.
    ///
    /// # Errors
    /// If the keys cannot be read or made, or the address cannot be listened on.
    pub fn open(&self) -> anyhow::Result<Open> {
        let Some(address) = &self.serve else { return Ok(Open::default()) };
        let place = Place::new(address, &self.serve_host);
        let keys = self.keys.as_deref().filter(|_| self.nodes == Some(Nodes::Register));
        let Some(keys) = keys else {
            let token = Token::random();
            let (orders, come) = OrderDesk::new(token.clone(), &place);
            let server = Server::start(&place, axum::Router::new(), Some(orders))?;
            eprintln!("note: watch at {}", opened(server.address()));
            return Ok(Open { server: Some(server), reception: None, come: Some(come), token: Some(token) });
        };
        let token = secrets(keys)?;
        let desk = Arc::new(Desk::default());
        let (orders, come) = OrderDesk::new(token.clone(), &place);
        let server = Server::start(&place, routes(Arc::clone(&desk), Arc::new(token.clone())), Some(orders))?;
        eprintln!(
            "note: watch at http://{0}; for orders add /#token= and what is in {1}",
            server.address(),
            keys.join("control.token").display()
        );
        eprintln!("note: waiting for nodes to register at {}", server.address());
        let reception = Reception { desk, token, sites: self.register_sites };
        Ok(Open { server: Some(server), reception: Some(reception), come: Some(come), token: None })
    }
}

/// The token in a folder; it and the grid's key are made if missing.
fn secrets(folder: &Path) -> anyhow::Result<Token> {
    node::private::make_folder(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    let (key, token) = (folder.join("grid.key"), folder.join("control.token"));
    if !key.exists() {
        GridKey::random().write_new(&key).context("failed to make a key for the grid")?;
    }
    if !token.exists() {
        Token::random().write_new(&token).context("failed to make a token")?;
    }
    GridKey::read(&key).context("failed to read the key of the grid")?;
    Token::read(&token).context("failed to read the token")
}

/// Why an experiment cannot run on nodes that come by themselves.
pub fn check(experiment: &Experiment) -> Result<(), &'static str> {
    if experiment.run.clock == Some(Clock::Virtual) {
        return Err("--nodes register: in virtual time nodes are started here; leave out --clock virtual");
    }
    if experiment.run.discovery == NodeDiscovery::Mdns {
        return Err("--nodes register: nodes are introduced to each other; leave out run.discovery");
    }
    if !experiment.external.is_none() {
        return Err(
            "--nodes register: commands are not sent to other machines; leave out exec=, or start the nodes here",
        );
    }
    if experiment.execution.by != By::Timer {
        return Err(
            "--nodes register: what runs jobs on another machine is not said from here; leave out [execution], or start the nodes here",
        );
    }
    if experiment.run.identity == Identity::Kept {
        return Err("--nodes register: nodes have identities of their own; leave out run.identity");
    }
    if experiment.faults.iter().any(|fault| matches!(fault.what, What::Pause { .. })) {
        return Err(
            "--nodes register: processes of other machines cannot be made to stand still from here; \
                    leave pauses out of [[faults]], or use `docker pause`",
        );
    }
    if experiment.faults.iter().any(|fault| fault.is_final() && matches!(fault.what, What::Crash { .. })) {
        return Err(
            "--nodes register: the journal of a node that never comes back is not here; give each crash a \
                    time with for, or start the nodes here",
        );
    }
    Ok(())
}

impl Reception {
    /// Waits for nodes. Those that are there when enough have come and no more do.
    ///
    /// # Errors
    /// Who is missing, if not enough come within `patience`, or it is interrupted.
    pub fn gather(
        &self,
        grid: &Grid,
        patience: Duration,
        interrupt: &Interrupt,
    ) -> Result<Vec<Applicant>, String> {
        let least = self.sites.unwrap_or(grid.len());
        let settle = if self.sites.is_some() { Duration::ZERO } else { SETTLE };
        let here = self.desk.gather(least, settle, patience, &|| interrupt.is_set());
        if here.len() >= least {
            return Ok(here);
        }
        let names: Vec<&str> = here.iter().map(|applicant| applicant.instance.as_str()).collect();
        Err(format!(
            "{} of {least} sites have registered within {patience:?} ({}); start the others with `stealgrid node \
             --register`, wait longer with run.connect_timeout, or say how many there are with --register-sites",
            here.len(),
            if names.is_empty() { "none".to_string() } else { names.join(", ") },
        ))
    }

    /// The sizes of as many sites as there are nodes, if the grid has another number.
    pub fn sizes(&self, grid: &Grid, nodes: usize) -> Option<Vec<u32>> {
        let count = self.sites.unwrap_or(nodes);
        let sizes: Vec<u32> = grid.machines().map(|site| site.processors).collect();
        (count != grid.len())
            .then(|| sizes.into_iter().cycle().take(count.saturating_sub(grid.brokers()).max(1)).collect())
    }

    /// Where they come to.
    pub fn desk(&self) -> &Arc<Desk> {
        &self.desk
    }

    /// Makes these nodes the sites of the plan.
    ///
    /// # Errors
    /// If one is not up in time.
    pub fn enlist(&self, experiment: &Experiment, plan: &Plan, slots: &[String]) -> anyhow::Result<Fleet> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let told = |config: &NodeConfig| {
            let mut config = config.clone();
            // Nodes and journals of an earlier run of the same experiment may be there still.
            config.run = format!("{}-{now:x}", config.run);
            config.data_dir = config.data_dir.map(|_| PathBuf::from("journal"));
            // Nothing else ends them when the coordinator goes away.
            let patience = experiment.run.orphan_patience.as_secs().max(ORPHAN_SECS_MIN);
            config.orphan_secs = u32::try_from(patience).unwrap_or(u32::MAX);
            config
        };
        let configs = slots.iter().cloned().zip(plan.nodes.iter().map(told)).collect();
        let patience = experiment.run.connect_timeout;
        Fleet::enlist(&self.desk, &self.token, configs, patience).with_context(|| {
            format!(
                "failed to make sites of the nodes that registered within {patience:?} (run.connect_timeout); nothing was run. \
                 End those that are left, start all again with `stealgrid node --register`, and run this again"
            )
        })
    }
}

/// Which instance is which site, in the order of the grid: first who wants a name, then who wants a size, then others.
///
/// # Errors
/// If somebody wants what there is not.
pub fn slots(grid: &Grid, applicants: &[Applicant]) -> Result<Vec<String>, String> {
    let mut slots: Vec<Option<&str>> = vec![None; grid.len()];
    let rank = |applicant: &&Applicant| (applicant.name.is_none(), applicant.processors.is_none());
    let mut ordered: Vec<&Applicant> = applicants.iter().collect();
    ordered.sort_by_key(rank);
    for applicant in ordered.iter().take(grid.len()) {
        let fits = |site: &scheduler::Site| {
            applicant.name.as_ref().is_none_or(|name| *name == site.name)
                && applicant.processors.is_none_or(|processors| processors == site.processors)
        };
        let place = (0..grid.len()).find(|&place| slots[place].is_none() && fits(&grid.sites()[place]));
        let Some(place) = place else {
            let Applicant { instance, name, processors, .. } = applicant;
            return Err(format!(
                "node {instance} wants to be a site{}{}, and none is free; see --name and --processors of the node",
                name.as_ref().map(|name| format!(" called {name}")).unwrap_or_default(),
                processors.map(|processors| format!(" of {processors} processors")).unwrap_or_default(),
            ));
        };
        slots[place] = Some(&applicant.instance);
    }
    slots
        .into_iter()
        .zip(grid.sites())
        .map(|(slot, site)| slot.map(str::to_string).ok_or_else(|| format!("nobody is site {}", site.name)))
        .collect()
}

/// The nodes of a run, for Prometheus: it would miss one that has left or is still to join.
pub fn targets(name: &str, fleet: &Fleet) -> Vec<Target> {
    fleet.ready_lines().map(|ready| Target::of(name, ready)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applicant(instance: &str, name: Option<&str>, processors: Option<u32>) -> Applicant {
        let (instance, name) = (instance.to_string(), name.map(str::to_string));
        Applicant { instance, name, processors, journal: false }
    }

    fn grid() -> Grid {
        Grid::of_sizes(&[8, 16, 8]).unwrap()
    }

    #[test]
    fn wishes_come_before_chance() {
        let anybody = |instance| applicant(instance, None, None);
        let plain = [anybody("a"), anybody("b"), anybody("c")];
        assert_eq!(slots(&grid(), &plain).unwrap(), ["a", "b", "c"]);

        let wishes = [anybody("a"), applicant("b", None, Some(8)), applicant("c", Some("site1"), None)];
        assert_eq!(slots(&grid(), &wishes).unwrap(), ["c", "a", "b"]);
    }

    #[test]
    fn wishes_that_cannot_be_met_are_told() {
        let twice = [applicant("a", Some("site1"), None), applicant("b", Some("site1"), None)];
        let error = slots(&grid(), &twice).unwrap_err();
        assert!(error.contains("node b wants to be a site called site1, and none is free"), "{error}");
        let size = slots(&grid(), &[applicant("a", None, Some(7))]).unwrap_err();
        assert!(size.contains("of 7 processors"), "{size}");
        assert_eq!(slots(&grid(), &[applicant("a", None, None)]).unwrap_err(), "nobody is site site2");
    }

    #[test]
    fn sizes_are_repeated_or_cut_for_the_number_of_nodes() {
        let reception = |sites| Reception { desk: Arc::default(), token: Token::random(), sites };
        assert_eq!(reception(None).sizes(&grid(), 3), None);
        assert_eq!(reception(None).sizes(&grid(), 5), Some(vec![8, 16, 8, 8, 16]));
        assert_eq!(reception(Some(2)).sizes(&grid(), 3), Some(vec![8, 16]));
    }

    #[test]
    fn secrets_are_made_once() {
        let folder = tempfile::tempdir().unwrap();
        secrets(folder.path()).unwrap();
        let first = fs::read(folder.path().join("grid.key")).unwrap();
        secrets(folder.path()).unwrap();
        assert_eq!(fs::read(folder.path().join("grid.key")).unwrap(), first);
        fs::write(folder.path().join("control.token"), "short").unwrap();
        assert!(format!("{:#}", secrets(folder.path()).unwrap_err()).contains("control.token"));
    }
}
