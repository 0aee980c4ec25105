//! Bursty topics: the sampler against enumeration, calibration, and the same bits on any threads.

use polyabayes::CountMatrix;
use polyabayes::math::{ln_rising, mean_and_error};
use polyabayes::rng::{Key, Purpose, Rng};
use polyabayes::training::{
    BurstState, Chain, Concentration, Globals, LdaGlobals, LdaPrior, MemoryTokens, PfaPrior,
    Schedule,
};
use rand::RngExt;

use crate::calibration::{N_DOCUMENTS, N_TOPICS, N_WORDS, check_uniform, ranks};
use crate::common::{
    MemoryChain, drawing, lda_document, lda_globals, on_one_thread, pfa_globals,
    shares as shares_of, topics, uniform,
};
use crate::training::{assignments, check_visits, result};

/// Words of the tokens of two documents.
const WORDS: [&[usize]; 2] = [&[0, 0, 0, 1], &[0, 1, 1]];
const BETA: f64 = 0.6;

fn tiny() -> CountMatrix {
    CountMatrix::from_dense(&[vec![3, 1], vec![1, 2]]).unwrap()
}

/// Tokens of each document and word in a topic.
fn cells(z: &[u16], topic: u16) -> [[u64; 2]; 2] {
    let (mut found, mut token) = ([[0; 2]; 2], 0);
    for (document, words) in WORDS.iter().enumerate() {
        for &word in *words {
            found[document][word] += u64::from(z[token] == topic);
            token += 1;
        }
    }
    found
}

/// Ways to seat n customers at t tables (Stirling numbers of the first kind), for n up to 3.
const WAYS: [[f64; 4]; 4] =
    [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 2.0, 3.0, 1.0]];

/// Calls `visit` with all numbers of tables by word, their total and the ways to them.
fn seatings(cells: [[u64; 2]; 2], mut visit: impl FnMut([u64; 2], f64)) {
    let [[a, b], [c, d]] = cells.map(|row| row.map(|n| n as usize));
    for (i, j) in (0..=a).flat_map(|i| (0..=b).map(move |j| (i, j))) {
        for (k, l) in (0..=c).flat_map(|k| (0..=d).map(move |l| (k, l))) {
            let ways = WAYS[a][i] * WAYS[b][j] * WAYS[c][k] * WAYS[d][l];
            visit([(i + k) as u64, (j + l) as u64], ways);
        }
    }
}

/// The probability of the words of a topic given their assignment and s, φ integrated out, and the same
/// times E[φ of word 0].
fn of_topic(cells: [[u64; 2]; 2], s: f64) -> [f64; 2] {
    let dirichlet = |t: [u64; 2]| {
        let ln_words: f64 = t.iter().map(|&t| ln_rising(BETA, t)).sum();
        (ln_words - ln_rising(2.0 * BETA, t[0] + t[1])).exp()
    };
    let mean = |t: [u64; 2]| (BETA + t[0] as f64) / (2.0 * BETA + (t[0] + t[1]) as f64);
    let totals = cells.map(|row| row[0] + row[1]);
    if s.is_infinite() {
        let t = [cells[0][0] + cells[1][0], cells[0][1] + cells[1][1]];
        return [dirichlet(t), dirichlet(t) * mean(t)];
    }
    let ln_lengths: f64 = totals.iter().map(|&n| ln_rising(s, n)).sum();
    let mut sums = [0.0; 2];
    seatings(cells, |t, ways| {
        let ln_s = (t[0] + t[1]) as f64 * s.ln();
        let value = ways * (ln_s - ln_lengths).exp() * dirichlet(t);
        sums[0] += value;
        sums[1] += value * mean(t);
    });
    sums
}

/// Points of s/(s + 100), and their weights: denser near 0, where the values change.
fn shares(n_points: u32) -> impl Iterator<Item = (f64, f64)> {
    let places = (0..n_points).map(move |i| (f64::from(i) + 0.5) / f64::from(n_points));
    places.map(move |x| (x.powi(4), 4.0 * x.powi(3) / f64::from(n_points)))
}

/// The same integrated over s/(s + 100), uniform, and times the mean of that.
fn of_learned(cells: [[u64; 2]; 2]) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for (share, width) in shares(4_000) {
        let value = of_topic(cells, 100.0 * share / (1.0 - share))[0] * width;
        sums[0] += value;
        sums[1] += value * share;
    }
    sums
}

fn ln_documents(z: &[u16], alpha: &[f64; 2]) -> f64 {
    let of_topic = |k: usize| {
        let totals = cells(z, k as u16).map(|row| row[0] + row[1]);
        totals.iter().map(|&n| ln_rising(alpha[k], n)).sum::<f64>()
    };
    (0..2).map(of_topic).sum()
}

const ALPHA: [f64; 2] = [0.4, 0.9];

fn fixed(n_topics: usize, values: &[f64]) -> Option<BurstState> {
    BurstState::new(Concentration::Fixed(values.to_vec()), n_topics).unwrap()
}

fn learned(n_topics: usize) -> Option<BurstState> {
    BurstState::new(Concentration::PerTopic, n_topics).unwrap()
}

fn globals(counts: &CountMatrix, bursts: Option<BurstState>, seed: u64) -> LdaGlobals {
    let prior = LdaPrior { alpha: ALPHA.to_vec(), beta: BETA, learned: false };
    lda_globals(counts, prior, seed).with_bursts(bursts)
}

#[test]
fn bursty_lda_visits_assignments_as_often_as_their_posterior_says() {
    let counts = tiny();
    for (seed, s) in [(11, [0.7, 3.0]), (12, [f64::INFINITY, 0.3])] {
        let mut sampler = uniform(&counts, globals(&counts, fixed(2, &s), seed), drawing(seed));
        check_visits(&mut sampler, |z| {
            let ln_topic = |k: usize| of_topic(cells(z, k as u16), s[k])[0].ln();
            ln_documents(z, &ALPHA) + ln_topic(0) + ln_topic(1)
        });
    }
    let mut sampler = uniform(&counts, globals(&counts, learned(2), 3), drawing(3));
    check_visits(&mut sampler, |z| {
        let ln_topic = |k: u16| of_learned(cells(z, k))[0].ln();
        ln_documents(z, &ALPHA) + ln_topic(0) + ln_topic(1)
    });
}

#[test]
fn bursty_factor_analysis_visits_assignments_as_often_as_their_posterior_says() {
    let counts = tiny();
    let (r, p, s) = (vec![0.7, 1.4], vec![0.6, 0.3], [0.5, 4.0]);
    let prior = PfaPrior { topic_word: BETA, probability: None, shape: None };
    let globals = pfa_globals(&counts, prior, (r.clone(), p.clone()), None, 4);
    let mut sampler = uniform(&counts, globals.with_bursts(fixed(2, &s)), drawing(4));
    check_visits(&mut sampler, |z| {
        let ln_topic = |k: usize| {
            let own = cells(z, k as u16);
            let totals = own.map(|row| row[0] + row[1]);
            let ln_urn = |&n: &u64| ln_rising(r[k], n) + n as f64 * p[k].ln();
            totals.iter().map(ln_urn).sum::<f64>() + of_topic(own, s[k])[0].ln()
        };
        ln_topic(0) + ln_topic(1)
    });
}

/// Means over batches of sweeps against exact moments of φ and s.
#[test]
fn moments_of_topics_and_concentrations_are_those_of_their_posterior() {
    const BATCHES: usize = 40;
    const SWEEPS: usize = if cfg!(debug_assertions) { 1_000 } else { 2_500 };
    let counts = tiny();
    let mut sampler = uniform(&counts, globals(&counts, learned(2), 5), drawing(5));
    let mut batches = vec![vec![]; 2];
    on_one_thread(|| {
        for _ in 0..BATCHES {
            let mut sums = [0.0; 2];
            for _ in 0..SWEEPS {
                sampler.sweep(&()).unwrap();
                let s = sampler.parameters()[3].exp();
                sums[0] += s / (s + 100.0);
                sums[1] += sampler.weights()[0];
            }
            batches.iter_mut().zip(sums).for_each(|(batch, sum)| batch.push(sum / SWEEPS as f64));
        }
    });
    let (mut total, mut exact) = (0.0, [0.0; 2]);
    for z in assignments(7) {
        let ln_urns = ln_documents(&z, &ALPHA);
        let [value, share] = of_learned(cells(&z, 0));
        let rest = ln_urns.exp() * of_learned(cells(&z, 1))[0];
        total += value * rest;
        exact[0] += share * rest;
        // φ by quadrature over s, too.
        for (share, width) in shares(400) {
            exact[1] += of_topic(cells(&z, 0), 100.0 * share / (1.0 - share))[1] * width * rest;
        }
    }
    for (batch, exact) in batches.iter().zip(exact) {
        let (mean, error) = mean_and_error(batch);
        assert!((mean - exact / total).abs() < 4.0 * error, "{mean} {error} {}", exact / total);
        assert!(error < 0.01, "{error}");
    }
}

/// A document of its own versions of the topics.
fn document(phi: &[Vec<f64>], s: &[f64], alpha: &[f64], rng: &mut Rng) -> Vec<i64> {
    let shapes =
        |(phi, s): (&Vec<f64>, &f64)| phi.iter().map(|phi| (phi * s).max(1e-300)).collect();
    let own: Vec<Vec<f64>> = phi.iter().zip(s).map(shapes).collect();
    let own: Vec<Vec<f64>> = own.iter().map(|shapes| shares_of(shapes, rng)).collect();
    lda_document(&own, alpha, 25, rng)
}

fn functions(phi: &[f64], ln_s: &[f64], alpha: &[f64]) -> Vec<f64> {
    let largest = ln_s.iter().copied().fold(f64::MIN, f64::max);
    let squares = phi.iter().map(|x| x * x).sum();
    vec![squares, ln_s.iter().sum(), largest, alpha.iter().sum()]
}

fn bursty_ranks(seed: u64, thin: usize) -> Vec<usize> {
    let mut rng = Key::new(seed, Purpose::Initialise).rng();
    let exponential = |mean: f64, rng: &mut Rng| -mean * rng.random::<f64>().ln();
    let alpha: Vec<f64> = (0..N_TOPICS).map(|_| exponential(0.5, &mut rng)).collect();
    let beta = exponential(0.7, &mut rng).max(0.01);
    let phi = topics(N_TOPICS, N_WORDS, beta, &mut rng);
    let s: Vec<f64> = (0..N_TOPICS)
        .map(|_| rng.random::<f64>())
        .map(|share| 100.0 * share / (1.0 - share))
        .collect();
    let rows: Vec<_> = (0..N_DOCUMENTS).map(|_| document(&phi, &s, &alpha, &mut rng)).collect();
    let counts = CountMatrix::from_dense(&rows).unwrap();
    let prior = LdaPrior { alpha: vec![0.5; N_TOPICS], beta: 0.7, learned: true };
    let globals = lda_globals(&counts, prior, seed).with_bursts(learned(N_TOPICS));
    let mut sampler = uniform(&counts, globals, drawing(seed));
    let ln_s: Vec<f64> = s.iter().map(|s| s.ln()).collect();
    let truth = functions(&phi.concat(), &ln_s, &alpha);
    let of_state = |sampler: &MemoryChain<'_>| {
        let parameters = sampler.parameters();
        functions(&sampler.weights(), &parameters[N_TOPICS + 1..], &parameters[..N_TOPICS])
    };
    ranks(&truth, &mut sampler, thin, of_state)
}

const NAMES: [&str; 4] = ["topics", "concentrations", "largest concentration", "alpha"];

#[test]
fn bursty_topics_are_calibrated() {
    let ranks: Vec<_> = (0..100).map(|seed| bursty_ranks(seed, 25)).collect();
    check_uniform(&NAMES, &ranks);
}

#[test]
#[ignore = "slow"]
fn bursty_topics_are_calibrated_over_many_documents() {
    let ranks: Vec<_> = (1_000..2_500).map(|seed| bursty_ranks(seed, 100)).collect();
    check_uniform(&NAMES, &ranks);
}

#[test]
fn any_number_of_threads_and_any_interruption_gives_the_same_bits() {
    let mut rng = Key::new(8, Purpose::Initialise).rng();
    let phi = topics(4, 300, 0.05, &mut rng);
    let rows: Vec<_> =
        (0..400).map(|_| document(&phi, &[5.0, 20.0, 100.0, 1e4], &[0.2; 4], &mut rng)).collect();
    let counts = CountMatrix::from_dense(&rows).unwrap();
    let schedule = Schedule { max_iter: 9, burn_in: 5, warm_up: 4, thin: 2, seed: 7 };
    for (n_topics, alpha) in [(5, 0.1), (300, 0.01)] {
        let globals = || {
            let prior = LdaPrior { alpha: vec![alpha; n_topics], beta: 0.05, learned: true };
            Box::new(lda_globals(&counts, prior, 7).with_bursts(learned(n_topics)))
        };
        let run = |n_threads: usize, stop: u64| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            pool.install(|| {
                let tokens = MemoryTokens::new(&counts).unwrap();
                let mut chain = Chain::new(globals(), tokens, schedule, None, None, &()).unwrap();
                chain.run(stop, 3, &(), |_, _| ()).unwrap();
                let mut tokens = MemoryTokens::new(&counts).unwrap();
                tokens.set_topics(&chain.tokens().topics(), n_topics).unwrap();
                let kept = chain.kept_sum();
                let drawn = chain.kept_coefficients().to_vec();
                let resumed = Chain::resumed(globals(), tokens, schedule, &chain.state(), kept);
                let mut chain = resumed.unwrap().with_kept_coefficients(drawn).unwrap();
                assert!(chain.mean(true).is_ok() && chain.counts().is_empty());
                chain.run(u64::MAX, 3, &(), |_, _| ()).unwrap();
                (chain.kept_coefficients().to_vec(), result(&mut chain))
            })
        };
        let one = run(1, 0);
        assert_eq!(one.0.len(), 4 * n_topics);
        assert!(one.0.iter().any(|x| (x - 300f64.ln()).abs() > 0.1));
        for (n_threads, stop) in [(2, 3), (8, 6), (1, 8)] {
            assert!(run(n_threads, stop) == one, "{n_topics}, {n_threads}, {stop}");
        }
    }
}
