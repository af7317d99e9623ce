#!/usr/bin/env python3
"""Measures what the words of a language model add to a search (`search.llm`), with a stand-in for the model.

    python3 tools/search/llm_words.py target/release/mcpzip ../shared/search-bench DIRECTORY

The real program runs through the benchmark's `drive.py`, and `score.py` scores it. The stand-in speaks OpenAI's protocol and knows the
labels, so it bounds what a model can do:

    local   no model
    words   keeps the local order, and where no relevant tool is among the hits, gives the first words of a relevant tool's description
    noise   keeps the local order, and always gives the words of another query's tool
"""
import json, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WORDS = 8


def main():
    program, bench, directory = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), Path(sys.argv[3])
    directory.mkdir(parents=True, exist_ok=True)
    corpus, queries = bench / "dev/corpus.json", bench / "dev/queries.jsonl"
    texts = {}
    for server in json.loads(corpus.read_text()):
        for tool in server["tools"]:
            texts[server["server"], tool["name"]] = tool.get("description") or tool["name"]
    needs = [json.loads(line) for line in queries.read_text().splitlines() if line]
    needs = [need for need in needs if need["relevant"]]
    wanted = {need["query"]: [(one["server"], one["tool"]) for one in need["relevant"]] for need in needs}
    # The first run lists the tools and makes their vectors.
    for mode in ("cold", "local", "words", "noise"):
        run = directory / f"{mode}.jsonl"
        wrap = '{"daemon": "off", "mcpServers": {servers}}'
        stand = None
        if mode not in ("cold", "local"):
            stand = serve(mode, wanted, texts, list(wanted))
            llm = {"provider": "openai", "model": "stand-in", "api_key": "none", "timeout": "5s",
                   "base_url": f"http://127.0.0.1:{stand.server_port}/v1"}
            wrap = '{"daemon": "off", "search": {"llm": %s}, "mcpServers": {servers}}' % json.dumps(llm)
        subprocess.run([sys.executable, bench / "drive.py", "--corpus", corpus, "--queries", queries, "--out", run,
                        "--proxy", f"{program} serve --config {{config}}", "--search-tool", "search_tools",
                        "--args", '{"limit": 20}', "--wrap", wrap, "--keep", directory / "kept", "--settle", "60" if mode == "cold" else "3"], check=True,
                       stdout=subprocess.DEVNULL)
        if mode == "cold":
            continue
        print(f"== {mode}" + (f": asked {stand.asked} times, gave words {stand.given} times" if stand else ""), flush=True)
        subprocess.run([sys.executable, bench / "score.py", "--queries", queries, "--run", run, "--corpus", corpus], check=True)
        if stand:
            stand.shutdown()


def serve(mode, wanted, texts, needs):
    class Model(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked = body["messages"][-1]["content"]
            need = next((need for need in needs if need in asked), None)
            tools = [] if need is None else [tool for tool in wanted[need] if tool in texts]
            names = [f"{server}__{tool}" for server, tool in tools]
            words = None
            if mode == "noise" and need is not None:
                other = wanted[needs[(needs.index(need) + len(needs) // 2) % len(needs)]]
                words = next((texts[tool] for tool in other if tool in texts), None)
            elif names and not any(name in asked for name in names):
                words = texts[tools[0]]
            answer = [] if "No tool was found" in asked else [1]
            if words:
                answer.append(" ".join(words.split()[:WORDS]))
                self.server.given += 1
            self.server.asked += 1
            text = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "stand-in", "choices": [
                {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(answer)}}]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.asked = server.given = 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


main()
