#!/usr/bin/env bash
# Runs every suite on a finished build and adds them up: tools/run_tests.sh BUILD
# The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
passed=0 failed=0 skipped=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# suite NAME COMMAND...: counts the command's own last line "N passed, N failed[, N skipped]", or
# the command itself as one test where it does not count.
suite() {
    local name=$1 status started=$SECONDS
    shift
    "$@" > "$log" 2>&1
    status=$?
    if [[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        local p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
        sed '$d' "$log"
        [ $status -eq 0 ] || [ "$f" -gt 0 ] || f=1
    else
        local p=0 f=0 s=0
        if [ $status -eq 0 ]; then
            p=1
        elif [ $status -eq 77 ]; then
            s=1
        else
            f=1
            cat "$log"
            echo "$name: exit status $status"
        fi
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%-28s %4d passed, %d failed, %d skipped  (%d s)\n' \
        "$name" "$p" "$f" "$s" $((SECONDS - started))
}

suite "unit tests" "$build/tutti_tests"
for device in far:0 whole:0; do
    suite "sessions on $device" env TUTTI_DEVICE=$device "$build/tutti_tests" exec/ nn/
done
suite "random graphs" "$build/tests/random/random_graphs" --quick --from 1 --seeds 60
suite "fuzz corpora" "$build/tests/fuzz/corpus" tests/fuzz/corpus
suite "layers" python3 tools/layers.py
suite "files in the build" python3 tools/orphans.py
suite "joined sources" tests/joined.sh
suite "list of ONNX operators" python3 tools/onnx_docs.py --check
suite "installed library" tests/outside/run.sh "$build"
suite "packaging" packaging/test.sh "$build"
suite "examples" tests/examples.sh "$build"
suite "killed examples" env KILLS=2 tests/resume.sh "$build"
suite "cluster" tests/cluster/run.sh "$build"
suite "strategies" tests/strategies/run.sh "$build"

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
