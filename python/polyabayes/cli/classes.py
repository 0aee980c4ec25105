"""The command on latent classes of rows of answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polyabayes as pb
from polyabayes._support.output.frames import DataFrame
from polyabayes.cli.corpora import read_table
from polyabayes.cli.output import keep, save_picture, say, write_table
from polyabayes.cli.parser import Given
from polyabayes.exceptions import InvalidArgumentError
from polyabayes.io.kinds import refuse_other_doors


def classes(
    given: Given,
    answers: str,
    *,
    weights: str | None = None,
    sep: str | None = None,
    encoding: str = "utf-8",
    columns: Sequence[str] | None = None,
    missing: Sequence[str] | None = None,
    output: str | None = None,
    profiles: str | None = None,
    save: str | None = None,
    plot: str | None = None,
) -> int:
    """Latent classes of survey answers, and how probable each number of them is.

    Parameters
    ----------
    answers : ANSWERS.csv|ANSWERS.parquet
        A row a respondent and a column an item; empty fields and NA are missing answers,
        None is an answer.
    weights : COLUMN
        How many rows each row stands for.
    sep : CHARACTER
        What separates the fields of a CSV file; by default as its
        header shows. A space is any white space.
    encoding : NAME
        The encoding of a CSV file, as cp1252.
    columns : A,B,...
        Names of the columns of a file without a header, as those of Mplus.
    missing : VALUE,...
        Answers that are missing ones, as 9 or 'No answer', or trust=77 of one item.
    output : CLASSES.csv|CLASSES.parquet
        The class of each row, and its probabilities; '-' is CSV on standard output.
    profiles : PROFILES.csv|PROFILES.parquet
        Weights and answers of each class, with 95 % intervals.
    save : CLASSES.safetensors
        A file for polyabayes.load.
    plot : FILE.png|.pdf|.svg
        Draw the answers by class.

    Examples
    --------
    $ polyabayes classes survey.csv --items q1,q2,q3 --seed 0
    """
    refuse_other_doors(Path(answers), "LatentClassAnalysis().fit", {})
    frame = read_table(answers, sep, columns, encoding)
    if missing is not None:
        items = [name for name in frame.columns if name != weights]
        marks = {name: [mark.removeprefix(f"{name}=") for mark in missing] for name in items}
        texts = frame[items].map(lambda x: f"{x:g}" if isinstance(x, float) else str(x))
        frame[items] = frame[items].mask(texts.isin(marks))
        for number, mark in enumerate(missing):
            if not texts.isin({name: [own[number]] for name, own in marks.items()}).any(axis=None):
                raise InvalidArgumentError(f"--missing {mark}: no item has this answer")
    found = pb.LatentClassAnalysis(**given.of("LatentClassAnalysis"))
    found.fit(frame, weights=weights)
    if output is not None:
        write_table(_memberships(found, frame), output)
    if profiles is not None:
        write_table(found.profiles(), profiles)
    if save is not None:
        keep({Path(save): found.save})
    for path in (profiles, save):
        if path is not None:
            say(f"wrote {path}")
    if plot is not None:
        save_picture(pb.plotting.plot_item_probabilities(found), plot)
    if output != "-" and profiles != "-":
        print(found.choice_, _summary(found), sep="\n\n")
        if found.formula is not None:
            print("", found.effects(), sep="\n")
    return 0


def _memberships(found: pb.LatentClassAnalysis, frame: DataFrame) -> dict[str, Any]:
    shares = found.predict_proba(frame)
    columns = {"row": frame.index.to_numpy(), "class": shares.argmax(axis=1)}
    return columns | {f"class_{k}": shares[:, k] for k in range(found.n_classes_)}


def _summary(found: pb.LatentClassAnalysis) -> str:
    lines = [f"weights  {'  '.join(f'{weight:.3f}' for weight in found.class_weights_)}"]
    for item, table in found.item_probabilities_.items():
        for answer in table.columns:
            values = "  ".join(f"{value:.3f}" for value in table[answer])
            lines.append(f"{values}  {item} = {answer}")
    return "\n".join(lines)
