"""A server of the Python SDK with its own authorization server: `authorization_server.py PORT`. It lets everyone in whose client shows its
secret by HTTP Basic, and its tokens end at once."""

import secrets
import sys

from mcp.server.auth.provider import AccessToken, AuthorizationCode, RefreshToken, RegistrationError, construct_redirect_uri
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken

port = int(sys.argv[1])
url = f"http://127.0.0.1:{port}"


class Provider:
    def __init__(self) -> None:
        self.clients, self.codes, self.access, self.refresh = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        if client_info.token_endpoint_auth_method != "client_secret_basic":
            raise RegistrationError("invalid_client_metadata", "only clients that show a secret by HTTP Basic")
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=4e9,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        del self.refresh[refresh_token.token]
        return self.issue(client, scopes, None)

    async def load_access_token(self, token):
        return self.access.get(token)

    async def revoke_token(self, token):
        self.access.pop(token.token, None)

    def issue(self, client, scopes, resource):
        access, refresh = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self.access[access] = AccessToken(token=access, client_id=client.client_id, scopes=scopes, resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes)
        return OAuthToken(access_token=access, expires_in=0, refresh_token=refresh, scope=" ".join(scopes))


server = MCPServer(
    "server-with-logins",
    auth_server_provider=Provider(),
    auth=AuthSettings(
        issuer_url=url,
        resource_server_url=f"{url}/mcp",
        client_registration_options=ClientRegistrationOptions(enabled=True),
    ),
)


@server.tool()
def echo(message: str) -> str:
    """Echoes a message back"""
    return f"Echo: {message}"


server.run(transport="streamable-http", host="127.0.0.1", port=port)
