#!/usr/bin/env bash
# ONNX's own node tests run by Tutti: tests/peers/onnx_backend.sh [BUILD [DATA]].
# PEERS_PYTHON names a Python that has numpy and onnx.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
python=${PEERS_PYTHON:-$build/peers/bin/python}
program=$build/peer_onnx_backend
libraries=$(pkg-config --libs --silence-errors libturbojpeg libpng zlib || echo -lz)
# shellcheck disable=SC2086
"${CC:-cc}" -std=gnu17 -O1 -D_GNU_SOURCE -Iinclude -Isrc -I"$build" tests/peers/onnx_backend.c \
    "$build/libtutti.a" $libraries -lm -lpthread -ldl -o "$program"
shift $(($# > 0 ? 1 : 0))
"$python" tests/peers/onnx_backend.py "$program" "$@"
