#!/usr/bin/env bash
# Tutti beside its peers: its files beside those of NumPy, safetensors, TensorFlow and TensorBoard, its
# profile in TensorBoard's plugin, its layers, losses, metrics and optimizers beside Keras', its curve
# beside those of PyTorch and Keras. tests/peers/run.sh [BUILD [PART [ARGUMENTS]]]. PEERS_PYTHON names a
# Python that has them all.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
python=${PEERS_PYTHON:-$build/peers/bin/python}
libraries=$(pkg-config --libs --silence-errors libturbojpeg libpng zlib || echo -lz)

# compile NAME: tests/peers/NAME.c to $build/peer_NAME
compile() {
    # shellcheck disable=SC2086
    "${CC:-cc}" -std=gnu17 -O1 -D_GNU_SOURCE -Iinclude -Isrc -I"$build" "tests/peers/$1.c" \
        "$build/libtutti.a" $libraries -lm -lpthread -ldl -o "$build/peer_$1"
}

if [ "${2:-files}" = files ]; then
    compile files
    "$python" tests/peers/files.py "$build/peer_files"
fi
if [ "${2:-profile}" = profile ]; then
    compile profile
    "$python" tests/peers/profile_check.py "$build/peer_profile"
fi
if [ "${2:-training}" = training ]; then
    compile training
    "$python" tests/peers/training.py "$build/tutti" "$build/peer_training" "${@:3}"
fi
if [ "${2:-curve}" = curve ]; then
    compile curve
    "$python" tests/peers/curve.py "$build/peer_curve" "${@:3}"
fi
