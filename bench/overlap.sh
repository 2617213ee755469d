#!/usr/bin/env bash
# How much of the wire time is hidden behind the backward pass: bench/overlap.sh BUILD [MIB [ROWS]]
#
# Two workers of one thread, each on a core and in a network namespace of its own, joined by a pair of
# veth whose rate tbf limits until the gradients of MIB take, by themselves, as long as the backward pass
# of ROWS examples. Every step of both is followed by one of each worker for itself (bench parallel
# --turns), since a virtual machine is faster at times; medians.
#
#   alone    a step of a worker by itself
#   wire     a step of one example by both, beyond one by a worker alone: the gradients by themselves
#   hidden   1 - (step of both beyond one alone) / wire
#
# What is not hidden: the gradient of the last layer, which travels when the backward pass is over, a layer's
# share of the wire; and the CPU time of the network, which a worker's one core has to give (copies into and
# out of the kernel, its protocol, the addition): CPU time of a step of both beyond that of a step alone.
# Needs root, ip and tc. NICE=-15 gives the workers that priority; TURNS=6.
set -u
build=$(realpath "${1:-build}") mib=${2:-96} rows=${3:-2048} nice=${NICE:-0} turns=${TURNS:-6}
skip() {
    echo "overlap: skipped: $*"
    exit 0
}
[ "$(id -u)" -eq 0 ] || skip "needs root for network namespaces"
command -v ip > /dev/null && command -v tc > /dev/null || skip "needs ip and tc (package iproute2)"
[ "$(nproc)" -ge 2 ] || skip "needs two cores"

a=tutti-a-$$ b=tutti-b-$$ folder=$(mktemp -d)
finish() {
    ip netns del $a
    ip netns del $b
    rm -rf "$folder"
} 2> /dev/null
trap finish EXIT
ip netns add $a && ip netns add $b && ip link add va-$$ type veth peer name vb-$$ || skip "no namespaces here"
ip link set va-$$ netns $a && ip link set vb-$$ netns $b
ip -n $a addr add 10.77.0.1/24 dev va-$$ && ip -n $b addr add 10.77.0.2/24 dev vb-$$
for side in "$a va-$$" "$b vb-$$"; do
    ip -n ${side% *} link set lo up && ip -n ${side% *} link set ${side#* } up
done
(umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$folder/secret")
export TUTTI_SECRET_FILE=$folder/secret TUTTI_SIZE=2 TUTTI_MEETING=10.77.0.1:7000

# pair ROWS: steps of both workers, in turns with steps alone; microseconds in $step, $alone, $beyond, $cpu.
pair() {
    local command=(bench parallel --work dense --mib "$mib" --rows "$1" --turns "$turns" --json) values
    TUTTI_RANK=1 TUTTI_MACHINE=b ip netns exec $b nice -n "$nice" taskset -c 1 "$build/tutti" "${command[@]}" > /dev/null 2>&1 &
    values=$(TUTTI_RANK=0 TUTTI_MACHINE=a ip netns exec $a nice -n "$nice" taskset -c 0 "$build/tutti" "${command[@]}" 2> "$folder/error" |
        sed -n 's/.*"value":\([-0-9.e+]*\).*/\1/p')
    wait
    read -r -d '' step alone beyond cpu <<< "$values"
    [ -n "${cpu:-}" ] || { cat "$folder/error"; exit 1; }
}
# limit MBITS: of both ends.
limit() {
    for side in "$a va-$$" "$b vb-$$"; do
        tc -n ${side% *} qdisc replace dev ${side#* } root tbf rate "${1}mbit" burst 512k latency 50ms
    done
}
pair "$rows"
# Of a chain of L layers the backward pass is 2 L - 1 products of 3 L - 1. First the rate by which the bytes
# would take that long, then the one by which they do: frames have headers.
backward=$(awk -v t="$alone" -v m="$mib" 'BEGIN { l = m / 4; print t * (2 * l - 1) / (3 * l - 1) }')
rate=$(awk -v t="$backward" -v m="$mib" 'BEGIN { printf "%d", m * 1048576 * 8 / t }')
for ((try = 0; try < 4; try++)); do
    limit "$rate"
    pair 1
    wire=$beyond
    echo "overlap    at $rate Mbit/s the gradients take $(awk -v w="$wire" -v t="$backward" 'BEGIN { printf "%.2f", w / t }') of the backward pass" >&2
    awk -v w="$wire" -v t="$backward" 'BEGIN { exit w < 0.95 * t || w > 1.05 * t }' && break
    rate=$(awk -v r="$rate" -v w="$wire" -v t="$backward" 'BEGIN { printf "%d", r * w / t }')
done
pair "$rows"
awk -v t="$alone" -v s="$step" -v e="$beyond" -v w="$wire" -v r="$rate" -v m="$mib" -v n="$rows" -v c="$cpu" -v b="$backward" 'BEGIN {
    hidden = 1 - e / w
    printf "overlap    %d MiB of gradients, %d rows, at %d Mbit/s: alone %.1f ms, its backward pass %.1f ms, wire %.1f ms, step %.1f ms\n",
        m, n, r, t / 1e3, b / 1e3, w / 1e3, s / 1e3
    printf "overlap    cannot be hidden: CPU time of the network %.1f ms (%.3f), the last layer %.1f ms (%.3f)\n",
        c / 1e3, c / w, w / (m / 4) / 1e3, 4 / m
    printf "overlap    hidden behind the backward pass %36.3f share    at least 0.8  %s\n", hidden, (hidden >= 0.8 ? "ok" : "MISSED")
    exit (hidden < 0.8) }'
