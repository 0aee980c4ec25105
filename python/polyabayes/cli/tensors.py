"""Commands on count tensors: evidence and decompose."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import polyabayes as pb
from polyabayes._support.tables import counted
from polyabayes.allocation.graphs.checks import known_nodes
from polyabayes.allocation.observed_cells import observed_outside
from polyabayes.cli.keywords import DECOMPOSITION, EVIDENCE, MODEL, given
from polyabayes.cli.messages import say
from polyabayes.cli.output import (
    check_table,
    checked_folder,
    checked_picture,
    escaped,
    keep,
    save_picture,
    table_writer,
    write_table,
)
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.io.tensors.tns import default_axes


def evidence(arguments: argparse.Namespace) -> int:
    """Evidence of a tensor under a network, or under networks of several sizes."""
    plot = checked_picture(arguments.plot)
    if plot is not None and arguments.tried is None:
        raise InvalidArgumentError("--plot draws evidence against size; add --try NODE=N..M")
    smallest = {}
    if arguments.tried is not None:
        node, sizes = arguments.tried
        known_nodes(network(arguments).graph, "--try", (node,))
        smallest = {node: sizes[0]}
    tensor = read_for(network(arguments, smallest), arguments.tensor, arguments.axes)
    options = given(arguments, EVIDENCE) | _observed(arguments, tensor)
    if arguments.predict is not None:
        return _predict_missing(arguments, tensor, options)
    if arguments.tried is None:
        model = network(arguments)
        _announce(model, tensor)
        print(_evidence_summary(model.log_evidence(tensor, **options)))
        return 0
    models = {str(size): network(arguments, {node: size}) for size in sizes}
    say(f"{node} from {sizes[0]} to {sizes[-1]}, {tensor}")
    if arguments.method == "vb":
        evidences = {name: model.log_evidence(tensor, **options) for name, model in models.items()}
        _print_bounds(evidences)
    else:
        posterior = pb.posterior_over_models(models, tensor, **options)
        evidences = posterior.evidences
        print(posterior)
    if plot is not None:
        by_size = {size: evidences[str(size)] for size in sizes}
        save_picture(pb.plotting.plot_evidence(by_size, xlabel=f"size of {node}"), plot)
        say(f"wrote {plot}")
    return 0


def _predict_missing(
    arguments: argparse.Namespace, tensor: pb.CountTensor, options: dict[str, Any]
) -> int:
    if arguments.tried or arguments.given_total or arguments.checkpoint:
        raise InvalidArgumentError("--predict goes with no --try, --given-total or --checkpoint")
    model = network(arguments)
    _announce(model, tensor)
    found = model.predict_missing(tensor, **options)
    write_table(_cells(found._columns(), arguments), arguments.predict)
    low, high = found.total_interval()
    print(_evidence_summary(found.evidence), file=sys.stderr)
    print(f"total         {found.expected_total:,.2f}, {low:,} to {high:,}", file=sys.stderr)
    return 0


def decompose(arguments: argparse.Namespace) -> int:
    """Tables of a network for a tensor."""
    folder = checked_folder(arguments.output)
    model = network(arguments)
    tensor = read_for(model, arguments.tensor, arguments.axes)
    observed = _observed(arguments, tensor)
    _announce(model, tensor)
    found = model.decompose(tensor, **given(arguments, DECOMPOSITION), **observed)
    print(_decomposition_summary(found), file=sys.stderr)
    writers: dict[Path, Callable[[Path], None]] = {folder: partial(_write_tables, found, arguments)}
    if arguments.predict not in (None, "-"):
        writers[Path(arguments.predict)] = table_writer(_cells(found._missing_columns(), arguments))
    try:
        keep(writers)
        say(f"wrote a table for each of {', '.join(found.tables)} to {folder}")
    finally:
        if arguments.predict == "-":
            write_table(_cells(found._missing_columns(), arguments), "-")
    return 0


def _cells(columns: Mapping[str, Any], arguments: argparse.Namespace) -> Mapping[str, Any]:
    return escaped(columns, wanted=arguments.escape_formulas)


def _write_tables(found: pb.Decomposition, arguments: argparse.Namespace, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for node in found.tables:
        table_writer(_cells(found._columns(node), arguments))(folder / f"{node}.csv")


def _observed(arguments: argparse.Namespace, tensor: pb.CountTensor) -> dict[str, Any]:
    """Which cells were observed, if some were not."""
    if arguments.predict is not None:
        if arguments.missing is None:
            raise InvalidArgumentError("--predict needs --missing")
        check_table(arguments.predict)
    if arguments.missing is None:
        return {}
    missing = pb.read_tensor(arguments.missing, arguments.axes or tensor.axes)
    return {"observed": observed_outside(tensor, missing)}


def read_for(
    model: pb.AllocationModel, path: str, axes: Sequence[str] | None = None
) -> pb.CountTensor:
    """Read a tensor; axes that have no names are the visible nodes in the order of the graph."""
    tensor = pb.read_tensor(path, axes)
    nameless = tensor.axes == default_axes(len(tensor.axes))
    if axes or not nameless or set(tensor.axes) <= set(model.graph.nodes):
        return tensor
    if len(tensor.axes) != len(model.axes):
        raise InvalidArgumentError(
            f"{path} has {len(tensor.axes)} axes without names, but the graph has "
            f"{len(model.axes)} nodes without a size: {', '.join(model.axes)}; name the axes by "
            "--axes, or give --size for nodes that are hidden"
        )
    say(f"the axes of {path} are {', '.join(model.axes)}, in this order")
    return pb.CountTensor.from_coo(
        tensor.coordinates, tensor.counts, model.axes, tensor.shape, tensor.labels
    )


def _announce(model: pb.AllocationModel, tensor: pb.CountTensor) -> None:
    cost = model.cost(tensor)
    say(
        f"{model} of {tensor}: {cost.n_states:,} joint states a token, {cost.n_marginals:,} "
        "marginal counts"
    )


def network(
    arguments: argparse.Namespace, sizes: Mapping[str, int] | None = None
) -> pb.AllocationModel:
    """The model that the options describe; `sizes` go before theirs."""
    make = pb.AllocationModel.from_undirected if arguments.undirected else pb.AllocationModel
    options = given(arguments, MODEL)
    if arguments.table_prior is not None:
        options["prior"] = arguments.table_prior
    return make(arguments.graph, {**(arguments.sizes or {}), **(sizes or {})}, **options)


def _print_bounds(evidences: Mapping[str, pb.Evidence]) -> None:
    """Bounds by size, without odds, which do not follow from them."""
    print(f"{'model':<5}  {'log evidence is at least':>24}")
    for name, evidence in evidences.items():
        print(f"{name:<5}  {evidence.value:>24,.4f}")


def _evidence_summary(evidence: pb.Evidence) -> str:
    low, high = evidence.interval()
    given_total = ", given the total" if evidence.given_total else ""
    error = f"{evidence.std_error:.2g} nats, {evidence.n_replicates} replicates"
    if evidence.is_lower_bound:
        error = "a lower bound"
    elif evidence.n_replicates < 2:
        error = "not known from one replicate" if evidence.n_replicates else "none"
    lines = [
        f"log evidence  {evidence.value:z,.6f} nats{given_total}",
        f"method        {evidence.method}",
        f"error         {error}",
        *([] if np.isnan(low) else [f"95 %          {low:z,.6f} to {high:z,.6f}"]),
        f"ln P(T)       {evidence.log_probability_of_total:z,.6f}, T = {evidence.n_tokens:,}"
        if not np.isnan(evidence.log_probability_of_total)
        else f"observed      {evidence.n_tokens:,} tokens",
        f"time          {evidence.seconds:.2f} s",
    ]
    return "\n".join(lines)


def _decomposition_summary(found: pb.Decomposition) -> str:
    sparsity = ", ".join(f"{node} {value:.3f}" for node, value in found.sparsity.items())
    lines = [
        f"objective      {found.reached()}, {counted(len(found.trace), 'iteration')}",
        f"squared error  {found.squared_error:z,.4f}",
        f"KL error       {found.kl_error:z,.4f} nats",
        f"sparsity       {sparsity}",
        f"parameters     {pb.n_effective_parameters(found):,}",
        f"time           {found.seconds:.2f} s",
    ]
    return "\n".join(lines)
