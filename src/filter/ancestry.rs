//! Ancestors of the particles of a filter, before each of several resamplings: what a target keeps
//! of its particles may then be moved when it is next read, and not with every resampling.

use crate::math::Move;

/// Resamplings after which all generations are settled. A resampling moves the ancestors of those
/// that are not settled; the others take one more step when they are read.
const UNSETTLED: usize = 8;

/// Ancestors in all generations that are in use: a generation lasts from one resampling to the
/// next.
#[derive(Debug, Clone)]
pub struct Ancestry {
    /// Generations; one without users gives its place to a later one.
    generations: Vec<Generation>,
    present: usize,
    /// The ancestor of every present particle when generations were last settled.
    settling: Vec<u32>,
    n_since: usize,
    path: Vec<u32>,
}

#[derive(Debug, Clone)]
struct Generation {
    n_users: usize,
    /// Whether its ancestors are those of the particles of `settling`.
    is_settled: bool,
    ancestors: Vec<u32>,
}

impl Ancestry {
    /// Particles that have not been resampled.
    pub fn new(n_particles: usize) -> Self {
        let settling: Vec<u32> = (0..n_particles as u32).collect();
        let (first, path) = (Generation::new(settling.clone()), settling.clone());
        Ancestry { generations: vec![first], present: 0, settling, n_since: 0, path }
    }

    /// The present generation; as long as it has users, no other has its number.
    pub fn present(&self) -> usize {
        self.present
    }

    /// One more user of the present generation.
    pub fn enter(&mut self) {
        self.generations[self.present].n_users += 1;
    }

    /// One user of a generation less.
    pub fn leave(&mut self, generation: usize) {
        self.generations[generation].n_users -= 1;
    }

    /// The ancestor in a generation, which has users, of every present particle.
    pub fn ancestors(&mut self, generation: usize) -> &[u32] {
        let Generation { is_settled, ref ancestors, .. } = self.generations[generation];
        if !is_settled {
            return ancestors;
        }
        compose(ancestors, &self.settling, &mut self.path);
        &self.path
    }

    /// Makes every particle that dies a copy of another.
    pub fn resample(&mut self, moves: &[Move]) {
        // Those in use that were not settled.
        let recent = self.generations.iter_mut().filter(|x| x.n_users > 0 && !x.is_settled);
        let recent = recent.map(|generation| &mut generation.ancestors);
        for ancestors in recent.chain([&mut self.settling]) {
            for &(to, from) in moves {
                ancestors[to as usize] = ancestors[from as usize];
            }
        }
        self.n_since += 1;
        if self.n_since == UNSETTLED {
            self.settle();
        }
        self.begin();
    }

    fn settle(&mut self) {
        for generation in self.generations.iter_mut().filter(|generation| generation.n_users > 0) {
            if generation.is_settled {
                compose(&generation.ancestors, &self.settling, &mut self.path);
                std::mem::swap(&mut generation.ancestors, &mut self.path);
            }
            generation.is_settled = true;
        }
        identify(&mut self.settling);
        self.n_since = 0;
    }

    /// Begins a generation, in whose place there is none with users.
    fn begin(&mut self) {
        let free = self.generations.iter().position(|generation| generation.n_users == 0);
        self.present = free.unwrap_or_else(|| {
            self.generations.push(Generation::new(self.path.clone()));
            self.generations.len() - 1
        });
        let present = &mut self.generations[self.present];
        present.is_settled = false;
        identify(&mut present.ancestors);
    }
}

impl Generation {
    fn new(ancestors: Vec<u32>) -> Self {
        Generation { n_users: 0, is_settled: false, ancestors }
    }
}

/// Makes every particle its own ancestor.
fn identify(ancestors: &mut [u32]) {
    (0..).zip(ancestors).for_each(|(particle, ancestor)| *ancestor = particle);
}

/// Copies counts so that every particle has what its ancestor had, row after row.
pub fn rearrange(from: &[u32], to: &mut [u32], ancestors: &[u32]) {
    let n = ancestors.len();
    for (from, to) in from.chunks_exact(n).zip(to.chunks_exact_mut(n)) {
        compose(from, ancestors, to);
    }
}

/// `outer` of `inner`.
#[polyabayes_macros::vectorised]
fn compose(outer: &[u32], inner: &[u32], result: &mut [u32]) {
    for (value, &index) in result.iter_mut().zip(inner) {
        // The loads are gathered, as there is no branch for what cannot be.
        *value = outer.get(index as usize).copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;
    use crate::rng::{Key, Purpose};

    /// Particles carry their own history, of every generation that is in use or not.
    #[test]
    fn ancestors_are_those_of_histories_that_particles_carry() {
        let (n, mut rng) = (32, Key::new(0, Purpose::Score).rng());
        let mut ancestry = Ancestry::new(n);
        let mut histories: Vec<Vec<u32>> = (0..n as u32).map(|particle| vec![particle]).collect();
        let mut users: Vec<(usize, usize)> = Vec::new();
        for time in 0..100 {
            let present = ancestry.present();
            assert!(users.iter().all(|(generation, _)| *generation != present));
            for _ in 0..rng.random_range(0..3) {
                ancestry.enter();
                users.push((present, time));
            }
            while users.len() > 12 {
                ancestry.leave(users.swap_remove(rng.random_range(0..users.len())).0);
            }
            for &(generation, time) in &users {
                let expected: Vec<u32> = histories.iter().map(|history| history[time]).collect();
                assert_eq!(ancestry.ancestors(generation), expected);
            }
            // Few die, so that old generations keep many ancestors.
            let first = rng.random_range(0..n as u32);
            let dead = (0..3).map(|step| (first + step) % n as u32);
            let other = |step: u32| (first + 3 + step) % n as u32;
            let moves: Vec<Move> =
                dead.map(|to| (to, other(rng.random_range(0..n as u32 - 3)))).collect();
            ancestry.resample(&moves);
            for &(to, from) in &moves {
                histories[to as usize] = histories[from as usize].clone();
            }
            for (particle, history) in (0..).zip(&mut histories) {
                history.push(particle);
            }
        }
    }
}
