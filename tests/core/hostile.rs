//! Constructors of arrays, graphs and states refuse any input or keep their promises.
//!
//! `PROPTEST_CASES` sets the number of cases; `make fuzz` takes many.

use polyabayes::allocation::{EvidenceMethod, EvidenceSettings, Network, Prior, Problem, evidence};
use polyabayes::counts::CountTensor;
use polyabayes::training::{
    Chain, ChainState, Globals, LdaPrior, MemoryTokens, PfaPrior, Position, Schedule,
};
use polyabayes::{CountMatrix, Error, TopicModel};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::common::{lda_globals, pfa_globals};

/// Integers near the ends of what loops and products can take, or small.
fn integer() -> impl Strategy<Value = i64> {
    prop_oneof![
        6 => -2i64..6,
        1 => prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(1 << 32), Just(u32::MAX.into())],
        1 => any::<i64>(),
    ]
}

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![
        8 => 0usize..5,
        1 => prop_oneof![Just(usize::MAX), Just(1 << 32), Just(1 << 16), Just(1 << 31)],
    ]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => 0.01f64..2.0,
        1 => prop_oneof![Just(0.0), Just(-1.0), Just(1e308), Just(1e-308), Just(f64::NAN)],
        1 => any::<f64>(),
    ]
}

/// Rows of equal length, most of their counts small.
fn table() -> impl Strategy<Value = Vec<Vec<i64>>> {
    let count = prop_oneof![3 => Just(0i64), 5 => 1i64..4, 1 => Just(i64::from(u32::MAX))];
    (1usize..6).prop_flat_map(move |n_words| vec(vec(count.clone(), n_words), 0..6))
}

/// A table in compressed sparse rows: offsets, words, counts.
type Rows = (Vec<i64>, Vec<i64>, Vec<i64>);

fn compressed(table: &[Vec<i64>]) -> Rows {
    let (mut offsets, mut words, mut counts) = (vec![0], vec![], vec![]);
    for row in table {
        for (word, &count) in (0..).zip(row).filter(|(_, count)| **count > 0) {
            words.push(word);
            counts.push(count);
        }
        offsets.push(words.len() as i64);
    }
    (offsets, words, counts)
}

/// Cells of a table, as those of a tensor of two axes: coordinates, counts.
fn cells(table: &[Vec<i64>]) -> (Vec<i64>, Vec<i64>) {
    let (mut coordinates, mut counts) = (vec![], vec![]);
    for (i, row) in (0..).zip(table) {
        for (j, &count) in (0..).zip(row).filter(|(_, count)| **count > 0) {
            coordinates.extend([i, j]);
            counts.push(count);
        }
    }
    (coordinates, counts)
}

/// Sizes and parents of an acyclic graph: parents are nodes of lower numbers.
fn acyclic() -> impl Strategy<Value = (Vec<usize>, Vec<Vec<usize>>)> {
    vec((1usize..4, vec(any::<bool>(), 5)), 2..5).prop_map(|nodes| {
        let parents = |(node, (_, arrows)): (usize, &(usize, Vec<bool>))| {
            (0..node).filter(|&parent| arrows[parent]).collect()
        };
        let parents = nodes.iter().enumerate().map(parents).collect();
        (nodes.iter().map(|node| node.0).collect(), parents)
    })
}

fn graph(sizes: Vec<usize>, parents: Vec<Vec<usize>>, axes: Vec<usize>) -> Result<Network, Error> {
    Network::new(sizes, parents, axes, &[], Prior { concentration: 1.3, tables: None })
}

/// ln Pr of three tokens in two cells at most, exactly.
fn ln_evidence(network: &Network, swap: bool) -> f64 {
    let axes = network.axes();
    let shape: Vec<usize> = axes.iter().map(|&node| network.sizes()[node]).collect();
    let last: Vec<i64> = shape.iter().map(|&size| size as i64 - 1).collect();
    let first = if swap { [0, last[1]] } else { [last[0], 0] };
    let mut cells = vec![(first, 1), ([last[0], last[1]], 2)];
    cells.sort_unstable();
    if cells[0].0 == cells[1].0 {
        cells = vec![(cells[0].0, 3)];
    }
    let (cells, counts): (Vec<[i64; 2]>, Vec<i64>) = cells.into_iter().unzip();
    let data = CountTensor::new(shape, cells.as_flattened(), &counts).unwrap();
    let problem = Problem::new(network, &data, None).unwrap();
    evidence(&problem, &EvidenceSettings::new(EvidenceMethod::Exact), 0, &())
        .unwrap()
        .estimate
        .ln_value
}

proptest! {
    #[test]
    fn a_matrix_keeps_what_it_promises(
        n_words in size(),
        offsets in vec(integer(), 0..5),
        words in vec(integer(), 0..6),
        counts in vec(integer(), 0..6),
    ) {
        if let Ok(matrix) = CountMatrix::new(n_words, &offsets, &words, &counts) {
            prop_assert_eq!(matrix.n_documents() + 1, offsets.len());
            for document in matrix.documents() {
                prop_assert!(document.words().is_sorted_by(|a, b| a < b));
                prop_assert!(document.words().iter().all(|&w| (w as usize) < n_words));
                prop_assert!(document.counts().iter().all(|&n| n > 0));
            }
            prop_assert_eq!(matrix.distinct().index.len(), matrix.n_documents());
        }
    }

    #[test]
    fn a_sparse_matrix_holds_what_its_dense_rows_hold(table in table()) {
        prop_assume!(!table.is_empty());
        let matrix = CountMatrix::from_dense(&table).unwrap();
        let (offsets, words, counts) = compressed(&table);
        let again = CountMatrix::new(table[0].len(), &offsets, &words, &counts).unwrap();
        prop_assert_eq!(&matrix, &again);
        let total: i64 = table.iter().flatten().sum();
        prop_assert_eq!(matrix.n_tokens(), total as u64);
        let distinct = matrix.distinct().index;
        for (i, row) in table.iter().enumerate() {
            let document = matrix.document(i);
            for (word, &count) in (0..).zip(row) {
                let place = document.words().iter().position(|&w| w == word);
                let found = place.map_or(0, |place| i64::from(document.counts()[place]));
                prop_assert_eq!(found, count);
            }
            for j in 0..i {
                prop_assert_eq!(distinct[i] == distinct[j], table[i] == table[j]);
            }
        }
    }

    /// One flaw at a time, each of which must be found.
    #[test]
    fn a_matrix_with_a_flaw_is_refused(
        table in table(),
        flaw in 0usize..10,
        place in any::<prop::sample::Index>(),
    ) {
        let (mut offsets, mut words, mut counts) = compressed(&table);
        prop_assume!(!words.is_empty());
        let n_words = table[0].len();
        let cell = place.index(words.len());
        match flaw {
            0 => words[cell] = n_words as i64,
            1 => words[cell] = -1,
            2 => counts[cell] = 0,
            3 => counts[cell] = -counts[cell],
            4 => counts[cell] = 1 << 32,
            5 => offsets[0] = 1,
            6 => *offsets.last_mut().unwrap() += 1,
            7 => drop(counts.pop()),
            8 => offsets.clear(),
            _ => {
                // The word stands twice, in the row of its first place.
                words.insert(cell, words[cell]);
                counts.insert(cell, 1);
                let row = offsets.iter().rposition(|&offset| offset <= cell as i64).unwrap();
                offsets[row + 1..].iter_mut().for_each(|offset| *offset += 1);
            }
        }
        prop_assert!(CountMatrix::new(n_words, &offsets, &words, &counts).is_err());
    }

    #[test]
    fn a_tensor_holds_its_cells(table in table()) {
        prop_assume!(!table.is_empty());
        let (coordinates, counts) = cells(&table);
        let shape = vec![table.len(), table[0].len()];
        let tensor = CountTensor::new(shape, &coordinates, &counts).unwrap();
        for (cell, count) in tensor.cells() {
            prop_assert_eq!(table[cell[0] as usize][cell[1] as usize], count as i64);
        }
        prop_assert_eq!(tensor.n_cells(), table.iter().flatten().filter(|n| **n > 0).count());
        prop_assert_eq!(tensor.total(), table.iter().flatten().sum::<i64>() as u64);
    }

    #[test]
    fn a_tensor_with_a_flaw_is_refused(
        table in table(),
        flaw in 0usize..8,
        place in any::<prop::sample::Index>(),
    ) {
        let (mut coordinates, mut counts) = cells(&table);
        prop_assume!(!counts.is_empty());
        let mut shape = vec![table.len(), table[0].len()];
        let cell = place.index(counts.len());
        match flaw {
            0 => coordinates[2 * cell + 1] = shape[1] as i64,
            1 => coordinates[2 * cell] = -2,
            2 => counts[cell] = 0,
            3 => counts[cell] = -1,
            4 => counts.push(1),
            5 => shape[cell % 2] = 0,
            6 => {
                // The cell stands twice.
                let twice = [coordinates[2 * cell], coordinates[2 * cell + 1]];
                coordinates.splice(2 * cell..2 * cell, twice);
                counts.insert(cell, 1);
            }
            _ => {
                prop_assume!(counts.len() > 1);
                counts[cell] = i64::MAX;
            }
        }
        prop_assert!(CountTensor::new(shape, &coordinates, &counts).is_err());
    }

    /// The numbers of the nodes are names: evidence does not depend on them.
    #[test]
    fn nodes_may_be_numbered_in_any_order(
        (sizes, parents) in acyclic(),
        names in Just((0usize..5).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let n = sizes.len();
        let names: Vec<usize> = names.into_iter().filter(|&name| name < n).collect();
        let (mut new_sizes, mut new_parents) = (vec![0; n], vec![vec![]; n]);
        for node in 0..n {
            new_sizes[names[node]] = sizes[node];
            new_parents[names[node]] = parents[node].iter().map(|&parent| names[parent]).collect();
        }
        let axes = vec![n - 1, 0];
        let new_axes = axes.iter().map(|&node| names[node]).collect();
        let one = ln_evidence(&graph(sizes.clone(), parents.clone(), axes).unwrap(), false);
        let other = ln_evidence(&graph(new_sizes, new_parents, new_axes).unwrap(), false);
        prop_assert!((one - other).abs() < 1e-11 * one.abs().max(1.0), "{} {}", one, other);
        let turned = ln_evidence(&graph(sizes, parents, vec![0, n - 1]).unwrap(), true);
        prop_assert!((one - turned).abs() < 1e-11 * one.abs().max(1.0), "{} {}", one, turned);
    }

    #[test]
    fn a_graph_with_a_flaw_is_refused(
        (sizes, parents) in acyclic(),
        flaw in 0usize..7,
        place in any::<prop::sample::Index>(),
    ) {
        let (mut sizes, mut parents, mut axes) = (sizes, parents, vec![0]);
        let n = sizes.len();
        let node = place.index(n);
        match flaw {
            0 => sizes[node] = 0,
            1 => parents[node].push(node),
            2 => parents[node].push(n),
            3 => parents[node] = vec![(node + 1) % n; 2],
            4 => axes = vec![node, node],
            5 => axes = vec![],
            _ => {
                // An arrow from the last node to one before it, and the way back.
                let before = place.index(n - 1);
                parents[before].push(n - 1);
                if !parents[n - 1].contains(&before) {
                    parents[n - 1].push(before);
                }
            }
        }
        prop_assert!(graph(sizes, parents, axes).is_err());
    }

    #[test]
    fn a_tensor_keeps_what_it_promises(
        shape in vec(size(), 0..4),
        coordinates in vec(integer(), 0..9),
        counts in vec(integer(), 0..5),
    ) {
        if let Ok(tensor) = CountTensor::new(shape.clone(), &coordinates, &counts) {
            prop_assert_eq!(tensor.shape(), &shape[..]);
            prop_assert_eq!(tensor.n_cells(), counts.len());
            prop_assert!(i64::try_from(tensor.total()).is_ok());
        }
    }

    #[test]
    fn a_model_has_numbers_only(
        alpha in vec(number(), 0..4),
        p in vec(number(), 0..4),
        phi in vec(number(), 0..9),
    ) {
        for model in [
            TopicModel::lda(alpha.clone(), &phi),
            TopicModel::gamma_poisson(alpha.clone(), &p, &phi),
        ].into_iter().flatten() {
            prop_assert_eq!(model.urn().n_topics(), alpha.len());
        }
    }

    #[test]
    fn a_network_is_laid_out_or_refused(
        sizes in vec(size(), 0..6),
        parents in vec(vec(0usize..7, 0..3), 0..6),
        axes in vec(0usize..7, 0..4),
        ties in vec(vec(0usize..7, 0..3), 0..2),
        concentration in number(),
        order in proptest::option::of(vec(0usize..7, 0..6)),
        cells in vec(vec(0i64..3, 4), 0..4),
    ) {
        let prior = Prior { concentration, tables: None };
        if let Ok(network) = Network::new(sizes.clone(), parents, axes.clone(), &ties, prior) {
            let mut cells: Vec<Vec<i64>> =
                cells.into_iter().map(|cell| cell[..axes.len().min(4)].to_vec()).collect();
            cells.sort();
            cells.dedup();
            let shape = axes.iter().map(|&axis| sizes[axis]).collect();
            let counts = vec![2; cells.len()];
            if let Ok(data) = CountTensor::new(shape, &cells.concat(), &counts)
                && let Ok(problem) = Problem::new(&network, &data, order.as_deref())
            {
                prop_assert_eq!(problem.n_tokens(), 2 * cells.len() as u64);
            }
        }
    }

    #[test]
    fn a_state_of_training_is_gone_on_from_or_refused(
        n_sweeps in prop_oneof![0u64..5, Just(u64::MAX)],
        n_kept in prop_oneof![0u64..3, Just(u64::MAX)],
        assignments in vec(prop_oneof![8 => 0u16..2, 1 => any::<u16>()], 5..8),
        parameters in vec(number(), 2..7),
        is_pfa in any::<bool>(),
    ) {
        let documents = CountMatrix::from_dense(&[vec![2, 0, 1], vec![0, 3, 0]]).unwrap();
        let schedule = Schedule { max_iter: 6, burn_in: 1, warm_up: 0, thin: 1, seed: 0 };
        let position = Position::Chain { sweep: n_sweeps };
        let state = ChainState { position, best: None, parameters, n_kept };
        let globals: Box<dyn Globals> = if is_pfa {
            let prior = PfaPrior { topic_word: 0.1, probability: Some((1.0, 1.0)), shape: None };
            Box::new(pfa_globals(&documents, prior, (vec![0.5; 2], vec![0.5; 2]), None, 0))
        } else {
            let prior = LdaPrior { alpha: vec![0.5; 2], beta: 0.1, learned: true };
            Box::new(lda_globals(&documents, prior, 0))
        };
        let mut tokens = MemoryTokens::new(&documents).unwrap();
        let phi = tokens.set_topics(&assignments, 2).and_then(|()| {
            let mut chain = Chain::resumed(globals, tokens, schedule, &state, None)?;
            chain.run(6, 1, &(), |_, _| ())?;
            chain.mean()
        });
        if let Ok(phi) = phi {
            prop_assert!(phi.iter().all(|x| x.is_finite()), "{}", is_pfa);
        }
    }
}
