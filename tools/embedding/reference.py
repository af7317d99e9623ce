"""Reference vectors: what the program's tokenizer and encoder are tested against."""

import json

import model
import texts
import tokenizer

TEXTS = [
    "create_issue",
    "Create a new issue in a repository.",
    "list the files of a directory",
    "How much of the disk is still free?",
    "github: open pull requests by author",
    "serach teh wbe for recipies",
    "convert 12.50 USD to EUR, then send it by e-mail",
    "Café crème brûlée à la carte — naïve résumé",
    "天気予報を取得する",
    "查询火车票 from 北京 to 上海",
    "Прогноз погоды на завтра",
    "¿Dónde está la biblioteca?",
    "getHTTPResponseCode2xx(url: string) -> int",
    "🚀 deploy 🚀",
    "",
    "   \t\n ",
    "a\u0000b\ufffdc\u200dd",
    "x" * 101,
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "Returns the rows of a table that match a filter. " * 12,
]


def write(path, vocabulary, parameters):
    """Texts, ids and vectors (four decimals) as JSON, a line for each text."""
    known = tokenizer.Tokenizer(vocabulary)
    rows = [known.encode(text, texts.LONGEST_QUERY) for text in TEXTS]
    vectors = model.embed(parameters, rows)
    lines = [
        json.dumps({"text": text, "ids": row, "vector": [round(float(x), 4) for x in vector]}, ensure_ascii=True)
        for text, row, vector in zip(TEXTS, rows, vectors)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
