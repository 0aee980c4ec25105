//! Streams of random numbers that belong to a unit of work.
//!
//! A stream is keyed by the seed, the purpose and whatever names the unit (the content of a
//! document, the number of a sweep); never by a thread, a chunk or a row number of the input.
//! Results are therefore the same bits for any number of threads and any order of documents.

// Inlined into kernels that are compiled for several instruction sets.
#![allow(clippy::inline_always)]

use rand::{Rng as _, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::counts::Document;

/// The generator behind every stream.
pub type Rng = rand_xoshiro::Xoshiro256PlusPlus;

/// Number of chains that go in lockstep, each with a stream of its own.
pub const LANES: usize = 16;

/// One number for every lane.
pub type Lanes = [f64; LANES];

/// The value of a function in every lane. The compiler makes vectors of this loop, and none of
/// `array::map`, which it does not always inline.
#[inline(always)]
pub fn map_lanes<T: Copy, U: Copy + Default>(lanes: [T; LANES], f: impl Fn(T) -> U) -> [U; LANES] {
    let mut values = [U::default(); LANES];
    for lane in 0..LANES {
        values[lane] = f(lanes[lane]);
    }
    values
}

/// Source of an estimator's random numbers. Code that draws from any stream can be checked against
/// all the choices it might have made.
pub trait Stream: rand::Rng {
    /// Streams for every lane.
    type Lanes: UniformLanes;

    /// New streams for every lane, independent of each other and of what comes after.
    fn lanes(&mut self) -> Self::Lanes;
}

/// Numbers uniform on [0, 1), one for every lane at a time.
pub trait UniformLanes {
    /// The next number of every lane.
    fn next(&mut self) -> Lanes;
}

impl Stream for Rng {
    type Lanes = Uniforms;

    fn lanes(&mut self) -> Uniforms {
        Uniforms(std::array::from_fn(|_| std::array::from_fn(|_| self.next_u64())))
    }
}

/// xoshiro256++ in every lane, 52 bits a number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Uniforms([[u64; LANES]; 4]);

impl Uniforms {
    /// The next 64 bits of every lane.
    #[inline(always)]
    pub fn next_bits(&mut self) -> [u64; LANES] {
        let [s0, s1, s2, s3] = &mut self.0;
        let mut bits = [0; LANES];
        for lane in 0..LANES {
            let sum = s0[lane].wrapping_add(s3[lane]);
            bits[lane] = sum.rotate_left(23).wrapping_add(s0[lane]);
            let t = s1[lane] << 17;
            s2[lane] ^= s0[lane];
            s3[lane] ^= s1[lane];
            s1[lane] ^= s2[lane];
            s0[lane] ^= s3[lane];
            s2[lane] ^= t;
            s3[lane] = s3[lane].rotate_left(45);
        }
        bits
    }

    /// A number in [0, 1) of the upper 52 bits.
    #[inline(always)]
    pub fn from_bits(bits: u64) -> f64 {
        // The mantissa of a number between 1 and 2.
        f64::from_bits(bits >> 12 | 0x3ff0_0000_0000_0000) - 1.0
    }
}

impl UniformLanes for Uniforms {
    #[inline(always)]
    fn next(&mut self) -> Lanes {
        map_lanes(self.next_bits(), Self::from_bits)
    }
}

/// Purpose of a stream: streams of different purposes are independent under one seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Estimating the likelihood of a document.
    Score = 1,
    /// Inferring the topic weights of a document.
    Transform = 2,
    /// Initial topic assignments of a sampler.
    Initialise = 3,
    /// Topic assignments within one sweep.
    Assign = 4,
    /// Parameters (topics, priors) within one sweep.
    Parameters = 5,
}

/// Key of a stream; [`unit`](Key::unit) derives the keys of its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key([u64; 2]);

impl Key {
    /// The key of all streams of one purpose under one seed.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Key([0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03]).unit(seed).unit(purpose as u64)
    }

    /// The key of the part named `word`.
    #[must_use]
    pub fn unit(self, word: u64) -> Self {
        let [x, y] = self.0;
        let x = mix(x ^ word);
        let y = mix(y.wrapping_add(word).rotate_left(23) ^ x);
        Key([x.wrapping_add(y), y])
    }

    /// The key of a document, by its content, by its exposure where that is not 1, and by its own
    /// prior.
    #[must_use]
    pub fn document(self, document: Document<'_>) -> Self {
        let cell = |key: Key, (word, count)| key.unit(u64::from(word) << 32 | u64::from(count));
        let key = document.cells().fold(self, cell).unit(document.n_distinct() as u64);
        let exposure = document.exposure().to_bits();
        let key = if exposure == 1.0f64.to_bits() { key } else { key.unit(exposure) };
        document.prior().into_iter().flatten().fold(key, |key, x| key.unit(x.to_bits()))
    }

    /// Numbers that are found by their index.
    pub fn counter(self) -> Counter {
        Counter(self.0[0])
    }

    /// The stream itself, from its start.
    pub fn rng(self) -> Rng {
        let mut seed = [0u8; 32];
        let mut key = self;
        for bytes in seed.chunks_exact_mut(16) {
            key = key.unit(0x5851_f42d_4c95_7f2d);
            bytes[..8].copy_from_slice(&key.0[0].to_le_bytes());
            bytes[8..].copy_from_slice(&key.0[1].to_le_bytes());
        }
        Rng::from_seed(seed)
    }
}

/// A stream whose numbers can be had in any order: SplitMix64.
#[derive(Debug, Clone, Copy)]
pub struct Counter(u64);

impl Counter {
    /// The number with this index, uniform on [0, 1).
    #[inline]
    pub fn uniform(self, index: u64) -> f64 {
        let bits = mix(self.0.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// The numbers with the indices `first + 2^32 document`.
    pub fn fill(self, first: u64, documents: &[u32], uniforms: &mut [f64]) {
        fill_uniforms(self, first, documents, uniforms);
    }
}

#[polyabayes_macros::vectorised]
fn fill_uniforms(counter: Counter, first: u64, documents: &[u32], uniforms: &mut [f64]) {
    for (uniform, &document) in uniforms.iter_mut().zip(documents) {
        *uniform = counter.uniform(first.wrapping_add(u64::from(document) << 32));
    }
}

/// The finaliser of `SplitMix64`: a bijection in which every input bit moves every output bit.
#[inline]
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_units_matters() {
        let key = Key::new(7, Purpose::Score);
        assert_ne!(key.unit(1).unit(2), key.unit(2).unit(1));
        assert_ne!(key.unit(0), key.unit(0).unit(0));
    }

    #[test]
    fn lanes_are_the_generator_itself() {
        use rand::RngExt;

        let mut rng = Key::new(3, Purpose::Score).rng();
        let seeds: [[u64; LANES]; 4] =
            std::array::from_fn(|_| std::array::from_fn(|_| rng.next_u64()));
        let mut lanes = Key::new(3, Purpose::Score).rng().lanes();
        let mut scalar: [Rng; LANES] = std::array::from_fn(|lane| {
            let mut seed = [0u8; 32];
            for (bytes, words) in seed.chunks_exact_mut(8).zip(&seeds) {
                bytes.copy_from_slice(&words[lane].to_le_bytes());
            }
            Rng::from_seed(seed)
        });
        for _ in 0..100 {
            for (lane, x) in lanes.next().into_iter().enumerate() {
                // 52 bits of the 53 that a scalar draw has.
                let expected: f64 = scalar[lane].random();
                assert!((0.0..f64::EPSILON).contains(&(expected - x)));
            }
        }
    }
}
