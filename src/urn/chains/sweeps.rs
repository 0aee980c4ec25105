//! Gibbs sweeps over the tokens of one document: draws in single precision that come out as in double
//! precision.
//!
//! Weights and their sums are singles, sixteen chains to a register. Where a rounding might have
//! decided a draw, that chain's weights are summed again in doubles.

// Each kernel is compiled for several instruction sets, with all its parts in it.
// The compiler makes vectors of selected numbers, and not of converted truth values.
#![allow(clippy::inline_always, clippy::bool_to_int_with_if)]

use super::kernels::{put, take};
use crate::math::elementary::single::ROUNDING;
use crate::rng::{LANES, Lanes, UniformLanes, map_lanes};
use crate::urn::{Counts, Shortlists, SweepOrder, UrnTarget};

/// Total weight below which single precision may have lost some of its parts.
pub(super) const LEAST_TOTAL: f32 = 1e-15;

/// Roundings of a draw beside those of its sums; see [`pick`].
const ROUNDINGS: f32 = 32.0;

/// A single of every lane.
pub(super) type Singles = [f32; LANES];

/// Weights of a block: more of them are summed block by block, so that a sum has as many roundings as a
/// block has weights, and one for each block. The fewest are those of blocks of √n weights, here for n of
/// about a thousand.
const BLOCK: usize = 32;

/// Buffers of a sweep.
#[derive(Debug, Clone, Default)]
pub(super) struct SinglePrecision {
    /// Balls of each topic before the first draw.
    base: Vec<f32>,
    /// Weights of a word.
    q: Vec<f32>,
    /// Cumulative weights.
    sums: Vec<Singles>,
}

impl SinglePrecision {
    fn take_up(&mut self, target: UrnTarget<'_>) {
        self.base.clear();
        self.base.extend(target.base.iter().map(|&base| base as f32));
        self.sums.resize(target.base.len(), [0.0; LANES]);
    }
}

/// Consecutive tokens of a document, what a sweep over them changes, and its buffers.
pub(super) struct SweptTokens<'a, U> {
    /// Distinct word of each token.
    pub cells: &'a [u32],
    /// Topics of the tokens.
    pub topics: &'a mut [[u16; LANES]],
    /// Tokens of each topic, in the whole document.
    pub balls: &'a mut [Counts],
    pub single: &'a mut SinglePrecision,
    pub uniforms: &'a mut U,
}

/// Name of the weight on which each dart falls, given the cumulative weights of n - 1 of n weights and
/// their total; and the chains where that is open, since a limit between weights may lie on the other
/// side of the dart.
///
/// The two sums between which a dart lies have `of_sums` roundings each, beside `roundings` of weights and
/// dart: each weight of a plain urn has 6; the dart has those of the total, of u and of their product.
/// Errors of second order are a hundredth of that.
#[inline(always)]
pub(super) fn pick(
    sums: &[Singles],
    totals: &Singles,
    mut names: impl Iterator<Item = i32>,
    uniforms: &Lanes,
    (of_sums, roundings): (usize, f32),
) -> (Counts, Counts) {
    let (totals, mut darts) = (*totals, [0.0; LANES]);
    for lane in 0..LANES {
        darts[lane] = uniforms[lane] as f32 * totals[lane];
    }
    let (mut picked, mut least) = ([names.next().unwrap_or(0); LANES], [f32::INFINITY; LANES]);
    for (sums, name) in sums.iter().zip(names) {
        for lane in 0..LANES {
            let distance = (sums[lane] - darts[lane]).abs();
            least[lane] = if distance < least[lane] { distance } else { least[lane] };
            picked[lane] = if sums[lane] <= darts[lane] { name } else { picked[lane] };
        }
    }
    let margin = (2.02 * of_sums as f32 + roundings) * ROUNDING;
    let mut is_open = [0; LANES];
    for lane in 0..LANES {
        // Not so if the total is no finite number, whatever the least distance is.
        let is_near = if least[lane] > margin * totals[lane] { 0 } else { 1 };
        is_open[lane] = if totals[lane] > LEAST_TOTAL { is_near } else { 1 };
    }
    (picked, is_open)
}

/// Draws for the chains where single precision leaves it open, as
/// [`pick_lanes`](crate::math::pick_lanes) does, from all weights of a chain.
#[cold]
#[inline(never)]
pub(super) fn pick_exactly<W: ExactSizeIterator<Item = f64> + Clone>(
    picked: &mut Counts,
    is_open: &Counts,
    uniforms: &Lanes,
    weights: impl Fn(usize) -> W,
    name: impl Fn(usize) -> i32,
) {
    for lane in (0..LANES).filter(|&lane| is_open[lane] != 0) {
        let weights = weights(lane);
        let dart = uniforms[lane] * weights.clone().fold(0.0, |sum, weight| sum + weight);
        let n_compared = weights.len() - 1;
        let sums = weights.take(n_compared).scan(0.0, |sum, weight| {
            *sum += weight;
            Some(*sum)
        });
        picked[lane] = name(sums.filter(|&sum| sum <= dart).count());
    }
}

/// Fills the cumulative weights of some topics, given their balls, their base and q; returns the
/// totals.
#[inline(always)]
fn accumulate<'a>(
    sums: &mut [Singles],
    mut topics: impl Iterator<Item = (&'a Counts, f32, f32)>,
    unit: f32,
) -> Singles {
    // A loop of its own for the first block: before it is nothing that would have to be added.
    let (first, rest) = sums.split_at_mut(BLOCK.min(sums.len()));
    let mut total = [0.0; LANES];
    for (sums, (balls, base, q)) in first.iter_mut().zip(&mut topics) {
        for lane in 0..LANES {
            total[lane] += (base + unit * balls[lane] as f32) * q;
        }
        *sums = total;
    }
    for sums in rest.chunks_mut(BLOCK) {
        let (before, mut block) = (total, [0.0; LANES]);
        for (sums, (balls, base, q)) in sums.iter_mut().zip(&mut topics) {
            for lane in 0..LANES {
                block[lane] += (base + unit * balls[lane] as f32) * q;
                total[lane] = before[lane] + block[lane];
            }
            *sums = total;
        }
    }
    total
}

/// Roundings of the cumulative sums of n weights and of the total with one more, and those beside
/// them; see [`accumulate`] and [`pick`].
fn roundings(n: usize) -> (usize, f32) {
    (n.min(BLOCK) + n / BLOCK, ROUNDINGS)
}

/// One sweep that moves tokens among all topics.
#[polyabayes_macros::vectorised]
pub(super) fn sweep<U: UniformLanes>(
    tokens: SweptTokens<'_, U>,
    target: UrnTarget<'_>,
    order: SweepOrder,
) {
    let SweptTokens { cells, topics, balls, single, uniforms } = tokens;
    single.take_up(target);
    let (n_topics, mut row_of) = (target.base.len(), None);
    for step in 0..topics.len() {
        let token = order.nth(step, topics.len());
        let q = target.row(cells[token]);
        if row_of != Some(cells[token]) {
            single.q.clear();
            single.q.extend(q.iter().map(|&q| q as f32));
            row_of = Some(cells[token]);
        }
        take(balls, &topics[token]);
        let rows = balls.iter().zip(&single.base).zip(&single.q);
        let rows = rows.map(|((balls, &base), &q)| (balls, base, q));
        let total = accumulate(&mut single.sums, rows, target.unit as f32);
        let uniform = uniforms.next();
        let names = 0..n_topics as i32;
        let (mut new, is_open) =
            pick(&single.sums[..n_topics - 1], &total, names, &uniform, roundings(n_topics - 1));
        if is_open != [0; LANES] {
            let weights = |lane: usize| {
                let row = balls.iter().zip(target.base).zip(q);
                row.map(move |((n, base), q)| (base + target.unit * f64::from(n[lane])) * q)
            };
            pick_exactly(&mut new, &is_open, &uniform, weights, |k| k as i32);
        }
        topics[token] = map_lanes(new, |topic| topic as u16);
        put(balls, &topics[token]);
    }
}

/// One sweep that moves tokens among the topics on the lists of their words.
#[polyabayes_macros::vectorised]
pub(super) fn sweep_within<U: UniformLanes>(
    tokens: SweptTokens<'_, U>,
    lists: &Shortlists,
    target: UrnTarget<'_>,
    order: SweepOrder,
) {
    let SweptTokens { cells, topics, balls, single, uniforms } = tokens;
    single.take_up(target);
    for step in 0..topics.len() {
        let token = order.nth(step, topics.len());
        let list = lists.list(cells[token]);
        let n_listed = list.topics.len();
        if n_listed < 2 {
            continue;
        }
        let old = topics[token];
        take(balls, &old);
        let rows = list.topics.iter().zip(list.q).map(|(&topic, &q)| {
            let k = usize::from(topic);
            (&balls[k], single.base[k], q)
        });
        let total = accumulate(&mut single.sums[..n_listed], rows, target.unit as f32);
        let uniform = uniforms.next();
        let names = list.topics.iter().map(|&topic| i32::from(topic));
        let (mut new, is_open) =
            pick(&single.sums[..n_listed - 1], &total, names, &uniform, roundings(n_listed - 1));
        if is_open != [0; LANES] {
            let (q, balls) = (target.row(cells[token]), &balls[..]);
            let weights = |lane: usize| {
                list.topics.iter().map(move |&topic| {
                    let k = usize::from(topic);
                    (target.base[k] + target.unit * f64::from(balls[k][lane])) * q[k]
                })
            };
            let name = |place: usize| i32::from(list.topics[place]);
            pick_exactly(&mut new, &is_open, &uniform, weights, name);
        }
        let new = map_lanes(new, |topic| topic as u16);
        for lane in 0..LANES {
            if list.is_listed[usize::from(old[lane])] {
                topics[token][lane] = new[lane];
            }
        }
        put(balls, &topics[token]);
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::math::pick_lanes;
    use crate::rng::{Key, Purpose};
    use crate::urn::{LocalUrn, TopicChains};

    /// One number again and again.
    struct Constant(f64);

    impl UniformLanes for Constant {
        fn next(&mut self) -> Lanes {
            [self.0; LANES]
        }
    }

    /// Draws near limits and far from them, with weights over many orders of magnitude, and with
    /// some that singles have no room for.
    #[test]
    fn single_precision_draws_as_double_precision_does() {
        let mut rng = Key::new(1, Purpose::Score).rng();
        // Roundings of weights that are nearly equal add up.
        for (n_topics, scale, power) in [
            (2, 1.0, 20.0),
            (7, 1e-30, 20.0),
            (300, 1e-42, 20.0),
            (50, 1.0, 20.0),
            (50, 1e60, 20.0),
            (300, 1e-20, 20.0),
            (2_000, 0.1, 1e-7),
        ] {
            for unit in [0.0, 0.3, 1.0] {
                let mut draw = |power| rng.random::<f64>().powf(power);
                let q: Vec<f64> = (0..n_topics).map(|_| draw(power)).collect();
                let base: Vec<f64> = (0..n_topics).map(|_| scale * draw(power.min(1.0))).collect();
                let urn = LocalUrn::from_rows(&vec![1.0; n_topics], &[(&q, 30)]).unwrap();
                let target = UrnTarget { base: &base, unit, q: urn.all_weights(), bursts: None };
                let topics: Vec<u16> =
                    (0..30).map(|_| rng.random_range(0..n_topics) as u16).collect();
                let weights: Vec<Lanes> = (0..n_topics)
                    .map(|k| {
                        let n = topics[1..].iter().filter(|&&topic| usize::from(topic) == k);
                        let weight = (base[k] + unit * n.count() as f64) * target.q[k];
                        [weight; LANES]
                    })
                    .collect();
                let sums = |places: &[u16]| -> Vec<Lanes> {
                    let mut total = 0.0;
                    let running = places.iter().map(|&k| {
                        total += weights[usize::from(k)][0];
                        [total; LANES]
                    });
                    running.collect()
                };
                let lists = Shortlists::new(&urn, &base, 0.02);
                let listed = lists.list(0).topics.to_vec();
                let all: Vec<u16> = (0..n_topics as u16).collect();
                for places in [all, listed] {
                    let sums = sums(&places);
                    let total = sums[sums.len() - 1][0];
                    let mut darts: Vec<f64> = (0..100).map(|_| rng.random()).collect();
                    for off in [-1e-6, -1e-7, -1e-8, 0.0, 1e-8, 1e-7, 1e-6] {
                        let near = |sum: &Lanes| (sum[0] / total + off).clamp(0.0, 1.0 - 1e-16);
                        // All limits of very many topics would take a minute.
                        let step = if n_topics > 300 { 37 } else { 1 };
                        darts.extend(sums.iter().step_by(step).map(near));
                    }
                    for u in darts {
                        let mut chains = TopicChains::with_uniforms(&urn, Constant(u)).unwrap();
                        topics.iter().for_each(|&topic| chains.put([topic; LANES]));
                        let expected = places[pick_lanes(&sums, [u; LANES])[0] as usize];
                        let expected = if places.len() == n_topics {
                            sweep(chains.swept(0..1), target, SweepOrder::Forward);
                            expected
                        } else {
                            sweep_within(chains.swept(0..1), &lists, target, SweepOrder::Forward);
                            let stays = places.len() < 2 || !places.contains(&topics[0]);
                            if stays { topics[0] } else { expected }
                        };
                        assert_eq!(chains.topics()[0], [expected; LANES], "{n_topics}: {u}");
                        let n = |k: u16| {
                            let others = topics[1..].iter().filter(|&&topic| topic == k).count();
                            others as i32 + i32::from(k == expected)
                        };
                        let balls: Vec<_> = (0..n_topics as u16).map(|k| [n(k); LANES]).collect();
                        assert_eq!(chains.balls(), balls);
                    }
                }
            }
        }
    }
}
