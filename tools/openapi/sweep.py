#!/usr/bin/env python3
"""Lists the tools of real OpenAPI descriptions with the program, and checks what it says of them.

    python3 tools/openapi/fetch.py DIRECTORY
    pip install jsonschema pyyaml regex
    python3 tools/openapi/sweep.py PROGRAM DIRECTORY

For each file: the operations in it, counted independently; the tools; names that are illegal or not different; schemas that are not
valid JSON Schema (2020-12); the median and the largest input schema; seconds and peak memory of one `mcpzip tools`, without a cache.
With `--calls`, each tool is also called once with arguments made from its schema, against a local server that answers `{}`.
`--page FILE` writes the figures as the page `docs/interfaces.md`; `--note TEXT` says more of the build or the machine. A file `*.graphql.json` is the answer to an introspection.
"""

import http.server
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import jsonschema
import regex
import yaml

METHODS = {"get", "put", "post", "delete", "options", "head", "patch", "trace"}


PATTERNS = jsonschema.FormatChecker(formats=())
# Python's own patterns have no `\\p{…}`, which those of JSON Schema have.
PATTERNS.checks("regex", regex.error)(lambda pattern: not isinstance(pattern, str) or bool(regex.compile(pattern)))


class Loader(yaml.SafeLoader):
    """Leaves dates and numbers in keys as they are written."""


Loader.yaml_implicit_resolvers = {
    letter: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for letter, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


# Texts for schemas with a pattern.
TEXTS = ["1", "X", "xxx", "x-1", "a@example.org", "https://example.org/x", "2026-01-31", "2026-01-31T00:00:00Z", "0" * 32, "#000000",
         "00000000-0000-4000-8000-000000000000"]


def is_graphql(path):
    return path.name.endswith(".graphql.json")


def introspection(answer):
    return answer.get("data", answer)


def operations(path):
    text = path.read_text(encoding="utf-8-sig")
    if is_graphql(path):
        schema = introspection(json.loads(text))["__schema"]
        roots = [(schema.get(key) or {}).get("name") for key in ("queryType", "mutationType")]
        return sum(len(kind["fields"]) for kind in schema["types"] if kind["name"] in roots)
    document = json.loads(text) if path.suffix == ".json" else yaml.load(text, Loader)
    paths = document.get("paths") or {}
    items = [item for name, item in paths.items() if str(name).startswith("/") and isinstance(item, dict)]
    return sum(1 for item in items for method in item if method in METHODS)


class Echo(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        asked = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = b"{}"
        if self.server.schema and b"__schema" in asked:
            body = self.server.schema
        else:
            self.server.count += 1
            body = b'{"data": {}}' if self.server.schema else body
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_DELETE = do_OPTIONS = do_HEAD = do_PATCH = do_TRACE = answer

    def log_message(self, *_):
        pass


def configured(home, path, base):
    config = home / "config.json"
    entry = {"graphql": base + "/graphql"} if is_graphql(path) else {"openapi": str(path), "base_url": base}
    config.write_text(json.dumps({"mcpServers": {"x": entry}}))
    return {
        "PATH": os.environ["PATH"], "HOME": str(home), "MCPZIP_CONFIG": str(config), "MCPZIP_CACHE_DIR": str(home / "cache"),
        "MCPZIP_STATE_DIR": str(home / "state"), "MCPZIP_DAEMON": "off", "MCPZIP_LOG": "error",
    }


def value(schema, depth=0):
    """A value that a schema permits, of the required members only."""
    if not isinstance(schema, dict) or depth > 12:
        return "x"
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if "default" in schema and jsonschema.Draft202012Validator(schema).is_valid(schema["default"]):
        return schema["default"]
    for key in ("oneOf", "anyOf"):
        if schema.get(key):
            return value({**{k: v for k, v in schema.items() if k != key}, **schema[key][0]}, depth + 1)
    if schema.get("allOf"):
        merged = {k: v for k, v in schema.items() if k != "allOf"}
        for part in schema["allOf"]:
            if isinstance(part, dict):
                properties = {**merged.get("properties", {}), **part.get("properties", {})}
                required = merged.get("required", []) + part.get("required", [])
                merged = {**merged, **part, "properties": properties, "required": required}
        return value(merged, depth + 1) if "allOf" not in merged else {}
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" or kind is None and "properties" in schema:
        properties = schema.get("properties", {})
        return {name: value(properties.get(name, {}), depth + 1) for name in schema.get("required", [])}
    if kind == "array":
        return [value(schema.get("items", {}), depth + 1)] * schema.get("minItems", 1)
    if kind in ("integer", "number"):
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
        step = schema.get("multipleOf")
        return step if step else (int(low) if float(low).is_integer() else low)
    if kind == "boolean":
        return True
    if kind == "null":
        return None
    text = "x" * max(1, min(schema.get("minLength", 1), 5000))
    return next((one for one in [text, *TEXTS] if regex.search(schema.get("pattern", ""), one)), text)


class Session:
    """A session with the program."""

    def __init__(self, program, environment):
        self.process = subprocess.Popen([program, "serve"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.ask(0, "initialize",
                 {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "sweep", "version": "1"}})

    def ask(self, number, method, params):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == number and "method" not in message:
                return message

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def started(program, environment):
    """Milliseconds from the start to the handshake and to the first search, and the idle memory, with known tools."""
    handshakes, searches = [], []
    for _ in range(5):
        start = time.perf_counter()
        session = Session(program, environment)
        handshakes.append(time.perf_counter() - start)
        session.ask(1, "tools/call", {"name": "search_tools", "arguments": {"query": "list all items"}})
        searches.append(time.perf_counter() - start)
        session.end()
    session = Session(program, environment)
    time.sleep(2)
    status = pathlib.Path(f"/proc/{session.process.pid}/status").read_text()
    memory = int(re.search(r"VmRSS:\s+(\d+)", status)[1]) // 1024
    session.end()
    return round(statistics.median(handshakes) * 1000, 1), round(statistics.median(searches) * 1000, 1), memory


def called(program, environment, tools):
    """The tools that were refused before a request."""
    session = Session(program, environment)
    refused = []
    for number, tool in enumerate(tools, 1):
        arguments = value(tool["definition"]["inputSchema"])
        answer = session.ask(number, "tools/call", {"name": "execute_tool", "arguments": {"name": tool["name"], "arguments": arguments}})
        result = answer.get("result", {})
        if result.get("isError") or "error" in answer:
            refused.append((tool["name"], json.dumps(result.get("content", answer))[:300]))
    session.end()
    return refused


def measure(program, path, calls):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    server.count = 0
    server.schema = None
    if is_graphql(path):
        server.schema = json.dumps({"data": introspection(json.loads(path.read_text()))}).encode()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        environment = configured(home, path.resolve(), f"http://127.0.0.1:{server.server_port}")
        start = time.time()
        output = home / "tools.json"
        with output.open("wb") as out:
            # A child of a large process would count that one's memory.
            measured = ["/usr/bin/time", "-f", "%M", program, "tools", "x", "--json", "--schemas"]
            process = subprocess.run(measured, env=environment, stdout=out, stderr=subprocess.PIPE, text=True)
        took = time.time() - start
        said = process.stderr.strip()
        if process.returncode != 0:
            return {"name": path.stem, "error": said[-200:]}
        tools = json.loads(output.read_text())
        names = [tool["definition"]["name"] for tool in tools]
        illegal = [name for name in names if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)]
        invalid = []
        for tool in tools:
            for key in ("inputSchema", "outputSchema"):
                schema = tool["definition"].get(key)
                try:
                    if schema is not None:
                        jsonschema.Draft202012Validator.check_schema(schema, format_checker=PATTERNS)
                except jsonschema.SchemaError as error:
                    invalid.append((tool["name"], key, error.message[:100]))
        sizes = [len(json.dumps(tool["definition"]["inputSchema"], separators=(",", ":"))) for tool in tools] or [0]
        handshake, search, idle = started(program, environment)
        refused = called(program, environment, tools) if calls else []
        return {
            "name": path.stem, "kB": path.stat().st_size // 1024, "operations": operations(path), "tools": len(tools),
            "illegal": len(illegal), "same": len(names) - len(set(names)), "invalid": invalid,
            "median": int(statistics.median(sizes)), "largest": max(sizes), "seconds": round(took, 2),
            "MB": int(said.splitlines()[-1]) // 1024, "refused": refused, "requests": server.count,
            "handshake": handshake, "search": search, "idle": idle,
        }


COLUMNS = ["name", "kB", "operations", "tools", "illegal names", "equal names", "invalid schemas", "median schema, bytes", "largest", "s", "MB", "start, ms", "first search, ms", "idle MB"]
CALLS = ["refused calls", "requests"]

PAGE = """# How well OpenAPI descriptions are read

The tools of an HTTP API (`"openapi": …` and `"graphql": …`, [guide](../website/src/content/docs/guides/openapi.md)) are made from its description. This
page lists and calls every operation of real descriptions: `python3 tools/openapi/fetch.py DIRECTORY`, then
`python3 tools/openapi/sweep.py PROGRAM DIRECTORY --calls --page docs/interfaces.md`, which makes the page. {machine}

*Operations* are counted in the file by the script, *tools* are those that `mcpzip tools` lists. Names must be legal and different, and schemas valid JSON Schema
(2020-12). Seconds and megabytes are those of one `mcpzip tools --schemas` without a cache, which reads the description. *Start* and *first search* are the medians of
five starts of `mcpzip serve` that knows the tools, without a daemon, and *idle MB* is its resident memory two seconds after a start. Each tool is called once, with arguments that the script makes from the shown schema, against a
local server: *refused* are calls that sent nothing, *requests* those that arrived. The script makes values of the parts that are shown, so a refused call is often
its own fault. The descriptions named `after-…` were not used while the reader was written.

{table}

In all: {operations} operations, {tools} tools, {illegal} illegal and {same} equal names, {invalid} invalid schemas, {requests} requests of {calls} calls.
"""


def written(rows, columns):
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def main():
    arguments = sys.argv[1:]
    page = arguments.pop(arguments.index("--page") + 1) if "--page" in arguments else None
    note = " " + arguments.pop(arguments.index("--note") + 1) if "--note" in arguments else ""
    calls = "--calls" in arguments
    program, directory = [argument for argument in arguments if not argument.startswith("--")]
    columns = COLUMNS + CALLS * calls
    print(" | ".join(columns))
    rows, measured = [], []
    for path in sorted(pathlib.Path(directory).iterdir()):
        row = measure(program, path, calls)
        if "error" in row:
            print(row["name"], "|", row["error"])
            rows.append([row["name"], row["error"]] + [""] * (len(columns) - 2))
            continue
        cells = [row[key] for key in ("name", "kB", "operations", "tools", "illegal", "same")]
        cells += [len(row["invalid"])] + [row[key] for key in ("median", "largest", "seconds", "MB", "handshake", "search", "idle")]
        if calls:
            cells += [len(row["refused"]), row["requests"]]
        rows.append(cells)
        measured.append(row)
        print(" | ".join(str(cell) for cell in cells), flush=True)
        for what in row["invalid"][:3] + row["refused"][:3]:
            print("    ", *what)
    if page:
        total = {key: sum(row[key] for row in measured) for key in ("operations", "tools", "illegal", "same", "requests")}
        total["invalid"] = sum(len(row["invalid"]) for row in measured)
        total["calls"] = total["tools"] if calls else 0
        machine = f"Measured on {time.strftime('%Y-%m-%d')}, on {os.cpu_count()} cores that had other work.{note}"
        pathlib.Path(page).write_text(PAGE.format(table=written(rows, columns), machine=machine, **total))


if __name__ == "__main__":
    main()
