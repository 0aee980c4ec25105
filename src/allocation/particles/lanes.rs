//! Marginal counts of the particles of a filter, in no more memory than is in use.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use crate::allocation::kernel::counts::{CountWeights, Counts, Sizes, Token, quotient};
use crate::allocation::kernel::law::ln_law;
use crate::allocation::model::plan::{Clique, EliminationPlan};
use crate::allocation::model::problem::Problem;
use crate::error::{Error, Result};
use crate::filter::{Ancestry, rearrange};
use crate::math::Move;
use crate::rng::{LANES, Lanes};

/// A block that no token has used, and the last token of one that none is to use.
const UNUSED: usize = usize::MAX;

/// Bytes of a word.
const WORD: usize = 4;

/// One word of counts in every lane.
pub(crate) type CountWords = [u32; LANES];

/// Marginal counts of all particles.
///
/// A count takes one, two or four bytes of a word, as the data bound it. A block has a place in
/// memory from the first token that uses it to the last, and is rearranged by resampling only when
/// a token reads it next: the cost of a token does not grow with the size of the tensor, and what
/// is in use stays in the cache.
pub(crate) struct Particles {
    /// Word after word, group after group.
    pub(crate) words: Vec<CountWords>,
    pub(crate) n_groups: usize,
    blocks: Vec<RowBlock>,
    /// Block of every row of the problem.
    block_of: Vec<u32>,
    classes: Vec<Class>,
    ancestry: Ancestry,
}

/// Rows that are moved together.
struct RowBlock {
    class: usize,
    /// First row in the problem.
    start: usize,
    /// First word in memory.
    word: usize,
    /// The generation whose order the particles are in.
    seen: usize,
    /// The last token that uses it.
    last: usize,
}

/// Blocks that take each other's places.
struct Class {
    width: Width,
    n_words: usize,
    /// First words of places that are free.
    free: Vec<usize>,
}

/// How much of a word a count takes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Width {
    n_bytes: usize,
    mask: u32,
}

impl Width {
    /// The least that holds counts up to this one.
    fn of(most: u64) -> Self {
        match most {
            0..0x100 => Width { n_bytes: 1, mask: 0xff },
            0x100..0x1_0000 => Width { n_bytes: 2, mask: 0xffff },
            _ => Width { n_bytes: 4, mask: u32::MAX },
        }
    }
}

/// Place of a count in memory, and the base count that it is added to.
#[derive(Clone, Copy)]
pub(crate) struct CountPlace {
    pub(crate) base: f64,
    /// The word of the first group of particles.
    word: usize,
    shift: u32,
    mask: u32,
}

impl CountPlace {
    #[inline(always)]
    pub(crate) fn counts(self, words: &[CountWords], group: usize) -> Counts {
        let (words, mut counts) = (&words[self.word + group], [0; LANES]);
        for lane in 0..LANES {
            counts[lane] = (words[lane] >> self.shift & self.mask) as i32;
        }
        counts
    }
}

/// Marginal counts of one group of particles, as a token sees them.
pub(crate) struct GroupCounts<'a> {
    pub(crate) words: &'a mut [CountWords],
    /// Number of the group.
    pub(crate) index: usize,
    /// Places of all pairs of a factor and a state.
    pub(crate) places: &'a [CountPlace],
}

impl Sizes for GroupCounts<'_> {
    #[inline(always)]
    fn sizes(&self, clique: &Clique, factor: usize, state: usize) -> Lanes {
        let place = self.places[clique.pair(factor, state)];
        let (counts, mut sizes) = (place.counts(self.words, self.index), [0.0; LANES]);
        for lane in 0..LANES {
            sizes[lane] = place.base + f64::from(counts[lane]);
        }
        sizes
    }
}

impl Token for GroupCounts<'_> {
    #[inline(always)]
    fn product(&self, clique: &Clique, state: usize) -> Lanes {
        quotient(clique, state, self)
    }

    #[inline(always)]
    fn add(&mut self, clique: &Clique, factor: usize, state: usize, lane: usize, x: i32) {
        let CountPlace { word, shift, .. } = self.places[clique.pair(factor, state)];
        let word = &mut self.words[word + self.index][lane];
        *word = word.wrapping_add_signed(x << shift);
    }

    #[inline(always)]
    fn add_all(&mut self, clique: &Clique, factor: usize, state: usize, x: &Counts) {
        let CountPlace { word, shift, .. } = self.places[clique.pair(factor, state)];
        let words = &mut self.words[word + self.index];
        for lane in 0..LANES {
            words[lane] = words[lane].wrapping_add_signed(x[lane] << shift);
        }
    }
}

impl Particles {
    /// Particles without tokens. Where the order of the tokens to come is given, counts are
    /// forgotten after the last token that reads them.
    pub(crate) fn new(problem: &Problem, n_groups: usize, tokens: Option<&[u32]>) -> Result<Self> {
        let (mut blocks, block_of, classes) = blocks(problem);
        let mut n_open = blocks.len();
        for (token, &cell) in tokens.unwrap_or_default().iter().enumerate().rev() {
            for &base in problem.bases(cell) {
                let last = &mut blocks[block_of[base as usize] as usize].last;
                if *last == UNUSED {
                    (*last, n_open) = (token, n_open - 1);
                }
            }
            if n_open == 0 {
                break;
            }
        }
        let all: usize = blocks.iter().map(|block| classes[block.class].n_words).sum();
        // A block that is rearranged has two places meanwhile.
        let n_words = all + classes.iter().map(|class| class.n_words).sum::<usize>();
        let bytes = (n_words * n_groups) as f64 * size_of::<CountWords>() as f64;
        let mut words = Vec::new();
        let reserved = words.try_reserve_exact(n_words * n_groups);
        reserved.map_err(|_| Error::Memory { name: "particles", bytes })?;
        let ancestry = Ancestry::new(n_groups * LANES);
        Ok(Particles { words, n_groups, blocks, block_of, classes, ancestry })
    }

    /// Brings the blocks of a token up to date, and adds the places of all its pairs of a factor
    /// and a state to `places`; `base` has the base count of every row.
    pub(crate) fn open(
        &mut self,
        plan: &EliminationPlan,
        bases: &[u32],
        base: impl Fn(usize) -> f64,
        places: &mut Vec<CountPlace>,
    ) {
        for &base in bases {
            self.update(self.block_of[base as usize] as usize);
        }
        for clique in &plan.cliques {
            for state in 0..clique.n_states {
                for (number, factor) in clique.factors.iter().enumerate() {
                    let row = clique.row(number, state, bases);
                    let mut place = self.place(row, base(row));
                    if factor.tied {
                        place.base += f64::from(clique.own_hits(number, state, bases));
                    }
                    places.push(place);
                }
            }
        }
    }

    /// Forgets what no token after this one reads.
    pub(crate) fn close(&mut self, bases: &[u32], token: usize) {
        for &base in bases {
            let block = &mut self.blocks[self.block_of[base as usize] as usize];
            if block.last == token && block.seen != UNUSED {
                self.ancestry.leave(block.seen);
                self.classes[block.class].free.push(block.word);
                block.seen = UNUSED;
            }
        }
    }

    /// Place in memory of a row of the problem, the block of which is up to date.
    pub(crate) fn place(&self, row: usize, base: f64) -> CountPlace {
        let block = &self.blocks[self.block_of[row] as usize];
        let Width { n_bytes, mask } = self.classes[block.class].width;
        let byte = (row - block.start) * n_bytes;
        let word = (block.word + byte / WORD) * self.n_groups;
        CountPlace { base, word, shift: (byte % WORD) as u32 * u8::BITS, mask }
    }

    /// Makes every particle that dies a copy of another.
    pub(crate) fn resample(&mut self, moves: &[Move]) {
        self.ancestry.resample(moves);
    }

    /// Marginal counts of the particle whose allocation is most probable, and ln of its law.
    pub(crate) fn best(mut self, problem: &Problem) -> (Vec<f64>, f64) {
        (0..self.blocks.len()).for_each(|block| self.update(block));
        let alphas = problem.alphas();
        let target = CountWeights { base: &alphas, unit: 1.0 };
        let mut best = (Vec::new(), f64::NEG_INFINITY);
        for group in 0..self.n_groups {
            let count = |row: usize| self.place(row, 0.0).counts(&self.words, group);
            let rows: Vec<Counts> = (0..problem.n_rows).map(count).collect();
            for (lane, ln_law) in ln_law(problem, target, &rows).into_iter().enumerate() {
                if ln_law > best.1 {
                    best = (rows.iter().map(|row| f64::from(row[lane])).collect(), ln_law);
                }
            }
        }
        best
    }

    fn update(&mut self, block: usize) {
        let RowBlock { seen, class, word, .. } = self.blocks[block];
        if seen == self.ancestry.present() {
            return;
        }
        let n_words = self.classes[class].n_words;
        let new = self.take_words(class, seen == UNUSED);
        let words = |word: usize| word * self.n_groups..(word + n_words) * self.n_groups;
        if seen != UNUSED {
            if let Ok([from, to]) = self.words.get_disjoint_mut([words(word), words(new)]) {
                let ancestors = self.ancestry.ancestors(seen);
                rearrange(from.as_flattened(), to.as_flattened_mut(), ancestors);
            }
            self.ancestry.leave(seen);
            self.classes[class].free.push(word);
        }
        self.blocks[block].word = new;
        self.blocks[block].seen = self.ancestry.present();
        self.ancestry.enter();
    }

    /// The first of as many words as a block of the class takes; zeros, if so wanted.
    fn take_words(&mut self, class: usize, zeros: bool) -> usize {
        let Class { n_words, ref mut free, .. } = self.classes[class];
        let Some(start) = free.pop() else {
            let start = self.words.len() / self.n_groups;
            self.words.resize((start + n_words) * self.n_groups, [0; LANES]);
            return start;
        };
        if zeros {
            self.words[start * self.n_groups..][..n_words * self.n_groups].fill([0; LANES]);
        }
        start
    }
}

/// All blocks, the number of that of every row, and their classes.
fn blocks(problem: &Problem) -> (Vec<RowBlock>, Vec<u32>, Vec<Class>) {
    let mut block_of = vec![0; problem.n_rows];
    let (mut blocks, mut classes): (Vec<RowBlock>, Vec<Class>) = (Vec::new(), Vec::new());
    for laid in &problem.margins {
        for start in laid.rows().step_by(laid.block) {
            block_of[start..start + laid.block].fill(blocks.len() as u32);
            blocks.push(RowBlock { class: 0, start, word: 0, seen: UNUSED, last: UNUSED });
        }
    }
    let ends = blocks.iter().skip(1).map(|block| block.start).chain([problem.n_rows]);
    let sizes: Vec<usize> = ends.zip(&blocks).map(|(end, block)| end - block.start).collect();
    let most = most(problem, &block_of, blocks.len());
    for ((block, n), most) in blocks.iter_mut().zip(sizes).zip(most) {
        let width = Width::of(most);
        let n_words = (n * width.n_bytes).div_ceil(WORD);
        let same = |class: &Class| class.width == width && class.n_words == n_words;
        block.class = classes.iter().position(same).unwrap_or_else(|| {
            classes.push(Class { width, n_words, free: Vec::new() });
            classes.len() - 1
        });
    }
    (blocks, block_of, classes)
}

/// How often tokens can add to a count of every block.
fn most(problem: &Problem, block_of: &[u32], n_blocks: usize) -> Vec<u64> {
    if !problem.missing.is_empty() {
        // Tokens that were not observed have no end.
        return vec![u64::MAX; n_blocks];
    }
    let mut most = vec![0; n_blocks];
    for (cell, count) in (0..).zip(&problem.counts) {
        for &base in problem.bases(cell) {
            most[block_of[base as usize] as usize] += count;
        }
    }
    most
}
