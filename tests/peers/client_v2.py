"""Python SDK 2.x: `client_v2.py MODE CALLS SERVER...`; MODE is "legacy" or "auto". See README.md for both ends."""

import asyncio
import json
import logging
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    mode, calls, command, *args = sys.argv[1:]
    complaints: list[str] = []

    async def on_message(message: object) -> None:
        if isinstance(message, Exception):
            complaints.append(repr(message))

    def plain(result) -> dict:
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    server = command if command.startswith("http://") else StdioServerParameters(command=command, args=args)
    async with Client(server, mode=mode, message_handler=on_message, read_timeout_seconds=60) as client:
        tools = await client.list_tools()
        results = [plain(await client.call_tool(name, arguments)) for name, arguments in json.loads(calls)]
        report = {
            "protocol": client.protocol_version,
            "server": client.server_info.name if client.server_info else None,
            "instructions": client.instructions,
            "tools": [plain(tool) for tool in tools.tools],
            "results": results,
            "complaints": complaints,
        }
    print(json.dumps(report))


logging.basicConfig(level=logging.WARNING)
asyncio.run(main())
