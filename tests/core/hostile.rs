//! Constructors of arrays, graphs and states refuse any input or keep their promises.
//!
//! `PROPTEST_CASES` sets the number of cases; `make fuzz` takes many.

use polyabayes::allocation::{Network, Prior, Problem};
use polyabayes::counts::CountTensor;
use polyabayes::document::FiniteMixture;
use polyabayes::document::laws::mixture::Component;
use polyabayes::training::{
    Chain, ChainState, Globals, LdaPrior, MemoryTokens, PfaPrior, Position, PosteriorMeans,
    Schedule,
};
use polyabayes::{CountMatrix, TopicModel};
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
    fn a_tensor_keeps_what_it_promises(
        shape in vec(size(), 0..4),
        coordinates in vec(integer(), 0..9),
        counts in vec(integer(), 0..5),
    ) {
        if let Ok(tensor) = CountTensor::new(shape.clone(), &coordinates, &counts) {
            prop_assert_eq!(tensor.shape(), &shape[..]);
            prop_assert_eq!(tensor.n_cells(), counts.len());
            prop_assert!(i64::try_from(tensor.total()).is_ok());
            prop_assert!(coordinates.chunks(shape.len()).is_sorted_by(|a, b| a < b));
            for (cell, count) in tensor.cells() {
                let is_inside = |(&i, &n)| i == u32::MAX || (i as usize) < n;
                prop_assert!(count > 0 && cell.iter().zip(&shape).all(is_inside));
            }
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
        let means = tokens.set_topics(&assignments, 2).and_then(|()| {
            let mut chain = Chain::resumed(globals, tokens, schedule, &state, None)?;
            chain.run(6, 1, &(), |_, _| ())?;
            chain.mean(false)
        });
        if let Ok(PosteriorMeans { topics, std, others }) = means {
            prop_assert!([topics, std, others].concat().iter().all(|x| x.is_finite()), "{}", is_pfa);
        }
    }
}

#[test]
fn mixtures_with_a_flaw_are_refused() {
    let new = |weights: &[f64], sizes: &[usize], last: f64| {
        let rows = [1.0, 0.5, 0.5, 1.0, 0.25, last];
        FiniteMixture::new(Component::Multinomial, weights, &rows, sizes)
    };
    assert!(new(&[0.5, 0.5], &[1, 2], 0.75).is_ok());
    for (sizes, last) in [(&[][..], 0.75), (&[2, 2], 0.75), (&[3, 0], 0.75), (&[1, 2], 0.7)] {
        assert!(new(&[0.5, 0.5], sizes, last).is_err());
    }
    for weights in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[1.0]] {
        assert!(new(weights, &[1, 2], 0.75).is_err());
    }
}

#[test]
fn tensors_and_graphs_with_a_flaw_are_refused() {
    let tensor = |cells: &[i64], counts: &[i64]| CountTensor::new(vec![2, 3], cells, counts);
    for cell in [[0, 3], [-2, 0]] {
        assert!(tensor(&cell, &[1]).is_err());
    }
    for counts in [&[0][..], &[-1], &[1, 1]] {
        assert!(tensor(&[0, 0], counts).is_err());
    }
    assert!(tensor(&[0, 1, 0, 1], &[1, 1]).is_err() && tensor(&[1, 0, 0, 0], &[1, 1]).is_err());
    assert!(tensor(&[0, 0, 0, 1], &[1, i64::MAX]).is_err());
    let graph = |sizes: [usize; 2], parents: [&[usize]; 2], axes: &[usize]| {
        let prior = Prior { concentration: 1.3, tables: None };
        let parents = parents.map(<[usize]>::to_vec).to_vec();
        Network::new(sizes.to_vec(), parents, axes.to_vec(), &[], prior)
    };
    assert!(graph([2, 2], [&[], &[0]], &[0]).is_ok());
    for parents in [[&[][..], &[1]], [&[], &[2]], [&[], &[0, 0]], [&[1], &[0]]] {
        assert!(graph([2, 2], parents, &[0]).is_err());
    }
    for (sizes, axes) in [([0, 2], &[0][..]), ([2, 2], &[0, 0]), ([2, 2], &[])] {
        assert!(graph(sizes, [&[], &[0]], axes).is_err());
    }
}
