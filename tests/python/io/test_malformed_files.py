"""Damaged files, and what is said of them: the path, the line and the mistake.

Each line of ``damage.txt`` is a file: its name, its content, what is said, and options.
"""

from pathlib import Path

import pytest

import polyabayes as pb
from polyabayes.exceptions import FileFormatError

# Numbers of any length end in a short message.
LONG = "9" * 5000
BANNER = "%%MatrixMarket matrix coordinate integer general\n"
SMALL = BANNER + "2 2 1\n"
DOCWORD = "3\n3\n3\n1 1 2\n1 3 1\n3 2 3\n"
TNS = "# hair eye sex count\n1 1 1 32\n1 3 2 11\n\n3 4 2 5 # the last\n"


def docword(wrong):
    return DOCWORD.replace("1 3 1", wrong)


def tns(wrong):
    return TNS.replace("1 3 2 11", wrong)


ROWS = Path(__file__).with_name("damage.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("row", ROWS)
def test_damage_is_located(write, row):
    name, content, says, *options = eval(row)
    path = write(name, content.encode("latin-1") if name == "x.tns" else content)
    read = pb.read_tensor if name in ("x.tns", "tensor.csv") else pb.read_corpus
    with pytest.raises(FileFormatError, match=says) as caught:
        read(path, **dict(*options))
    assert str(path) in str(caught.value)
    assert len(str(caught.value).replace(str(path), "")) < 300
