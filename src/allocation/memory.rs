//! The memory that samplers of allocations need, told before they run.

use crate::error::{Error, Result};
use crate::memory::available;
use crate::rng::LANES;

/// Bytes of a missing cell: its coordinates, and a row of every table.
const MISSING_CELL: f64 = 32.0;

/// Numbers of things that a run of a sampler holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "numbers of things, as everywhere")]
pub(crate) struct Load {
    /// Tokens, four bytes each.
    pub(crate) n_tokens: u64,
    /// Marginal counts of a particle or chain, four bytes each.
    pub(crate) n_marginals: usize,
    /// States and counts that a chain holds, or a particle where there are no chains, four bytes each.
    pub(crate) n_held: u64,
    /// Particles.
    pub(crate) n_particles: usize,
    /// Chains.
    pub(crate) n_chains: usize,
    /// Cells that were not observed. A run of particles holds their weights in a group of it.
    pub(crate) n_missing: usize,
    /// Allocations that all runs together keep.
    pub(crate) n_draws: usize,
    /// Numbers that each of them holds, four bytes each.
    pub(crate) n_of_draw: u64,
}

impl Load {
    /// Refuses what the threads could not hold that share so many runs.
    pub(crate) fn check(self, n_runs: usize) -> Result<()> {
        let n_at_once = n_runs.min(rayon::current_num_threads());
        let (bytes, available) = (self.bytes(n_at_once), available());
        if bytes <= available {
            return Ok(());
        }
        let Load { n_tokens, n_marginals, n_particles, n_chains, n_missing, n_draws, .. } = self;
        Err(Error::SamplerMemory {
            n_tokens,
            n_particles,
            n_chains,
            n_missing,
            n_draws,
            n_marginals,
            n_at_once,
            bytes,
            available,
        })
    }

    /// Bytes of so many runs.
    fn bytes(self, n_at_once: usize) -> f64 {
        let lanes = |n: usize| n.div_ceil(LANES) as f64 * LANES as f64;
        let (particles, chains) = (lanes(self.n_particles), lanes(self.n_chains));
        let holders = if chains > 0.0 { chains } else { particles };
        let tokens = 4.0 * (self.n_tokens as f64 + self.n_held as f64 * holders);
        let marginals = 4.0 * self.n_marginals as f64 * (particles + chains);
        let weights = if self.n_particles > 0 { 8.0 * (LANES + 2) as f64 } else { 0.0 };
        let missing = self.n_missing as f64;
        let run = tokens + marginals + weights * missing;
        let draws = 4.0 * self.n_draws as f64 * self.n_of_draw as f64;
        n_at_once as f64 * run + MISSING_CELL * missing + draws
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_are_the_bytes_of_tokens_particles_chains_missing_cells_and_draws() {
        let bytes = |load: Load, n_at_once| load.bytes(n_at_once) as u64;
        let load = Load { n_tokens: 1_000, n_marginals: 10, n_held: 1_000, ..Load::default() };
        assert_eq!(bytes(load, 1), 4_000);
        // Chains run in groups of 16, and each holds the states of all tokens.
        let one = Load { n_chains: 1, ..load };
        assert_eq!(bytes(one, 1), 1_000 * (4 + 4 * 16) + 4 * 16 * 10);
        assert_eq!(bytes(Load { n_chains: 64, ..load }, 3), 3 * (260_000 + 2_560));
        assert_eq!(bytes(Load { n_particles: 64, ..load }, 3), 3 * (260_000 + 2_560));
        assert_eq!(bytes(Load { n_particles: 64, ..one }, 1), bytes(one, 1) + 4 * 64 * 10);
        // Sixteen particles' weights, the cell's own and its sum, beside its place.
        let missing = Load { n_missing: 100, ..Load::default() };
        assert_eq!(bytes(missing, 2), 3_200);
        let particles = Load { n_particles: 1, ..missing };
        assert_eq!(bytes(particles, 2), 3_200 + 2 * 8 * 18 * 100);
        let draws = Load { n_draws: 100, n_of_draw: 30, ..Load::default() };
        assert_eq!(bytes(draws, 2), 12_000);
    }

    #[test]
    fn a_machine_has_memory_that_no_load_passes_unseen() {
        assert!(Load { n_tokens: 1_000, ..Load::default() }.check(1).is_ok());
        let huge = Load { n_tokens: 1 << 60, ..Load::default() }.check(1);
        let Err(Error::SamplerMemory { bytes, available, .. }) = &huge else { panic!("{huge:?}") };
        assert!(bytes > available && (1e7..1e15).contains(available));
        assert!(huge.unwrap_err().to_string().starts_with("1,152,921,504,606,846,976 tokens and"));
    }
}
