"""Pages of the papers: settings and tables are those of the runs."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benches.papers import PAPERS, pages  # noqa: E402
from benches.record import DATA  # noqa: E402

FIGURES = [figure for figures in PAPERS.values() for figure in figures]
PAGES = sorted(pages.PAGES.glob("*.md"))


def name_of(figure):
    return f"{figure.paper}-{figure.name}"


@pytest.mark.parametrize("figure", FIGURES, ids=name_of)
def test_a_record_names_its_settings_and_commit(figure):
    kept = pages.kept(name_of(figure))
    assert kept["settings"].keys() == figure.published.keys()
    assert kept["commit"]
    pictures = [page for page in PAGES if f"({name_of(figure)}.png)" in page.read_text("utf-8")]
    assert (pages.PAGES / f"{name_of(figure)}.png").exists() == (figure.picture is not None)
    assert len(pictures) == (figure.picture is not None)


@pytest.mark.parametrize("figure", FIGURES, ids=name_of)
def test_a_page_says_where_a_run_is_not_as_published(figure):
    kept = pages.kept(name_of(figure))["settings"]
    (line,) = [row for row in pages.runs(figure.paper).splitlines() if f" {figure.name}`" in row]
    is_published = all(kept[key] == figure.published[key] for key in kept)
    assert ("as published" in line) == (is_published and bool(figure.published["in"]))
    if not is_published and figure.published["in"]:
        assert "(published: " in line


def test_tables_are_those_of_the_runs():
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    for text in texts:
        assert pages.filled(text) == text
    for name in pages.tables():
        assert sum(f"<!-- papers: {name} -->" in text for text in texts) == 1, name


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "index"], ids=str)
def test_a_page_begins_with_its_claims(page):
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
def test_the_small_form_runs(figure, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = figure.run("small", tmp_path, has_picture=False)
    assert path.stat().st_size > 200
