"""The encoder of all-MiniLM-L6-v2 in JAX, and its simulation in the arithmetic that the program uses.

Parameters are a dictionary of float32 arrays, named as in FORMAT.md. Matrices are `[out][in]`. Two things are folded
in when the weights are read: the token type's row into the positions, and 1/sqrt(head size) into the queries.
"""

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

LAYERS, HEADS, DIMENSIONS, INNER = 6, 12, 384, 1536
POSITIONS = 128
EPSILON = 1e-12
MATRICES = tuple(f"{layer}.{name}" for layer in range(LAYERS) for name in ("qkv", "out", "up", "down"))


def read_safetensors(path):
    """All float tensors of a safetensors file."""
    data = Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(data[first:last], np.float32).reshape(entry["shape"])
    return tensors


def read_base(directory):
    """Vocabulary and parameters of the base model from its directory (`vocab.txt`, `model.safetensors`)."""
    directory = Path(directory)
    vocabulary = (directory / "vocab.txt").read_text(encoding="utf-8").splitlines()
    raw = read_safetensors(directory / "model.safetensors")
    scale = 1 / math.sqrt(DIMENSIONS // HEADS)
    p = {
        "tokens": raw["embeddings.word_embeddings.weight"],
        "positions": raw["embeddings.position_embeddings.weight"][:POSITIONS]
        + raw["embeddings.token_type_embeddings.weight"][0],
        "norm.weight": raw["embeddings.LayerNorm.weight"],
        "norm.bias": raw["embeddings.LayerNorm.bias"],
    }
    for layer in range(LAYERS):
        at = f"encoder.layer.{layer}."
        for part in ("weight", "bias"):
            query, key, value = (raw[f"{at}attention.self.{n}.{part}"] for n in ("query", "key", "value"))
            tail = "" if part == "weight" else ".bias"
            p[f"{layer}.qkv{tail}"] = np.concatenate([query * np.float32(scale), key, value])
            p[f"{layer}.out{tail}"] = raw[f"{at}attention.output.dense.{part}"]
            p[f"{layer}.up{tail}"] = raw[f"{at}intermediate.dense.{part}"]
            p[f"{layer}.down{tail}"] = raw[f"{at}output.dense.{part}"]
            p[f"{layer}.norm1.{part}"] = raw[f"{at}attention.output.LayerNorm.{part}"]
            p[f"{layer}.norm2.{part}"] = raw[f"{at}output.LayerNorm.{part}"]
    return vocabulary, {name: np.array(value, np.float32) for name, value in p.items()}


def normalize(x, weight, bias):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + EPSILON) * weight + bias


def linear(x, p, name):
    return x @ p[name].T + p[f"{name}.bias"]


def _dot(x, y, dimensions):
    """A product in bfloat16 with sums in float32: several times faster where the processor has such units."""
    x, y = x.astype(jnp.bfloat16), y.astype(jnp.bfloat16)
    return jax.lax.dot_general(x, y, (dimensions, ((), ())), preferred_element_type=jnp.float32)


@jax.custom_vjp
def _product(x, weights):
    return _dot(x, weights, ((1,), (1,)))


def _product_forth(x, weights):
    x, weights = x.astype(jnp.bfloat16), weights.astype(jnp.bfloat16)
    return _dot(x, weights, ((1,), (1,))), (x, weights)


def _product_back(kept, gradient):
    x, weights = kept
    return _dot(gradient, weights, ((1,), (0,))), _dot(gradient, x, ((0,), (0,)))


_product.defvjp(_product_forth, _product_back)


def linear_bfloat16(x, p, name):
    """As `linear`, in bfloat16, for training."""
    rows = _product(x.reshape(-1, x.shape[-1]), p[name])
    return rows.reshape(*x.shape[:-1], -1) + p[f"{name}.bias"]


def round_activations(x):
    """Each token's row to int8 steps of its largest value / 127."""
    scale = jnp.maximum(jnp.abs(x).max(-1, keepdims=True), 1e-12) / 127
    return jnp.round(x / scale) * scale


def linear_int8(x, p, name):
    """As `linear`, with the activations in int8 per token; the weights in `p` are in int8 per row already."""
    return linear(round_activations(x), p, name)


def states(p, ids, mask, linear=linear):
    """The vectors of all pieces after the last layer, `[batch][length][384]`, of ids `[batch][length]` where `mask` is 1."""
    batch, length = ids.shape
    x = normalize(p["tokens"][ids] + p["positions"][:length], p["norm.weight"], p["norm.bias"])
    away = (1.0 - mask[:, None, None, :]) * -1e9
    for layer in range(LAYERS):
        qkv = linear(x, p, f"{layer}.qkv").reshape(batch, length, 3, HEADS, DIMENSIONS // HEADS)
        q, k, v = (qkv[:, :, part].transpose(0, 2, 1, 3) for part in range(3))
        attention = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) + away, axis=-1)
        mixed = (attention @ v).transpose(0, 2, 1, 3).reshape(batch, length, DIMENSIONS)
        x = normalize(x + linear(mixed, p, f"{layer}.out"), p[f"{layer}.norm1.weight"], p[f"{layer}.norm1.bias"])
        inner = jax.nn.gelu(linear(x, p, f"{layer}.up"), approximate=False)
        x = normalize(x + linear(inner, p, f"{layer}.down"), p[f"{layer}.norm2.weight"], p[f"{layer}.norm2.bias"])
    return x


def forward(p, ids, mask, linear=linear):
    """Sentence vectors of unit length, `[batch][384]`: the mean of the vectors of the pieces."""
    x = states(p, ids, mask, linear)
    total = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    return total / jnp.linalg.norm(total, axis=-1, keepdims=True)


_forward = jax.jit(forward)
_forward_int8 = jax.jit(lambda p, ids, mask: forward(p, ids, mask, linear_int8))
_forward_bfloat16 = jax.jit(lambda p, ids, mask: forward(p, ids, mask, linear_bfloat16))
LENGTHS = (8, 12, 16, 24, 32, 48, 64, 96, 128)


def pad(rows, length):
    """Ids and mask of some rows, padded to `length`."""
    ids, mask = np.zeros((len(rows), length), np.int32), np.zeros((len(rows), length), np.float32)
    for at, row in enumerate(rows):
        ids[at, : len(row)], mask[at, : len(row)] = row, 1
    return ids, mask


def embed(p, rows, int8=False, tokens=4096, is_quick=False):
    """Vectors of tokenized texts. Rows of like length go together, in a few shapes, each compiled once."""
    run = _forward_int8 if int8 else _forward_bfloat16 if is_quick else _forward
    p = {name: jnp.asarray(value) for name, value in p.items()}
    result = np.zeros((len(rows), DIMENSIONS), np.float32)
    for shorter, length in zip((0, *LENGTHS), LENGTHS):
        places = [at for at, row in enumerate(rows) if shorter < len(row) <= length]
        size = tokens // length
        for start in range(0, len(places), size):
            some = places[start : start + size]
            batch = [rows[at] for at in some] + [[0]] * (size - len(some))
            result[some] = np.asarray(run(p, *pad(batch, length)))[: len(some)]
    return result
