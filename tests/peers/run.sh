#!/usr/bin/env bash
# Files of Tutti beside those of NumPy, safetensors, TensorFlow and TensorBoard:
# tests/peers/run.sh [BUILD]. PEERS_PYTHON names a Python that has all four.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
python=${PEERS_PYTHON:-$build/peers/bin/python}
program=$build/peer_files
libraries=$(pkg-config --libs --silence-errors libturbojpeg libpng zlib || echo -lz)
# shellcheck disable=SC2086
"${CC:-cc}" -std=gnu17 -O1 -D_GNU_SOURCE -Iinclude -Isrc -I"$build" tests/peers/files.c \
    "$build/libtutti.a" $libraries -lm -lpthread -ldl -o "$program"
"$python" tests/peers/files.py "$program"
