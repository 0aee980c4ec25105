"""Compute the golden values anew."""

from __future__ import annotations

import argparse
import json

from golden_cases import FOLDER, GROUPS, compute, elementary_functions


def main() -> None:
    parser = argparse.ArgumentParser(description="Compute the golden values anew.")
    parser.add_argument("--write", action="store_true", required=True)
    parser.add_argument("group", nargs="*", choices=[*GROUPS, []])
    arguments = parser.parse_args()
    machine = FOLDER / "machine.json"
    functions = elementary_functions()
    if arguments.group and functions != json.loads(machine.read_text()):
        parser.error("the other groups were written on another machine: write all of them")
    FOLDER.mkdir(exist_ok=True)
    machine.write_text(json.dumps(functions, indent=1) + "\n")
    for group in arguments.group or GROUPS:
        lines = [
            f"{json.dumps(name)}: {json.dumps(compute(case), separators=(',', ':'))}"
            for name, case in GROUPS[group]()
        ]
        (FOLDER / f"{group}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
