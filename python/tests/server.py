"""A small MCP server on stdin and stdout for the tests: a tool that echoes, one that fails, one that asks, a prompt and a resource."""

import json
import sys

TOOLS = [
    {"name": "echo", "description": "Repeats a text", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "fail", "description": "Fails always", "inputSchema": {"type": "object"}},
    {"name": "ask", "description": "Asks the person for a color", "inputSchema": {"type": "object"}},
    {"name": "given", "description": "Answers with its arguments", "inputSchema": {"type": "object"}},
    {"name": "sleep", "description": "Never answers", "inputSchema": {"type": "object"}},
]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def main():
    waiting = None
    for line in sys.stdin:
        message = json.loads(line)
        method, identity, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            send({"id": waiting, "result": text(json.dumps(message.get("result", message.get("error"))))})
        elif method == "initialize":
            capabilities = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}}
            send({"id": identity, "result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "test", "version": "1"}}})
        elif method == "tools/list":
            send({"id": identity, "result": {"tools": TOOLS}})
        elif method == "prompts/list":
            send({"id": identity, "result": {"prompts": [{"name": "review", "arguments": [{"name": "language"}]}]}})
        elif method == "prompts/get":
            message = {"role": "user", "content": {"type": "text", "text": f"review {params['arguments']['language']}"}}
            send({"id": identity, "result": {"messages": [message]}})
        elif method == "resources/list":
            send({"id": identity, "result": {"resources": [{"uri": "memo://one", "name": "one"}]}})
        elif method == "resources/templates/list":
            send({"id": identity, "result": {"resourceTemplates": [{"uriTemplate": "memo://{name}", "name": "any"}]}})
        elif method == "resources/read":
            send({"id": identity, "result": {"contents": [{"uri": params["uri"], "text": "the memo"}]}})
        elif method == "completion/complete":
            send({"id": identity, "result": {"completion": {"values": ["Rust"]}}})
        elif method == "tools/call" and params["name"] == "echo":
            send({"method": "notifications/message", "params": {"level": "info", "data": "called"}})
            send({"id": identity, "result": text(params["arguments"].get("text", ""))})
        elif method == "tools/call" and params["name"] == "given":
            send({"id": identity, "result": text(json.dumps(params["arguments"]))})
        elif method == "tools/call" and params["name"] == "fail":
            send({"id": identity, "result": text("on purpose", isError=True)})
        elif method == "tools/call" and params["name"] == "ask":
            waiting = identity
            schema = {"type": "object", "properties": {"color": {"type": "string"}}}
            send({"id": "q1", "method": "elicitation/create", "params": {"message": "Which color?", "requestedSchema": schema}})
        elif method == "notifications/cancelled":
            sys.stderr.write("cancelled\n")
            sys.stderr.flush()
        elif identity is not None and method != "tools/call":
            send({"id": identity, "result": {}})


main()
