"""Pools of tools for judges, who say which of them serve a writer's query as well as the tool that its writer saw.

    pool.py --bench DIR --train DIR --out DIR [--first N] ASSET...
    pool.py --merge DIR

The pool of a query of batches 6 to 8 is what is among the first five by words, by the vectors of each asset, or by both, without
the labelled tools. DIR gets chunks of queries (`000.jsonl`, from N on), in orders that say nothing of where a tool comes from, and from
900 on a tenth of the queries again for a second judge. What an earlier chunk in DIR has is left out. Texts of tools are third-party: DIR is outside
of the repository. `--merge` checks the judges' answers (`NNN.judged.jsonl`), says how far two judges agree, and writes
`queries/judged.jsonl`, where the first judge's word stands.
"""

import argparse
import json
import random as randoms
from collections import defaultdict
from pathlib import Path

import numpy as np

import ranking
import sets

WAYS = ((1, 0), (0, 0), ranking.WEIGHTS)
FIVE, CHUNK, PART_AGAIN, AGAIN = 5, 60, 10, 900
# How much of a description the judges see.
LABELLED, CANDIDATE = 330, 200


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def chunks(directory):
    """The numbers of the chunks that are there, and their queries."""
    return {int(path.stem): read(path) for path in sorted(directory.glob("[0-9][0-9][0-9].jsonl"))}


def pools(known, assets, earlier):
    """For each query of batches 6 to 8 its labelled tools and its candidates, without the `earlier` ones."""
    every = [sets.Vectors(asset.read_bytes()) for asset in assets]
    for batches in sets.SPLITS.values():
        keys, tools, queries = known.split(batches)
        card_of = {key: (server, tool["name"], " ".join((tool.get("description") or "").split())) for key, (server, tool) in zip(keys, tools)}

        def cards(some, longest):
            return [{"id": key, "server": card_of[key][0], "name": card_of[key][1], "description": card_of[key][2][:longest]} for key in some]

        found = [set() for _ in queries]
        for vectors in every:
            for some, one in zip(found, vectors.ask(tools, [query["query"] for query in queries])):
                some.update(keys[doc] for weights in WAYS for doc in one.ranked(weights, FIVE))
        for query, some in zip(queries, found):
            candidates = sorted(some - {*query["tools"]} - earlier[query["id"]])
            if candidates:
                yield {"query": query["id"], "text": query["query"], "kind": query["kind"],
                       "labelled": cards(query["tools"], LABELLED), "candidates": cards(candidates, CANDIDATE)}


def write(directory, first, rows, random):
    """Chunks of nearly equal size, numbered from `first` on, in an order of chance."""
    rows = [{**row, "candidates": random.sample(row["candidates"], len(row["candidates"]))} for row in rows]
    random.shuffle(rows)
    count = -(-len(rows) // CHUNK)
    for at in range(count):
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows[at * len(rows) // count : (at + 1) * len(rows) // count]]
        (directory / f"{first + at:03}.jsonl").write_text("".join(lines), encoding="utf-8")
    print(f"{len(rows)} queries, {sum(len(row['candidates']) for row in rows)} candidates, {count} chunks from {first:03}")


def judged(directory):
    """By query, what its judges said of each candidate: of the first judge, and of the second."""
    first, second = defaultdict(dict), defaultdict(dict)
    for number, rows in chunks(directory).items():
        answers = {line["query"]: line["also"] for line in read(directory / f"{number:03}.judged.jsonl")}
        for row in rows:
            pool, also = [card["id"] for card in row["candidates"]], answers.pop(row["query"])
            if not {*also} <= {*pool}:
                raise ValueError(f"chunk {number}, query {row['query']}: {set(also) - set(pool)} are no candidates")
            (second if number >= AGAIN else first)[row["query"]].update((key, key in also) for key in pool)
        if answers:
            raise ValueError(f"chunk {number} has no queries {sorted(answers)}")
    return first, second


def merge(directory):
    first, second = judged(directory)
    pairs = np.array([(first[query][key], said) for query, answers in second.items() for key, said in answers.items()], float)
    agreed, (one, other) = (pairs[:, 0] == pairs[:, 1]).mean(), pairs.mean(0)
    chance = one * other + (1 - one) * (1 - other)
    both = (pairs.min(1)).sum()
    print(f"second judges: {len(second)} queries, {len(pairs)} candidates; yes of the first {one:.3f}, of the second {other:.3f}, "
          f"of both {both / len(pairs):.3f}; agreement {agreed:.3f}, kappa {(agreed - chance) / (1 - chance):.3f}")
    said = [value for answers in first.values() for value in answers.values()]
    lines = [{"query": query, "also": sorted(key for key, is_yes in answers.items() if is_yes)} for query, answers in first.items()]
    lines = sorted((line for line in lines if line["also"]), key=lambda line: [int(part) for part in line["query"].split("-")])
    print(f"first judges: {len(first)} queries, {len(said)} candidates, {sum(said)} serve as well, of {len(lines)} queries")
    sets.JUDGED.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("bench", "train", "out", "merge"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("assets", type=Path, nargs="*")
    arguments = parser.parse_args()
    if arguments.merge:
        return merge(arguments.merge)
    earlier = defaultdict(set)
    for rows in chunks(arguments.out).values():
        for row in rows:
            earlier[row["query"]].update(card["id"] for card in row["candidates"])
    rows, random = list(pools(sets.Sets(arguments.bench, arguments.train), arguments.assets, earlier)), randoms.Random(29)
    write(arguments.out, arguments.first, rows, random)
    if not arguments.first:
        write(arguments.out, AGAIN, random.sample(rows, len(rows) // PART_AGAIN), random)


if __name__ == "__main__":
    main()
