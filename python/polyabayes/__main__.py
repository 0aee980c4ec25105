"""``python -m polyabayes``: the command line."""

import sys

from polyabayes.cli import main

sys.exit(main())
