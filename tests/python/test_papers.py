"""Pages of the papers: settings are those of the texts, tables those of the runs."""

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benches.papers import PAPERS, pages  # noqa: E402
from benches.papers.figure import DATA, Figure  # noqa: E402

# Settings as the texts name them, typed from there; a run without an entry is ours.
CUT = {
    "collections": ["ap", "20ng", "reuters", "web_snippets", "l2r_nips100", "l2r_twitter100"],
    "words": 100,
    "topics": 5,
    "sweeps": 1000,
}
TEXTS: dict[str, dict[str, Any]] = {
    "l2r-table1": {"in": "6.1, Table 1"},
    "l2r-fig2": {"in": "6.2, Figures 1 and 2", **CUT, "documents": 1000, "repeats": 10},
    "l2r-fig3": {"in": "6.3, Figure 3", "topics": 100, "sweeps": 1000, "documents": 1000},
    "l2r-authors": {"in": "authors' files"},
    "eltm-table1": {
        "in": "4.1, Table 1",
        "words": 1000,
        "alpha": 0.1,
        "cycles": 10,
        "tokens": 14,
        "topics": 4,
        "gamma": [0.2, 0.5, 1.0, 3.0],
        "pairs": 100,
        "samples": 200,
        "runs": 1,
    },
    "witness-fig2": {"in": "Figure 2"},
    "eltm-fig1": {
        "in": "4.1, Figures 1 and 2",
        "words": 1000,
        "alpha": 0.1,
        "cycles": 10,
        "tokens": 16,
        "topics": 5,
        "gamma": 0.5,
    },
    "eltm-fig3-5": {
        "in": "4.2, Figures 3 to 5",
        "sets": [[10, 28251], [10, 5000], [40, 28251]],
        "K": [
            [5, 8, 9, 10, 11, 12, 20, 40],
            [5, 8, 9, 10, 11, 12, 20, 40],
            [20, 32, 35, 38, 40, 45, 50, 60],
        ],
        "trained": [1000, 2500, 5000, 10000, 20000, 30000, 40000],
        "held_out": 10000,
        "tokens": 151,
        "samples": [200, 100],
    },
    "eltm-times": {
        "in": "4.2",
        "words": 28251,
        "tokens": 151,
        "held_out": 10000,
        "samples": [200, 100],
        "LRS also": 2000,
    },
    "bam-example32": {"in": "3.1, Example 3.2", "a": 1.0, "b": 1.0},
    "bam-example34": {"in": "authors' files of Example 3.4", "a": 4.0, "b": 0.01},
    "bam-fig5-6": {"in": "authors' files of Figures 5 and 6", "rank": 3},
    "bam-fig9": {
        "in": "5.1.1, Figure 9",
        "exponents": [-5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5],
        "ranks": [1, 2, 3, 4],
        "particles": 1000,
        "runs": 100,
    },
    "bam-fig10": {
        "in": "5.1.2, Figure 10a",
        "shape": [20, 25, 30],
        "rank": 5,
        "tensors": [[500, 30.0]],
    },
    "bam-fig10-times": {
        "in": "5.1.2, Figure 10b",
        "sides": list(range(4, 65, 4)),
        "tokens": 1000,
        "repeats": 10,
    },
    "bam-fig12": {
        "in": "5.2, Figure 12",
        "rows": 4177,
        "levels": 5,
        "a": [1.0, 0.001],
        "ranks": list(range(1, 31)),
        "methods": ["smc", "vb"],
    },
    "bam-fig13": {
        "in": "5.2, Figure 13",
        "levels": 5,
        "a": 1.0,
        "rank": 3,
        "methods": ["smc"],
        "levels by": "the most probable particle",
    },
    "bam-fig15": {
        "in": "5.3, Figure 15",
        "tokens": 2000,
        "a": [1.0, 0.001],
        "ranks": list(range(1, 51)),
        "methods": ["smc", "vb"],
        "letters": "drawn",
    },
    "bam-fig16": {
        "in": "5.4, Figure 16",
        "tokens": 2000,
        "rank": 3,
        "exponents": [-3, -2, -1, 0, 1, 2, 3],
        "letters": "drawn",
        "least squares": "ALS-PGD",
    },
    "witness-fig3-5": {"in": "Figures 3 and 5", "folds": 10},
    "witness-fig4-5": {"in": "Figures 4 and 5", "folds": 10, "sizes": 150, "means": [5, 10, 40]},
}

FIGURES = [figure for figures in PAPERS.values() for figure in figures]
PAGES = sorted(pages.PAGES.glob("*.md"))


def name_of(figure: Figure) -> str:
    return f"{figure.paper}-{figure.name}"


@pytest.mark.parametrize("figure", FIGURES, ids=name_of)
def test_published_settings_are_those_of_the_texts(figure: Figure) -> None:
    text = TEXTS.get(name_of(figure), {"in": ""})
    assert {key: figure.published[key] for key in text} == text


@pytest.mark.parametrize("figure", FIGURES, ids=name_of)
def test_a_record_names_its_settings_and_commit(figure: Figure) -> None:
    kept = pages.kept(name_of(figure))
    assert kept["settings"].keys() == figure.published.keys()
    assert kept["commit"]
    pictures = [page for page in PAGES if f"({name_of(figure)}.png)" in page.read_text("utf-8")]
    assert (pages.PAGES / f"{name_of(figure)}.png").exists() == (figure.x is not None)
    assert len(pictures) == (figure.x is not None)


@pytest.mark.parametrize("figure", FIGURES, ids=name_of)
def test_a_page_says_where_a_run_is_not_as_published(figure: Figure) -> None:
    kept = pages.kept(name_of(figure))["settings"]
    (line,) = [row for row in pages.runs(figure.paper).splitlines() if f" {figure.name}`" in row]
    is_published = all(kept[key] == figure.published[key] for key in kept)
    assert ("as published" in line) == (is_published and bool(figure.published["in"]))
    if not is_published and figure.published["in"]:
        assert "(published: " in line


def test_tables_are_those_of_the_runs() -> None:
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    for text in texts:
        assert pages.filled(text) == text
    for name in pages.TABLES:
        assert sum(f"<!-- papers: {name} -->" in text for text in texts) == 1, name


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=str)
def test_a_page_begins_with_its_claims(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    head, _, *claims = text.partition("\n\n| claim")[2].partition("\n\n")[0].splitlines()
    assert head == " | place | verdict | our figure | command |"
    assert len(claims) > 3
    for line in claims:
        verdict = line.split(" | ")[2]
        assert verdict.startswith(("stands", "falls", "not tested", "there", "first half")), line


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no data at {DATA}")
@pytest.mark.filterwarnings("ignore::polyabayes.exceptions.PolyabayesWarning")
@pytest.mark.parametrize("figure", FIGURES, ids=name_of)
def test_the_small_form_runs(
    figure: Figure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = figure.run("small", tmp_path, has_picture=False)
    assert path.stat().st_size > 200
