"""Evidence of count tensors: its estimates, the bounds they are held against, and the result.

`result` is what a user sees, `estimation` finds it by any method, here or on workers; `bounds`
are for data as they are, `bidirectional` for data drawn from the model.
"""

from polyabayes.allocation.evidence.bidirectional import find_bounds
from polyabayes.allocation.evidence.bounds import held_by_bound
from polyabayes.allocation.evidence.estimation import find_evidence
from polyabayes.allocation.evidence.parts import EvidencePart, EvidenceParts
from polyabayes.allocation.evidence.result import Estimate, Evidence, Round, as_evidence

__all__ = [
    "Estimate",
    "Evidence",
    "EvidencePart",
    "EvidenceParts",
    "Round",
    "as_evidence",
    "find_bounds",
    "find_evidence",
    "held_by_bound",
]
