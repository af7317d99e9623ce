"""Fine-tuning with contrasts inside a batch, on weights that are rounded as in the asset.

The rounding's scales stay as they are throughout; gradients pass it as if it were not there. Weights that come rounded from an
asset start anywhere in their step, or few of them would ever leave it. Token and position vectors stay as they are, so words that
no example has keep their places. What is kept is the mean of the latest weights, of the step whose mean found most of the
validation queries.
"""

import collections
import json
import random as randoms
import time

import jax
import jax.numpy as jnp
import numpy as np

import model
import quantise
import texts
from data import VALIDATION

TEMPERATURE = 0.05
# Tools whose texts the base model finds this alike are no contrast to each other.
ALIKE = 0.85
# A tool that no reader saw next to a query is a contrast only if the model finds it less fitting than the right one by this factor.
LESS_FITTING = 0.9
QUERY, DOCUMENT = 32, 32
NEIGHBOURS = 12
# How much of the mean of the weights stays at each step.
MEAN = 0.98
# Steps between two looks for hard contrasts, two validations, two checkpoints.
MINE, VALIDATE, KEEP = 100, 40, 20


def rounded(weights, scales):
    """What the asset keeps of the weights; the gradient is the identity."""
    groups = weights.reshape(*scales.shape, quantise.GROUP)
    found = jnp.clip(jnp.round(groups / scales[..., None]), -8, 7) * scales[..., None]
    return weights + jax.lax.stop_gradient(found.reshape(weights.shape) - weights)


def as_shipped(p, scales):
    """All parameters, the matrices rounded."""
    return {**p, **{name: rounded(p[name], scales[name]) for name in model.MATRICES}}


def loss(trained, frozen, scales, batch):
    """InfoNCE both ways. `batch["off"]` is 1 where a document is not the query's own but no contrast either."""
    p = as_shipped({**frozen, **trained}, scales)
    queries = model.forward(p, batch["query_ids"], batch["query_mask"], model.linear_bfloat16)
    documents = model.forward(p, batch["ids"], batch["mask"], model.linear_bfloat16)
    scores = queries @ documents.T / TEMPERATURE - batch["off"] * 1e4
    own = jnp.diagonal(scores)
    return jnp.mean(0.7 * jax.nn.logsumexp(scores, 1) + 0.3 * jax.nn.logsumexp(scores, 0) - own)


@jax.jit
def step(trained, moments, mean, frozen, scales, batch, rate, count):
    """One step of Adam; returns the new weights, moments and mean, and the loss."""
    value, gradient = jax.value_and_grad(loss)(trained, frozen, scales, batch)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in gradient.values()))
    shrink = jnp.minimum(1.0, 1.0 / norm)
    first, second = moments
    first = {k: 0.9 * first[k] + 0.1 * shrink * g for k, g in gradient.items()}
    second = {k: 0.98 * second[k] + 0.02 * (shrink * g) ** 2 for k, g in gradient.items()}
    ahead, beside = 1 - 0.9**count, 1 - 0.98**count
    trained = {k: w - rate * (first[k] / ahead) / (jnp.sqrt(second[k] / beside) + 1e-8) for k, w in trained.items()}
    # The first steps' mean would be the base model's.
    stays = jnp.minimum(MEAN, count / (count + 10.0))
    mean = {k: stays * mean[k] + (1 - stays) * w for k, w in trained.items()}
    return trained, (first, second), mean, value


class Training:
    """The state of a training; all of it is kept in `directory`, from where it goes on."""

    def __init__(self, data, tokenizer, base, scales, directory, size, rate, planned, seed):
        self.data, self.tokenizer, self.base, self.directory = data, tokenizer, base, directory
        self.size, self.rate, self.planned = size, rate, planned
        self.scales = {name: jnp.asarray(np.where(scales[name] == 0, 6e-8, scales[name]).astype(np.float32)) for name in model.MATRICES}
        fixed = ("tokens", "positions")
        self.frozen = {name: jnp.asarray(base[name]) for name in fixed}
        inside = np.random.default_rng(seed)
        self.trained = {name: jnp.asarray(value) for name, value in base.items() if name not in fixed}
        for name in model.MATRICES:
            steps = np.repeat(np.abs(np.asarray(self.scales[name])), quantise.GROUP, -1)
            self.trained[name] += inside.uniform(-0.49, 0.49, steps.shape).astype(np.float32) * steps
        self.moments = tuple({name: jnp.zeros_like(value) for name, value in self.trained.items()} for _ in range(2))
        self.mean = dict(self.trained)
        self.count, self.best = 0, (0.0, 0)
        self.random = randoms.Random(seed)
        self.vector_of = self.base_vectors()
        self.resume()

    def parameters(self, weights):
        return as_shipped({**self.frozen, **weights}, self.scales)

    def embed(self, weights, keys_or_queries, longest):
        rows = [self.tokenizer.encode(text, longest) for text in keys_or_queries]
        return model.embed(self.parameters(weights), rows, is_quick=True)

    def base_vectors(self):
        """The base model's vectors of all tools: which are alike."""
        path, keys = self.directory / "base.npz", sorted(self.data.tools)
        if path.exists():
            vectors = np.load(path)["vectors"]
        else:
            rows = [self.tokenizer.encode(self.data.tools[key].text, DOCUMENT) for key in keys]
            vectors = model.embed(self.base, rows, is_quick=True)
            np.savez(path, vectors=vectors)
        return dict(zip(keys, vectors))

    def mine(self):
        """Finds what the present model takes for each tool, and for what each writer's query asks for."""
        data, keys = self.data, self.data.confusable()
        if self.count:
            vectors = self.embed(self.mean, [data.tools[key].text for key in keys], DOCUMENT)
        else:
            vectors = np.stack([self.vector_of[key] for key in keys])
        places = {key: at for at, key in enumerate(keys)}
        by_source = collections.defaultdict(list)
        for key in keys:
            if any(key in found for found in data.by_tool.values()):
                by_source[data.tools[key].source].append(key)
        for some in by_source.values():
            matrix = np.stack([vectors[places[key]] for key in some])
            for key, scores in zip(some, matrix @ matrix.T):
                order = [some[at] for at in np.argsort(-scores)[: 4 * NEIGHBOURS]]
                data.near[key] = [other for other in order if other != key and not self.are_alike(key, other)][:NEIGHBOURS]
        pairs = data.queries["writers"]
        asked = self.embed(self.mean, [query for query, _ in pairs], QUERY)
        for (query, known), vector in zip(pairs, asked):
            scores = vectors @ vector
            least = LESS_FITTING * min(scores[places[key]] for key in known)
            batch = {data.batch_of.get(key) for key in known}
            hard = []
            for at in np.argsort(-scores)[: 8 * NEIGHBOURS]:
                key = keys[at]
                is_seen = data.batch_of.get(key) in batch
                if key not in known and (is_seen or scores[at] < least) and not any(self.are_alike(key, right) for right in known):
                    hard.append(key)
            data.hard[query] = hard[:NEIGHBOURS]

    def are_alike(self, key, other):
        return self.vector_of[key] @ self.vector_of[other] > ALIKE

    def batch(self):
        """Ids and masks of the next batch, and which pairs are no contrasts."""
        examples = self.data.batch(self.size, self.random)
        queries = [self.tokenizer.encode(query, QUERY) for query, _, _, _ in examples]
        documents = [self.tokenizer.encode(text, DOCUMENT) for _, text, _, _ in examples]
        keys = [key for _, _, key, _ in examples]
        base = np.stack([self.vector_of[key] for key in keys])
        off = (base @ base.T > ALIKE).astype(np.float32)
        for i, (query, _, _, known) in enumerate(examples):
            for j, (other_query, _, other, _) in enumerate(examples):
                off[i, j] = i != j and (off[i, j] or other in known or query == other_query)
        query_ids, query_mask = model.pad(queries, QUERY)
        ids, mask = model.pad(documents, DOCUMENT)
        return {"query_ids": query_ids, "query_mask": query_mask, "ids": ids, "mask": mask, "off": off}

    def run(self, steps):
        started, recent = time.time(), []
        while self.count < steps:
            if self.count % MINE == 0 or not self.data.hard:
                self.mine()
                print(f"step {self.count}: contrasts found, {time.time() - started:.0f} s", flush=True)
            batch = self.batch()
            self.count += 1
            rate = self.rate * min(1.0, self.count / (0.08 * self.planned)) * (1 - self.count / self.planned * 0.95)
            self.trained, self.moments, self.mean, value = step(
                self.trained, self.moments, self.mean, self.frozen, self.scales, batch, rate, self.count
            )
            recent.append(float(value))
            if self.count % KEEP == 0:
                print(f"step {self.count}: loss {np.mean(recent[-KEEP:]):.3f}, {time.time() - started:.0f} s", flush=True)
            if self.count % VALIDATE == 0:
                self.validate()
            if self.count % KEEP == 0:
                self.keep()

    def validate(self):
        """Success among the first five for the validation queries; keeps the weights that are best."""
        pairs, keys = self.data.split(VALIDATION)
        tools = self.embed(self.mean, [self.data.every[key].text for key in keys], texts.LONGEST_DOCUMENT)
        asked = self.embed(self.mean, [pair["query"] for pair in pairs], texts.LONGEST_QUERY)
        found = success(pairs, keys, asked @ tools.T)
        print(f"step {self.count}: {json.dumps(found)}", flush=True)
        np.savez(self.directory / f"{self.count}.npz", **{k: np.asarray(v) for k, v in self.mean.items()})
        self.best = max(self.best, (found["s5"], self.count))

    def keep(self):
        arrays = {}
        for name, values in (("trained", self.trained), ("first", self.moments[0]), ("second", self.moments[1]), ("mean", self.mean)):
            arrays |= {f"{name}/{key}": np.asarray(value) for key, value in values.items()}
        state = {"count": self.count, "best": self.best, "random": self.random.getstate()}
        hard = {"hard": self.data.hard, "near": self.data.near}
        path = self.directory / "state.npz"
        part = path.with_suffix(".part.npz")
        np.savez(part, state=json.dumps([state, hard]), **arrays)
        part.rename(path)

    def resume(self):
        path = self.directory / "state.npz"
        if not path.exists():
            return
        kept = np.load(path)
        state, hard = json.loads(str(kept["state"]))
        parts = collections.defaultdict(dict)
        for name in kept.files:
            part, _, key = name.partition("/")
            if key:
                parts[part][key] = jnp.asarray(kept[name])
        self.trained, self.mean, self.moments = parts["trained"], parts["mean"], (parts["first"], parts["second"])
        self.trained, self.mean = dict(self.trained), dict(self.mean)
        self.moments = (dict(self.moments[0]), dict(self.moments[1]))
        self.count, self.best = state["count"], tuple(state["best"])
        version, numbers, gauss = state["random"]
        self.random.setstate((version, tuple(numbers), gauss))
        self.data.hard, self.data.near = hard["hard"], hard["near"]


def success(pairs, keys, scores):
    """Share of queries with a right tool at the first place and among the first five, and mean nDCG@10, of those whose tools are known."""
    places, rows = {key: at for at, key in enumerate(keys)}, []
    for pair, row in zip(pairs, scores):
        right = {places[key] for key in pair["tools"] if key in places}
        if not right:
            continue
        order = np.argsort(-row, kind="stable")[:10]
        hits = [at in right for at in order]
        gain = sum(hit / np.log2(place + 2) for place, hit in enumerate(hits))
        ideal = sum(1 / np.log2(place + 2) for place in range(min(10, len(right))))
        rows.append((hits[0], any(hits[:5]), gain / ideal))
    first, five, gain = np.mean(np.array(rows, float), 0)
    return {"n": len(rows), "s1": round(float(first), 4), "s5": round(float(five), 4), "ndcg": round(float(gain), 4)}
