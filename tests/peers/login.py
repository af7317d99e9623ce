"""The Python SDKs log in by themselves: `login.py SDK MODE PERSON URL NODE [INVITATION]`. Prints one JSON object as `login.mjs` does."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import importlib
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientMetadata

sdk, mode, person, url, node, *invitation = sys.argv[1:]
END = "http://127.0.0.1:9/callback"
BROWSER = Path(__file__).with_name("browser.mjs")


class Storage:
    def __init__(self) -> None:
        self.tokens = None
        self.client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens) -> None:
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client) -> None:
        self.client = client


def expire(storage: Storage, auth: OAuthClientProvider) -> str:
    """Has the client think that its access token has expired, so that it renews it."""
    auth.context.token_expiry_time = 1.0
    return storage.tokens.access_token


async def main() -> None:
    storage = Storage()
    back: dict[str, list[str]] = {}

    async def redirect(authorization: str) -> None:
        command = [node, str(BROWSER), person, END, authorization, *invitation]
        ended = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, text=True)
        back.update(parse_qs(urlparse(ended.stdout.strip()).query))

    async def callback():
        if sdk == "1":
            return back["code"][0], back.get("state", [None])[0]
        from mcp.shared.auth import AuthorizationCodeResult

        return AuthorizationCodeResult(
            code=back["code"][0], state=back.get("state", [None])[0], iss=back.get("iss", [None])[0]
        )

    auth = OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name=f"login {sdk} {mode}",
            redirect_uris=[END],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
            token_endpoint_auth_method="none",
        ),
        storage=storage,
        redirect_handler=redirect,
        callback_handler=callback,
    )
    arguments = {"name": "git__log"}
    if sdk == "1":
        from mcp import ClientSession
        from mcp.client.streamable_http import streamablehttp_client

        async with streamablehttp_client(url, auth=auth) as (read, write, _):
            async with ClientSession(read, write) as session:
                protocol = (await session.initialize()).protocolVersion
                answers = [await session.call_tool("execute_tool", arguments)]
                before = expire(storage, auth)
                answers.append(await session.call_tool("execute_tool", arguments))
    else:
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        async with importlib.import_module("httpx2").AsyncClient(auth=auth, timeout=60) as http:
            async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
                protocol = client.protocol_version
                answers = [await client.call_tool("execute_tool", arguments)]
                before = expire(storage, auth)
                answers.append(await client.call_tool("execute_tool", arguments))
    texts = [answer.content[0].text for answer in answers]
    renewed = storage.tokens.access_token != before
    print(json.dumps({"protocol": protocol, "answers": texts, "renewed": renewed}))


asyncio.run(main())
