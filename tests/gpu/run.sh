#!/usr/bin/env bash
# What must hold on an NVIDIA GPU: tests/gpu/run.sh BUILD [NAME …]
# Suites run beside each other, but for the laboratory, which measures. The last line is "N passed, N failed,
# N skipped". Without a GPU that is said, and nothing fails.
set -u
build=$(realpath "${1:-build}")
cd "$(dirname "$0")/../.." || exit 1
shift
names=${*:-operators unit examples random sessions killed laboratory}
folder=$(mktemp -d)
passed=0 failed=0 skipped=0
trap 'kill $(jobs -p) 2> /dev/null; wait; rm -rf "$folder"' EXIT
export TUTTI_MODULES=$build/src/device/cuda
lab=$build/src/device/cuda/lab

why=$("$lab/cuda_lab" --any 2>&1)
if [ $? -eq 77 ]; then
    echo "$why"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

# suite NAME LIMIT COMMAND...: in the background; what it says goes to a file.
suite() {
    local name=$1 limit=$2 started=$SECONDS
    shift 2
    {
        timeout -k 5 "$limit" "$@" > "$folder/$name" 2>&1
        echo "$? $((SECONDS - started))" > "$folder/$name.end"
    } < /dev/null &
}

# Waits for all suites, adds up their last lines, and shows those that fail.
collect() {
    local name status seconds p f s
    wait
    for name in "$@"; do
        read -r status seconds < "$folder/$name.end"
        if [[ $(tail -n 1 "$folder/$name") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed(,\ ([0-9]+)\ skipped)?$ ]]; then
            p=${BASH_REMATCH[1]} f=${BASH_REMATCH[2]} s=${BASH_REMATCH[4]:-0}
            [ "$status" -eq 0 ] || [ "$f" -gt 0 ] || f=1
        else
            p=0 f=1 s=0
        fi
        [ "$f" -eq 0 ] && [ -z "${VERBOSE:-}" ] || cat "$folder/$name"
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        printf '%-28s %4d passed, %d failed, %d skipped  (%d s)\n' "$name" "$p" "$f" "$s" "$seconds"
    done
}

wanted() { [[ " $names " == *" $1 "* ]]; }

started=()
begin() { # begin NAME LIMIT COMMAND...
    started+=("$1")
    suite "$@"
}
if wanted operators; then
    for i in 0 1 2 3; do begin "operators-$i" 200 "$lab/cuda_operators" --part "$i/4"; done
fi
! wanted unit || begin unit 240 "$build/tutti_tests" --timeout 200 gpu
! wanted examples || begin examples 280 tests/strategies/run.sh "$build" --gpu --jobs 10
collect "${started[@]}"

started=()
if wanted random; then
    for i in 0 1 2 3; do
        begin "random-$i" 200 "$build/tests/random/random_graphs" --quick --way 'gpu*' --from $((500 * i)) --seeds 6
    done
fi
# Every file's tests share a process: a context of the GPU is dear.
! wanted sessions || begin sessions 200 env TUTTI_DEVICE=gpu:0 "$build/tutti_tests" --together --timeout 150 \
    exec/run/session exec/run/runs exec/run/updates exec/run/control exec/run/draws exec/run/set exec/tape \
    nn/training nn/layers nn/optimizers nn/losses nn/metrics
! wanted killed || begin killed 200 env TUTTI_DEVICE=gpu:0 KILLS=2 FLAGS=--deterministic tests/resume.sh "$build" mnist text
collect "${started[@]}"

if wanted laboratory; then
    suite laboratory 120 "$lab/cuda_lab"
    collect laboratory
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
