"""Python SDK 1.x: `client_v1.py MODE CALLS SERVER...`; there is one MODE, "legacy". See README.md for both ends."""

import asyncio
import json
import logging
import sys
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    _mode, calls, command, *args = sys.argv[1:]
    complaints: list[str] = []

    async def on_message(message: object) -> None:
        if isinstance(message, Exception):
            complaints.append(repr(message))

    def plain(result) -> dict:
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    if command.startswith("http://"):
        streams = streamable_http_client(command)
    else:
        streams = stdio_client(StdioServerParameters(command=command, args=args))
    async with streams as (read, write, *_):
        limit = timedelta(seconds=60)
        async with ClientSession(read, write, read_timeout_seconds=limit, message_handler=on_message) as session:
            hello = await session.initialize()
            tools = await session.list_tools()
            results = [plain(await session.call_tool(name, arguments)) for name, arguments in json.loads(calls)]
            report = {
                "protocol": hello.protocolVersion,
                "server": hello.serverInfo.name,
                "instructions": hello.instructions,
                "tools": [plain(tool) for tool in tools.tools],
                "results": results,
                "complaints": complaints,
            }
    print(json.dumps(report))


logging.basicConfig(level=logging.WARNING)
asyncio.run(main())
