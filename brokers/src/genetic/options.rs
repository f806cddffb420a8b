//! What the published text leaves open, each as a switch whose first choice is the default, and the parameters of §3.7.

use scheduler::switch;

switch! {
    /// Over which individuals the maximum of a criterion is taken, which it is divided by (formula 7).
    Scaling {
        /// The initial population: costs of all generations can be compared.
        Initial = "initial",
        /// The population of the generation. The best so far is measured anew by it.
        Population = "population",
        /// All that were evaluated so far.
        Running = "running",
    }
}

switch! {
    /// Which criterion gets which weight (formula 5 and its neighbors).
    Reading {
        /// R2: the largest weight to the worst, which is what the text says that it wants.
        WorstFirst = "R2",
        /// R1: the largest weight to the best, as printed.
        BestFirst = "R1",
        /// R3: a fixed sum over makespan, turnaround, response ratio and wait.
        Fixed = "R3",
    }
}

switch! {
    /// The order of rows that are drawn.
    RowOrder {
        /// That of arrival.
        Arrival = "arrival",
        /// A random one.
        Random = "random",
    }
}

switch! {
    /// What a bit of the mask of OBX keeps.
    MaskOf {
        /// A column, in all rows.
        Column = "column",
        /// One job.
        Cell = "cell",
    }
}

switch! {
    /// Where order based crossover puts the jobs that a child does not keep.
    Obx {
        /// O1: into the vacant columns of the row where the other parent has them, what is left behind them.
        Filled = "O1",
        /// O2: behind what was kept in that row.
        Appended = "O2",
        /// O3: into vacant places of all rows in the other parent's order. Jobs that are too wide then go to the end of the
        /// row where the other parent has them.
        Global = "O3",
    }
}

switch! {
    /// What a mutation moves.
    Mutation {
        /// One job to another place.
        Insert = "insert",
        /// Two jobs, which change places.
        Swap = "swap",
        /// Two jobs at neighboring places of a row, or at the same place of two rows.
        Switch = "switch",
    }
}

switch! {
    /// Between how many rows a mutation moves jobs.
    Queues {
        /// Rows are drawn with replacement: twice the same is one row.
        Mixed = "mixed",
        /// One.
        One = "1Q",
        /// Two.
        Two = "2Q",
    }
}

switch! {
    /// Which two elements of one row a switch exchanges.
    Elements {
        /// Neighbors.
        Adjacent = "adjacent",
        /// Any two, as a swap.
        Random = "random",
    }
}

switch! {
    /// What becomes of a mutation that puts a job at a site that is too small.
    Infeasible {
        /// Another one is drawn, up to [`super::TRIES`] times; then there is none.
        Redraw = "redraw",
        /// Such jobs go to the end of a row that is drawn of those wide enough.
        Repair = "repair",
        /// It stays, and whoever has more such jobs is worse.
        Penalty = "penalty",
    }
}

switch! {
    /// What the probability of a mutation is of.
    Per {
        /// One mutation of a child.
        Child = "child",
        /// As many mutations of a child as it has jobs, each.
        Gene = "gene",
    }
}

switch! {
    /// Of what Min_TA and Min_WT take the mean (§5).
    Stays {
        /// Of all jobs of the site, with the new one.
        Site = "site",
        /// Of the new job alone: then both are Min_ST.
        Job = "job",
    }
}

switch! {
    /// What becomes of individuals of a front whose criteria another one has.
    Duplicates {
        /// They stay behind all others, and a child that is a copy of a parent is mutated.
        Replace = "replace",
        /// They count as any other, as in the text of NSGA-II.
        Keep = "keep",
    }
}

switch! {
    /// What NSGA-II begins with.
    FrontBegin {
        /// The population that all algorithms of the batch begin with, its last individuals replaced by rows of greedy
        /// strategies: evolution spreads out from good ends, and need not find them.
        Greedy = "greedy",
        /// Individuals of its own, whose rows have random orders.
        Random = "random",
        /// The population that all algorithms of the batch begin with.
        Shared = "shared",
    }
}

/// What NSGA-II has of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrontOptions {
    /// See [`FrontBegin`].
    pub begin: FrontBegin,
    /// See [`Duplicates`].
    pub duplicates: Duplicates,
    /// The probability of a mutation, in the place of [`Options::mutation`]. None: for each job of a child one over the number
    /// of jobs, so that there is one mutation on average (Deb and others 2002, §V.A).
    pub mutation: Option<f64>,
}

/// How a genetic algorithm works.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// T_p: individuals of a population, at least 2.
    pub population: usize,
    /// P_c: the probability that two parents are crossed and not copied.
    pub crossover: f64,
    /// P_m: the probability of a mutation.
    pub mutation: f64,
    /// Which one (Table I).
    pub operator: Mutation,
    /// r: individuals of a tournament, from 1 up to the population.
    pub tournament: usize,
    /// Generations in a row without a better individual after which it stops.
    pub stagnation: u32,
    /// Generations after which it stops anyway.
    pub generations_max: u32,
    /// Individuals that it may evaluate: no generation is begun that could exceed it. The initial population is made anyway.
    pub evaluations_max: u64,
    /// The best of a generation that stay in the next, in place of its last children.
    pub elitism: usize,
    /// See [`Scaling`].
    pub scaling: Scaling,
    /// See [`Reading`].
    pub reading: Reading,
    /// See [`RowOrder`].
    pub initial_order: RowOrder,
    /// See [`MaskOf`].
    pub mask: MaskOf,
    /// See [`Obx`].
    pub obx: Obx,
    /// See [`Queues`].
    pub queues: Queues,
    /// See [`Elements`].
    pub switch: Elements,
    /// See [`Infeasible`].
    pub infeasible: Infeasible,
    /// See [`Per`].
    pub mutation_per: Per,
    /// Of NSGA-II alone.
    pub front: FrontOptions,
}

impl Default for Options {
    /// §3.7, and where that is silent the first reading of each switch.
    fn default() -> Options {
        Options {
            population: 100,
            crossover: 0.9,
            mutation: 0.01,
            operator: Mutation::default(),
            tournament: 2,
            stagnation: 10,
            generations_max: 1000,
            evaluations_max: u64::MAX,
            elitism: 0,
            scaling: Scaling::default(),
            reading: Reading::default(),
            initial_order: RowOrder::default(),
            mask: MaskOf::default(),
            obx: Obx::default(),
            queues: Queues::default(),
            switch: Elements::default(),
            infeasible: Infeasible::default(),
            mutation_per: Per::default(),
            front: FrontOptions::default(),
        }
    }
}
