//! Weights of the topics of one token, summed in lanes.
//!
//! Place i of a list is in lane i mod [`LANES`]: sums by lane go on from place to place in vector
//! registers, and are the same bits whatever the width of these.

// The loops are compiled for several instruction sets, with all their parts in them.
#![allow(clippy::inline_always)]

/// Places whose weights are summed side by side.
pub(super) const LANES: usize = 8;

type Lanes = [f64; LANES];

/// Weights of one word.
pub(super) struct Row<'a> {
    pub(super) q: &'a [f64],
    pub(super) prior: &'a Prior,
}

/// The part of the weights of a word that the pseudo-counts have, filled up with zeros.
pub(super) struct Prior {
    a: Vec<f64>,
    /// a q.
    weights: Vec<f64>,
    /// Its sums by lane so far.
    pub(super) sums: Vec<f64>,
    /// The last weights q, which do not fill the lanes.
    rest: Lanes,
}

impl Prior {
    pub(super) fn new(a: &[f64]) -> Self {
        let mut a = a.to_vec();
        a.resize(a.len().next_multiple_of(LANES), 0.0);
        let (weights, sums) = (a.clone(), a.clone());
        Prior { a, weights, sums, rest: [0.0; LANES] }
    }

    /// Takes up a word.
    pub(super) fn row<'a>(&'a mut self, q: &'a [f64]) -> Row<'a> {
        let rest = q.as_chunks::<LANES>().1;
        self.rest[..rest.len()].copy_from_slice(rest);
        weigh_prior(&mut self.weights, &mut self.sums, &self.a, q, &self.rest);
        Row { q, prior: self }
    }
}

/// Products a q and their sums by lane so far.
#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn weigh_prior(products: &mut [f64], sums: &mut [f64], a: &[f64], q: &[f64], rest: &Lanes) {
    let (products, sums) = (products.as_chunks_mut::<LANES>().0, sums.as_chunks_mut::<LANES>().0);
    let (a, q) = (a.as_chunks::<LANES>().0, q.as_chunks::<LANES>().0);
    let mut lanes = [0.0; LANES];
    for ((product, sum), (a, q)) in products.iter_mut().zip(&mut *sums).zip(a.iter().zip(q)) {
        *product = multiply(a, q);
        lanes = add(&lanes, product);
        *sum = lanes;
    }
    let last = q.len();
    if let Some(product) = products.get_mut(last) {
        *product = multiply(&a[last], rest);
        sums[last] = add(&lanes, product);
    }
}

/// Sums by lane so far of the weights (a + n) q of all topics, without one token of topic `old`.
///
/// That token is still in `counts`: a number that has just been written would keep the processor
/// from reading its neighbours, and from working on the next token meanwhile.
#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub(super) fn weigh_all(
    sums: &mut [f64],
    counts: &[f64],
    indices: &[f64],
    old: f64,
    row: &Row<'_>,
) {
    let (sums, counts) = (sums.as_chunks_mut::<LANES>().0, counts.as_chunks::<LANES>().0);
    let (indices, q) = (indices.as_chunks::<LANES>().0, row.q.as_chunks::<LANES>().0);
    let base = row.prior.weights.as_chunks::<LANES>().0;
    let mut lanes = [0.0; LANES];
    let groups = counts.iter().zip(indices).zip(base);
    for ((sum, ((n, indices), base)), q) in sums.iter_mut().zip(groups).zip(q) {
        lanes = add(&lanes, &add(base, &multiply(&without(n, indices, old), q)));
        *sum = lanes;
    }
    let last = q.len();
    if let Some(sum) = sums.get_mut(last) {
        let n = without(&counts[last], &indices[last], old);
        *sum = add(&lanes, &add(&base[last], &multiply(&n, &row.prior.rest)));
    }
}

/// Sums by lane so far of the weights n q of some topics, without one token in place `old`.
#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub(super) fn weigh_own(sums: &mut [f64], counts: &[f64], indices: &[f64], old: f64, q: &[f64]) {
    let (sums, counts) = (sums.as_chunks_mut::<LANES>().0, counts.as_chunks::<LANES>().0);
    let (indices, q) = (indices.as_chunks::<LANES>().0, q.as_chunks::<LANES>().0);
    let mut lanes = [0.0; LANES];
    for (((sum, n), indices), q) in sums.iter_mut().zip(counts).zip(indices).zip(q) {
        lanes = add(&lanes, &multiply(&without(n, indices, old), q));
        *sum = lanes;
    }
}

/// The counts, less one where the index is `old`.
#[expect(clippy::float_cmp, reason = "indices are whole numbers")]
#[inline(always)]
fn without(counts: &Lanes, indices: &Lanes, old: f64) -> Lanes {
    let mut rest = *counts;
    for lane in 0..LANES {
        let less = counts[lane] - 1.0;
        rest[lane] = if indices[lane] == old { less } else { counts[lane] };
    }
    rest
}

#[inline(always)]
fn add(x: &Lanes, y: &Lanes) -> Lanes {
    let mut sums = *x;
    for lane in 0..LANES {
        sums[lane] += y[lane];
    }
    sums
}

#[inline(always)]
fn multiply(x: &Lanes, y: &Lanes) -> Lanes {
    let mut products = *x;
    for lane in 0..LANES {
        products[lane] *= y[lane];
    }
    products
}

/// Sums over the lanes before each, and over all.
#[inline]
pub(super) fn cumulate(sums: &[f64]) -> [f64; LANES + 1] {
    let mut cumulative = [0.0; LANES + 1];
    if let Some(lanes) = sums.as_chunks::<LANES>().0.last() {
        for lane in 0..LANES {
            cumulative[lane + 1] = cumulative[lane] + lanes[lane];
        }
    }
    cumulative
}

/// The positive weight on which a dart in [0, total) falls, lane after lane; `None` where there is
/// none.
#[inline]
pub(super) fn locate(sums: &[f64], lanes: &[f64; LANES + 1], dart: f64) -> Option<usize> {
    let mut lane = 0;
    for &sum in &lanes[1..LANES] {
        lane += usize::from(sum <= dart);
    }
    let rest = dart - lanes[lane];
    let groups = sums.as_chunks::<LANES>().0;
    let passed = groups.iter().map(|sums| usize::from(sums[lane] <= rest)).sum::<usize>();
    // Rounding may carry the dart out of the lane.
    if passed == groups.len() { last_positive(sums) } else { Some(passed * LANES + lane) }
}

/// The last place whose weight is positive.
#[cold]
fn last_positive(sums: &[f64]) -> Option<usize> {
    (0..sums.len()).rev().find(|&place| {
        let before = place.checked_sub(LANES).map_or(0.0, |place| sums[place]);
        sums[place] > before
    })
}
