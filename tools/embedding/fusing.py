"""Chooses the weights of words and meaning (`src/search/fusion.rs`) by cross-validation over sets and kinds of queries.

    fusing.py --bench DIR --train DIR --asset FILE [--sets dev,live,azure,mcpproxy,validation] [--quick]

Each kind of a set counts once, by its nDCG@10. For each set, the weights that are best for all the others are measured on it.
"""

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np

import ranking
import sets

LEAST = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)
MORE = (0.1, 0.2, 0.3, 0.4, 0.5)
# A kind with fewer queries of a set does not count.
FEWEST = 15


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("bench", "train", "asset"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--sets", default="dev,live,azure,mcpproxy,validation")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    known, vectors = sets.Sets(arguments.bench, arguments.train), sets.Vectors(arguments.asset.read_bytes(), arguments.quick)
    loaded = {}
    for name in arguments.sets.split(","):
        tools, queries = known.load(name)
        loaded[name] = vectors.ask(tools, [query["query"] for query in queries]), queries
    report(known, loaded)


def report(known, loaded):
    found = {}
    for weights in [(least, more) for least in LEAST for more in MORE]:
        found[weights] = {}
        for name, (asked, queries) in loaded.items():
            kinds = defaultdict(list)
            for query, measures in known.rows(asked, queries, weights):
                kinds[query["kind"]].append(measures["nDCG@10"])
            found[weights][name] = np.mean([np.mean(values) for values in kinds.values() if len(values) >= FEWEST])
    print(f"{'weights':14}" + "".join(f"{name:>12}" for name in loaded))
    for weights, values in found.items():
        print(f"{str(weights):14}" + "".join(f"{value:12.3f}" for value in values.values()) + f"{np.mean(list(values.values())):12.4f}")
    for name in loaded:
        others = {weights: np.mean([value for other, value in values.items() if other != name]) for weights, values in found.items()}
        best = max(others, key=others.get)
        print(f"{name}: {best} is best for the others; {found[best][name]:.3f} here, {found[ranking.WEIGHTS][name]:.3f} with {ranking.WEIGHTS}")


if __name__ == "__main__":
    main()
