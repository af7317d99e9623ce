#!/bin/sh
# address.sh OWNER/NAME: writes the repository's address into the manifests, from which the registries and the website take it. The workflows
# call it with the repository in which they run.
set -eu
cd "$(dirname "$0")/.."
address=https://github.com/${1:?usage: address.sh OWNER/NAME}
for manifest in Cargo.toml crates/allocator/Cargo.toml crates/demo/Cargo.toml crates/embedding/Cargo.toml; do
  ! grep -q '^repository = ' "$manifest" || continue
  sed "s|^license = .*|&\\
repository = \"$address\"\\
homepage = \"$address\"|" "$manifest" > "$manifest.new"
  mv "$manifest.new" "$manifest"
done
