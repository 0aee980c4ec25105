"""Files of other packages' models that are fuzzed: MALLET, fastTopics."""

import warnings
from pathlib import Path

from changes import changed_bytes, changed_fields
from corpora import Case

import polyabayes as pb

STATE = """#doc source pos typeindex type topic
#alpha : 0.5 0.25
#beta : 0.1
0 NA 0 0 urn 0
0 NA 1 1 ball 0
0 NA 2 0 urn 1
1 NA 0 2 gene 1
"""


class Mallet(Case):
    """A state and both tables, one of them changed."""

    share = 12

    def make(self) -> None:
        self.path = self.folder / "state.txt"
        words = ("urn", "ball", "gene")
        weights = "".join(f"{k}\t{w}\t{0.1 + k}\n" for k in range(2) for w in words)
        self.files = {
            "state": (self.path, STATE.encode()),
            "topic_word_weights": (self.folder / "weights.txt", weights.encode()),
            "word_topic_counts": (
                self.folder / "counts.txt",
                b"0 urn 0:1 1:1\n1 ball 0:1\n2 gene 1:1\n",
            ),
        }
        self.restore()

    def change(self) -> tuple[Path, bytes]:
        self.table = self.rng.choice(sorted(self.files))
        path, content = self.files[self.table]
        change = self.rng.choice((changed_bytes, changed_fields))
        return path, change(content, self.rng)

    def read(self) -> str:
        if self.table == "state":
            pb.interop.read_model(self.path)
        else:
            path = self.files[self.table][0]
            pb.interop.from_mallet(self.path, **{self.table: path})
        return "read"

    def restore(self) -> None:
        for path, content in self.files.values():
            path.write_bytes(content)


class FastTopics(Case):
    """Both matrices as R writes them."""

    suffix = ".csv"

    def make(self) -> None:
        self.path.write_text('"","k1","k2"\n"urn",0.5,0.25\n"ball",0.5,0.5\n"gene",0,0.25\n')
        self.loadings = self.folder / "loadings.csv"
        self.loadings.write_text('"","k1","k2"\n"a",0.5,0.5\n"b",0.9,0.1\n"c",0.3,0.7\n')

    def read(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pb.interop.from_fasttopics(self.path, self.loadings)
        return "read"


FOREIGN: list[type[Case]] = [Mallet, FastTopics]
