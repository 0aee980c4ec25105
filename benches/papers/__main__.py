"""Run published figures again: ``python -m benches.papers [PAPER [FIGURE ...]] [--size SIZE]``.

Writes the data as JSON and a picture of each figure. The small form of all takes some minutes, the
middle form some hours, the published sizes days; long ones go on after a break.
"""

import argparse
import time
import warnings
from pathlib import Path

from benches.papers import PAPERS
from benches.record import DATA

from polyabayes.exceptions import PolyabayesWarning


def main() -> None:
    """Run what the command line names; all of it by default."""
    parser = argparse.ArgumentParser(prog="python -m benches.papers", description=__doc__)
    parser.add_argument("paper", nargs="?", choices=[*PAPERS], help="all by default")
    parser.add_argument("figure", nargs="*", help="its figures; all by default")
    sizes = ("small", "middle", "published")
    parser.add_argument("--size", choices=sizes, default="small", help="middle: as on the pages")
    parser.add_argument("--no-pictures", action="store_true", help="the data only")
    parser.add_argument("-o", "--output", type=Path, default=Path("papers-output"))
    arguments = parser.parse_args()
    if not DATA.is_dir():
        parser.error(f"no data at {DATA}: set POLYABAYES_DATA")
    papers = [arguments.paper] if arguments.paper else [*PAPERS]
    figures = [figure for paper in papers for figure in PAPERS[paper]]
    known = {figure.name for figure in figures}
    if unknown := set(arguments.figure) - known:
        parser.error(
            f"no figure {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}"
        )
    warnings.simplefilter("ignore", PolyabayesWarning)
    for figure in figures:
        if not arguments.figure or figure.name in arguments.figure:
            start = time.perf_counter()
            path = figure.run(arguments.size, arguments.output, not arguments.no_pictures)
            print(f"{time.perf_counter() - start:7.1f} s  {path}", flush=True)


if __name__ == "__main__":
    main()
