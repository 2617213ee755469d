#!/usr/bin/env bash
# Our benchmarks as one table: bench/run.sh [BUILD] [--json] [--rounds N]
#
# Each benchmark runs in a process of its own, N times (3). Of times and speeds the best of the
# rounds counts, of ratios the median. --json prints every line of every round as it comes.
# The exit code is 1 when a benchmark fails; a limit that is missed is said in the table.
set -u
cd "$(dirname "$0")/.." || exit 1
build=build json=no rounds=3
while [ $# -gt 0 ]; do
    case $1 in
        --json) json=yes ;;
        --rounds) rounds=${2:?--rounds takes a number} && shift ;;
        --*) echo "usage: bench/run.sh [BUILD] [--json] [--rounds N]" >&2 && exit 2 ;;
        *) build=$1 ;;
    esac
    shift
done
tutti=$build/tutti
[ -x "$tutti" ] || { echo "there is no $tutti: run make" >&2 && exit 1; }

# Others at work make every figure worse, some more than others.
busy() { awk -v cpus="$(nproc)" '$1 > 0.5 * cpus { print $1 }' /proc/loadavg 2> /dev/null; }
load=$(busy)
[ -z "$load" ] || echo "the machine is busy (load $load): these figures will be worse than it can do" >&2

steps() {
    local name folder
    folder=$(mktemp -d)
    TUTTI_CACHE=$folder "$tutti" bench step mnist --cold --json
    rm -rf "$folder"
    for name in mnist softmax tickets loop cifar text resnet autoencoder; do
        "$tutti" bench step $name --json || return
    done
    "$tutti" bench step cifar --batch 4 --json && "$tutti" bench step text --precision bf16 --json
}

measure() {
    "$tutti" bench dispatch --json &&
        TUTTI_TRACE_RING=0 "$tutti" bench dispatch --json &&
        steps &&
        "$tutti" bench trace --json &&
        "$tutti" bench fused --json &&
        "$tutti" bench gemm --json &&
        "$tutti" bench conv --json &&
        "$tutti" bench epoch --json &&
        "$tutti" bench gemm_libraries --rounds 15 --json
}

all_rounds() {
    local round
    for ((round = 0; round < rounds; round++)); do
        measure || return
    done
}

set -o pipefail
if [ $json = yes ]; then
    all_rounds
else
    all_rounds | python3 bench/table.py
fi
