//! Topics of the tokens of many documents, counted, and the draw of one token given the others.

// Each sweep is compiled for several instruction sets, with all its parts in it.
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

/// Weights of one word: q, and a q with its sums by lane.
pub(super) struct Row<'a> {
    q: &'a [f64],
    prior: &'a Prior,
}

/// The part of the weights that the pseudo-counts have, filled up with zeros.
pub(super) struct Prior {
    /// a q.
    weights: Vec<f64>,
    lanes: Lanes,
    /// The last weights q, which do not fill the lanes.
    rest: Lanes,
}

impl Prior {
    pub(super) fn new(n_topics: usize) -> Self {
        let weights = vec![0.0; n_topics.next_multiple_of(LANES)];
        Prior { weights, lanes: [0.0; LANES], rest: [0.0; LANES] }
    }

    /// Takes up a word.
    #[inline(always)]
    pub(super) fn row<'a>(&'a mut self, a: &[f64], q: &'a [f64]) -> Row<'a> {
        for ((weight, a), q) in self.weights.iter_mut().zip(a).zip(q) {
            *weight = a * q;
        }
        self.lanes = [0.0; LANES];
        for weights in self.weights.as_chunks::<LANES>().0 {
            self.lanes = add(&self.lanes, weights);
        }
        let rest = q.as_chunks::<LANES>().1;
        self.rest[..rest.len()].copy_from_slice(rest);
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
}

impl Dense {
    pub(super) fn new(n_topics: usize) -> Self {
        let size = n_topics.next_multiple_of(LANES);
        Dense { n_topics, counts: Vec::new(), products: vec![0.0; size] }
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

    #[inline(always)]
    fn draw(&mut self, document: usize, old: u16, row: &Row<'_>, u: f64) -> u16 {
        let size = self.products.len();
        let counts = &mut self.counts[document * size..][..size];
        counts[usize::from(old)] -= 1.0;
        let products = self.products.as_chunks_mut::<LANES>().0;
        let counts_by_group = &counts.as_chunks::<LANES>().0[..products.len()];
        let base = &row.prior.weights.as_chunks::<LANES>().0[..products.len()];
        let q = row.q.as_chunks::<LANES>().0;
        let mut lanes = [0.0; LANES];
        for group in 0..products.len() {
            let q = q.get(group).unwrap_or(&row.prior.rest);
            products[group] = add(&base[group], &multiply(&counts_by_group[group], q));
            lanes = add(&lanes, &products[group]);
        }
        let sums = cumulate(&lanes);
        let dart = u * sums[LANES - 1];
        let new = locate(&self.products, &lanes, &sums, dart).unwrap_or(usize::from(old));
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

    #[inline(always)]
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

    #[inline(always)]
    fn draw(&mut self, document: usize, old: u16, row: &Row<'_>, u: f64) -> u16 {
        let taken = self.taken[document] as usize;
        let size = taken.next_multiple_of(LANES);
        let start = self.starts[document];
        let topics = &self.topics[start..start + size];
        let counts = &mut self.counts[start..start + size];
        counts[place_of(topics, old)] -= 1.0;
        for (weight, &topic) in self.weights.iter_mut().zip(&topics[..taken]) {
            *weight = row.q[usize::from(topic)];
        }
        let products = self.products[..size].as_chunks_mut::<LANES>().0;
        let n_groups = products.len();
        let counts_by_group = &counts.as_chunks::<LANES>().0[..n_groups];
        let q = &self.weights.as_chunks::<LANES>().0[..n_groups];
        let mut lanes = [0.0; LANES];
        for group in 0..n_groups {
            products[group] = multiply(&counts_by_group[group], &q[group]);
            lanes = add(&lanes, &products[group]);
        }
        let (sums, base_sums) = (cumulate(&lanes), cumulate(&row.prior.lanes));
        let own = sums[LANES - 1];
        let dart = u * (own + base_sums[LANES - 1]);
        if dart < own
            && let Some(place) = locate(&self.products[..size], &lanes, &sums, dart)
        {
            counts[place] += 1.0;
            return topics[place];
        }
        let new = locate(&row.prior.weights, &row.prior.lanes, &base_sums, dart - own);
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

/// Where a topic stands in a list that has it once.
#[inline(always)]
fn place_of(topics: &[u16], topic: u16) -> usize {
    let mut place = 0;
    for (i, &x) in (0u16..).zip(topics) {
        place |= if x == topic { i } else { 0 };
    }
    usize::from(place)
}

/// Sums over the lanes so far, in a few steps.
#[inline(always)]
fn cumulate(lanes: &Lanes) -> Lanes {
    let sums = shifted_sum::<1>(lanes);
    let sums = shifted_sum::<2>(&sums);
    shifted_sum::<4>(&sums)
}

#[inline(always)]
fn shifted_sum<const SHIFT: usize>(x: &Lanes) -> Lanes {
    let mut sums = *x;
    for lane in SHIFT..LANES {
        sums[lane] += x[lane - SHIFT];
    }
    sums
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

/// The positive product on which a dart in [0, total) falls, lane after lane; `None` where there is
/// none.
#[inline(always)]
fn locate(products: &[f64], lanes: &Lanes, sums: &Lanes, dart: f64) -> Option<usize> {
    let mut lane = 0;
    for sum in &sums[..LANES - 1] {
        lane += usize::from(*sum <= dart);
    }
    if lanes[lane] <= 0.0 {
        return last_positive(products);
    }
    let before = if lane > 0 { sums[lane - 1] } else { 0.0 };
    // Rounding must not carry the dart out of the lane.
    let rest = (dart - before).max(0.0).min(lanes[lane].next_down());
    let (mut passed, mut sum) = (0, 0.0);
    for products in products.as_chunks::<LANES>().0 {
        sum += products[lane];
        passed += usize::from(sum <= rest);
    }
    Some(passed * LANES + lane)
}

/// Rounding may carry a dart past the last positive product.
#[cold]
fn last_positive(products: &[f64]) -> Option<usize> {
    products.iter().rposition(|&p| p > 0.0)
}
