"""Count tensors under Bayesian networks: evidence, decompositions, missing cells."""

from polyabayes.allocation.evidence.result import Evidence
from polyabayes.allocation.inference.decomposition import Decomposition, n_effective_parameters
from polyabayes.allocation.inference.draws import PosteriorDraws
from polyabayes.allocation.missing_cells import MissingCells
from polyabayes.allocation.model import AllocationModel
from polyabayes.allocation.posterior import ModelPosterior, posterior_over_models
