"""An agent as frameworks build it, over all tools of a configuration: `python agent_loop.py mcp.json`.

The model is a stand-in that says what a model would: it searches, calls what it found, and answers.
"""

import asyncio
import os
import sys
from dataclasses import dataclass, field

import mcpzip


@dataclass
class Message:
    """A turn of the conversation, in the form that chat models share: a role, a text, and calls of tools."""

    role: str
    content: str = ""
    tool_calls: list[dict] = field(default_factory=list)


class StandIn:
    """A model that follows a script. Put a client of yours here: it gets the messages and the tools that it may call."""

    def invoke(self, messages: list[Message], tools: dict) -> Message:
        last = messages[-1]
        if last.role == "user":
            return Message("assistant", tool_calls=[{"name": "search_tools", "arguments": {"need": "repeat a text"}}])
        if len(messages) == 3:
            best = last.content.splitlines()[0]
            call = {"name": best, "arguments": {"text": "hello"}}
            return Message("assistant", tool_calls=[{"name": "execute_tool", "arguments": call}])
        return Message("assistant", f"the answer: {last.content}")


async def main(config: str) -> None:
    async with mcpzip.Runner(config_file=config, environment=os.environ) as runner:

        async def search_tools(need: str) -> str:
            return "\n".join(found.name for found in (await runner.search(need, 5)).found)

        async def execute_tool(name: str, arguments: dict) -> str:
            # A failure is for the model, which may do better.
            try:
                return (await runner.execute(name, arguments)).text
            except mcpzip.Error as error:
                return f"{error.kind}: {error}"

        tools = {"search_tools": search_tools, "execute_tool": execute_tool}
        model, messages = StandIn(), [Message("user", "Say hello through a tool.")]
        while True:
            turn = model.invoke(messages, tools)
            messages.append(turn)
            if not turn.tool_calls:
                break
            for call in turn.tool_calls:
                messages.append(Message("tool", await tools[call["name"]](**call["arguments"])))
        for message in messages:
            print(f"{message.role}: {message.content or message.tool_calls}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
