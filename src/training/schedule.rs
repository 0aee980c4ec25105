//! Burn-in, thinning and averaging, the same for every model.

/// How a sweep updates the topics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicStep {
    /// Draws φ_k ~ Dirichlet(β + n_k·): exact Gibbs.
    Draw,
    /// Sets φ to its conditional mean: a faster start, not a sampler.
    Mean,
}

/// How long to sample, and what to keep.
///
/// The first `warm_up` sweeps, at most the burn-in, set the topics to their mean. Where topics are bursty,
/// all of the burn-in does, and a token's own table does not count in its topic: see
/// [`BurstWeights`](super::BurstWeights). The first half of the warm-up is LDA, and concentrations that
/// are learned stay at their start in the second: from LDA's topics, chains find modes that they hardly
/// find otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Sweeps in all.
    pub max_iter: u64,
    /// Sweeps before the first that is kept.
    pub burn_in: u64,
    /// First sweeps of the burn-in in which ordinary topics are set to their mean instead of drawn:
    /// some sweeps faster, and no part of what is kept.
    pub warm_up: u64,
    /// Keep one sweep in this many.
    pub thin: u64,
    /// Seed of the start and of the chain.
    pub seed: u64,
}

impl Schedule {
    /// How the sweep after `n_iter` others updates the topics.
    pub(super) fn step(&self, n_iter: u64, is_bursty: bool) -> TopicStep {
        let n_warm = if is_bursty { self.burn_in } else { self.n_warm() };
        if n_iter < n_warm { TopicStep::Mean } else { TopicStep::Draw }
    }

    /// Whether the sweep after `n_iter` others takes no topic for bursty.
    pub(super) fn is_plain(&self, n_iter: u64) -> bool {
        n_iter < self.n_warm() / 2
    }

    /// Sweeps before the first that learns concentrations of topics.
    pub(super) fn n_warm(&self) -> u64 {
        self.warm_up.min(self.burn_in)
    }

    /// Whether the sweep that makes `n_iter` in all is kept.
    pub(super) fn keeps(&self, n_iter: u64) -> bool {
        n_iter > self.burn_in && (n_iter - self.burn_in).is_multiple_of(self.thin)
    }
}
