"""Finds the rule by which nothing fits (`src/search/fitting.rs`): a logistic regression on properties of a query's scores.

    fitting.py --bench DIR --train DIR --asset FILE [--quick]

Good queries are those that one of the first five hits serves; the others are two lists that no tool of the benchmark serves, and for
sets of about 40 tools the queries of dev that none of these serves. Each choice of properties is measured on sets that its weights
were not fitted to, at the sum that loses one good query of a hundred. The last lines are the constants, fitted to all sets.
"""

import argparse
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

import ranking
import sets

NAMES = ("dev", "live", "azure", "mcpproxy", "validation")
FEW = 8
CHOICES = (
    ("fused",),
    ("fused", "tools"),
    ("meaning", "words"),
    ("meaning", "words", "tools"),
    ("meaning", "words", "spread"),
    ("meaning", "words", "asked"),
    ("meaning", "words", "asked", "tools"),
    ("meaning", "words", "spread", "asked"),
    ("fused", "words", "spread", "asked"),
    ("meaning", "words", "spread", "mean", "asked"),
    ("meaning", "words", "spread", "asked", "tools"),
    ("meaning", "words", "spread", "asked", "tools", "mean"),
)
CHOSEN = ("fused", "words", "spread", "asked")
LOST = 0.01
SPREADS, MOST_ASKED = (0.06, 0.13), 6


def properties(one, weights):
    cosine, fused = one.cosines[0], ranking.fuse(one.words, one.cosines[0], weights)
    words = {ranking.stem(word) for need in one.query.needs for word, _ in need.words}
    return {
        "fused": fused.max(), "meaning": cosine.max(), "words": one.words.max(), "spread": np.clip(cosine.std(), *SPREADS),
        "mean": cosine.mean(), "asked": np.log(1 + min(len(words), MOST_ASKED)), "tools": np.log(len(cosine)),
    }


def collect(known, vectors, weights):
    """Rows `(set, is good, list, query, properties)`."""
    rows = []
    some = [(name, known.load(name)) for name in NAMES] + [("few", known.few(seed)) for seed in range(FEW)]
    every = known.score.load_jsonl(known.bench / sets.BENCH["dev"][1])
    for name, (tools, queries) in some:
        texts = [query["query"] for query in queries]
        for one, (query, found) in zip(vectors.ask(tools, texts), known.rows(vectors.ask(tools, texts), queries, weights)):
            if found["S@5"]:
                rows.append((name, True, "good", query["query"], properties(one, weights)))
        lists = dict(enumerate(sets.hopeless()))
        if name == "few":
            there = {(server, tool["name"]) for server, tool in tools}
            is_served = lambda query: any((label["server"], label["tool"]) in there for label in query["relevant"])
            lists["unserved"] = [query["query"] for query in every if not is_served(query)]
        for kind, texts in lists.items():
            for one in vectors.ask(tools, texts):
                if one.query.needs and not one.named:
                    rows.append((name, False, kind, one.query.text, properties(one, weights)))
    return rows


def fit(x, good, weights):
    """Weights of the properties and of one, of the ridge's logistic regression."""
    middle, width = x.mean(0), x.std(0) + 1e-9
    scaled = (x - middle) / width

    def loss(b):
        return np.sum(weights * np.logaddexp(0, -(2 * good - 1) * (scaled @ b[1:] + b[0]))) / weights.sum() + 1e-3 * np.sum(b[1:] ** 2)

    found = minimize(loss, np.zeros(x.shape[1] + 1), method="L-BFGS-B").x
    return found[1:] / width, found[0] - np.sum(found[1:] * middle / width)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("bench", "train", "asset"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    known = sets.Sets(arguments.bench, arguments.train)
    report(collect(known, sets.Vectors(arguments.asset.read_bytes(), arguments.quick), ranking.WEIGHTS))


def report(rows):
    of = np.array([row[0] for row in rows])
    good = np.array([row[1] for row in rows], float)
    kind = np.array([str(row[2]) for row in rows])
    groups = list(dict.fromkeys(of))
    # Each set's good queries weigh as much as another's, and each of its lists.
    weights = np.zeros(len(rows))
    for group in groups:
        for list_of in set(kind[of == group]):
            some = (of == group) & (kind == list_of)
            weights[some] = (1 if list_of == "good" else 1 / (len(set(kind[of == group])) - 1)) / some.sum()

    def values(names):
        return np.array([[row[4][name] for name in names] for row in rows], float)

    def told(sums, cut):
        for group in groups:
            some = of == group
            lost = int((sums[some & (good == 1)] < cut).sum())
            refused = {k: f"{(sums[some & (kind == k)] < cut).mean():.2f}" for k in sorted(set(kind[some])) if k != "good"}
            print(f"    {group:12} lost {lost} of {int((some & (good == 1)).sum())}, refused {refused}")

    for names in CHOICES:
        x, sums = values(names), np.zeros(len(rows))
        for group in groups:
            a, b = fit(x[of != group], good[of != group], weights[of != group])
            sums[of == group] = x[of == group] @ a + b
        cut = np.sort(sums[good == 1])[int(LOST * good.sum())]
        refused = [(sums[(of == group) & (good == 0)] < cut).mean() for group in groups]
        print(f"{' + '.join(names):44} refused {np.mean(refused):.3f}", " ".join(f"{g} {r:.2f}" for g, r in zip(groups, refused)))
    x = values(CHOSEN)
    a, b = fit(x, good, weights)
    sums = x @ a + b
    for share in (0.005, LOST, 0.02):
        cut = np.sort(sums[good == 1])[int(share * good.sum())]
        print(f"{share:.1%} lost:", ", ".join(f"{name} {value:.3f}" for name, value in zip(CHOSEN, a)), f"needed {cut - b:.3f}")
        told(sums, cut)


if __name__ == "__main__":
    main()
