#!/usr/bin/env bash
# Generates the committed code from proto/: Rust messages and the Python client's stubs. Called by `make gen`.
#
# The Python stubs are made by an old grpcio-tools on purpose: generated code works with the protobuf runtime of its
# own version or later, and agent frameworks pin old ones. It runs in an environment of its own, since the sidecar
# needs a newer protobuf.
set -euo pipefail
cd "$(dirname "$0")/.."
uv="${UV:-uv}"

cargo run --quiet --profile fast -p recalld-gen
rustfmt --edition 2024 core_rs/proto/src/gen/*.rs

out=clients/python/src
rm -f "$out"/recalld/v1/*_pb2*
"$uv" run --quiet --isolated --no-project --with 'grpcio-tools==1.71.2' --with 'mypy-protobuf==3.6.0' --with 'setuptools<81' \
    python -m grpc_tools.protoc -I proto \
    --python_out="$out" --grpc_python_out="$out" --mypy_out="quiet:$out" --mypy_grpc_out="quiet:$out" \
    proto/recalld/v1/*.proto
# Only the services have stubs worth keeping.
for file in "$out"/recalld/v1/*_pb2_grpc.py; do
    case "$file" in *_service_pb2_grpc.py) ;; *) rm -f "$file" "${file%.py}.pyi" ;; esac
done
