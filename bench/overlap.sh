#!/usr/bin/env bash
# How much of the wire time is hidden behind the backward pass: bench/overlap.sh BUILD [MIB [ROWS]]
#
# Two workers of one thread, each on a core and in a network namespace of its own, joined by a pair of
# veth whose rate tbf limits so that the gradients of MIB take as long as the backward pass of ROWS
# examples. hidden = (step of a worker alone + gradients alone - step of both) / gradients alone. Needs
# root, ip and tc. NICE=-19 gives the workers that priority.
set -u
build=$(realpath "${1:-build}") mib=${2:-96} rows=${3:-256} nice=${NICE:-0}
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

# pair FLAGS...: microseconds of a step of both workers at once.
pair() {
    local command=(bench parallel --work dense --mib "$mib" --seconds 8 --json "$@")
    TUTTI_RANK=1 TUTTI_MACHINE=b ip netns exec $b nice -n "$nice" taskset -c 1 "$build/tutti" "${command[@]}" > /dev/null 2>&1 &
    TUTTI_RANK=0 TUTTI_MACHINE=a ip netns exec $a nice -n "$nice" taskset -c 0 "$build/tutti" "${command[@]}" 2> "$folder/error" |
        sed -n 's/.*"value":\([0-9.e+]*\).*/\1/p' | tail -1
    wait
}
alone=$(pair --rows "$rows" --alone)
[ -n "$alone" ] || { cat "$folder/error"; exit 1; }
# Of a chain of L layers the backward pass is 2 L - 1 products of 3 L - 1.
rate=$(awk -v t="$alone" -v m="$mib" 'BEGIN { l = m / 4; printf "%d", m * 1048576 * 8 / (t * (2 * l - 1) / (3 * l - 1)) }')
for side in "$a va-$$" "$b vb-$$"; do
    tc -n ${side% *} qdisc add dev ${side#* } root tbf rate "${rate}mbit" burst 512k latency 50ms
done
small_alone=$(pair --rows 1 --alone) small=$(pair --rows 1) step=$(pair --rows "$rows")
awk -v t="$alone" -v s="$step" -v w="$small" -v v="$small_alone" -v r="$rate" -v m="$mib" 'BEGIN {
    wire = w - v; hidden = (t + wire - s) / wire
    printf "overlap    %d MiB of gradients at %d Mbit/s: alone %.1f ms, wire %.1f ms, step %.1f ms\n", m, r, t / 1e3, wire / 1e3, s / 1e3
    printf "overlap    hidden behind the backward pass %36.3f share    at least 0.8  %s\n", hidden, (hidden >= 0.8 ? "ok" : "MISSED")
    exit (hidden < 0.8) }'
