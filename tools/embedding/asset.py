"""Writing and reading the asset; FORMAT.md says what is where."""

import struct
import zlib

import numpy as np

import model
import quantise

MAGIC, VERSION = b"MCPZEMB\0", 2
HEADER = struct.Struct("<8s9IfIQ")
ALIGNMENT = 64
# The largest length that half a byte can hold.
LONGEST = 15


def sections(p):
    """Every tensor in the order of the file: its name and form."""
    yield "tokens", "4bit"
    yield "positions", "f16"
    yield "norm.weight", "f16"
    yield "norm.bias", "f16"
    for layer in range(model.LAYERS):
        for name in ("qkv", "out", "norm1", "up", "down", "norm2"):
            if name.startswith("norm"):
                yield f"{layer}.{name}.weight", "f16"
                yield f"{layer}.{name}.bias", "f16"
            else:
                yield f"{layer}.{name}", "4bit"
                yield f"{layer}.{name}.bias", "f16"


def pack_vocabulary(vocabulary):
    """Sorted pieces, each by what it does not share with the one before."""
    text, before = bytearray(), b""
    for piece in map(str.encode, vocabulary):
        if piece <= before:
            raise ValueError(f"{piece} does not come after {before}")
        shared = 0
        while shared < min(len(before), len(piece), LONGEST) and before[shared] == piece[shared]:
            shared += 1
        if len(piece) - shared > LONGEST:
            raise ValueError(f"{piece} has more than {LONGEST} bytes of its own")
        text.append(shared << 4 | len(piece) - shared)
        text += piece[shared:]
        before = piece
    return bytes(text)


def unpack_vocabulary(text):
    """The pieces that `pack_vocabulary` was given."""
    vocabulary, piece, at = [], b"", 0
    while at < len(text):
        shared, own = text[at] >> 4, text[at] & 15
        piece = piece[:shared] + text[at + 1 : at + 1 + own]
        vocabulary.append(piece.decode())
        at += 1 + own
    return vocabulary


def write(vocabulary, p, scales=None):
    """The asset's bytes. Matrices that have `scales` are rounded with these, all others with the best ones."""
    text = pack_vocabulary(vocabulary)
    blocks = [text]
    for name, form in sections(p):
        if form == "4bit":
            found, chosen = quantise.quantise(p[name], (scales or {}).get(name))
            blocks += [quantise.pack(found), chosen.astype("<f2").tobytes()]
        else:
            blocks.append(p[name].astype("<f2").tobytes())
    body = bytearray()
    for block in blocks:
        body += block + b"\0" * (-len(block) % ALIGNMENT)
    header = HEADER.pack(
        MAGIC, VERSION, model.DIMENSIONS, model.LAYERS, model.HEADS, model.INNER, len(vocabulary), len(p["positions"]),
        quantise.GROUP, len(text), model.EPSILON, zlib.crc32(body), ALIGNMENT + len(body),
    )
    return header.ljust(ALIGNMENT, b"\0") + bytes(body)


def shapes(vocabulary, positions):
    d, inner = model.DIMENSIONS, model.INNER
    known = {"tokens": (vocabulary, d), "positions": (positions, d), "qkv": (3 * d, d), "out": (d, d), "up": (inner, d),
             "down": (d, inner), "qkv.bias": (3 * d,), "up.bias": (inner,)}
    return lambda name: known.get(name if name in known else name.split(".", 1)[-1], (d,))


def read(data, scales_of=None):
    """Vocabulary and parameters, restored to float32, of an asset that `write` made. The dictionary `scales_of` gets the scales."""
    magic, version, _, _, _, _, pieces, positions, _, text, _, checksum, size = HEADER.unpack_from(data)
    if (magic, version, size) != (MAGIC, VERSION, len(data)) or zlib.crc32(data[ALIGNMENT:]) != checksum:
        raise ValueError("no asset of this version, or a damaged one")
    at = ALIGNMENT

    def take(length):
        nonlocal at
        block = data[at : at + length]
        at += length + -length % ALIGNMENT
        return block

    vocabulary = unpack_vocabulary(take(text))
    assert len(vocabulary) == pieces
    shape_of, p = shapes(pieces, positions), {}
    for name, form in sections(None):
        shape = shape_of(name)
        count = int(np.prod(shape))
        if form == "4bit":
            found = quantise.unpack(take(count // 2), shape)
            scales = np.frombuffer(take(count // quantise.GROUP * 2), "<f2").reshape(*shape[:-1], -1)
            p[name] = quantise.restore(found, scales)
            if scales_of is not None:
                scales_of[name] = scales.astype(np.float32)
        else:
            p[name] = np.frombuffer(take(count * 2), "<f2").reshape(shape).astype(np.float32)
    return vocabulary, p


def as_the_program_runs(p):
    """The parameters after the program's own last step, matrices in int8 rows; for `model.embed(..., int8=True)`."""
    return {name: quantise.to_int8_rows(value) if name in model.MATRICES else value for name, value in p.items()}
