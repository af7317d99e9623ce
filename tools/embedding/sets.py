"""The sets of queries that search is measured with: the benchmark's, and those of the independent writers.

Tools are `(server, definition)`, queries are as the benchmark's scorer takes them.
"""

import json
import random as randoms
import sys
from pathlib import Path

import numpy as np

import asset
import data
import model
import ranking
import texts
import tokenizer

BENCH = {
    "dev": ("dev/corpus.json", "dev/queries.jsonl"),
    "live": ("corpus/live.json", "dev/queries.jsonl"),
    "azure": ("dev/public/azure/corpus.json", "dev/public/azure/queries.jsonl"),
    "mcpproxy": ("dev/public/mcpproxy/corpus.json", "dev/public/mcpproxy/queries.jsonl"),
}
SPLITS = {"validation": data.VALIDATION, "test": data.TEST}
# Tools that serve a query as well as the labelled one, by `pool.py`'s judges.
JUDGED = Path(__file__).parent / "queries" / "judged.jsonl"
HOPELESS = Path(__file__).resolve().parents[2] / "crates" / "bench" / "examples"
MEASURES = ("S@1", "S@5", "nDCG@10")


class Sets:
    """Reads sets; `train` is needed only for the writers' queries."""

    def __init__(self, bench, train=None):
        self.bench, self.train = Path(bench), train and Path(train)
        sys.path.insert(0, str(self.bench))
        import score

        self.score = score

    def corpus(self, path):
        servers = json.loads((self.bench / path).read_text(encoding="utf-8"))
        return [(server["server"], tool) for server in servers for tool in server["tools"]]

    def load(self, name):
        """The tools and queries of a set. `NAME+` has the scale set's tools as well, but no near copies of its own."""
        if name.endswith("+"):
            tools, queries = self.load(name[:-1])
            own = {data._plain(tool.get("description") or "") for _, tool in tools}
            others = self.corpus("dev/scale/toolgym.json")
            return tools + [(s, t) for s, t in others if data._plain(t.get("description") or "") not in own], queries
        if name.removesuffix("-judged") in SPLITS:
            _, tools, queries = self.split(SPLITS[name.removesuffix("-judged")], name.endswith("-judged"))
            return tools, queries
        corpus, queries = (self.bench / path for path in BENCH[name])
        return self.corpus(BENCH[name][0]), self.score.prepare(self.score.load_jsonl(queries), corpus, None)

    def split(self, batches, is_judged=False):
        """Ids of the tools, the tools, and the queries of some of the writers' batches; with the judges' labels also, or the writers' alone."""
        here = Path(__file__).parent
        known = data.Data(self.train, self.bench, here / "own_queries.jsonl", here / "queries")
        _, keys = known.split(batches)
        definitions = {}
        for line in (self.train / "tools.jsonl").read_text(encoding="utf-8").splitlines():
            t = json.loads(line)
            parameters = [p if isinstance(p, str) else p.get("name", "") for p in t["params"]]
            properties = {"properties": {name: {} for name in parameters}}
            definitions[t["id"]] = {"name": t["name"], "description": t["description"], "inputSchema": properties}
        for server, tool in self.corpus("dev/scale/toolgym.json"):
            definitions[f"scale/{server}/{tool['name']}"] = tool
        tools = [(known.every[key].server or "", definitions[key]) for key in keys]
        names = {key: (known.every[key].server or "", known.every[key].name) for key in keys}
        also, queries = {}, []
        if is_judged:
            also = {line["query"]: line["also"] for line in map(json.loads, JUDGED.read_text(encoding="utf-8").splitlines())}
        for number in batches:
            for at, pair in enumerate(known.written[number], 1):
                right = [key for key in pair["tools"] if key in names]
                if right:
                    labels = [dict(zip(("server", "tool"), names[key]), grade=2) for key in right + also.get(f"{number}-{at}", [])]
                    queries.append({"id": f"{number}-{at}", "query": pair["query"], "kind": pair["kind"], "tools": right, "relevant": labels, "n_intents": 1})
        return keys, tools, queries

    def few(self, seed, size=40):
        """Servers of dev with about `size` tools in all, and the queries that these serve."""
        servers = json.loads((self.bench / BENCH["dev"][0]).read_text(encoding="utf-8"))
        randoms.Random(seed).shuffle(servers)
        tools = []
        for server in servers:
            if len(tools) + len(server["tools"]) <= size + 5:
                tools += [(server["server"], tool) for tool in server["tools"]]
            if len(tools) >= size - 5:
                break
        there, queries = {(server, tool["name"]) for server, tool in tools}, []
        for query in self.score.load_jsonl(self.bench / BENCH["dev"][1]):
            right = [label for label in query["relevant"] if (label["server"], label["tool"]) in there]
            if any(label["grade"] >= 2 for label in right):
                queries.append({**query, "relevant": right, "n_intents": 1})
        return tools, queries

    def rows(self, asked, queries, weights):
        """Each query with its measures."""
        rows = []
        for one, query in zip(asked, queries):
            found = [dict(zip(("server", "tool"), one.index.names[doc])) for doc in one.ranked(weights)]
            rows.append((query, self.score.score_query({**query, "_intents": query.get("_intents", [0])}, found, 1)))
        return rows


def hopeless():
    """Queries that no tool serves: two lists."""
    return [(HOPELESS / name).read_text(encoding="utf-8").splitlines() for name in ("nothing_fits.txt", "nothing_fits_held_out.txt")]


class Vectors:
    """An asset's vectors, in the program's arithmetic or (`is_quick`) in bfloat16; each text once."""

    def __init__(self, content, is_quick=False):
        pieces, parameters = asset.read(content)
        self.is_quick = is_quick
        self.parameters = parameters if is_quick else asset.as_the_program_runs(parameters)
        self.words, self.pieces, self.known = tokenizer.Tokenizer(pieces), set(pieces), {}

    def of(self, some, longest):
        lacking = sorted({text for text in some if (text, longest) not in self.known})
        if lacking:
            rows = [self.words.encode(text, longest) for text in lacking]
            found = model.embed(self.parameters, rows, int8=not self.is_quick, is_quick=self.is_quick)
            self.known.update(((text, longest), vector) for text, vector in zip(lacking, found))
        return np.stack([self.known[text, longest] for text in some])

    def of_tools(self, tools):
        """As the program stores them, in bytes."""
        vectors = self.of([texts.document(s, t["name"], t.get("description") or "") for s, t in tools], texts.LONGEST_DOCUMENT)
        scale = np.abs(vectors).max(1, keepdims=True) / 127
        return np.round(vectors / scale) * scale

    def ask(self, tools, queries):
        """Queries (texts) over an index of the tools."""
        index, vectors = ranking.Index(tools, lambda word: word in self.pieces), self.of_tools(tools)
        asked = [ranking.Asked(index, query) for query in queries]
        found = iter(self.of([text for one in asked for text in one.texts], texts.LONGEST_QUERY))
        return [one.compare(np.stack([next(found) for _ in one.texts]), vectors) for one in asked]


def interval(values, count=2000, seed=7):
    """Mean and 95 % bootstrap interval."""
    values = np.asarray(values, float)
    means = np.sort(values[np.random.default_rng(seed).integers(0, len(values), (count, len(values)))].mean(1))
    return values.mean(), means[int(0.025 * count)], means[int(0.975 * count) - 1]
