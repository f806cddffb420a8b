//! Figures of a graph, as §2.3 of the paper defines them. Links are given by vertex, in both directions.

use std::collections::VecDeque;

/// Links between neighbors of a vertex over how many there could be, the mean of all vertices with two or more.
pub(crate) fn clustering(links: &[Vec<u32>]) -> f64 {
    let of = |neighbors: &Vec<u32>| {
        let pairs = neighbors.iter().flat_map(|one| neighbors.iter().map(move |other| (one, other)));
        let linked =
            pairs.filter(|(one, other)| one != other && links[**one as usize].contains(other)).count();
        linked as f64 / (neighbors.len() * (neighbors.len() - 1)) as f64
    };
    let coefficients: Vec<f64> = links.iter().filter(|neighbors| neighbors.len() > 1).map(of).collect();
    coefficients.iter().sum::<f64>() / coefficients.len() as f64
}

/// How many links it is from a vertex to each other, as far as there is a way.
pub(crate) fn distances(links: &[Vec<u32>], from: u32) -> Vec<Option<u32>> {
    let mut distances = vec![None; links.len()];
    distances[from as usize] = Some(0);
    let mut open = VecDeque::from([(from, 0)]);
    while let Some((vertex, distance)) = open.pop_front() {
        for next in &links[vertex as usize] {
            if distances[*next as usize].is_none() {
                distances[*next as usize] = Some(distance + 1);
                open.push_back((*next, distance + 1));
            }
        }
    }
    distances
}

/// The mean of the shortest ways from some vertices to all others that they reach, and of the longest of these of each.
pub(crate) fn paths(links: &[Vec<u32>], from: impl IntoIterator<Item = u32>) -> (f64, f64) {
    let (mut sum, mut count, mut longest, mut sources) = (0.0, 0.0, 0.0, 0.0);
    for vertex in from {
        let others = distances(links, vertex).into_iter().flatten().filter(|distance| *distance > 0);
        let mut most = 0;
        for distance in others {
            sum += f64::from(distance);
            count += 1.0;
            most = most.max(distance);
        }
        longest += f64::from(most);
        sources += 1.0;
    }
    (sum / count, longest / sources)
}

/// Sizes of the parts that hang together, of these vertices, the largest first.
pub(crate) fn parts(links: &[Vec<u32>], vertices: &[u32]) -> Vec<usize> {
    let mut seen = vec![false; links.len()];
    let mut sizes = Vec::new();
    for vertex in vertices {
        if seen[*vertex as usize] {
            continue;
        }
        let reached = distances(links, *vertex);
        let mut size = 0;
        for (vertex, _) in reached.iter().enumerate().filter(|(_, distance)| distance.is_some()) {
            seen[vertex] = true;
            size += 1;
        }
        sizes.push(size);
    }
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    sizes
}

/// How many vertices have how many links.
pub(crate) fn degrees(links: &[Vec<u32>], vertices: &[u32]) -> Vec<usize> {
    let most = vertices.iter().map(|vertex| links[*vertex as usize].len()).max().unwrap_or(0);
    let mut counts = vec![0; most + 1];
    for vertex in vertices {
        counts[links[*vertex as usize].len()] += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two triangles with a link between them, and a vertex alone.
    fn bow() -> Vec<Vec<u32>> {
        vec![vec![1, 2], vec![0, 2], vec![0, 1, 3], vec![2, 4, 5], vec![3, 5], vec![3, 4], vec![]]
    }

    #[test]
    fn figures_of_a_small_graph_are_those_that_were_counted_by_hand() {
        let links = bow();

        // Four vertices with 1, two with 1 of 3.
        assert!((clustering(&links) - (4.0 + 2.0 / 3.0) / 6.0).abs() < 1e-12);
        // From vertex 0: 1, 1, 2, 3, 3.
        assert_eq!(paths(&links, [0]), (2.0, 3.0));
        // From vertex 2: 1, 1, 1, 2, 2.
        assert_eq!(paths(&links, [0, 2]), (17.0 / 10.0, 2.5));
        assert_eq!(parts(&links, &[0, 1, 2, 3, 4, 5, 6]), [6, 1]);
        assert_eq!(degrees(&links, &[0, 1, 2, 3, 4, 5, 6]), [1, 0, 4, 2]);
    }
}
