"""Memory of the samplers of allocations, told before they run."""

from __future__ import annotations

import os

from polyabayes import _core
from polyabayes.exceptions import BudgetExceededError, argument

__all__ = ["LANES", "MODES", "check_memory", "n_chains_of_ladders"]

# Chains and particles run in groups of so many.
LANES = 16

# Groups that annealing from modes holds at a time.
MODES = 4

# Bytes that the ladders of tempering share; a constant, so that results are those of any machine.
_LADDERS = 2**32

# Chains of a ladder at most.
_MOST_CHAINS = 1024

# Taken for the memory of a system that does not tell.
_UNKNOWN = 2**33


def n_chains_of_ladders(core: _core.Allocation, n_replicates: int) -> int:
    """Chains that each of some ladders may have: a chain holds its states, counts and weights."""
    a_chain = 4 * core.n_tokens * core.n_cliques + 12 * core.n_marginals
    n_groups = _LADDERS // max(n_replicates * LANES * a_chain, 1)
    return min(max(n_groups, 1) * LANES, _MOST_CHAINS)


def check_memory(
    core: _core.Allocation | _core.IncompleteAllocation,
    n_at_once: int,
    *,
    n_particles: int = 0,
    n_chains: int = 0,
    n_missing: int = 0,
    n_shares: int = 0,
    n_tokens: int | None = None,
) -> None:
    """Refuse particles, chains and missing cells that `n_at_once` threads could not hold.

    A run holds its tokens, four bytes each; a particle its marginal counts, four bytes each; a
    chain those, and its state at every token, four bytes for each clique of hidden nodes, or less
    where a cell has many tokens. A
    missing cell takes the place of its coordinates and of a row of every table, 32 bytes at least,
    and the runs of a filter hold its weight in each of a group of particles. Shares of hidden
    values are eight bytes each. Tokens are those of the data, unless their number is given.

    Raises
    ------
    BudgetExceededError
        If they would take more than the memory of the machine.
    """
    if not (core.n_states or n_missing):
        return
    n_tokens = core.n_tokens if n_tokens is None else n_tokens
    groups_of_particles, groups_of_chains = -(-n_particles // LANES), -(-n_chains // LANES)
    a_token = 4 + 4 * LANES * core.n_cliques * groups_of_chains
    rows = 4 * LANES * core.n_marginals * (groups_of_particles + groups_of_chains)
    weights = 8 * (LANES + 2) * n_missing if n_particles else 0
    a_run = n_tokens * a_token + rows + weights + 8 * n_shares
    needed = n_at_once * a_run + 32 * n_missing
    there_are = _memory()
    if needed <= there_are:
        return
    sizes = [f"{n_tokens:,} tokens"]
    sizes += [f"{n_particles:,} particles"] if n_particles else []
    sizes += [f"{n_chains:,} chains"] if n_chains else []
    sizes += [f"{n_missing:,} missing cells"] if n_missing else []
    raise BudgetExceededError(
        f"{', '.join(sizes)} and {core.n_marginals:,} marginal counts would take "
        f"{needed / 2**30:,.1f} GiB on {n_at_once} threads, of {there_are / 2**30:,.1f}; take "
        f"fewer, divide the counts by a common unit, lower {argument('n_jobs')}, or use "
        f"{argument('method', 'vb')}, which holds "
        "no tokens and no particles"
    )


def _memory() -> int:
    """Bytes of memory of the machine."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return _UNKNOWN
