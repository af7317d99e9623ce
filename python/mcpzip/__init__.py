"""Many MCP servers in one Python program: start, search, call and serve them.

    async with mcpzip.Runner(config_file="mcp.json", environment=os.environ) as runner:
        search = await runner.search("what time is it in Tokyo", 5)
        result = await runner.execute(search.found[0].name, {"timezone": "Asia/Tokyo"})
        print(result.text)

It is the engine of the program `mcpzip`. Nothing is read from the environment or written to disk unless the settings say so.
"""

from __future__ import annotations

import inspect
import json
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _native
from ._errors import Error
from ._native import HttpServer, __version__

__all__ = [
    "Client",
    "Consent",
    "Error",
    "Event",
    "Found",
    "Handler",
    "HttpServer",
    "Outcome",
    "Prompt",
    "Resource",
    "Result",
    "Runner",
    "SearchResult",
    "Status",
    "Tool",
    "tool",
    "__version__",
]

Json = Any
"""A value of JSON: `None`, `bool`, `int`, `float`, `str`, a list or a dict with names."""


@dataclass(frozen=True)
class Tool:
    """A tool of a server. `call` is the function of a tool of the program, made by `tool`."""

    name: str
    description: str = ""
    input_schema: Json = field(default_factory=lambda: {"type": "object"})
    server: str = ""
    title: str | None = None
    output_schema: Json = None
    annotations: Json = None
    call: Callable[..., Any] | None = field(default=None, repr=False, compare=False)

    @property
    def qualified_name(self) -> str:
        """The name for `Runner.execute`: `server__tool`."""
        return f"{self.server}__{self.name}"


@dataclass(frozen=True)
class Found:
    """A tool that a search found: its name for `Runner.execute`, how well it fits, and its signature in words for a model."""

    name: str
    score: float
    signature: str


@dataclass(frozen=True)
class SearchResult:
    """The result of a search: the tools, best first, and the servers whose tools are not known, each with the reason."""

    found: list[Found]
    not_searched: list[str]


@dataclass(frozen=True)
class Consent:
    """A call of the program that a rule of the configuration (`tools.ask`) names. `question` has it for a person: the arguments exactly as they
    are sent, with invisible characters written out."""

    server: str
    tool: str
    arguments: Json
    question: str


@dataclass(frozen=True)
class Result:
    """The result of a call, as the server gave it."""

    value: dict[str, Json]

    @property
    def is_error(self) -> bool:
        """Whether the tool says that it failed."""
        return bool(self.value.get("isError"))

    @property
    def content(self) -> list[Json]:
        """The content blocks."""
        content = self.value.get("content")
        return content if isinstance(content, list) else []

    @property
    def structured(self) -> Json:
        """The structured content, or `None`."""
        return self.value.get("structuredContent")

    @property
    def text(self) -> str:
        """The texts among the content, a line break between them."""
        blocks = (block.get("text") for block in self.content if isinstance(block, dict))
        return "\n".join(text for text in blocks if isinstance(text, str))

    def data(self) -> Json:
        """The structured content; or else the text, read as JSON if it is."""
        if self.structured is not None:
            return self.structured
        try:
            return json.loads(self.text)
        except ValueError:
            return self.text


@dataclass(frozen=True)
class Status:
    """The state of a server: `idle`, `starting`, `ready`, `failed` or `disabled`."""

    server: str
    state: str
    reason: str | None
    tools: int
    software: str | None


@dataclass(frozen=True)
class Event:
    """What happened to a server: `starting`, `ready`, `failed` (with a reason), `stopped`, `tools_changed` or `login_needed`; or `missed`, the
    number of events that the program was too slow for."""

    kind: str
    server: str | None = None
    reason: str | None = None
    missed: int | None = None


@dataclass(frozen=True)
class Prompt:
    """A prompt of a server."""

    name: str
    title: str | None
    description: str | None
    arguments: list[Json]


@dataclass(frozen=True)
class Resource:
    """A resource of a server, or a template of resources."""

    uri: str
    name: str
    title: str | None
    description: str | None
    mime_type: str | None


@dataclass(frozen=True)
class Outcome:
    """How the start of a server ended: `error` is `None` if it is ready."""

    server: str
    error: Error | None


class Handler:
    """Answers the questions of servers and receives their messages, and decides about calls of the program that a rule of `tools.ask` names.
    Override what you answer, and name the kinds of questions of servers in the class:

        class Terminal(mcpzip.Handler):
            elicitation = True

            async def elicit(self, server, request):
                return {"action": "decline"}

            async def consent(self, consent):
                return input(f"{consent.question} [y/N] ") == "y"

    An exception refuses the one question; the call that it belongs to goes on. Its server gets the text of an `Error`, such as
    `Error("Denied", "nobody is here")`, and "the handler failed" for any other exception, which goes to the logger `mcpzip`.
    """

    elicitation: bool = False
    sampling: bool = False
    roots_listed: bool = False

    async def consent(self, consent: Consent) -> bool:
        """Whether the program may make this call. No server can send this question. By default the call is refused at once."""
        raise Error("Denied", "no handler decides about such calls")

    async def elicit(self, server: str, request: dict[str, Json]) -> dict[str, Json]:
        """Answers `elicitation/create` of a server: the result with its `action`. An acceptance here permits no call: see `consent`."""
        raise Error("Denied", "questions to a person are not answered")

    async def sample(self, server: str, request: dict[str, Json]) -> dict[str, Json]:
        """Answers `sampling/createMessage`: the message of the model."""
        raise Error("Denied", "there is no model")

    async def roots(self, server: str) -> Sequence[str | os.PathLike[str]]:
        """The directories that a server may work in."""
        return []

    def progress(self, progress: dict[str, Json]) -> None:
        """Receives the progress of a call: `tool`, `progress`, `total`, `message`. It must not block."""

    def log(self, message: dict[str, Json]) -> None:
        """Receives a log message of a server: `level`, `logger`, `data`. It must not block."""


def tool(
    name: str, description: str, input_schema: Json = None, *, annotations: Json = None
) -> Callable[[Callable[..., Any]], Tool]:
    """Makes a function a tool of the program. It gets the arguments by name, and may be `async`. `annotations` are hints on what it
    does, such as `{"readOnlyHint": True}`.

        @mcpzip.tool("add", "Adds two numbers", {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}})
        def add(a: float, b: float) -> float:
            return a + b
    """

    def made(call: Callable[..., Any]) -> Tool:
        return Tool(name, description, input_schema or {"type": "object"}, annotations=annotations, call=call)

    return made


class Runner:
    """Many MCP servers, as one. Use it as `async with Runner(…) as runner`; its end ends the servers that it started.

    `servers` has entries of a configuration file by name, such as `{"time": {"command": "uvx", "args": ["mcp-server-time"]}}`, and lists of
    functions that `tool` made. `directories` are those for the cache and for the state; without them nothing is written to disk. `environment` has
    the variables that the configuration may refer to and that servers may inherit, such as `os.environ`; there are none by default.
    """

    def __init__(
        self,
        *,
        config_file: str | os.PathLike[str] | None = None,
        config_str: str | None = None,
        servers: Mapping[str, Mapping[str, Json] | Sequence[Tool]] | None = None,
        environment: Mapping[str, str] | None = None,
        working_directory: str | os.PathLike[str] | None = None,
        directories: tuple[str | os.PathLike[str], str | os.PathLike[str]] | None = None,
        handler: Handler | None = None,
    ) -> None:
        entries: dict[str, Json] = {}
        self._inside: list[tuple[str, str, _Tools]] = []
        for name, server in (servers or {}).items():
            if isinstance(server, Mapping):
                entries[name] = dict(server)
            else:
                shown = [{name: getattr(one, name) for name in _SHOWN} for one in server]
                self._inside.append((name, json.dumps(shown), _Tools(server)))
        cache, state = directories or (None, None)
        self._settings = json.dumps(
            {
                "config_file": _path(config_file),
                "config_str": config_str,
                "servers": entries,
                "environment": dict(environment or {}),
                "working_directory": _path(working_directory),
                "cache": _path(cache),
                "state": _path(state),
            }
        )
        self._handler = handler
        self._native: _native.Runner | None = None

    async def __aenter__(self) -> Runner:
        handler = None
        if self._handler is not None:
            asked = self._handler
            handler = (_Answers(asked), asked.elicitation, asked.sampling, asked.roots_listed)
        self._native = await _native.Runner.build(self._settings, self._inside, handler)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shutdown()

    def _inner(self) -> _native.Runner:
        if self._native is None:
            raise Error("Ended", "the runner has ended, or has not begun: use `async with Runner(…) as runner`")
        return self._native

    def servers(self) -> list[str]:
        """The names of the configured servers, sorted."""
        return self._inner().servers()

    def client(self, server: str) -> Client:
        """A client of one server, which starts at the first request."""
        return Client(self._inner(), server)

    def statuses(self) -> list[Status]:
        """The state of every server."""
        return [Status(**status) for status in json.loads(self._inner().statuses())]

    def status(self, server: str) -> Status:
        """The state of one server."""
        for status in self.statuses():
            if status.server == server:
                return status
        raise Error("UnknownServer", f"there is no server `{server}` in the configuration")

    async def start(self, server: str) -> None:
        """Connects a server, which starts it if it is a program, and lists its tools."""
        await self._inner().start(server)

    async def start_all(self) -> list[Outcome]:
        """Starts all servers side by side, and returns the outcome of each."""
        outcomes = json.loads(await self._inner().start_all())
        return [Outcome(server, Error(*error) if error else None) for server, error in outcomes.items()]

    async def stop(self, server: str) -> bool:
        """Ends the connection of a server, and its process. Returns whether it was connected."""
        return bool(json.loads(await self._inner().stop(server)))

    async def stop_all(self) -> None:
        """Ends the connections of all servers."""
        await self._inner().stop_all()

    async def restart(self, server: str) -> None:
        """Stops a server and starts it again."""
        await self._inner().restart(server)

    async def search(self, need: str, limit: int = 5) -> SearchResult:
        """Finds tools of all servers by what is needed, best first. Servers whose tools are not known yet are started, and waited for: for
        4 seconds, and longer while one after the other is listed, up to 15 seconds. The result names those that it lacks."""
        search = json.loads(await self._inner().search(need, limit))
        return SearchResult([Found(**one) for one in search["found"]], search["not_searched"])

    async def describe(self, name: str) -> Tool:
        """The whole definition of the tool `server__tool`."""
        return Tool(**json.loads(await self._inner().describe(name)))

    async def execute(
        self,
        name: str,
        arguments: Mapping[str, Json] | None = None,
        *,
        select: str | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Calls the tool `server__tool`. `select` is a jq program that reduces the result; `timeout` is in seconds."""
        text = json.dumps(dict(arguments or {}))
        return Result(json.loads(await self._inner().execute(name, text, select, timeout)))

    def events(self) -> AsyncIterator[Event]:
        """What happens to the servers from now on, after up to 256 events of the past. It ends with the runner."""
        events = self._inner().events()

        async def each() -> AsyncIterator[Event]:
            while (event := json.loads(await events.next())) is not None:
                yield Event(**event)

        return each()

    async def serve_stdio(self) -> None:
        """Serves a client on stdin and stdout until it leaves or the runner ends."""
        await self._inner().serve_stdio()

    async def serve_http(
        self, host: str = "127.0.0.1", port: int = 0, *, token: str | None = None, origins: Sequence[str] = ()
    ) -> HttpServer:
        """Serves clients over HTTP. Port 0 chooses a free one; an address that other machines reach needs a token."""
        return await self._inner().serve_http(host, port, token, list(origins))

    async def shutdown(self) -> None:
        """Ends all servers, with the calls that they have, and waits for their end."""
        native, self._native = self._native, None
        if native is not None:
            await native.shutdown()


class Client:
    """One server of a runner. Its requests run in parallel, and one that is cancelled is cancelled at the server."""

    def __init__(self, native: _native.Runner, server: str) -> None:
        self._native = native
        self.server = server

    async def list_tools(self) -> list[Tool]:
        """The tools that the configuration's rules permit."""
        return [Tool(**one) for one in json.loads(await self._native.list_tools(self.server))]

    async def call_raw(self, tool: str, arguments: Mapping[str, Json] | None = None) -> Result:
        """Calls a tool and returns its whole result, also one that says that it failed."""
        text = json.dumps(dict(arguments or {}))
        return Result(json.loads(await self._native.call(self.server, tool, text)))

    async def call(self, tool: str, arguments: Mapping[str, Json] | None = None) -> Json:
        """Calls a tool and returns its data. A tool that says that it failed is an `Error` of the kind `Tool`."""
        result = await self.call_raw(tool, arguments)
        if result.is_error:
            raise Error("Tool", result.text)
        return result.data()

    async def list_prompts(self) -> list[Prompt]:
        """The prompts."""
        return [Prompt(**one) for one in json.loads(await self._native.list_prompts(self.server))]

    async def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None) -> dict[str, Json]:
        """Gets a prompt: the result with its `messages`."""
        return dict(json.loads(await self._native.get_prompt(self.server, name, json.dumps(dict(arguments or {})))))

    async def list_resources(self) -> list[Resource]:
        """The resources."""
        return [Resource(**one) for one in json.loads(await self._native.list_resources(self.server, False))]

    async def list_resource_templates(self) -> list[Resource]:
        """The templates of further resources."""
        return [Resource(**one) for one in json.loads(await self._native.list_resources(self.server, True))]

    async def read_resource(self, uri: str) -> dict[str, Json]:
        """Reads a resource: the result with its `contents`."""
        return dict(json.loads(await self._native.read_resource(self.server, uri)))

    async def complete_prompt(self, prompt: str, argument: str, value: str) -> list[str]:
        """Suggests values for the argument of a prompt."""
        return list(json.loads(await self._native.complete(self.server, True, prompt, argument, value)))

    async def complete_resource(self, template: str, argument: str, value: str) -> list[str]:
        """Suggests values for the argument of a resource template."""
        return list(json.loads(await self._native.complete(self.server, False, template, argument, value)))


_SHOWN = ("name", "description", "input_schema", "title", "output_schema", "annotations")


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


class _Tools:
    """Calls the functions of tools for the native part."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools: dict[str, Callable[..., Any]] = {}
        for one in tools:
            if one.call is None:
                raise TypeError(f"the tool `{one.name}` has no function: make it with `mcpzip.tool`")
            self._tools[one.name] = one.call

    async def call(self, name: str, arguments: str) -> str:
        answer = self._tools[name](**json.loads(arguments))
        if inspect.isawaitable(answer):
            answer = await answer
        return json.dumps(answer)


async def _answer(work: Awaitable[Json]) -> str:
    """The answer of a handler as JSON. Texts of exceptions, other than `Error`, may have secrets of the program, so servers do not get them."""
    try:
        return json.dumps(await work)
    except Error:
        raise
    except Exception:
        logging.getLogger("mcpzip").exception("the handler failed")
        raise Error("Denied", "the handler failed") from None


class _Answers:
    """Asks a handler for the native part."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    async def consent(self, _: str, consent: str) -> str:
        return await _answer(self._handler.consent(Consent(**json.loads(consent))))

    async def elicit(self, server: str, request: str) -> str:
        return await _answer(self._handler.elicit(server, json.loads(request)))

    async def sample(self, server: str, request: str) -> str:
        return await _answer(self._handler.sample(server, json.loads(request)))

    async def roots(self, server: str, _: str) -> str:
        async def paths() -> list[str]:
            return [os.fspath(root) for root in await self._handler.roots(server)]

        return await _answer(paths())

    def progress(self, progress: str) -> None:
        self._handler.progress(json.loads(progress))

    def log(self, message: str) -> None:
        self._handler.log(json.loads(message))
