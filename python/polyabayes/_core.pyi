"""The compiled core of polyabayes."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Allocation",
    "AllocationCompletion",
    "AllocationDecomposition",
    "AllocationDraws",
    "AllocationEstimate",
    "AllocationRun",
    "AllocationTempering",
    "Documents",
    "EmResult",
    "FirstTopics",
    "IncompleteAllocation",
    "Model",
    "Scores",
    "Training",
    "bidirectional",
    "check_completion",
    "check_score",
    "completion",
    "count_part",
    "exposed_of_part",
    "fit_em",
    "is_doubtful",
    "ln_urns_of_part",
    "order_tokens",
    "order_topics",
    "run_allocation_task",
    "score",
    "score_for_total",
    "sweep_part",
    "transform",
]

_Floats = NDArray[np.float64]
_Evidence = tuple[str, AllocationEstimate, bool, AllocationTempering | None]
_Integers = NDArray[np.int64]
_Exposed = tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]
_Urns = tuple[_Floats, _Floats, _Floats, _Floats | None]
_Position = tuple[str, int, int]

class _ScoreSettings(Protocol):
    @property
    def method(self) -> str: ...
    @property
    def event(self) -> str: ...
    @property
    def given_length(self) -> bool: ...
    @property
    def n_samples(self) -> int | None: ...
    @property
    def n_particles(self) -> int | None: ...
    @property
    def n_replicates(self) -> int: ...
    @property
    def target_std_error(self) -> float | None: ...
    @property
    def budget(self) -> float | None: ...
    @property
    def trace(self) -> bool: ...
    @property
    def order(self) -> int: ...
    @property
    def n_iterations(self) -> int: ...
    @property
    def n_conditional_samples(self) -> int | None: ...
    @property
    def start(self) -> str: ...

class _FitSchedule(Protocol):
    @property
    def max_iter(self) -> int: ...
    @property
    def burn_in(self) -> int: ...
    @property
    def warm_up(self) -> int: ...
    @property
    def thin(self) -> int: ...
    @property
    def start_sweeps(self) -> int: ...
    @property
    def n_init(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def n_jobs(self) -> int: ...

class _Blocks(Protocol):
    @property
    def n_documents(self) -> NDArray[np.uint64]: ...
    @property
    def word_starts(self) -> NDArray[np.uint32]: ...
    @property
    def token_documents(self) -> NDArray[np.uint16]: ...
    @property
    def documents_before(self) -> int: ...
    @property
    def longest(self) -> int: ...
    @property
    def documents(self) -> Documents | None: ...

class _EvidenceOptions(Protocol):
    @property
    def method(self) -> str: ...
    @property
    def n_particles(self) -> int | None: ...
    @property
    def n_samples(self) -> int | None: ...
    @property
    def n_replicates(self) -> int | None: ...
    @property
    def resampling(self) -> str: ...
    @property
    def resample_below(self) -> float: ...
    @property
    def order(self) -> str | Sequence[int]: ...
    @property
    def n_sweeps(self) -> int | None: ...
    @property
    def budget(self) -> float | None: ...
    @property
    def target_std_error(self) -> float | None: ...

@final
class Documents:
    def __new__(
        cls,
        n_words: int,
        indptr: _Integers,
        indices: _Integers,
        data: _Integers,
        exposure: _Floats | None = None,
        priors: _Floats | None = None,
    ) -> Documents: ...
    @staticmethod
    def narrow(
        n_words: int,
        indptr: _Integers,
        indices: NDArray[np.uint32],
        data: NDArray[np.uint32],
        exposure: _Floats | None = None,
        priors: _Floats | None = None,
    ) -> Documents: ...
    def lengths(self) -> NDArray[np.uint64]: ...
    def groups(self) -> _Integers: ...

@final
class Model:
    @staticmethod
    def lda(alpha: _Floats, phi: _Floats, sizes: Sequence[int] = ...) -> Model: ...
    @staticmethod
    def gamma_poisson(r: _Floats, p: _Floats, phi: _Floats) -> Model: ...
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
    @property
    def values(self) -> _Floats: ...
    @property
    def std_errors(self) -> _Floats: ...
    @property
    def n_effs(self) -> _Floats: ...
    @property
    def methods(self) -> list[str]: ...
    @property
    def sizes(self) -> _Integers: ...
    @property
    def reached(self) -> NDArray[np.bool_]: ...
    @property
    def shortfalls(self) -> _Floats: ...
    @property
    def variances(self) -> _Floats: ...
    @property
    def trace(self) -> list[_Floats]: ...
    @property
    def interruption(self) -> BaseException | None: ...

@final
class EmResult:
    @property
    def word_topic(self) -> _Floats: ...
    @property
    def alpha(self) -> _Floats: ...
    @property
    def bound(self) -> float: ...
    @property
    def trace(self) -> _Floats: ...
    @property
    def n_tokens(self) -> _Floats: ...
    @property
    def interruption(self) -> BaseException | None: ...

def score(
    model: Model,
    documents: Documents,
    settings: _ScoreSettings,
    *,
    seed: int,
    n_jobs: int,
    progress: Callable[[int], None] | None = None,
) -> Scores: ...
def score_for_total(
    model: Model,
    documents: Documents,
    settings: _ScoreSettings,
    *,
    n_temperatures: int,
    seed: int,
    n_jobs: int,
    progress: Callable[[int], None] | None = None,
) -> Scores: ...
def check_score(model: Model, documents: Documents, settings: _ScoreSettings) -> None: ...
def check_completion(
    model: Model, observed: Documents, held_out: Documents, settings: _ScoreSettings
) -> None: ...
def completion(
    model: Model,
    observed: Documents,
    held_out: Documents,
    settings: _ScoreSettings,
    *,
    seed: int,
    n_jobs: int,
    progress: Callable[[int], None] | None = None,
) -> Scores: ...
def bidirectional(
    model: Model,
    documents: Documents,
    draws: NDArray[np.uint16] | _Floats,
    settings: _ScoreSettings,
    *,
    seed: int,
    n_jobs: int,
    progress: Callable[[int], None] | None = None,
) -> _Floats: ...
def transform(
    model: Model,
    documents: Documents,
    *,
    spread: bool,
    n_sweeps: int,
    seed: int,
    n_jobs: int,
    progress: Callable[[int], None] | None = None,
) -> _Floats: ...
def order_tokens(documents: Documents) -> tuple[NDArray[np.uint32], NDArray[np.uint16]]: ...
def order_topics(blocks: _Blocks, topics: NDArray[np.uint16]) -> NDArray[np.uint16]: ...
def sweep_part(
    blocks: _Blocks,
    topics: NDArray[np.uint16],
    urns: _Urns,
    counts: NDArray[np.uint32],
    *,
    seed: int,
    to: _Position,
    tables: bool,
    n_jobs: int,
) -> NDArray[np.uint64]: ...
def count_part(blocks: _Blocks, topics: NDArray[np.uint16], counts: NDArray[np.uint32]) -> None: ...
def exposed_of_part(
    blocks: _Blocks,
    topics: NDArray[np.uint16],
    n_topics: int,
    exposures: NDArray[np.uint32],
    n_jobs: int,
) -> list[_Exposed]: ...
def ln_urns_of_part(blocks: _Blocks, topics: NDArray[np.uint16], a: _Floats) -> int: ...

@final
class FirstTopics:
    def next(self, n_tokens: int) -> NDArray[np.uint16]: ...

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
        schedule: _FitSchedule,
        topic_priors: _Floats | None = None,
        covariates: _Floats | None = None,
        state: Any = None,
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
        schedule: _FitSchedule,
        covariates: _Floats | None = None,
        state: Any = None,
    ) -> Training: ...
    @property
    def n_sweeps(self) -> int: ...
    def run(
        self, until: int, look_every: int, progress: Callable[[int], None] | None = None
    ) -> tuple[list[tuple[int, float, float]], BaseException | None]: ...
    def mean(self) -> tuple[_Floats, _Floats]: ...
    def counts(self) -> NDArray[np.uint32]: ...
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
    seed: int,
    n_jobs: int,
    progress: Callable[[int], None] | None = None,
) -> EmResult: ...

@final
class AllocationEstimate:
    @property
    def ln_value(self) -> float: ...
    @property
    def std_error(self) -> float: ...
    @property
    def n_eff(self) -> float: ...
    @property
    def n_replicates(self) -> int: ...

@final
class AllocationTempering:
    @property
    def rounds(
        self,
    ) -> list[tuple[int, list[float], tuple[float, float], int, float]]: ...
    @property
    def betas(self) -> list[float]: ...
    @property
    def rejections(self) -> list[float]: ...
    @property
    def converged(self) -> bool: ...
    @property
    def n_free(self) -> int: ...

@final
class AllocationDraws:
    @property
    def tempering(self) -> AllocationTempering | None: ...
    @property
    def estimate(self) -> AllocationEstimate | None: ...
    @property
    def hidden(self) -> list[int]: ...
    @property
    def replicates(self) -> NDArray[np.int64]: ...
    @property
    def ln_laws(self) -> _Floats: ...
    @property
    def starts(self) -> NDArray[np.int64]: ...
    @property
    def cells(self) -> NDArray[np.uint32]: ...
    @property
    def numbers(self) -> NDArray[np.uint32]: ...
    @property
    def values(self) -> NDArray[np.uint32]: ...
    @property
    def counts(self) -> list[_Floats]: ...

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
        coordinates: NDArray[np.int64],
        counts: NDArray[np.int64],
        elimination: Sequence[int] | None = None,
        factorised: bool = False,
    ) -> Allocation: ...
    @property
    def n_states(self) -> int: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_cliques(self) -> int: ...
    @property
    def n_cells(self) -> int: ...
    @property
    def n_marginals(self) -> int: ...
    def ln_total(self, rate: float) -> float: ...
    def evidence(
        self,
        options: _EvidenceOptions,
        *,
        seed: int,
        n_jobs: int,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[_Evidence, BaseException | None]: ...
    def allocations(self, budget: float) -> tuple[_Floats, _Floats, NDArray[np.int64]]: ...
    def draws(
        self,
        options: _EvidenceOptions,
        *,
        n_draws: int,
        seed: int,
        n_jobs: int,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[AllocationDraws, BaseException | None]: ...
    def best_particle(
        self,
        options: _EvidenceOptions,
        *,
        seed: int,
        n_jobs: int,
        progress: Callable[[int], None] | None = None,
    ) -> AllocationDecomposition: ...
    def variational(
        self,
        method: str,
        *,
        max_iter: int,
        tolerance: float,
        n_restarts: int,
        seed: int,
        n_jobs: int,
        progress: Callable[[int], None] | None = None,
    ) -> AllocationDecomposition: ...
    def gibbs(
        self,
        *,
        n_sweeps: int,
        burn_in: int,
        seed: int,
        n_jobs: int,
        progress: Callable[[int], None] | None = None,
    ) -> AllocationDecomposition: ...
    def bidirectional_bounds(
        self,
        total: int,
        *,
        n_chains: int,
        n_temperatures: int,
        n_replicates: int,
        seed: int,
        n_jobs: int,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[AllocationEstimate, AllocationEstimate]: ...

@final
class AllocationRun:
    def __new__(
        cls, allocation: Allocation, options: _EvidenceOptions, *, n_jobs: int
    ) -> AllocationRun: ...
    def tasks(self) -> list[bytes]: ...
    def add(self, results: Sequence[bytes]) -> int: ...
    def evidence(self) -> _Evidence: ...

def run_allocation_task(
    allocation: Allocation, options: _EvidenceOptions, task: bytes, *, seed: int, n_jobs: int
) -> bytes: ...

@final
class IncompleteAllocation:
    def __new__(
        cls, allocation: Allocation, missing: NDArray[np.int64], rate: float
    ) -> IncompleteAllocation: ...
    @property
    def n_states(self) -> int: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_cliques(self) -> int: ...
    @property
    def n_marginals(self) -> int: ...
    @property
    def n_missing(self) -> int: ...
    def complete(
        self,
        options: _EvidenceOptions,
        *,
        max_total: int | None,
        seed: int,
        n_jobs: int,
        progress: Callable[[int], None] | None = None,
    ) -> tuple[str, AllocationCompletion]: ...
    def bound(
        self,
        *,
        max_iter: int,
        tolerance: float,
        n_restarts: int,
        seed: int,
        n_jobs: int,
        progress: Callable[[int], None] | None = None,
    ) -> AllocationCompletion: ...
    def variational(
        self,
        method: str,
        *,
        max_iter: int,
        tolerance: float,
        n_restarts: int,
        seed: int,
        n_jobs: int,
        progress: Callable[[int], None] | None = None,
    ) -> AllocationDecomposition: ...

@final
class AllocationCompletion:
    @property
    def evidence(self) -> AllocationEstimate: ...
    @property
    def ln_joint(self) -> _Floats: ...
    @property
    def ln_joint_errors(self) -> _Floats: ...
    @property
    def posterior(self) -> _Floats: ...
    @property
    def posterior_errors(self) -> _Floats: ...
    @property
    def expected(self) -> _Floats: ...
    @property
    def expected_errors(self) -> _Floats: ...
    @property
    def ln_remainder(self) -> float: ...
    @property
    def ln_remainder_bound(self) -> float: ...
    @property
    def tempering(self) -> AllocationTempering | None: ...

@final
class AllocationDecomposition:
    @property
    def counts(self) -> list[_Floats]: ...
    @property
    def trace(self) -> _Floats: ...
    @property
    def ln_value(self) -> float: ...
    @property
    def converged(self) -> bool: ...
    @property
    def expected(self) -> _Floats: ...
