//! Unbiased by enumeration: the mean of Ẑ over all that an estimator may choose is Z, to 1e-12.
//!
//! An estimator is a piecewise constant function of the uniform numbers it draws. A tape takes the
//! place of the generator. Given the numbers before it, the pieces of the next one lie between the
//! points where the result changes under some continuation of the tape; bisection finds them to
//! the last of 53 bits. The mean is the sum over pieces of length times the mean that follows. A
//! change that no continuation shows would leave the mean wrong: it cannot hide a bias.

use std::cell::RefCell;
use std::convert::Infallible;

use polyabayes::document::mean_field::Order;
use polyabayes::document::{
    Conditionals, Form, MeanField, Runs, Start, annealed, chib, l2r, left_to_right, mean_field, smc,
};
use polyabayes::rng::{Key, LANES, Lanes, Purpose, Rng, Stream, UniformLanes};
use polyabayes::urn::{LocalUrn, Urn};
use polyabayes::{CountMatrix, Error};
use rand::{Rng as _, TryRng};

/// Bits of a number on the tape.
const BITS: u32 = f64::MANTISSA_DIGITS;

/// Continuations of the tape under which results are compared.
const PROBES: u64 = 6;

/// Intervals whose ends are compared.
const CELLS: u64 = 4;

/// Which numbers come from the tape; the others are arbitrary and always the same.
#[derive(Clone, Copy)]
struct Layout {
    /// The first scalar numbers, this many.
    n_scalars: usize,
    /// The first lanes, this many,
    n_lanes: usize,
    /// but in the first draws.
    n_skipped: usize,
    /// Names the others.
    seed: u64,
}

impl Layout {
    /// Scalar numbers only.
    const SCALARS: Layout = Layout { n_scalars: usize::MAX, n_lanes: 0, n_skipped: 0, seed: 0 };

    /// The first lanes only.
    fn lanes(n_lanes: usize) -> Self {
        Layout { n_scalars: 0, n_lanes, n_skipped: 0, seed: 0 }
    }
}

/// Numbers in units of 2^-53: a script, then a continuation.
struct Tape {
    layout: Layout,
    script: Vec<u64>,
    continuation: Rng,
    others: Rng,
    n_taken: usize,
    n_scalars: usize,
    n_draws: usize,
}

impl Tape {
    fn new(layout: Layout) -> Self {
        let (continuation, others) = (rng(0), rng(0));
        let script = Vec::new();
        Tape { layout, script, continuation, others, n_taken: 0, n_scalars: 0, n_draws: 0 }
    }

    fn rewind(&mut self, probe: u64) {
        self.continuation = rng(probe);
        self.others = rng(PROBES + self.layout.seed);
        (self.n_taken, self.n_scalars, self.n_draws) = (0, 0, 0);
    }

    fn take(&mut self) -> u64 {
        self.n_taken += 1;
        let scripted = self.script.get(self.n_taken - 1).copied();
        scripted.unwrap_or_else(|| number(&mut self.continuation))
    }

    fn scalar(&mut self) -> u64 {
        self.n_scalars += 1;
        let on_tape = self.n_scalars <= self.layout.n_scalars;
        if on_tape { self.take() } else { number(&mut self.others) }
    }

    fn lanes(&mut self) -> Lanes {
        self.n_draws += 1;
        let n_on_tape =
            if self.n_draws > self.layout.n_skipped { self.layout.n_lanes } else { 0 };
        std::array::from_fn::<_, LANES, _>(|lane| {
            let on_tape = lane < n_on_tape;
            let bits = if on_tape { self.take() } else { number(&mut self.others) };
            bits as f64 / (1u64 << BITS) as f64
        })
    }
}

fn rng(name: u64) -> Rng {
    Key::new(name, Purpose::Score).rng()
}

fn number(rng: &mut Rng) -> u64 {
    rng.next_u64() >> (u64::BITS - BITS)
}

/// A tape in the place of random streams.
#[derive(Clone, Copy)]
struct Reader<'a>(&'a RefCell<Tape>);

impl TryRng for Reader<'_> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.0.borrow_mut().scalar() >> (BITS - u32::BITS)) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.borrow_mut().scalar() << (u64::BITS - BITS))
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unimplemented!("estimators draw numbers")
    }
}

impl Stream for Reader<'_> {
    type Lanes = Self;

    fn lanes(&mut self) -> Self {
        *self
    }
}

impl UniformLanes for Reader<'_> {
    fn next(&mut self) -> Lanes {
        self.0.borrow_mut().lanes()
    }
}

/// All that an estimator may choose.
struct Enumeration<F> {
    tape: RefCell<Tape>,
    estimate: F,
    /// Most numbers taken.
    longest: usize,
}

impl<F: Fn(Reader<'_>) -> f64> Enumeration<F> {
    fn new(layout: Layout, estimate: F) -> Self {
        Enumeration { tape: RefCell::new(Tape::new(layout)), estimate, longest: 0 }
    }

    /// Result and numbers taken.
    fn run(&self, probe: u64) -> (f64, usize) {
        self.tape.borrow_mut().rewind(probe);
        let value = (self.estimate)(Reader(&self.tape));
        (value, self.tape.borrow().n_taken)
    }

    /// Mean over the numbers after the script.
    fn mean(&mut self) -> f64 {
        let (value, n_taken) = self.run(0);
        if n_taken <= self.tape.borrow().script.len() {
            self.longest = self.longest.max(n_taken);
            return value;
        }
        self.tape.get_mut().script.push(0);
        let starts = self.pieces();
        let ends = starts[1..].iter().copied().chain([1 << BITS]);
        let terms = starts.iter().zip(ends).map(|(&start, end)| {
            self.put(start);
            (end - start) as f64 / (1u64 << BITS) as f64 * self.mean()
        });
        let mean = terms.sum();
        self.tape.get_mut().script.pop();
        mean
    }

    /// Where the pieces of the script's last number start.
    fn pieces(&self) -> Vec<u64> {
        let last = (1 << BITS) - 1;
        let mut starts = vec![0];
        for cell in 0..CELLS {
            self.split(last * cell / CELLS, last * (cell + 1) / CELLS, &mut starts);
        }
        starts
    }

    /// Finds the starts of pieces in `low + 1..=high`.
    fn split(&self, low: u64, high: u64, starts: &mut Vec<u64>) {
        let differs = |&probe: &u64| self.behaviour(low, probe) != self.behaviour(high, probe);
        let Some(probe) = (0..PROBES).find(differs) else { return };
        let at_low = self.behaviour(low, probe);
        let (mut same, mut other) = (low, high);
        while other - same > 1 {
            let middle = same.midpoint(other);
            let moves = self.behaviour(middle, probe) == at_low;
            *(if moves { &mut same } else { &mut other }) = middle;
        }
        self.split(low, same, starts);
        starts.push(other);
        self.split(other, high, starts);
    }

    fn behaviour(&self, number: u64, probe: u64) -> (u64, usize) {
        self.put(number);
        let (value, n_taken) = self.run(probe);
        (value.to_bits(), n_taken)
    }

    /// Sets the script's last number.
    fn put(&self, number: u64) {
        *self.tape.borrow_mut().script.last_mut().unwrap() = number;
    }
}

/// A document, with the weights of all its colourings.
struct Case {
    urn: LocalUrn,
    colourings: Vec<(Vec<u16>, f64)>,
    z: f64,
}

impl Case {
    fn new(a: &[f64], q: &[f64], counts: &[i64]) -> Self {
        let documents = CountMatrix::from_dense(&[counts.to_vec()]).unwrap();
        let urn = Urn::new(a.to_vec(), q.to_vec()).unwrap();
        let urn = LocalUrn::new(&urn, documents.document(0)).unwrap();
        let tokens = (0..).zip(counts).flat_map(|(word, &y)| std::iter::repeat_n(word, y as usize));
        let mut colourings = vec![(Vec::new(), 1.0)];
        for word in tokens {
            let longer = |(topics, weight): &(Vec<u16>, f64)| -> Vec<_> {
                let with = |k: usize| {
                    let n = topics.iter().filter(|&&topic| usize::from(topic) == k).count();
                    let weight = weight * (a[k] + n as f64) * q[word * a.len() + k];
                    ([&topics[..], &[k as u16]].concat(), weight)
                };
                (0..a.len()).map(with).collect()
            };
            colourings = colourings.iter().flat_map(longer).collect();
        }
        let z = colourings.iter().map(|(_, weight)| weight).sum();
        Case { urn, colourings, z }
    }

    /// E[Ẑ] / Z, and the most numbers that Ẑ took.
    fn ratio(
        &self,
        layout: Layout,
        ln_urn_sums: impl Fn(&LocalUrn, &mut Reader<'_>) -> Result<Vec<f64>, Error>,
    ) -> (f64, usize) {
        let estimate = |mut reader: Reader<'_>| ln_urn_sums(&self.urn, &mut reader).unwrap()[0].exp();
        let mut enumeration = Enumeration::new(layout, estimate);
        let mean = enumeration.mean();
        (mean / self.z, enumeration.longest)
    }
}

/// Two topics, a repeated word.
fn pair() -> Case {
    Case::new(&[0.37, 1.21], &[0.62, 0.17, 0.23, 0.71], &[2, 1])
}

/// Two topics, two repeated words.
fn pairs() -> Case {
    Case::new(&[0.83, 0.29], &[0.41, 0.13, 0.19, 0.67], &[2, 2])
}

/// Three topics, one of which cannot produce the first word.
fn triple() -> Case {
    Case::new(&[0.71, 0.23, 1.37], &[0.37, 0.0, 0.11, 0.19, 0.53, 0.29], &[1, 2])
}

fn cases() -> [Case; 3] {
    [pair(), pairs(), triple()]
}

fn runs(size: &usize) -> Runs<'_> {
    Runs { n: 1, sizes: std::slice::from_ref(size) }
}

fn assert_one(ratio: f64) {
    assert!((ratio - 1.0).abs() < 1e-12, "{:e}", ratio - 1.0);
}

#[test]
fn smc_of_two_particles_is_unbiased() {
    for case in cases() {
        for lookahead in [false, true] {
            let (ratio, n_taken) = case.ratio(Layout::SCALARS, |urn, rng| {
                smc::ln_urn_sums(urn, lookahead, 1, 2, rng, &())
            });
            assert_one(ratio);
            // An effective sample size is never below one, half of two.
            assert_eq!(n_taken as u64, 2 * case.urn.n_tokens());
        }
    }
}

#[test]
fn smc_that_resamples_is_unbiased() {
    let case = Case::new(&[0.05, 0.004], &[0.9, 1.0, 1.0, 0.02, 0.3, 0.8], &[1, 1, 1]);
    for lookahead in [false, true] {
    let t = std::time::Instant::now();
        let (ratio, n_taken) = case.ratio(Layout::SCALARS, |urn, rng| {
            smc::ln_urn_sums(urn, lookahead, 1, 3, rng, &())
        });
        println!("resampling {lookahead} {n_taken} {:?}", t.elapsed());
        assert_one(ratio);
        assert!(n_taken as u64 > 3 * case.urn.n_tokens());
    }
}

#[test]
fn smc_with_weights_near_underflow_is_unbiased() {
    let q = [0.0, 0.7, 0.4, 0.9, 0.0, 0.0, 0.3, 0.2, 0.8];
    let case = Case::new(&[1e-130, 0.6, 0.3], &q, &[1, 1, 1]);
    let (ratio, _) =
        case.ratio(Layout::SCALARS, |urn, rng| smc::ln_urn_sums(urn, false, 1, 2, rng, &()));
    assert_one(ratio);
}

#[test]
fn mean_of_products_is_unbiased() {
    let form = Form::MeanOfProducts;
    for (case, size) in [(pair(), 1), (pairs(), 1), (triple(), 1), (pair(), 2)] {
        let (ratio, _) = case.ratio(Layout::lanes(size), |urn, rng| {
            left_to_right::ln_urn_sums(urn, form, runs(&size), rng, &())
        });
        assert_one(ratio);
    }
}

/// The enumeration sees the biases that there are.
#[test]
fn other_forms_of_left_to_right_are_biased() {
    for (form, n_lanes) in [(Form::ProductOfMeans, 2), (Form::Sequential, 1)] {
        let (ratio, _) = pair().ratio(Layout::lanes(n_lanes), |urn, rng| {
            left_to_right::ln_urn_sums(urn, form, runs(&2), rng, &())
        });
        assert!((ratio - 1.0).abs() > 1e-3, "{form:?}: {ratio}");
    }
}

#[test]
fn l2r_with_exact_conditionals_is_unbiased() {
    let thrice = Case::new(&[0.37, 1.21], &[0.62, 0.17, 0.23, 0.71], &[3, 1]);
    for (case, n_tokens) in [(pair(), 2), (pairs(), 2), (triple(), 2), (thrice, 3)] {
        // At most two numbers for each token of the first repeated word, and after it none matter.
        let layout = Layout { n_scalars: 2 * n_tokens, ..Layout::lanes(1) };
    let t = std::time::Instant::now();
        let (ratio, n) = case.ratio(layout, |urn, rng| {
            l2r::ln_urn_sums(urn, Conditionals::Exact, runs(&1), rng, &())
        });
        println!("l2r {n} {:?}", t.elapsed());
        assert_one(ratio);
    }
}

#[test]
fn l2r_with_sampled_conditionals_is_unbiased() {
    for case in cases() {
    let t = std::time::Instant::now();
        let (ratio, n) = case.ratio(Layout::lanes(1), |urn, rng| {
            l2r::ln_urn_sums(urn, Conditionals::Sampled(2), runs(&1), rng, &())
        });
        println!("l2r sampled {n} {:?}", t.elapsed());
        assert_one(ratio);
    }
}

#[test]
fn mean_field_is_unbiased() {
    for case in cases() {
        for (order, size) in [(Order::First, 1), (Order::Second, 1), (Order::First, 2)] {
            let mean_field = MeanField { order, n_iterations: 3 };
            let (ratio, _) = case.ratio(Layout::SCALARS, |urn, rng| {
                mean_field::ln_urn_sums(urn, mean_field, runs(&size), rng, &())
            });
            assert_one(ratio);
        }
    }
}

#[test]
fn annealing_is_unbiased() {
    for case in [pair(), triple()] {
        for start in [Start::Prior, Start::MeanField] {
            for n_temperatures in [2, 3] {
    let t = std::time::Instant::now();
                let (ratio, n) = case.ratio(Layout::lanes(1), |urn, rng| {
                    annealed::ln_urn_sums(urn, start, 1, n_temperatures, rng, &())
                });
        println!("annealed {n} {:?} {:e}", t.elapsed(), ratio-1.);
                assert_one(ratio);
            }
        }
    }
}

/// From draws of the posterior, the mean of 1/Ẑ is 1/Z.
#[test]
fn reversed_annealing_is_unbiased() {
    for case in [pair(), triple()] {
        for start in [Start::Prior, Start::MeanField] {
            for n_temperatures in [2, 3] {
    let t = std::time::Instant::now();
                let terms = case.colourings.iter().map(|(topics, weight)| {
                    if *weight == 0. { return 0.}
                    let run = |mut rng: Reader<'_>| annealed::ln_urn_sums_reversed(&case.urn, start, topics, 1, n_temperatures, &mut rng, &());
                    weight * Enumeration::new(Layout::lanes(1), |rng| (-run(rng).unwrap()[0]).exp()).mean()
                });
                let ratio = terms.sum::<f64>();
        println!("reversed {:?} {:e}", t.elapsed(), ratio-1.);
                assert_one(ratio);
            }
        }
    }
}

/// For any state k* that the search finds.
#[test]
fn chib_is_unbiased() {
    for case in [pair(), triple()] {
        for seed in 0..3 {
        for n_samples in [1, 2] {
            let off_tape = Layout { n_scalars: 0, n_lanes: 0, n_skipped: 0, seed };
    let t = std::time::Instant::now();
        let e = Enumeration::new(off_tape, |mut rng| chib::ln_urn_sums(&case.urn, 1, 1, &mut rng, &()).unwrap()[0]);
        e.run(0);
        let n = e.tape.borrow().n_draws;
            let layout = Layout { n_scalars: 1, n_lanes: 1, n_skipped: n - case.urn.n_tokens() as usize, seed };
                let (ratio, n) = case.ratio(layout, |urn, rng| {
                    chib::ln_urn_sums(urn, 1, n_samples, rng, &())
                });
        println!("chib {n} {:?} {:e}", t.elapsed(), ratio-1.);
                assert_one(ratio);
            }
        }
    }
}
