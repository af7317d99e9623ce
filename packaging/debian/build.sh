#!/usr/bin/env bash
# Makes a Debian package: build.sh DIRECTORY VERSION ARCHITECTURE OUT. The directory is an unpacked archive; the program in it is
# static, so the package needs nothing.
set -euo pipefail
from=$1 version=$2 architecture=$3 out=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
install -D -m 755 "$from/mcpzip" "$work/usr/bin/mcpzip"
install -D -m 644 "$from/LICENSE" "$work/usr/share/doc/mcpzip/copyright"
install -D -m 644 "$from/config.example.json" "$work/usr/share/doc/mcpzip/examples/config.json"
install -d "$work/usr/share/doc/mcpzip" "$work/usr/share/man/man1"
gzip -9n < "$from/CHANGELOG.md" > "$work/usr/share/doc/mcpzip/changelog.gz"
install -D -m 644 "$from/completions/mcpzip.bash" "$work/usr/share/bash-completion/completions/mcpzip"
install -D -m 644 "$from/completions/mcpzip.zsh" "$work/usr/share/zsh/vendor-completions/_mcpzip"
install -D -m 644 "$from/completions/mcpzip.fish" "$work/usr/share/fish/vendor_completions.d/mcpzip.fish"
cp "$from"/man/*.1 "$work/usr/share/man/man1/"
gzip -9n "$work"/usr/share/man/man1/*.1
mkdir "$work/DEBIAN"
cat > "$work/DEBIAN/control" << END
Package: mcpzip
Version: $version
Architecture: $architecture
Maintainer: The mcpzip developers <noreply@localhost>
Section: devel
Priority: optional
Installed-Size: $(du -sk "$work/usr" | cut -f1)
Suggests: nodejs, npm, pipx
Description: one MCP server in front of all your MCP servers
 An agent's client sees three tools, to search, describe and execute the tools
 of all configured servers, at a small, fixed context cost. Search works
 offline. Servers of other clients can be taken over, and given back.
END
mkdir -p "$out"
dpkg-deb --root-owner-group --build "$work" "$out/mcpzip_${version}_$architecture.deb" > /dev/null
