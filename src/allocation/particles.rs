//! Marginal counts of the particles of a filter, in no more memory than is in use.

use super::chains::ln_law;
use super::kernel::{Counts, Target};
use super::problem::Problem;
use crate::error::{Error, Result};
use crate::rng::LANES;

/// A block that no token has used.
const UNUSED: usize = usize::MAX;

/// Marginal counts of all particles.
///
/// A block has a place in memory from the first token that uses it to the last, and is rearranged by
/// resampling only when a token reads it next: the cost of a token does not grow with the size of
/// the tensor, and what is in use stays in the cache.
pub(super) struct Particles {
    /// Counts at every place: row after row, group after group.
    pub(super) rows: Vec<Counts>,
    /// Base counts of the urn at every place: α, until something else is put there.
    pub(super) base: Vec<f64>,
    /// First row of each slot of the token that is opened.
    pub(super) bases: Vec<u32>,
    pub(super) n_groups: usize,
    blocks: Vec<Block>,
    /// Block of every row of the problem.
    block_of: Vec<u32>,
    /// For each margin, places that are free.
    free: Vec<Vec<usize>>,
    /// Those that a block has last been brought up to date in, the one now last.
    generations: Vec<Generation>,
}

/// Rows that are moved together.
struct Block {
    margin: usize,
    alpha: f64,
    /// First row in the problem, and number of rows.
    start: usize,
    n: usize,
    /// First row in memory.
    place: usize,
    /// Number of the generation whose order the particles are in.
    seen: usize,
    /// The last token that uses it.
    last: usize,
}

/// Particles between two resamplings.
struct Generation {
    number: usize,
    /// Blocks in its order.
    n_blocks: usize,
    /// The ancestor in it of every particle now.
    ancestors: Vec<u32>,
}

/// A particle that dies, and the one that it becomes a copy of.
pub(super) type Move = (u32, u32);

/// The fewest moves that give every particle these ancestors, in any order.
pub(super) fn moves(ancestors: &[u32]) -> Vec<Move> {
    let mut children = vec![0u32; ancestors.len()];
    ancestors.iter().for_each(|&ancestor| children[ancestor as usize] += 1);
    let mut free = (0..).zip(&children).filter(|(_, n)| **n == 0).map(|(particle, _)| particle);
    let parents = (0..).zip(&children).filter(|(_, n)| **n > 1);
    let copies = parents.flat_map(|(parent, &n)| std::iter::repeat_n(parent, n as usize - 1));
    copies.filter_map(|parent| Some((free.next()?, parent))).collect()
}

impl Particles {
    /// Particles without tokens. Where the order of the tokens to come is given, counts are
    /// forgotten after the last token that reads them.
    ///
    /// # Errors
    /// [`Error::Memory`] for more particles than memory holds.
    pub(super) fn new(problem: &Problem, n_groups: usize, tokens: Option<&[u32]>) -> Result<Self> {
        let mut blocks = Vec::new();
        for (margin, laid) in problem.margins.iter().enumerate() {
            let (n, alpha) = (laid.block, laid.margin.alpha);
            let block =
                |start| Block { margin, alpha, start, n, place: 0, seen: UNUSED, last: usize::MAX };
            blocks.extend(laid.rows().step_by(n).map(block));
        }
        let mut block_of = vec![0; problem.n_rows];
        for (number, block) in (0..).zip(&blocks) {
            block_of[block.start..block.start + block.n].fill(number);
        }
        for (token, &cell) in tokens.unwrap_or_default().iter().enumerate() {
            for &base in problem.bases(cell) {
                blocks[block_of[base as usize] as usize].last = token;
            }
        }
        // A block that is rearranged has two places meanwhile.
        let second: usize = problem.margins.iter().map(|laid| laid.block).sum();
        let n = (problem.n_rows + second) * n_groups;
        let bytes = n as f64 * size_of::<Counts>() as f64;
        let mut rows = Vec::new();
        rows.try_reserve_exact(n).map_err(|_| Error::Memory { name: "particles", bytes })?;
        Ok(Particles {
            rows,
            base: Vec::new(),
            bases: Vec::new(),
            n_groups,
            blocks,
            block_of,
            free: vec![Vec::new(); problem.margins.len()],
            generations: vec![Generation { number: 0, n_blocks: 0, ancestors: Vec::new() }],
        })
    }

    /// Brings the blocks of a token up to date, and finds their places.
    pub(super) fn open(&mut self, bases: &[u32]) {
        self.bases.clear();
        for &base in bases {
            let block = self.block_of[base as usize] as usize;
            self.update(block);
            self.bases.push(self.place(base as usize) as u32);
        }
    }

    /// Forgets what no token after this one reads.
    pub(super) fn close(&mut self, bases: &[u32], token: usize) {
        for &base in bases {
            let block = self.block_of[base as usize] as usize;
            let Block { last, seen, margin, place, .. } = self.blocks[block];
            if last == token && seen != UNUSED {
                let generation = self.generation(seen);
                self.generations[generation].n_blocks -= 1;
                self.free[margin].push(place);
                self.blocks[block].seen = UNUSED;
            }
        }
    }

    /// Where a row of the problem, of a block that is up to date, is in memory.
    pub(super) fn place(&self, row: usize) -> usize {
        let block = &self.blocks[self.block_of[row] as usize];
        block.place + (row - block.start)
    }

    /// Makes every particle that dies a copy of another.
    pub(super) fn resample(&mut self, moves: &[Move]) {
        let Some(last) = self.generations.last_mut() else { return };
        let now = last.number + 1;
        last.ancestors = (0..(self.n_groups * LANES) as u32).collect();
        self.generations.retain(|generation| generation.n_blocks > 0);
        for generation in &mut self.generations {
            for &(to, from) in moves {
                generation.ancestors[to as usize] = generation.ancestors[from as usize];
            }
        }
        self.generations.push(Generation { number: now, n_blocks: 0, ancestors: Vec::new() });
    }

    /// Marginal counts of one particle.
    pub(super) fn counts_of(mut self, problem: &Problem, particle: usize) -> Vec<f64> {
        (0..self.blocks.len()).for_each(|block| self.update(block));
        let count = |row| {
            let place = self.place(row) * self.n_groups + particle / LANES;
            f64::from(self.rows[place][particle % LANES])
        };
        (0..problem.n_rows).map(count).collect()
    }

    /// Marginal counts of the particle whose allocation is most probable, and ln of its law.
    pub(super) fn best(mut self, problem: &Problem) -> (Vec<f64>, f64) {
        (0..self.blocks.len()).for_each(|block| self.update(block));
        let alphas = problem.alphas();
        let target = Target { base: &alphas, unit: 1.0 };
        let places: Vec<usize> = (0..problem.n_rows).map(|row| self.place(row)).collect();
        let mut best = (Vec::new(), f64::NEG_INFINITY);
        for group in 0..self.n_groups {
            let count = |&place: &usize| self.rows[place * self.n_groups + group];
            let rows: Vec<Counts> = places.iter().map(count).collect();
            for (lane, ln_law) in ln_law(problem, target, &rows).into_iter().enumerate() {
                if ln_law > best.1 {
                    best = (rows.iter().map(|row| f64::from(row[lane])).collect(), ln_law);
                }
            }
        }
        best
    }

    fn generation(&self, number: usize) -> usize {
        self.generations.partition_point(|generation| generation.number < number)
    }

    fn update(&mut self, block: usize) {
        let now = self.generations.len() - 1;
        let Block { seen, n, margin, alpha, place, .. } = self.blocks[block];
        if seen == self.generations[now].number {
            return;
        }
        let new = self.take_place(margin, n, alpha);
        let (row, size) = (|place: usize| place * self.n_groups, n * self.n_groups);
        if seen == UNUSED {
            self.rows[row(new)..][..size].fill([0; LANES]);
        } else {
            let ranges = [row(place)..row(place) + size, row(new)..row(new) + size];
            let old = self.generation(seen);
            if let Ok([from, to]) = self.rows.get_disjoint_mut(ranges) {
                rearrange(from, to, &self.generations[old].ancestors);
            }
            self.generations[old].n_blocks -= 1;
            self.free[margin].push(place);
        }
        self.blocks[block].place = new;
        self.blocks[block].seen = self.generations[now].number;
        self.generations[now].n_blocks += 1;
    }

    fn take_place(&mut self, margin: usize, n: usize, alpha: f64) -> usize {
        self.free[margin].pop().unwrap_or_else(|| {
            let place = self.base.len();
            self.base.resize(place + n, alpha);
            self.rows.resize((place + n) * self.n_groups, [0; LANES]);
            place
        })
    }
}

/// Copies rows so that every particle has what its ancestor had.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn rearrange(from: &[Counts], to: &mut [Counts], ancestors: &[u32]) {
    let size = ancestors.len();
    let rows = from.as_flattened().chunks_exact(size);
    for (from, to) in rows.zip(to.as_flattened_mut().chunks_exact_mut(size)) {
        for (count, &ancestor) in to.iter_mut().zip(ancestors) {
            // Without a branch for what cannot be, the loads are gathered.
            *count = from.get(ancestor as usize).copied().unwrap_or(0);
        }
    }
}
