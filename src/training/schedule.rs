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
/// the first half of these is LDA, and concentrations that are learned stay at their start in the
/// second: from LDA's topics, chains find modes that they hardly find otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Sweeps in all.
    pub max_iter: u64,
    /// Sweeps before the first that is kept.
    pub burn_in: u64,
    /// First sweeps of the burn-in in which the topics are set to their mean instead of drawn:
    /// some sweeps faster, and no part of what is kept.
    pub warm_up: u64,
    /// Keep one sweep in this many.
    pub thin: u64,
    /// Seed of the start and of the chain.
    pub seed: u64,
}

impl Schedule {
    /// How the sweep after `n_iter` others updates the topics.
    pub(super) fn step(&self, n_iter: u64) -> TopicStep {
        let warm = n_iter < self.warm_up.min(self.burn_in);
        if warm { TopicStep::Mean } else { TopicStep::Draw }
    }

    /// Whether the sweep after `n_iter` others takes no topic for bursty.
    pub(super) fn is_plain(&self, n_iter: u64) -> bool {
        n_iter < self.warm_up.min(self.burn_in) / 2
    }

    /// Whether the sweep that makes `n_iter` in all is kept.
    pub(super) fn keeps(&self, n_iter: u64) -> bool {
        n_iter > self.burn_in && (n_iter - self.burn_in).is_multiple_of(self.thin)
    }
}
