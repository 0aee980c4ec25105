"""
Latent classes of diagnoses
===========================

Latent class analysis: seven pathologists judged 118 slides for carcinoma (Landis & Koch
1977). How many kinds of slides are there? The program prints the probability of each
number of classes, and draws the profiles of the most probable.
"""

import matplotlib.pyplot as plt
import pandas as pd

import polyabayes as pb

# Pathologists A to G, 1 = no, 2 = yes; and the number of slides.
patterns = """1111111 34, 1111211 2, 1211111 6, 1211112 1, 1211211 4, 1211212 5, 2111111 2,
2121212 1, 2211111 2, 2211112 1, 2211211 2, 2211212 7, 2211222 1, 2212112 1, 2212212 2,
2212222 3, 2221212 13, 2221222 5, 2222212 10, 2222222 16"""
rows = [entry.split() for entry in patterns.split(",")]
slides = pd.DataFrame([list(answers) for answers, _ in rows], columns=list("ABCDEFG"))
slides["slides"] = [int(number) for _, number in rows]

classes = pb.LatentClassAnalysis(random_state=0).fit(slides, weights="slides")
print(classes.choice_)
print(classes.residuals(slides, weights="slides"))
pb.plotting.plot_item_probabilities(classes)
plt.title("probability that a pathologist sees carcinoma")
plt.show()
