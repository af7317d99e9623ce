#!/usr/bin/env bash
# Shows `mcpzip tray` in a panel of XFCE, on a screen and a bus of its own, opens the menu and takes a picture:
# tests/tray/panel.sh PROGRAM PICTURE. PROGRAM has the feature `tray`. It needs Debian's packages dbus, xvfb, xfce4-panel, xdotool and
# imagemagick, and touches no home directory but a temporary one.
set -euo pipefail

program=$(realpath "$1") picture=$(realpath -m "$2")
if [ "${3:-}" != inside ]; then
  home=$(mktemp -d)
  # Processes that are ending may still write.
  trap 'for _ in 1 2 3 4 5; do rm -rf "$home" 2> /dev/null && break; sleep 1; done' EXIT
  mkdir -p -m 700 "$home/run" "$home/.config/xfce4/xfconf/xfce-perchannel-xml" "$home/.config/mcpzip"
  cat > "$home/.config/xfce4/xfconf/xfce-perchannel-xml/xfce4-panel.xml" << XML
<?xml version="1.0" encoding="UTF-8"?>
<channel name="xfce4-panel" version="1.0">
  <property name="configver" type="int" value="2"/>
  <property name="panels" type="array">
    <value type="int" value="1"/>
    <property name="panel-1" type="empty">
      <property name="position" type="string" value="p=6;x=0;y=0"/>
      <property name="length" type="uint" value="100"/>
      <property name="size" type="uint" value="32"/>
      <property name="plugin-ids" type="array"><value type="int" value="1"/></property>
    </property>
  </property>
  <property name="plugins" type="empty"><property name="plugin-1" type="string" value="systray"/></property>
</channel>
XML
  printf '{"mcpServers": {"notes": {"command": "%s", "args": ["__demo-server", "notes", "%s/store"]}}, "tools": {"ask": ["create_note"]}}\n' \
    "$program" "$home" > "$home/.config/mcpzip/config.json"
  env -i PATH="$PATH" HOME="$home" XDG_RUNTIME_DIR="$home/run" LANG=C.UTF-8 MCPZIP_DAEMON=auto MCPZIP_CREDENTIALS=file \
    dbus-run-session -- "$0" "$program" "$picture" inside
  exit
fi

children=()
trap 'kill "${children[@]}" 2> /dev/null || true; "$program" daemon stop > /dev/null || true' EXIT
# until_ WHAT COMMAND...: waits until the command succeeds.
until_() {
  local what=$1
  shift
  for _ in $(seq 300); do
    if "$@" > /dev/null 2>&1; then return; fi
    sleep 0.2
  done
  echo "this did not come: $what" >&2
  exit 1
}
has_name() {
  dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.NameHasOwner "string:$1" | grep -q true
}
items() {
  dbus-send --session --print-reply --dest=org.freedesktop.DBus / org.freedesktop.DBus.ListNames | grep -q StatusNotifierItem-
}

mkfifo "$HOME/number"
Xvfb -displayfd 3 -screen 0 560x260x24 3> "$HOME/number" 2> /dev/null &
children+=($!)
read -r number < "$HOME/number"
export DISPLAY=:$number
xfce4-panel --disable-wm-check > "$HOME/panel.log" 2>&1 &
children+=($!)
until_ 'the panel' has_name org.kde.StatusNotifierWatcher
"$program" tray &
children+=($!)
until_ 'the item' items
# A session with a call that waits for approval.
{
  echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"picture","version":"1"}}}'
  echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
  echo '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_tool","arguments":{"name":"notes__create_note","arguments":{"title":"Release"}}}}'
  sleep 60
# A daemon takes a client whose stdout is a pipe.
} | "$program" serve 2> /dev/null | cat > /dev/null &
children+=($!)
waits() {
  "$program" --json approvals list | grep -q '"id"'
}
until_ 'the call that waits' waits
# The item looks every three seconds.
sleep 4
xdotool mousemove 14 16 click 3
sleep 2
import -window root "$picture"
echo "$picture"
