//! Whatever arrays, graphs and states the constructors get, they refuse or keep their promises.
//!
//! `PROPTEST_CASES` sets the number of cases; `make fuzz` takes many.

use polyabayes::allocation::{Network, Prior, Problem};
use polyabayes::counts::CountTensor;
use polyabayes::training::{
    LdaPrior, LdaSampler, PfaPrior, PfaSampler, Progress, Schedule, State, fit,
};
use polyabayes::{CountMatrix, TopicModel};
use proptest::collection::vec;
use proptest::prelude::*;

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
        let schedule = Schedule { max_iter: 6, burn_in: 1, warm_up: 0, thin: 1 };
        let state = State { n_sweeps, assignments, parameters };
        let (phi, prior) = if is_pfa {
            let prior = PfaPrior { topic_word: 0.1, probability: Some((1.0, 1.0)), shape: None };
            let sampler = PfaSampler::new(&documents, prior, vec![0.5; 2], vec![0.5; 2], 0);
            let start = Some(Progress { state, n_kept, sum: None });
            let fitted = fit(&mut sampler.unwrap(), schedule, start, 6, &());
            (fitted.map(|fit| fit.parameters.phi), "gamma")
        } else {
            let prior = LdaPrior { alpha: vec![0.5; 2], beta: 0.1, learned: true };
            let start = Some(Progress { state, n_kept, sum: None });
            let sampler = LdaSampler::new(&documents, prior, 0);
            let fitted = fit(&mut sampler.unwrap(), schedule, start, 6, &());
            (fitted.map(|fit| fit.parameters.phi), "Dirichlet")
        };
        if let Ok(phi) = phi {
            prop_assert!(phi.iter().all(|x| x.is_finite()), "{}", prior);
        }
    }
}
