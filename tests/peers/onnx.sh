#!/usr/bin/env bash
# Models and operators that Tutti exports, run by onnxruntime: tests/peers/onnx.sh [BUILD].
# PEERS_PYTHON names a Python that has numpy, onnx and onnxruntime.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
python=${PEERS_PYTHON:-$build/peers/bin/python}
program=$build/peer_onnx
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
libraries=$(pkg-config --libs --silence-errors libturbojpeg libpng zlib || echo -lz)
# shellcheck disable=SC2086
"${CC:-cc}" -std=gnu17 -O1 -D_GNU_SOURCE -Iinclude -Isrc -I"$build" tests/peers/onnx.c \
    "$build/libtutti.a" $libraries -lm -lpthread -ldl -o "$program"
"$program" "$folder"
"$python" tests/peers/onnx_check.py "$folder"
