//! Non-reversible parallel tempering (Syed, Bouchard-Côté, Deligiannidis, Doucet 2022): the ratio
//! of two normalising constants by chains on a ladder of distributions between them.
//!
//! A [`LadderTarget`] is a path `γ_β ∝ γ_0 exp(β V)` from a reference γ_0 that can be drawn from to the
//! distribution γ_1 that is asked for. The engine knows nothing else of it. [`temper`] runs
//! independent replicates in rounds of doubling length, respaces their ladders to equal rejection
//! after each, and ends when two estimates in opposite directions, the rounds and the replicates
//! agree.
//!
//! [`annealing`] takes chains along a path once, forwards or in reverse: unbiased on either side.
//!
//! Results are the same bits for any number of threads.
//!
//! The constants of this room are those with which `benches/evidence.py` made its records.

pub mod annealing;
mod barrier;
mod bridge;
mod engine;
mod ladder;
mod outcome;
mod pilot;
mod schedule;
mod target;

pub use engine::{LadderPart, TemperingRun, anneal, annealing_schedule, temper};
pub use ladder::RoundResult;
pub use outcome::{Round, TemperingOutcome};
pub use schedule::{RoundPlan, RoundSchedule};
pub use target::{LadderChains, LadderTarget, PortableTarget};
