"""Every public callable documents its parameters, what it returns, and shows an example."""

import inspect
import re
from collections.abc import Callable

import pytest

import polyabayes
from polyabayes import datasets, interop, plotting, priors, results, topics

PUBLIC_MODULES = (polyabayes, datasets, interop, plotting, priors, results, topics)

# Return annotations of functions that give nothing back.
NOTHING_RETURNED = ("None", inspect.Signature.empty)


def is_own(thing):
    """Whether the package itself defines `thing`: scikit-learn documents its own methods."""
    return getattr(thing, "__module__", "").split(".")[0] == "polyabayes"


def own_methods(cls):
    """Public methods that a class and its bases in this package define, by qualified name."""
    for base in filter(is_own, cls.__mro__):
        for name, member in vars(base).items():
            function = inspect.unwrap(getattr(member, "__func__", member))
            if inspect.isfunction(function) and not name.startswith("_"):
                yield f"{base.__module__}.{base.__qualname__}.{name}", getattr(base, name)


def public_callables():
    """Classes, functions and methods that a user can reach, each once, by qualified name."""
    found: dict[str, Callable[..., object]] = {}
    exported = (getattr(module, name) for module in PUBLIC_MODULES for name in module.__all__)
    for thing in exported:
        if not callable(thing) or not is_own(thing):
            continue
        found[f"{thing.__module__}.{thing.__qualname__}"] = thing
        if inspect.isclass(thing):
            found.update(own_methods(thing))
    return found


CALLABLES = public_callables()


def has_section(docstring, title):
    return re.search(rf"^{title}\n-{{{len(title)}}}$", docstring, re.MULTILINE) is not None


def missing_sections(thing):
    """Sections that the docstring lacks; an override without one shows its base's.

    A class that is only returned, as results are, lists its attributes in place of parameters.
    """
    docstring = inspect.getdoc(thing) or ""
    signature = inspect.signature(thing)
    wanted = ["Examples"]
    is_returned = inspect.isclass(thing) and has_section(docstring, "Attributes")
    if parameter_names(thing) and not is_returned:
        wanted.append("Parameters")
    if not inspect.isclass(thing) and signature.return_annotation not in NOTHING_RETURNED:
        wanted.append("Returns")
    return [title for title in wanted if not has_section(docstring, title)]


def parameter_names(thing):
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def documented_names(thing):
    """Names that the Parameters section lists, several of which may share a line."""
    section = re.search(
        r"^Parameters\n-{10}\n(.*?)(?=\n\n[A-Z]\w+\n-{4,}|\Z)",
        inspect.getdoc(thing) or "",
        re.MULTILINE | re.DOTALL,
    )
    lines = [line for line in section[1].split("\n") if line[:1].strip()] if section else []
    return [name.strip(" *") for line in lines for name in line.split(" :")[0].split(",")]


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_public_callables_document_parameters_results_and_an_example(name):
    assert missing_sections(CALLABLES[name]) == []
    # Parts that docstrings share are filled in.
    assert not re.search(r"^ *\{[A-Za-z][\w ,:]*\}$", CALLABLES[name].__doc__ or "", re.MULTILINE)


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_the_parameters_documented_are_those_of_the_signature(name):
    thing = CALLABLES[name]
    if not inspect.isclass(thing) or documented_names(thing):
        assert sorted(documented_names(thing)) == sorted(parameter_names(thing))


# Facades with more than 16 parameters; the contract gives the first two theirs.
WIDE = {"log_likelihood": 26, "log_completion": 20}


def test_facades_have_at_most_sixteen_parameters():
    facades = {x.__name__: x for x in CALLABLES.values() if not inspect.isclass(x)}
    assert WIDE.keys() <= facades.keys()
    too_wide = {
        name: len(parameter_names(facade))
        for name, facade in facades.items()
        if len(parameter_names(facade)) > WIDE.get(name, 16)
    }
    assert not too_wide


def test_the_walk_reaches_functions_classes_and_methods_of_every_kind():
    reached = {name.removeprefix("polyabayes.") for name in CALLABLES}
    assert {
        "likelihood.scoring.log_likelihood",
        "models.lda.LatentDirichletAllocation",
        "models.lda.LatentDirichletAllocation.from_parameters",
        "models.lda.LatentDirichletAllocation.partial_fit",
        "models.fitted.topic_weights.TopicTransformer.transform",
        "datasets.load_python_docs",
    } <= reached
