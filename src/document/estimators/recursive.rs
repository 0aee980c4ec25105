//! The recursion of Scott and Baldridge: a deterministic screen.

use crate::urn::LocalUrn;

/// ln of an approximation of Z: γ starts at a; every token has weight Σ_k γ_k q_k and adds its
/// responsibilities γ_k q_k / Σ γ q to γ.
///
/// Neither unbiased nor a bound; wrong by a tenth of a nat and more. Cost: tokens x topics.
pub fn ln_urn_sum(urn: &LocalUrn) -> f64 {
    let mut gamma = urn.pseudo_counts().to_vec();
    let mut ln_value = urn.ln_scale();
    for (q, count) in urn.cells() {
        for _ in 0..count {
            let weight: f64 = gamma.iter().zip(q).map(|(x, q)| x * q).sum();
            ln_value += weight.ln();
            gamma.iter_mut().zip(q).for_each(|(x, q)| *x += *x * q / weight);
        }
    }
    ln_value
}
