#!/bin/sh
# Measures calls over HTTP with wrk (Debian: `apt install wrk`), by a client of each era of the protocol:
#   cargo build --locked --release -p mcpzip-cli -p mcpzip-bench && crates/bench/http.sh [DIRECTORY] [SECONDS]
# DIRECTORY has the two programs; SECONDS is the time of each run. A call returns 100 bytes.
set -eu
programs=$(realpath "${1:-target/release}")
seconds=${2:-5}
home=$(mktemp -d)
trap 'kill "$gateway" 2>/dev/null || :; rm -rf "$home"' EXIT INT TERM

cat >"$home/config.json" <<END
{"mcpServers": {"s": {"command": "$programs/mcpzip-bench", "args": ["upstream"]}},
 "search": {"semantic": false}, "results": {"budget": 0, "duplicates": "keep"}}
END
MCPZIP_CONFIG="$home/config.json" MCPZIP_CACHE_DIR="$home/cache" MCPZIP_STATE_DIR="$home/state" MCPZIP_CREDENTIALS=file \
    "$programs/mcpzip" serve --http 127.0.0.1:0 2>"$home/log" </dev/null &
gateway=$!
url=
until url=$(sed -n 's|.*\(http://[0-9.:]*/[a-z]*\).*|\1|p' "$home/log" | head -n 1) && [ -n "$url" ]; do
    kill -0 "$gateway" || { cat "$home/log" >&2; exit 1; }
    sleep 0.1
done

# post BODY [HEADER...]: sends a message and prints the answer with its headers.
post() {
    body=$1
    shift
    for header; do set -- "$@" -H "$header"; shift; done
    curl -sS -i "$@" -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' -d "$body" "$url"
}

call='"name": "execute_tool", "arguments": {"name": "s__payload", "arguments": {"bytes": 100}}'
client='"clientInfo": {"name": "wrk", "version": "1"}'
session=$(post '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, '"$client"'}}' |
    tr -d '\r' | sed -n 's/^mcp-session-id: //Ip')
handshake='{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {'"$call"'}}'
stateless='{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {'"$call"', "_meta": {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "wrk", "version": "1"}}}}'

# measure ERA BODY HEADER...: one connection, then 64.
measure() {
    era=$1 body=$2
    shift 2
    tries=0
    until post "$body" "$@" | grep -q xxxx; do
        tries=$((tries + 1))
        [ "$tries" -lt 50 ] || { post "$body" "$@" >&2; exit 1; }
        sleep 0.1
    done
    { printf 'wrk.method = "POST"\nwrk.body = [[%s]]\n' "$body"
      for header in "$@" 'Content-Type: application/json' 'Accept: application/json, text/event-stream'; do
          printf 'wrk.headers["%s"] = "%s"\n' "${header%%: *}" "${header#*: }"
      done
      cat <<'END'
-- Requests of one session that are in progress at the same time need different ids.
local before, after = wrk.body:match('^(.-"id": )2(.*)$')
local id = 1000
request = function()
    id = id + 1
    return wrk.format(nil, nil, nil, before .. id .. after)
end
done = function(summary, latency)
    local failed = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
    io.write(string.format("RESULT %.0f us p50, %.0f us p99, %.0f calls/s, %d failed\n",
        latency:percentile(50), latency:percentile(99), summary.requests / summary.duration * 1e6, failed))
end
END
    } >"$home/call.lua"
    for connections in 1 64; do
        figures=$(wrk -t 1 -c "$connections" -d "${seconds}s" -s "$home/call.lua" "$url" | sed -n 's/^RESULT //p')
        echo "$era, connections: $connections: $figures"
    done
}

measure 'with a handshake (2025-11-25)' "$handshake" "Mcp-Session-Id: $session" 'MCP-Protocol-Version: 2025-11-25'
measure 'without (2026-07-28)' "$stateless" 'MCP-Protocol-Version: 2026-07-28' 'Mcp-Method: tools/call' 'Mcp-Name: execute_tool'
