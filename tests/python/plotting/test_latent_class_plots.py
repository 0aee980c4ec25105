import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.container import ErrorbarContainer

import polyabayes as pb

ANSWERS = {"q": ["no", "yes"] * 12, "often": ["a", "b", "a", "c"] * 6, "r": [0, 1, 0, 1, 1, 1] * 4}
FRAME = pd.DataFrame(ANSWERS)


@pytest.mark.parametrize("method", ["bayes", "em"])
def test_points_are_the_probabilities_with_their_intervals(method: str) -> None:
    classes = pb.LatentClassAnalysis(2, method=method, random_state=0).fit(FRAME)
    ax = pb.plotting.plot_item_probabilities(classes, 0.8)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["q: yes", "often: a", "often: b", "often: c", "r: 1"]
    table = classes.profiles(0.8).to_frame()
    for k, container in enumerate(ax.containers):
        assert isinstance(container, ErrorbarContainer)
        line, _, (bars,) = container.lines
        for number, name in enumerate(names):
            item, _, answer = name.partition(": ")
            chosen = (table["class"] == k) & (table["item"] == item) & (table.answer == answer)
            row = table[chosen].iloc[0]
            assert line.get_xdata()[number] == pytest.approx(row.probability)
            ends = np.sort(bars.get_segments()[number][:, 0])
            wanted = [row.probability if np.isnan(x) else x for x in (row.lower, row.upper)]
            assert ends == pytest.approx(wanted, abs=1e-9)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == [f"class {k} ({classes.class_weights_[k]:.0%})" for k in (0, 1)]
    given = plt.figure().add_subplot()
    assert pb.plotting.plot_item_probabilities(classes, ax=given) is given
