"""WordPiece as BERT's uncased models have it: the reference that the program's own tokenizer is checked against.

Text is cleaned, lower-cased, stripped of accents and split at white space, punctuation and ideographs; each word falls
into the longest pieces that the vocabulary has, from the left. A word that cannot be covered is one `[UNK]`.
"""

import unicodedata

UNKNOWN, BEGIN, END = "[UNK]", "[CLS]", "[SEP]"
# A longer word is not looked up piece by piece.
LONGEST_WORD = 100


def words(text):
    """The words of `text`: lower case, without accents, punctuation and ideographs each by themselves."""
    kept = []
    for c in text:
        category = unicodedata.category(c)
        if c in "\t\n\r" or category == "Zs":
            kept.append(" ")
        elif c in "\0\ufffd" or category in ("Cc", "Cf", "Co", "Cs"):
            continue
        elif is_ideograph(ord(c)):
            kept.append(f" {c} ")
        else:
            kept.append(c)
    lowered = unicodedata.normalize("NFD", "".join(kept)).lower()
    found = []
    for word in lowered.split():
        current = ""
        for c in word:
            if unicodedata.category(c) == "Mn":
                continue
            if is_punctuation(c):
                if current:
                    found.append(current)
                found.append(c)
                current = ""
            else:
                current += c
        if current:
            found.append(current)
    return found


def is_punctuation(c):
    return (c.isascii() and c.isprintable() and not c.isalnum() and c != " ") or unicodedata.category(c).startswith("P")


def is_ideograph(c):
    ranges = (
        (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
        (0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
    )
    return any(first <= c <= last for first, last in ranges)


class Tokenizer:
    """Pieces of a vocabulary, whose order gives the ids."""

    def __init__(self, vocabulary):
        self.vocabulary = list(vocabulary)
        self.ids = {piece: at for at, piece in enumerate(self.vocabulary)}
        self.unknown, self.begin, self.end = (self.ids[piece] for piece in (UNKNOWN, BEGIN, END))
        self.cache = {}

    def pieces(self, word):
        known = self.cache.get(word)
        if known is None:
            known = self.cache[word] = self._split(word)
        return known

    def _split(self, word):
        if len(word) > LONGEST_WORD:
            return [self.unknown]
        found, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = self.ids.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    break
            else:
                return [self.unknown]
            found.append(piece)
            start = end
        return found

    def encode(self, text, longest=128):
        """The ids of `text`, begin and end included, `longest` at most: what is too much is cut before the end."""
        ids = [self.begin]
        for word in words(text):
            ids.extend(self.pieces(word))
            if len(ids) >= longest:
                break
        return ids[: longest - 1] + [self.end]
