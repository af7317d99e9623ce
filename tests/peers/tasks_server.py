"""A server whose calls become tasks, by another implementation of the extension `io.modelcontextprotocol/tasks`."""

import asyncio
from datetime import timedelta

from fastmcp import Context, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

SOON = timedelta(milliseconds=500)

server = FastMCP("Tasks")
server.add_extension(TasksExtension())


@server.tool(task=TaskConfig(poll_interval=SOON))
async def add(a: int, b: int) -> int:
    """Adds two numbers, as a task if the client has tasks."""
    await asyncio.sleep(0.2)
    return a + b


@server.tool(task=TaskConfig(mode="required", poll_interval=SOON))
async def multiply(a: int, b: int) -> int:
    """Multiplies two numbers, as a task only."""
    await asyncio.sleep(0.2)
    return a * b


@server.tool(task=TaskConfig(mode="required", poll_interval=SOON))
async def ask(ctx: Context) -> str | InputRequiredResult:
    """Asks for a name, as a task only."""
    answers = ctx.input_responses or {}
    if "name" not in answers:
        schema = {"type": "object", "properties": {"value": {"type": "string"}}}
        params = ElicitRequestFormParams(message="Which name?", requested_schema=schema)
        return InputRequiredResult(input_requests={"name": ElicitRequest(params=params)})
    answer = answers["name"]
    return f"Hello, {answer.content['value']}." if answer.action == "accept" else "No name."


server.run(transport="stdio", show_banner=False)
