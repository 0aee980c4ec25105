//! Marginal counts of the particles of a filter, in no more memory than is in use.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use super::ancestry::{Ancestry, Move, rearrange};
use super::chains::ln_law;
use super::kernel::{Counts, Marginals, Target};
use super::problem::Problem;
use crate::error::{Error, Result};
use crate::rng::LANES;

/// A block that no token has used.
const UNUSED: usize = usize::MAX;

/// Bytes of a word.
const WORD: usize = 4;

/// One word of counts in every lane.
type Words = [u32; LANES];

/// Marginal counts of all particles.
///
/// A count takes one, two or four bytes of a word, as the data bound it. A block has a place in
/// memory from the first token that uses it to the last, and is rearranged by resampling only when
/// a token reads it next: the cost of a token does not grow with the size of the tensor, and what
/// is in use stays in the cache. Places are counted in bytes of one particle.
pub(super) struct Particles {
    /// Word after word, group after group.
    pub(super) words: Vec<Words>,
    /// Base counts of the urn at every place: α, until something else is put there.
    pub(super) base: Vec<f64>,
    /// Place of the first row of each slot of the token that is opened.
    pub(super) bases: Vec<u32>,
    /// Width of the counts of each slot of that token.
    pub(super) widths: Vec<Width>,
    pub(super) n_groups: usize,
    blocks: Vec<Block>,
    /// Block of every row of the problem.
    block_of: Vec<u32>,
    classes: Vec<Class>,
    ancestry: Ancestry,
}

/// Rows that are moved together.
struct Block {
    alpha: f64,
    class: usize,
    /// First row in the problem.
    start: usize,
    place: usize,
    /// Number of the generation whose order the particles are in.
    seen: usize,
    /// The last token that uses it.
    last: usize,
}

/// Blocks that take each other's places.
struct Class {
    width: Width,
    n_words: usize,
    /// Places that are free.
    free: Vec<usize>,
}

/// How much of a word a count takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Width {
    ln_bytes: u32,
    mask: u32,
}

impl Width {
    /// The least that holds counts up to this one.
    fn of(most: u64) -> Self {
        match most {
            0..0x100 => Width { ln_bytes: 0, mask: 0xff },
            0x100..0x1_0000 => Width { ln_bytes: 1, mask: 0xffff },
            _ => Width { ln_bytes: 2, mask: u32::MAX },
        }
    }

    fn n_words(self, n_counts: usize) -> usize {
        (n_counts << self.ln_bytes).div_ceil(WORD)
    }

    #[inline(always)]
    fn counts(self, words: &Words, place: usize) -> Counts {
        words.map(|word| (word >> shift(place) & self.mask) as i32)
    }
}

/// Marginal counts of one group of particles.
pub(super) struct Group<'a> {
    pub(super) words: &'a mut [Words],
    pub(super) widths: &'a [Width],
    pub(super) n_groups: usize,
    pub(super) group: usize,
}

impl Group<'_> {
    #[inline(always)]
    fn word(&self, place: usize) -> usize {
        place / WORD * self.n_groups + self.group
    }
}

fn shift(place: usize) -> u32 {
    (place % WORD) as u32 * u8::BITS
}

impl Marginals for Group<'_> {
    #[inline(always)]
    fn place(&self, slot: usize, base: u32, offset: u32) -> usize {
        (base + (offset << self.widths[slot].ln_bytes)) as usize
    }

    #[inline(always)]
    fn counts(&self, slot: usize, place: usize) -> Counts {
        self.widths[slot].counts(&self.words[self.word(place)], place)
    }

    #[inline(always)]
    fn add(&mut self, place: usize, lane: usize, x: i32) {
        let word = self.word(place);
        self.words[word][lane] = self.words[word][lane].wrapping_add_signed(x << shift(place));
    }

    #[inline(always)]
    fn add_all(&mut self, place: usize, x: &Counts) {
        let word = self.word(place);
        let added = x.map(|x| (x << shift(place)) as u32);
        for (word, added) in self.words[word].iter_mut().zip(added) {
            *word = word.wrapping_add(added);
        }
    }
}

impl Particles {
    /// Particles without tokens. Where the order of the tokens to come is given, counts are
    /// forgotten after the last token that reads them.
    ///
    /// # Errors
    /// [`Error::Memory`] for more particles than memory holds.
    pub(super) fn new(problem: &Problem, n_groups: usize, tokens: Option<&[u32]>) -> Result<Self> {
        let (mut blocks, block_of, classes) = blocks(problem);
        for (token, &cell) in tokens.unwrap_or_default().iter().enumerate() {
            for &base in problem.bases(cell) {
                blocks[block_of[base as usize] as usize].last = token;
            }
        }
        let all: usize = blocks.iter().map(|block| classes[block.class].n_words).sum();
        // A block that is rearranged has two places meanwhile.
        let n_words = all + classes.iter().map(|class| class.n_words).sum::<usize>();
        let bytes = (n_words * n_groups) as f64 * size_of::<Words>() as f64;
        let too_many = || Error::Memory { name: "particles", bytes };
        u32::try_from(n_words * WORD).map_err(|_| too_many())?;
        let mut words = Vec::new();
        words.try_reserve_exact(n_words * n_groups).map_err(|_| too_many())?;
        Ok(Particles {
            words,
            base: Vec::new(),
            bases: Vec::new(),
            widths: Vec::new(),
            n_groups,
            blocks,
            block_of,
            classes,
            ancestry: Ancestry::new(n_groups * LANES),
        })
    }

    /// Brings the blocks of a token up to date, and finds their places.
    pub(super) fn open(&mut self, bases: &[u32]) {
        self.bases.clear();
        self.widths.clear();
        for &base in bases {
            let block = self.block_of[base as usize] as usize;
            self.update(block);
            self.bases.push(self.place(base as usize) as u32);
            self.widths.push(self.width(base as usize));
        }
    }

    /// Forgets what no token after this one reads.
    pub(super) fn close(&mut self, bases: &[u32], token: usize) {
        for &base in bases {
            let block = &mut self.blocks[self.block_of[base as usize] as usize];
            if block.last == token && block.seen != UNUSED {
                self.ancestry.leave(block.seen);
                self.classes[block.class].free.push(block.place);
                block.seen = UNUSED;
            }
        }
    }

    /// Where a row of the problem, of a block that is up to date, is in memory.
    pub(super) fn place(&self, row: usize) -> usize {
        let block = &self.blocks[self.block_of[row] as usize];
        block.place + ((row - block.start) << self.width(row).ln_bytes)
    }

    fn width(&self, row: usize) -> Width {
        self.classes[self.blocks[self.block_of[row] as usize].class].width
    }

    /// Makes every particle that dies a copy of another.
    pub(super) fn resample(&mut self, moves: &[Move]) {
        self.ancestry.resample(moves);
    }

    /// Marginal counts of the particle whose allocation is most probable, and ln of its law.
    pub(super) fn best(mut self, problem: &Problem) -> (Vec<f64>, f64) {
        (0..self.blocks.len()).for_each(|block| self.update(block));
        let alphas = problem.alphas();
        let target = Target { base: &alphas, unit: 1.0 };
        let mut best = (Vec::new(), f64::NEG_INFINITY);
        for group in 0..self.n_groups {
            let count = |row: usize| {
                let place = self.place(row);
                self.width(row).counts(&self.words[place / WORD * self.n_groups + group], place)
            };
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
        let Block { seen, class, place, alpha, .. } = self.blocks[block];
        if seen == self.ancestry.present() {
            return;
        }
        let n_words = self.classes[class].n_words;
        let new = self.take_place(class);
        self.base[new..new + n_words * WORD].fill(alpha);
        let words =
            |place: usize| place / WORD * self.n_groups..(place / WORD + n_words) * self.n_groups;
        if seen == UNUSED {
            self.words[words(new)].fill([0; LANES]);
        } else {
            if let Ok([from, to]) = self.words.get_disjoint_mut([words(place), words(new)]) {
                let ancestors = self.ancestry.ancestors(seen);
                rearrange(from.as_flattened(), to.as_flattened_mut(), ancestors);
            }
            self.ancestry.leave(seen);
            self.classes[class].free.push(place);
        }
        self.blocks[block].place = new;
        self.blocks[block].seen = self.ancestry.present();
        self.ancestry.enter();
    }

    fn take_place(&mut self, class: usize) -> usize {
        let Class { n_words, ref mut free, .. } = self.classes[class];
        free.pop().unwrap_or_else(|| {
            let place = self.base.len();
            self.base.resize(place + n_words * WORD, 0.0);
            self.words.resize((place / WORD + n_words) * self.n_groups, [0; LANES]);
            place
        })
    }
}

/// All blocks, the number of that of every row, and their classes.
fn blocks(problem: &Problem) -> (Vec<Block>, Vec<u32>, Vec<Class>) {
    let mut block_of = vec![0; problem.n_rows];
    let (mut blocks, mut classes): (Vec<Block>, Vec<Class>) = (Vec::new(), Vec::new());
    for laid in &problem.margins {
        for start in laid.rows().step_by(laid.block) {
            block_of[start..start + laid.block].fill(blocks.len() as u32);
            let (alpha, last) = (laid.margin.alpha, usize::MAX);
            blocks.push(Block { alpha, class: 0, start, place: 0, seen: UNUSED, last });
        }
    }
    let ends = blocks.iter().skip(1).map(|block| block.start).chain([problem.n_rows]);
    let sizes: Vec<usize> = ends.zip(&blocks).map(|(end, block)| end - block.start).collect();
    let most = most(problem, &block_of, blocks.len());
    for ((block, n), most) in blocks.iter_mut().zip(sizes).zip(most) {
        let width = Width::of(most);
        let n_words = width.n_words(n);
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
