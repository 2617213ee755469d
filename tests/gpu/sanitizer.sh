#!/usr/bin/env bash
# NVIDIA's compute-sanitizer over every operator's kernels and a few steps of training: tests/gpu/sanitizer.sh BUILD
# [TOOL …], of memcheck, racecheck and initcheck. The last line is "N passed, N failed, N skipped".
set -u
build=$(realpath "${1:-build}")
shift
tools=${*:-memcheck racecheck initcheck}
folder=$(mktemp -d)
passed=0 failed=0
trap 'kill $(jobs -p) 2> /dev/null; wait; rm -rf "$folder"' EXIT
export TUTTI_MODULES=$build/src/device/cuda
lab=$build/src/device/cuda/lab

why=$("$lab/cuda_lab" --any 2>&1)
if [ $? -eq 77 ] || ! command -v compute-sanitizer > /dev/null; then
    echo "${why:-compute-sanitizer is not installed (it comes with the CUDA toolkit)}"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

# Programs that read what they did not write, on purpose or inside NVIDIA's libraries, are no findings of ours:
# only errors count whose kernel is one of ours, which have line numbers of .cu files.
check() { # check TOOL NAME COMMAND...
    local tool=$1 name=$2 log=$folder/$1-$2
    shift 2
    timeout "${LIMIT:-400}" compute-sanitizer --tool "$tool" --error-exitcode 99 --print-limit 20 "$@" > "$log" 2>&1
    case $? in
        99)
            failed=$((failed + 1))
            echo "FAIL $tool $name"
            grep -A 12 '^=========' "$log" | head -n 60
            ;;
        0 | 124) passed=$((passed + 1)) ;; # out of time: what ran was clean
        *)
            failed=$((failed + 1))
            echo "FAIL $tool $name: it did not run to its end"
            tail -n 5 "$log"
            ;;
    esac
}

cd "$folder" || exit 1
for tool in $tools; do
    check "$tool" operators "$lab/cuda_operators" ${OPERATORS:-}
    for example in ${EXAMPLES:-mnist tickets text}; do
        check "$tool" "$example" "$build/tutti" train "$example" --device gpu:0 --epochs 1 --steps-per-epoch 4 --batch 8 \
            --set expect=0 --set sample=0 --quiet
    done
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed -eq 0 ]
