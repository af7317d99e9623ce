#!/usr/bin/env python3
"""Measures start and memory with the tools of the search benchmark alone, and with the operations of interfaces as well.

    python3 tools/openapi/beside.py PROGRAM BENCH DESCRIPTION...

BENCH is the directory of `search_quality`. The servers of its dev corpus are offered over HTTP on this machine, listed once and not needed
afterwards. Both configurations are started in turn, with all tools and vectors known and without a daemon. `--tools FILE` writes
the operations for `search_quality --with`.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import sweep

STARTS = 15
MEMORIES = 3


def offered(bench, port, home):
    """The entries of the corpus's servers, offered by the benchmark's own script."""
    corpus = bench / "dev/corpus.json"
    arguments = [sys.executable, "-I", "-S", bench / "fake_upstream.py", "--corpus", corpus, "--http", str(port)]
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=(home / "upstream.log").open("w"))
    servers = json.loads(corpus.read_text())
    names = [server["server"] for server in servers]
    tools = sum(len(server["tools"]) for server in servers)
    return process, tools, {name: {"url": f"http://127.0.0.1:{port}/{name}/mcp"} for name in names}


def environment(home, name, entries):
    config = home / f"{name}.json"
    config.write_text(json.dumps({"mcpServers": entries}))
    return {
        "PATH": os.environ["PATH"], "HOME": str(home), "MCPZIP_CONFIG": str(config), "MCPZIP_CACHE_DIR": str(home / f"cache-{name}"),
        "MCPZIP_STATE_DIR": str(home / "state"), "MCPZIP_DAEMON": "off", "MCPZIP_LOG": "error",
    }


def listed(program, variables, least):
    """All tools. Servers that a busy machine was too slow for are asked again, until there are as many tools as expected."""
    for _ in range(10):
        done = subprocess.run([program, "tools", "--json", "--schemas"], env=variables, capture_output=True, text=True, check=False)
        tools = json.loads(done.stdout) if done.returncode == 0 else []
        if len(tools) >= least:
            return tools
    sys.exit(f"{len(tools)} of {least} tools are listed: {done.stderr[-1000:]}")


def known(program, variables, cache, tools):
    """Waits until each tool has its vector, of 384 bytes, in the file of vectors."""
    session, end = sweep.Session(program, variables), time.time() + 1800
    session.ask(1, "tools/call", {"name": "search_tools", "arguments": {"query": "list all items"}})
    while sum(file.stat().st_size for file in cache.rglob("*.vectors")) < 384 * tools:
        if time.time() > end:
            sys.exit("half an hour was not enough for the vectors")
        time.sleep(1)
    session.end()


def memory(program, variables):
    session = sweep.Session(program, variables)
    time.sleep(6)
    status = pathlib.Path(f"/proc/{session.process.pid}/status").read_text()
    session.end()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def started(program, variables):
    start = time.perf_counter()
    session = sweep.Session(program, variables)
    handshake = time.perf_counter() - start
    session.ask(1, "tools/call", {"name": "search_tools", "arguments": {"query": "open a pull request"}})
    search = time.perf_counter() - start
    session.end()
    return handshake * 1000, search * 1000


def main():
    arguments = sys.argv[1:]
    file = arguments.pop(arguments.index("--tools") + 1) if "--tools" in arguments else None
    program, bench, *descriptions = [argument for argument in arguments if argument != "--tools"]
    with tempfile.TemporaryDirectory() as directory:
        home = pathlib.Path(directory)
        upstream, own, alone = offered(pathlib.Path(bench).resolve(), 18_724, home)
        interfaces = {}
        for path in descriptions:
            path = pathlib.Path(path).resolve()
            interfaces["api-" + path.stem] = {"openapi": str(path), "base_url": "http://127.0.0.1:9"}
        try:
            expected = sum(sweep.operations(pathlib.Path(path)) for path in descriptions)
            every = listed(program, environment(home, "interfaces", interfaces), expected)
            if file:
                pathlib.Path(file).write_text(json.dumps(every))
            both = {"alone": environment(home, "alone", alone), "with": environment(home, "with", {**alone, **interfaces})}
            least = {"alone": own, "with": own + len(every)}
            for name, variables in both.items():
                count = len(listed(program, variables, least[name]))
                known(program, variables, home / f"cache-{name}", count)
                print(name, count, "tools", flush=True)
        finally:
            upstream.terminate()
        times = {name: [] for name in both}
        for _ in range(STARTS):
            for name, variables in both.items():
                times[name].append(started(program, variables))
        memories = {name: [] for name in both}
        for _ in range(MEMORIES):
            for name, variables in both.items():
                memories[name].append(memory(program, variables))
        for name in both:
            handshake, search = (statistics.median(column) for column in zip(*times[name]))
            idle = statistics.median(memories[name])
            print(f"{name}: initialize {handshake:.1f} ms, first search {search:.1f} ms, idle {idle:.1f} MB")


if __name__ == "__main__":
    main()
