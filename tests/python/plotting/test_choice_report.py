"""The page about a choice: the curve, all sizes, the matches with a reference set, signatures."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import polyabayes as pb
from polyabayes import exceptions as errors
from polyabayes.cli import main

pd = pytest.importorskip("pandas")
pytest.importorskip("matplotlib")

CHANNELS = [f"{a}[{s}]{b}" for s in ("C>A", "C>T", "T>G") for a in "ACGT" for b in "AC"]
RNG = np.random.default_rng(0)
REFERENCE = pd.DataFrame(
    RNG.dirichlet(np.full(len(CHANNELS), 0.1), 3), ["SBS1", "SBS2", "SBS<3>"], CHANNELS
)
LOADS = 200 * RNG.dirichlet(np.full(2, 0.3), 40)
COUNTS = RNG.poisson(LOADS @ REFERENCE.to_numpy()[[2, 0]])
PFA = pb.PoissonFactorAnalysis(max_iter=30, n_jobs=1)


@pytest.fixture(scope="module")
def choice():
    corpus = pb.Corpus(COUNTS, vocabulary=CHANNELS)
    found = pb.choose_n_components(PFA, corpus, [1, 2, 3], n_folds=2, random_state=0)
    return corpus, found


class Cells(HTMLParser):
    """The text of the cells of all tables, and the names of all elements."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.elements = [], []
        self.feed(text)

    def handle_starttag(self, tag, _attrs):
        self.elements.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.elements and self.elements[-1] in ("td", "th") and data.strip():
            self.rows[-1][-1] += data


def test_the_page_shows_the_choice_and_the_matches(choice, tmp_path):
    corpus, found = choice
    assert found.recommended == 2
    model = pb.PoissonFactorAnalysis(2, max_iter=100, n_jobs=1, random_state=0).fit(corpus)
    page = pb.plotting.report_choice(
        found, tmp_path / "a.html", model=model, reference=REFERENCE, title="How <many>?"
    )
    text = page.read_text()
    assert "<h1>How &lt;many&gt;?</h1>" in text
    assert "best by held-out: 2" in text
    assert not re.search(r"(?:src|href)=\"http", text)
    read = Cells(text)
    assert read.elements.count("svg") == 2
    assert [row[0] for row in read.rows[1:4]] == ["1", "2", "3"]
    behind = read.rows[0].index("behind")
    assert float(read.rows[1][behind]) == pytest.approx(found.rows[0]["behind"], rel=1e-3)
    matches = [row[1:] for row in read.rows[5:]]
    assert {name for name, _ in matches} == {"SBS1", "SBS<3>"}
    assert min(float(cosine) for _, cosine in matches) > 0.98
    # The same page again, and one without a model.
    again = pb.plotting.report_choice(
        found, tmp_path / "b.html", model=model, reference=REFERENCE, title="How <many>?"
    )
    assert again.read_bytes() == page.read_bytes()
    bare = Cells(pb.plotting.report_choice(found, tmp_path / "c.html").read_text())
    assert bare.elements.count("svg") == 1
    assert len(bare.rows) == 4


def test_topics_without_a_match_are_told(choice, tmp_path):
    corpus, found = choice
    model = pb.PoissonFactorAnalysis(3, max_iter=10, n_jobs=1, random_state=0).fit(corpus)
    page = pb.plotting.report_choice(
        found, tmp_path / "a.html", model=model, reference=REFERENCE.iloc[:2]
    )
    names = [row[1] for row in Cells(page.read_text()).rows[5:]]
    assert sorted(names) == ["SBS1", "SBS2", "none left"]


def test_bad_arguments_are_refused(choice, tmp_path):
    corpus, found = choice
    with pytest.raises(errors.InvalidArgumentError, match="reference needs the model"):
        pb.plotting.report_choice(found, tmp_path / "a.html", reference=REFERENCE)
    with pytest.raises(errors.InvalidTypeError, match="must be a SizeChoice"):
        pb.plotting.report_choice(corpus, tmp_path / "a.html")
    with pytest.raises(errors.FileAccessError):
        pb.plotting.report_choice(found, tmp_path / "none" / "a.html")


@pytest.mark.parametrize("transposed", [False, True])
def test_a_catalogue_to_its_page_in_one_command(tmp_path, transposed):
    table = pd.DataFrame(COUNTS.T, CHANNELS, [f"sample {n}" for n in range(len(COUNTS))])
    table.rename_axis("MutationType").to_csv(tmp_path / "SBS96.tsv", sep="\t")
    known = (REFERENCE if transposed else REFERENCE.T).rename_axis("Type")
    known.to_csv(tmp_path / "COSMIC.txt", sep="\t")
    page = tmp_path / "page.html"
    told = ["choose", "pfa", str(tmp_path / "SBS96.tsv"), "--transpose", "--sizes", "1,2"]
    told += ["--n-folds", "2", "--max-iter", "30", "--seed", "0"]
    reference = ["--reference", str(tmp_path / "COSMIC.txt")]
    assert main([*told, "--report", str(page), *reference]) == 0
    names = {row[1] for row in Cells(page.read_text()).rows[4:]}
    assert names == {"SBS1", "SBS<3>"}
    assert main([*told, *reference]) == 2
