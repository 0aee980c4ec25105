"""The compiled core of polyabayes."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NotRequired, TypedDict, Unpack, final

import numpy as np
from numpy.typing import NDArray

from polyabayes._support.arrays import Floats, Integers
from polyabayes.allocation.options import Options
from polyabayes.likelihood.methods import Settings
from polyabayes.models.fitting import Schedule
from polyabayes.scale.token_order import Blocks

_Evidence = tuple[str, AllocationEstimate, bool, AllocationTempering | None]
_Exposed = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]
_Urns = tuple[Floats, Floats, Floats, Floats | None]
_Position = tuple[str, int, int]
_Progress = Callable[[int], None] | None

class _Run(TypedDict):
    seed: int
    n_jobs: int
    progress: NotRequired[_Progress]

class _Ascent(_Run):
    max_iter: int
    tolerance: float
    n_restarts: int

@final
class Documents:
    def __new__(
        cls,
        n_words: int,
        indptr: Integers,
        indices: Integers | NDArray[np.uint32],
        data: Integers | NDArray[np.uint32],
        exposure: Floats | None = None,
        priors: Floats | None = None,
    ) -> Documents: ...
    def lengths(self) -> NDArray[np.uint64]: ...
    def groups(self) -> Integers: ...

@final
class Model:
    @staticmethod
    def lda(
        alpha: Floats, phi: Floats, concentration: Floats | None = None, sizes: Sequence[int] = ...
    ) -> Model: ...
    @staticmethod
    def gamma_poisson(
        r: Floats, p: Floats, phi: Floats, concentration: Floats | None = None
    ) -> Model: ...
    @staticmethod
    def logistic_normal(
        phi: Floats, mean: Floats, covariance: Floats, sizes: Sequence[int] = ...
    ) -> Model: ...
    @staticmethod
    def product_of_experts(
        loadings: Floats,
        bias: Floats,
        mean: Floats,
        covariance: Floats,
        is_softmax: bool,
        sizes: Sequence[int] = ...,
    ) -> Model: ...
    @staticmethod
    def mixture(
        weights: Floats, words: Floats, is_dirichlet: bool, sizes: Sequence[int] = ...
    ) -> Model: ...
    def covariance_factor(self, n_coordinates: int) -> Floats: ...

@final
class Scores:
    values: Final[Floats]
    std_errors: Final[Floats]
    n_effs: Final[Floats]
    methods: Final[list[str]]
    sizes: Final[Integers]
    shortfalls: Final[Floats]
    variances: Final[Floats]
    trace: Final[list[Floats]]
    interruption: Final[BaseException | None]

@final
class EmResult:
    word_topic: Final[Floats]
    alpha: Final[Floats]
    bound: Final[float]
    trace: Final[Floats]
    n_tokens: Final[Floats]
    interruption: Final[BaseException | None]

def score(
    model: Model,
    documents: Documents,
    settings: Settings,
    *,
    n_temperatures: int | None = None,
    **run: Unpack[_Run],
) -> Scores: ...
def check_score(model: Model, documents: Documents, settings: Settings) -> None: ...
def check_completion(
    model: Model, observed: Documents, held_out: Documents, settings: Settings
) -> None: ...
def completion(
    model: Model, observed: Documents, held_out: Documents, settings: Settings, **run: Unpack[_Run]
) -> Scores: ...
def estimators() -> list[
    tuple[str, str, tuple[bool, bool, bool, bool], str | None, int | None, list[str]]
]: ...
def bidirectional(
    model: Model,
    documents: Documents,
    draws: NDArray[np.uint16] | Floats,
    settings: Settings,
    **run: Unpack[_Run],
) -> Floats: ...
def transform(
    model: Model, documents: Documents, *, spread: bool, n_sweeps: int, **run: Unpack[_Run]
) -> Floats: ...
def order_tokens(documents: Documents) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]: ...
def order_topics(blocks: Blocks, topics: NDArray[np.uint16]) -> NDArray[np.uint16]: ...
def sweep_part(
    blocks: Blocks,
    topics: NDArray[np.uint16],
    urns: _Urns,
    counts: NDArray[np.uint32],
    *,
    seed: int,
    to: _Position,
    tables: bool,
    n_jobs: int,
) -> NDArray[np.uint64]: ...
def count_part(blocks: Blocks, topics: NDArray[np.uint16], counts: NDArray[np.uint32]) -> None: ...
def exposed_of_part(
    blocks: Blocks,
    topics: NDArray[np.uint16],
    n_topics: int,
    exposures: NDArray[np.uint32],
    n_jobs: int,
) -> list[_Exposed]: ...
def ln_urns_of_part(blocks: Blocks, topics: NDArray[np.uint16], a: Floats) -> int: ...

@final
class FirstTopics:
    def next(self, n_tokens: int) -> NDArray[np.uint16]: ...

@final
class ClassRegression:
    def __new__(
        cls, covariates: Floats, start: Floats, shape: float, seed: int
    ) -> ClassRegression: ...
    groups: Final[NDArray[np.uint32]]
    weights: Final[Floats]
    parameters: Final[Floats]
    def draw(self, n_rows: Floats, exposures: Floats, sweep: int) -> None: ...

@final
class Training:
    @staticmethod
    def lda(
        source: Any,
        n_words: int,
        *,
        alpha: Floats,
        beta: float,
        learned: bool,
        schedule: Schedule,
        topic_priors: Floats | None = None,
        covariates: Floats | None = None,
        topic_concentration: Floats | str | None = None,
        state: Any = None,
    ) -> Training: ...
    @staticmethod
    def known(
        source: Any,
        *,
        prior: Floats,
        topics: Floats,
        factors: Floats,
        topic_concentration: Floats | str,
        schedule: Schedule,
    ) -> Training: ...
    @staticmethod
    def pfa(
        source: Any,
        n_words: int,
        *,
        n_documents: int,
        shape: Floats,
        probability: Floats,
        topic_word_prior: float,
        probability_prior: tuple[float, float] | None,
        shape_prior: tuple[float, float] | None,
        schedule: Schedule,
        covariates: Floats | None = None,
        topic_concentration: Floats | str | None = None,
        state: Any = None,
    ) -> Training: ...
    n_sweeps: Final[int]
    def run(
        self, until: int, look_every: int, progress: _Progress = None
    ) -> tuple[list[tuple[int, float, float]], BaseException | None]: ...
    def mean(self, release: bool) -> tuple[Floats, Floats, Floats]: ...
    def state_parameters(self) -> Floats: ...
    def tables(self) -> tuple[Any, tuple[int, int]]: ...
    def parameters(self) -> Floats: ...
    def assignments(self) -> NDArray[np.uint16] | None: ...
    def kept(self) -> tuple[int, Floats | None]: ...
    def kept_coefficients(self) -> Floats: ...

def fit_em(
    documents: Documents,
    alpha: Floats,
    start: tuple[Floats, Floats, float] | None,
    *,
    learned: bool,
    topic_word_prior: float,
    max_iter: int,
    tolerance: float,
    start_sweeps: int,
    n_init: int,
    **run: Unpack[_Run],
) -> EmResult: ...

@final
class AllocationEstimate:
    ln_value: Final[float]
    std_error: Final[float]
    n_eff: Final[float]
    n_replicates: Final[int]

@final
class AllocationTempering:
    rounds: Final[list[tuple[int, list[float], tuple[float, float], int, float]]]
    betas: Final[list[float]]
    rejections: Final[list[float]]
    converged: Final[bool]
    n_free: Final[int]

@final
class AllocationDraws:
    tempering: Final[AllocationTempering | None]
    estimate: Final[AllocationEstimate | None]
    others: Final[list[AllocationEstimate]]
    hidden: Final[list[int]]
    replicates: Final[Integers]
    ln_laws: Final[Floats]
    starts: Final[Integers]
    cells: Final[NDArray[np.uint32]]
    numbers: Final[NDArray[np.uint32]]
    values: Final[NDArray[np.uint32]]
    counts: Final[list[Floats]]

def is_doubtful(std_error: float, n_eff: float, n_replicates: int) -> bool: ...

@final
class Allocation:
    def __new__(
        cls,
        sizes: Sequence[int],
        parents: Sequence[Sequence[int]],
        axes: Sequence[int],
        ties: Sequence[Sequence[int]],
        concentration: float,
        tables: Sequence[float] | None,
        shape: Sequence[int],
        coordinates: Integers,
        counts: Integers,
        elimination: Sequence[int] | None = None,
        form: str = "joint",
    ) -> Allocation: ...
    n_states: Final[int]
    is_stepwise: Final[bool]
    n_tokens: Final[int]
    n_marginals: Final[int]
    def ln_total(self, rate: float) -> float: ...
    def evidence(
        self, options: Options, **run: Unpack[_Run]
    ) -> tuple[_Evidence, BaseException | None]: ...
    def draws(
        self, options: Options, others: Sequence[Allocation], *, n_draws: int, **run: Unpack[_Run]
    ) -> tuple[AllocationDraws, BaseException | None]: ...
    def best_particle(self, options: Options, **run: Unpack[_Run]) -> AllocationDecomposition: ...
    def variational(self, method: str, **run: Unpack[_Ascent]) -> AllocationDecomposition: ...
    def gibbs(
        self, *, n_sweeps: int, burn_in: int, **run: Unpack[_Run]
    ) -> AllocationDecomposition: ...
    def bidirectional_bounds(
        self,
        total: int,
        *,
        n_chains: int,
        n_temperatures: int,
        n_replicates: int,
        **run: Unpack[_Run],
    ) -> tuple[AllocationEstimate, AllocationEstimate]: ...

@final
class AllocationRun:
    def __new__(cls, allocation: Allocation, options: Options, *, n_jobs: int) -> AllocationRun: ...
    def tasks(self) -> list[bytes]: ...
    def add(self, results: Sequence[bytes]) -> int: ...
    def evidence(self) -> _Evidence: ...

def run_allocation_task(
    allocation: Allocation, options: Options, task: bytes, **run: Unpack[_Run]
) -> bytes: ...

@final
class IncompleteAllocation:
    def __new__(
        cls, allocation: Allocation, missing: Integers, rate: float
    ) -> IncompleteAllocation: ...
    n_missing: Final[int]
    def complete(
        self, options: Options, *, max_total: int | None, **run: Unpack[_Run]
    ) -> tuple[str, AllocationCompletion]: ...
    def bound(self, **run: Unpack[_Ascent]) -> AllocationCompletion: ...
    def variational(self, method: str, **run: Unpack[_Ascent]) -> AllocationDecomposition: ...

@final
class AllocationCompletion:
    evidence: Final[AllocationEstimate]
    ln_joint: Final[Floats]
    ln_joint_errors: Final[Floats]
    posterior: Final[Floats]
    posterior_errors: Final[Floats]
    expected: Final[Floats]
    expected_errors: Final[Floats]
    ln_remainder: Final[float]
    ln_remainder_bound: Final[float]

@final
class AllocationDecomposition:
    counts: Final[list[Floats]]
    trace: Final[Floats]
    ln_value: Final[float]
    converged: Final[bool]
    expected: Final[Floats]
