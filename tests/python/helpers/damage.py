"""Files and disks that fail."""

import os


def flipped(content, place, bit=0):
    """The content with one bit changed."""
    changed = bytearray(content)
    changed[place] ^= 1 << bit
    return bytes(changed)


def flip(path, place):
    path.write_bytes(flipped(path.read_bytes(), place))


def full_disk(*_):
    raise OSError(28, os.strerror(28))
