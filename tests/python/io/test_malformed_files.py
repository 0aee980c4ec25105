"""Damaged files, and what is said of them: the path, the line and the mistake."""

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


LDAC = [(f"1 0:{LONG}\n", "line 1"), (f"1 {LONG}:1\n", "line 1"), (f"{LONG} 0:1\n", "line 1")]
MATRIX_MARKET = [
    ("%%MatrixMarket matri", "Line 1"),
    ("", "Not a Matrix Market file"),
    (BANNER + "% comment\n", "Line 3: .*Premature EOF"),
    (BANNER + "2 2 1000000000000\n1 1 1\n", "announces 1,000,000,000,000 entries"),
    (BANNER + "1000000000000000 2 1\n1 1 1\n", "announces 1,000,000,000,000,000 doc"),
    (BANNER + LONG + " 2 1\n1 1 1\n", "cannot be read"),
    (BANNER + "2 2 1\n\n2 2 2A", "line 4: '2 2 2A' is not whole numbers: row, column, count"),
    (SMALL + "1 1 1.5\n", "line 3: '1 1 1.5' is not"),
    (SMALL + "1 1 1e3\n", "line 3: '1 1 1e3' is not"),
    (SMALL + "1 1 1 junk\n", "line 3: '1 1 1 junk' is not"),
    (SMALL + "1 1 1\n2 2 2\n", "Line 4: Too many lines"),
    (SMALL, "Truncated file"),
    (SMALL + f"{LONG} 1 1\n", "line 3"),
    (SMALL + "0 1 1\n", "line 3: '0 1 1'"),
    (SMALL + "1 3 1\n", "Line 3: Column index"),
    (SMALL + f"1 1 {2**32}\n", "a count above 2.*document .row. 0, word .column. 0"),
    (SMALL + "1 1 nan\n", "line 3: '1 1 nan'"),
    (BANNER.replace("integer", "complex") + "1 1 1\n1 1 1 0\n", "complex, general are no counts"),
    (BANNER.replace("coordinate", "array") + "2 2\n1\n2\n3.5\n", "line 5: '3.5' is not a count"),
    (BANNER.replace("general", "symmetric") + "2 3 1\n1 1 1\n", "symmetric, but of 2 rows and 3"),
]
SVMLIGHT = [
    ("1 -1:2\n", "line 1: '1 -1:2' is not a label and pairs"),
    (f"1 {2**40}:2\n", "numbers above"),
    ("1 1:1\n1 1:" + LONG + "\n", "line 2"),
    ("1 1:0.5\n", "line 1: '1 1:0.5' is not"),
    ("1 1:1 7\n", "line 1: '1 1:1 7' is not"),
    ("\n# nothing\n", "holds no documents"),
]
DOCWORDS = [
    ("3\n3\n4\n1 1 2\n1 3 1\n3 2 3\n", "Truncated file"),
    ("3\nx\n3\n1 1 2\n", "line 2: the first three lines"),
    ("3\n3\n", "line 3: the first three lines"),
    ("0\n3\n0\n", "holds no documents"),
    (f"3\n{LONG}\n3\n", "line 2: the first three lines"),
    (docword("1 4 1"), "Line 5: Column index"),
    (docword("1 3"), "line 5: '1 3' is not"),
    (docword("1 3:1"), "line 5: '1 3:1' is not"),
    (DOCWORD, "vocabulary has 2 entries", {"vocabulary": ["urn", "ball"]}),
]
TABLES = [
    ("", "cannot be read"),
    ("urn,ball\n", "holds no documents"),
    ("urn,ball\n1,2\n3\n", "line 3: 1 fields, less than the 2"),
    ("urn,ball\n1,2\n\n3,4,5\n", "line 4: 3 fields, more than the 2"),
    ("urn,ball\n1,-2\n", "line 2: column 'ball': the count '-2' is not"),
    ("urn,ball\n0,2\n1,0.5\n", "line 3: column 'ball': the count '0.5' is not"),
    ("urn,ball\n1,1.0.0\n3,4\n", "line 2: column 'ball': the count '1.0.0' is not"),
    ("urn,ball\n1,2\nnan,2\n", "line 3: column 'urn': the count 'nan' is not"),
    ("urn,ball\n1,4294967296\n", "line 2: column 'ball': the count '4294967296'"),
    ("id,urn\na,many\nb,1\n", "line 2: column 'urn': the count 'many' is not"),
    ('a,b\n"1"2,3\n', "line 2: a quote in a field"),
    ('a,b\n1,2\n"x\ny,2\n', "line 3: a quoted field does not end"),
    ('id,b\n"x\ny",2\n1,many\n', "line 4: column 'b': the count 'many'"),
    ('a,b,c\n1,"2,3\n4",5\n', "'b' holds no counts"),
    ("a,b\r1,2\r3,x\r", "line 3: column 'b': the count 'x'"),
    (b"a,b\n1,2\n\xff,3\n", "line 3: the file is not valid utf-8; try encoding='latin-1'"),
    ("document,word,count\na,,1\n", "line 2: no word is given"),
    ('document,word,count\na,"urn",1\na,urn,many\n', "line 3: column 'count': .*many"),
    ("urn,ball\n1,2\n", "the columns 'urn', 'ball'", {"word": "ball"}),
    ("urn,ball\n1,2,3,4\n1\n1,2,3,4,5\n", "line 2: 4 fields, more than the 2"),
    (f"a,b\n1,{LONG}\n", "line 2: column 'b'"),
]
TENSORS = [
    *[
        (tns(wrong), f"line 3: '{wrong}' is not the coordinates of a cell on 3 axes and its count")
        for wrong in ("1 3 11", "1 3 2 2 11", "0 3 2 11", "1 -3 2 11", "1 3.0 2 11", "1 3:2 2 11")
    ],
    *[
        (tns(f"1 3 2 {wrong}"), f"line 3: '1 3 2 {wrong}' is not")
        for wrong in ("-11", "1.5", "nan", "inf", "1e999999999", "eleven")
    ],
    (tns(f"1 3 2 {2**63}"), rf"above .* - 1: {2**63} at cell 1"),
    (tns(f"1 3 2 {2**63 - 1}"), "has the sum 9223372036854775844, above 2\\*\\*63 - 1"),
    (tns("\xff"), "line 3"),
    (f"1 1 {LONG}\n", "line 1"),
    (f"1 {LONG} 1\n", "line 1"),
    ("", "holds no cells"),
    ("# only\n\n", "holds no cells"),
    ("5\n6\n", "line 1"),
]
FACTORS = [
    ("i,count\na,1\nb,-1\n", "Negative values .*column 'count': -1 at line 3"),
    ("i,count\na,1\nb,0.5\n\n", "fractional counts: 0.5 at line 3"),
    ("i,count\na,1\nb,two\n", "column 'count' holds 'two' at line 3, not a number"),
    ("i,count\na,1\nb,nan\n", "column 'count' holds 'nan' at line 3"),
    ("i,count\na,1\nb,inf\n", "column 'count' contains infinity: inf at line 3"),
    ("i,count\na,1\nb,\n", "column 'count' holds no value at line 3"),
    ("i,count\na,1\nb\n", "line 3: 1 fields, less than the 2 of the header"),
    ("i,count\na,1.0\nb,9007199254740993\n", "float64 is exact below"),
    (f"i,count\na,1\nb,{2**63}\n", r"above 2\*\*63 - 1: 9223372036854775808 at line 3"),
    (f"i,count\na,1\nb,{2**63 - 1}\n", "has the sum 9223372036854775808.*at line 3"),
    ("i,count\na,1\nb,2,3\n", "line 3: 3 fields, more than the 2 of the header"),
    ("i\na\n", "no columns called 'n'", {"counts": "n"}),
    ("i\na\n", "no columns called 'k'", {"axes": ["k"]}),
    ("i,count\n", "column 'i' has no value in any row"),
    ("", "cannot be read"),
]


FILES = [
    (pb.read_corpus, "x.ldac", LDAC),
    (pb.read_corpus, "x.mtx", MATRIX_MARKET),
    (pb.read_corpus, "x.svmlight", SVMLIGHT),
    (pb.read_corpus, "docword.x.txt", DOCWORDS),
    (pb.read_corpus, "x.csv", TABLES),
    (pb.read_tensor, "x.tns", TENSORS),
    (pb.read_tensor, "x.csv", FACTORS),
]


@pytest.mark.parametrize(
    ("read", "name", "row"), [(read, name, row) for read, name, rows in FILES for row in rows]
)
def test_damage_is_located(write, read, name, row):
    content, says, *options = row
    path = write(name, content.encode("latin-1") if name == "x.tns" else content)
    with pytest.raises(FileFormatError, match=says) as caught:
        read(path, **dict(*options))
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 420
