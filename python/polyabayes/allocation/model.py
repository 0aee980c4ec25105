"""The Bayesian allocation model: a count tensor under any Bayesian network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from polyabayes._support import checks
from polyabayes._support.bidirectional import BidirectionalBounds
from polyabayes._support.docs import shared_docs
from polyabayes._support.random import RandomState
from polyabayes.allocation.evidence.bounds import find_bounds
from polyabayes.allocation.evidence.estimation import find_evidence
from polyabayes.allocation.evidence.result import Evidence
from polyabayes.allocation.graphs.network import Network
from polyabayes.allocation.graphs.rates import Rate
from polyabayes.allocation.inference.decomposition import Decomposition
from polyabayes.allocation.inference.draws import DRAWING, DRAWS, PosteriorDraws, draw_posterior
from polyabayes.allocation.inference.fitting import find_decomposition
from polyabayes.allocation.layout import Cost, lay_out
from polyabayes.allocation.missing_cells import MissingCells, find_missing
from polyabayes.allocation.observed_cells import lay_out_observed
from polyabayes.allocation.options import Options, Run
from polyabayes.allocation.simulation import Simulation, simulate
from polyabayes.exceptions import InvalidArgumentError, argument


@shared_docs
class AllocationModel(Network):
    """Bayesian allocation model: a count tensor under a Bayesian network with hidden nodes.

    The total is Poisson with intensity λ ~ Gamma(a, rate b). Every token takes a value of each
    node by conditional tables with Dirichlet priors. The tensor counts the values of the visible
    nodes (Cemgil et al. 2019). The evidence integrates over λ, the tables and the hidden nodes.

    Parameters
    ----------
    graph : str
        The network as text: chains of arrows, with commas between several parents or children and
        semicolons between statements, as ``"doc -> topic -> word"``, ``"i <- r -> j; r -> k"``
        or ``"t -> s; t, s -> r -> i, j"``. Nodes that name an axis of the data are visible.
    sizes : mapping of str to int or None, optional
        Number of values of every hidden node. None means unknown: :meth:`with_sizes` or a
        :class:`WitnessSearch` fills it in. A visible node takes the size of its axis, unless a
        larger one is given here.
    concentration : float, default=1.0
        a: the equivalent sample size of the prior.
    rate : float or (float, float), optional
        b. Default: the concentration over the total of the data, so that the expected total is
        the total. A pair is the shape and rate of a gamma prior of b; results are then averaged
        over b by quadrature (with missing cells, about twenty runs of the method).
    tied : sequence of sequences of str, default=()
        Groups of nodes that share one table, as ``[("i", "j")]`` for symmetric NMF. Levels of tied
        axes are matched by label, over the union of their labels; without labels, by position.
    prior : {"bdeu", "bdeu-tokens", "flat"} or mapping of str to float, default="bdeu"
        Dirichlet parameters of the tables.

        * ``"bdeu"``: α = a / (number of cells of the table). All tables then agree on the margins
          that they share, and Markov-equivalent graphs have equal evidence. A table shared by tied
          nodes has the same α, however many nodes share it.
        * ``"bdeu-tokens"``: α = N a / (number of cells) for a table that N tied nodes share, as in
          the published symmetric models (:meth:`symmetric_cp`).
        * ``"flat"``: 1 in all cells.
        * A mapping: the parameter of each cell of every node's table.
    axes : sequence of str, optional
        Nodes of the dimensions of an array without names. Default: the nodes without a size, in
        the order of the text, but doc before word, as in a document-term matrix.

    Attributes
    ----------
    graph : Graph
        The network: ``nodes``, ``parents``, ``to_text()``, ``to_networkx()``.

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
        """Cost of the hidden nodes; nothing is run.

        Parameters
        ----------
        data, elimination_order
            As for :meth:`log_evidence`.

        Returns
        -------
        Cost
            Numbers of tokens, of cells, of joint states per token and of marginal counts per
            allocation.

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
            The counts. The axes of a tensor are nodes by name; other data have the model's `axes`.
        method : str, default="auto"
            ===================  ====================================================  =========
            method               what it does                                          cost
            ===================  ====================================================  =========
            ``"auto"``           exact if quick; else ``"smc"``; if its replicates     1.3 times
                                 disagree, ``"tempered"``                              theirs
            ``"exact"``          enumeration, allocations with equal margins merged    grows
                                                                                       fast
            ``"smc"``            particle filter over tokens: P particles, and M       P M T S
                                 Gibbs sweeps while the number of tokens grows
                                 e-fold; unbiased; with M = 0, algorithms 1 to 3 of
                                 the paper
            ``"tempered"``       non-reversible parallel tempering                     P N T S
                                 of P collapsed Gibbs chains [1]_,
                                 in rounds of doubling length up to N sweeps, until
                                 both directions, the rounds and the replicates
                                 agree; any number of tokens
            ``"vb"``             variational Bayes: a lower bound without an error,    C S per
                                 the best of several restarts                          iteration
            ===================  ====================================================  =========

            The cost is per replicate, for T tokens in C cells and S joint states of hidden nodes
            (see :meth:`cost`). ``"auto"`` takes ``"smc"`` or ``"tempered"`` if an option is given
            that only one of them has.
        observed : array of bool, shape of the data, or "nan", optional
            True where the data were observed; default: everywhere, or the mask of a masked array.
            Missing cells are summed out by ``"auto"``, ``"exact"``, ``"smc"`` or ``"vb"`` (see
            :meth:`predict_missing`); their entries in the data are ignored, so
            ``observed=~mask`` holds entries out. ``"nan"``: NaN marks missing cells. Without
            ``"nan"``, NaN is refused, since pivoted tables have NaN where nothing was counted.
        max_total : int, optional
            Largest total in the sum over missing cells.
        given_total : bool, default=False
            Condition on the total, which then needs no prior.
        n_samples : int, optional
            N, sweeps of the longest round of ``"tempered"``. Default: as many as fit in about
            4 x 10^10 evaluations of a state's weight, but at least 512.
        n_particles : int, optional
            P, particles per replicate of a filter, rounded up to a multiple of 16. Default: 256,
            or 1000 without sweeps. Replicates with a quarter of the particles check the value.
        n_replicates : int, optional
            Independent replicates; their mean is the estimate, and their spread gives its error.
            Default: 16 for a filter, 4 for ``"tempered"``.
        budget : float, optional
            Most multiply-adds of an exact sum. Default: 10^9 for ``"exact"`` (about ten seconds),
            10^7 for ``"auto"``. Each joint state of a token costs one for every factor and every
            marginal count of an allocation.
        target_std_error : float, optional
            Standard error in nats at which ``"tempered"`` ends; default 0.5.
        elimination_order : sequence of str, optional
            Order in which hidden nodes are summed out; default: the order with fewest states.
        {seed}
        n_jobs : int, optional
            Threads; with an `executor`, threads per task. None means all cores, or one per task.
        executor : concurrent.futures.Executor, optional
            Runs the replicates of a sampler as tasks; it is not shut down. More workers than
            replicates stay idle. Default: this process.
        {progress}
        **options
            Options of single methods.

            * Filters: `resampling` ("systematic", "stratified", "residual" or "multinomial");
              `resample_below`, the effective share of particles below which they are resampled
              (0.5; 0 never, 1 always); `order` of the tokens ("random", "sorted" by cell, or a
              permutation of the cells), which affects the error but not the expectation.
            * ``"smc"``: `n_sweeps`, M (32; 0 for SIS-R, algorithm 3 of the paper).
            * ``"vb"``: `max_iter` (no limit), `tol` (1e-9) and `n_restarts` (10).

        Returns
        -------
        Evidence
            ln of the evidence in nats, with its error.

        Raises
        ------
        BudgetExceededError
            If an exact sum would exceed its budget, or tokens, particles or chains the memory of
            the machine.
        Interrupted
            On Ctrl-C after the first round of ``"tempered"``: `partial` is the evidence so far.
        InvalidArgumentError, InvalidCountsError, InvalidTypeError
            If an argument is bad, model and data do not fit, or an `executor` is given with missing
            cells or for a method without replicates; before any work.
        WorkerError
            If a worker of the executor died.

        Warns
        -----
        UnreliableErrorWarning
            If the error cannot be trusted.

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
                    f"known; {argument('predict_missing')} has its posterior"
                )
            return find_missing(layout, missing, chosen, max_total, run).evidence
        if max_total is not None:
            raise InvalidArgumentError("max_total needs missing cells, but all cells are observed")
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
        """Posterior of the total, and expected counts of missing cells.

        A missing cell leaves the total T unknown. Observed tokens come first, then tokens in any
        of the M missing cells, one by one; the sum of their weights gives Pr(T, X) for every T
        (Example 3.4 of the paper). Each missing token costs M S steps.

        Parameters
        ----------
        data
            As for :meth:`log_evidence`. The model needs a `rate`.
        method : {"auto", "exact", "smc", "vb"}
            ``"auto"`` is exact if quick, else ``"smc"``.

            * ``"exact"`` takes minutes and gigabytes if the total has a long tail: give
              `max_total`.
            * ``"smc"`` is too low beyond a few dozen tokens, and its reported error is too small:
              it rarely finds the tables under which missing cells have large counts. It warns.
            * ``"vb"`` follows one of many modes. Its counts may be far off, and its distribution
              of the total is too narrow.
        observed
            As for :meth:`log_evidence`; at least one cell must be missing. Levels of a node beyond
            the levels of its axis count as observed and empty.
        max_total : int, optional
            Largest total; not for ``"vb"``. Default: the sum ends where larger totals would add
            less than about 1e-9 of the evidence (``"exact"``) or 1e-6 (``"smc"``), or at a
            million missing tokens.
        n_particles, n_replicates, budget, elimination_order, random_state, n_jobs, progress
            As for :meth:`log_evidence`.
        **options
            Options of single methods, as for :meth:`log_evidence`.

        Returns
        -------
        MissingCells
            ln Pr(T, X) and Pr(T | X) by total, expected counts by cell, and the evidence Pr(X).

        Raises
        ------
        BudgetExceededError, InvalidArgumentError, InvalidCountsError, InvalidTypeError
            As for :meth:`log_evidence`; if the model has no rate, or no cell is missing.

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

    def simulate(
        self,
        shape: Mapping[str, int] | None = None,
        total: int | None = None,
        *,
        rate: Rate | None = None,
        random_state: RandomState = None,
    ) -> Simulation:
        """Draw a count tensor and the hidden values of its tokens from the prior.

        The intensity is drawn from Gamma(a, rate), the total from a Poisson distribution and the
        tables from Dirichlet distributions. Each token then draws the value of every node, parents
        first (section 3 of [1]_).

        Parameters
        ----------
        shape : mapping of str to int, optional
            The axes of the tensor and their sizes; by default `axes`, with the sizes of the model.
        total : int, optional
            Number of tokens; by default it is drawn.
        rate : float or (float, float), optional
            b of the intensity's prior, or shape and rate of its gamma prior, if no total is given;
            default: the model's rate.
        random_state : None, int, RandomState, Generator or SeedSequence
            The same seed gives the same draw.

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
        """Bound the evidence of a simulated tensor from both sides, by annealing.

        The allocation of a simulated tensor is known. Annealing backwards from it overestimates ln
        of the evidence in expectation, and annealing forwards underestimates it. Both follow the
        path of ``"tempered"``, so the gap shows how far that method may be off on such data.

        Parameters
        ----------
        shape : mapping of str to int
            The axes of the tensor to draw, and their sizes.
        total : int
            The total of the tensor.
        n_samples, n_chains, n_replicates : int, default=1000, 16, 4
            Temperatures; chains per replicate forwards, rounded up to a multiple of 16 (backwards
            there are always 16); replicates in each direction.
        random_state, n_jobs, progress
            As for :meth:`log_evidence`.

        Returns
        -------
        BidirectionalBounds
            Both bounds of ln of the evidence given the total, in arrays of one entry.

        Raises
        ------
        BudgetExceededError
            If the chains would exceed the memory of the machine.
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
        sizes = {"n_chains": n_chains, "n_samples": n_samples, "n_replicates": n_replicates}
        return find_bounds(self, shape, total, sizes, Run.of(random_state, n_jobs, progress))

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
        """Decompose a count tensor into conditional tables.

        Parameters
        ----------
        data : CountTensor, Corpus, array or sparse matrix
            As for :meth:`log_evidence`.
        method : {"vb", "em", "dual-em", "icm", "ml", "gibbs", "smc", "tempered"}, default="vb"
            * ``"vb"``: variational Bayes; its bound never decreases.
            * ``"em"``: expectation maximisation over the tables.
            * ``"dual-em"``: expectation maximisation over the allocation.
            * ``"icm"``: iterated conditional modes of tables and allocation.
            * ``"ml"``: maximum likelihood; the prior has no effect.
            * ``"gibbs"``: collapsed Gibbs sampling within one mode; counts are averaged over
              sweeps, and the tables follow from the averages.
            * ``"smc"``: the most probable particle of a filter.
            * ``"tempered"``: posterior means of counts and tables over all modes that parallel
              tempering visits (see :meth:`sample_posterior`).
        observed : array of bool, shape of the data, or "nan", optional
            As for :meth:`log_evidence`. Missing cells need a `rate` and ``"vb"``, ``"em"`` or
            ``"ml"``; tables and expected counts then include the missing cells.
        max_iter : int, optional
            Iterations; default: until convergence. For ``"gibbs"``, sweeps; default 1000.
        tol : float, optional
            Relative gain of the objective at which iterations end; default 1e-9.
        n_restarts : int, optional
            Random starts, of which the best is kept; default 10. Every second start begins with
            100 iterations of maximum likelihood. Not for ``"gibbs"``, ``"smc"`` and
            ``"tempered"``.
        elimination_order, random_state, n_jobs, progress
            As for :meth:`log_evidence`.
        **options
            For ``"gibbs"``, `burn_in`: sweeps left out of the averages; default: half of them. For
            ``"smc"``, `n_particles`: default 1000. For ``"tempered"``, `n_samples`, `n_replicates`
            and `target_std_error` as for :meth:`log_evidence`.

        Returns
        -------
        Decomposition
            Conditional tables, expected counts, and errors of the reconstruction.

        Raises
        ------
        BudgetExceededError
            If chains or particles would exceed the memory of the machine.
        Interrupted
            On Ctrl-C after the first round of ``"tempered"``: `partial` is the decomposition of the
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
        """Draw allocations from their posterior.

        Parameters
        ----------
        data : CountTensor, Corpus, array or sparse matrix
            As for :meth:`log_evidence`; all cells are observed.
        n_draws : int, default=400
            Number of draws. ``"tempered"`` rounds it up to a multiple of `n_replicates`, 4 by
            default. If a given `n_samples` makes the last round too short for them, there are
            fewer, with a :class:`~polyabayes.exceptions.TargetWarning`.
        method : {"tempered", "smc"}, default="tempered"
            ``"tempered"``: parallel tempering; the draws are evenly spaced states at β = 1 of the
            last round. ``"smc"``: particles of all replicates, drawn by their weights and swept
            once more; faster for networks with few hidden values and many axes. If the replicates
            differ much in their evidence, most draws come from a few of them.
        elimination_order, random_state, n_jobs, progress
            As for :meth:`log_evidence`.
        **options
            Options of the method, as for :meth:`log_evidence`.

        Returns
        -------
        PosteriorDraws
            Counts of all tables by draw, and the evidence.

        Raises
        ------
        BudgetExceededError
            If chains or draws would take too much memory; before any work.
        Interrupted
            On Ctrl-C after the first round: `partial` has the draws of the last complete round.
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
