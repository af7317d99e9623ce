// The OpenID provider of npm: `provider.mjs PORT CALLBACK RESOURCE FORMAT`. Everyone can log in there by any name, and has the group
// "developers". FORMAT is that of access tokens for RESOURCE: "jwt" or "opaque". Each start has a new key.

import { createServer } from "node:http";
import { generateKeyPairSync } from "node:crypto";
import Provider from "oidc-provider";

const [port, callback, resource, format] = process.argv.slice(2);
const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const key = { ...privateKey.export({ format: "jwk" }), use: "sig", alg: "ES256" };

const server = createServer();
server.listen(Number(port), "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    jwks: { keys: [key] },
    clients: [
      {
        client_id: "gateway",
        client_secret: "secret-of-the-gateway",
        redirect_uris: [callback],
        id_token_signed_response_alg: "ES256",
      },
      {
        client_id: "machine",
        client_secret: "secret-of-the-machine",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        id_token_signed_response_alg: "ES256",
      },
    ],
    clientDefaults: { id_token_signed_response_alg: "ES256" },
    conformIdTokenClaims: false,
    claims: { openid: ["sub"], profile: ["name", "groups"], email: ["email", "email_verified"] },
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({ sub: id, name: id, groups: ["developers"], email: `${id}@example.com`, email_verified: true }),
    }),
    scopes: ["openid", "offline_access", "profile", "email", "mcp"],
    pkce: { required: () => false },
    issueRefreshToken: async (_, client) => client.grantTypeAllowed("refresh_token"),
    // A program is its own subject, which introspection does not say.
    extraTokenClaims: (_, token) => ({ groups: ["developers"], ...(token.accountId ? {} : { sub: token.clientId }) }),
    features: {
      devInteractions: { enabled: true },
      clientCredentials: { enabled: true },
      introspection: { enabled: true, allowedPolicy: () => true },
      revocation: { enabled: true, allowedPolicy: () => true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, audience) => ({
          scope: "mcp",
          audience,
          accessTokenFormat: format,
          accessTokenTTL: 600,
          jwt: { sign: { alg: "ES256" } },
        }),
      },
    },
  });
  server.on("request", provider.callback());
  console.log(`listening on ${issuer}`);
});
