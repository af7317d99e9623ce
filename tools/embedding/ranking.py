"""A copy of the program's ranking (`src/search`) for choosing its constants: words, fusion, several needs, and whether anything fits.

Slow and short. `evaluate.py` checks it against the figures of the program. Only Latin texts are split as in the program.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import snowballstemmer

SEARCH = Path(__file__).resolve().parents[2] / "src" / "search"
# Weight and penalty for length of each field: tool, server, title, description, parameters.
FIELDS = ((3.0, 0.4), (2.0, 0.0), (1.0, 0.4), (1.0, 0.75), (0.4, 0.75))
SATURATION = 1.2
SYNONYM, SUBSTITUTE, MISTAKE, SECOND_GUESS = 0.35, 0.8, 0.75, 0.9
HINTED, NAMED, NEED, LEAD, NOISE, EXACT = 0.5, 0.15, 0.3, 0.95, 0.25, 10.0

# The weight of the words if none matches, and what is added if all match.
WEIGHTS = (0.15, 0.3)

_stemmer = snowballstemmer.stemmer("english")
_stems = {}
_runs = re.compile(r"[^\W_]+")
_boundary = re.compile(r"(?<=[^\W_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
CONJUNCTIONS = {"and", "then", "plus", "also"}
PREPOSITIONS = set("on in from using via with at to use through into".split())
ARTICLES = set("the my our a an".split())


def stem(word):
    found = _stems.get(word)
    if found is None:
        found = _stems[word] = _stemmer.stemWord(word)
    return found


def plain(text):
    return "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")


def split(text):
    """The words of a text, in lower case, without accents, not stemmed."""
    return [plain(word) for run in _runs.findall(text) for word in _boundary.sub(" ", run).split()]


def compact(name):
    return "".join(c for c in name if c.isalnum()).lower()


def _read_words(name, pattern):
    text = (SEARCH / name).read_text(encoding="utf-8")
    return re.search(pattern, text, re.S).group(1)


STOP_WORDS = set(re.findall(r'"([^"]+)"', _read_words("query.rs", r"const STOP_WORDS[^=]*= &\[(.*?)\];")))
SYNONYMS = defaultdict(list)
for line in re.findall(r"&\[([^\[\]]*)\]", _read_words("synonyms.rs", r"const GROUPS[^=]*= &\[(.*?)\n\];")):
    group = [stem(word) for word in re.findall(r'"([^"]+)"', line)]
    for one in group:
        SYNONYMS[one] += [other for other in group if other != one and other not in SYNONYMS[one]]


class Need:
    def __init__(self):
        self.words, self.text = [], ""

    def say(self, text):
        self.text = f"{self.text} {text}".strip()


def token_words(token):
    if "://" in token:
        host = re.split(r"[/?#:]", token.split("://", 1)[1])[0].split(".")
        return ["url", *split(host[-2] if len(host) > 1 else "")]
    if len(token) > 3 and (token.startswith(("/", "~/")) or token[1:3] == ":\\"):
        return ["file"]
    return split(token)


class Query:
    """The needs of a query, each with its words `(word, stands where a server is named)`, and possible names of tools."""

    def __init__(self, text):
        text = text[:1000]
        tokens = text.split()
        names = {compact(text)} | {compact(token) for token in tokens if is_identifier(token)}
        self.names = sorted(name for name in names if name)
        needs, hint = [Need()], False
        for at, token in enumerate(tokens):
            words = token_words(token)
            if len(words) == 1 and words[0] in CONJUNCTIONS:
                needs.append(Need())
                hint = False
                continue
            needs[-1].say(token)
            for word in words:
                if word in STOP_WORDS:
                    hint = word in PREPOSITIONS or (hint and word in ARTICLES)
                else:
                    needs[-1].words.append([word, hint])
            if token.endswith(":") and at < 4:
                for need in needs:
                    for word in need.words:
                        word[1] = True
            elif token[-1] in ",;.?!" or token == "&":
                needs.append(Need())
                hint = False
        merged = []
        for need in needs:
            if merged and (len(need.words) < 2 or len(merged[-1].words) < 2):
                merged[-1].say(need.text)
                merged[-1].words += need.words
            else:
                merged.append(need)
        self.needs = [need for need in merged if need.words]
        self.text = " ".join(need.text for need in self.needs)


def is_identifier(token):
    token = re.sub(r"^[\W_]+|[\W_]+$", "", token)
    return bool(re.search(r"[_\-.:/]", token) or re.search(r"[a-z][A-Z]", token))


def telling(server):
    return " ".join(word for word in split(server) if word not in ("mcp", "server")) or server


def distance(a, b, limit):
    """Letters added, left out, replaced or swapped, if at most `limit`."""
    if abs(len(a) - len(b)) > limit:
        return None
    before, row = None, list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, before_last, row = row, before, [i] + [0] * len(b)
        for j, y in enumerate(b, 1):
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if before_last and i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before_last[j - 2] + 1)
        before = last
    return row[-1] if row[-1] <= limit else None


class Index:
    """Tools as `(server, definition)`."""

    def __init__(self, tools, is_piece):
        self.names = [(server, t["name"]) for server, t in tools]
        self.is_piece = is_piece
        self.postings = defaultdict(dict)
        self.words, self.lengths = Counter(), np.zeros((len(tools), len(FIELDS)), np.float32)
        for doc, (server, t) in enumerate(tools):
            properties = (t.get("inputSchema") or {}).get("properties") or {}
            title = t.get("title") or (t.get("annotations") or {}).get("title") or ""
            parameters = [f"{name} {(p or {}).get('description') or '' if isinstance(p, dict) else ''}" for name, p in properties.items()]
            texts = (t["name"], telling(server), title, t.get("description") or "", " ".join(parameters))
            seen = set()
            for field, text in enumerate(texts):
                words = split(text)
                self.lengths[doc, field] = len(words)
                seen.update(words)
                for word in words:
                    self.postings[stem(word)].setdefault(doc, [0] * len(FIELDS))[field] += 1
            self.words.update(seen)
        self.averages = np.maximum(self.lengths.mean(0), 1.0)
        self.servers = sorted({server for server, _ in self.names})
        place = {server: at for at, server in enumerate(self.servers)}
        self.server_of = np.array([place[server] for server, _ in self.names])
        self.tools_of = np.bincount(self.server_of)
        self.telling = [{stem(word) for word in split(telling(server))} for server in self.servers]
        self.telling_length = [len(split(telling(server))) for server in self.servers]
        self.by_name = defaultdict(list)
        for doc, (server, tool) in enumerate(self.names):
            for name in {compact(tool), compact(server + tool)}:
                self.by_name[name].append(doc)
        self.weighed, self.repaired = {}, {}

    def rarity(self, tools):
        return float(np.log(1 + (len(self.names) - tools + 0.5) / (tools + 0.5)))

    def weigh(self, known):
        """Tools with a stem, their scores, and the best score."""
        found = self.weighed.get(known)
        if found is None:
            posting = self.postings.get(known, {})
            docs = np.fromiter(posting, int, len(posting))
            times = np.array([posting[doc] for doc in docs], np.float32).reshape(-1, len(FIELDS))
            weights, penalties = (np.array([f[at] for f in FIELDS], np.float32) for at in (0, 1))
            frequency = (weights * times / (1 - penalties + penalties * self.lengths[docs] / self.averages)).sum(1)
            best = self.rarity(len(docs))
            found = self.weighed[known] = docs, best * frequency / (frequency + SATURATION), best
        return found

    def repairs(self, word):
        found = self.repaired.get(word)
        if found is None:
            limit = 0 if len(word) < 4 else 1 if len(word) < 8 else 2
            found = []
            if limit and not self.is_piece(word):
                some = ((distance(word, other, limit), -tools, other) for other, tools in self.words.items()
                        if abs(len(other) - len(word)) <= limit and len(set(other) ^ set(word)) <= 2 * limit)
                found = sorted(one for one in some if one[0] is not None)[:3]
            self.repaired[word] = found
        return found

    def alternatives(self, known, word, repairs):
        is_known = known in self.postings
        found = [(other, SYNONYM if is_known else SUBSTITUTE) for other in SYNONYMS.get(known, ()) if is_known or other in self.postings]
        if is_known:
            found.append((known, 1.0))
        elif not found:
            some = self.repairs(word)
            if some:
                repairs[word] = some[0][2]
            for at, (changes, _, other) in enumerate(some):
                found.append((stem(other), MISTAKE**changes * (SECOND_GUESS if at else 1.0)))
        return found

    def by_words(self, query):
        """Scores of the whole query and of each need, what words mean that are misspelt, and how many words some tool has."""
        whole, needs, repairs, best_of_all = np.zeros(len(self.names), np.float32), [], {}, 0.0
        for need in query.needs:
            scores, best, seen = np.zeros(len(self.names), np.float32), 0.0, set()
            for word, _ in need.words:
                known = stem(word)
                if known in seen:
                    continue
                seen.add(known)
                row, most = np.zeros(len(self.names), np.float32), 0.0
                alternatives = self.alternatives(known, word, repairs)
                for other, weight in alternatives:
                    docs, found, perfect = self.weigh(other)
                    row[docs] = np.maximum(row[docs], weight * found)
                    most = max(most, weight * perfect)
                scores += row
                best += most if alternatives else self.rarity(0)
            whole += scores
            best_of_all += best
            needs.append(scores / best if best else scores)
        return (whole / best_of_all if best_of_all else whole), needs, repairs

    def preference(self, query):
        """The factor of each tool for its server's name in the query."""
        words = {}
        for need in query.needs:
            for word, hint in need.words:
                known = stem(word)
                words[known] = words.get(known, False) or hint
        factors = np.ones(len(self.servers), np.float32)
        for at, stems in enumerate(self.telling):
            length = self.telling_length[at]
            # Some of the training tools have no server.
            if not length:
                continue
            if sum(one in words for one in stems) >= length:
                factors[at] = 1 + (HINTED if sum(words.get(one, False) for one in stems) >= length else NAMED)
        return factors[self.server_of]


def repaired(text, repairs):
    def repair(word):
        letters = re.sub(r"^[\W_]+|[\W_]+$", "", word)
        right = repairs.get(letters.lower())
        return word.replace(letters, right, 1) if right else word

    return " ".join(map(repair, text.split())) if repairs else text


def fuse(words, cosine, weights):
    least, more = weights
    share = least + more * min(1.0, float(words.max(initial=0.0)))
    return (1 - share) * np.maximum(cosine, 0) + share * words


def serve_each(whole, needs):
    top = whole.max()
    needs = [(need, need.max()) for need in needs if need.max() > 0]
    if not needs:
        return whole
    share = np.max([need / best for need, best in needs], 0)
    whole = (1 - NEED) * whole + NEED * top * share
    for need, best in needs:
        leader = int(np.argmax(need / best + 2 * whole / top))
        whole[leader] = max(whole[leader], LEAD * top)
    return whole


class Asked:
    """A query over an index, with all that does not depend on the constants."""

    def __init__(self, index, text):
        self.index, self.query = index, Query(text)
        self.words, self.needs, self.repairs = index.by_words(self.query)
        self.texts = [repaired(self.query.text, self.repairs)]
        if len(self.query.needs) > 1:
            self.texts += [repaired(need.text, self.repairs) for need in self.query.needs]
        self.factors = index.preference(self.query)
        self.named = sorted({doc for name in self.query.names for doc in index.by_name.get(name, ())})
        self.cosines = None

    def compare(self, vectors, tools):
        """Sets the cosines from the vectors of `texts`."""
        self.cosines = vectors @ tools.T
        return self

    def fused(self, weights):
        """The scores before servers and names, which decide whether anything fits."""
        if not self.query.needs:
            return self.words
        whole = fuse(self.words, self.cosines[0], weights)
        if len(self.query.needs) > 1:
            needs = [fuse(words, cosine, weights) for words, cosine in zip(self.needs, self.cosines[1:])]
            whole = serve_each(whole, needs)
        return whole

    def ranked(self, weights, most=20):
        scores = self.fused(weights)
        scores = np.where(scores < NOISE * scores.max(initial=0.0), 0, scores) * self.factors
        if self.named:
            scores = scores.copy()
            scores[self.named] += EXACT
        order = np.argsort(-scores, kind="stable")[:most]
        return [doc for doc in order if scores[doc] > 0]
