//! The recursion of Scott and Baldridge: a deterministic screen.

use crate::control::Observer;
use crate::error::Result;
use crate::urn::LocalUrn;

/// Multiply-adds between two looks at the observer.
const POLL_EVERY: usize = 1 << 22;

/// ln of an approximation of Z: γ starts at a; every token has weight Σ_k γ_k q_k and adds its
/// responsibilities γ_k q_k / Σ γ q to γ.
///
/// Neither unbiased nor a bound; wrong by a tenth of a nat and more. Cost: tokens x topics.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) when the observer asks to stop.
pub fn ln_urn_sum(urn: &LocalUrn, observer: &impl Observer) -> Result<f64> {
    let every = (POLL_EVERY / urn.n_topics()).max(1);
    let mut n_seen = 0usize;
    let mut gamma = urn.pseudo_counts().to_vec();
    let mut ln_value = urn.ln_scale();
    for (q, count) in urn.cells() {
        for _ in 0..count {
            if n_seen.is_multiple_of(every) {
                observer.check_stop()?;
            }
            n_seen += 1;
            let weight: f64 = gamma.iter().zip(q).map(|(x, q)| x * q).sum();
            ln_value += weight.ln();
            gamma.iter_mut().zip(q).for_each(|(x, q)| *x += *x * q / weight);
        }
    }
    Ok(ln_value)
}
