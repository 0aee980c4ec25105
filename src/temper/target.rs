//! Targets of tempering: a path of distributions, and chains along it.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::control::Observer;
use crate::error::Result;
use crate::rng::{Lanes, Rng};

/// A path from a reference distribution to a distribution.
pub trait LadderTarget: Sync {
    /// Chains in lockstep.
    type Chains<'a>: LadderChains
    where
        Self: 'a;

    /// Chains drawn from the reference.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop;
    /// [`Error::Memory`](crate::Error::Memory) for more than memory holds.
    fn chains(&self, rng: &mut Rng, observer: &dyn Observer) -> Result<Self::Chains<'_>>;

    /// Cost of one sweep of the chains in lockstep, in draws of one number.
    fn sweep_cost(&self) -> f64;
}

/// [`LANES`](crate::rng::LANES) chains in lockstep.
pub trait LadderChains: Send {
    /// State of one chain, to be looked at when tempering has ended.
    type State: Send;

    /// Moves every chain by a kernel that leaves γ_β unchanged, at the β of every lane. At β = 0
    /// the chain is drawn afresh.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
    fn sweep(&mut self, betas: Lanes, observer: &dyn Observer) -> Result<()>;

    /// Takes over the states of other chains, but not their generators.
    fn copy(&mut self, other: &Self);

    /// V of every chain: ln γ_1 - ln γ_0.
    fn values(&self) -> Lanes;

    /// The present state of the chain in a lane.
    fn state(&self, lane: usize) -> Self::State;
}

/// A target whose chains travel between processes.
pub trait PortableTarget: LadderTarget {
    /// States of all chains in lockstep and of their generators, after a sweep.
    type Saved: Serialize + DeserializeOwned;

    /// States of the chains.
    fn save(&self, chains: &Self::Chains<'_>) -> Self::Saved;

    /// Chains as they were when they were saved.
    ///
    /// # Errors
    /// [`Error::Saved`](crate::Error::Saved) for chains of another target;
    /// [`Error::Memory`](crate::Error::Memory) for more than memory holds.
    fn restore(&self, saved: Self::Saved) -> Result<Self::Chains<'_>>;
}
