"""Writes the batches of tool cards that the writers of queries get: `python3 tools/embedding/queries/batches.py OUT`.

OUT gets `batchN.txt`, a card a line, and `batchN.ids`, the ids of its tools. The cards are third-party texts: OUT is outside of the repository.
Batches 1 to 8 were made first and are split into training, validation and test. Those of later rounds are for training only, and have no
tool of a server of batches 6 to 8.
"""

import json
import random
import re
import sys
from pathlib import Path

# The batches of the first round from this number on are no training data.
APART = 6
SHARED = Path("../shared")
SCALE = SHARED / "search-bench/dev/scale/toolgym.json"
TRAIN = SHARED / "search-train/tools.jsonl"
OWN = Path("tools/embedding/own_queries.jsonl")
# MetaTool has enough queries.
SOURCES = ("sealtools", "stabletoolbench", "bfcl")
# By round: batches, and tools per server and in all, of the scale set and of the others.
ROUNDS = ((8, (4, 1250), (1, 420)), (12, (8, 1400), (1, 1120)), (12, (30, 1400), (3, 1300)), (24, (60, 4000), (20, 4000)))


def is_usable(description):
    """Whether a description says something, in English."""
    text = (description or "").strip()
    return len(text) >= 35 and sum(ord(c) < 128 for c in text) / len(text) > 0.97


def beginning(description):
    """What equal tools of different servers have in common."""
    return re.sub(r"\W+", " ", description.lower())[:50]


def cards():
    """Usable cards `(id, server, name, description, parameters)` by server: those of the scale set, and all others."""
    scale, others = {}, {}
    for server in json.loads(SCALE.read_text()):
        for tool in server["tools"]:
            if is_usable(tool["description"]):
                parameters = list(((tool.get("inputSchema") or {}).get("properties")) or {})
                card = (f"scale/{server['server']}/{tool['name']}", server["server"], tool["name"], tool["description"], tuple(parameters))
                scale.setdefault("scale/" + server["server"], []).append(card)
    for line in TRAIN.read_text().splitlines():
        tool = json.loads(line)
        if tool["source"] in SOURCES and is_usable(tool["description"]):
            parameters = [p if isinstance(p, str) else p.get("name", "") for p in tool["params"]]
            card = (tool["id"], tool["server"], tool["name"], tool["description"], tuple(parameters))
            others.setdefault(f"{tool['source']}/{tool['server']}", []).append(card)
    return scale, others


def chosen(servers, names, limits, rng, known, seen):
    """Up to `limits` of the cards, by server, without tools that have queries and without near copies."""
    per_server, most = limits
    by_server, count = {}, 0
    for name in names:
        free = [card for card in servers[name] if card[0] not in known and beginning(card[3]) not in seen]
        rng.shuffle(free)
        for card in free[:per_server]:
            seen.add(beginning(card[3]))
            by_server.setdefault(name, []).append(card)
            count += 1
        if count >= most:
            break
    return by_server


def parted(by_server, count, rng):
    """All cards in `count` batches of about equal size, those of a server in one."""
    order = list(by_server)
    rng.shuffle(order)
    batches = [[] for _ in range(count)]
    for name in order:
        min(batches, key=len).extend(by_server[name])
    return batches


def write(out, first, batches):
    for number, batch in enumerate(batches, first):
        lines = []
        for place, (_, server, name, description, parameters) in enumerate(batch, 1):
            text = re.sub(r"\s+", " ", description)[:330]
            lines.append(f"{place}. [{server}] {name}: {text} (parameters: {', '.join(parameters[:8])})\n")
        (out / f"batch{number}.txt").write_text("".join(lines))
        (out / f"batch{number}.ids").write_text("".join(card[0] + "\n" for card in batch))


def main(out):
    rng = random.Random(29)
    known = {json.loads(line)["tool"] for line in OWN.read_text().splitlines()}
    scale, others = cards()
    names = list(scale), [name for name in others if name not in scale]
    for part in names:
        rng.shuffle(part)
    seen, apart, number = set(), set(), 1
    for count, of_scale, of_others in ROUNDS:
        free = [[name for name in part if name not in apart] for part in names]
        by_server = chosen(scale, free[0], of_scale, rng, known, seen)
        by_server |= chosen(others, free[1], of_others, rng, known, seen)
        batches = parted(by_server, count, rng)
        write(out, number, batches)
        if not apart:
            kept = {card for batch in batches[APART - 1 :] for card in batch}
            apart = {name for name, some in by_server.items() if kept.intersection(some)}
        known |= {card[0] for batch in batches for card in batch}
        number += count


if __name__ == "__main__":
    main(Path(sys.argv[1]))
