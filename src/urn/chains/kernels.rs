//! The arithmetic of the chains' steps: weights and draws of all lanes at once, in double precision.

// Each kernel is compiled for several instruction sets, with all its parts in it.
#![allow(clippy::inline_always)]

use crate::math::pick_lanes;
use crate::rng::{LANES, Lanes, UniformLanes, map_lanes};
use crate::urn::{Counts, UrnTarget};

#[polyabayes_macros::vectorised]
pub(super) fn accumulate(
    sums: &mut [Lanes],
    balls: &[Counts],
    target: UrnTarget<'_>,
    cell: u32,
) -> Lanes {
    accumulate_row(sums, balls, target, cell)
}

/// Draws a topic and puts its ball in; returns the weights as well.
#[polyabayes_macros::vectorised]
pub(super) fn draw(
    sums: &mut [Lanes],
    balls: &mut [Counts],
    target: UrnTarget<'_>,
    cell: u32,
    uniforms: &mut impl UniformLanes,
) -> ([u16; LANES], Lanes) {
    let totals = accumulate_row(sums, balls, target, cell);
    let topics = map_lanes(pick_lanes(sums, uniforms.next()), |topic| topic as u16);
    put(balls, &topics);
    (topics, totals)
}

/// Adds ln Π of the ratios of the balls at each draw of a topic, base + unit n, at the second bases and
/// units to those at the first. Products are within these bounds, between which their logarithms
/// need not be taken, so that no product of two of them overflows.
#[polyabayes_macros::vectorised]
pub(super) fn balls_ratio(
    balls: &[Counts],
    from: (&[f64], &[f64]),
    to: (&[f64], &[f64]),
    ln_ratio: &mut Lanes,
) {
    let is_moderate = |x: f64| x > 1e-100 && x < 1e100;
    let mut products = [1.0; LANES];
    let mut take_logarithms = |products: &mut Lanes| {
        for lane in 0..LANES {
            ln_ratio[lane] += products[lane].ln();
            products[lane] = 1.0;
        }
    };
    let topics = from.0.iter().zip(from.1).zip(to.0.iter().zip(to.1));
    for (balls, ((before, unit_before), (after, unit_after))) in balls.iter().zip(topics) {
        // Product of the lanes that still draw.
        let mut product = 1.0;
        for count in 0..largest(balls) {
            let n = f64::from(count);
            let ratio = (after + unit_after * n) / (before + unit_before * n);
            for lane in 0..LANES {
                products[lane] *= if balls[lane] > count { ratio } else { 1.0 };
            }
            product *= ratio;
            if !is_moderate(product) {
                take_logarithms(&mut products);
                product = 1.0;
            }
        }
        let mut is_every_moderate = true;
        for product in products {
            is_every_moderate &= is_moderate(product);
        }
        if !is_every_moderate {
            take_logarithms(&mut products);
        }
    }
    take_logarithms(&mut products);
}

/// The largest of all lanes, halves first: a running maximum would take one lane at a time.
#[inline(always)]
fn largest(values: &Counts) -> i32 {
    let (mut values, mut width) = (*values, LANES / 2);
    while width > 0 {
        for lane in 0..width {
            values[lane] = values[lane].max(values[lane + width]);
        }
        width /= 2;
    }
    values[0]
}

#[polyabayes_macros::vectorised]
pub(super) fn pick(sums: &[Lanes], uniforms: &mut impl UniformLanes) -> [u16; LANES] {
    map_lanes(pick_lanes(sums, uniforms.next()), |topic| topic as u16)
}

/// Fills the cumulative weights of the topics; returns the totals.
#[inline(always)]
fn accumulate_row(sums: &mut [Lanes], balls: &[Counts], target: UrnTarget<'_>, cell: u32) -> Lanes {
    let mut total = [0.0; LANES];
    let topics = target.base.iter().zip(target.row(cell));
    for ((sums, balls), (base, q)) in sums.iter_mut().zip(balls).zip(topics) {
        for lane in 0..LANES {
            total[lane] += (base + target.unit * f64::from(balls[lane])) * q;
        }
        *sums = total;
    }
    total
}

#[inline(always)]
pub(super) fn put(balls: &mut [Counts], topics: &[u16; LANES]) {
    for (lane, &topic) in topics.iter().enumerate() {
        balls[usize::from(topic)][lane] += 1;
    }
}

#[inline(always)]
pub(super) fn take(balls: &mut [Counts], topics: &[u16; LANES]) {
    for (lane, &topic) in topics.iter().enumerate() {
        balls[usize::from(topic)][lane] -= 1;
    }
}
