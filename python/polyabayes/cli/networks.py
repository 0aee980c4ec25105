"""Commands on networks: evidence and tables of a count tensor, and the search over sizes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import polyabayes as pb
from polyabayes._support.output.tables import measured
from polyabayes.allocation.graphs.checks import known_nodes
from polyabayes.allocation.observed_cells import observed_outside
from polyabayes.cli.corpora import read, read_as_wide, size
from polyabayes.cli.output import (
    INTERRUPTED,
    checked_folder,
    keep,
    save_picture,
    say,
    table_writer,
    write_table,
)
from polyabayes.cli.parser import Given
from polyabayes.exceptions import Interrupted, InvalidArgumentError, ScoreError
from polyabayes.io.tensors.tns import default_axes
from polyabayes.sizes import priors


def evidence(
    given: Given,
    graph: str,
    tensor: str,
    *,
    try_: tuple[str, range] | None = None,
    missing: str | None = None,
    predict: str | None = None,
    plot: str | None = None,
) -> int:
    """Evidence of a count tensor under a network.

    Parameters
    ----------
    try_ : NODE=N..M
        Compare all sizes of a hidden node.
    missing : TENSOR
    predict : CELLS.csv|CELLS.parquet
    plot : FILE.png|.pdf|.svg
        Draw evidence against size, with --try.

    Examples
    --------
    $ polyabayes evidence 'i <- r -> j' counts.tns --size r=2
    """
    if plot is not None and try_ is None:
        raise InvalidArgumentError("--plot draws evidence against size; add --try NODE=N..M")
    if given.checkpoint and try_ is None and predict is None:
        raise InvalidArgumentError("--checkpoint keeps evidences of sizes; add --try NODE=N..M")
    node, sizes = try_ or ("", range(0))
    if try_ is not None:
        known_nodes(_network(given, graph).graph, "--try", (node,))
    model = _network(given, graph, {node: sizes[0]} if try_ else {})
    data = _read_for(model, tensor, given)
    options = given.of("AllocationModel.log_evidence") | _observed(data, missing, predict, given)
    if predict is not None:
        if try_ or given.given_total or given.checkpoint:
            message = "--predict goes with no --try, --given-total or --checkpoint"
            raise InvalidArgumentError(message)
        _announce(model, data)
        found = model.predict_missing(data, **options)
        write_table(found._columns(), predict)
        low, high = found.total_interval()
        print(_evidence_summary(found.evidence), file=sys.stderr)
        print(f"total         {found.expected_total:,.2f}, {low:,} to {high:,}", file=sys.stderr)
    elif try_ is None:
        _announce(model, data)
        print(_evidence_summary(model.log_evidence(data, **options)))
    else:
        models = {str(n): _network(given, graph, {node: n}) for n in sizes}
        say(f"{node} from {sizes[0]} to {sizes[-1]}, {data}")
        evidences = _of_sizes(models, data, options, given.of("posterior_over_models"))
        if plot is not None:
            by_size = {n: evidences[str(n)] for n in sizes}
            save_picture(pb.plotting.plot_evidence(by_size, xlabel=f"size of {node}"), plot)
    return 0


def _of_sizes(
    models: Mapping[str, pb.AllocationModel],
    data: pb.CountTensor,
    options: dict[str, Any],
    kept: dict[str, Any],
) -> Mapping[str, pb.Evidence]:
    """Evidences of all sizes, printed; bounds have no odds."""
    if options.get("method") != "vb":
        posterior = pb.posterior_over_models(models, data, **options, **kept)
        print(posterior)
        return posterior.evidences
    evidences = {name: model.log_evidence(data, **options) for name, model in models.items()}
    print(f"{'model':<5}  {'log evidence is at least':>24}")
    for name, bound in evidences.items():
        print(f"{name:<5}  {bound.value:>24,.4f}")
    return evidences


def decompose(
    given: Given,
    graph: str,
    tensor: str,
    *,
    output: str,
    missing: str | None = None,
    predict: str | None = None,
) -> int:
    """Tables of a network for a count tensor.

    Parameters
    ----------
    output : FOLDER
        A folder for one CSV file a table.
    missing : TENSOR
    predict : CELLS.csv|CELLS.parquet

    Examples
    --------
    $ polyabayes decompose 'i <- r -> j' counts.tns --size r=2 -o tables
    """
    folder = checked_folder(output)
    model = _network(given, graph)
    data = _read_for(model, tensor, given)
    observed = _observed(data, missing, predict, given)
    _announce(model, data)
    found = model.decompose(data, **given.of("AllocationModel.decompose"), **observed)
    errors = f"squared error {found.squared_error:z,.4f}, KL error {found.kl_error:z,.4f} nats"
    say(f"{found!r}, {errors}")

    def write_tables(place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        for node in found.tables:
            table_writer(found._columns(node))(place / f"{node}.csv")

    writers: dict[Path, Callable[[Path], None]] = {folder: write_tables}
    cells: Mapping[str, Any] = {}
    if predict is not None:
        cells = found._missing_columns()
    if predict not in (None, "-"):
        writers[Path(str(predict))] = table_writer(cells)
    try:
        keep(writers)
        say(f"wrote a table for each of {', '.join(found.tables)} to {folder}")
    finally:
        if predict == "-":
            write_table(cells, "-")
    return 0


def search(
    given: Given,
    inputs: list[str],
    *,
    prior: list[priors.SizePrior],
    output: str,
    test: str | None = None,
    plot: str | None = None,
) -> int:
    """Bounds on what LDA, or a network, of every size can do.

    Parameters
    ----------
    inputs : INPUT
        A corpus, for LDA; or a graph and a tensor, as of 'evidence', one after the other.
    prior : NAME:NUMBERS
        Prior of the size: poisson:MEAN (on top of 1), geometric:P, negative-binomial:MEAN,SHAPE or
        uniform:LOW,HIGH; of several sizes joined by '*', in the order of --size; may be repeated:
        the first one is searched, the others get the same scores.
    output : BOUNDS.csv|BOUNDS.parquet
        One row a step, or a fold; '-' is CSV on standard output.
    test : CORPUS
        Documents to predict.
    plot : FILE.png|.pdf|.svg
        Draw the bounds.

    Examples
    --------
    $ polyabayes search train.npz --prior poisson:5 --max-steps 4 -o bounds.csv --seed 0
    """
    if len(inputs) > 2:
        raise InvalidArgumentError("give a corpus, or a graph and a tensor")
    of_network = len(inputs) == 2
    given.refuse_other_kinds("a graph and a tensor" if of_network else "a corpus")
    for option, value in (("--test", test), ("--metadata", given.metadata)):
        if of_network and value:
            raise InvalidArgumentError(
                f"{option} is an option of a corpus, not of a graph and a tensor"
            )
    if given.n_folds is not None and (test or plot):
        option = "--test" if test else "--plot"
        raise InvalidArgumentError(f"--folds writes a table of its own folds: leave out {option}")
    if of_network:
        model = _network(given, inputs[0])
        _check_priors(model, prior)
        scoring = given.of("AllocationModel.log_evidence") | _threads(given)
    else:
        training = given.of("LatentDirichletAllocation") | _threads(given)
        model = pb.LatentDirichletAllocation(**training)
        scoring = given.of("log_likelihood")
        for general in ("random_state", "n_jobs", "progress"):
            scoring.pop(general, None)
    found = pb.WitnessSearch(model, prior[0], scoring_options=scoring, **given.of("WitnessSearch"))
    if of_network:
        tensor = _read_for(model, inputs[1], given)
        say(f"searching {model} on {tensor}")
        return _run(found, tensor, prior, output, plot)
    corpus = read(inputs[0], given)
    reading = given.of("read_corpus", "Corpus.from_documents")
    held_out = read_as_wide(corpus.n_words, test, reading) if test else None
    say(f"searching on {size(corpus)}")
    if given.n_folds is None:
        return _run(found, corpus, prior, output, plot, held_out)
    folds = pb.cross_validate(found, corpus, priors=prior[1:], **given.of("cross_validate"))
    write_table(folds, output)
    return 0


def _threads(given: Given) -> dict[str, Any]:
    return {} if given.n_jobs is None else {"n_jobs": given.n_jobs}


def _check_priors(model: pb.AllocationModel, given: Sequence[priors.SizePrior]) -> None:
    unknown = ", ".join(model.unknown_sizes)
    if not unknown:
        raise InvalidArgumentError("no size is unknown; give --size NODE=? for each to search")
    for prior in given:
        if prior.n_variables != len(model.unknown_sizes):
            raise InvalidArgumentError(
                f"--prior has {prior.n_variables} parts for the sizes of {unknown}; give one each, "
                "joined as poisson:3*geometric:0.5"
            )


def _run(
    search: pb.WitnessSearch,
    data: Any,
    all_priors: Sequence[priors.SizePrior],
    output: str,
    plot: str | None,
    test: pb.Corpus | None = None,
) -> int:
    try:
        search.fit(data)
    except Interrupted as interrupted:
        write_table(_stacked(search, all_priors), output)
        say(f"interrupted: {interrupted}")
        return INTERRUPTED
    except ScoreError:
        if np.isfinite(search.bounds_["log_score"]).any():
            write_table(_stacked(search, all_priors), output)
            say(f"{search.n_steps_:,} sizes up to the error are written")
        raise
    searches = {repr(prior): search.under(prior) for prior in all_priors}
    try:
        write_table(_stacked(search, all_priors), output)
        if plot is not None:
            save_picture(pb.plotting.plot_size_bounds(searches), plot)
    finally:
        say(f"{search.n_steps_:,} sizes, stopped by {search.stop_reason_}")
        for name, one in searches.items():
            print(_search_summary(name, one, test), file=sys.stderr)
    return 0


def _stacked(search: pb.WitnessSearch, all_priors: Sequence[Any]) -> dict[str, Any]:
    """The bounds under each prior one below the other, the prior in the first column."""
    tables = [search.under(prior).bounds_ for prior in all_priors]
    names = np.repeat([repr(prior) for prior in all_priors], search.n_steps_)
    columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
    return {"prior": names, **columns}


def _observed(
    data: pb.CountTensor, missing: str | None, predict: str | None, given: Given
) -> dict[str, Any]:
    if predict is not None and missing is None:
        raise InvalidArgumentError("--predict needs --missing")
    if missing is None:
        return {}
    return {"observed": observed_outside(data, pb.read_tensor(missing, given.axes or data.axes))}


def _read_for(model: pb.AllocationModel, path: str, given: Given) -> pb.CountTensor:
    """Read a tensor; axes that have no names are the visible nodes in the order of the graph."""
    tensor = pb.read_tensor(path, **given.of("read_tensor"))
    nameless = tensor.axes == default_axes(len(tensor.axes))
    if given.axes or not nameless or set(tensor.axes) <= set(model.graph.nodes):
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
        f"{model} of {tensor}: {cost.n_states:,} joint states per token, {cost.n_marginals:,} "
        "marginal counts"
    )


def _network(
    given: Given, graph: str, sizes: Mapping[str, int] | None = None
) -> pb.AllocationModel:
    """The model that the options describe; `sizes` go before theirs."""
    options = given.of("AllocationModel")
    return pb.AllocationModel(graph, {**options.pop("sizes", {}), **(sizes or {})}, **options)


def _lines(told: Mapping[str, Any]) -> str:
    width = max(map(len, told)) + 2
    return "\n".join(f"{name:<{width}}{text}" for name, text in told.items())


def _evidence_summary(evidence: pb.Evidence) -> str:
    low, high = evidence.interval()
    total = evidence.log_probability_of_total
    lines = [repr(evidence)]
    if high > low:
        lines.append(f"95 %: {low:,.6f} to {high:,.6f}")
    given = "observed" if np.isnan(total) else f"in all, ln of whose probability is {total:z,.6f}"
    return "\n".join([*lines, f"{evidence.n_tokens:,} tokens {given}"])


def _search_summary(name: str, search: pb.WitnessSearch, test: pb.Corpus | None) -> str:
    row = search.bounds_.row(-1)
    least, most = search.unexplored_posterior_
    best = f"{search.best_} (of trained models, which does not choose a size)"
    if isinstance(search.estimator, pb.AllocationModel):
        sizes = np.atleast_1d(search.best_).tolist()
        pairs = zip(search.estimator.unknown_sizes, sizes, strict=True)
        best = ", ".join(f"{node} {number}" for node, number in pairs)
    told = {
        "  ln p(y)": f"{row['lower']:z,.2f} to {row['upper']:z,.2f} nats",
        "  best size": best,
        "  not explored": f"{least:.2g} to {most:.2g} of the posterior",
    }
    if test is not None:
        bounds = search.predictive_bounds(test)
        told["  ln p(test)"] = f"{bounds.lower:z,.2f} to {bounds.upper:z,.2f} nats"
        told["  by best size"] = f"{measured(bounds.best, bounds.best_std_error)} nats"
    if not all(search.holds_.values()):
        told["  not rigorous"] = ", ".join(x for x, holds in search.holds_.items() if not holds)
    return f"{name}\n{_lines(told)}"
