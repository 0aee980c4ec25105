"""Changes of files: bytes, fields of texts, arrays of archives."""

import io
import random
import zipfile
from typing import Any

import numpy as np

# Numbers and texts that parsers have trouble with.
NASTY = [
    *(b"0", b"-1", b"1.5", b"1e9", b"1e400", b"nan", b"inf", b"9" * 400, b"4294967296"),
    *(b"2147483648", b"9223372036854775807", b"-9223372036854775808", b"1000000000000", b"", b" "),
    *(b"\n", b"\r", b"\0", b"%", b"#", b":", b"::", b",", b'"', b"1_0", b"0x10", b"\xff\xfe"),
    *("\u0661".encode(), b"[" * 5000, b'{"a":' * 3000, b"True", b"null", b"'''", b"\x1f\x8b"),
    b"PK\x03\x04",
]
_LARGEST = 1 << 16


def changed_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flip, cut, double or replace a few parts of a file."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        place = rng.randrange(len(data) + 1)
        other = min(len(data), place + rng.choice((1, 1, 4, 16, 200)))
        match rng.randrange(7):
            case 0 if data:
                data[place % len(data)] ^= 1 << rng.randrange(8)
            case 1:
                data[place:other] = b""
            case 2:
                data[place:place] = data[place:other]
            case 3:
                data[place:other] = rng.choice(NASTY)
            case 4:
                del data[place:]
            case 5:
                data[place:place] = rng.choice(NASTY)
            case _:
                data[place:other] = rng.randbytes(other - place)
    return bytes(data[:_LARGEST])


def changed_fields(content: bytes, rng: random.Random) -> bytes:
    """Change numbers and words of a text, and its lines."""
    lines = content.split(b"\n")
    for _ in range(rng.choice((1, 1, 2, 3))):
        row = rng.randrange(len(lines))
        fields = lines[row].split(b" " if b" " in lines[row] else b",")
        match rng.randrange(5):
            case 0:
                lines.insert(row, lines[rng.randrange(len(lines))])
            case 1 if len(lines) > 1:
                del lines[row]
            case 2:
                fields.append(rng.choice(NASTY))
            case _:
                fields[rng.randrange(len(fields))] = rng.choice(NASTY)
        if row < len(lines):
            lines[row] = (b" " if b" " in lines[row] else b",").join(fields)
    return b"\n".join(lines)[:_LARGEST]


def changed_array(array: Any, rng: random.Random) -> bytes:
    """Bytes of an ``.npy`` file whose header or values are changed."""
    array = np.array(array)
    header = np.lib.format.header_data_from_array_1_0(array)
    match rng.randrange(6):
        case 0 if array.dtype.kind in "iu" and array.size:
            array = array.astype(np.int64)
            header = np.lib.format.header_data_from_array_1_0(array)
            index = rng.randrange(array.size)
            array.ravel()[index] = rng.choice((-1, 0, 1, 5, 100_000, 2**31, 2**62, -(2**63)))
        case 1:
            shape = rng.choice(((), (0,), (-1,), (10**12,), (3, 10**18), (2, 2), array.shape * 2))
            header["shape"] = shape
        case 2:
            header["descr"] = rng.choice(
                ("<f8", "|O", "<U1000000000", ">i8", "|S0", "<c16", "<M8[s]")
            )
        case 3:
            header["fortran_order"] = not header["fortran_order"]
        case 4:
            array = array.ravel()[: rng.randrange(array.size + 1)]
            header = np.lib.format.header_data_from_array_1_0(array)
        case _:
            kinds = ("f8", "i2", "S3", "?") if array.dtype.kind in "iuf" else ("S3", "U2")
            array = array.astype(rng.choice(kinds))
            header = np.lib.format.header_data_from_array_1_0(array)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, header)
    stream.write(array.tobytes())
    content = stream.getvalue()
    return changed_bytes(content, rng) if rng.random() < 0.2 else content


def changed_archive(arrays: dict[str, Any], rng: random.Random) -> bytes:
    """Bytes of an ``.npz`` file with one or two arrays changed."""
    wrong = rng.sample(sorted(arrays), rng.choice((1, 1, 2)))
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            plain = io.BytesIO()
            np.lib.format.write_array(plain, array)
            broken = changed_array(array, rng) if name in wrong else plain.getvalue()
            archive.writestr(f"{name}.npy", broken)
    return stream.getvalue()
