import math

import numpy as np
import pytest

from polyabayes import AllocationModel, CountTensor, exceptions as errors
from polyabayes.allocation.layout import lay_out  # noqa: F401
from polyabayes.allocation.options import Options  # noqa: F401

TABLE = [[2, 0, 1], [1, 1, 0], [0, 3, 1]]
TENSOR = CountTensor.from_dense(TABLE, ["doc", "word"])
WIDE = CountTensor.from_coo([[0, 99_999_999_998]], [5], ["doc", "word"])


def test_variational_methods_need_no_tokens():
    huge = np.array([[9 * 10**11, 10**11], [10**11, 9 * 10**11]])
    model = AllocationModel.nmf(2)
    bound = model.log_evidence(huge, "vb", random_state=0)
    assert math.isfinite(bound.value)
    for method in ("vb", "em", "dual-em", "icm"):
        found = model.decompose(huge, method, random_state=0)
        assert found.expected_counts["topic"].sum() == pytest.approx(huge.sum(), rel=1e-9)


@pytest.mark.parametrize("method", ["smc", "tempered"])
def test_one_replicate_has_no_error(method):
    with pytest.warns(errors.UnreliableErrorWarning, match="one replicate gives no standard error"):
        found = AllocationModel.nmf(2).log_evidence([[5, 4], [3, 2]], method, n_replicates=1)
    assert np.isfinite(found.value)
    assert np.isnan([found.std_error, *found.interval()]).all()
    assert repr(found).endswith(f" nats ({method}, one replicate)>")
