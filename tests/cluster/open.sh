#!/usr/bin/env bash
# Jobs with parameter servers, whose ranks come and go: tests/cluster/open.sh BUILD [NAME]
# The last line is "N passed, N failed, N skipped". NAME runs only the tests whose name contains it.
# KILLS=100 kills as many ranks at random, instead of 8.
set -u
here=$(realpath "$(dirname "$0")")
build=$(realpath "${1:-build}")
only=${2:-}
passed=0 failed=0 skipped=0
folder=$(mktemp -d) programs=$(mktemp -d)
trap 'rm -rf "$folder" "$programs"' EXIT
cp "$build/tutti" "$build/tests/cluster/cluster_open" "$build/tests/cluster/cluster_member" "$programs" || exit 1
tutti=$programs/tutti program=$programs/cluster_open member=$programs/cluster_member
cd "$folder" || exit 1
port=$((20000 + $$ % 9000)) # below the ports that the system gives out

fail() {
    echo "open $name: $*"
    cat out* 2> /dev/null | head -60
    bad=1
}
. "$here/../expect.sh"

# await FILE TEXT [COUNT]: until it stands there.
await() {
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(cat $1 2> /dev/null | grep -c -- "$2")" -ge "${3:-1}" ] && return
        sleep 0.05
    done
    fail "'$2' did not come"
}
# process ROLE NUMBER: of the one that came last, in out.
process() { sed -n "s/.*process \([0-9]*\) is $1 $2\$/\1/p" out | tail -1; }
# start N SERVERS OPTION... -- DEED...: in the background, its output in out; the job ends with `finish`.
start() {
    local ranks=$1 servers=$2 options=()
    shift 2
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    rm -f go
    timeout -k 1 60 "$tutti" run -n "$ranks" --ps "$servers" "${options[@]}" "$program" "$@" > out 2>&1 &
    job=$!
    await out ": $(seq -s ' ' 0 $((ranks - 1))), kept by 0" "$ranks"
}
# finish CODE
finish() {
    touch go
    wait "$job"
    code $? "$1"
}

test_killed_ranks_come_again() {
    start 4 1 --restarts 3 -- file go
    kill -KILL "$(process worker 1)"
    await out "process [0-9]* is worker 1" 2
    await out "view 6 .*: 0 1 2 3, kept by 0" 4
    kill -KILL "$(process worker 0)" # it keeps the roster
    await out "process [0-9]* is worker 0" 2
    await out "view 1003 .*: 0 1 2 3, kept by 1" 4
    kill -KILL "$(process ps 0)"
    await out "process [0-9]* is ps 0" 2
    await out "view 1005 .*: 0 1 2 3, kept by 1" 4
    finish 0
    has out "rank 1 (worker, host .*) was ended by signal 9 (Killed); starting it again, 1 of 3" 1
    has out "rank 0 (worker, .*starting it again, 2 of 3" 1
    has out "rank 3 (ps, .*starting it again, 3 of 3" 1
    has out "lost rank 1: rank 1 (host .*, process [0-9]*) is gone: connection closed by host"
    has out "lost rank 0: rank 0 (host .*, process [0-9]*) is gone: connection closed by host"
    has out "left: success" 4
    has out "joined: .* of 4 ranks are there (view .*), by launcher, epoch 0, authenticated" 7
    lacks out "did not come to their end"
}

test_dead_worker_ends_nobody() {
    start 3 1 -- file go
    kill -KILL "$(process worker 1)"
    await out "view .*: 0 2, kept by 0" 2
    sleep 0.3
    touch go
    await out "left: success" 1
    # The server waits for a worker that does not come again: the launcher ends it.
    wait "$job"
    code $? 0
    has out "rank 1 (worker, .*) was ended by signal 9 (Killed); the others go on" 1
    has out "1 of 3 ranks did not come to their end; rank 0 did" 1
}

test_exit_code_is_the_chiefs() {
    start 3 1 -- file go
    kill -KILL "$(process worker 0)"
    await out "view .*: 1 2, kept by 1" 2
    finish 137
    has out "left: success" 1
    has out "1 of 3 ranks did not come to their end; rank 0 is one of them" 1
}

test_stopped_rank_is_left_out_and_joins_again() {
    export TUTTI_SILENCE_MS=1000
    start 4 1 -- file go
    local stopped begun
    stopped=$(process worker 1) begun=$(date +%s.%N)
    kill -STOP "$stopped"
    await out "view .*: 0 2 3, kept by 0" 3
    under 3 "$(awk -v a="$begun" -v b="$(date +%s.%N)" 'BEGIN { print b - a }')"
    has out "lost rank 1: rank 1 .* has not been heard for"
    kill -CONT "$stopped"
    await out "\[1\] view .*: 0 1 2 3, kept by 0" 2
    stopped=$(process worker 0)
    kill -STOP "$stopped" # it keeps the roster
    await out "view .*: 1 2 3, kept by 1" 3
    kill -CONT "$stopped"
    await out "\[0\] view .*: 0 1 2 3, kept by 1" 1
    finish 0
    unset TUTTI_SILENCE_MS
    has out "left: success" 4
}

# by_hand RANK SIZE SERVERS DEED...
by_hand() {
    local rank=$1 size=$2 servers=$3
    shift 3
    env TUTTI_RANK="$rank" TUTTI_SIZE="$size" TUTTI_PS="$servers" TUTTI_MEETING=localhost:$port \
        timeout -k 1 40 "$program" "$@" > out."$rank" 2>&1 &
}

test_ranks_join_during_a_run() {
    port=$((port + 1))
    rm -f go
    by_hand 0 4 1 file go
    by_hand 3 4 1
    await out.0 ": 0 3, kept by 0"
    by_hand 1 4 1 file go
    await out.3 ": 0 1 3, kept by 0"
    by_hand 2 4 1 ping 200 file go
    await out.2 "round trip"
    has out.2 ": 0 1 2 3, kept by 0"
    # One with the name of another, one with another secret, one of a closed job.
    TUTTI_RANK=2 TUTTI_SIZE=4 TUTTI_PS=1 TUTTI_MEETING=localhost:$port timeout 20 "$program" --deadline 1 > out.twin 2>&1
    code $? 4
    has out.twin "that rank is here already (host .*, process [0-9]*)"
    TUTTI_SECRET=another-one-of-16-bytes TUTTI_RANK=2 TUTTI_SIZE=4 TUTTI_PS=1 TUTTI_MEETING=localhost:$port \
        timeout 20 "$program" --deadline 3 > out.secret 2>&1
    code $? 4
    has out.secret "refused: wrong secret (compare TUTTI_SECRET_FILE on both machines)"
    TUTTI_RANK=2 TUTTI_SIZE=5 TUTTI_PS=1 TUTTI_MEETING=localhost:$port timeout 20 "$program" --deadline 3 > out.size 2>&1
    code $? 4
    has out.size "wrong role: rank, task or world size disagree"
    TUTTI_RANK=2 TUTTI_SIZE=4 TUTTI_PS=1 TUTTI_MEETING=localhost:$port timeout 20 "$member" --deadline 2 > out.closed 2>&1
    code $? 4
    touch go
    wait
    has out.3 "left: success"
    lacks out.0 "lost"
}

# Whoever starts it again, a scheduler knows of no keeper: the addresses of all tasks are enough.
test_chief_comes_again_by_tf_config() {
    local spec task pids=()
    port=$((port + 4))
    rm -f go
    spec="{\"chief\": [\"localhost:$port\"], \"worker\": [\"localhost:$((port + 1))\"], \"ps\": [\"localhost:$((port + 2))\"]}"
    for task in chief worker ps chief; do
        if [ ${#pids[@]} -eq 3 ]; then
            await "out.*" ": 0 1 2, kept by 0" 3
            kill -KILL "$(sed -n 's/process \([0-9]*\) is chief 0/\1/p' out.chief.0)"
            await "out.worker.1 out.ps.2" ": 1 2, kept by 1" 2
        fi
        TF_CONFIG="{\"cluster\": $spec, \"task\": {\"type\": \"$task\", \"index\": 0}}" \
            timeout -k 1 40 "$program" file go > out.$task.${#pids[@]} 2>&1 &
        pids+=($!)
    done
    await "out.*" ": 0 1 2, kept by 1" 3
    touch go
    wait "${pids[@]:1}"
    has out.chief.3 "left: success"
    has out.worker.1 "left: success"
    has out.ps.2 "left: success"
}

test_garbage_and_idle_connections_disturb_nobody() {
    port=$((port + 1))
    rm -f go
    by_hand 0 3 1 file go
    by_hand 2 3 1
    await out.0 ": 0 2, kept by 0"
    python3 "$here/flood.py" "$port" > flood.log 2>&1 &
    await flood.log "1000 idle" 1
    by_hand 1 3 1 ping 50 file go
    await out.1 "round trip"
    touch go
    wait
    has out.0 "left: success"
    has out.1 "left: success"
    lacks out.2 "lost rank 0: .*silent"
}

test_servers_that_do_not_come_are_named() {
    port=$((port + 1))
    TUTTI_RANK=0 TUTTI_SIZE=3 TUTTI_PS=2 TUTTI_MEETING=localhost:$port timeout 20 "$program" --deadline 1 ping 1 > out 2>&1
    code $? 3
    has out "too few tasks with the role ps: 2 are needed; after 1.0 s, 1 of 3 ranks have met"
    has out "rank 2 (ps 1): "
    timeout 20 "$tutti" run -n 2 --ps 2 "$program" > out 2>&1
    code $? 2
    has out "\-\-ps 2 leaves no worker among 2 ranks"
}

# Ranks 0 and 1 are on one host, 2, 3 and the server on another: the cable between is pulled, and put back.
test_cut_network_has_one_part_that_goes_on() {
    local a=tutti-c-$$ b=tutti-d-$$ rank host pids=()
    if [ "$(id -u)" -ne 0 ] || ! ip netns add $a 2> /dev/null; then
        echo "open $name: skipped: network namespaces cannot be made here"
        skipped=$((skipped + 1)) bad=2
        return
    fi
    ip netns add $b
    if ! ip link add vc-$$ type veth peer name vd-$$ 2> /dev/null; then
        ip netns del $a
        ip netns del $b
        echo "open $name: skipped: a veth pair cannot be made here"
        skipped=$((skipped + 1)) bad=2
        return
    fi
    ip link set vc-$$ netns $a && ip link set vd-$$ netns $b
    ip -n $a addr add 10.78.0.1/24 dev vc-$$ && ip -n $a link set vc-$$ up && ip -n $a link set lo up
    ip -n $b addr add 10.78.0.2/24 dev vd-$$ && ip -n $b link set vd-$$ up && ip -n $b link set lo up
    rm -f go
    for rank in 0 1 2 3 4; do
        [ $rank -lt 2 ] && host=$a || host=$b
        TUTTI_SECRET=a-secret-for-two-hosts TUTTI_SILENCE_MS=1000 TUTTI_SIZE=5 TUTTI_PS=1 TUTTI_MEETING=10.78.0.1:4500 \
            TUTTI_RANK=$rank TUTTI_MACHINE=$host ip netns exec $host timeout -k 1 40 "$program" file go > out.$rank 2>&1 &
        pids+=($!)
    done
    await "out.*" ": 0 1 2 3 4, kept by 0" 5
    ip -n $b link set vd-$$ down # connections stay half open
    await "out.[234]" ": 2 3 4, kept by 2" 3
    await "out.[01]" ": 0 1 2 3 4, kept by 0, cut off" 2
    ip -n $b link set vd-$$ up
    await "out.*" ": 0 1 2 3 4, kept by 2$" 5
    touch go
    wait "${pids[@]}"
    has out.0 "left: success"
    has out.4 "left: success"
    has out.4 "lost rank 0: .* has not been heard for"
    ip netns del $a
    ip netns del $b
}

test_random_kills() {
    timeout -k 1 600 python3 "$here/kills.py" "$tutti" "$program" "${KILLS:-8}" > out 2>&1
    code $? 0
    figure=$(tail -1 out)
}

tests=$(declare -F | sed -n 's/^declare -f test_//p')
for name in $tests; do
    [[ $name == *$only* ]] || continue
    bad=0 figure=
    started=$(date +%s.%N)
    rm -f out* ./*.log
    "test_$name"
    case $bad in
        0) passed=$((passed + 1)) ;;
        1) failed=$((failed + 1)) ;;
    esac
    [ -z "${VERBOSE:-}" ] || echo "$name: $(awk -v a="$started" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", b - a }') s $figure"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
