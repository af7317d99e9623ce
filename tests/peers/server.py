"""A small server on one of the three Python frameworks: `server.py MODULE CLASS TRANSPORT`. Over HTTP the log names its port."""

import importlib
import sys

import uvicorn

module, name, transport = sys.argv[1:]
Framework = getattr(importlib.import_module(module), name)
# Each framework takes the port in another place.
port = {} if transport == "stdio" else {"host": "127.0.0.1", "port": 0}
server = Framework("server-py", **(port if module == "mcp.server.fastmcp" else {}))


@server.tool()
def echo(message: str) -> str:
    """Echoes a message back"""
    return f"Echo: {message}"


@server.tool()
def add(a: float, b: float) -> str:
    """Adds two numbers"""
    return str(a + b)


if module == "mcp.server.fastmcp":
    server.run(transport=transport)
elif module == "fastmcp" and port:
    # To its own `run`, 0 is no port.
    uvicorn.run(server.http_app(transport=transport), **port)
elif module == "fastmcp":
    server.run(show_banner=False)
else:
    server.run(transport=transport, **port)
