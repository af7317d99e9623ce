"""How well an asset's vectors alone find tools, by kind of query: cosine of query and tool, no words, no fusion.

    evaluate.py --bench DIR [--asset FILE | --base DIR] [--sets dev,live,azure,mcpproxy] [--longest N]

An asset is measured in the program's arithmetic (int8), the base model in f32 with its whole vocabulary.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

import asset
import model
import texts
import tokenizer

SETS = {
    "dev": ("dev/corpus.json", "dev/queries.jsonl"),
    "live": ("corpus/live.json", "dev/queries.jsonl"),
    "azure": ("dev/public/azure/corpus.json", "dev/public/azure/queries.jsonl"),
    "mcpproxy": ("dev/public/mcpproxy/corpus.json", "dev/public/mcpproxy/queries.jsonl"),
}
MEASURES = ("S@1", "S@5", "R@5", "nDCG@10", "AllI@5")


def measure(score, queries, keys, scores):
    """The mean measures by kind, as the benchmark's own scorer has them."""
    kinds = {}
    for query, row in zip(queries, scores):
        order = np.argsort(-row, kind="stable")[:20]
        found = score.score_query(query, [{"server": keys[at][0], "tool": keys[at][1]} for at in order], 1)
        for kind in {"all", query["kind"]}:
            kinds.setdefault(kind, []).append(found)
    return kinds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--asset", type=Path)
    parser.add_argument("--base", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--longest", type=int, default=texts.LONGEST_DOCUMENT)
    arguments = parser.parse_args()
    sys.path.insert(0, str(arguments.bench))
    import score

    if arguments.asset:
        pieces, parameters = asset.read(arguments.asset.read_bytes())
        parameters = asset.as_the_program_runs(parameters)
    else:
        pieces, parameters = model.read_base(arguments.base)
    words, int8 = tokenizer.Tokenizer(pieces), arguments.asset is not None
    print(f"{'set, kind':30}" + "".join(f"{name:>9}" for name in ("n", *MEASURES)))
    for name in arguments.sets.split(","):
        corpus, labels = (arguments.bench / path for path in SETS[name])
        tools = [(s["server"], t) for s in json.loads(corpus.read_text(encoding="utf-8")) for t in s["tools"]]
        queries = score.prepare(score.load_jsonl(labels), corpus, None)
        documents = [texts.document(server, t["name"], t.get("description") or "") for server, t in tools]
        vectors = model.embed(parameters, [words.encode(text, arguments.longest) for text in documents], int8)
        asked = model.embed(parameters, [words.encode(q["query"], texts.LONGEST_QUERY) for q in queries], int8)
        keys = [(server, t["name"]) for server, t in tools]
        kinds = measure(score, queries, keys, asked @ vectors.T)
        for kind in sorted(kinds, key=lambda kind: (kind != "all", kind)):
            rows = kinds[kind]
            values = [[row[measure] for row in rows if measure in row] for measure in MEASURES]
            print(f"{name + ', ' + kind:30}{len(rows):9}" + "".join(f"{np.mean(v):9.3f}" if v else " " * 9 for v in values))


if __name__ == "__main__":
    main()
