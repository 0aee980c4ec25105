//! Subset convolution of functions of partial documents, by ranked zeta transforms.
//!
//! A word with count y is y copies of a word of which only the number counts; its axis takes the
//! values `f̂_j = Σ_i C(j, i) t^i f_i`, j = 0..y, where t counts copies. Products of transforms are
//! products of polynomials in t, and only the power of t that equals the number of copies of a
//! state survives: whatever counted a copy twice has a higher one. Axes are transformed from the
//! highest down, depth first, so that little is held at a time. The functions of a node are
//! polynomials of degree c, c being the copies that the values j stand for; one array (a *plane*)
//! holds a power of t. The three lowest words lie side by side in vector registers.

// The leaf is compiled for several instruction sets, with its parts in it.
#![allow(clippy::inline_always)]

use super::axis::{MAX_TOKENS, WordAxis};
use crate::control::Observer;
use crate::error::Result;

/// States of the lowest words: three words of count 1.
pub(super) const N_LANES: usize = 8;

/// Number of axes that lie in the lanes.
pub(super) const LANE_AXES: usize = 3;

/// Coefficients of a polynomial in t that any node may have.
const MAX_PLANES: usize = MAX_TOKENS + 1;

/// Block size from which a node polls the observer.
const POLL_FROM: usize = 4096;

/// One state in every lane.
type Block = [f64; N_LANES];

/// The planes of a function, by power of t: a range of [`Convolution::places`].
#[derive(Clone, Copy, Default)]
struct Planes {
    first: usize,
    n: usize,
}

/// Polynomials of a leaf and their product.
#[derive(Clone)]
struct Leaf {
    left: [Block; MAX_PLANES],
    right: [Block; MAX_PLANES],
    product: [Block; MAX_PLANES],
}

/// Convolutions on the lattice of some axes, within one array of numbers.
pub(super) struct Convolution<'a> {
    /// The axes, the lowest first.
    axes: &'a [WordAxis],
    arena: &'a mut [f64],
    /// First number of the arena that is free.
    free: usize,
    /// First numbers of all planes in use.
    places: Vec<usize>,
    leaf: Leaf,
    observer: &'a dyn Observer,
}

/// Numbers that a convolution on these axes needs beside its operands and its result.
pub(super) fn scratch(axes: &[WordAxis]) -> f64 {
    let mut copies = 0;
    let mut numbers = 0.0;
    for axis in axes[LANE_AXES..].iter().rev() {
        let planes = 2 * (copies + axis.y - 1) + axis.y * (axis.y + 1) / 2;
        numbers += planes as f64 * axis.stride as f64;
        copies += axis.y;
    }
    numbers
}

/// Multiply-adds of a convolution on these axes.
pub(super) fn operations(axes: &[WordAxis]) -> f64 {
    let n_tokens: usize = axes.iter().map(|axis| axis.y).sum();
    let states = axes.last().map_or(1, WordAxis::states) as f64;
    // A third for the products, the rest for the transforms and the walk.
    states * (n_tokens as f64 + 6.0).powi(2) / 2.0
}

impl<'a> Convolution<'a> {
    /// Works in the arena from `free` on.
    pub(super) fn new(
        axes: &'a [WordAxis],
        arena: &'a mut [f64],
        free: usize,
        observer: &'a dyn Observer,
    ) -> Self {
        let zero = [[0.0; N_LANES]; MAX_PLANES];
        let leaf = Leaf { left: zero, right: zero, product: zero };
        Convolution { axes, arena, free, places: Vec::new(), leaf, observer }
    }

    /// `out = Σ_{u <= v} C(v, u) f(u) g(v - u)`, the functions given by their places in the arena.
    pub(super) fn run(mut self, f: usize, g: usize, out: usize) -> Result<()> {
        self.places.extend([f, g, out]);
        let [f, g, out] = [0, 1, 2].map(|first| Planes { first, n: 1 });
        self.node(self.axes.len(), f, g, out)
    }

    /// One node: `level` axes are not transformed yet. The polynomials f and g have all powers up
    /// to their degree c; those of h begin at power c.
    fn node(&mut self, level: usize, f: Planes, g: Planes, h: Planes) -> Result<()> {
        if level == LANE_AXES {
            let places = |planes: Planes| &self.places[planes.first..][..planes.n];
            multiply(self.arena, &mut self.leaf, places(f), places(g), places(h));
            return Ok(());
        }
        let axis = self.axes[level - 1];
        if axis.stride >= POLL_FROM {
            self.observer.check_stop()?;
        }
        let degree = f.n - 1;
        // Powers of t from `degree` up to this one are asked for.
        let last = degree + h.n - 1;
        // Above twice the degree, and what copies of the words below may be counted twice, is zero.
        let n_below: usize = self.axes[..level - 1].iter().map(|axis| axis.y).sum();
        let (bottom, first) = (self.free, self.places.len());
        let mut values = [Planes::default(); MAX_COPIES + 1];
        for (j, value) in values[..=axis.y].iter_mut().enumerate() {
            let largest = (last + axis.y).min(2 * (degree + j) + n_below).max(last + j);
            *value = Planes { first: self.places.len(), n: largest + 1 - degree - j };
            for place in 0..value.n {
                let start = if place < h.n {
                    self.places[h.first + place] + j * axis.stride
                } else {
                    self.take(axis.stride)
                };
                self.places.push(start);
            }
            let top = (self.free, self.places.len());
            let f = self.transformed(axis, f, j);
            let g = self.transformed(axis, g, j);
            self.node(level - 1, f, g, *value)?;
            self.free = top.0;
            self.places.truncate(top.1);
        }
        self.invert(axis, h, &values);
        self.free = bottom;
        self.places.truncate(first);
        Ok(())
    }

    fn take(&mut self, n: usize) -> usize {
        self.free += n;
        self.free - n
    }

    /// f̂_j along an axis; a plane that is one of f's stays where it is.
    fn transformed(&mut self, axis: WordAxis, f: Planes, j: usize) -> Planes {
        let planes = Planes { first: self.places.len(), n: f.n + j };
        for power in 0..planes.n {
            let lowest = (power + 1).saturating_sub(f.n);
            let highest = j.min(power);
            let places = &self.places[f.first..];
            let source = |i: usize| places[power - i] + i * axis.stride;
            let is_plain = lowest == 0 || lowest == j;
            if lowest == highest && is_plain {
                self.places.push(source(lowest));
                continue;
            }
            let to = self.free;
            let (below, above) = self.arena.split_at_mut(to);
            let sum = &mut above[..axis.stride];
            sum.copy_from_slice(&below[source(lowest)..][..axis.stride]);
            if !is_plain {
                sum.iter_mut().for_each(|x| *x *= BINOMIALS[j][lowest]);
            }
            for i in lowest + 1..=highest {
                add(sum, &below[source(i)..][..axis.stride], BINOMIALS[j][i]);
            }
            self.free += axis.stride;
            self.places.push(to);
        }
        planes
    }

    /// `h_n = t^{-n} Σ_j (-1)^{n-j} C(n, j) ĥ_j`, from the highest n down, in place.
    fn invert(&mut self, axis: WordAxis, h: Planes, values: &[Planes]) {
        for n in (1..=axis.y).rev() {
            for power in 0..h.n {
                let to = self.places[h.first + power] + n * axis.stride;
                for (j, value) in values[..n].iter().enumerate() {
                    if power + n - j < value.n {
                        let from = self.places[value.first + power + n - j];
                        let sign = if (n - j) % 2 == 1 { -1.0 } else { 1.0 };
                        add_within(self.arena, to, from, axis.stride, sign * BINOMIALS[n][j]);
                    }
                }
            }
        }
    }
}

/// Largest count of a word whose axis is transformed.
pub(super) const MAX_COPIES: usize = 4;

/// C(j, i).
pub(super) const BINOMIALS: [[f64; MAX_COPIES + 1]; MAX_COPIES + 1] = [
    [1.0, 0.0, 0.0, 0.0, 0.0],
    [1.0, 1.0, 0.0, 0.0, 0.0],
    [1.0, 2.0, 1.0, 0.0, 0.0],
    [1.0, 3.0, 3.0, 1.0, 0.0],
    [1.0, 4.0, 6.0, 4.0, 1.0],
];

#[inline]
pub(super) fn add(sum: &mut [f64], terms: &[f64], factor: f64) {
    for (sum, x) in sum.iter_mut().zip(terms) {
        *sum += factor * x;
    }
}

/// Adds a part of the arena to another.
#[inline]
fn add_within(arena: &mut [f64], to: usize, from: usize, n: usize, factor: f64) {
    if to < from {
        let (low, high) = arena.split_at_mut(from);
        add(&mut low[to..to + n], &high[..n], factor);
    } else {
        let (low, high) = arena.split_at_mut(to);
        add(&mut high[..n], &low[from..from + n], factor);
    }
}

/// The product of two nodes of which only the lanes are left.
#[polyabayes_macros::vectorised(avx2)]
fn multiply(arena: &mut [f64], leaf: &mut Leaf, f: &[usize], g: &[usize], h: &[usize]) {
    let degree = f.len() - 1;
    let n = degree + 1 + LANE_AXES;
    load(arena, f, &mut leaf.left[..n]);
    load(arena, g, &mut leaf.right[..n]);
    let (left, right) = (&leaf.left[..n], &leaf.right[..n]);
    // Powers of t from `degree` up, and as many more as the lanes may take away.
    let product = &mut leaf.product[..h.len() + LANE_AXES];
    for (power, sum) in (degree..).zip(&mut *product) {
        let first = (power + 1).saturating_sub(n);
        let end = (power + 1).min(n);
        *sum = if first < end {
            dot(&left[first..end], &right[power + 1 - end..power + 1 - first])
        } else {
            [0.0; N_LANES]
        };
    }
    for bit in 0..LANE_AXES {
        for power in 0..product.len() - 1 - bit {
            let above = product[power + 1];
            let here = &mut product[power];
            for lane in 0..N_LANES {
                let with = lane >> bit & 1 == 1;
                here[lane] =
                    if with { above[lane] - above[lane & !(1 << bit)] } else { here[lane] };
            }
        }
    }
    for (&start, values) in h.iter().zip(&*product) {
        arena[start..start + N_LANES].copy_from_slice(values);
    }
}

/// Reads a polynomial and transforms it along the lanes.
#[inline(always)]
fn load(arena: &[f64], starts: &[usize], planes: &mut [Block]) {
    planes[starts.len()..].fill([0.0; N_LANES]);
    for (plane, &start) in planes.iter_mut().zip(starts) {
        plane.copy_from_slice(&arena[start..start + N_LANES]);
    }
    for bit in 0..LANE_AXES {
        for power in (0..=starts.len() + bit).rev() {
            let below = if power > 0 { planes[power - 1] } else { [0.0; N_LANES] };
            let here = planes[power];
            for lane in 0..N_LANES {
                let with = lane >> bit & 1 == 1;
                let sum = here[lane & !(1 << bit)] + below[lane];
                planes[power][lane] = if with { sum } else { here[lane] };
            }
        }
    }
}

/// Σ_i left_i right_{n-1-i}, lane by lane.
#[inline(always)]
fn dot(left: &[Block], right: &[Block]) -> Block {
    let mut sum = [0.0; N_LANES];
    for (x, y) in left.iter().zip(right.iter().rev()) {
        for lane in 0..N_LANES {
            sum[lane] += x[lane] * y[lane];
        }
    }
    sum
}
