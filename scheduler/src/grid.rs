//! The machines: sites with their processors, ranked by size.
//!
//! A [`SiteId`] is a site's name and never changes. Its *rank* is its place when sites are ordered by
//! (processors, id): the index i of the stealing algorithm (Quezada Pina 2012, §3.2), counted from 0 here.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::capacity::{Capacity, SharedNodes};
pub use crate::site_id::SiteId;

/// One member of a grid: a parallel machine or, without processors, one that only sends jobs to others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The site's name in messages and files.
    pub id: SiteId,
    /// The site's name for people.
    pub name: String,
    /// Identical processors m_i; 0 for a member that executes nothing.
    pub processors: u32,
    /// The site whose place in the network a member without processors shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<SiteId>,
    /// What a job costs there, in units of money; 0 where nobody asks for any.
    #[serde(default, skip_serializing_if = "is_free")]
    pub price: u64,
}

/// Whether nothing is asked for a job: such a price is not written.
pub fn is_free(price: &u64) -> bool {
    *price == 0
}

/// All members of a run, with their ranks. Those without processors have the lowest: no job has its home there.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// In the order of the experiment: `sites[id.index()]`.
    sites: Vec<Site>,
    /// Ascending by (processors, id).
    ranked: Vec<SiteId>,
    /// Processors by rank, for quick look-ups.
    sizes: Vec<u32>,
    /// The widest job of each member by rank, ascending: its processors, or its nodes where jobs share these.
    widths: Vec<u32>,
    /// The nodes that jobs share, by `id.index()`; empty where every processor executes one job.
    clusters: Vec<Option<Arc<SharedNodes>>>,
    /// The width of the widest job that is spread over several sites; 0 where none is.
    spread: u32,
    /// Rank by `id.index()`.
    rank: Vec<usize>,
    /// The rank of the broker of each site's users, by `id.index()`; empty without brokers.
    desks: Vec<usize>,
}

/// Processors of all sites together at most: some ten times the largest machines of the world. Who keeps book of single
/// processors takes a bit for each.
pub const PROCESSORS_MAX: u32 = 1 << 27;

/// Why a list of sites is not a grid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// The list is empty.
    #[error("a grid needs at least one site")]
    Empty,
    /// A site without processors.
    #[error("site {0} has no processors; give it at least 1")]
    NoProcessors(String),
    /// More processors than [`PROCESSORS_MAX`].
    #[error("the sites have {0} processors together; {PROCESSORS_MAX} is the most")]
    TooManyProcessors(u64),
    /// Two sites of one name.
    #[error("two members are named {0}; rename one")]
    DuplicateName(String),
    /// A broker beside what is no site.
    #[error("broker {0} is at no site of the grid; name one of them")]
    NoSite(String),
    /// Sites are ranked by size, and the widest job must grow with it.
    #[error(
        "site {larger} has more places for tasks than site {wider}, but fewer nodes; give both the same limit of jobs per node"
    )]
    Width {
        /// The site with more processors.
        larger: String,
        /// The site that takes wider jobs.
        wider: String,
    },
}

impl Grid {
    /// A grid from (name, processors) pairs; ids follow the order given.
    ///
    /// # Errors
    /// If there is no site, a site has no processors, two share a name, or there are too many processors.
    pub fn new(sites: impl IntoIterator<Item = (String, u32)>) -> Result<Grid, GridError> {
        Grid::with_brokers(sites, [])
    }

    /// The same with members that have no processors: their names, and the sites that they are beside. Their ids follow
    /// those of the sites, in this order.
    ///
    /// # Errors
    /// As [`Grid::new`], and if a broker is beside what is no site.
    pub fn with_brokers(
        sites: impl IntoIterator<Item = (String, u32)>,
        brokers: impl IntoIterator<Item = (String, Option<SiteId>)>,
    ) -> Result<Grid, GridError> {
        let sites: Vec<(String, u32)> = sites.into_iter().collect();
        if let Some((name, _)) = sites.iter().find(|(_, processors)| *processors == 0) {
            return Err(GridError::NoProcessors(name.clone()));
        }
        let sites = sites.into_iter().map(|(name, processors)| (name, processors, None));
        Grid::of_members(sites.chain(brokers.into_iter().map(|(name, beside)| (name, 0, beside))))
    }

    /// A grid of members as another grid lists them: name, processors, and beside which site they are.
    ///
    /// # Errors
    /// If there is no site, two members share a name, one is beside what is no site, or there are too many processors.
    pub fn of_members(
        members: impl IntoIterator<Item = (String, u32, Option<SiteId>)>,
    ) -> Result<Grid, GridError> {
        let member = |(index, (name, processors, beside))| {
            let id = SiteId::from_index(index);
            Site { id, name, processors, beside, price: 0 }
        };
        let sites: Vec<Site> = members.into_iter().enumerate().map(member).collect();
        if sites.iter().all(|site| site.processors == 0) {
            return Err(GridError::Empty);
        }
        let processors: u64 = sites.iter().map(|site| u64::from(site.processors)).sum();
        if processors > u64::from(PROCESSORS_MAX) {
            return Err(GridError::TooManyProcessors(processors));
        }
        let mut names = std::collections::BTreeSet::new();
        for site in &sites {
            if !names.insert(&site.name) {
                return Err(GridError::DuplicateName(site.name.clone()));
            }
            let is_site = |id: SiteId| {
                let place = (id.0 as usize).checked_sub(1);
                place.and_then(|place| sites.get(place)).is_some_and(|site| site.processors > 0)
            };
            if site.beside.is_some_and(|id| site.processors > 0 || !is_site(id)) {
                return Err(GridError::NoSite(site.name.clone()));
            }
        }
        let mut ranked: Vec<SiteId> = sites.iter().map(|site| site.id).collect();
        ranked.sort_by_key(|id| (sites[id.index()].processors, *id));
        let mut rank = vec![0; sites.len()];
        for (place, id) in ranked.iter().enumerate() {
            rank[id.index()] = place;
        }
        let sizes: Vec<u32> = ranked.iter().map(|id| sites[id.index()].processors).collect();
        let desks = desks(&sites, &rank);
        Ok(Grid { sites, ranked, widths: sizes.clone(), sizes, clusters: Vec::new(), spread: 0, rank, desks })
    }

    /// The same where jobs share the nodes of some members, in the order of the experiment. A member's processors are then
    /// its places for tasks: its nodes times the jobs that may be on one.
    ///
    /// # Errors
    /// If a site that has more such places than another takes only narrower jobs.
    pub fn with_clusters(
        mut self,
        clusters: impl IntoIterator<Item = Option<Arc<SharedNodes>>>,
    ) -> Result<Grid, GridError> {
        self.clusters = clusters.into_iter().chain(std::iter::repeat(None)).take(self.len()).collect();
        if self.clusters.iter().all(Option::is_none) {
            self.clusters.clear();
            return Ok(self);
        }
        self.widths = self.ranked.iter().map(|&id| self.capacity(id).widest()).collect();
        match self.widths.is_sorted() {
            true => Ok(self),
            false => {
                let fall = self.widths.windows(2).position(|pair| pair[0] > pair[1]);
                let name = |rank: usize| self.site(self.ranked[rank]).name.clone();
                let rank = fall.expect("they are not sorted");
                Err(GridError::Width { wider: name(rank), larger: name(rank + 1) })
            }
        }
    }

    /// The same where jobs up to a width are spread over several sites if no site is wide enough; 0 where none is.
    #[must_use]
    pub fn with_spread(self, width: u32) -> Grid {
        Grid { spread: width, ..self }
    }

    /// Whether jobs may be spread over several sites.
    pub fn spreads(&self) -> bool {
        self.spread > 0
    }

    /// The width of the widest job that starts anywhere: that of the widest site, or where jobs are spread over several sites of
    /// what is spread over all that may be.
    pub fn widest_job(&self) -> u32 {
        self.widest().max(self.spread)
    }

    /// What executes jobs at a member.
    pub fn capacity(&self, id: SiteId) -> Capacity {
        match self.cluster(id) {
            Some(cluster) => Capacity::Shared(Arc::clone(cluster)),
            None => Capacity::Processors(self.site(id).processors),
        }
    }

    /// What executes jobs at each site, by rank from the first that has processors.
    pub fn capacities(&self) -> impl Iterator<Item = Capacity> {
        self.ranked[self.brokers()..].iter().map(|&site| self.capacity(site))
    }

    /// The nodes that jobs share at a member; none where every processor executes one job.
    pub fn cluster(&self, id: SiteId) -> Option<&Arc<SharedNodes>> {
        self.clusters.get(id.index()).and_then(Option::as_ref)
    }

    /// Whether jobs share nodes anywhere.
    pub fn is_shared(&self) -> bool {
        !self.clusters.is_empty()
    }

    /// The same where jobs cost something, by member in the order of the experiment; those that are not named cost nothing.
    #[must_use]
    pub fn with_prices(mut self, prices: impl IntoIterator<Item = u64>) -> Grid {
        self.sites.iter_mut().zip(prices).for_each(|(site, price)| site.price = price);
        self
    }

    /// A grid of sites named `site1`, `site2`, … with these processors.
    ///
    /// # Errors
    /// If there is no site or a site has no processors.
    pub fn of_sizes(sizes: &[u32]) -> Result<Grid, GridError> {
        Grid::new(sizes.iter().enumerate().map(|(index, &size)| (format!("site{}", index + 1), size)))
    }

    /// All members in the order of the experiment.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The member with this id.
    pub fn site(&self, id: SiteId) -> &Site {
        &self.sites[id.index()]
    }

    /// How many members there are: the sites (m), and those without processors.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Never true: a grid has a site.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// Processors of each member by rank: s_1 <= s_2 <= … <= s_m, after the zeros of those that have none.
    pub fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// The widest job of each member by rank, ascending.
    pub fn widths(&self) -> &[u32] {
        &self.widths
    }

    /// The width of the widest job that fits a member.
    pub fn width(&self, id: SiteId) -> u32 {
        self.widths[self.rank[id.index()]]
    }

    /// The site of a rank.
    pub fn at_rank(&self, rank: usize) -> SiteId {
        self.ranked[rank]
    }

    /// The rank of a site, from 0 for the smallest.
    pub fn rank(&self, id: SiteId) -> usize {
        self.rank[id.index()]
    }

    /// The members that have processors, in the order of the experiment.
    pub fn machines(&self) -> impl Iterator<Item = &Site> {
        self.sites.iter().filter(|site| site.processors > 0)
    }

    /// Whether a member has no processors.
    ///
    /// # Panics
    /// If the grid has no such member.
    pub fn is_broker(&self, id: SiteId) -> bool {
        self.site(id).processors == 0
    }

    /// How many members have no processors; their ranks come before all others.
    pub fn brokers(&self) -> usize {
        self.sizes.partition_point(|&size| size == 0)
    }

    /// The rank of the broker that users of a site turn to: the one beside it; else those that are beside no site, or if
    /// there are none all, in turn, in the order of the experiment. `None` if there is no broker.
    pub fn broker_of(&self, site: SiteId) -> Option<usize> {
        self.desks.get(site.index()).copied()
    }

    /// The rank of the home of a job this wide: the smallest site, first by id, that can hold it.
    /// `None` if no site can.
    pub fn home_rank(&self, processors: u32) -> Option<usize> {
        let rank = self.widths.partition_point(|&width| width < processors);
        (rank < self.widths.len()).then_some(rank)
    }

    /// The home site of a job this wide, `None` if it is wider than the widest site.
    pub fn home(&self, processors: u32) -> Option<SiteId> {
        self.home_rank(processors).map(|rank| self.ranked[rank])
    }

    /// The width of the widest job that one site takes.
    pub fn widest(&self) -> u32 {
        *self.widths.last().expect("a grid has a site")
    }

    /// All processors of the grid (S_1).
    pub fn processors(&self) -> u64 {
        self.sizes.iter().map(|&size| u64::from(size)).sum()
    }

    /// Processors of the sites of `rank` and above (S_k).
    pub fn suffix_processors(&self, rank: usize) -> u64 {
        self.sizes[rank..].iter().map(|&size| u64::from(size)).sum()
    }
}

/// The rank of the broker of each site's users.
fn desks(sites: &[Site], rank: &[usize]) -> Vec<usize> {
    let brokers = || sites.iter().filter(|site| site.processors == 0);
    let rank_of = |site: &Site| rank[site.id.index()];
    let mut shared: Vec<usize> = brokers().filter(|broker| broker.beside.is_none()).map(rank_of).collect();
    if shared.is_empty() {
        shared = brokers().map(rank_of).collect();
    }
    if shared.is_empty() {
        return Vec::new();
    }
    let desk = |site: &Site| {
        let own = brokers().find(|broker| broker.beside == Some(site.id)).map(rank_of);
        own.unwrap_or_else(|| shared[site.id.index() % shared.len()])
    };
    sites.iter().map(desk).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_have_a_limit_together() {
        assert!(Grid::of_sizes(&[PROCESSORS_MAX - 1, 1]).is_ok());
        let error = Grid::of_sizes(&[u32::MAX; 4]).expect_err("too many");
        assert_eq!(error, GridError::TooManyProcessors(4 * u64::from(u32::MAX)));
        assert!(Grid::of_sizes(&[PROCESSORS_MAX, 1]).is_err());
    }

    #[test]
    fn users_turn_to_the_broker_beside_their_site_or_to_the_others_in_turn() {
        let sites = || (1..=3).map(|number| (format!("site{number}"), 4));
        let desk = |beside: &[Option<u32>]| {
            let names = beside.iter().zip(1..);
            let brokers = names.map(|(beside, number)| (format!("broker{number}"), beside.map(SiteId)));
            let grid = Grid::with_brokers(sites(), brokers).expect("a grid");
            (1..=3).map(|site| grid.broker_of(SiteId(site))).collect::<Vec<_>>()
        };
        assert_eq!(desk(&[]), [None, None, None]);
        assert_eq!(desk(&[None]), [Some(0), Some(0), Some(0)]);
        assert_eq!(desk(&[None, None]), [Some(0), Some(1), Some(0)]);
        assert_eq!(desk(&[Some(3), Some(2), Some(1)]), [Some(2), Some(1), Some(0)]);
        assert_eq!(desk(&[Some(2), None]), [Some(1), Some(0), Some(1)]);
        assert_eq!(desk(&[Some(2)]), [Some(0), Some(0), Some(0)]);
        for beside in [0, 4, 5] {
            let nowhere = Grid::with_brokers(sites(), [("x".to_string(), Some(SiteId(beside)))]);
            assert_eq!(nowhere, Err(GridError::NoSite("x".into())));
        }
    }

    #[test]
    fn ranks_follow_size_then_id() {
        let grid = Grid::of_sizes(&[8, 2, 8]).unwrap();
        assert_eq!(grid.sizes(), [2, 8, 8]);
        assert_eq!([grid.at_rank(0), grid.at_rank(1), grid.at_rank(2)], [SiteId(2), SiteId(1), SiteId(3)]);
        assert_eq!(grid.rank(SiteId(3)), 2);
    }

    #[test]
    fn home_is_the_first_site_wide_enough() {
        let grid = Grid::of_sizes(&[4, 4, 8]).unwrap();
        assert_eq!(grid.home(4), Some(SiteId(1)));
        assert_eq!(grid.home(5), Some(SiteId(3)));
        assert_eq!(grid.home(9), None);
    }

    #[test]
    fn the_widest_job_is_that_of_one_site_or_what_is_spread_over_several() {
        let grid = Grid::of_sizes(&[4, 8]).unwrap();
        assert_eq!((grid.widest(), grid.widest_job(), grid.spreads()), (8, 8, false));
        let spread = grid.clone().with_spread(12);
        assert_eq!((spread.widest(), spread.widest_job(), spread.spreads()), (8, 12, true));
        assert_eq!(spread.home(9), None, "no site is its home");
        assert_eq!(grid.with_spread(6).widest_job(), 8);
    }

    #[test]
    fn members_without_processors_come_first_and_are_nobodys_home() {
        let names = |names: &[&str]| {
            names.iter().map(|name| ((*name).to_string(), None)).collect::<Vec<(String, Option<SiteId>)>>()
        };
        let grid = Grid::with_brokers([("a".into(), 8), ("b".into(), 2)], names(&["x", "y"])).unwrap();
        assert_eq!(grid.sizes(), [0, 0, 2, 8]);
        assert_eq!((grid.rank(SiteId(3)), grid.rank(SiteId(4))), (0, 1));
        assert_eq!((grid.home(1), grid.processors()), (Some(SiteId(2)), 10));
        assert_eq!(Grid::with_brokers([], names(&["x"])), Err(GridError::Empty));
        let twice = Grid::with_brokers([("a".into(), 1)], names(&["a"]));
        assert_eq!(twice, Err(GridError::DuplicateName("a".into())));
    }

    #[test]
    fn bad_grids_are_refused() {
        assert_eq!(Grid::of_sizes(&[]), Err(GridError::Empty));
        assert_eq!(Grid::of_sizes(&[0]), Err(GridError::NoProcessors("site1".into())));
        let twice = [("a".to_string(), 1), ("a".to_string(), 2)];
        assert_eq!(Grid::new(twice), Err(GridError::DuplicateName("a".into())));
    }
}
