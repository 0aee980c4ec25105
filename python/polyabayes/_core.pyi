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

_Floats = Floats
_Evidence = tuple[str, AllocationEstimate, bool, AllocationTempering | None]
_Integers = Integers
_Exposed = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]
_Urns = tuple[_Floats, _Floats, _Floats, _Floats | None]
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
        indptr: _Integers,
        indices: _Integers | NDArray[np.uint32],
        data: _Integers | NDArray[np.uint32],
        exposure: _Floats | None = None,
        priors: _Floats | None = None,
    ) -> Documents: ...
    def lengths(self) -> NDArray[np.uint64]: ...
    def groups(self) -> _Integers: ...

@final
class Model:
    @staticmethod
    def lda(
        alpha: _Floats,
        phi: _Floats,
        concentration: _Floats | None = None,
        sizes: Sequence[int] = ...,
    ) -> Model: ...
    @staticmethod
    def gamma_poisson(
        r: _Floats, p: _Floats, phi: _Floats, concentration: _Floats | None = None
    ) -> Model: ...
    @staticmethod
    def logistic_normal(
        phi: _Floats, mean: _Floats, covariance: _Floats, sizes: Sequence[int] = ...
    ) -> Model: ...
    @staticmethod
    def product_of_experts(
        loadings: _Floats,
        bias: _Floats,
        mean: _Floats,
        covariance: _Floats,
        is_softmax: bool,
        sizes: Sequence[int] = ...,
    ) -> Model: ...
    @staticmethod
    def mixture(
        weights: _Floats, words: _Floats, is_dirichlet: bool, sizes: Sequence[int] = ...
    ) -> Model: ...
    def covariance_factor(self, n_coordinates: int) -> _Floats: ...

@final
class Scores:
    values: Final[_Floats]
    std_errors: Final[_Floats]
    n_effs: Final[_Floats]
    methods: Final[list[str]]
    sizes: Final[_Integers]
    shortfalls: Final[_Floats]
    variances: Final[_Floats]
    trace: Final[list[_Floats]]
    interruption: Final[BaseException | None]

@final
class EmResult:
    word_topic: Final[_Floats]
    alpha: Final[_Floats]
    bound: Final[float]
    trace: Final[_Floats]
    n_tokens: Final[_Floats]
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
    draws: NDArray[np.uint16] | _Floats,
    settings: Settings,
    **run: Unpack[_Run],
) -> _Floats: ...
def transform(
    model: Model, documents: Documents, *, spread: bool, n_sweeps: int, **run: Unpack[_Run]
) -> _Floats: ...
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
def ln_urns_of_part(blocks: Blocks, topics: NDArray[np.uint16], a: _Floats) -> int: ...

@final
class FirstTopics:
    def next(self, n_tokens: int) -> NDArray[np.uint16]: ...

@final
class ClassRegression:
    def __new__(
        cls, covariates: _Floats, start: _Floats, shape: float, seed: int
    ) -> ClassRegression: ...
    groups: Final[NDArray[np.uint32]]
    weights: Final[_Floats]
    parameters: Final[_Floats]
    def draw(self, n_rows: _Floats, exposures: _Floats, sweep: int) -> None: ...

@final
class Training:
    @staticmethod
    def lda(
        source: Any,
        n_words: int,
        *,
        alpha: _Floats,
        beta: float,
        learned: bool,
        schedule: Schedule,
        topic_priors: _Floats | None = None,
        covariates: _Floats | None = None,
        topic_concentration: _Floats | str | None = None,
        state: Any = None,
    ) -> Training: ...
    @staticmethod
    def known(
        source: Any,
        *,
        prior: _Floats,
        topics: _Floats,
        factors: _Floats,
        topic_concentration: _Floats | str,
        schedule: Schedule,
    ) -> Training: ...
    @staticmethod
    def pfa(
        source: Any,
        n_words: int,
        *,
        n_documents: int,
        shape: _Floats,
        probability: _Floats,
        topic_word_prior: float,
        probability_prior: tuple[float, float] | None,
        shape_prior: tuple[float, float] | None,
        schedule: Schedule,
        covariates: _Floats | None = None,
        topic_concentration: _Floats | str | None = None,
        state: Any = None,
    ) -> Training: ...
    n_sweeps: Final[int]
    def run(
        self, until: int, look_every: int, progress: _Progress = None
    ) -> tuple[list[tuple[int, float, float]], BaseException | None]: ...
    def mean(self) -> tuple[_Floats, _Floats, _Floats]: ...
    def counts(self) -> NDArray[np.uint32]: ...
    def state_parameters(self) -> _Floats: ...
    def tables(self) -> NDArray[np.uint32]: ...
    def parameters(self) -> _Floats: ...
    def assignments(self) -> NDArray[np.uint16] | None: ...
    def kept(self) -> tuple[int, _Floats | None]: ...
    def kept_coefficients(self) -> _Floats: ...

def fit_em(
    documents: Documents,
    alpha: _Floats,
    start: tuple[_Floats, _Floats, float] | None,
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
    ln_laws: Final[_Floats]
    starts: Final[Integers]
    cells: Final[NDArray[np.uint32]]
    numbers: Final[NDArray[np.uint32]]
    values: Final[NDArray[np.uint32]]
    counts: Final[list[_Floats]]

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
    ln_joint: Final[_Floats]
    ln_joint_errors: Final[_Floats]
    posterior: Final[_Floats]
    posterior_errors: Final[_Floats]
    expected: Final[_Floats]
    expected_errors: Final[_Floats]
    ln_remainder: Final[float]
    ln_remainder_bound: Final[float]

@final
class AllocationDecomposition:
    counts: Final[list[_Floats]]
    trace: Final[_Floats]
    ln_value: Final[float]
    converged: Final[bool]
    expected: Final[_Floats]
