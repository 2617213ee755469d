#!/usr/bin/env bash
# Runs every suite on a finished build and adds them up: tools/run_tests.sh BUILD
# The last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
passed=0 failed=0 skipped=0
folder=$(mktemp -d)
waiting=
trap '[ -z "$waiting" ] || kill -- "-$waiting" 2> /dev/null; rm -rf "$folder"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# run LOG COMMAND...: everything it says goes to LOG, its exit status and seconds to LOG.end.
run() {
    local log=$1 started=$SECONDS
    shift
    "$@" > "$log" 2>&1
    echo "$? $((SECONDS - started))" > "$log.end"
}

# count NAME LOG: by the command's own last line "N passed, N failed[, N skipped]", or the command
# itself as one test where it does not count.
count() {
    local name=$1 log=$2 status seconds
    read -r status seconds < "$log.end" || status=1 seconds=0
    if [[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
        local p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
        sed '$d' "$log"
        [ "$status" -eq 0 ] || [ "$f" -gt 0 ] || f=1
    else
        local p=0 f=0 s=0
        if [ "$status" -eq 0 ]; then
            p=1
        elif [ "$status" -eq 77 ]; then
            s=1
        else
            f=1
            cat "$log"
            echo "$name: exit status $status"
        fi
    fi
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
    printf '%-28s %4d passed, %d failed, %d skipped  (%d s)\n' "$name" "$p" "$f" "$s" "$seconds"
}

# suite NAME COMMAND...
suite() {
    local name=$1
    shift
    run "$folder/log" "$@"
    count "$name" "$folder/log"
}

# Jobs of several processes mostly wait for each other: they do so beside the other suites, in a
# process group of their own, which ends with this script.
set -m
run "$folder/cluster" tests/cluster/run.sh "$build" < /dev/null &
waiting=$!
set +m

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
suite "strategies" tests/strategies/run.sh "$build"
suite "open jobs" tests/cluster/open.sh "$build"
wait "$waiting"
waiting=
count "cluster" "$folder/cluster"

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
