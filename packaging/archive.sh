#!/usr/bin/env bash
# Packs a built program: archive.sh TARGET DIRECTORY-OF-THE-PROGRAM OUT. Shell completions and manual pages come along, made by
# the program itself. tar.gz, and zip for Windows.
set -euo pipefail
target=$1 built=$2 out=$3
name=mcpzip-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$name" "$out"
program=$built/mcpzip
[ -f "$program" ] || program=$built/mcpzip.exe
cp "$program" LICENSE README.md CHANGELOG.md config.example.json "$work/$name/"
mkdir "$work/$name/completions"
for shell in bash zsh fish powershell; do
  "$program" completions "$shell" > "$work/$name/completions/mcpzip.$shell"
done
"$program" man "$work/$name/man"
case $target in
  *windows*) (cd "$work" && 7z a -tzip -bso0 "$name.zip" "$name") && mv "$work/$name.zip" "$out/" ;;
  *) tar -C "$work" --owner=0 --group=0 -czf "$out/$name.tar.gz" "$name" 2> /dev/null || tar -C "$work" -czf "$out/$name.tar.gz" "$name" ;;
esac
