//! A network and a tensor, laid out for the samplers.

use super::margins::{Cells, MarginForm, MarginLayout, Margins, Reader, check_rows};
use super::network::{Margin, Network};
use super::patterns::Patterns;
use super::plan::{Clique, EliminationPlan, Factor};
use crate::allocation::memory::Load;
use crate::counts::CountTensor;
use crate::error::{Error, Result, check_length, room_for};
use crate::math::{ln_factorial, ln_rising};
use crate::memory::check_bytes;

/// Tokens of a cell, and tokens for each of its states, from which chains redraw them together.
const HEAVY: u64 = 32;

/// Joint states of a token up to which particles draw its hidden nodes at once: with more of them that
/// takes longer than the steps of a chain, whose particles are moved by no sweeps.
const MOST_AT_ONCE: f64 = 8192.0;

/// Pseudo-counts of all values of a hidden node, in total, up to which a value that has no token is
/// so unlikely to get one that all particles may leave it closed.
const RARE: f64 = 0.02;

/// Largest ln of products, with room for sums of them.
const LN_RANGE: f64 = 600.0;

/// The margins to sum over, those that hidden nodes take part in: one row of counts for each of
/// their cells that the data can reach.
///
/// Rows of equal visible values are contiguous, and called a block.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Plan of the tokens that show the same axes as the first.
    pub(crate) plan: EliminationPlan,
    /// Plans of the other patterns of unknown axes.
    other_plans: Vec<EliminationPlan>,
    patterns: Patterns,
    /// Nodes that are no axes.
    hidden: Vec<usize>,
    pub(crate) margins: Vec<MarginLayout>,
    /// Number of rows of all margins.
    pub(crate) n_rows: usize,
    /// First row of each slot of each cell of the data, `n_slots` a cell.
    bases: Vec<u32>,
    n_slots: usize,
    /// Counts of the cells of the data, and zeros for those that were not observed.
    pub(crate) counts: Vec<u64>,
    /// Cells that were not observed.
    pub(crate) missing: std::ops::Range<u32>,
    /// Sum of the counts.
    pub(crate) total: u64,
    /// ln of the margins that the data alone determine.
    pub(crate) ln_visible: f64,
    /// ln T!, the sum over patterns of unknown axes.
    pub(crate) ln_labelled: f64,
    /// The arrangements of the tokens: `ln_labelled` less Σ ln X!.
    pub(crate) ln_arrangements: f64,
    concentration: f64,
    /// Whether particles draw the hidden nodes of a token clique after clique.
    is_stepwise: bool,
}

impl Problem {
    /// Lays out a network for a tensor; hidden nodes are summed out in `order`, or in a good one.
    ///
    /// # Errors
    /// A tensor whose axes are larger than their nodes, an order that is not one of the hidden
    /// nodes, hidden nodes with too many joint states.
    pub fn new(network: &Network, data: &CountTensor, order: Option<&[usize]>) -> Result<Self> {
        Problem::lay_out(network, &Cells { data, missing: &[] }, order, MarginForm::LAW)
    }

    /// Lays out a network for sums over one token at a time whose weight is a product of weights of
    /// rows: hidden nodes of tied tables are then summed out apart, as those of others are. Allocations
    /// have no such distribution.
    ///
    /// # Errors
    /// The errors of [`Problem::new`].
    pub fn factorised(
        network: &Network,
        data: &CountTensor,
        order: Option<&[usize]>,
    ) -> Result<Self> {
        let form = MarginForm { slots_apart: true, ..MarginForm::LAW };
        Problem::lay_out(network, &Cells { data, missing: &[] }, order, form)
    }

    /// Lays out a network for the evidence alone: as [`Problem::new`] does, but hidden nodes of tied
    /// tables with many joint states for particles that draw them clique after clique.
    ///
    /// # Errors
    /// The errors of [`Problem::new`].
    pub fn stepwise(
        network: &Network,
        data: &CountTensor,
        order: Option<&[usize]>,
    ) -> Result<Self> {
        let form = MarginForm { most_states: MOST_AT_ONCE, ..MarginForm::LAW };
        match Problem::lay_out(network, &Cells { data, missing: &[] }, order, form) {
            Err(Error::Memory { .. }) => {}
            laid_out => return laid_out,
        }
        let problem = Problem::factorised(network, data, order)?;
        let is_tied = problem.margins.iter().any(|laid| laid.margin.slots.len() > 1);
        if is_tied && problem.n_cliques() > 1 {
            return Ok(Problem { is_stepwise: true, ..problem });
        }
        Problem::new(network, data, order)
    }

    /// Lays out margins over cells that were not observed, too. Any of them makes the margins of
    /// visible nodes depend on where its tokens fall: all margins have rows then.
    pub(crate) fn lay_out(
        network: &Network,
        cells: &Cells<'_>,
        order: Option<&[usize]>,
        form: MarginForm,
    ) -> Result<Self> {
        let (data, axes) = (cells.data, network.axes());
        check_axes(network, data)?;
        let patterns = &Patterns::new(network, data);
        let margins = match form.margins {
            Margins::Law => network.margins(|one, other| patterns.are_alike(one, other)),
            Margins::Whole => network.whole_margins(),
            Margins::Families => network.families(),
        };
        let is_seen = |margin: &Margin| {
            let mut slots = margin.slots.iter().zip(&margin.owners);
            slots.all(|(slot, &owner)| slot.iter().all(|&node| patterns.is_seen(owner, node)))
        };
        let has_rows =
            |margin: &Margin| form.all_rows || !cells.missing.is_empty() || !is_seen(margin);
        let (hidden, visible): (Vec<Margin>, Vec<Margin>) = margins.into_iter().partition(has_rows);
        let reader = Reader { axes, patterns };
        let ln_visible: f64 = visible.iter().map(|margin| reader.ln_margin(margin, data)).sum();
        let mut start = 0;
        let mut laid_margins = Vec::new();
        for margin in &hidden {
            let laid = reader.lay(margin, cells, start)?;
            start = laid.rows().end;
            check_rows(start as f64)?;
            laid_margins.push(laid);
        }
        check_bytes("marginal counts", size_of::<f64>() as f64 * start as f64)?;
        let mut plans = (0..patterns.len()).map(|pattern| {
            let slots = reader.slots(&laid_margins, pattern);
            let mut latent: Vec<usize> = (0..network.sizes().len()).collect();
            latent.retain(|&node| patterns.is_latent(pattern, node));
            let limits = (form.slots_apart, form.most_states);
            EliminationPlan::new(network, &hidden, &slots, &latent, order, limits)
        });
        let plan = plans.next().unwrap_or(Err(Error::Empty { name: "cells" }))?;
        let other_plans = plans.collect::<Result<Vec<EliminationPlan>>>()?;
        let n_missing = cells.missing.len() / axes.len();
        let n_slots = laid_margins.iter().map(|laid| laid.margin.slots.len()).sum();
        let mut bases =
            room_for("first rows of the cells", n_slots * (data.n_cells() + n_missing))?;
        for (number, cell) in cells.all().enumerate() {
            let pattern = patterns.of(number);
            for laid in &laid_margins {
                bases.extend(reader.bases(laid, cell, pattern));
            }
        }
        let ln_labelled = ln_factorials(&patterns.totals(data.counts()));
        let mut counts = data.counts().to_vec();
        counts.resize(data.n_cells() + n_missing, 0);
        let hidden_nodes = (0..network.sizes().len()).filter(|node| !axes.contains(node));
        Ok(Problem {
            plan,
            other_plans,
            hidden: hidden_nodes.collect(),
            margins: laid_margins,
            n_rows: start,
            bases,
            n_slots,
            missing: data.n_cells() as u32..counts.len() as u32,
            counts,
            total: data.total(),
            ln_visible,
            ln_labelled,
            ln_arrangements: ln_labelled - ln_factorials(data.counts()),
            concentration: network.prior().concentration,
            patterns: patterns.clone(),
            is_stepwise: false,
        })
    }

    /// Cliques of the nodes that tokens of a cell are summed over.
    #[inline]
    pub(crate) fn plan(&self, cell: u32) -> &EliminationPlan {
        match self.pattern(cell) {
            0 => &self.plan,
            pattern => &self.other_plans[pattern - 1],
        }
    }

    /// Pattern of unknown axes of the tokens of a cell.
    pub(crate) fn pattern(&self, cell: u32) -> usize {
        self.patterns.of(cell as usize)
    }

    /// Plans of all patterns.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &EliminationPlan> {
        std::iter::once(&self.plan).chain(&self.other_plans)
    }

    /// Nodes that tokens of any pattern are summed over, in the order in which they are.
    pub(crate) fn summed(&self) -> Vec<usize> {
        let mut nodes: Vec<usize> = Vec::new();
        let cliques = self.plans().flat_map(|plan| &plan.cliques);
        for &node in cliques.flat_map(|clique| &clique.nodes) {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        nodes
    }

    /// Whether particles may all leave values of a hidden node closed that the tokens need.
    pub(crate) fn opens_rarely(&self) -> bool {
        self.margins.iter().any(|MarginLayout { margin, .. }| {
            let mut nodes = margin.slots.iter().flatten();
            let n_cells: f64 = margin.shape.iter().map(|&size| size as f64).product();
            margin.alpha * n_cells <= RARE && nodes.any(|node| self.hidden.contains(node))
        })
    }

    /// Whether particles draw the hidden nodes of a token clique after clique.
    pub fn is_stepwise(&self) -> bool {
        self.is_stepwise
    }

    /// Whether all tokens show the same axes.
    pub(crate) fn is_uniform(&self) -> bool {
        self.other_plans.is_empty()
    }

    /// Whether tokens have the same states in another problem: the same cells and cliques, under
    /// whatever prior.
    pub(crate) fn has_states_of(&self, other: &Problem) -> bool {
        let cliques = |problem: &Problem| -> Vec<Vec<(Vec<usize>, usize)>> {
            let of_plan = |plan: &EliminationPlan| {
                plan.cliques.iter().map(|clique| (clique.nodes.clone(), clique.n_states)).collect()
            };
            problem.plans().map(of_plan).collect()
        };
        self.counts == other.counts && cliques(self) == cliques(other)
    }

    /// Whether tokens add to the same rows in another problem that [has their states](Self::has_states_of).
    pub(crate) fn has_rows_of(&self, other: &Problem) -> bool {
        let alike = |(one, its): (&MarginLayout, &MarginLayout)| {
            (&one.margin.slots, &one.dimensions, one.rows())
                == (&its.margin.slots, &its.dimensions, its.rows())
        };
        self.bases == other.bases
            && self.margins.len() == other.margins.len()
            && self.margins.iter().zip(&other.margins).all(alike)
    }

    /// Whether all tokens show the same axes, and hidden nodes are summed out together.
    pub(crate) fn is_joint(&self) -> bool {
        self.is_uniform() && self.plan.cliques.len() == 1
    }

    /// ln of the factor of the evidence beside the sum over allocations.
    pub(crate) fn ln_constant(&self) -> f64 {
        self.ln_visible + self.ln_arrangements
    }

    /// The tokens for a sampler that has no particles and chains yet.
    pub(crate) fn load(&self) -> Load {
        Load {
            n_tokens: self.total,
            n_marginals: self.n_rows,
            n_held: self.n_held(),
            n_missing: self.missing.len(),
            ..Load::default()
        }
    }

    /// States of the tokens that chains redraw one by one, and counts of those that they redraw
    /// together.
    pub(crate) fn n_held(&self) -> u64 {
        let held = |&count: &u64| {
            if self.is_heavy(count) {
                self.n_states() as u64
            } else {
                count * self.n_cliques() as u64
            }
        };
        self.counts.iter().map(held).sum()
    }

    /// Whether chains redraw the tokens of a cell with so many of them together.
    pub(crate) fn is_heavy(&self, count: u64) -> bool {
        self.is_joint() && count >= HEAVY.max(self.n_states() as u64)
    }

    /// First row of each slot of a cell of the data.
    pub(crate) fn bases(&self, cell: u32) -> &[u32] {
        &self.bases[cell as usize * self.n_slots..][..self.n_slots]
    }

    /// Number of cells of the data, and of those that were not observed.
    pub fn n_cells(&self) -> usize {
        self.counts.len()
    }

    /// Number of tokens.
    pub fn n_tokens(&self) -> u64 {
        self.total
    }

    /// Marginal counts of one particle.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Groups of hidden nodes that are summed out together, at most.
    pub fn n_cliques(&self) -> usize {
        self.plans().map(|plan| plan.cliques.len()).max().unwrap_or(0)
    }

    /// Joint states of hidden nodes that a token is summed over, of all cliques together, at most.
    pub fn n_states(&self) -> usize {
        self.plans().map(|plan| plan.n_states).max().unwrap_or(0)
    }

    pub(crate) fn check_range(&self) -> Result<()> {
        let mut margins: Vec<&Margin> = Vec::new();
        for MarginLayout { margin, .. } in &self.margins {
            margins.extend(margin.slots.iter().map(|_| margin));
        }
        let size = |factor: &Factor| {
            let Margin { alpha, exponent, .. } = margins[factor.slot];
            let largest = alpha.ln().abs().max((alpha + self.total as f64).ln().abs());
            largest * f64::from(exponent.unsigned_abs())
        };
        let holds = |factors: &[Factor]| factors.iter().map(size).sum::<f64>() < LN_RANGE;
        let parts = |clique: &Clique| {
            let (above, below) = clique.factors.split_at(clique.n_above);
            holds(above) && holds(below)
        };
        if self.plans().flat_map(|plan| &plan.cliques).all(parts) {
            Ok(())
        } else {
            Err(Error::Range)
        }
    }

    /// ln T! - Σ ln n!: how many allocations of labelled tokens fall into groups of these numbers.
    pub(crate) fn ln_orders(&self, groups: &[(u32, u32)]) -> f64 {
        let ln_within: f64 = groups.iter().map(|&(_, n)| ln_factorial(u64::from(n))).sum();
        self.ln_labelled - ln_within
    }

    /// The cell of every token, cell after cell.
    pub(crate) fn tokens(&self) -> Result<Vec<u32>> {
        self.check_total()?;
        let mut tokens = room_for("tokens", self.total as usize)?;
        let cells = (0..).zip(&self.counts);
        tokens.extend(cells.flat_map(|(cell, &n)| std::iter::repeat_n(cell, n as usize)));
        Ok(tokens)
    }

    pub(crate) fn check_total(&self) -> Result<()> {
        // A token adds to a row by every slot of its margin.
        let slots = self.margins.iter().map(|laid| laid.margin.slots.len() as u64);
        let (n_tokens, most) = (self.total, i32::MAX as u64 / slots.max().unwrap_or(1));
        if n_tokens > most {
            return Err(Error::TooManyTokens { n_tokens, most });
        }
        Ok(())
    }

    /// α of every row.
    pub(crate) fn alphas(&self) -> Vec<f64> {
        let mut alphas = vec![0.0; self.n_rows];
        for laid in &self.margins {
            alphas[laid.rows()].fill(laid.margin.alpha);
        }
        alphas
    }

    /// The hidden nodes whose values may be renamed without changing the distribution, each with the
    /// rows of each of its values, in corresponding order.
    pub(crate) fn rows_by_value(&self) -> Vec<Vec<Vec<usize>>> {
        self.hidden.iter().filter_map(|&node| self.rows_of(node)).collect()
    }

    /// Rows of each value of a node. None where the node shares a dimension of a tied table with
    /// other nodes, so that its values cannot be renamed alone.
    fn rows_of(&self, node: usize) -> Option<Vec<Vec<usize>>> {
        let mut values: Vec<Vec<usize>> = Vec::new();
        for laid in &self.margins {
            let slots = &laid.margin.slots;
            let place = |slot: &Vec<usize>| slot.iter().position(|&other| other == node);
            let places: Vec<Option<usize>> = slots.iter().map(place).collect();
            if places.iter().any(|place| *place != places[0]) {
                return None;
            }
            let Some(place) = places[0] else { continue };
            let size = laid.margin.shape[place];
            values.resize(size, Vec::new());
            let rank = laid.dimensions.iter().position(|&dimension| dimension == place)?;
            let stride = laid.stride(rank);
            for row in laid.rows() {
                values[(row - laid.start) % laid.block / stride % size].push(row);
            }
        }
        Some(values)
    }

    /// Marginal counts that are expected where all joint states of the hidden nodes are equally
    /// likely for every token: the average over all allocations.
    pub(crate) fn average(&self) -> Vec<f64> {
        let mut average = vec![0.0; self.n_rows];
        for cell in 0..self.n_cells() {
            let bases = self.bases(cell as u32);
            for clique in &self.plan(cell as u32).cliques {
                let share = self.counts[cell] as f64 / clique.n_states as f64;
                for factor in &clique.factors {
                    let base = bases[factor.slot] as usize;
                    factor.rows.iter().for_each(|&row| average[base + row as usize] += share);
                }
            }
        }
        average
    }

    /// ln of the sum over allocations where there is but one: every hidden node has a single value.
    pub(crate) fn ln_only_allocation(&self) -> Option<f64> {
        if self.plans().flat_map(|plan| &plan.cliques).any(|clique| clique.n_states > 1) {
            return None;
        }
        let counts = self.average();
        let ln_margin = |laid: &MarginLayout| {
            let ln_row = |&n: &f64| ln_rising(laid.margin.alpha, n as u64);
            let ln_rows: f64 = counts[laid.rows()].iter().map(ln_row).sum();
            f64::from(laid.margin.exponent) * ln_rows
        };
        Some(self.margins.iter().map(ln_margin).sum())
    }

    /// State of every clique, given the values of all nodes.
    pub(crate) fn states_of(&self, values: &[u32]) -> impl Iterator<Item = u32> {
        self.plan.cliques.iter().map(|clique| {
            let digit = |&(node, stride, _): &(usize, usize, usize)| values[node] * stride as u32;
            clique.digits.iter().map(digit).sum()
        })
    }

    /// ln Pr(T) of the total: negative binomial, Γ(a+T)/(Γ(a) T!) (b/(b+1))^a (b+1)^-T.
    pub fn ln_total(&self, rate: f64) -> f64 {
        let (a, total) = (self.concentration, self.total);
        ln_rising(a, total)
            - ln_factorial(total)
            - a * rate.recip().ln_1p()
            - total as f64 * rate.ln_1p()
    }
}

fn ln_factorials(counts: &[u64]) -> f64 {
    counts.iter().map(|&n| ln_factorial(n)).sum()
}

/// Checks that the tensor has the axes of a network, none of them longer than its node has values.
fn check_axes(network: &Network, data: &CountTensor) -> Result<()> {
    let axes = network.axes();
    check_length("axes of the tensor", data.shape().len(), axes.len())?;
    for (&node, &size) in axes.iter().zip(data.shape()) {
        if network.sizes()[node] < size {
            return Err(Error::Graph { node, problem: "is smaller than its axis" });
        }
    }
    Ok(())
}
