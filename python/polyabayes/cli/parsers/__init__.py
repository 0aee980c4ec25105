"""The arguments of the command line; nothing here imports a library that takes long."""

from __future__ import annotations

from polyabayes.cli.parsers.documents import (
    choose_options,
    compare_options,
    fit_options,
    plot_options,
    score_options,
    scoring_options,
    split_options,
    topics_options,
)
from polyabayes.cli.parsers.networks import (
    decompose_options,
    evidence_options,
    network_options,
    search_options,
)
from polyabayes.cli.parsers.shared import Parser, general_options

__all__ = ["EXAMPLES", "SHELLS", "make_parser"]

# Shells that the completion is for: those of shtab.
SHELLS = ("bash", "zsh", "tcsh")

# An example of each command; they go on from one another's files, and from corpus.ldac and
# counts.tns.
EXAMPLES = {
    "split": "split corpus.ldac --train train.npz --test test.npz --seed 0",
    "fit": "fit lda train.npz -k 5 -o lda.safetensors --seed 0",
    "score": "score lda.safetensors test.npz -o scores.csv --seed 0",
    "compare": "compare lda.safetensors pfa.safetensors --on test.npz --plot models.png",
    "choose": "choose lda train.npz --sizes 2,5,10 --plot choice.png --seed 0",
    "topics": "topics lda.safetensors train.npz -o topics.html",
    "plot": "plot topics lda.safetensors -o topics.png",
    "search": "search train.npz --prior poisson:5 --max-steps 4 -o bounds.csv --seed 0",
    "evidence": "evidence 'i <- r -> j' counts.tns --size r=2",
    "decompose": "decompose 'i <- r -> j' counts.tns --size r=2 -o tables",
    "demo": "demo -o demo-output",
    "completion": "completion bash > ~/.local/share/bash-completion/completions/polyabayes",
}


def make_parser(version: str) -> Parser:
    """Make the parser; it raises InvalidArgumentError.

    What it returns names the command in ``command``, and the parser of that in ``parser``.
    """
    parser = Parser(
        prog="polyabayes",
        description="How probable are count data under a model? Exact and unbiased likelihoods "
        "with error bars.",
        epilog="polyabayes COMMAND --help tells the options of a command, and an example.",
    )
    parser.add_argument("--version", action="version", version=f"polyabayes {version}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    general = general_options()

    def command(name: str, text: str, *parents: Parser) -> Parser:
        epilog = f"example:\n  polyabayes {EXAMPLES[name]}"
        added: Parser = commands.add_parser(
            name, help=text, description=text, epilog=epilog, parents=[*parents, general]
        )
        added.set_defaults(command=name, parser=added)
        return added

    scoring = scoring_options()
    fit_options(command("fit", "train a model"))
    score_options(command("score", "score documents with standard errors", scoring))
    compare_options(command("compare", "compare models on the same documents", scoring))
    split_options(command("split", "hold documents out"))
    choose_options(command("choose", "the number of topics, with its uncertainty"))
    topics_options(command("topics", "what the topics of a model hold"))
    plot_options(command("plot", "pictures of a saved model"))
    search_options(command("search", "bounds on what LDA, or a network, of every size can do"))
    network = network_options()
    evidence_options(command("evidence", "evidence of a count tensor under a network", network))
    decompose_options(command("decompose", "tables of a network for a count tensor", network))
    demo = command("demo", "train, score and compare on made-up and on real documents")
    demo.add_argument(
        "-o", "--output", default="demo-output", metavar="DIR", help="default: %(default)s"
    )
    completion = command("completion", "print what makes a shell complete these commands")
    completion.add_argument("shell", choices=SHELLS, help="the shell")
    return parser
