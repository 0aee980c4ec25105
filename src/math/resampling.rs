//! Resampling schemes of particle filters, and the copies that they ask for.

use rand::{Rng, RngExt};

/// How ancestors are drawn: each particle has n w_i / Σw children on average.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resampling {
    /// Independent draws.
    Multinomial,
    /// The whole part of every expected number, and independent draws of the rest.
    Residual,
    /// One draw in each of n equal parts of the total weight.
    Stratified,
    /// The same point in each of n equal parts.
    Systematic,
}

impl Resampling {
    /// Sets the number of children of every particle, n in all.
    pub fn offspring<R: Rng + ?Sized>(self, weights: &[f64], offspring: &mut [u32], rng: &mut R) {
        let n = weights.len();
        offspring.fill(0);
        match self {
            Resampling::Systematic => systematic_offspring(weights, offspring, rng.random()),
            Resampling::Stratified => {
                let darts = (0..n).map(|part| (part as f64 + rng.random::<f64>()) / n as f64);
                throw(weights, darts, offspring);
            }
            Resampling::Multinomial => multinomial(weights, n, offspring, rng),
            Resampling::Residual => {
                let scale = n as f64 / weights.iter().sum::<f64>();
                let whole = weights.iter().map(|weight| (weight * scale).floor());
                offspring.iter_mut().zip(whole).for_each(|(children, n)| *children = n as u32);
                let left = n - offspring.iter().sum::<u32>() as usize;
                let rest: Vec<f64> = weights.iter().map(|x| (x * scale).fract()).collect();
                multinomial(&rest, left, offspring, rng);
            }
        }
    }
}

/// Weights that are summed apart from others: additions do not wait for all before them.
const BLOCK: usize = 16;

/// Added to a smaller number, it leaves the nearest integer in the last bits.
const TO_INTEGER: f64 = (1u64 << 52) as f64;

/// Numbers of offspring by systematic resampling: floor or ceiling of n w_i / Σw, unbiased where
/// `start` is uniform on [0, 1).
pub fn systematic_offspring(weights: &[f64], offspring: &mut [u32], start: f64) {
    let n = weights.len() as f64;
    let total: f64 = weights.chunks(BLOCK).map(|block| block.iter().sum::<f64>()).sum();
    let scale = n / total;
    let (mut before, mut drawn) = (0.0, 0);
    let mut of_block = |weights: &[f64; BLOCK]| {
        let (mut sums, mut sum) = ([0.0; BLOCK], 0.0);
        for (cumulative, weight) in sums.iter_mut().zip(weights) {
            sum += weight;
            *cumulative = sum;
        }
        // Points start, start + 1, ... below the end of a share: the ceiling of what it passes the
        // first by, without a call of a library.
        let upto = sums.map(|sum| {
            let end = ((before + sum) * scale - start + 0.5).max(0.0).min(n);
            (end + TO_INTEGER).to_bits() as u32
        });
        before += sum;
        upto.map(|upto| upto - std::mem::replace(&mut drawn, upto))
    };
    let (blocks, rest) = weights.as_chunks();
    let (whole, end) = offspring.as_chunks_mut();
    whole.iter_mut().zip(blocks).for_each(|(offspring, weights)| *offspring = of_block(weights));
    let mut last = [0.0; BLOCK];
    last[..rest.len()].copy_from_slice(rest);
    end.copy_from_slice(&of_block(&last)[..rest.len()]);
    if let Some(last) = weights.iter().rposition(|&w| w > 0.0) {
        offspring[last] += weights.len() as u32 - drawn;
    }
}

fn multinomial<R: Rng + ?Sized>(weights: &[f64], n: usize, offspring: &mut [u32], rng: &mut R) {
    let mut darts: Vec<f64> = (0..n).map(|_| rng.random()).collect();
    darts.sort_unstable_by(f64::total_cmp);
    throw(weights, darts.into_iter(), offspring);
}

/// Adds the children that increasing darts, as shares of the total weight, fall on.
fn throw(weights: &[f64], darts: impl Iterator<Item = f64>, offspring: &mut [u32]) {
    let total: f64 = weights.iter().sum();
    let last = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0);
    let (mut i, mut upto) = (0, weights[0]);
    for dart in darts {
        while upto <= dart * total && i < last {
            i += 1;
            upto += weights[i];
        }
        offspring[i] += 1;
    }
}

/// A particle that dies, and the particle that it becomes a copy of.
pub type Move = (u32, u32);

/// Children beyond the first that most particles do not exceed.
const FEW: usize = 8;

/// The fewest moves that give every particle its number of children; owns their memory.
#[derive(Debug, Clone, Default)]
pub struct Replication {
    dead: Vec<u32>,
    copies: Vec<u32>,
    moves: Vec<Move>,
}

impl Replication {
    /// The moves, in increasing order of both particles.
    pub fn moves(&mut self, offspring: &[u32]) -> &[Move] {
        self.dead.resize(offspring.len(), 0);
        self.copies.resize(offspring.len() + FEW, 0);
        let (mut n_dead, mut n_copies) = (0, 0);
        for (particle, &children) in (0..).zip(offspring) {
            // Hardly a branch that depends on chance: surplus copies are overwritten.
            self.dead[n_dead] = particle;
            n_dead += usize::from(children == 0);
            let more = children.saturating_sub(1) as usize;
            self.copies[n_copies..][..FEW].fill(particle);
            if more > FEW {
                self.copies[n_copies..][..more].fill(particle);
            }
            n_copies += more;
        }
        self.moves.clear();
        self.moves.extend(self.dead[..n_dead].iter().copied().zip(self.copies.iter().copied()));
        &self.moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Key, Purpose};

    #[test]
    fn every_scheme_keeps_the_size_and_the_mean() {
        let weights = [0.1, 0.0, 2.0, 0.7, 0.2];
        let total: f64 = weights.iter().sum();
        let runs = 40_000;
        for (seed, scheme) in (0..).zip([
            Resampling::Multinomial,
            Resampling::Residual,
            Resampling::Stratified,
            Resampling::Systematic,
        ]) {
            let mut rng = Key::new(seed, Purpose::Score).rng();
            let mut mean = [0.0; 5];
            for _ in 0..runs {
                let mut offspring = [0; 5];
                scheme.offspring(&weights, &mut offspring, &mut rng);
                assert_eq!(offspring.iter().sum::<u32>() as usize, weights.len());
                for (mean, children) in mean.iter_mut().zip(offspring) {
                    *mean += f64::from(children) / f64::from(runs);
                }
            }
            for (mean, weight) in mean.iter().zip(weights) {
                let expected = 5.0 * weight / total;
                // No scheme has more variance than independent draws.
                let error = (expected / f64::from(runs)).sqrt();
                assert!((mean - expected).abs() < 4.0 * error + 1e-12, "{scheme:?}");
            }
        }
    }
}
