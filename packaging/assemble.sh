#!/usr/bin/env bash
# Makes everything of a release out of the archives in a directory: assemble.sh DIST OWNER/REPOSITORY.
set -euo pipefail
dist=$(realpath "$1") repository=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The programs, each in a directory named by its target.
for archive in "$dist"/mcpzip-*.tar.gz; do tar -C "$work" -xzf "$archive"; done
for archive in "$dist"/mcpzip-*.zip; do
  [ -f "$archive" ] || continue
  unzip -q "$archive" -d "$work"
done

for pair in x86_64-unknown-linux-musl:amd64 aarch64-unknown-linux-musl:arm64; do
  [ -d "$work/mcpzip-${pair%:*}" ] || continue
  "$here/debian/build.sh" "$work/mcpzip-${pair%:*}" "$version" "${pair#*:}" "$dist"
done
node "$here/npm/build.mjs" "$work" "$version" "$repository" "$dist"
node "$here/mcpb/build.mjs" "$work" "$version" "$dist"
node "$here/render.mjs" "$version" "$repository" "$dist"

# The changes, from the changelog.
awk -v version="$version" '
  /^## / { inside = index($2, version) == 1 || ($2 == "Unreleased" && !seen); if (inside) seen = 1; next }
  inside { print }
' "$root/CHANGELOG.md" > "$dist/notes.md"
rm -f "$dist/SHA256SUMS"
sums=$(cd "$dist" && find . -maxdepth 1 -type f ! -name notes.md -printf '%f\n' | sort | xargs sha256sum)
printf '%s\n' "$sums" > "$dist/SHA256SUMS"
