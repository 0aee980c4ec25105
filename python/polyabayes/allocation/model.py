"""The Bayesian allocation model: a count tensor under any Bayesian network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from polyabayes._support import checks
from polyabayes._support.bidirectional import BidirectionalBounds
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState
from polyabayes.allocation.decomposition import Decomposition
from polyabayes.allocation.draws import DRAWING, DRAWS, PosteriorDraws, draw_posterior
from polyabayes.allocation.evidence.bidirectional import find_bounds
from polyabayes.allocation.evidence.estimation import find_evidence
from polyabayes.allocation.evidence.result import Evidence
from polyabayes.allocation.fitting import find_decomposition
from polyabayes.allocation.histogram import Allocations, enumerate_allocations
from polyabayes.allocation.layout import Cost, lay_out
from polyabayes.allocation.missing_cells import MissingCells, find_missing
from polyabayes.allocation.network import Network
from polyabayes.allocation.observed_cells import lay_out_observed
from polyabayes.allocation.options import Options, Run
from polyabayes.allocation.rates import Rate
from polyabayes.allocation.simulation import Simulation, simulate
from polyabayes.exceptions import InvalidArgumentError, argument


@shared_docs
class AllocationModel(Network):
    """A Bayesian network whose tokens are counted in a tensor, some of its nodes hidden.

    The total is Poisson with intensity λ ~ Gamma(a, rate b); every token takes a value of each
    node by conditional tables with Dirichlet priors; the tensor counts the values of the visible
    nodes (Cemgil et al. 2019). Evidence integrates λ, tables and hidden nodes out.

    Parameters
    ----------
    graph : str
        The network as text: chains of arrows, several parents or children parted by commas,
        statements parted by semicolons, as ``"doc -> topic -> word"``, ``"i <- r -> j; r -> k"``
        or ``"t -> s; t, s -> r -> i, j"``. Nodes that name an axis of the data are visible.
    sizes : mapping of str to int or None, optional
        Number of values of every hidden node; None where it is not known, for :meth:`with_sizes`
        or a :class:`WitnessSearch` to fill in. A visible node has that of its axis, or more.
    concentration : float, default=1.0
        a: the equivalent sample size of the prior.
    rate : float or (float, float), optional
        b; by default the concentration over the total of the data, so that the total is expected.
        A pair says that b is unknown, too: shape and rate of its gamma prior, over which results
        are averaged by quadrature; with missing cells by some twenty runs of the method.
    tied : sequence of sequences of str, default=()
        Groups of nodes that share one table, as ``[("i", "j")]`` of symmetric NMF. Levels of tied
        axes are matched by label, over all labels that any of them has; without labels, by
        position.
    prior : {"bdeu", "bdeu-tokens", "flat"} or mapping of str to float, default="bdeu"
        Dirichlet parameters of the tables. ``"bdeu"``: α = a / (number of cells of the table),
        under which all tables agree on what they share, and Markov-equivalent graphs have equal
        evidence. A table that N tied nodes share has this prior, too, whatever N is: each of them
        alone is then distributed as it would be untied, and a chain has the evidence of a longer
        one whose last steps are not seen. ``"bdeu-tokens"`` gives a tied table
        α = N a / (number of cells), as much as `a` tokens would add that are spread evenly over all
        cells: the prior of a tied table then grows with N, as that of the published symmetric
        models does (:meth:`symmetric_cp`). The others need not agree: ``"flat"`` is 1 in all cells;
        a mapping names every node and gives the parameter of each cell of its table.
    axes : sequence of str, optional
        Which nodes the dimensions of a bare array are; by default the nodes without a size, in
        the order of the text, except that doc comes before word, as in every matrix of documents.

    Attributes
    ----------
    graph : Graph
        The network: ``nodes``, ``parents``, ``to_text()``, ``to_networkx()``.
    added_edges : tuple of (str, str)
        What :meth:`from_undirected` added.

    Raises
    ------
    InvalidArgumentError, InvalidTypeError
        If the text is not a graph or the graph has a cycle; the message shows where.

    References
    ----------
    {Cemgil 2019}

    D. Heckerman, D. Geiger and D. M. Chickering (1995). Learning Bayesian networks: the combination
    of knowledge and statistical data. Machine Learning 20(3).

    Examples
    --------
    >>> model = AllocationModel("word <- topic -> doc", sizes={"topic": 2})
    >>> evidence = model.log_evidence(counts)
    >>> print(f"{evidence.value:.10f} {evidence.method}")
    -17.2541660962 exact
    """

    def cost(self, data: Any, *, elimination_order: Sequence[str] | None = None) -> Cost:
        """What the hidden nodes cost, before anything runs.

        Parameters
        ----------
        data, elimination_order
            As for :meth:`log_evidence`.

        Returns
        -------
        Cost
            Tokens, cells, joint states a token, marginal counts an allocation.

        Raises
        ------
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If model and data do not fit.

        Examples
        --------
        >>> AllocationModel.nmf(3).cost(counts).n_states
        3
        """
        layout = lay_out(self, data, elimination_order)
        tensor, core = layout.tensor, layout.core
        return Cost(tensor.total, tensor.n_cells, core.n_states, core.n_marginals)

    def log_evidence(
        self,
        data: Any,
        method: str = "auto",
        *,
        observed: Any = None,
        max_total: int | None = None,
        given_total: bool = False,
        n_samples: int | None = None,
        n_particles: int | None = None,
        n_replicates: int | None = None,
        budget: float | None = None,
        target_std_error: float | None = None,
        elimination_order: Sequence[str] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        executor: Executor | None = None,
        progress: bool = False,
        **options: Any,
    ) -> Evidence:
        """Evidence of a count tensor: its probability with all parameters integrated out.

        Parameters
        ----------
        data : CountTensor, Corpus, array or sparse matrix
            The counts. A tensor's axes are nodes; the dimensions of anything else are `axes`.
        method : str, default="auto"
            ===================  ====================================================  =========
            method               what it does                                          cost
            ===================  ====================================================  =========
            ``"auto"``           exact where quick, else ``"smc"`` where its           1.3 times
                                 replicates and sizes agree, else ``"tempered"``       theirs
            ``"exact"``          enumeration, allocations with equal margins merged    grows
                                                                                       fast
            ``"smc"``            particle filter over tokens, P particles, which are   P M T S
                                 moved by M Gibbs sweeps while the number of tokens
                                 grows e-fold; unbiased; without moves the paper's
                                 algorithms 1 to 3
            ``"smc-lookahead"``  particles without moves along the counts that a       P T S
                                 Gibbs run expects of the tokens to come; unbiased;
                                 all hidden nodes must be summed out together
            ``"tempered"``       non-reversible parallel tempering of P collapsed      P N T S
                                 Gibbs chains, in rounds of doubling length up to N
                                 sweeps, until both directions, the rounds and the
                                 replicates agree; any number of tokens
            ``"vb"``             variational Bayes: a lower bound without an error,    C S an
                                 the best of several restarts                          iteration
            ===================  ====================================================  =========

            The cost is that of a replicate: T tokens in C cells, S joint states of hidden nodes,
            which :meth:`cost` tells. Options that ``"smc"`` alone takes, or ``"tempered"``, make
            it the choice of ``"auto"`` where exact is not quick. ``"tempered"`` is after [1]_.
        observed : array of bool, shape of the data, or "nan", optional
            Where the data were observed; by default in all cells. The others are summed out by
            ``"auto"``, ``"exact"``, ``"smc"`` or ``"vb"``; see :meth:`predict_missing`. What data
            hold there is ignored, so that entries are held out by ``observed=~mask``. A masked
            array says so itself. ``"nan"``: an array has NaN where it was not observed. Without
            that NaN is refused, since tables that were pivoted have it where nothing was counted.
        max_total : int, optional
            Largest total that missing cells are summed out up to.
        given_total : bool, default=False
            Condition on the total, which then needs no prior.
        n_samples : int, optional
            N, the sweeps of the longest round of ``"tempered"``: by default at least 512, and as
            many as some 4 x 10^10 weights of states take.
        n_particles : int, optional
            P, the particles of a replicate of a filter: 256, or 1000 without moves; rounded up to a
            multiple of 16. Replicates of a quarter of them come first, to confirm the value or not.
        n_replicates : int, optional
            Independent replicates, 16 of a filter and 4 of ``"tempered"``; their mean is the
            estimate, their spread its error.
        budget : float, optional
            Multiply-adds that an exact sum may take: 10^9 for ``"exact"``, some ten seconds, and
            10^7 for ``"auto"``. Every joint state of a token in an allocation takes as many as it
            has factors and the allocation marginal counts.
        target_std_error : float, optional
            Standard error at which ``"tempered"`` ends: 0.5 nats.
        elimination_order : sequence of str, optional
            Order in which hidden nodes are summed out; by default that of fewest states.
        {seed}
        n_jobs : int, optional
            Threads, of each task where there is an `executor`; None means all cores, and one thread
            a task.
        executor : concurrent.futures.Executor, optional
            Where the replicates of a sampler run, so that as many workers as there are replicates
            are of use; it is not shut down. By default here.
        {progress}
        **options
            Further options of single methods. Of the filters: `resampling` ("systematic",
            "stratified", "residual" or "multinomial"), `resample_below`, the effective share of
            the particles below which they are resampled (0.5; 0 never, 1 always), and `order` of
            the tokens ("random", "sorted": cell after cell, or the numbers of the tensor's cells
            in another order), which has no bias, but a large effect on the error. Of ``"smc"``:
            `n_sweeps`, M (32; 0 for SIS-R, the paper's algorithm 3). Of ``"vb"``: `max_iter`
            (no limit), `tol` (1e-9) and `n_restarts` (10).

        Returns
        -------
        Evidence
            ln of the evidence in nats, with its error.

        Raises
        ------
        BudgetExceededError
            If an exact sum would go beyond its budget; if tokens, particles or chains would take
            more memory than the machine has.
        Interrupted
            On Ctrl-C after the first round of ``"tempered"``: `partial` is the evidence so far.
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If an argument is bad, or model and data do not fit; if `executor` meets missing cells,
            or a method that draws nothing; before any work.
        WorkerError
            If a worker of the executor died.

        Warns
        -----
        UnreliableErrorWarning
            If the error is not to be trusted.

        References
        ----------
        {Cemgil 2019}

        W. R. Gilks and C. Berzuini (2001). Following a moving target: Monte Carlo inference for
        dynamic Bayesian models. JRSS B 63(1).

        .. [1] S. Syed, A. Bouchard-Côté, G. Deligiannidis, A. Doucet (2022). Non-reversible
           parallel tempering: a scalable highly parallel MCMC scheme. JRSS B 84.

        Examples
        --------
        >>> found = AllocationModel.nmf(2).log_evidence(counts)
        >>> print(f"{found.value:.6f} {found.method}")
        -17.254166 exact

        >>> counts = [[12, 3, 0], [0, 9, 5], [1, 0, 14]]
        >>> found = AllocationModel.nmf(2).log_evidence(counts, "tempered", random_state=0)
        >>> found.converged, found.round_trips > 10
        (True, True)

        Two replicates at a time, on threads here.

        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(2) as executor:
        ...     same = AllocationModel.nmf(2).log_evidence(
        ...         counts, "tempered", random_state=0, executor=executor
        ...     )
        >>> same.value == found.value
        True
        """
        chosen = Options.of(
            method=method,
            n_samples=n_samples,
            n_particles=n_particles,
            n_replicates=n_replicates,
            budget=budget,
            target_std_error=target_std_error,
            **options,
        )
        run = Run.of(random_state, n_jobs, progress, executor)
        layout, missing = lay_out_observed(
            self, data, observed, elimination_order, method, stepwise=method in ("auto", "smc")
        )
        if len(missing):
            if executor is not None:
                raise InvalidArgumentError(
                    f"{argument('executor')} needs all cells observed, and {len(missing):,} are "
                    "missing"
                )
            if given_total:
                raise InvalidArgumentError(
                    f"{argument('given_total', True)} needs all cells observed: the total is not "
                    f"known, {argument('predict_missing')} has its posterior"
                )
            return find_missing(layout, missing, chosen, max_total, run).evidence
        if max_total is not None:
            raise InvalidArgumentError("max_total needs missing cells, and all are observed")
        return find_evidence(layout, chosen, run, executor, given_total=given_total)

    def predict_missing(
        self,
        data: Any,
        method: str = "auto",
        *,
        observed: Any = None,
        max_total: int | None = None,
        n_particles: int | None = None,
        n_replicates: int | None = None,
        budget: float | None = None,
        elimination_order: Sequence[str] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool = False,
        **options: Any,
    ) -> MissingCells:
        """Evidence as a function of the total, and expected counts, where cells are missing.

        A cell that was not observed leaves the total free. The tokens that are seen come first,
        then tokens that fall in any of M missing cells, one by one: their weights' sum gives
        Pr(T, X) for every T (the paper's Example 3.4). A missing token costs M S steps.

        Parameters
        ----------
        data
            As for :meth:`log_evidence`. The model needs a `rate`.
        method : {"auto", "exact", "smc", "tempered", "vb"}
            As for :meth:`log_evidence`; ``"auto"`` is exact where quick, else ``"tempered"``,
            which tempers twice: from independent tokens to the law in which missing cells are
            empty, and from there to the one in which they are missing. ``"smc"`` seldom finds the
            rare tables under which missing cells hold most: beyond some tens of tokens it is low,
            and its errors do not tell. Where totals have a long tail, ``"exact"`` takes minutes
            and gigabytes: give `max_total`. ``"vb"`` follows one of many modes: its counts may be
            far off, and its totals are spread too narrowly.
        observed
            As for :meth:`log_evidence`; at least one cell is missing. Levels of a node beyond its
            axis count as observed, without tokens.
        max_total : int, optional
            Largest total. By default, totals go on until those beyond would add less than 1e-9 of
            the evidence to ``"exact"``, and 1e-6 to ``"smc"`` and ``"tempered"``, about, or a
            million tokens are missing. Not of ``"vb"``.
        n_particles, n_replicates, budget, elimination_order, random_state, n_jobs, progress
            As for :meth:`log_evidence`.
        **options
            Further options of single methods, as for :meth:`log_evidence`.

        Returns
        -------
        MissingCells
            ln Pr(T, X) and Pr(T | X) by total, expected counts by cell, and the evidence Pr(X).

        Raises
        ------
        BudgetExceededError, InvalidArgumentError, InvalidCountsError, InvalidTypeError
            As :meth:`log_evidence`; if the model has no rate, or no cell is missing.

        References
        ----------
        {Cemgil 2019}

        Examples
        --------
        >>> model = AllocationModel.nmf(1, concentration=4.0, rate=0.01)
        >>> found = model.predict_missing(np.ma.masked_equal([[-1, 3], [3, 3]], -1))
        >>> int(found.totals[found.log_joint.argmax()])
        12
        >>> print(f"{found.log_joint.max():.10f}")
        -17.7537903849
        >>> found.total_interval(0.5)
        (13, 22)
        """
        return find_missing(
            *lay_out_observed(self, data, observed, elimination_order, method),
            Options.of(
                method=method,
                n_particles=n_particles,
                n_replicates=n_replicates,
                budget=budget,
                **options,
            ),
            max_total,
            Run.of(random_state, n_jobs, progress),
        )

    def allocations(self, data: Any, *, budget: float | None = None) -> Allocations:
        """All allocations of a small tensor to hidden values, with their probabilities.

        Parameters
        ----------
        data : CountTensor, Corpus, array or sparse matrix
            As for :meth:`log_evidence`.
        budget : float, optional
            Marginal counts that the enumeration may add up, 10^8: for every cell, groups of
            allocations so far, times the ways to allocate the cell, times the cells of all tables
            and the joint hidden states.

        Returns
        -------
        Allocations
            Their ln π(S | T), multiplicities, effective numbers of parameters, and histogram
            (figure 5 of Cemgil et al. 2019).

        Raises
        ------
        BudgetExceededError
            If the enumeration would go beyond its budget.
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If an argument is bad, or model and data do not fit; before any work.

        References
        ----------
        {Cemgil 2019}

        Examples
        --------
        >>> AllocationModel.nmf(2).allocations(counts)
        <Allocations: 320 in 98 groups, log evidence -13.651705 nats given the total>
        """
        return enumerate_allocations(lay_out(self, data), budget)

    def simulate(
        self,
        shape: Mapping[str, int] | None = None,
        total: int | None = None,
        *,
        rate: Rate | None = None,
        random_state: RandomState = None,
    ) -> Simulation:
        """Draw a count tensor, and the hidden values of its tokens, from the prior.

        The intensity is Gamma(a, rate), the total Poisson, tables are Dirichlet, and each token
        takes the values of all nodes by them, parents first (section 3 of [1]_).

        Parameters
        ----------
        shape : mapping of str to int, optional
            The axes of the tensor and their sizes; by default `axes`, with the sizes of the model.
        total : int, optional
            Number of tokens.
        rate : float or (float, float), optional
            b of the intensity's prior, or shape and rate of its gamma prior, where the total is not
            given; by default that of the model.
        random_state : None, int, RandomState, Generator or SeedSequence
            Equal seeds give equal draws.

        Returns
        -------
        Simulation
            The tensor, and the same counts over all nodes.

        Raises
        ------
        InvalidArgumentError, InvalidTypeError
            If a size is missing, or neither the total nor a rate is known.

        References
        ----------
        .. [1] A. T. Cemgil, M. B. Kurutmaz, S. Yıldırım, M. Barsbey and U. Şimşekli (2019).
           Bayesian allocation model. arXiv:1903.04478.

        Examples
        --------
        >>> model = AllocationModel.nmf(2)
        >>> tensor, allocation = model.simulate({"doc": 3, "word": 4}, total=50, random_state=0)
        >>> tensor == allocation.marginal("doc", "word")
        True
        """
        return simulate(self, shape, total, rate, random_state)

    def bidirectional_bounds(
        self,
        shape: Mapping[str, int],
        total: int,
        *,
        n_samples: int = 1000,
        n_chains: int = 16,
        n_replicates: int = 4,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool = False,
    ) -> BidirectionalBounds:
        """How far annealing may be from the truth, on a tensor drawn from the model.

        The allocation of such a tensor is known, and annealing backwards from it is high in
        expectation, as annealing forwards is low: along the path of ``"tempered"``, whose
        reference is drawn from.

        Parameters
        ----------
        shape : mapping of str to int
            The axes of the tensor to draw, and their sizes.
        total : int
            Its total.
        n_samples, n_chains, n_replicates : int, default=1000, 16, 4
            Temperatures, and replicates of either side; chains of a replicate forwards, rounded up
            to a multiple of 16. Backwards there are 16.
        random_state, n_jobs, progress
            As for :meth:`log_evidence`.

        Returns
        -------
        BidirectionalBounds
            Both sides of the evidence given the total, in arrays of one entry.

        Raises
        ------
        BudgetExceededError
            If chains would take more than the memory of the machine.
        InvalidArgumentError, InvalidTypeError
            If an argument is bad, or nothing is hidden; before any work.

        References
        ----------
        {Grosse 2015}

        Examples
        --------
        >>> model = AllocationModel.nmf(2)
        >>> bounds = model.bidirectional_bounds({"doc": 3, "word": 2}, 20, random_state=0)
        >>> bool(abs(bounds.gap[0]) < 4 * bounds.gap_std_errors[0])
        True
        """
        return find_bounds(
            self,
            shape,
            total,
            n_chains=n_chains,
            n_samples=n_samples,
            n_replicates=n_replicates,
            run=Run.of(random_state, n_jobs, progress),
        )

    def decompose(
        self,
        data: Any,
        method: str = "vb",
        *,
        observed: Any = None,
        max_iter: int | None = None,
        tol: float | None = None,
        n_restarts: int | None = None,
        elimination_order: Sequence[str] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool = False,
        **options: Any,
    ) -> Decomposition:
        """Explain a count tensor by conditional tables.

        Parameters
        ----------
        data : CountTensor, Corpus, array or sparse matrix
            As for :meth:`log_evidence`.
        method : {"vb", "em", "dual-em", "icm", "ml", "gibbs", "smc", "tempered"}, default="vb"
            Variational Bayes, whose bound never decreases; expectation maximisation over the
            tables; over the allocation (dual); iterated conditional modes of both; largest
            likelihood, which asks nothing of the prior; collapsed Gibbs sampling in one mode, its
            counts averaged over sweeps and tables made of these means; the most probable particle
            of a filter; posterior means of counts and of tables over all modes that parallel
            tempering visits, as :meth:`sample_posterior` draws them.
        observed : array of bool, shape of the data, or "nan", optional
            As for :meth:`log_evidence`. With missing cells, which need a `rate`, ``"vb"``,
            ``"em"`` and ``"ml"``: tables and counts are those of all cells, and predict the
            missing ones.
        max_iter : int, optional
            Iterations: by default until they have converged. Sweeps of ``"gibbs"``: 1000.
        tol : float, optional
            Relative gain of the objective at which iterations end, 1e-9.
        n_restarts : int, optional
            Random starts, the best of which is kept: 10. Every second one begins with a climb of
            100 iterations towards the largest likelihood. Not of ``"gibbs"``, ``"smc"`` and
            ``"tempered"``.
        elimination_order, random_state, n_jobs, progress
            As for :meth:`log_evidence`.
        **options
            `burn_in`: sweeps of ``"gibbs"`` that are not averaged over, by default half of them.
            `n_particles` of ``"smc"``: 1000. `n_samples`, `n_replicates` and `target_std_error` of
            ``"tempered"``, as for :meth:`log_evidence`.

        Returns
        -------
        Decomposition
            Conditional tables, expected counts, how well they reconstruct the data.

        Raises
        ------
        BudgetExceededError
            If chains or particles would take more than the memory of the machine.
        Interrupted
            By Ctrl-C after the first round of ``"tempered"``: `partial` is a decomposition of the
            draws so far.
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If an argument is bad, or model and data do not fit; before any work.

        References
        ----------
        {Cemgil 2019}

        Examples
        --------
        >>> found = AllocationModel.nmf(2).decompose([[4, 3, 0], [0, 0, 3]], random_state=0)
        >>> found.tables["word"].shape, found.has_converged
        ((3, 2), True)
        """
        return find_decomposition(
            *lay_out_observed(self, data, observed, elimination_order, method),
            Options.of(method=method, max_iter=max_iter, tol=tol, n_restarts=n_restarts, **options),
            Run.of(random_state, n_jobs, progress),
        )

    def sample_posterior(
        self,
        data: Any,
        n_draws: int = DRAWS,
        *,
        method: str = "tempered",
        elimination_order: Sequence[str] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        progress: bool = False,
        **options: Any,
    ) -> PosteriorDraws:
        """Draw allocations from their posterior, by chains that change modes or by particles.

        Parallel tempering as for :meth:`log_evidence`; the draws are states at β = 1 of its last
        round, evenly spaced. Or particles of all replicates of ``"smc"``, drawn by their weights
        and swept once more: of networks with few hidden values and many axes they are the faster.

        Parameters
        ----------
        data : CountTensor, Corpus, array or sparse matrix
            As for :meth:`log_evidence`; all cells are observed.
        n_draws : int, default=400
            Draws of all chains together. Each chain gives as many as the others, so that the number
            is rounded up to a multiple of `n_replicates`: 1 gives 4. The last round is made long
            enough for them, unless a given `n_samples` forbids it: then there are fewer, and a
            :class:`~polyabayes.exceptions.TargetWarning`.
        method : {"tempered", "smc"}, default="tempered"
            How. By ``"smc"`` there are `n_draws` exactly; where the evidence's replicates differ
            much, most of them come from a few.
        elimination_order, random_state, n_jobs, progress
            As for :meth:`log_evidence`.
        **options
            Those of :meth:`log_evidence` by the same method.

        Returns
        -------
        PosteriorDraws
            Counts of all tables by draw, draws of the tables, the evidence.

        Raises
        ------
        BudgetExceededError
            If chains or draws would take too much memory; before any work.
        Interrupted
            By Ctrl-C after the first round: `partial` has as many draws as the round before gave.
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If an argument is bad, or model and data do not fit; before any work.

        References
        ----------
        {Syed 2022}

        Examples
        --------
        >>> draws = AllocationModel.nmf(2).sample_posterior([[4, 3, 0], [0, 0, 3]], random_state=0)
        >>> draws.counts["topic"].sum(axis=1).tolist() == [10.0] * 400
        True
        """
        return draw_posterior(
            lay_out(self, data, elimination_order),
            Options.of(method=checks.choice("method", method, tuple(DRAWING)), **options),
            n_draws,
            Run.of(random_state, n_jobs, progress),
        )
