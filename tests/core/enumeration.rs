//! Unbiased by enumeration: the mean of Ẑ over all that an estimator may choose is Z, to 1e-12.
//!
//! An estimator is a piecewise constant function of the uniform numbers that it takes. Here they
//! come from a tape. Given the numbers before it, a piece of the next number ends where, under some
//! continuation of the tape, the result changes; bisection finds that place to the last of 53 bits.
//! The mean is the sum over pieces of their length times the mean of what follows. A change that is
//! overlooked makes the mean wrong: it cannot hide a bias, but can look like one, until there are
//! more continuations and points at which results are compared.

use std::cell::RefCell;
use std::convert::Infallible;

use polyabayes::document::estimators::mean_field::UpdateRule;
use polyabayes::document::estimators::{annealed, chib, l2r, left_to_right, mean_field, smc};
use polyabayes::document::{Conditionals, Form, MeanField, Runs, Start};
use polyabayes::rng::{Key, LANES, Lanes, Purpose, Rng, Stream, UniformLanes};
use polyabayes::urn::{BurstTarget, LocalUrn, TopicChains, Urn, UrnTarget};
use polyabayes::{CountMatrix, Error, Estimate};
use rand::{Rng as _, TryRng};

/// Bits of a number on the tape.
const BITS: u32 = f64::MANTISSA_DIGITS;

/// The greatest of them.
const LAST: u64 = (1 << BITS) - 1;

/// Continuations of the tape under which results are compared, and those for the first number, half as
/// many for each after it: what it does may show only where many others are as they must be.
const PROBES: usize = 16;
const MOST_PROBES: usize = 512;

/// Results are compared at distances 1/2, 1/4, ... from both ends of a number's range, so often.
const HALVINGS: u32 = 5;

/// Numbers that come from the tape; the others are arbitrary and always the same.
#[derive(Clone)]
struct Layout {
    /// The first scalar numbers, this many.
    n_scalars: usize,
    /// Numbers of the first lanes, this many,
    n_lanes: usize,
    /// but for the first draws, which are these.
    skipped: Vec<u64>,
}

const SCALARS: Layout = Layout { n_scalars: usize::MAX, n_lanes: 0, skipped: Vec::new() };

fn lanes(n_lanes: usize) -> Layout {
    Layout { n_scalars: 0, n_lanes, skipped: Vec::new() }
}

/// Numbers in units of 2^-53: a script, then a continuation.
struct Tape {
    layout: Layout,
    script: Vec<u64>,
    /// The probe, as a part of all.
    probe: f64,
    continuation: Rng,
    others: Rng,
    n_taken: usize,
    n_scalars: usize,
    n_draws: usize,
}

impl Tape {
    fn new(layout: Layout, script: Vec<u64>, probe: f64) -> Self {
        let (continuation, others) = (rng(0), rng(1));
        let (n_taken, n_scalars, n_draws) = (0, 0, 0);
        Tape { layout, script, probe, continuation, others, n_taken, n_scalars, n_draws }
    }

    fn take(&mut self) -> u64 {
        self.n_taken += 1;
        match self.script.get(self.n_taken - 1) {
            Some(&number) => number,
            None => self.continued(),
        }
    }

    /// The probes spread this number evenly, each number in an order of its own.
    fn continued(&mut self) -> u64 {
        let (start, step) = (number(&mut self.continuation), number(&mut self.continuation) | 1);
        let shift = self.probe * (step % MOST_PROBES as u64) as f64 % 1.0;
        (start + (shift * (1u64 << BITS) as f64) as u64) % (1 << BITS)
    }

    fn scalar(&mut self) -> u64 {
        self.n_scalars += 1;
        let on_tape = self.n_scalars <= self.layout.n_scalars;
        if on_tape { self.take() } else { number(&mut self.others) }
    }

    fn lanes(&mut self) -> Lanes {
        self.n_draws += 1;
        let mut lanes = [number(&mut self.others); LANES];
        match self.layout.skipped.get(self.n_draws - 1) {
            Some(&number) => lanes.fill(number),
            None => lanes[..self.layout.n_lanes].fill_with(|| self.take()),
        }
        lanes.map(length)
    }
}

fn rng(name: u64) -> Rng {
    Key::new(name, Purpose::Score).rng()
}

fn number(rng: &mut Rng) -> u64 {
    rng.next_u64() >> (u64::BITS - BITS)
}

/// A number as a part of the unit interval.
fn length(number: u64) -> f64 {
    number as f64 / (1u64 << BITS) as f64
}

/// The tape as a stream.
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

/// The effects of a choice: the bits of the result, and how many numbers were taken.
type Behaviour = (u64, usize);

/// A value of the script's last number, and what it leads to under every continuation.
struct Point {
    number: u64,
    behaviours: Vec<Behaviour>,
}

/// All that an estimator may choose.
struct Enumeration<F> {
    layout: Layout,
    estimate: F,
    script: Vec<u64>,
    /// Most numbers taken.
    n_taken: usize,
}

impl<F: Fn(&mut Reader<'_>) -> f64> Enumeration<F> {
    fn new(layout: Layout, estimate: F) -> Self {
        Enumeration { layout, estimate, script: Vec::new(), n_taken: 0 }
    }

    fn n_probes(&self) -> usize {
        (MOST_PROBES >> self.script.len()).max(PROBES)
    }

    /// The result, and the tape after it.
    fn run(&self, script: Vec<u64>, probe: usize) -> (f64, Tape) {
        let tape = RefCell::new(Tape::new(
            self.layout.clone(),
            script,
            probe as f64 / self.n_probes() as f64,
        ));
        let value = (self.estimate)(&mut Reader(&tape));
        (value, tape.into_inner())
    }

    /// Mean over the numbers after the script.
    fn mean(&mut self) -> f64 {
        let (value, tape) = self.run(self.script.clone(), 0);
        if tape.n_taken <= self.script.len() {
            self.n_taken = self.n_taken.max(tape.n_taken);
            return value;
        }
        let starts = self.pieces();
        let ends = starts.iter().skip(1).copied().chain([1 << BITS]);
        let term = |(&start, end): (&u64, u64)| {
            self.script.push(start);
            let mean = self.mean();
            self.script.pop();
            length(end - start) * mean
        };
        starts.iter().zip(ends).map(term).sum()
    }

    /// Starts of the pieces of the number after the script.
    fn pieces(&self) -> Vec<u64> {
        let lower = (1..=HALVINGS).rev().map(|n| LAST >> n);
        let upper = (2..=HALVINGS).map(|n| LAST - (LAST >> n));
        let numbers = [0].into_iter().chain(lower).chain(upper).chain([LAST]);
        let points: Vec<Point> = numbers.map(|number| self.point(number)).collect();
        let mut starts = vec![0];
        points.windows(2).for_each(|ends| self.split(&ends[0], &ends[1], &mut starts));
        starts
    }

    /// Finds the starts of pieces after `low`, up to `high`.
    fn split(&self, low: &Point, high: &Point, starts: &mut Vec<u64>) {
        let differs = |&probe: &usize| low.behaviours[probe] != high.behaviours[probe];
        let Some(probe) = (0..self.n_probes()).find(differs) else { return };
        let (mut same, mut other) = (low.number, high.number);
        while other - same > 1 {
            let middle = same.midpoint(other);
            let is_same = self.behaviour(middle, probe) == low.behaviours[probe];
            *(if is_same { &mut same } else { &mut other }) = middle;
        }
        let (same, other) = (self.point(same), self.point(other));
        self.split(low, &same, starts);
        starts.push(other.number);
        self.split(&other, high, starts);
    }

    fn point(&self, number: u64) -> Point {
        Point {
            number,
            behaviours: (0..self.n_probes()).map(|probe| self.behaviour(number, probe)).collect(),
        }
    }

    fn behaviour(&self, number: u64, probe: usize) -> Behaviour {
        let (value, tape) = self.run([&self.script[..], &[number]].concat(), probe);
        (value.to_bits(), tape.n_taken)
    }
}

/// A document, and the weights of all its colourings.
struct Case {
    urn: LocalUrn,
    colourings: Vec<(Vec<u16>, f64)>,
    z: f64,
}

impl Case {
    fn new(a: &[f64], q: &[f64], counts: &[i64]) -> Self {
        let documents = CountMatrix::from_dense(&[counts.to_vec()]).unwrap();
        let urn = Urn::new(a.to_vec(), q.to_vec()).unwrap();
        let mut colourings = vec![(Vec::new(), 1.0)];
        for (q, &count) in q.chunks_exact(a.len()).zip(counts) {
            for _ in 0..count {
                let longer = colourings.iter().flat_map(|(topics, weight): &(Vec<u16>, f64)| {
                    (0..).zip(a).zip(q).map(move |((topic, a), q)| {
                        let n = topics.iter().filter(|&&other| other == topic).count();
                        ([&topics[..], &[topic]].concat(), weight * (a + n as f64) * q)
                    })
                });
                colourings = longer.collect();
            }
        }
        let z = colourings.iter().map(|(_, weight)| weight).sum();
        Case { urn: LocalUrn::new(&urn, documents.document(0)).unwrap(), colourings, z }
    }

    /// E Ẑ / Z, and the most numbers that Ẑ takes.
    fn ratio(
        &self,
        layout: Layout,
        ln_urn_sums: impl Fn(&LocalUrn, &mut Reader<'_>) -> Result<Vec<f64>, Error>,
    ) -> (f64, usize) {
        let estimate = |rng: &mut Reader<'_>| ln_urn_sums(&self.urn, rng).unwrap()[0].exp();
        let mut enumeration = Enumeration::new(layout, estimate);
        (enumeration.mean() / self.z, enumeration.n_taken)
    }

    /// Returns the most numbers that Ẑ takes.
    #[track_caller]
    fn assert_unbiased(
        &self,
        layout: Layout,
        ln_urn_sums: impl Fn(&LocalUrn, &mut Reader<'_>) -> Result<Vec<f64>, Error>,
    ) -> usize {
        let (ratio, n_taken) = self.ratio(layout, ln_urn_sums);
        assert_one(ratio);
        n_taken
    }

    /// From topics that are a draw of the posterior, the mean of 1/Ẑ is 1/Z. The first draws, so
    /// many, sweep over these topics, of which there are two: the least and the greatest numbers
    /// lead to the same topics again.
    #[track_caller]
    fn assert_reciprocal_unbiased(
        &self,
        layout: &Layout,
        n_skipped: usize,
        ln_urn_sums: impl Fn(&LocalUrn, &[u16], &mut Reader<'_>) -> Result<Vec<f64>, Error>,
    ) -> usize {
        let (mut ratio, mut n_taken) = (0.0, 0);
        for (topics, weight) in self.colourings.iter().filter(|(_, weight)| *weight > 0.0) {
            let again = topics.iter().cycle().take(n_skipped);
            let skipped = again.map(|&topic| u64::from(topic) * LAST).collect();
            let layout = Layout { skipped, ..*layout };
            let mut reciprocals = Enumeration::new(layout, |rng: &mut Reader<'_>| {
                (-ln_urn_sums(&self.urn, topics, rng).unwrap()[0]).exp()
            });
            // The probability of the topics is weight / Z.
            ratio += weight * reciprocals.mean();
            n_taken = n_taken.max(reciprocals.n_taken);
        }
        assert_one(ratio);
        n_taken
    }
}

/// Draws of all lanes in a run.
fn n_draws(estimate: impl Fn(&mut Reader<'_>) -> Result<Vec<f64>, Error>) -> usize {
    let nothing_on_tape = Enumeration::new(lanes(0), |rng| estimate(rng).unwrap()[0]);
    nothing_on_tape.run(Vec::new(), 0).1.n_draws
}

#[track_caller]
fn assert_one(ratio: f64) {
    assert!((ratio - 1.0).abs() < 1e-12, "1 + {:e}", ratio - 1.0);
}

/// The last with a topic that cannot produce the first word.
fn cases() -> [Case; 3] {
    let three_topics =
        Case::new(&[0.41, 0.23, 0.67], &[0.37, 0.0, 0.31, 0.19, 0.53, 0.29], &[1, 2]);
    [two_topics(&[2, 1]), two_topics(&[2, 2]), three_topics]
}

fn two_topics(counts: &[i64]) -> Case {
    Case::new(&[0.31, 0.23], &[0.41, 0.53, 0.67, 0.29], counts)
}

fn one_run(size: &usize) -> Runs<'_> {
    Runs { n: 1, sizes: std::slice::from_ref(size) }
}

#[test]
fn smc_of_two_particles_is_unbiased() {
    for case in cases() {
        for lookahead in [false, true] {
            let n_taken = case.assert_unbiased(SCALARS, |urn, rng| {
                smc::ln_urn_sums(urn, lookahead, 1, 2, rng, &())
            });
            // Two particles never resample: their effective number is at least one.
            assert_eq!(n_taken as u64, 2 * case.urn.n_tokens());
        }
    }
}

/// Makes three particles uneven.
fn uneven() -> Case {
    Case::new(&[0.12, 0.015], &[0.68, 0.44, 0.12, 0.12, 0.07, 0.66], &[1, 1, 1])
}

#[test]
fn smc_that_resamples_is_unbiased() {
    let case = uneven();
    for lookahead in [false, true] {
        let n_taken = case
            .assert_unbiased(SCALARS, |urn, rng| smc::ln_urn_sums(urn, lookahead, 1, 3, rng, &()));
        assert!(n_taken as u64 > 3 * case.urn.n_tokens(), "{n_taken}");
    }
}

/// Particles whose weights are rescaled without resampling.
#[test]
fn smc_with_tiny_weights_is_unbiased() {
    let q = [0.0, 0.0, 0.7, 0.4, 0.9, 0.0, 0.0, 0.0, 0.0, 0.8, 0.0, 0.0, 0.0, 0.0, 0.3, 0.6];
    let case = Case::new(&[1e-60, 1e-60, 0.6, 0.3], &q, &[2, 1, 1, 1]);
    case.assert_unbiased(SCALARS, |urn, rng| smc::ln_urn_sums(urn, false, 1, 2, rng, &()));
}

#[test]
fn conditional_smc_is_unbiased() {
    for case in cases() {
        for lookahead in [false, true] {
            case.assert_reciprocal_unbiased(&SCALARS, 0, |urn, topics, rng| {
                smc::ln_urn_sums_conditional(urn, lookahead, &[topics.to_vec()], 2, rng, &())
            });
        }
    }
    let n_taken = uneven().assert_reciprocal_unbiased(&SCALARS, 0, |urn, topics, rng| {
        smc::ln_urn_sums_conditional(urn, false, &[topics.to_vec()], 3, rng, &())
    });
    // The place of the reference, one number for each particle and token, and resampling.
    assert!(n_taken > 1 + 3 * 3, "{n_taken}");
}

#[test]
fn mean_of_products_is_unbiased() {
    let with_size = |size| cases().into_iter().map(move |case| (case, size));
    for (case, size) in with_size(1).chain(with_size(2).take(1)) {
        case.assert_unbiased(lanes(size), |urn, rng| {
            left_to_right::replicates(urn, Form::MeanOfProducts, one_run(&size), rng, &())
                .map(|found| found.ln_values)
        });
    }
}

/// The enumeration sees the biases that there are.
#[test]
fn other_forms_of_left_to_right_are_biased() {
    for (form, n_lanes) in [(Form::ProductOfMeans, 2), (Form::Sequential, 1)] {
        let (ratio, _) = two_topics(&[2, 1]).ratio(lanes(n_lanes), |urn, rng| {
            left_to_right::replicates(urn, form, one_run(&2), rng, &()).map(|found| found.ln_values)
        });
        assert!((ratio - 1.0).abs() > 1e-3, "{form:?}: {ratio}");
    }
}

#[test]
fn l2r_with_exact_conditionals_is_unbiased() {
    for case in cases().into_iter().chain([two_topics(&[3, 1])]) {
        // Enough for the first repeated word; what the last one draws does not matter.
        let layout = Layout { n_scalars: 9, ..lanes(1) };
        case.assert_unbiased(layout, |urn, rng| {
            l2r::replicates(urn, Conditionals::Exact, one_run(&1), rng, &())
                .map(|found| found.ln_values)
        });
    }
}

#[test]
fn l2r_with_sampled_conditionals_is_unbiased() {
    let [small, _, three_topics] = cases();
    for case in [small, three_topics, two_topics(&[3, 1])] {
        case.assert_unbiased(lanes(1), |urn, rng| {
            l2r::replicates(urn, Conditionals::Sampled(2), one_run(&1), rng, &())
                .map(|found| found.ln_values)
        });
    }
}

#[test]
fn mean_field_is_unbiased() {
    for case in cases() {
        for (order, size) in
            [(UpdateRule::First, 1), (UpdateRule::Second, 1), (UpdateRule::First, 2)]
        {
            let mean_field = MeanField { order, n_iterations: 3 };
            case.assert_unbiased(SCALARS, |urn, rng| {
                mean_field::replicates(urn, mean_field, one_run(&size), rng, &())
                    .map(|found| found.ln_values)
            });
        }
    }
}

/// Steps up to which no topics are named, opened and closed: these moves are enumerated by themselves.
fn most_steps(start: Start, most: usize) -> usize {
    if matches!(start, Start::Lowered | Start::Softened) { most.min(2) } else { most }
}

#[test]
fn annealing_is_unbiased() {
    for start in [Start::Prior, Start::MeanField, Start::Lowered, Start::Softened] {
        for (case, most) in cases().into_iter().zip([3, 2, 2]) {
            for n_temperatures in 1..=most_steps(start, most) {
                case.assert_unbiased(lanes(1), |urn, rng| {
                    annealed::ln_urn_sums(urn, start, 1, n_temperatures, rng, &())
                });
            }
        }
    }
}

#[test]
fn reversed_annealing_is_unbiased() {
    for (case, most) in [(two_topics(&[2, 1]), 2), (two_topics(&[1, 1]), 3)] {
        for start in [Start::Prior, Start::MeanField, Start::Lowered, Start::Softened] {
            let n = most_steps(start, most);
            let run = |urn: &LocalUrn, topics: &[u16], rng: &mut Reader<'_>| {
                annealed::ln_urn_sums_reversed(urn, start, topics, 1, n, rng, &())
            };
            // All but a sweep at each temperature.
            let n_tokens = case.urn.n_tokens() as usize;
            let n_draws = n_draws(|rng| run(&case.urn, &vec![0; n_tokens], rng));
            case.assert_reciprocal_unbiased(&lanes(1), n_draws - (n - 1) * n_tokens, run);
        }
    }
}

#[test]
fn moves_of_topics_leave_the_posterior() {
    let rare = Case::new(&[0.31, 0.02], &[0.41, 0.53, 0.67, 0.29], &[1, 1]);
    let [small, ..] = cases();
    assert_moves_leave_the_posterior([small, rare]);
}

#[test]
#[ignore = "slow"]
fn moves_of_three_topics_leave_the_posterior() {
    let [.., three_topics] = cases();
    assert_moves_leave_the_posterior([three_topics]);
}

/// Moves that name, open and close topics leave the posterior as it is, whatever their turn.
fn assert_moves_leave_the_posterior(cases: impl IntoIterator<Item = Case>) {
    let second = [&[0.4, 1.7, 0.2], &[0.9, 0.3, 2.1], &[1.2, 0.7, 0.5]];
    for case in cases {
        let [rates, repeats, scales] = second.map(|x| &x[..case.urn.n_topics()]);
        for bursts in [None, Some(BurstTarget { rates, repeats, scales })] {
            let target = UrnTarget { bursts, ..UrnTarget::of(&case.urn) };
            for turn in [None, Some(1), Some(2)] {
                let (mut before, mut after) = (0.0, 0.0);
                for (topics, weight) in &case.colourings {
                    let moved = |rng: &mut Reader<'_>, is_moved: bool| {
                        let mut chains = TopicChains::new(&case.urn, rng).unwrap();
                        topics.iter().for_each(|&topic| chains.put([topic; LANES]));
                        let is_bursty = bursts.is_some();
                        let weight =
                            if is_bursty { chains.ln_joint(target)[0].exp() } else { *weight };
                        match turn {
                            _ if !is_moved => (),
                            None => chains.relabel(target),
                            Some(turn) => chains.open_or_close(target, turn),
                        }
                        // A value of its own for each state.
                        let places = chains.topics().iter().zip([1.0, 3.0, 9.0, 27.0]);
                        let code: f64 = places.map(|(topics, p)| f64::from(topics[0]) * p).sum();
                        weight * (2.0 + code.sin())
                    };
                    before += Enumeration::new(lanes(1), |rng| moved(rng, false)).mean();
                    after += Enumeration::new(lanes(1), |rng| moved(rng, true)).mean();
                }
                assert_one(after / before);
            }
        }
    }
}

/// Runs with these moves take too many numbers to be enumerated: their mean is within its error.
#[test]
fn annealing_with_moves_of_topics_is_unbiased() {
    let case = Case::new(&[0.31, 0.02], &[0.41, 0.53, 0.67, 0.29], &[2, 1]);
    for start in [Start::Lowered, Start::Softened] {
        let ln_values =
            annealed::ln_urn_sums(&case.urn, start, 1 << 18, 8, &mut rng(2), &()).unwrap();
        let found = Estimate::from_replicates(&ln_values, ln_values.len());
        assert!(found.std_error < 2e-3, "{found:?}");
        assert!((found.ln_value - case.z.ln()).abs() < 4.0 * found.std_error, "{found:?}");
    }
}

/// Unbiased from every state that the search comes to.
#[test]
fn chib_is_unbiased() {
    for (case, n_samples) in cases().into_iter().zip([2, 1, 1]) {
        // All but the last sweep, where there is one sample.
        let n_draws = n_draws(|rng| chib::ln_urn_sums(&case.urn, 1, 1, rng, &()));
        let n_skipped = n_draws - case.urn.n_tokens() as usize;
        for search in 2..5 {
            let mut rng = rng(search);
            let skipped = (0..n_skipped).map(|_| number(&mut rng)).collect();
            let layout = Layout { n_scalars: 1, n_lanes: 1, skipped };
            case.assert_unbiased(layout, |urn, rng| chib::ln_urn_sums(urn, 1, n_samples, rng, &()));
        }
    }
}
