"""Which pieces of the base vocabulary are kept; what is not there splits into smaller ones that are."""

import tokenizer


def prune(vocabulary, texts, size):
    """`size` pieces, in the order of their bytes: the special ones, single characters, all pieces that occur in `texts`, and
    as many of the others as fit, from the front of the base, where its frequent ones are."""
    base = tokenizer.Tokenizer(vocabulary)
    special = [tokenizer.UNKNOWN, tokenizer.BEGIN, tokenizer.END]
    occurring = {piece for text in texts for word in tokenizer.words(text) for piece in base.pieces(word)}
    kept = set(special)
    candidates = [at for at, piece in enumerate(vocabulary) if is_usable(piece)]
    for wanted in (
        lambda at: len(vocabulary[at].removeprefix("##")) == 1,
        lambda at: at in occurring,
        lambda at: vocabulary[at].isascii(),
    ):
        for at in candidates:
            if len(kept) == size:
                break
            if wanted(at):
                kept.add(vocabulary[at])
    return sorted(kept, key=str.encode)


def is_usable(piece):
    return not (piece.startswith("[") and piece.endswith("]") and len(piece) > 1)
