//! Table I: what each named algorithm is, and the baselines that the table has not.

use brokers::genetic::greedy::{Order, Rule};
use brokers::genetic::{Aim, Mutation};
use scheduler::spelling;

/// What makes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// One job after the other.
    Greedy(Order, Rule),
    /// The genetic algorithm, with the number of its stream of random numbers.
    Genetic(u8, Aim, Mutation),
    /// NSGA-II, which finds a front.
    Front,
    /// The best of many that are drawn.
    Chance,
}

/// An algorithm by the name that was typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Algorithm {
    /// As typed.
    pub(super) name: String,
    pub(super) method: Method,
}

/// All of them in the order of Table I.
pub(super) const ALL: [(&str, Method); 15] = [
    ("a1", Method::Greedy(Order::Arrival, Rule::CompletionTime)),
    ("a2", Method::Greedy(Order::Arrival, Rule::StartTime)),
    ("a3", Method::Greedy(Order::Arrival, Rule::Turnaround)),
    ("a4", Method::Greedy(Order::Arrival, Rule::Wait)),
    ("b1", Method::Genetic(0, Aim::Makespan, Mutation::Insert)),
    ("b2", Method::Genetic(1, Aim::ResponseRatio, Mutation::Insert)),
    ("b3", Method::Genetic(2, Aim::Turnaround, Mutation::Insert)),
    ("b4", Method::Genetic(3, Aim::Wait, Mutation::Insert)),
    ("c1", Method::Genetic(4, Aim::Owa, Mutation::Insert)),
    ("c2", Method::Genetic(5, Aim::Owa, Mutation::Swap)),
    ("c3", Method::Genetic(6, Aim::Owa, Mutation::Switch)),
    ("spt", Method::Greedy(Order::ShortestFirst, Rule::CompletionTime)),
    ("laf", Method::Greedy(Order::LargestFirst, Rule::CompletionTime)),
    ("random", Method::Chance),
    ("nsga2", Method::Front),
];

/// The stream of random numbers of NSGA-II, behind those of the genetic algorithms.
pub(super) const FRONT_STREAM: u8 = 7;

/// The greedy strategies whose rows NSGA-II begins with: two in the order of arrival, and the two that are far ahead in something
/// each.
pub(super) const SEEDS: [(Order, Rule); 4] = [
    (Order::Arrival, Rule::CompletionTime),
    (Order::Arrival, Rule::StartTime),
    (Order::ShortestFirst, Rule::CompletionTime),
    (Order::LargestFirst, Rule::CompletionTime),
];

/// What is typed if nothing is: what has a place in the published table, and what it lacks.
pub(super) const DEFAULT: &str = "a1,a2,a3,a4,b1,b2,b3,b4,c1,c2,c3,spt,laf,random";

/// Reads a name, in capitals or not.
pub(super) fn parse(typed: &str) -> Result<Algorithm, String> {
    let known = ALL.iter().find(|(name, _)| name.eq_ignore_ascii_case(typed));
    known.map(|&(_, method)| Algorithm { name: typed.to_string(), method }).ok_or_else(|| {
        let names = ALL.map(|(name, _)| name);
        let hint = spelling::hint(typed, names);
        format!("unknown algorithm {typed:?}{hint}; there are {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_table_and_what_is_typed_stays() {
        let names: Vec<Algorithm> = DEFAULT.split(',').map(|name| parse(name).unwrap()).collect();
        let all = ALL.map(|(_, method)| method);
        assert_eq!(names.iter().map(|one| one.method).collect::<Vec<_>>(), all[..names.len()]);
        assert_eq!(all[names.len()..], [Method::Front]);
        assert_eq!(parse("C1").unwrap().name, "C1");
        assert_eq!(parse("C1").unwrap().method, parse("c1").unwrap().method);
        assert!(parse("randon").unwrap_err().contains("did you mean random?"));
        assert!(parse("d1").unwrap_err().contains("there are a1, a2"));
    }

    #[test]
    fn no_two_genetic_algorithms_draw_from_one_stream() {
        let streams: std::collections::BTreeSet<u8> = ALL
            .iter()
            .filter_map(|(_, method)| match method {
                Method::Genetic(stream, ..) => Some(*stream),
                Method::Front => Some(FRONT_STREAM),
                Method::Greedy(..) | Method::Chance => None,
            })
            .collect();
        assert_eq!(streams.len(), 8);
    }
}
