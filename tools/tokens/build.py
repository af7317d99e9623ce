"""Packs the ranks of the encoding o200k_base, which are 3.6 MB as they are published, into the asset that counts tokens.

    python3 tools/tokens/build.py o200k_base.tiktoken src/cli/tokens.bin

The input is the file that OpenAI publishes with tiktoken (MIT); the crate tiktoken-rs carries it in assets/. A test of
src/cli/tokens.rs compares the asset with the crate's own table.

The output is one deflate stream of six columns, with a value for each token, the tokens in the order of their bytes: how
many bytes a token shares with the one before, how many others it has, those bytes, and the low, middle and high byte of
its rank. Three bytes before it tell the number of tokens, the lowest first.
"""

import base64
import sys
import zlib


def main(source, target):
    ranks = {}
    with open(source, encoding="ascii") as lines:
        for line in lines:
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
    shared, lengths, rest = bytearray(), bytearray(), bytearray()
    before = b""
    for token in sorted(ranks):
        same = 0
        while same < min(len(before), len(token)) and before[same] == token[same]:
            same += 1
        shared.append(same)
        lengths.append(len(token) - same)
        rest += token[same:]
        before = token
    planes = [bytes(ranks[token] >> shift & 255 for token in sorted(ranks)) for shift in (0, 8, 16)]
    packed = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
    with open(target, "wb") as out:
        out.write(len(ranks).to_bytes(3, "little"))
        for column in (bytes(shared), bytes(lengths), bytes(rest), *planes):
            out.write(packed.compress(column))
            out.write(packed.flush(zlib.Z_FULL_FLUSH))
        out.write(packed.flush())


main(*sys.argv[1:])
