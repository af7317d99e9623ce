#!/bin/sh
# Installs mcpzip @VERSION@ into ~/.local/bin, or into MCPZIP_INSTALL_DIR. It changes nothing else.
set -eu

base=${MCPZIP_DOWNLOAD_BASE:-https://github.com/@REPOSITORY@/releases/download/v@VERSION@}
directory=${MCPZIP_INSTALL_DIR:-$HOME/.local/bin}

fail() {
  echo "mcpzip: $*" >&2
  exit 1
}

case "$(uname -s) $(uname -m)" in
  'Linux x86_64') target=x86_64-unknown-linux-musl ;;
  'Linux aarch64' | 'Linux arm64') target=aarch64-unknown-linux-musl ;;
  'Darwin x86_64') target=x86_64-apple-darwin ;;
  'Darwin arm64') target=aarch64-apple-darwin ;;
  *) fail "there is no release for $(uname -s) on $(uname -m). Build it from source: \`cargo install mcpzip-cli\`" ;;
esac

case $target in
  x86_64-unknown-linux-musl) wanted=@SHA256:mcpzip-x86_64-unknown-linux-musl.tar.gz@ ;;
  aarch64-unknown-linux-musl) wanted=@SHA256:mcpzip-aarch64-unknown-linux-musl.tar.gz@ ;;
  x86_64-apple-darwin) wanted=@SHA256:mcpzip-x86_64-apple-darwin.tar.gz@ ;;
  aarch64-apple-darwin) wanted=@SHA256:mcpzip-aarch64-apple-darwin.tar.gz@ ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
archive=mcpzip-$target.tar.gz
if command -v curl > /dev/null; then
  curl --proto '=https,file' --tlsv1.2 -fsSL "$base/$archive" -o "$work/$archive" || fail "$base/$archive cannot be downloaded"
elif command -v wget > /dev/null; then
  wget -q "$base/$archive" -O "$work/$archive" || fail "$base/$archive cannot be downloaded"
else
  fail 'curl or wget is needed, and neither was found'
fi

if command -v sha256sum > /dev/null; then
  found=$(sha256sum "$work/$archive")
else
  found=$(shasum -a 256 "$work/$archive")
fi
[ "${found%% *}" = "$wanted" ] || fail "the archive is not the one of the release: its checksum is ${found%% *}, it should be $wanted"

tar -C "$work" -xzf "$work/$archive"
mkdir -p "$directory"
install -m 755 "$work/mcpzip-$target/mcpzip" "$directory/mcpzip"
echo "installed $("$directory/mcpzip" --version) as $directory/mcpzip"
case ":$PATH:" in
  *":$directory:"*) ;;
  *) echo "$directory is not in your PATH: add it, or run the program by its full path" ;;
esac
echo 'next: mcpzip demo, then mcpzip init'
