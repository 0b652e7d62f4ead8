#!/usr/bin/env bash
# Compares the contract with the last release: `buf breaking` against the newest tag v*. Before the first release
# there is nothing that could break.
set -euo pipefail
cd "$(dirname "$0")/.."
tag="$(git tag --list 'v*' --sort=-v:refname | head -n 1)"
if [ -z "$tag" ]; then
    echo "breaking: no release yet, nothing to compare the contract with"
    exit 0
fi
buf breaking --against ".git#tag=$tag"
