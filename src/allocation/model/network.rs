//! The graph of an allocation model, its prior, and the marginal counts that its distribution
//! depends on.

use crate::error::{Error, Result, check_length, check_positive};

/// Relative difference of two equal parameters that were computed in two ways.
const ROUNDING: f64 = 4.0 * f64::EPSILON;

/// Prior of the conditional probability tables and of the intensity λ ~ Gamma(a, b).
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    /// a: the equivalent sample size, and the shape of the intensity.
    pub concentration: f64,
    /// Dirichlet parameter of every cell of each node's table; `None` is BDeu, a over the number
    /// of cells, under which all tables agree on their common margins. A tied table has the prior of
    /// each of its nodes alone, however many they are.
    pub tables: Option<Vec<f64>>,
}

/// A directed acyclic graph over nodes with finitely many values, some of them the axes of the
/// data, the others hidden.
#[derive(Debug, Clone, PartialEq)]
pub struct Network {
    sizes: Vec<usize>,
    parents: Vec<Vec<usize>>,
    /// The node of each axis.
    axes: Vec<usize>,
    /// Groups of nodes that share a table; every node is in one.
    tables: Vec<Vec<usize>>,
    prior: Prior,
}

/// Counts over the joint values of some nodes, which enter the distribution of allocations through
/// Π_cells (α)_S, to a power.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Margin {
    /// Nodes whose values name the cell that a token adds to; several where tied nodes share a
    /// table, and a token then adds to several cells.
    pub(crate) slots: Vec<Vec<usize>>,
    /// Node that each slot is the family of, or the parents of.
    pub(crate) owners: Vec<usize>,
    /// Size of each dimension.
    pub(crate) shape: Vec<usize>,
    /// α of every cell.
    pub(crate) alpha: f64,
    /// The power.
    pub(crate) exponent: i32,
}

impl Network {
    /// A network of `sizes.len()` nodes; `parents[n]` in the order of the dimensions of n's table.
    ///
    /// # Errors
    /// Sizes of zero, parents that do not exist, cycles, axes that are not different nodes, ties
    /// between tables of different shapes, parameters that are not positive.
    pub fn new(
        sizes: Vec<usize>,
        parents: Vec<Vec<usize>>,
        axes: Vec<usize>,
        ties: &[Vec<usize>],
        prior: Prior,
    ) -> Result<Self> {
        let n_nodes = sizes.len();
        let refuse = |node: usize, problem| Err(Error::Graph { node, problem });
        check_length("parents", parents.len(), n_nodes)?;
        check_positive("concentration", &[prior.concentration])?;
        if let Some(tables) = &prior.tables {
            check_positive("Dirichlet parameters of the tables", tables)?;
            check_length("tables", tables.len(), n_nodes)?;
        }
        for (node, parents) in parents.iter().enumerate() {
            if sizes[node] == 0 {
                return refuse(node, "has no values");
            }
            let mut seen = vec![node];
            for &parent in parents {
                if parent >= n_nodes || seen.contains(&parent) {
                    return refuse(node, "has a parent twice, itself or none that exists");
                }
                seen.push(parent);
            }
        }
        for (axis, &node) in axes.iter().enumerate() {
            if node >= n_nodes || axes[..axis].contains(&node) {
                return refuse(node, "is not a node, or is two axes");
            }
        }
        if axes.is_empty() {
            return Err(Error::Empty { name: "number of axes" });
        }
        let tables = tables_of(n_nodes, ties)?;
        let network = Network { sizes, parents, axes, tables, prior };
        network.check_order()?;
        network.check_ties()?;
        Ok(network)
    }

    /// Number of values of each node.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The node of each axis.
    pub fn axes(&self) -> &[usize] {
        &self.axes
    }

    /// The prior.
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// Groups of nodes with one table each, in the order of their first nodes.
    pub fn tables(&self) -> &[Vec<usize>] {
        &self.tables
    }

    /// The node itself, then its parents: the dimensions of its table.
    pub fn family(&self, node: usize) -> Vec<usize> {
        std::iter::once(node).chain(self.parents[node].iter().copied()).collect()
    }

    /// Dirichlet parameter of every cell of a table.
    pub fn table_alpha(&self, table: &[usize]) -> f64 {
        match &self.prior.tables {
            Some(tables) => tables[table[0]],
            None => self.bdeu(&self.family(table[0])),
        }
    }

    /// a over the number of joint values of the nodes.
    fn bdeu(&self, nodes: &[usize]) -> f64 {
        let mut nodes = nodes.to_vec();
        nodes.sort_unstable();
        let n_cells: f64 = nodes.iter().map(|&node| self.sizes[node] as f64).product();
        self.prior.concentration / n_cells
    }

    /// The margins whose rising factorials make up the distribution: families in the numerator,
    /// their parents in the denominator, and what is in both cancelled; `are_alike` says whether
    /// the tables of two nodes count the same tokens.
    pub(crate) fn margins(&self, are_alike: impl Fn(usize, usize) -> bool) -> Vec<Margin> {
        let mut margins: Vec<Margin> = Vec::new();
        let mut push = |owners: &[usize], slots: Vec<Vec<usize>>, alpha: f64, exponent: i32| {
            let mut slots = slots;
            if let [slot] = &mut slots[..] {
                slot.sort_unstable();
            }
            let twin = margins.iter_mut().find(|margin| {
                let same_prior = (margin.alpha / alpha - 1.0).abs() <= ROUNDING;
                let same_tokens = || are_alike(margin.owners[0], owners[0]);
                margin.slots.len() == 1 && margin.slots == slots && same_prior && same_tokens()
            });
            if let Some(twin) = twin {
                twin.exponent += exponent;
            } else {
                let shape = slots[0].iter().map(|&node| self.sizes[node]).collect();
                margins.push(Margin { slots, owners: owners.to_vec(), shape, alpha, exponent });
            }
        };
        for table in &self.tables {
            let alpha = self.table_alpha(table);
            let families: Vec<Vec<usize>> = table.iter().map(|&n| self.family(n)).collect();
            let parents: Vec<Vec<usize>> = table.iter().map(|&n| self.parents[n].clone()).collect();
            let of_parents = match self.prior.tables {
                None if table.len() == 1 => self.bdeu(&parents[0]),
                _ => alpha * self.sizes[table[0]] as f64,
            };
            push(table, families, alpha, 1);
            push(table, parents, of_parents, -1);
        }
        margins.retain(|margin| margin.exponent != 0);
        margins
    }

    /// The families and parents of all tables, nothing cancelled: [`margins`](Network::margins)
    /// where every family must be there.
    pub(crate) fn whole_margins(&self) -> Vec<Margin> {
        let mut margins = self.families();
        for (table, family) in self.tables.iter().zip(margins.clone()) {
            let parents = table.iter().map(|&node| self.parents[node].clone()).collect();
            margins.push(Margin {
                slots: parents,
                owners: table.clone(),
                shape: family.shape[1..].to_vec(),
                alpha: family.alpha * family.shape[0] as f64,
                exponent: -1,
            });
        }
        margins
    }

    /// The family of every table, and nothing else: what conditional probabilities multiply.
    pub(crate) fn families(&self) -> Vec<Margin> {
        let family = |table: &Vec<usize>| {
            let slots: Vec<Vec<usize>> = table.iter().map(|&node| self.family(node)).collect();
            let shape = slots[0].iter().map(|&node| self.sizes[node]).collect();
            let (owners, alpha) = (table.clone(), self.table_alpha(table));
            Margin { slots, owners, shape, alpha, exponent: 1 }
        };
        self.tables.iter().map(family).collect()
    }

    /// Children of a node.
    pub(crate) fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        (0..self.sizes.len()).filter(move |&child| self.parents[child].contains(&node))
    }

    /// Nodes, parents before their children; those on or below cycles are left out.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = Vec::new();
        let ready = |order: &[usize], node: usize| {
            !order.contains(&node) && self.parents[node].iter().all(|parent| order.contains(parent))
        };
        while let Some(node) = (0..self.sizes.len()).find(|&node| ready(&order, node)) {
            order.push(node);
        }
        order
    }

    fn check_order(&self) -> Result<()> {
        let order = self.order();
        match (0..self.sizes.len()).find(|node| !order.contains(node)) {
            Some(node) => Err(Error::Graph { node, problem: "lies on, or below, a cycle" }),
            None => Ok(()),
        }
    }

    fn check_ties(&self) -> Result<()> {
        let shape = |node| -> Vec<usize> {
            self.family(node).into_iter().map(|node| self.sizes[node]).collect()
        };
        for table in &self.tables {
            for &node in &table[1..] {
                if shape(node) != shape(table[0]) {
                    return Err(Error::Graph {
                        node,
                        problem: "is tied to a table of another shape",
                    });
                }
            }
        }
        Ok(())
    }
}

/// Every node in one table: those of a tie together, the others alone.
fn tables_of(n_nodes: usize, ties: &[Vec<usize>]) -> Result<Vec<Vec<usize>>> {
    let mut tables: Vec<Vec<usize>> = Vec::new();
    let mut tied = vec![false; n_nodes];
    for tie in ties {
        for &node in tie {
            if node >= n_nodes || tied[node] {
                return Err(Error::Graph { node, problem: "is tied twice, or does not exist" });
            }
            tied[node] = true;
        }
        let mut tie = tie.clone();
        tie.sort_unstable();
        if !tie.is_empty() {
            tables.push(tie);
        }
    }
    tables.extend((0..n_nodes).filter(|&node| !tied[node]).map(|node| vec![node]));
    tables.sort_unstable();
    Ok(tables)
}
