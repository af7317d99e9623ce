"""How well an asset's vectors find tools, with the program's words or alone, by kind of query.

    evaluate.py --bench DIR --asset FILE [--train DIR] [--sets dev,live,azure,mcpproxy,dev+,validation,test] [--alone] [--quick]

`--train` is needed for `validation` and `test`, the queries of the independent writers. `NAME+` is a set among the scale set's
7,463 tools. `--alone` ranks by cosine alone. The program's arithmetic is copied, `--quick` computes in bfloat16.
"""

import argparse
from pathlib import Path

import ranking
import sets


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", type=Path, required=True)
    parser.add_argument("--asset", type=Path, required=True)
    parser.add_argument("--train", type=Path)
    parser.add_argument("--sets", default=",".join(sets.BENCH))
    parser.add_argument("--weights", type=float, nargs=2, default=ranking.WEIGHTS)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    weights = (0, 0) if arguments.alone else arguments.weights
    known = sets.Sets(arguments.bench, arguments.train)
    vectors = sets.Vectors(arguments.asset.read_bytes(), arguments.quick)
    print(f"{'set, kind':26}{'n':>5}" + "".join(f"{name:>22}" for name in sets.MEASURES))
    for name in arguments.sets.split(","):
        tools, queries = known.load(name)
        rows = known.rows(vectors.ask(tools, [query["query"] for query in queries]), queries, weights)
        kinds = sorted({query["kind"] for query in queries})
        for kind in ("all", *kinds) if len(kinds) > 1 else ("all",):
            some = [measures for query, measures in rows if kind in ("all", query["kind"])]
            told = [sets.interval([measures[measure] for measures in some]) for measure in sets.MEASURES]
            print(f"{f'{name}, {kind}':26}{len(some):5}" + "".join(f"{m:8.3f} ({low:.3f}–{high:.3f})" for m, low, high in told), flush=True)


if __name__ == "__main__":
    main()
