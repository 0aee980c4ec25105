"""The number of topics, by `choose_n_components` and by what people use: who finds it?

    python -m benches.choice [PART] [--repeats N] [--only REGIME ...] [--methods METHOD ...]

Every choice is kept as it is made (see ``pieces.py``), so that a run may end at any time, and goes
on where it was; the tables in benches/records are made of all that are kept. A method that takes
more than its budget on some data names no size there, and is not counted.
"""

import argparse
import time
import warnings

from benches.choice.bursts import BURSTS
from benches.choice.pieces import measure, share_table, size_table
from benches.choice.signatures import SIGNATURES
from benches.choice.tables import TABLES
from benches.choice.topics import TOPICS
from sklearn.exceptions import ConvergenceWarning

from polyabayes.exceptions import PolyabayesWarning

PARTS = {part.name: part for part in (TOPICS, BURSTS, TABLES, SIGNATURES)}


def main() -> None:
    """Make the choices that are missing, then the tables."""
    for kind in (PolyabayesWarning, ConvergenceWarning):
        warnings.simplefilter("ignore", kind)
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=[*PARTS], help="all by default")
    parser.add_argument("--repeats", type=int, default=2, help="corpora of every regime")
    parser.add_argument("--only", nargs="+", metavar="REGIME", help="regimes; all by default")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="all by default")
    parser.add_argument("--anew", action="store_true", help="forget what is kept of these")
    parser.add_argument("--budget", type=float, default=300, help="processor seconds of a choice")
    parser.add_argument("--seconds", type=float, default=1e9, help="after which none begins")
    arguments = parser.parse_args()
    until = time.monotonic() + arguments.seconds
    for part in [PARTS[arguments.part]] if arguments.part else PARTS.values():
        methods = [x for x in part.methods if x in (arguments.methods or part.methods)]
        regimes = [x for x in part.regimes if x in (arguments.only or part.regimes)]
        limits = arguments.budget, until
        measure(part, methods, regimes, range(arguments.repeats), *limits, arguments.anew)
        share_table(part)
        size_table(part)


if __name__ == "__main__":
    main()
