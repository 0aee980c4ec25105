"""Every table and figure of the five papers, run again."""

from benches.papers import allocation, bam_data, eltm, l2r, pfa, witness
from benches.papers.figure import PAPERS

__all__ = ["PAPERS", "allocation", "bam_data", "eltm", "l2r", "pfa", "witness"]
