"""Training examples: batches of (query, tool text) pairs, made of small groups of tools that are easily confused.

Queries by independent writers (`queries/`) are split by batches, and so by tools and servers: those of `TRAINING` are trained
with, `VALIDATION` says when to stop, `TEST` is for the figures. No text of a server of the latter two is in a training batch.
"""

import json
import random as randoms
import re
from collections import defaultdict
from pathlib import Path

import augment
import texts

# How much of a batch comes from where; not by the sources' sizes, which differ a hundredfold.
SHARES = {
    "writers": 0.60, "own": 0.02, "metatool": 0.08, "bfcl": 0.06, "stabletoolbench": 0.05, "sealtools": 0.04, "cards": 0.15,
}
GROUP = 4
TRAINING, VALIDATION, TEST = (1, 2, 3, 4, 5, *range(9, 33)), (6,), (7, 8)
# Tools that the queries of a split are ranked among, next to those of its servers.
OTHERS = 600


class Tool:
    def __init__(self, key, source, server, name, description):
        self.key, self.source, self.server, self.name = key, source, server, name
        self.description = " ".join((description or "").split())
        self.text = texts.document(server, name, self.description)


def all_tools(train, bench):
    """The tools of the training pairs and the cards of the scale set, by their ids."""
    tools = {}
    for line in (Path(train) / "tools.jsonl").read_text(encoding="utf-8").splitlines():
        t = json.loads(line)
        tools[t["id"]] = Tool(t["id"], t["source"], t["server"], t["name"], t["description"])
    for server in json.loads((Path(bench) / "dev/scale/toolgym.json").read_text(encoding="utf-8")):
        for t in server["tools"]:
            if t.get("description"):
                key = f"scale/{server['server']}/{t['name']}"
                tools[key] = Tool(key, "cards", server["server"], t["name"], t["description"])
    return tools


def _plain(text):
    return re.sub(r"[^a-z0-9]", "", text.lower()[:80])


class Data:
    """All sources. `train` is the directory of the pairs, `bench` the benchmark's, of which only `dev/scale` is trained on;
    its corpora are read to leave tools out that they have too, so that figures on them are not flattered."""

    def __init__(self, train, bench, own, written):
        train, bench = Path(train), Path(bench)
        self.written = {
            number: [json.loads(line) for line in (Path(written) / f"batch-{number}.jsonl").read_text(encoding="utf-8").splitlines()]
            for number in TRAINING + VALIDATION + TEST
        }
        self.every, self.queries = all_tools(train, bench), defaultdict(list)
        measured = set()
        for corpus in ("dev/corpus.json", "corpus/live.json", "dev/public/azure/corpus.json", "dev/public/mcpproxy/corpus.json"):
            for server in json.loads((bench / corpus).read_text(encoding="utf-8")):
                measured |= {_plain(t.get("description") or "") for t in server["tools"]}
        apart = self.servers_of(VALIDATION + TEST)
        measured |= {_plain(tool.description) for tool in self.every.values() if (tool.source, tool.server) in apart}
        self.tools = {
            key: tool
            for key, tool in self.every.items()
            if (tool.source, tool.server) not in apart
            and (tool.source != "cards" or _plain(tool.description) not in measured)
        }
        for line in (train / "pairs.jsonl").read_text(encoding="utf-8").splitlines():
            pair = json.loads(line)
            self.add(pair["source"], pair["query"], pair["tools"])
        for line in Path(own).read_text(encoding="utf-8").splitlines():
            pair = json.loads(line)
            self.add("own", pair["query"], [pair["tool"]])
        # The tools that the readers of a batch saw: they are known not to serve its other queries.
        self.batch_of = {}
        for number in TRAINING:
            for pair in self.written[number]:
                self.add("writers", pair["query"], pair["tools"])
                self.batch_of.update(dict.fromkeys(pair["tools"], number))
        self.siblings = defaultdict(list)
        for tool in self.tools.values():
            if tool.server:
                self.siblings[tool.source, tool.server].append(tool)
        # By tool, so that a tool with a thousand queries is not a thousand times as frequent.
        self.by_tool = defaultdict(lambda: defaultdict(list))
        for source, pairs in self.queries.items():
            for query, known in pairs:
                for key in known:
                    self.by_tool[source][key].append((query, known))
        self.keys = {source: sorted(found) for source, found in self.by_tool.items()}
        self.cards = sorted(key for key, tool in self.tools.items() if tool.server)
        # Tools that are easily taken for a tool, and for those that serve a query.
        self.near, self.hard = {}, {}

    def add(self, source, query, keys):
        """A query, if it is served by tools that are trained with and by no others."""
        known = [key for key in keys if key in self.tools]
        if known and not any(key in self.every and key not in self.tools for key in keys):
            self.queries[source].append((query, known))

    def servers_of(self, batches):
        tools = {key for number in batches for pair in self.written[number] for key in pair["tools"]}
        return {(self.every[key].source, self.every[key].server) for key in tools if key in self.every}

    def split(self, batches, others=OTHERS):
        """Queries of some batches, and the tools that they are ranked among: those of their servers, and some of the others."""
        servers = self.servers_of(batches)
        own = [key for key, tool in self.every.items() if (tool.source, tool.server) in servers]
        apart = self.servers_of(VALIDATION + TEST)
        rest = sorted(key for key, tool in self.every.items() if (tool.source, tool.server) not in apart)
        keys = sorted({*own, *randoms.Random(6).sample(rest, others)})
        return [pair for number in batches for pair in self.written[number]], keys

    def confusable(self):
        """The tools among which contrasts are looked for: those with queries, and all of the writers' servers."""
        found = {key for keys in self.keys.values() for key in keys}
        for key in self.keys["writers"]:
            tool = self.tools[key]
            found.update(t.key for t in self.siblings[tool.source, tool.server])
        return sorted(found)

    def query_of(self, source, pair, key, random):
        """A query for the tool, varied, with all tools that serve it."""
        query, known = pair or random.choice(self.by_tool[source][key])
        if source in ("stabletoolbench", "sealtools") or len(query) > 160:
            query = augment.best_sentence(query, self.tools[key].text)
        # The writers' queries are in other words already.
        share = 0.1 if source == "writers" else 0.2
        if random.random() < share:
            query = augment.keywords(query, random)
        if random.random() < share:
            query = augment.other_words(query, random, 0.4)
        return query, known

    def card_query(self, tool, random):
        """A query made of the tool's own words, and the tool's text without them."""
        server, name, description = tool.server, tool.name, tool.description
        first, *rest = augment.sentences(description) or [description]
        kind = random.random()
        if kind < 0.35:
            words = texts.split_name(name)
            return augment.other_words(words, random, 0.6), f"{texts.split_name(server)}: {description}"
        if kind < 0.7:
            short = " ".join(first.split()[:14])
            query = augment.other_words(short, random, 0.6)
            return augment.ask(query, random) if random.random() < 0.5 else query, texts.document(server, name, " ".join(rest))
        return augment.keywords(augment.other_words(first, random, 0.4), random, 5), tool.text

    def example(self, source, key, random, pair=None):
        tool = self.tools[key]
        if source == "cards":
            query, text = self.card_query(tool, random)
            known = [key]
        else:
            (query, known), text = self.query_of(source, pair, key, random), tool.text
        if not augment.content(query):
            query = texts.split_name(tool.name)
        if random.random() < 0.10:
            query = augment.misspell(query, random)
        if tool.server and random.random() < 0.06:
            query = f"{texts.split_name(tool.server)}: {query}"
        return query, text, key, frozenset(known)

    def group(self, source, random):
        """Pairs for a tool and for some that are easily taken for it: neighbours by meaning, else of the same server."""
        if source == "cards":
            server = self.tools[random.choice(self.cards)]
            tools = self.siblings[server.source, server.server]
            some = random.sample(tools, min(GROUP, len(tools)))
            return [self.example("cards", tool.key, random) for tool in some]
        first = random.choice(self.keys[source])
        if source == "writers":
            return self.hard_group(first, random)
        keys, near = [first], [key for key in self.near.get(first, ()) if key in self.by_tool[source]]
        keys += random.sample(near, min(GROUP - 1, len(near)))
        found = [self.example(source, key, random) for key in keys]
        tool = self.tools[first]
        others = [t for t in self.siblings[tool.source, tool.server] if t.key not in keys] if tool.server else []
        for other in random.sample(others, min(GROUP - len(found), len(others))):
            found.append(self.example("cards", other.key, random))
        return found

    def hard_group(self, key, random):
        """A writer's query, and pairs of the tools that the model takes for what it asks for."""
        pair = random.choice(self.by_tool["writers"][key])
        found = [self.example("writers", key, random, pair)]
        hard = self.hard.get(pair[0], ())
        for other in random.sample(hard, min(GROUP - 1, len(hard))):
            sources = [source for source in SHARES if other in self.by_tool[source]] or ["cards"]
            found.append(self.example(sources[0], other, random))
        return found

    def batch(self, size, random):
        """`size` examples: query, tool text, the tool's key, keys of all tools that serve the query."""
        sources = [source for source in SHARES if source == "cards" or source in self.keys]
        found = []
        while len(found) < size:
            source = random.choices(sources, [SHARES[source] for source in sources])[0]
            found += self.group(source, random)
        return found[:size]
