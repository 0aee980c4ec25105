//! Ancestors of the particles of a filter, before each of several resamplings.

/// Resamplings after which all generations are settled. A resampling moves what is not settled;
/// what is costs one more step when it is read.
const UNSETTLED: usize = 8;

/// A particle that dies, and the one that it becomes a copy of.
pub(super) type Move = (u32, u32);

/// The fewest moves that give every particle so many children, in any order.
pub(super) fn moves(offspring: &[u32]) -> Vec<Move> {
    let mut dead = vec![0; offspring.len()];
    let mut n_dead = 0;
    for (particle, &children) in (0..).zip(offspring) {
        // Without a branch that depends on chance.
        dead[n_dead] = particle;
        n_dead += usize::from(children == 0);
    }
    dead.truncate(n_dead);
    let parents = (0..).zip(offspring).filter(|(_, n)| **n > 1);
    let copies = parents.flat_map(|(parent, &n)| std::iter::repeat_n(parent, n as usize - 1));
    dead.into_iter().zip(copies).collect()
}

/// Ancestors in all generations that are in use: a generation is what lies between two resamplings.
pub(super) struct Ancestry {
    n_particles: usize,
    /// In the order of time, the present one last.
    generations: Vec<Generation>,
    /// The first ones are settled: their ancestors are those of the particles of `settling`.
    n_settled: usize,
    /// The ancestor of every present particle when generations were last settled.
    settling: Vec<u32>,
    n_since: usize,
    path: Vec<u32>,
}

struct Generation {
    number: usize,
    n_users: usize,
    ancestors: Vec<u32>,
}

impl Ancestry {
    pub(super) fn new(n_particles: usize) -> Self {
        let mut ancestry = Ancestry {
            n_particles,
            generations: Vec::new(),
            n_settled: 0,
            settling: Vec::new(),
            n_since: 0,
            path: vec![0; n_particles],
        };
        ancestry.settling = ancestry.identity();
        ancestry.push(0);
        ancestry
    }

    fn identity(&self) -> Vec<u32> {
        (0..self.n_particles as u32).collect()
    }

    fn push(&mut self, number: usize) {
        let ancestors = self.identity();
        self.generations.push(Generation { number, n_users: 0, ancestors });
    }

    /// Number of the present generation.
    pub(super) fn present(&self) -> usize {
        self.generations[self.generations.len() - 1].number
    }

    fn index(&self, number: usize) -> usize {
        self.generations.partition_point(|generation| generation.number < number)
    }

    /// One more user of the present generation.
    pub(super) fn enter(&mut self) {
        let present = self.generations.len() - 1;
        self.generations[present].n_users += 1;
    }

    /// One user of a generation less.
    pub(super) fn leave(&mut self, number: usize) {
        let index = self.index(number);
        self.generations[index].n_users -= 1;
    }

    /// The ancestor in a generation, which has users, of every present particle.
    pub(super) fn ancestors(&mut self, number: usize) -> &[u32] {
        let index = self.index(number);
        let ancestors = &self.generations[index].ancestors;
        if index >= self.n_settled {
            return ancestors;
        }
        compose(ancestors, &self.settling, &mut self.path);
        &self.path
    }

    /// Makes every particle that dies a copy of another.
    pub(super) fn resample(&mut self, moves: &[Move]) {
        let number = self.present() + 1;
        let in_use = |generation: &Generation| generation.n_users > 0;
        let settled = &self.generations[..self.n_settled];
        self.n_settled = settled.iter().filter(|generation| in_use(generation)).count();
        self.generations.retain(in_use);
        let recent = self.generations[self.n_settled..].iter_mut();
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
        self.push(number);
    }

    fn settle(&mut self) {
        for generation in &mut self.generations[..self.n_settled] {
            compose(&generation.ancestors, &self.settling, &mut self.path);
            std::mem::swap(&mut generation.ancestors, &mut self.path);
        }
        self.n_settled = self.generations.len();
        self.settling = self.identity();
        self.n_since = 0;
    }
}

/// Copies counts so that every particle has what its ancestor had, row after row.
pub(super) fn rearrange(from: &[u32], to: &mut [u32], ancestors: &[u32]) {
    let n = ancestors.len();
    for (from, to) in from.chunks_exact(n).zip(to.chunks_exact_mut(n)) {
        compose(from, ancestors, to);
    }
}

/// `outer` of `inner`.
#[multiversion::multiversion(targets("x86_64+avx512f+avx512vl+avx512dq", "x86_64+avx2"))]
fn compose(outer: &[u32], inner: &[u32], result: &mut [u32]) {
    for (value, &index) in result.iter_mut().zip(inner) {
        // Without a branch for what cannot be, the loads are gathered.
        *value = outer.get(index as usize).copied().unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt as _;

    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn moves_give_every_particle_its_children() {
        let offspring = [0, 3, 1, 0, 0, 2, 1, 1];
        let mut particles: Vec<u32> = (0..8).collect();
        for (to, from) in moves(&offspring) {
            assert_eq!((offspring[to as usize], particles[to as usize]), (0, to));
            particles[to as usize] = from;
        }
        for (particle, n) in (0..).zip(offspring) {
            assert_eq!(particles.iter().filter(|other| **other == particle).count(), n as usize);
        }
    }

    /// Particles carry their own history, of every generation that is in use or not.
    #[test]
    fn ancestors_are_those_of_histories_that_particles_carry() {
        let (n, mut rng) = (32, Key::new(0, Purpose::Score).rng());
        let mut ancestry = Ancestry::new(n);
        let mut histories: Vec<Vec<u32>> = (0..n as u32).map(|particle| vec![particle]).collect();
        let mut users: Vec<usize> = Vec::new();
        for generation in 0..100 {
            assert_eq!(ancestry.present(), generation);
            for _ in 0..rng.random_range(0..3) {
                ancestry.enter();
                users.push(generation);
            }
            while users.len() > 12 {
                ancestry.leave(users.swap_remove(rng.random_range(0..users.len())));
            }
            for &number in &users {
                let expected: Vec<u32> = histories.iter().map(|history| history[number]).collect();
                assert_eq!(ancestry.ancestors(number), expected);
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
