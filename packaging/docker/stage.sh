#!/usr/bin/env bash
# Lays out the programs of a release for release.Dockerfile: stage.sh DIST OUT.
set -euo pipefail
dist=$1 out=$2
mkdir -p "$out/amd64" "$out/arm64" "$out/data/cache" "$out/data/state"
tar -C "$out/amd64" --strip-components=1 -xzf "$dist/mcpzip-x86_64-unknown-linux-musl.tar.gz"
tar -C "$out/arm64" --strip-components=1 -xzf "$dist/mcpzip-aarch64-unknown-linux-musl.tar.gz"
