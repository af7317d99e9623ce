"""How far a second stage could raise the search: how many right tools are among the first N, and what comparing word by word makes of the first 60.

    late.py --bench DIR --train DIR --asset FILE [--set validation-judged]

A tool's vector is the mean of what the encoder says of each of its pieces. The second stage keeps these, and takes the mean, over the pieces of the
query, of the best cosine with a piece of the tool. Nothing is trained for it, and the program has no such stage.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import model
import ranking
import sets
import texts

FIRST, BATCH = 60, 64
WEIGHTS = (0, 0.3, 0.5, 0.7, 1)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def pieces(vectors, some, longest):
    """The encoder's vectors of each text's pieces, without those of its beginning and end, in bfloat16."""
    run = jax.jit(lambda p, ids, mask: model.states(p, ids, mask, model.linear_bfloat16))
    parameters = {name: jnp.asarray(value) for name, value in vectors.parameters.items()}
    rows, found = [vectors.words.encode(text, longest) for text in some], []
    for start in range(0, len(rows), BATCH):
        part = rows[start : start + BATCH]
        states = np.asarray(run(parameters, *model.pad(part + [[0]] * (BATCH - len(part)), longest)))
        found += [unit(state[1 : len(row) - 1]) for state, row in zip(states, part)]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("bench", "train", "asset"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--set", default="validation-judged")
    arguments = parser.parse_args()
    tools, queries = sets.Sets(arguments.bench, arguments.train).load(arguments.set)
    vectors = sets.Vectors(arguments.asset.read_bytes(), is_quick=True)
    asked = vectors.ask(tools, [query["query"] for query in queries])
    of_tools = pieces(vectors, [texts.document(s, t["name"], t.get("description") or "") for s, t in tools], texts.LONGEST_DOCUMENT)
    of_queries = pieces(vectors, [query["query"] for query in queries], texts.LONGEST_QUERY)
    places, ways = [], {weight: [] for weight in WEIGHTS}
    for one, query, words in zip(asked, queries, of_queries):
        first = one.ranked(ranking.WEIGHTS, FIRST)
        right = {(label["server"], label["tool"]) for label in query["relevant"]}
        is_right = np.array([one.index.names[doc] in right for doc in first], bool)
        places.append(int(is_right.argmax()) if is_right.any() else FIRST)
        scores = one.fused(ranking.WEIGHTS)[first]
        late = np.array([(words @ of_tools[doc].T).max(1).mean() for doc in first])
        for weight, found in ways.items():
            order = np.argsort(-(1 - weight) * scores / scores.max() - weight * late / late.max(), kind="stable")
            found.append(int(is_right[order].argmax()) if is_right.any() else FIRST)
    for count in (1, 5, 10, 20, 30, FIRST):
        print(f"a right tool among the first {count}: {np.mean(np.array(places) < count):.3f}")
    for weight, found in ways.items():
        found = np.array(found)
        print(f"weight {weight} of word by word: success@1 {np.mean(found < 1):.3f}, @5 {np.mean(found < 5):.3f}, @10 {np.mean(found < 10):.3f}")


if __name__ == "__main__":
    main()
