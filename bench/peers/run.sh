#!/usr/bin/env bash
# Ours beside PyTorch and TensorFlow: bench/peers/run.sh [BUILD [ARGUMENTS of compare.py...]]
#
# PEERS_PYTHON names a Python that has torch and tensorflow. Without it they are installed by pip
# into BUILD/peers, which `make clean` takes away again (about 2 GiB).
set -eu
cd "$(dirname "$0")/../.."
build=${1:-build}
[ $# -eq 0 ] || shift
python=${PEERS_PYTHON:-$build/peers/bin/python}

install() {
    echo "installing PyTorch and TensorFlow into $build/peers; PEERS_PYTHON=... takes others"
    python3 -m venv "$build/peers"
    local pip=("$build/peers/bin/pip" install --quiet --disable-pip-version-check)
    # The CPU builds where there are any: the others bring gigabytes for graphics cards.
    "${pip[@]}" torch --index-url https://download.pytorch.org/whl/cpu 2> /dev/null ||
        "${pip[@]}" torch
    "${pip[@]}" numpy setuptools
    "${pip[@]}" tensorflow-cpu 2> /dev/null || "${pip[@]}" tensorflow
}

if ! "$python" -c 'import importlib.util as u, sys; sys.exit(not (u.find_spec("torch") and u.find_spec("tensorflow")))' 2> /dev/null; then
    [ -z "${PEERS_PYTHON:-}" ] || { echo "$PEERS_PYTHON lacks torch or tensorflow" >&2 && exit 1; }
    install
fi
exec python3 bench/peers/compare.py --tutti "$build/tutti" --python "$python" "$@"
