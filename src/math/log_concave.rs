//! A draw from a density on the line whose logarithm is concave.

use rand::{Rng, RngExt};

/// Secant steps towards the mode before the first draw.
const SECANTS: usize = 4;

/// Slopes below this, times the width of a piece, leave it flat.
const FLAT: f64 = 1e-9;

/// A point of the log-density: place, value and slope.
#[derive(Clone, Copy)]
struct Tangent {
    x: f64,
    value: f64,
    slope: f64,
}

impl Tangent {
    fn at(self, x: f64) -> f64 {
        self.value + self.slope * (x - self.x)
    }

    /// Where two tangents meet; in the middle where they are parallel but for rounding.
    fn meets(self, other: Tangent) -> f64 {
        let x = (other.value - self.value + self.slope * self.x - other.slope * other.x)
            / (self.slope - other.slope);
        if x >= self.x && x <= other.x { x } else { f64::midpoint(self.x, other.x) }
    }
}

/// A draw from the density ∝ exp f, by adaptive rejection from the tangents of f (Gilks and Wild
/// 1992): exact wherever the search starts.
///
/// `f` gives value and slope; it must be strictly concave, rising on the far left and falling on the
/// far right. A draw costs some ten values of `f`.
pub fn log_concave(f: impl Fn(f64) -> (f64, f64), start: f64, rng: &mut impl Rng) -> f64 {
    let tangent = |x| {
        let (value, slope) = f(x);
        Tangent { x, value, slope }
    };
    let mut hull = bracket(&tangent, start);
    for _ in 0..SECANTS {
        let after = hull.partition_point(|t| t.slope > 0.0);
        let point = tangent(hull[after - 1].meets(hull[after]));
        insert(&mut hull, point);
    }
    loop {
        let (x, bound) = propose(&hull, rng);
        let point = tangent(x);
        if rng.random::<f64>().ln() <= point.value - bound {
            return x;
        }
        insert(&mut hull, point);
    }
}

/// Tangents at both sides of the mode: the first rises, the last falls.
fn bracket(tangent: &impl Fn(f64) -> Tangent, start: f64) -> Vec<Tangent> {
    let first = tangent(start);
    let mut points = vec![if first.slope == 0.0 { tangent(start - 0.5) } else { first }];
    let uphill = points[0].slope.signum();
    let mut step = 0.5;
    while points[points.len() - 1].slope * uphill >= 0.0 {
        points.push(tangent(points[points.len() - 1].x + step * uphill));
        step *= 2.0;
    }
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

/// Adds a tangent in its place, unless rounding leaves nothing between its neighbours.
fn insert(hull: &mut Vec<Tangent>, point: Tangent) {
    let place = hull.partition_point(|t| t.x < point.x);
    let taken = hull.get(place).is_some_and(|t| t.x <= point.x);
    let below = place == 0 || hull[place - 1].slope > point.slope;
    let above = hull.get(place).is_none_or(|t| t.slope < point.slope);
    if !taken && below && above {
        hull.insert(place, point);
    }
}

/// A draw from the density ∝ exp of the least tangent, and the value of that.
fn propose(hull: &[Tangent], rng: &mut impl Rng) -> (f64, f64) {
    let end = |i: usize| match hull.get(i + 1) {
        Some(&next) => hull[i].meets(next),
        None => f64::INFINITY,
    };
    let ends = (0..hull.len()).map(end);
    let heights = hull.iter().zip(ends.clone()).filter(|(_, x)| x.is_finite());
    let top = heights.map(|(t, x)| t.at(x)).fold(f64::NEG_INFINITY, f64::max);
    let mut pieces = Vec::with_capacity(hull.len());
    let (mut from, mut total) = (f64::NEG_INFINITY, 0.0);
    for (&tangent, to) in hull.iter().zip(ends) {
        total += mass(tangent, from, to, top);
        pieces.push((tangent, from, to, total));
        from = to;
    }
    let dart = rng.random::<f64>() * total;
    let piece = pieces.iter().position(|piece| dart < piece.3).unwrap_or(pieces.len() - 1);
    let (tangent, from, to, _) = pieces[piece];
    let x = within(tangent.slope, from, to, rng.random());
    (x, tangent.at(x))
}

/// ∫ exp(tangent - top) over a piece.
fn mass(tangent: Tangent, from: f64, to: f64, top: f64) -> f64 {
    let (slope, high) = (tangent.slope, if tangent.slope > 0.0 { to } else { from });
    let drop = slope.abs() * (to - from);
    if drop < FLAT {
        return (tangent.at(f64::midpoint(from, to)) - top).exp() * (to - from);
    }
    (tangent.at(high) - top).exp() * -(-drop).exp_m1() / slope.abs()
}

/// The place in a piece of an exponential density below which it has the share `u`.
fn within(slope: f64, from: f64, to: f64, u: f64) -> f64 {
    let drop = slope.abs() * (to - from);
    if drop < FLAT {
        return from + u * (to - from);
    }
    // The higher end comes first, with 1 - u in (0, 1] for u.
    let distance = -(-(1.0 - u) * -(-drop).exp_m1()).ln_1p() / slope.abs();
    if slope > 0.0 { to - distance } else { from + distance }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::{digamma, mean_and_error, trigamma, variance};
    use crate::rng::{Key, Purpose};

    /// ln of a gamma variate: f = a x - exp x.
    #[test]
    fn draws_have_the_moments_of_their_law() {
        let n = 20_000;
        for (a, start) in [(0.05, 3.0), (1.0, -40.0), (30.0, 0.0), (1e5, 30.0)] {
            let mut rng = Key::new(5, Purpose::Parameters).rng();
            let draw = |_| log_concave(|x| (a * x - x.exp(), a - x.exp()), start, &mut rng);
            let draws: Vec<f64> = (0..n).map(draw).collect();
            let ((mean, _), variance) = (mean_and_error(&draws), variance(&draws));
            let spread = trigamma(a);
            let errors = (mean - digamma(a)) / (spread / f64::from(n)).sqrt();
            assert!(errors.abs() < 4.0, "{a}: {errors}");
            // Fourth moments of these distributions are at most nine squares of the second.
            let errors = (variance / spread - 1.0) / (8.0 / f64::from(n)).sqrt();
            assert!(errors.abs() < 4.0, "{a}: {errors}");
        }
    }
}
