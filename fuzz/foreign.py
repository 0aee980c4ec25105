"""Files of other packages' models that are fuzzed: gensim, MALLET, tomotopy, fastTopics."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from changes import changed_array, changed_bytes, changed_fields, changed_pickle
from corpora import Case

import polyabayes as pb

TEXTS = [["urn", "ball", "urn"], ["gene", "cell"], ["ball", "urn"], ["cell", "gene", "gene"]] * 3
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


class Gensim(Case):
    """The files of LdaModel.save: pickles, and a large array of its own."""

    share = 1

    def make(self) -> None:
        from gensim.corpora import Dictionary
        from gensim.models import LdaModel

        dictionary = Dictionary(TEXTS)
        bags = [dictionary.doc2bow(text) for text in TEXTS]
        model = LdaModel(bags, 2, dictionary, alpha="auto", random_state=0)
        self.path = self.folder / "lda"
        model.save(str(self.path))
        self.state = self.folder / "lda.state"
        if self.rng.random() < 0.5:
            model.state.save(str(self.state), separately=["sstats"])
        names = ("lda", "lda.state", "lda.id2word")
        self.pickles = {name: (self.folder / name).read_bytes() for name in names}
        self.array = model.state.sstats
        self.array_path = self.folder / "lda.state.sstats.npy"

    def change(self) -> tuple[Path, bytes]:
        if self.array_path.exists() and self.rng.random() < 0.2:
            return self.array_path, changed_array(self.array, self.rng)
        name = self.rng.choice(sorted(self.pickles))
        change = self.rng.choice((changed_bytes, changed_pickle, changed_pickle))
        return self.folder / name, change(self.pickles[name], self.rng)

    def read(self) -> str:
        pb.interop.read_model(self.path)
        return "read"

    def restore(self) -> None:
        for name, content in self.pickles.items():
            (self.folder / name).write_bytes(content)
        if self.array_path.exists():
            np.save(self.array_path, self.array)


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


class Tomotopy(Case):
    """Files that only tomotopy reads, in a process of its own each: slow, so few."""

    suffix = ".bin"
    share = 0.003

    def make(self) -> None:
        import tomotopy

        model = tomotopy.LDAModel(k=2, seed=1)
        for text in TEXTS:
            model.add_doc(text)
        model.train(10, workers=1)
        model.save(str(self.path))

    def change(self) -> tuple[Path, bytes]:
        return self.path, changed_bytes(self.valid, self.rng)

    def read(self) -> str:
        pb.interop.read_model(self.path)
        return "read"


FOREIGN: list[type[Case]] = [Mallet, Gensim, FastTopics, Tomotopy]
