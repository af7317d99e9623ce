#!/usr/bin/env bash
# Real clients: servers added by their own commands, `mcpzip migrate`, a look by the client, `mcpzip undo`, and every file of
# the client as it was.
#
# Usage: tests/clients.sh MCPZIP BIN [CLIENT...]
#   MCPZIP  the program under test
#   BIN     a directory with `claude`, `codex`, `gemini`, `opencode` and `copilot`, as npm makes it:
#           npm install --prefix DIR @anthropic-ai/claude-code@2.1.197 @openai/codex@0.169.0 @google/gemini-cli@0.61.0 \
#             opencode-ai@1.18.33 @github/copilot@1.0.102 @modelcontextprotocol/server-everything
#           (for Claude Code also: cd DIR/node_modules/@anthropic-ai/claude-code && node install.cjs)
#   MOCK    (a variable) the stand-in for Claude Code's model, ../shared/clients/mock_anthropic.py where there is none
# Needs no net and no account. Each client has a home of its own, which goes at the end. Takes about two minutes.
set -u
[ $# -ge 2 ] || { sed -n '2,/^set -u/p' "$0" | grep '^#' | cut -c3-; exit 2; }
MCPZIP=$(realpath "$1") BIN=$(realpath "$2"); shift 2
CLIENTS=${*:-claude codex gemini opencode copilot}
FAILED=0
WORK=$(mktemp -d)
MOCK=${MOCK:-$(dirname "$0")/../../shared/clients/mock_anthropic.py}
MOCK_PID=""
trap '[ -z "$MOCK_PID" ] || kill "$MOCK_PID" 2>/dev/null; rm -rf "$WORK"' EXIT

# A server that answers, under a name that is not mcpzip's own.
mkdir "$WORK/bin"
ln -s "$MCPZIP" "$WORK/bin/mcpzip"
ln -s "$MCPZIP" "$WORK/bin/demo-tools"

# in_home COMMAND...: in the scratch project, with the scratch home and nothing else of the caller's environment.
in_home() {
  (cd "$HOME_DIR/project" && env -i HOME="$HOME_DIR" PATH="$WORK/bin:$BIN:$PATH" TERM=xterm LANG=C.UTF-8 \
    DISABLE_AUTOUPDATER=1 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 timeout 120 "$@" </dev/null 2>&1)
}

fail() { echo "FAILED $CLIENT: $1"; FAILED=1; }

# files: the client's own configuration, each with its hash.
files() { (cd "$HOME_DIR" && sha256sum $FILES 2>/dev/null); }

# check LISTED-AFTER: migrate, look, undo. $LIST shows the client's servers; $MOVED and $STAYED are their names.
check() {
  in_home $LIST >/dev/null   # what a client writes at its first start is its own affair
  local before after shown
  before=$(files)
  in_home mcpzip migrate --client "$1" --yes --json >"$HOME_DIR/report.json" || fail "migrate: $(tail -3 "$HOME_DIR/report.json")"
  in_home mcpzip undo >/dev/null || fail "undo"
  [ "$before" = "$(files)" ] || fail "not byte-identical after an undo at once"
  in_home mcpzip migrate --client "$1" --yes --json >"$HOME_DIR/report.json" || fail "migrate again"
  shown=$(in_home $LIST)
  echo "$shown" | grep -i "mcpzip" | sed 's/^/    /'
  echo "$shown" | grep -qi "mcpzip" || fail "does not show mcpzip: $shown"
  [ -z "${CONNECTED:-}" ] || echo "$shown" | grep -i mcpzip | grep -qi "$CONNECTED" || fail "mcpzip is not connected: $shown"
  for name in $MOVED; do echo "$shown" | grep -q "$name" && fail "still shows $name"; done
  for name in $STAYED; do echo "$shown" | grep -q "$name" || fail "lost $name, which had to stay"; done
  known=$(in_home mcpzip servers --json)
  for name in $MOVED; do echo "$known" | grep -q "\"$name\"" || fail "mcpzip has no $name"; done
  [ "$CLIENT" != claude ] || session
  in_home mcpzip undo >/dev/null || fail "undo"
  after=$(files)
  [ "$before" = "$after" ] || fail "not byte-identical after undo: $(diff <(echo "$before") <(echo "$after"))"
}

# session: a real Claude Code whose model follows a script: it searches, describes and executes a tool of a real server behind
# mcpzip, one of this project alone, and one that its user has denied.
session() {
  [ -f "$MOCK" ] && [ -x "$BIN/mcp-server-everything" ] || { echo "    no session: $MOCK or mcp-server-everything is missing"; return; }
  local api="$HOME_DIR/api" port
  mkdir -p "$api"
  cat >"$HOME_DIR/script.json" <<JSON
[{"tool": "mcp__mcpzip__search_tools", "input": {"query": "echo a message back"}},
 {"tool": "mcp__mcpzip__describe_tool", "input": {"name": "everything__echo"}},
 {"tool": "mcp__mcpzip__execute_tool", "input": {"name": "everything__echo", "arguments": {"message": "from far"}}},
 {"tool": "mcp__mcpzip__search_tools", "input": {"query": "count the words of a text", "server": "localone"}},
 {"tool": "mcp__mcpzip__execute_tool", "input": {"name": "everything__get-env"}},
 {"text": "FINAL"}]
JSON
  python3 "$MOCK" --script "$HOME_DIR/script.json" --log "$api" --port-file "$HOME_DIR/port" 2>"$HOME_DIR/mock.err" &
  MOCK_PID=$!
  for _ in $(seq 100); do [ -s "$HOME_DIR/port" ] && break; sleep 0.05; done
  port=$(cat "$HOME_DIR/port")
  in_home env ANTHROPIC_BASE_URL="http://127.0.0.1:$port" ANTHROPIC_API_KEY=sk-ant-dummy-for-the-mock \
    claude -p go --allowedTools "mcp__mcpzip__*" --output-format stream-json --verbose >"$HOME_DIR/session.jsonl"
  kill "$MOCK_PID" 2>/dev/null; wait "$MOCK_PID" 2>/dev/null; MOCK_PID=""
  python3 - "$api/transcript.jsonl" <<'PY' || { fail "the session"; tail -5 "$HOME_DIR/session.jsonl"; }
import json, re, sys
turns = [json.loads(line) for line in open(sys.argv[1])]
results = [r if isinstance(r, str) else r["text"] for t in turns if t["kind"] == "turn" for r in t.get("results", [])]
wanted = [r"everything__echo\(", r'"inputSchema"', r"[Ee]cho: ?from far", r"localone__", r"rules"]
for number, pattern in enumerate(wanted):
    said = results[number] if number < len(results) else "(nothing)"
    print("    " + " ".join(said.split())[:100])
    if not re.search(pattern, said):
        print(f"    {number}: no {pattern!r} in {said!r}")
        sys.exit(1)
PY
}

for CLIENT in $CLIENTS; do
  HOME_DIR="$WORK/$CLIENT"
  mkdir -p "$HOME_DIR/project/.git"
  D="demo-tools __demo-server text $HOME_DIR/store"
  MOVED="texts units" STAYED="" CONNECTED=""
  case $CLIENT in
    claude)
      FILES=".claude.json project/.mcp.json .claude/settings.json project/.claude/settings.local.json"
      LIST="claude mcp list" CONNECTED=connected MOVED="texts units localone sharedone"
      in_home claude mcp add -s user texts -- $D >/dev/null || fail "add"
      in_home claude mcp add -s user units -e "K=\${K:-none}" -- demo-tools __demo-server units "$HOME_DIR/store" >/dev/null || fail "add"
      in_home claude mcp add -s local localone -- $D >/dev/null || fail "add"
      in_home claude mcp add -s project sharedone -- $D >/dev/null || fail "add"
      if [ -x "$BIN/mcp-server-everything" ]; then
        in_home claude mcp add -s user everything -- mcp-server-everything >/dev/null || fail "add"
        MOVED="$MOVED everything"
      fi
      mkdir -p "$HOME_DIR/.claude" "$HOME_DIR/project/.claude"
      printf '{"permissions": {"deny": ["mcp__everything__get-env"]}}\n' >"$HOME_DIR/.claude/settings.json"
      printf '{"enabledMcpjsonServers": ["sharedone"]}\n' >"$HOME_DIR/project/.claude/settings.local.json"
      check claude-code ;;
    codex)
      FILES=".codex/config.toml" LIST="codex mcp list"
      mkdir -p "$HOME_DIR/.codex"
      printf '# mine\nmodel = "gpt-5.5"  # large\n\n[tui]\nnotifications = true\n' >"$HOME_DIR/.codex/config.toml"
      in_home codex mcp add texts -- $D >/dev/null || fail "add"
      in_home codex mcp add units --env K=v -- demo-tools __demo-server units "$HOME_DIR/store" >/dev/null || fail "add"
      check codex ;;
    gemini)
      FILES=".gemini/settings.json project/.gemini/settings.json" LIST="gemini mcp list" CONNECTED=connected
      # In a folder that is not trusted it starts nothing.
      mkdir -p "$HOME_DIR/.gemini"
      printf '{"%s": "TRUST_FOLDER"}\n' "$HOME_DIR/project" >"$HOME_DIR/.gemini/trustedFolders.json"
      in_home gemini mcp add -s user texts demo-tools __demo-server text "$HOME_DIR/store" >/dev/null || fail "add"
      in_home gemini mcp add -s user units demo-tools __demo-server units "$HOME_DIR/store" >/dev/null || fail "add"
      check gemini-cli ;;
    opencode)
      FILES=".config/opencode/opencode.jsonc" LIST="opencode mcp list" CONNECTED=connected
      mkdir -p "$HOME_DIR/.config/opencode"
      # Its own command asks at a terminal.
      cat >"$HOME_DIR/.config/opencode/opencode.jsonc" <<JSON
{
  // mine
  "mcp": {
    "texts": { "type": "local", "command": ["demo-tools", "__demo-server", "text", "$HOME_DIR/store"] }, // one
    "units": { "type": "local", "command": ["demo-tools", "__demo-server", "units", "$HOME_DIR/store"], "enabled": true },
  },
}
JSON
      check opencode ;;
    copilot)
      FILES=".copilot/mcp-config.json" LIST="copilot mcp list"
      in_home copilot mcp add texts -- $D >/dev/null || fail "add"
      in_home copilot mcp add units --env K=v -- demo-tools __demo-server units "$HOME_DIR/store" >/dev/null || fail "add"
      check copilot-cli ;;
    *) echo "no such client: $CLIENT" >&2; exit 2 ;;
  esac
  echo "$CLIENT ($(in_home "$CLIENT" --version | grep -oE '[0-9]+\.[0-9]+\.[0-9]+' | head -1)) done"
done
exit $FAILED
