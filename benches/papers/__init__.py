"""Every table and figure of the five papers, run again."""

from benches.papers import allocation, eltm, l2r, pfa, witness

PAPERS = {
    "l2r": l2r.FIGURES,
    "eltm": eltm.FIGURES,
    "pfa": pfa.FIGURES,
    "bam": allocation.FIGURES,
    "witness": witness.FIGURES,
}
