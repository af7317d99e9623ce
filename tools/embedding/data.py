"""Training examples: batches of (query, tool text) pairs, made of small groups of tools that are easily confused."""

import json
import random as randoms
import re
from collections import defaultdict
from pathlib import Path

import augment
import texts

# How much of a batch comes from where; not by the sources' sizes, which differ a hundredfold.
SHARES = {"own": 0.12, "metatool": 0.26, "bfcl": 0.18, "stabletoolbench": 0.14, "sealtools": 0.08, "cards": 0.22}
GROUP = 4
# Every tenth tool of each source is kept out, for choosing between models.
HELD_OUT = 10


class Tool:
    def __init__(self, key, source, server, name, description):
        self.key, self.source, self.server, self.name = key, source, server, name
        self.description = " ".join((description or "").split())
        self.text = texts.document(server, name, self.description)


def _plain(text):
    return re.sub(r"[^a-z0-9]", "", text.lower()[:80])


class Data:
    """All sources. `train` is the directory of the pairs, `bench` the benchmark's, of which only `dev/scale` is trained on;
    its corpora are read to leave tools out that they have too, so that figures on them are not flattered."""

    def __init__(self, train, bench, own):
        train, bench = Path(train), Path(bench)
        self.tools, self.queries = {}, defaultdict(list)
        for line in (train / "tools.jsonl").read_text(encoding="utf-8").splitlines():
            t = json.loads(line)
            self.tools[t["id"]] = Tool(t["id"], t["source"], t["server"], t["name"], t["description"])
        measured = set()
        for corpus in ("dev/corpus.json", "corpus/live.json", "dev/public/azure/corpus.json", "dev/public/mcpproxy/corpus.json"):
            for server in json.loads((bench / corpus).read_text(encoding="utf-8")):
                measured |= {_plain(t.get("description") or "") for t in server["tools"]}
        for server in json.loads((bench / "dev/scale/toolgym.json").read_text(encoding="utf-8")):
            for t in server["tools"]:
                key = f"scale/{server['server']}/{t['name']}"
                if t.get("description") and _plain(t["description"]) not in measured:
                    self.tools[key] = Tool(key, "cards", server["server"], t["name"], t["description"])
        for line in (train / "pairs.jsonl").read_text(encoding="utf-8").splitlines():
            pair = json.loads(line)
            known = [key for key in pair["tools"] if key in self.tools]
            if known:
                self.queries[pair["source"]].append((pair["query"], known))
        for line in Path(own).read_text(encoding="utf-8").splitlines() if own else ():
            pair = json.loads(line)
            if pair["tool"] in self.tools:
                self.queries["own"].append((pair["query"], [pair["tool"]]))
        keys = sorted(self.tools)
        self.held_out = set(randoms.Random(5).sample(keys, len(keys) // HELD_OUT))
        self.siblings = defaultdict(list)
        for tool in self.tools.values():
            if tool.server and tool.key not in self.held_out:
                self.siblings[tool.source, tool.server].append(tool)
        # By tool, so that a tool with a thousand queries is not a thousand times as frequent.
        self.by_tool = defaultdict(lambda: defaultdict(list))
        for source, pairs in self.queries.items():
            for query, known in pairs:
                if not self.held_out.intersection(known):
                    for key in known:
                        self.by_tool[source][key].append((query, known))
        self.keys = {source: sorted(found) for source, found in self.by_tool.items()}
        self.cards = sorted(key for key, tool in self.tools.items() if key not in self.held_out and tool.server)
        self.near = {}

    def validation(self, limit=400):
        """Queries of held-out tools by source, and the tools they are ranked among."""
        random = randoms.Random(6)
        found = {}
        for source, pairs in sorted(self.queries.items()):
            some = [pair for pair in pairs if self.held_out.issuperset(pair[1])]
            found[source] = random.sample(some, min(limit, len(some)))
        others = random.sample(sorted(self.tools), 1500)
        wanted = {key for pairs in found.values() for _, keys in pairs for key in keys}
        return found, sorted(wanted.union(others))

    def query_of(self, source, key, random):
        """A query for the tool, varied, with all tools that serve it."""
        query, known = random.choice(self.by_tool[source][key])
        if source in ("stabletoolbench", "sealtools") or len(query) > 160:
            query = augment.best_sentence(query, self.tools[key].text)
        if random.random() < 0.2:
            query = augment.keywords(query, random)
        if random.random() < 0.2:
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

    def example(self, source, key, random):
        tool = self.tools[key]
        if source == "cards":
            query, text = self.card_query(tool, random)
            known = [key]
        else:
            (query, known), text = self.query_of(source, key, random), tool.text
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
        keys, near = [first], [key for key in self.near.get(first, ()) if key in self.by_tool[source]]
        keys += random.sample(near, min(GROUP - 1, len(near)))
        found = [self.example(source, key, random) for key in keys]
        tool = self.tools[first]
        others = [t for t in self.siblings[tool.source, tool.server] if t.key not in keys] if tool.server else []
        for other in random.sample(others, min(GROUP - len(found), len(others))):
            found.append(self.example("cards", other.key, random))
        return found

    def batch(self, size, random):
        """`size` examples: query, tool text, the tool's key, keys of all tools that serve the query."""
        sources = [source for source in SHARES if source == "cards" or source in self.keys]
        found = []
        while len(found) < size:
            source = random.choices(sources, [SHARES[source] for source in sources])[0]
            found += self.group(source, random)
        return found[:size]
