//! Topics of the tokens of many documents, counted, and the draw of one token given the others.

// The loops are compiled for several instruction sets, with all their parts in them.
#![allow(clippy::inline_always)]

/// Topics whose weights are summed side by side.
const LANES: usize = 8;

type Lanes = [f64; LANES];

/// No topic: of a place in a list that is not taken.
const NONE: u16 = u16::MAX;

/// Counts of topics by document.
pub(super) trait Tallies {
    /// Starts again, with documents of these lengths.
    fn reset(&mut self, lengths: impl Iterator<Item = usize>);

    /// Counts a token.
    fn add(&mut self, document: usize, topic: u16);

    /// Takes a token of topic `old` out, draws its topic with probability proportional to
    /// (a_k + n_k) q_k, the word's `row`, and counts it; `u` is uniform on [0, 1).
    fn draw(&mut self, document: usize, old: u16, row: &Row<'_>, u: f64) -> u16;

    /// The topics of a document and their counts, of which some may be zero.
    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)>;
}

/// Weights of one word.
pub(super) struct Row<'a> {
    q: &'a [f64],
    prior: &'a Prior,
}

/// The part of the weights of a word that the pseudo-counts have, filled up with zeros.
pub(super) struct Prior {
    a: Vec<f64>,
    /// a q.
    weights: Vec<f64>,
    lanes: Lanes,
    /// The last weights q, which do not fill the lanes.
    rest: Lanes,
}

impl Prior {
    pub(super) fn new(a: &[f64]) -> Self {
        let mut a = a.to_vec();
        a.resize(a.len().next_multiple_of(LANES), 0.0);
        let weights = a.clone();
        Prior { a, weights, lanes: [0.0; LANES], rest: [0.0; LANES] }
    }

    /// Takes up a word.
    pub(super) fn row<'a>(&'a mut self, q: &'a [f64]) -> Row<'a> {
        let rest = q.as_chunks::<LANES>().1;
        self.rest[..rest.len()].copy_from_slice(rest);
        self.lanes = weigh_prior(&mut self.weights, &self.a, q, &self.rest);
        Row { q, prior: self }
    }
}

/// A count of every topic for every document.
///
/// 8 bytes a document and topic of a block; a draw costs a pass over all topics.
pub(super) struct Dense {
    n_topics: usize,
    /// Whole numbers, ready to be multiplied.
    counts: Vec<f64>,
    products: Vec<f64>,
    indices: Vec<f64>,
}

impl Dense {
    pub(super) fn new(n_topics: usize) -> Self {
        let size = n_topics.next_multiple_of(LANES);
        let indices = (0..size).map(|topic| topic as f64).collect();
        Dense { n_topics, counts: Vec::new(), products: vec![0.0; size], indices }
    }
}

impl Tallies for Dense {
    fn reset(&mut self, lengths: impl Iterator<Item = usize>) {
        self.counts.clear();
        self.counts.resize(lengths.count() * self.products.len(), 0.0);
    }

    fn add(&mut self, document: usize, topic: u16) {
        self.counts[document * self.products.len() + usize::from(topic)] += 1.0;
    }

    #[inline]
    fn draw(&mut self, document: usize, old: u16, row: &Row<'_>, u: f64) -> u16 {
        let size = self.products.len();
        let counts = &mut self.counts[document * size..][..size];
        let lanes = weigh_all(&mut self.products, counts, &self.indices, f64::from(old), row);
        let sums = cumulate(&lanes);
        let dart = u * sums[LANES];
        let new = locate(&self.products, &sums, dart).unwrap_or(usize::from(old));
        counts[usize::from(old)] -= 1.0;
        counts[new] += 1.0;
        new as u16
    }

    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)> {
        let counts = &self.counts[document * self.products.len()..][..self.n_topics];
        counts.iter().map(|&n| n as u32).enumerate()
    }
}

/// A list of topics and counts for every document.
///
/// 10 bytes a token of a block at most; a draw costs a pass over the document's topics, and
/// one over all topics where the pseudo-counts take it.
pub(super) struct Sparse {
    n_topics: usize,
    /// First place of each document, and the end.
    starts: Vec<usize>,
    /// Places that a document has taken. Those whose count has fallen to zero are taken again first.
    taken: Vec<u32>,
    topics: Vec<u16>,
    counts: Vec<f64>,
    weights: Vec<f64>,
    products: Vec<f64>,
    indices: Vec<f64>,
}

impl Sparse {
    pub(super) fn new(n_topics: usize) -> Self {
        let size = n_topics.next_multiple_of(LANES);
        Sparse {
            n_topics,
            starts: Vec::new(),
            taken: Vec::new(),
            topics: Vec::new(),
            counts: Vec::new(),
            weights: vec![0.0; size],
            products: vec![0.0; size],
            indices: (0..size).map(|place| place as f64).collect(),
        }
    }
}

impl Tallies for Sparse {
    fn reset(&mut self, lengths: impl Iterator<Item = usize>) {
        self.starts.clear();
        self.starts.push(0);
        let mut end = 0;
        for length in lengths {
            end += length.min(self.n_topics).next_multiple_of(LANES);
            self.starts.push(end);
        }
        self.taken.clear();
        self.taken.resize(self.starts.len() - 1, 0);
        self.topics.clear();
        self.topics.resize(end, NONE);
        self.counts.clear();
        self.counts.resize(end, 0.0);
    }

    #[inline]
    fn add(&mut self, document: usize, topic: u16) {
        let places = self.starts[document]..self.starts[document + 1];
        let taken = &mut self.taken[document];
        let topics = &mut self.topics[places.clone()];
        let counts = &mut self.counts[places];
        let n = *taken as usize;
        let place = (topics[..n].iter().position(|&x| x == topic))
            .or_else(|| counts[..n].iter().position(|&n| n < 0.5))
            .unwrap_or_else(|| {
                *taken += 1;
                n
            });
        topics[place] = topic;
        counts[place] += 1.0;
    }

    #[inline]
    fn draw(&mut self, document: usize, old: u16, row: &Row<'_>, u: f64) -> u16 {
        let taken = self.taken[document] as usize;
        let size = taken.next_multiple_of(LANES);
        let start = self.starts[document];
        let topics = &self.topics[start..start + size];
        let counts = &mut self.counts[start..start + size];
        let old_place = place_of(topics, old);
        for (weight, &topic) in self.weights.iter_mut().zip(&topics[..taken]) {
            *weight = row.q[usize::from(topic)];
        }
        let products = &mut self.products[..size];
        let lanes = weigh_own(products, counts, &self.indices, old_place as f64, &self.weights);
        counts[old_place] -= 1.0;
        let (sums, base_sums) = (cumulate(&lanes), cumulate(&row.prior.lanes));
        let own = sums[LANES];
        let dart = u * (own + base_sums[LANES]);
        if dart < own
            && let Some(place) = locate(products, &sums, dart)
        {
            counts[place] += 1.0;
            return topics[place];
        }
        let new = locate(&row.prior.weights, &base_sums, dart - own);
        let new = new.map_or(old, |topic| topic as u16);
        self.add(document, new);
        new
    }

    fn counts(&self, document: usize) -> impl Iterator<Item = (usize, u32)> {
        let places = self.starts[document]..self.starts[document] + self.taken[document] as usize;
        let topics = self.topics[places.clone()].iter().map(|&topic| usize::from(topic));
        topics.zip(self.counts[places].iter().map(|&n| n as u32))
    }
}

/// Products of the pseudo-counts and the weights of a word; returns their sums by lane.
#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn weigh_prior(products: &mut [f64], a: &[f64], q: &[f64], rest: &Lanes) -> Lanes {
    let (products, a) = (products.as_chunks_mut::<LANES>().0, a.as_chunks::<LANES>().0);
    let q = q.as_chunks::<LANES>().0;
    let mut lanes = [0.0; LANES];
    for ((product, a), q) in products.iter_mut().zip(a).zip(q) {
        *product = multiply(a, q);
        lanes = add(&lanes, product);
    }
    if let Some(product) = products.get_mut(q.len()) {
        *product = multiply(&a[q.len()], rest);
        lanes = add(&lanes, product);
    }
    lanes
}

/// Weights (a + n) q of all topics, without one token of topic `old`; returns their sums by lane.
///
/// That token is still in `counts`: a number that has just been written would keep the processor
/// from reading its neighbours, and from working on the next token meanwhile.
#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn weigh_all(
    products: &mut [f64],
    counts: &[f64],
    indices: &[f64],
    old: f64,
    row: &Row<'_>,
) -> Lanes {
    let (products, counts) = (products.as_chunks_mut::<LANES>().0, counts.as_chunks::<LANES>().0);
    let (indices, q) = (indices.as_chunks::<LANES>().0, row.q.as_chunks::<LANES>().0);
    let base = row.prior.weights.as_chunks::<LANES>().0;
    let mut lanes = [0.0; LANES];
    let groups = counts.iter().zip(indices).zip(base);
    for ((product, ((n, indices), base)), q) in products.iter_mut().zip(groups).zip(q) {
        *product = add(base, &multiply(&without(n, indices, old), q));
        lanes = add(&lanes, product);
    }
    let last = q.len();
    if let Some(product) = products.get_mut(last) {
        let n = without(&counts[last], &indices[last], old);
        *product = add(&base[last], &multiply(&n, &row.prior.rest));
        lanes = add(&lanes, product);
    }
    lanes
}

/// Weights n q of some topics, without one token in place `old`; returns their sums by lane.
#[multiversion::multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn weigh_own(products: &mut [f64], counts: &[f64], indices: &[f64], old: f64, q: &[f64]) -> Lanes {
    let (products, counts) = (products.as_chunks_mut::<LANES>().0, counts.as_chunks::<LANES>().0);
    let (indices, q) = (indices.as_chunks::<LANES>().0, q.as_chunks::<LANES>().0);
    let mut lanes = [0.0; LANES];
    for (((product, n), indices), q) in products.iter_mut().zip(counts).zip(indices).zip(q) {
        *product = multiply(&without(n, indices, old), q);
        lanes = add(&lanes, product);
    }
    lanes
}

/// The counts, less one where the index is `old`.
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

/// Where a topic stands in a list that has it once.
#[inline]
fn place_of(topics: &[u16], topic: u16) -> usize {
    let mut place = 0;
    for (i, &x) in (0u16..).zip(topics) {
        place |= if x == topic { i } else { 0 };
    }
    usize::from(place)
}

/// Sums over the lanes before each, and over all.
#[inline]
fn cumulate(lanes: &Lanes) -> [f64; LANES + 1] {
    let mut sums = [0.0; LANES + 1];
    for lane in 0..LANES {
        sums[lane + 1] = sums[lane] + lanes[lane];
    }
    sums
}

/// The positive product on which a dart in [0, total) falls, lane after lane; `None` where there is
/// none.
#[inline]
fn locate(products: &[f64], sums: &[f64; LANES + 1], dart: f64) -> Option<usize> {
    let mut lane = 0;
    for &sum in &sums[1..LANES] {
        lane += usize::from(sum <= dart);
    }
    let rest = dart - sums[lane];
    let (mut passed, mut sum) = (0, 0.0);
    let groups = products.as_chunks::<LANES>().0;
    for products in groups {
        sum += products[lane];
        passed += usize::from(sum <= rest);
    }
    // Rounding may carry the dart out of the lane.
    if passed == groups.len() { last_positive(products) } else { Some(passed * LANES + lane) }
}

/// The last product that is possible.
#[cold]
fn last_positive(products: &[f64]) -> Option<usize> {
    products.iter().rposition(|&p| p > 0.0)
}
