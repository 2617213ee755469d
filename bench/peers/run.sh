#!/usr/bin/env bash
# Ours beside PyTorch, TensorFlow and KANN: bench/peers/run.sh [BUILD [ARGUMENTS of compare.py...]]
# Two workers in step: bench/peers/run.sh BUILD parallel [ARGUMENTS of parallel.py...]
# ONNX files beside onnxruntime: bench/peers/run.sh BUILD inference [ARGUMENTS of inference.py...]
#
# PEERS_PYTHON names a Python that has torch and tensorflow. Without it they are installed by pip
# into BUILD/peers, which `make clean` takes away again (about 2 GiB). KANN_DIR names KANN's source
# folder; without it KANN is left out.
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
[ $# -eq 0 ] || shift
python=${PEERS_PYTHON:-$build/peers/bin/python}

install() {
    echo "installing PyTorch and TensorFlow into $build/peers; PEERS_PYTHON=... takes others"
    python3 -m venv "$build/peers"
    local pip=("$build/peers/bin/pip" install --quiet --disable-pip-version-check)
    "${pip[@]}" torch
    "${pip[@]}" numpy setuptools onnx onnxruntime
    "${pip[@]}" tensorflow-cpu 2> /dev/null || "${pip[@]}" tensorflow
}

if ! "$python" -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("torch") and u.find_spec("tensorflow")))' 2> /dev/null; then
    [ -z "${PEERS_PYTHON:-}" ] || { echo "$PEERS_PYTHON lacks torch or tensorflow" >&2 && exit 1; }
    install
fi

if [ "${1:-}" = parallel ]; then
    shift
    exec python3 bench/peers/parallel.py --tutti "$build/tutti" --python "$python" "$@"
fi

if [ "${1:-}" = inference ]; then
    shift
    "$python" -c 'import onnx, onnxruntime' 2> /dev/null ||
        { echo "$python lacks onnx or onnxruntime: $python -m pip install onnx onnxruntime" >&2 && exit 1; }
    exec python3 bench/peers/inference.py --tutti "$build/tutti" --python "$python" "$@"
fi

kann=()
if [ -n "${KANN_DIR:-}" ]; then
    if "${CC:-cc}" -O3 -march=native -DHAVE_PTHREAD -I"$KANN_DIR" -o "$build/kann" bench/peers/kann.c \
        "$KANN_DIR/kann.c" "$KANN_DIR/kautodiff.c" -lpthread -lm 2> "$build/kann.log"; then
        kann=(--kann "$build/kann")
    else
        echo "KANN did not compile: see $build/kann.log" >&2
    fi
else
    echo "KANN is left out: KANN_DIR=... names its source folder" >&2
fi
exec python3 bench/peers/compare.py --tutti "$build/tutti" --python "$python" "${kann[@]}" "$@"
