import numpy as np
import pytest

from polyabayes import AllocationModel, CountTensor

TUCKER = AllocationModel("r -> i, s; s -> j", {"r": 2, "s": 3, "i": 4, "j": 5}, axes=["i", "j"])


@pytest.mark.slow
def test_draws_have_the_probabilities_that_the_evidence_gives_them():
    model = AllocationModel.symmetric_nmf(2, concentration=0.8)
    n_draws, counts = 4_000, np.zeros((2, 2, 2, 2))
    for seed in range(n_draws):
        tensor, _ = model.simulate({"i": 2, "j": 2}, total=2, random_state=seed)
        tokens = np.repeat(tensor.coordinates, tensor.counts, axis=0)
        counts[tuple(tokens.ravel())] += 1
    for cells in np.ndindex(counts.shape):
        data = CountTensor.from_coo(np.reshape(cells, (2, 2)), [1, 1], ["i", "j"], [2, 2])
        exact = np.exp(model.log_evidence(data, given_total=True).value)
        share = counts[cells] + counts[cells[2:] + cells[:2]] * (cells[:2] != cells[2:])
        assert abs(share / n_draws - exact) < 4 * np.sqrt(exact * (1 - exact) / n_draws)


def test_totals_are_negative_binomial():
    model = AllocationModel.complete(["i"]).simulate
    totals = [model({"i": 2}, rate=0.5, random_state=seed).tensor.total for seed in range(4_000)]
    # λ ~ Gamma(1, 0.5): mean 2, variance of the Poisson 2 + 4.
    assert abs(np.mean(totals) - 2) < 4 * np.sqrt(6 / 4_000)
    assert np.var(totals) == pytest.approx(6, rel=0.2)


def test_allocations_hold_all_nodes_and_equal_seeds_give_equal_draws():
    tensor, allocation = TUCKER.simulate(total=300, random_state=1)
    assert tensor.shape == (4, 5)
    assert allocation.marginal("i", "j") == tensor
    assert set(allocation.axes) == {"r", "i", "s", "j"}
    assert TUCKER.simulate(total=300, random_state=1).allocation == allocation
    assert TUCKER.simulate(total=300, random_state=2).allocation != allocation
    # Tied nodes draw from one table.
    chain = AllocationModel.hidden_markov(3, 2, tied=True, concentration=9)
    shape = {"x1": 3, "x2": 3, "x3": 3}
    counts = chain.simulate(shape, 20_000, random_state=0).allocation
    emissions = [counts.marginal(f"x{n}", f"h{n}").to_dense() for n in (1, 2, 3)]
    shares = [table / table.sum(axis=0) for table in emissions]
    np.testing.assert_allclose(shares, np.broadcast_to(shares[0], np.shape(shares)), atol=0.05)
