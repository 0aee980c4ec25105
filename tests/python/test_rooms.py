"""The rooms of the core import downwards only, and no file is part of an import circle."""

import re
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
# From the ground up: rooms import those of earlier rows only, so that subjects do not import one
# another, and filters and tempering know no model.
FLOORS = [
    *(["error"], ["memory", "simd"], ["control"], ["counts"], ["rng"], ["math"], ["estimate"]),
    *(["urn"], ["filter", "temper", "regression"], ["document", "allocation", "training"], ["lib"]),
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
USE = re.compile(r"(\bpub(?:\([\w: ]+\))? )?\buse ([\w:]+?)(?:::\{([^}]*)\})?;")


def read(file):
    """The paths that a file uses, and those that it passes on by the names that they have there."""
    code = file.read_text("utf-8").partition("#[cfg(test)]\nmod tests {")[0]
    # Comments, and the paths of visibilities, which are no imports.
    code = re.sub(r"//.*|(?<=pub)\(in [\w:]+\)", "", code)
    used, passed_on = [], {}
    for is_public, head, leaves in USE.findall(code):
        for leaf in leaves.split(",") if leaves else [""]:
            path, _, alias = leaf.strip().partition(" as ")
            names = (*head.split("::"), *filter(None, path.split("::")))
            # Who asks for a name that is passed on imports its home.
            if is_public:
                passed_on[alias or names[-1]] = names
            else:
                used.append(names)
    others = re.findall(r"(?<![\w:])[a-z]\w*(?:::\w+)+", USE.sub("", code))
    return used + [tuple(path.split("::")) for path in others], passed_on


def module(file):
    names = file.relative_to(ROOT / "src").with_suffix("").parts
    return names[:-1] if names[-1] in ("mod", "lib") else names


FILES = {module(file): read(file) for file in (ROOT / "src").rglob("*.rs")}


def absolute(path, base):
    """A path of this crate from its root; None for one of another crate or of a name in scope."""
    n_above = sum(name == "super" for name in path)
    if path[0] in ("crate", "self", "super"):
        above = () if path[0] == "crate" else base[: len(base) - n_above]
        return above + path[n_above or 1 :]
    return base + path if base + path[:1] in FILES else None


def home(path):
    """The module whose file defines what a path names, through all that is passed on."""
    found = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in FILES)
    target = FILES[found][1].get(path[len(found)]) if path != found else None
    target = target and absolute(target, found)
    return home(target + path[len(found) + 1 :]) if target and target != path else found


ARROWS = {
    base: {home(to) for path in used if (to := absolute(path, base)) is not None} - {base}
    for base, (used, _) in FILES.items()
}


def test_imports_are_found_through_what_passes_them_on():
    assert home(("math", "LogSum")) == ("math", "log_sum")
    assert ("math", "log_sum") in ARROWS["estimate",]
    assert sum(map(len, ARROWS.values())) > 500


def test_rooms_import_those_below_them():
    arrows = [(base, to) for base, targets in ARROWS.items() for to in targets]
    rooms = [tuple([*path, "lib"][0] for path in arrow) for arrow in arrows]
    pairs = zip(arrows, rooms, strict=True)
    assert not [arrow for arrow, (a, b) in pairs if a != b and FLOOR[b] >= FLOOR[a]]


def test_no_file_is_part_of_a_circle():
    assert len([*TopologicalSorter(ARROWS).static_order()]) == len(FILES)


def test_neither_the_core_nor_the_binding_has_unsafe_code():
    """The compiler forbids it in the core and denies it in the binding, where nothing allows it."""
    assert "\n#![forbid(unsafe_code)]" in (ROOT / "src/lib.rs").read_text("utf-8")
    assert '\nunsafe_code = "deny"' in (ROOT / "Cargo.toml").read_text("utf-8")
    binding = [*(ROOT / "python/src").rglob("*.rs")]
    assert len(binding) > 10
    assert not [file for file in binding if "unsafe_code" in file.read_text("utf-8")]
