"""Fine-tuning with contrasts inside a batch, on weights that are rounded as in the asset.

The rounding's scales are those of the base model throughout; gradients pass it as if it were not there. Token and
position vectors stay as they are, so words that no example has keep their places.
"""

import random as randoms
import time

import jax
import jax.numpy as jnp
import numpy as np

import model
import quantise

TEMPERATURE = 0.05
# Tools whose texts the base model finds this alike are no contrast to each other.
ALIKE = 0.85
QUERY, DOCUMENT = 24, 32
NEIGHBOURS = 12


def rounded(weights, scales):
    """What the asset keeps of the weights; the gradient is the identity."""
    groups = weights.reshape(*scales.shape, quantise.GROUP)
    found = jnp.clip(jnp.round(groups / scales[..., None]), -8, 7) * scales[..., None]
    return weights + jax.lax.stop_gradient(found.reshape(weights.shape) - weights)


def loss(trained, frozen, scales, batch):
    """InfoNCE both ways. `batch["off"]` is 1 where a document is not the query's own but no contrast either."""
    p = {**frozen, **trained}
    p.update({name: rounded(p[name], scales[name]) for name in model.MATRICES})
    queries = model.forward(p, batch["query_ids"], batch["query_mask"])
    documents = model.forward(p, batch["ids"], batch["mask"])
    scores = queries @ documents.T / TEMPERATURE - batch["off"] * 1e4
    own = jnp.diagonal(scores)
    return jnp.mean(0.7 * jax.nn.logsumexp(scores, 1) + 0.3 * jax.nn.logsumexp(scores, 0) - own)


@jax.jit
def step(trained, moments, frozen, scales, batch, rate, count):
    """One step of Adam; returns the new weights, moments and the loss."""
    value, gradient = jax.value_and_grad(loss)(trained, frozen, scales, batch)
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in gradient.values()))
    shrink = jnp.minimum(1.0, 1.0 / norm)
    first, second = moments
    first = {k: 0.9 * first[k] + 0.1 * shrink * g for k, g in gradient.items()}
    second = {k: 0.98 * second[k] + 0.02 * (shrink * g) ** 2 for k, g in gradient.items()}
    ahead, beside = 1 - 0.9**count, 1 - 0.98**count
    trained = {k: w - rate * (first[k] / ahead) / (jnp.sqrt(second[k] / beside) + 1e-8) for k, w in trained.items()}
    return trained, (first, second), value


def encode_batch(tokenizer, examples, vector_of):
    """Ids and masks of a batch, and which pairs are no contrasts."""
    queries = [tokenizer.encode(query, QUERY) for query, _, _, _ in examples]
    documents = [tokenizer.encode(text, DOCUMENT) for _, text, _, _ in examples]
    off = np.zeros((len(examples), len(examples)), np.float32)
    for i, (query, _, key, known) in enumerate(examples):
        for j, (other_query, _, other, _) in enumerate(examples):
            if i != j:
                alike = key in vector_of and other in vector_of and vector_of[key] @ vector_of[other] > ALIKE
                off[i, j] = alike or other in known or query == other_query
    query_ids, query_mask = model.pad(queries, QUERY)
    ids, mask = model.pad(documents, DOCUMENT)
    return {"query_ids": query_ids, "query_mask": query_mask, "ids": ids, "mask": mask, "off": off}


def find_neighbours(data, tokenizer, base):
    """Vectors of the tools that have queries, and for each its nearest ones that are not the same in other words."""
    keys = sorted({key for found in data.keys.values() for key in found})
    vectors = model.embed(base, [tokenizer.encode(data.tools[key].text, DOCUMENT) for key in keys])
    vector_of = dict(zip(keys, vectors))
    by_source = {}
    for key in keys:
        by_source.setdefault(data.tools[key].source, []).append(key)
    for some in by_source.values():
        matrix = np.stack([vector_of[key] for key in some])
        for key, scores in zip(some, matrix @ matrix.T):
            order = np.argsort(-scores)[: 3 * NEIGHBOURS]
            data.near[key] = [some[at] for at in order if some[at] != key and scores[at] < ALIKE][:NEIGHBOURS]
    return vector_of


def train(data, tokenizer, base, steps, size, rate, seed, save, every=100):
    """Trains, `save(step, weights)` now and then; `steps` are those that the rate is planned for and those that are made.
    Returns the scales that the weights are rounded with."""
    planned, steps = steps
    vector_of = find_neighbours(data, tokenizer, base)
    scales = {name: quantise.quantise(base[name])[1].astype(np.float32) for name in model.MATRICES}
    scales = {name: jnp.asarray(np.where(value == 0, 6e-8, value)) for name, value in scales.items()}
    fixed = ("tokens", "positions")
    frozen = {name: jnp.asarray(base[name]) for name in fixed}
    trained = {name: jnp.asarray(value) for name, value in base.items() if name not in fixed}
    moments = tuple({name: jnp.zeros_like(value) for name, value in trained.items()} for _ in range(2))
    random, started, recent = randoms.Random(seed), time.time(), []
    for count in range(1, steps + 1):
        batch = encode_batch(tokenizer, data.batch(size, random), vector_of)
        now = rate * min(1.0, count / (0.08 * planned)) * (1 - count / planned * 0.95)
        trained, moments, value = step(trained, moments, frozen, scales, batch, now, count)
        recent.append(float(value))
        if count % 20 == 0:
            print(f"step {count}: loss {np.mean(recent[-20:]):.3f}, {time.time() - started:.0f} s", flush=True)
        if count % every == 0 or count == steps:
            save(count, {**base, **{name: np.asarray(value) for name, value in trained.items()}})
    return scales
