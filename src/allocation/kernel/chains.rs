//! Collapsed Gibbs chains over the hidden values of all tokens, [`LANES`] in lockstep.

use super::counts::{self, CountWeights, Counts, Rows, States, Token as _};
use super::rounds::n_rounds;
use super::splits::{Cell, MAX_WEIGHED, Splits};
use crate::allocation::model::plan::Clique;
use crate::allocation::model::problem::Problem;
use crate::control::Observer;
use crate::error::{Error, Result, array_of};
use crate::rng::{LANES, Lanes, Stream, UniformLanes};
use crate::urn::SweepOrder;

/// A round of pairs for so many states: a sweep leaves none of them out for long.
const STATES_A_ROUND: usize = 3;

/// States of tokens that are weighed between two polls of the observer: some tens of milliseconds.
const STATES_BETWEEN_POLLS: usize = 1 << 20;

/// Hidden values of all tokens in [`LANES`] chains.
pub(crate) struct StateChains<'a, U> {
    pub(super) problem: &'a Problem,
    pub(super) places: Vec<TokenPlace>,
    /// Cells of the tokens that are redrawn one by one.
    pub(super) light: Vec<u32>,
    /// States of all cliques of each of them.
    pub(super) states: Vec<States>,
    /// Cells whose tokens are redrawn together.
    pub(super) heavy: Vec<u32>,
    /// Tokens in every state of the only clique, heavy cell after heavy cell.
    pub(super) by_state: Vec<Counts>,
    /// Marginal counts, row after row.
    pub(super) rows: Vec<Counts>,
    pub(super) sums: Vec<Lanes>,
    pub(super) splits: Splits,
    pub(super) uniforms: U,
}

/// Place in memory of the tokens of a cell.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenPlace {
    /// The first of the states of its tokens, one by one.
    States(usize),
    /// The first of its numbers of tokens by state.
    Grouped(usize),
}

impl<'a, U: UniformLanes> StateChains<'a, U> {
    /// Chains without tokens.
    fn empty(problem: &'a Problem, uniforms: U) -> Result<Self> {
        problem.check_total()?;
        let (n_cliques, n_states) = (problem.n_cliques(), problem.n_states());
        let (mut light, mut heavy, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (cell, &count) in (0..).zip(&problem.counts) {
            if problem.is_heavy(count) {
                places.push(TokenPlace::Grouped(heavy.len() * n_states));
                heavy.push(cell);
            } else {
                places.push(TokenPlace::States(light.len() * n_cliques));
                light.extend(std::iter::repeat_n(cell, count as usize));
            }
        }
        Ok(StateChains {
            problem,
            places,
            states: array_of("chains", light.len() * n_cliques, [0; LANES])?,
            light,
            by_state: array_of("chains", heavy.len() * n_states, [0; LANES])?,
            heavy,
            rows: array_of("marginal counts of chains", problem.n_rows, [0; LANES])?,
            sums: vec![[0.0; LANES]; n_states],
            splits: Splits::default(),
            uniforms,
        })
    }

    /// Chains in which every joint state of every token's hidden nodes is equally likely.
    pub(crate) fn uniform(
        problem: &'a Problem,
        rng: &mut impl Stream<Lanes = U>,
        observer: &dyn Observer,
    ) -> Result<Self> {
        // All states weigh the same if base counts are one and tokens add nothing.
        StateChains::independent(problem, &vec![1.0; problem.n_rows], rng, observer)
    }

    /// Chains of independent tokens, `rows` being the weights of the rows.
    pub(crate) fn independent(
        problem: &'a Problem,
        rows: &[f64],
        rng: &mut impl Stream<Lanes = U>,
        observer: &dyn Observer,
    ) -> Result<Self> {
        let mut chains = StateChains::empty(problem, rng.lanes())?;
        let target = CountWeights { base: rows, unit: 0.0 };
        let mut states = vec![[0; LANES]; problem.n_cliques()];
        let (part, mut n_drawn) = (chains.tokens_between_polls(), 0);
        for (cell, &count) in (0..).zip(&problem.counts) {
            let (plan, bases) = (problem.plan(cell), problem.bases(cell));
            let token = Rows { counts: &mut chains.rows, bases, target };
            counts::weigh(plan, &token, &mut chains.sums);
            if let TokenPlace::Grouped(start) = chains.places[cell as usize]
                && count > MAX_WEIGHED as u64
            {
                chains.deal(cell, start, rng);
                continue;
            }
            for nth in 0..count as usize {
                if n_drawn % part == 0 {
                    observer.check_stop()?;
                }
                n_drawn += 1;
                counts::pick(plan, &chains.sums, &mut chains.uniforms, &mut states);
                chains.place(cell, nth, &states);
            }
        }
        Ok(chains)
    }

    /// Chains of all tokens, with these states of all cliques, token after token.
    pub(crate) fn from_states(
        problem: &'a Problem,
        states: &[States],
        rng: &mut impl Stream<Lanes = U>,
    ) -> Result<Self> {
        let mut chains = StateChains::empty(problem, rng.lanes())?;
        let mut tokens = states.chunks_exact(problem.n_cliques());
        for (cell, &count) in (0..).zip(&problem.counts) {
            for (nth, states) in tokens.by_ref().take(count as usize).enumerate() {
                chains.place(cell, nth, states);
            }
        }
        Ok(chains)
    }

    /// Chains of given states of all light tokens, and those of heavy cells by state.
    pub(super) fn from_parts(
        problem: &'a Problem,
        states: Vec<States>,
        by_state: Vec<Counts>,
        uniforms: U,
    ) -> Result<Self> {
        let mut chains = StateChains::empty(problem, uniforms)?;
        let (n_cliques, n_states) = (problem.n_cliques(), problem.n_states());
        let are_states = |(&cell, states): (&u32, &[States])| {
            let fits = |(clique, states): (&Clique, &States)| {
                states.iter().all(|&state| (state as usize) < clique.n_states)
            };
            problem.plan(cell).cliques.iter().zip(states).all(fits)
        };
        let is_whole = |(&cell, by_state): (&u32, &[Counts])| {
            let sum =
                |lane: usize| by_state.iter().map(|counts| i64::from(counts[lane])).sum::<i64>();
            let count = problem.counts[cell as usize] as i64;
            (0..LANES)
                .all(|lane| sum(lane) == count && by_state.iter().all(|counts| counts[lane] >= 0))
        };
        if states.len() != chains.states.len()
            || by_state.len() != chains.by_state.len()
            || !chains.light.iter().zip(states.chunks_exact(n_cliques)).all(are_states)
            || !chains.heavy.iter().zip(by_state.chunks_exact(n_states)).all(is_whole)
        {
            return Err(Error::Saved);
        }
        let target = CountWeights { base: &[], unit: 0.0 };
        for (&cell, states) in chains.light.iter().zip(states.chunks_exact(n_cliques)) {
            let bases = problem.bases(cell);
            let mut token = Rows { counts: &mut chains.rows, bases, target };
            counts::add(problem.plan(cell), &mut token, states, 1);
        }
        for (&cell, by_state) in chains.heavy.iter().zip(by_state.chunks_exact(n_states)) {
            let (clique, bases) = (&problem.plan.cliques[0], problem.bases(cell));
            let mut token = Rows { counts: &mut chains.rows, bases, target };
            for (state, counts) in by_state.iter().enumerate() {
                (0..clique.factors.len())
                    .for_each(|factor| token.add_all(clique, factor, state, counts));
            }
        }
        (chains.states, chains.by_state) = (states, by_state);
        Ok(chains)
    }

    /// Deals out the tokens of a heavy cell by the weights last computed.
    fn deal(&mut self, cell: u32, start: usize, rng: &mut impl rand::Rng) {
        let (problem, n_states) = (self.problem, self.problem.plan.n_states);
        let mut held = Cell {
            clique: &problem.plan.cliques[0],
            bases: problem.bases(cell),
            by_state: &mut self.by_state[start..][..n_states],
            rows: &mut self.rows,
        };
        for (lane, total) in self.sums[n_states - 1].into_iter().enumerate() {
            let share = |n_others: usize, _: &mut _| {
                let state = n_states - 1 - n_others;
                let before = if state == 0 { 0.0 } else { self.sums[state - 1][lane] };
                (self.sums[state][lane] - before) / (total - before)
            };
            held.deal(lane, problem.counts[cell as usize], share, rng);
        }
    }

    /// Gives the nth token of a cell its states, when it has none.
    fn place(&mut self, cell: u32, nth: usize, states: &[States]) {
        let (bases, target) = (self.problem.bases(cell), CountWeights { base: &[], unit: 0.0 });
        let mut token = Rows { counts: &mut self.rows, bases, target };
        counts::add(self.problem.plan(cell), &mut token, states, 1);
        match self.places[cell as usize] {
            TokenPlace::States(start) => {
                self.states[start + nth * states.len()..][..states.len()].copy_from_slice(states);
            }
            TokenPlace::Grouped(start) => {
                for (lane, &state) in states[0].iter().enumerate() {
                    self.by_state[start + state as usize][lane] += 1;
                }
            }
        }
    }

    /// The allocation in a lane: cell and number of tokens of each group of tokens that share a cell
    /// and the states of all cliques, cell after cell; and these states, group after group.
    pub(crate) fn groups(&self, lane: usize) -> (Vec<(u32, u32)>, Vec<u32>) {
        let (n_cliques, n_states) = (self.problem.n_cliques(), self.problem.n_states());
        let (mut groups, mut states) = (Vec::new(), Vec::new());
        let mut tokens: Vec<&[States]> = Vec::new();
        for (cell, (&place, &count)) in (0..).zip(self.places.iter().zip(&self.problem.counts)) {
            match place {
                TokenPlace::States(start) => {
                    let of_cell = &self.states[start..][..count as usize * n_cliques];
                    tokens.clear();
                    tokens.extend(of_cell.chunks_exact(n_cliques));
                    tokens.sort_unstable_by(|one, other| {
                        in_lane(one, lane).cmp(in_lane(other, lane))
                    });
                    let are_alike = |one: &&[States], other: &&[States]| {
                        in_lane(one, lane).eq(in_lane(other, lane))
                    };
                    for alike in tokens.chunk_by(are_alike) {
                        groups.push((cell, alike.len() as u32));
                        states.extend(in_lane(alike[0], lane));
                    }
                }
                TokenPlace::Grouped(start) => {
                    let by_state = (0..).zip(&self.by_state[start..][..n_states]);
                    for (state, counts) in by_state.filter(|(_, counts)| counts[lane] > 0) {
                        groups.push((cell, counts[lane] as u32));
                        states.push(state);
                    }
                }
            }
        }
        groups.shrink_to_fit();
        states.shrink_to_fit();
        (groups, states)
    }

    pub(super) fn tokens_between_polls(&self) -> usize {
        STATES_BETWEEN_POLLS.div_ceil(self.problem.n_states().max(1))
    }

    /// One Gibbs sweep over all tokens.
    pub(crate) fn sweep(
        &mut self,
        target: CountWeights<'_>,
        observer: &dyn Observer,
    ) -> Result<()> {
        self.sweep_light(target, observer)?;
        self.sweep_heavy(target, observer)
    }

    /// Sweeps that go in equal steps from independent tokens to the distribution of allocations;
    /// `swept` is called after each of them.
    pub(crate) fn anneal(
        &mut self,
        n_sweeps: usize,
        swept: impl Fn(),
        observer: &dyn Observer,
    ) -> Result<()> {
        let (average, alphas) = (self.problem.average(), self.problem.alphas());
        for sweep in 0..n_sweeps {
            let beta = sweep as f64 / n_sweeps as f64;
            let base = between(&average, &alphas, beta);
            self.sweep(CountWeights { base: &base, unit: beta }, observer)?;
            swept();
        }
        Ok(())
    }

    /// Redraws the tokens of heavy cells, in pairs of states. The rounds of pairs are drawn at
    /// random.
    fn sweep_heavy(&mut self, target: CountWeights<'_>, observer: &dyn Observer) -> Result<()> {
        let n_states = self.problem.plan.n_states;
        for index in 0..self.heavy.len() {
            let mut cell = Cell {
                clique: &self.problem.plan.cliques[0],
                bases: self.problem.bases(self.heavy[index]),
                by_state: &mut self.by_state[index * n_states..][..n_states],
                rows: &mut self.rows,
            };
            for _ in 0..n_states.div_ceil(STATES_A_ROUND) {
                observer.check_stop()?;
                let [dart, ..] = self.uniforms.next();
                let round = (dart * n_rounds(n_states) as f64) as usize;
                self.splits.draw(
                    &mut cell,
                    round,
                    SweepOrder::Forward,
                    &target,
                    &mut self.uniforms,
                    observer,
                )?;
            }
        }
        Ok(())
    }

    /// Redraws the tokens of light cells.
    fn sweep_light(&mut self, target: CountWeights<'_>, observer: &dyn Observer) -> Result<()> {
        let (n, part) = (self.light.len(), self.tokens_between_polls());
        for start in (0..n).step_by(part) {
            observer.check_stop()?;
            counts::sweep(
                self.problem,
                start..(start + part).min(n),
                &self.light,
                target,
                &mut self.rows,
                &mut self.states,
                &mut self.sums,
                &mut self.uniforms,
            );
        }
        Ok(())
    }

    /// Marginal counts, row after row.
    pub(crate) fn rows(&self) -> &[Counts] {
        &self.rows
    }
}

/// Base counts at β between those of a start and those of the distribution of allocations.
fn between(start: &[f64], alphas: &[f64], beta: f64) -> Vec<f64> {
    let pairs = start.iter().zip(alphas);
    pairs.map(|(start, alpha)| (1.0 - beta) * start + beta * alpha).collect()
}

/// States of a token in a lane.
fn in_lane(token: &[States], lane: usize) -> impl Iterator<Item = u32> {
    token.iter().map(move |states| states[lane])
}
