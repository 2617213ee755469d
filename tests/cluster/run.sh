#!/usr/bin/env bash
# Jobs of several processes, and what happens when one of them fails: tests/cluster/run.sh BUILD [NAME]
# The last line is "N passed, N failed, N skipped". NAME runs only the tests whose name contains it.
set -u
here=$(realpath "$(dirname "$0")")
build=$(realpath "${1:-build}")
only=${2:-}
tutti=$build/tutti
member=$build/cluster_member
[ -x "$member" ] || member=$build/tests/cluster/cluster_member
rank_program=$(dirname "$member")/cluster_rank # collectives, by rank.c
passed=0 failed=0 skipped=0
folder=$(mktemp -d) programs=$(mktemp -d)
trap 'rm -rf "$folder" "$programs"' EXIT
# Copies: a program that is being linked anew meanwhile would not start.
cp "$tutti" "$member" "$rank_program" "$programs" || exit 1
tutti=$programs/tutti member=$programs/cluster_member rank_program=$programs/cluster_rank
cd "$folder" || exit 1
port=$((20000 + $$ % 10000)) # below the ports that the system gives out

fail() {
    echo "cluster $name: $*"
    cat out* 2> /dev/null | head -40
    bad=1
}
skip() {
    echo "cluster $name: skipped: $*"
    skipped=$((skipped + 1))
    bad=2
}
. "$here/../expect.sh"

# ranks N COMMAND...: N processes without a launcher, in out.RANK; their ids are in pids.
ranks() {
    local size=$1 rank
    shift
    port=$((port + 1))
    pids=()
    for ((rank = 0; rank < size; rank++)); do
        env TUTTI_RANK=$rank TUTTI_SIZE="$size" TUTTI_MEETING="${meeting:-localhost:$port}" "$@" \
            > out.$rank 2>&1 &
        pids+=($!)
    done
}
# await FILE TEXT COUNT: until it stands there.
await() {
    local i
    for ((i = 0; i < 600; i++)); do
        [ "$(cat $1 2> /dev/null | grep -c -- "$2")" -ge "$3" ] && return
        sleep 0.05
    done
    fail "'$2' did not come"
}
# seen FILES...: the latest time at which a verdict was seen.
seen() { sed -n 's/^\(\[[ 0-9]*\] \)\?seen at //p' "$@" | sort -n | tail -1; }
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", b - a }'; }

test_meet_exchange_and_leave() {
    timeout 20 "$tutti" run -n 4 "$member" exchange 20 channel > out 2> out.err
    code $? 0
    has out "4 ranks on 1 host" 4
    has out "authenticated" 4
    has out "exchanged 20" 4
    has out "channels plain" 4
    has out "left" 4
    [ ! -s out.err ] || fail "something on stderr"
}

test_sixty_four_ranks_meet() {
    local best=99 i took
    for i in 1 2 3; do
        timeout 30 "$tutti" run -n 64 "$member" exchange 2 > out 2>&1
        code $? 0
        has out "left" 64
        took=$(sed -n 's/.*joined as [0-9]* in \([0-9.]*\) s.*/\1/p' out | sort -n | tail -1)
        best=$(printf '%s\n%s\n' "$best" "$took" | sort -n | head -1)
        awk -v t="$best" 'BEGIN { exit !(t < 2) }' && break
    done
    under 2 "$best"
    figure="64 ranks meet in $best s"
}

test_benchmark_of_collectives() {
    local engine
    for engine in local shm tcp; do
        timeout 60 "$tutti" bench collectives -n 2 --engine $engine --bytes 64k --algorithm auto --json > out 2>&1
        code $? 0
        has out "\"engine\":\"$engine\",\"algorithm\":\"auto\",\"ranks\":2,\"bytes\":65536" 1
        has out '"predictions":1,' 1
    done
    timeout 60 "$tutti" bench collectives -n 2 --engine local --bytes 64k --algorithm ring --rounds 2 --json > out 2>&1
    code $? 0
    has out '"predictions":1,' 1
    has out 'round 2 of 2' 1
    timeout 60 "$tutti" bench collectives -n 2 --engine local --bytes 8 --algorithm hierarchical > out 2>&1
    code $? 1
    has out "by 'hierarchical' is not possible in this group of 2 ranks on 1 machine; there are: .*ring" 1
    lacks out "there are:.*hierarchical"
    local lanes=4
    if [ "$(nproc)" -gt 1 ] && [ "$(nproc)" -lt $((2 * lanes)) ]; then
        TUTTI_LANES=$lanes timeout 60 "$tutti" bench collectives -n 2 --engine tcp --bytes 64k --algorithm ring > out 2>&1
        code $? 0
        has out "Each of 2 ranks has $lanes lanes, on $(nproc) CPUs: lanes take turns" 1
        lacks out "more ranks than CPUs"
    fi
    timeout 60 "$tutti" bench collectives --engine pigeon > out 2>&1
    code $? 2
    has out "there is no engine 'pigeon'" 1
    timeout 60 "$tutti" bench collectives --bytes 64k --algorithm ring --describe nowhere/links > out 2>&1
    code $? 1
    has out "cannot write 'nowhere/links': No such file or directory"
    lacks out "predicted us" # nothing was measured for it
    timeout 60 "$tutti" bench collectives --op async --algorithm ring > out 2>&1
    code $? 2
    has out "async has no algorithms" 1
}

test_ranks_without_standard_descriptors() {
    timeout 30 "$tutti" run -n 2 "$rank_program" reduce 1 <&- >&- 2>&-
    code $? 1 # what the ranks printed is lost
    timeout 30 "$tutti" run -n 2 sh -c "exec $rank_program reduce 1 > /dev/null" <&- >&- 2>&-
    code $? 0
    timeout 30 "$tutti" run -n 2 sh -c "exec $rank_program reduce 1 <&- >&- 2>&-" > out 2>&1
    code $? 0
}

test_ranks_with_other_limits_of_silence() {
    timeout 30 "$tutti" run -n 2 sh -c "[ \$TUTTI_RANK = 0 ] || export TUTTI_SILENCE_MS=60000; exec $rank_program reduce 1" > out 2>&1
    code $? 4
    has out "limit of silence (TUTTI_SILENCE_MS) must be the same on all ranks: it is '5000' on rank 0 .* and '60000' on rank 1"
}

test_rank_that_ends_too_early_is_named() {
    timeout 30 "$tutti" run -n 3 sh -c '[ $TUTTI_RANK = 1 ] && exit 0; sleep 0.5; exit 3' > out 2>&1
    code $? 3
    has out "ranks that ended before the first failure, with exit code 0: 1$" 1
    timeout 30 "$tutti" run -n 2 sh -c '[ $TUTTI_RANK = 1 ] && exit 3; sleep 0.5; exit 0' > out 2>&1
    code $? 3
    lacks out "ended before the first failure"
}

test_benchmark_of_steps_in_turns() {
    timeout 60 "$tutti" run --no-prefix -n 2 "$tutti" bench lockstep --engine tcp --turns 3 --json > out 2>&1
    code $? 0
    has out 'mnist, 2 workers, tcp: speed against workers apart","value":[0-9.]*[1-9]' 1
    has out '"bench":"lockstep"' 4
    timeout 60 "$tutti" bench lockstep --turns 1 > out 2>&1
    code $? 0
    has out "one worker waits for nobody" 1
    timeout 60 "$tutti" run --no-prefix -n 2 "$tutti" bench parallel --work dense --mib 8 --turns 3 --json > out 2>&1
    code $? 0
    has out 'dense, 8 MiB, 16 rows each: \(step\|alone\|beyond alone\|CPU time beyond alone\)"' 4
    timeout 60 "$tutti" bench parallel --turns 3 > out 2>&1
    code $? 2
    has out "turns is for the workers of a job" 1
}

test_killed_rank() {
    ranks 4 timeout -k 1 20 "$member" spin
    await "out.*" spinning 4
    local at victim
    victim=$(sed -n 's/^spinning //p' out.1)
    at=$(now)
    { kill -9 "$victim"; wait "${pids[1]}"; } 2> /dev/null
    { wait "${pids[0]}" "${pids[2]}" "${pids[3]}"; } 2> /dev/null
    for rank in 0 2 3; do
        has out.$rank "rank 1 (host .*, process $victim) is gone: connection closed by host"
        has out.$rank "in all_reduce number 42; arrived: 0, 2-3; missing: 1"
    done
    figure="death is known everywhere after $(since "$at" "$(seen out.*)") s"
    under 1 "$(since "$at" "$(seen out.*)")"
}

# Its child lives on, with copies of all that was open.
test_killed_rank_with_a_helper() {
    ranks 3 timeout -k 1 20 "$member" channel helper 8 spin
    await "out.*" spinning 3
    local at
    at=$(now)
    { kill -9 "$(sed -n 's/^spinning //p' out.1)"; wait "${pids[1]}"; } 2> /dev/null
    wait "${pids[0]}" "${pids[2]}"
    has out.0 "rank 1 (host .*) is gone: connection closed by host"
    has out.2 "rank 1 (host .*) is gone: connection closed by host"
    under 1 "$(since "$at" "$(seen out.*)")"
}

# Nobody needs its name any more, and nobody else would take it away.
test_no_segment_of_a_maker_that_died() {
    command -v cc > /dev/null || { skip "no compiler"; return; }
    cat > die.c << 'end'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int shm_unlink(const char *name)
{
    if (atoi(getenv("TUTTI_RANK")) == 0) {
        printf("segment %s\n", name);
        fflush(stdout);
        kill(getpid(), SIGKILL);
    }
    return ((int (*)(const char *))dlsym(RTLD_NEXT, "shm_unlink"))(name);
}
end
    cc -shared -fPIC -o die.so die.c -ldl || { skip "no shared library can be made"; return; }
    timeout 20 "$tutti" run -n 3 --engine shm --env LD_PRELOAD="$PWD/die.so" "$rank_program" reduce 1 > out 2>&1
    if grep -q "runtime does not come first" out; then
        skip "a sanitizer does not let others come first"
        return
    fi
    has out "segment /tutti-" 1
    [ ! -e "/dev/shm$(sed -n 's/.*segment //p' out)" ] || fail "the segment is left"
}

test_killed_rank_zero() {
    ranks 3 timeout -k 1 20 "$member" spin
    await "out.*" spinning 3
    local at
    at=$(now)
    { kill -9 "$(sed -n "s/^spinning //p" out.0)"; wait "${pids[0]}"; } 2> /dev/null
    wait "${pids[1]}" "${pids[2]}"
    has out.1 "rank 0 (host .*) is gone"
    has out.2 "rank 0 (host .*) is gone"
    under 1 "$(since "$at" "$(seen out.*)")"
}

test_killed_rank_under_the_launcher() {
    timeout 20 "$tutti" run -n 4 "$member" spin > out 2> out.err &
    local launcher=$! at
    await out spinning 4
    at=$(now)
    kill -9 "$(sed -n 's/^\[2\] spinning //p' out)"
    wait $launcher
    code $? 137
    has out "rank 2 (host .*) was ended by signal 9 (Killed)" 3
    lacks out "in all_reduce" # not by every rank
    [[ $(tail -n 1 out.err) == *"first failed rank 2"*"signal 9"*"; waiting for it: rank"*", in all_reduce number 42" ]] ||
        fail "the first failure is not last"
    under 1 "$(since "$at" "$(seen out)")"
}

test_exit_code_and_abort() {
    timeout 20 "$tutti" run -n 3 "$member" exchange 1 crash 7 spin > out 2>&1
    code $? 7
    has out "rank 1 (.*) exited with code 7 before the job was finished" 2
    timeout 20 "$tutti" run -n 3 "$member" exchange 1 abort spin > out 2>&1
    code $? 134
    has out "signal 6 (Aborted)" 3
}

test_rank_that_never_joins() {
    timeout 20 "$tutti" run -n 4 sh -c "[ \$TUTTI_RANK != 2 ] || exit 5; exec $member" > out 2> out.err
    code $? 5
    has out "before .* had met.*, rank 2 .* exited with code 5" 3
}

test_stopped_rank() {
    export TUTTI_SILENCE_MS=1000
    ranks 3 timeout -k 1 20 "$member" spin
    unset TUTTI_SILENCE_MS
    await "out.*" spinning 3
    local at victim
    victim=$(sed -n 's/^spinning //p' out.2)
    at=$(now)
    kill -STOP "$victim"
    wait "${pids[0]}" "${pids[1]}"
    kill -CONT "$victim"
    wait "${pids[2]}"
    has out.0 "rank 2 .* has not been heard for 1.0 s"
    has out.1 "rank 2 .* has not been heard for 1.0 s"
    has out.2 "rank 2 .* has not been heard for 1.0 s" # it hears of it itself
    under 1.5 "$(since "$at" "$(seen out.0 out.1)")"
}

# Rank 0 finds all others gone when it goes on, and blames none of them.
test_stopped_rank_0() {
    local rank victim
    TUTTI_SILENCE_MS=1000 ranks 3 timeout -k 1 20 "$member" spin
    await "out.*" spinning 3
    victim=$(sed -n 's/^spinning //p' out.0)
    kill -STOP "$victim"
    wait "${pids[1]}" "${pids[2]}"
    kill -CONT "$victim"
    wait "${pids[0]}"
    for rank in 0 1 2; do has out.$rank "rank 0 .* has not been heard for 1.0 s"; done
}

test_a_stopped_rank_is_named_by_the_launcher() {
    timeout 20 "$tutti" run -n 2 sh -c '[ $TUTTI_RANK = 0 ] || kill -STOP $$' > out 2> err &
    local launcher=$!
    await err "was stopped by signal" 1
    has err "rank 1 (host .*, process [0-9]*) was stopped by signal 19 .*; kill -CONT [0-9]* there" 1
    kill -CONT "$(sed -n 's/.*kill -CONT \([0-9]*\) .*/\1/p' err)"
    wait $launcher
    code $? 0
}

test_half_open_connection() {
    port=$((port + 1))
    python3 "$here/proxy.py" $((port + 1000)) $((port + 1)) > proxy.log 2>&1 &
    local proxy=$!
    await proxy.log ready 1
    export TUTTI_SILENCE_MS=1000
    TUTTI_RANK=0 TUTTI_SIZE=2 TUTTI_MEETING=localhost:$((port + 1)) timeout 20 "$member" spin > out.0 2>&1 &
    pids=($!)
    TUTTI_RANK=1 TUTTI_SIZE=2 TUTTI_MEETING=localhost:$((port + 1000)) timeout 20 "$member" spin > out.1 2>&1 &
    pids+=($!)
    unset TUTTI_SILENCE_MS
    await "out.*" spinning 2
    kill -USR1 $proxy # swallows everything from now on
    wait "${pids[@]}"
    kill $proxy
    has out.0 "rank 1 .* has not been heard for 1.0 s"
    has out.1 "rank 0 .* has not been heard for 1.0 s"
    port=$((port + 1))
}

test_missing_ranks_and_why() {
    port=$((port + 3))
    local cluster="\"cluster\":{\"worker\":[\"localhost:$port\",\"localhost:$((port + 1))\",\"localhost:$((port + 2))\"]}"
    TF_CONFIG="{$cluster,\"task\":{\"type\":\"worker\",\"index\":1}}" timeout 20 "$member" --deadline 1 > out.1 &
    TF_CONFIG="{$cluster,\"task\":{\"type\":\"worker\",\"index\":0}}" timeout 20 "$member" --deadline 1 > out.0
    code $? 4
    wait $!
    code $? 4
    has out.0 "2 of 3 ranks have met"
    has out.0 "rank 2 (worker 2 at localhost:$((port + 2))): Connection refused"
    has out.1 "rank 0 gave up: .*2 of 3 ranks have met"
    has out.1 "rank 2 (worker 2"
}

# Rank 0 says it when the name by which others look for it is none.
test_missing_ranks_by_a_wrong_name() {
    port=$((port + 1))
    env TUTTI_RANK=0 TUTTI_SIZE=2 TUTTI_MEETING=nowhere.invalid:$port TUTTI_SECRET=0123456789abcdef \
        timeout 20 "$member" --deadline 1 > out.0
    code $? 4
    has out.0 "1 of 2 ranks have met at nowhere.invalid:$port"
    has out.0 "the name 'nowhere.invalid', by which they look for rank 0, does not resolve here either"
}

test_wrong_secret_role_and_version() {
    port=$((port + 1))
    local at="TUTTI_MEETING=localhost:$port"
    env TUTTI_RANK=0 TUTTI_SIZE=3 "$at" TUTTI_SECRET=0123456789abcdef timeout 20 "$member" --deadline 2 > out.0 &
    env TUTTI_RANK=1 TUTTI_SIZE=3 "$at" TUTTI_SECRET=fedcba9876543210 timeout 20 "$member" --deadline 2 > out.1
    code $? 4
    has out.1 "refused: wrong secret"
    env TUTTI_RANK=2 TUTTI_SIZE=4 "$at" TUTTI_SECRET=0123456789abcdef timeout 20 "$member" --deadline 2 > out.2
    code $? 4
    has out.2 "refused: wrong role"
    wait $!
    has out.0 "rank 1 (worker 1): a process at 127.0.0.1 was refused: wrong secret"
    has out.0 "rank 2 (worker 2): a process at 127.0.0.1 was refused: wrong role"
}

# Of ranks that have been there the table says so.
test_missing_ranks_that_were_there() {
    port=$((port + 1))
    export TUTTI_SIZE=4 TUTTI_MEETING=localhost:$port
    TUTTI_RANK=0 timeout 20 "$member" --deadline 6 > out.0 &
    local zero=$! victim
    TUTTI_RANK=1 "$member" --deadline 20 > out.1 &
    victim=$!
    sleep 2
    { kill -9 $victim; wait $victim; } 2> /dev/null
    TUTTI_RANK=2 TUTTI_EPOCH=7 timeout 20 "$member" --deadline 1 > out.2
    code $? 4
    has out.2 "a process of another start of this job"
    wait $zero
    code $? 4
    unset TUTTI_SIZE TUTTI_MEETING
    has out.0 "rank 1 (worker 1): it was there (host .*, process $victim), and went before all had met"
    has out.0 "rank 2 (worker 2): a process at 127.0.0.1 was refused: a process of another start of this job (compare TUTTI_EPOCH)"
    has out.0 "rank 3 (worker 3): it has not been heard of"
}

test_ranks_may_come_again_while_others_gather() {
    port=$((port + 1))
    export TUTTI_SIZE=3 TUTTI_MEETING=localhost:$port
    local first again
    for rank in 0 1; do
        TUTTI_RANK=$rank timeout 20 "$member" exchange 2 > out.$rank 2>&1 &
        first[rank]=$!
    done
    sleep 0.3
    { kill -9 "$(pgrep -P "${first[0]}")" "$(pgrep -P "${first[1]}")"; wait "${first[@]}"; } 2> /dev/null
    for rank in 2 1 0; do # rank 0 last: the others wait for it
        TUTTI_RANK=$rank timeout 20 "$member" exchange 2 > out.$rank 2>&1 &
        again[rank]=$!
        sleep 0.1
    done
    unset TUTTI_SIZE TUTTI_MEETING
    for rank in 0 1 2; do
        wait "${again[rank]}"
        code $? 0
        has out.$rank left
    done
}

test_ipv6() {
    [ -e /proc/net/if_inet6 ] && grep -q ' lo$' /proc/net/if_inet6 || { skip "there is no IPv6"; return; }
    port=$((port + 1))
    meeting=[::1]:$port ranks 3 timeout 20 "$member" exchange 3 channel
    wait "${pids[@]}"
    for rank in 0 1 2; do has out.$rank left; done
}

test_secret_files() {
    printf 'a secret of some length\n' > secret
    chmod 644 secret
    TUTTI_SECRET_FILE=secret ranks 1 timeout 20 "$member"
    wait "${pids[0]}"
    has out.0 "chmod 600"
    chmod 600 secret
    export TUTTI_SECRET_FILE=$folder/secret
    ranks 2 timeout 20 "$member" exchange 1
    wait "${pids[@]}"
    unset TUTTI_SECRET_FILE
    has out.0 "authenticated"
    has out.1 "left"
    meeting=$(hostname):$port ranks 2 timeout 20 "$member"
    wait "${pids[@]}"
    has out.0 "openssl rand -hex 32"
    has out.0 "export TUTTI_SECRET_FILE="
}

# A wrapper that closes descriptors, or puts a file of its own in their place.
test_secret_behind_a_wrapper() {
    cat > wrap.py << 'end'
import os, subprocess, sys
fd = int(os.environ["TUTTI_SECRET_FD"])
if sys.argv[1] == "other":
    os.dup2(os.open(__file__, os.O_RDONLY), fd)
sys.exit(subprocess.run(sys.argv[2:], close_fds=sys.argv[1] == "closed").returncode)
end
    timeout 20 "$tutti" run -n 2 python3 wrap.py closed "$member" exchange 1 > out 2>&1
    has out "(TUTTI_SECRET_FD) is closed; .*close_fds=False"
    timeout 20 "$tutti" run -n 2 python3 wrap.py other "$member" exchange 1 > out 2>&1
    has out "(TUTTI_SECRET_FD) is another file; .*close_fds=False"
    timeout 20 "$tutti" run -n 2 python3 wrap.py open "$member" exchange 1 > out 2>&1
    code $? 0
    has out "exchanged 1" 2
}

test_secret_is_not_in_sight() {
    timeout 20 "$tutti" run -n 2 "$member" spin > out 2>&1 &
    local launcher=$! process fd secret
    await out spinning 2
    process=$(sed -n 's/^\[1\] spinning //p' out)
    fd=$(tr '\0' '\n' < "/proc/$process/environ" | sed -n 's/^TUTTI_SECRET_FD=//p')
    secret=$(cat "/proc/$process/fd/$fd")
    [ ${#secret} -eq 64 ] || fail "the secret has ${#secret} characters"
    for each in $launcher $(pgrep -g $$) $(pgrep -x tutti) $(sed -n 's/.*spinning //p' out); do
        for file in "/proc/$each/cmdline" "/proc/$each/environ"; do
            if tr '\0' '\n' 2> /dev/null < "$file" | grep -q "$secret"; then fail "the secret stands in $file"; fi
        done
    done 2> /dev/null
    kill -INT $launcher
    wait $launcher
}

test_garbage_and_a_thousand_idle_connections() {
    ranks 3 timeout -k 1 60 "$member" exchange 50 file flooded channel exchange 50
    await "out.*" joined 3
    python3 "$here/flood.py" "$port" > flood.log 2>&1 &
    await flood.log "1000 idle" 1
    touch flooded
    wait "${pids[@]}"
    for rank in 0 1 2; do
        has out.$rank "exchanged 50" 2
        has out.$rank left
    done
    wait
    has flood.log "1000 idle connections"
}

test_rendezvous_behind_a_flood() {
    port=$((port + 1))
    TUTTI_RANK=0 TUTTI_SIZE=2 TUTTI_MEETING=localhost:$port timeout 20 "$member" exchange 1 > out.0 2>&1 &
    pids=($!)
    python3 "$here/flood.py" "$port" > flood.log 2>&1 &
    await flood.log "1000 idle" 1
    TUTTI_RANK=1 TUTTI_SIZE=2 TUTTI_MEETING=localhost:$port timeout 20 "$member" exchange 1 > out.1 2>&1
    code $? 0
    wait
    has out.0 left
}

# What the system refuses is the first failure; that the ranks before it are ended is not.
test_rank_that_the_system_does_not_start() {
    local apart="setpriv --reuid 54321 --clear-groups"
    $apart true 2> /dev/null || { skip "needs root and setpriv for a user with few processes"; return; }
    chmod 755 "$programs" # launcher, station, its warden, two ranks
    (cd / && exec timeout 20 $apart bash -c "ulimit -u 5; exec $tutti run -n 3 sleep 20") > out 2>&1
    code $? 71
    tail -1 out > out.last
    has out.last "first failed rank 2 (host .*): it could not be started: Resource temporarily unavailable" 1
}

test_no_orphans_when_the_launcher_is_killed() {
    "$tutti" run -n 3 sh -c "sleep 60 & echo \$\$ \$! >> $folder/processes; wait" > out 2>&1 &
    local launcher=$! left
    await processes " " 3
    kill -9 $launcher
    wait $launcher 2> /dev/null
    sleep 0.5
    left=0
    for process in $(cat processes); do
        [ ! -d "/proc/$process" ] || grep -q 'State:.Z' "/proc/$process/status" || left=$((left + 1))
    done
    [ $left -eq 0 ] || fail "$left processes are left"
    rm -f processes
}

# What has left its rank's process group ends with the job too, and what it has started.
test_no_daemons_after_the_job() {
    local daemon="setsid sh -c 'sleep 61 & echo \$\$ \$! >> $folder/processes; wait' &"
    local launcher process left=0
    rm -f processes
    timeout 20 "$tutti" run -n 2 sh -c "$daemon sleep 0.5; exit 3" > out 2>&1
    code $? 3
    has processes " " 2
    "$tutti" run -n 1 sh -c "$daemon wait" > out 2>&1 &
    launcher=$!
    await processes " " 3
    kill -9 $launcher
    wait $launcher 2> /dev/null
    sleep 0.5
    for process in $(cat processes); do
        [ ! -d "/proc/$process" ] || grep -q 'State:.Z' "/proc/$process/status" || left=$((left + 1))
    done
    [ $left -eq 0 ] || fail "$left processes are left"
    rm -f processes
}

# The same where a station is killed, or its warden: nothing of theirs is left.
test_no_daemons_when_a_station_is_killed() {
    local daemon="setsid sh -c 'sleep 62 & echo \$\$ \$! >> $folder/processes; wait' &"
    local launcher victim process whom left
    for whom in station warden; do
        left=0
        rm -f processes
        "$tutti" run -n 2 sh -c "$daemon sleep 62 & echo \$\$ \$! >> $folder/processes; wait" > out 2>&1 &
        launcher=$!
        await processes " " 4
        victim=$(pgrep -P $launcher)
        [ $whom = warden ] || victim=$(pgrep -P "$victim")
        kill -9 "$victim"
        wait $launcher
        code $? 137
        sleep 0.5
        for process in $(cat processes); do
            [ ! -d "/proc/$process" ] || grep -q 'State:.Z' "/proc/$process/status" || left=$((left + 1))
        done
        [ $left -eq 0 ] || fail "$left processes are left when the $whom is killed"
    done
    rm -f processes
}

test_a_stopped_station_is_given_up() {
    local launcher warden whom at
    for whom in station warden both; do
        TUTTI_SILENCE_MS=3000 timeout 40 "$tutti" run -n 2 "$member" spin > out 2> err &
        at=$(now)
        await out spinning 2
        launcher=$(pgrep -P $!)
        warden=$(pgrep -P "$launcher")
        [ $whom = station ] || kill -STOP "$warden"
        [ $whom = warden ] || kill -STOP "$(pgrep -P "$warden" | head -1)"
        if [ $whom = warden ]; then # the station works, and the job goes on
            sleep 4
            lacks err "not been heard"
            pkill -9 -x -P "$(pgrep -P "$warden")" cluster_member
        fi
        wait $!
        code $? 137
        [ $whom = warden ] || has err "the station on host .* (process $warden) has not been heard for [3-6]\.[0-9] s: stopped" 1
        [ $whom = warden ] || [[ $(tail -n 1 err) == *"first failed rank 0 "*": the station that watches it (process $warden) had not been heard for"* ]] ||
            fail "the first failure is not last"
        under 15 "$(since "$at" "$(now)")"
        [ ! -d "/proc/$warden" ] || fail "the $whom is left"
    done
}

test_no_loopback() {
    local at
    at=$(now)
    if ! unshare -rn true 2> /dev/null; then
        skip "network namespaces cannot be made here"
        return
    fi
    timeout 40 unshare -rn "$tutti" run -n 2 "$member" exchange 2 > out 2> err
    code $? 4
    has out "no loopback interface that is up; as root: ip link set lo up" 2
    under 10 "$(since "$at" "$(now)")"
}

test_interrupt_reaches_everyone() {
    timeout 20 "$tutti" run -n 3 sh -c 'trap "echo stopped; exit 5" INT; echo ready; while :; do sleep 0.05; done' > out 2>&1 &
    local launcher=$!
    await out ready 3
    kill -INT "$(pgrep -P $launcher)" 2> /dev/null || kill -INT $launcher
    wait $launcher
    code $? 130
    has out stopped 3
}

# Before a command: it hears of signals that the tests themselves were started to ignore (nohup).
heard=(env --default-signal=HUP,INT,QUIT)

# What the table of `tutti run --help` says.
test_exit_codes_after_signals() {
    local launcher signal ending expected
    for each in TERM:75:75 HUP:75:75 HUP:none:130 QUIT:75:75 TERM:0:0 TERM:5:130 TERM:none:130 INT:0:0 INT:5:130 INT:none:130; do
        IFS=: read -r signal ending expected <<< "$each"
        rm -f out # the last one's "ready"
        if [ "$ending" = none ]; then
            "${heard[@]}" "$tutti" run -n 2 --restarts 1 sh -c 'echo ready; exec sleep 20' > out 2>&1 &
        else
            "${heard[@]}" "$tutti" run -n 2 --restarts 1 sh -c "trap 'exit $ending' TERM INT; echo ready; while :; do sleep 0.05; done" > out 2>&1 &
        fi
        launcher=$!
        await out ready 2
        kill -$signal $launcher
        wait $launcher
        code $? "$expected"
        lacks out "starting again"
    done
}

# A rank saves at SIGUSR1 or SIGUSR2 and goes on, and what it has started hears nothing of it.
test_signals_of_the_ranks_own() {
    local launcher host hosts=localhost:2 ip
    cat > save.sh << 'end'
sleep 30 &
trap "echo one" USR1
trap "echo two; kill $! && echo alive" USR2
trap "exit 0" TERM
echo ready
while :; do sleep 0.05; done
end
    for host in here ssh; do
        rm -f out
        if [ $host = ssh ]; then
            own_address || return
            fake_hosts
            hosts=a@$ip:1,b@$ip:1
        fi
        PATH=$folder/bin:$PATH "${heard[@]}" "$tutti" run --hosts $hosts sh "$folder/save.sh" > out 2>&1 &
        launcher=$!
        await out ready 2
        kill -USR1 $launcher
        await out one 2
        kill -USR2 $launcher
        await out alive 2
        has out two 2
        kill -HUP $launcher
        wait $launcher
        code $? 0
    done
}

# What nohup has started outlives its terminal; between two starts there is nobody to be told.
test_signals_that_do_not_end_the_launcher() {
    local launcher
    nohup "$tutti" run -n 2 sh -c 'echo ready; sleep 1; echo lives' > out 2>&1 &
    launcher=$!
    await out ready 2
    kill -HUP $launcher
    wait $launcher
    code $? 0
    has out lives 2
    rm -f out
    "$tutti" run -n 2 --restarts 40 sh -c 'trap "" USR1; sleep 0.02; [ $TUTTI_EPOCH -eq 40 ]' > out 2>&1 &
    launcher=$!
    await out "again, 1 of" 1
    while ! grep -q "again, 40 of" out; do
        kill -USR1 $launcher 2> /dev/null || break
        sleep 0.002
    done
    wait $launcher
    has out "again, 40 of" 1
}

# At any moment, also between two starts and while the launcher reaps what has ended.
test_signals_between_restarts() {
    local i launcher
    for i in 1 2 3 4 5 6 7 8; do
        rm -f out
        "$tutti" run -n 2 --restarts 10000 sh -c 'exit 1' > out 2>&1 &
        launcher=$!
        await out "starting again, 3 of" 1
        sleep 0.0$((RANDOM % 90 + 10))
        kill -TERM $launcher
        { wait $launcher; } 2> /dev/null
        code $? 130
    done
}

test_restarts() {
    timeout 20 "$tutti" run -n 2 --restarts 2 sh -c 'echo epoch $TUTTI_EPOCH; [ $TUTTI_EPOCH -gt 1 ]' > out 2>&1
    code $? 0
    has out "epoch 2" 2
    has out "starting again, 2 of 2"
    timeout 20 "$tutti" run -n 1 --restarts 1 sh -c 'exit 9' > out 2>&1
    code $? 9
}

# own_address: sets ip to an address of this machine that is not loopback, or skips.
own_address() {
    ip=$(ip -4 -o addr show scope global 2> /dev/null | awk '{ sub("/.*", "", $4); print $4; exit }')
    [ -n "$ip" ] || { skip "this machine has no address but loopback"; return 1; }
}
# fake_hosts [COMMAND...]: an ssh for which user@address is a host of its own: it keeps its station's process in
# station.HOST, refuses while there is a file down.HOST, and is entered by COMMAND, in which HOST is replaced.
fake_hosts() {
    mkdir -p bin
    rm -f down.* station.*
    cat > bin/ssh << END
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done # options
host=\${1%%@*}
[ ! -e "$folder/down.\$host" ] || { echo "ssh: connect to host \$host port 22: Connection refused" >&2; exit 255; }
echo \$\$ > "$folder/station.\$host"
shift
TUTTI_MACHINE=\$host exec ${*//HOST/\$host} sh -c "exec \$*"
END
    chmod +x bin/ssh
}
# lose_host HOST: it dies and does not come back.
lose_host() {
    touch "down.$1"
    kill -9 "$(cat "station.$1")"
}

# A training whose host b, then whose host a (with rank 0), goes for good: the other one ends it, with the
# weights of one process that nothing happened to.
test_restart_with_fewer_workers() {
    local ip host other launcher all
    own_address || return
    "$tutti" data make mnist digits --limit 203 > /dev/null || { fail "no data"; return; }
    all=(train mnist --deterministic --data digits --batch 67 --epochs 12 --json --set "checkpoints=ckpt/{epoch}")
    fake_hosts
    (rm -rf ckpt && "$tutti" "${all[@]}" --strategy one_device --save whole > /dev/null 2>&1) || fail "one process"
    for host in b a; do
        other=$([ $host = a ] && echo b || echo a)
        rm -rf ckpt out out.err down.* left.*
        PATH=$folder/bin:$PATH timeout 60 "$tutti" run --hosts "a@$ip:2,b@$ip:2" --restarts 2 --host-wait 2 \
            "$tutti" "${all[@]}" --resume --save left > out 2> out.err &
        launcher=$!
        await out '"epoch": 2' 1
        lose_host $host
        wait $launcher
        code $? 0
        has out.err "host $host@$ip does not answer; waiting up to 2 s for it (--host-wait)" 1
        has out.err "host $host@$ip stayed away; going on without it" 1
        has out.err "starting again, 1 of 2, with 2 of 4 ranks; without host $host@$ip" 1
        lacks out.err "host $other@.* stayed away"
        has out '"done": true' 1
        has out '"epoch": 1,' 1 # it went on, it did not begin anew
        cmp -s whole.safetensors left.safetensors || fail "without host $host the weights have other bits"
    done
}

# The first start needs all hosts: the job goes on without one that was there, not without a misspelt name.
test_restart_not_without_a_host_that_never_came() {
    local ip launcher
    own_address || return
    fake_hosts
    touch down.b
    PATH=$folder/bin:$PATH timeout 40 "$tutti" run --hosts "a@$ip:1,b@$ip:1" --restarts 2 --host-wait 1 sh -c 'echo "start $TUTTI_EPOCH of $TUTTI_SIZE"' > out 2>&1
    code $? 255
    has out "host b@$ip does not answer; waiting up to 1 s for it (--host-wait), then giving up" 1
    has out "host b@$ip was never there; giving up. The first start needs all hosts" 1
    lacks out "starting again"
    rm -f out # one that is late
    PATH=$folder/bin:$PATH timeout 40 "$tutti" run --hosts "a@$ip:1,b@$ip:1" --restarts 2 --host-wait 30 sh -c 'echo "start $TUTTI_EPOCH of $TUTTI_SIZE"' > out 2>&1 &
    launcher=$!
    await out "waiting up to 30 s" 1
    rm down.b
    wait $launcher
    code $? 0
    has out "start 1 of 2" 2
}

test_restart_waits_for_hosts() {
    local ip launcher program
    own_address || return
    fake_hosts
    program='echo "start $TUTTI_EPOCH: $TUTTI_RANK of $TUTTI_SIZE"; case $TUTTI_EPOCH in 0) sleep 20 ;; 1) exit 3 ;; esac'
    PATH=$folder/bin:$PATH timeout 40 "$tutti" run --hosts "a@$ip:2,b@$ip:1" --restarts 2 --host-wait 30 sh -c "$program" > out 2>&1 &
    launcher=$! # b is back in time
    await out "start 0" 3
    lose_host b
    await out "waiting up to 30 s" 1
    rm down.b
    wait $launcher
    code $? 0
    has out "host b@$ip is there" 1
    has out "starting again, 1 of 2$" 1
    has out "start 2: . of 3" 3

    rm -f out down.*
    PATH=$folder/bin:$PATH timeout 40 "$tutti" run --hosts "a@$ip:2,b@$ip:1" --restarts 2 --host-wait 1 sh -c "$program" > out 2>&1 &
    launcher=$! # b is away for one start
    await out "start 0" 3
    lose_host b
    await out "start 1: . of 2" 2
    rm down.b
    wait $launcher
    code $? 0
    has out "start 1: . of 2" 2

    rm -f out down.*
    PATH=$folder/bin:$PATH timeout 40 "$tutti" run --hosts "a@$ip:2,b@$ip:1" --restarts 2 --host-wait 1 --min-workers 3 \
        sh -c "$program" > out 2>&1 &
    launcher=$! # too few are left
    await out "start 0" 3
    lose_host b
    wait $launcher
    code $? 69
    has out "2 workers are left, --min-workers is 3; giving up (exit code 69)"
    lacks out "start 1"

    rm -f out down.*
    PATH=$folder/bin:$PATH timeout 40 "$tutti" run --hosts "a@$ip:2,b@$ip:1" --restarts 2 sh -c "$program" > out 2>&1 &
    launcher=$! # Ctrl-C while it waits
    await out "start 0" 3
    lose_host b
    await out "waiting up to 60 s" 1
    kill -INT "$(pgrep -P $launcher)"
    wait $launcher
    code $? 130
    timeout 20 "$tutti" run -n 2 --min-workers 3 true > out 2>&1
    code $? 2
}

# Host b answers, but its ranks cannot reach rank 0: they are left out after the deadline of the rendezvous.
test_restart_without_a_host_behind_a_broken_cable() {
    local a b
    two_hosts || return
    fake_hosts ip netns exec HOST
    sed -i "s/^host=.*/case \$1 in 10.77.0.1) host=$a ;; *) host=$b ;; esac/" bin/ssh
    ip -n $b link set vb-$$ down
    PATH=$folder/bin:$PATH timeout 30 "$tutti" run --hosts 10.77.0.1:2,10.77.0.2:2 --restarts 1 --host-wait 5 \
        "$member" --deadline 2 exchange 5 > out 2>&1
    code $? 0
    # All have the same deadline: rank 0 says who is missing, or a rank whom it cannot reach.
    has out "2 of 4 ranks have met\|cannot reach rank 0 at 10.77.0.1"
    has out "ranks of host 10.77.0.2 did not meet rank 0 in time; going on without that host"
    has out "starting again, 1 of 1, with 2 of 4 ranks; without host 10.77.0.2" 1
    has out "2 ranks on 1 host" 2
    has out "exchanged 5" 2
    no_hosts
}

test_interrupt_at_any_moment() {
    local when start
    for when in 0.005 0.01 0.015 0.02 0.03 0.04 0.06 0.1; do
        start=$(date +%s.%N)
        timeout -s INT $when "$tutti" run -n 3 sleep 30 > out 2>&1
        under 15 "$(date +%s.%N | awk -v s="$start" '{ print $1 - s }')"
    done
}

test_output_and_environment() {
    timeout 20 "$tutti" run -n 2 --engine tcp --env COLOUR=blue sh -c \
        'echo "$TUTTI_RANK/$TUTTI_SIZE $TUTTI_LOCAL_RANK $TUTTI_ENGINE $COLOUR"; printf "no end"; echo complaint >&2' > out 2> out.err
    code $? 0
    has out "^\[0\] 0/2 0 tcp blue$"
    has out "^\[1\] 1/2 1 tcp blue$"
    has out "no end" 2
    has out.err "^\[1\] complaint$"
    timeout 20 "$tutti" run -n 1 printf 'a\000b\nc\n' > out 2>&1 # bytes, whatever they are
    printf '[0] a\000b\n[0] c\n' | cmp -s - out || fail "a line with a NUL byte is not whole"
    timeout 20 "$tutti" run -n 2 sh -c 'seq -s, 60000; seq -s, 60000' > out 2>&1 # 338893 bytes a line
    has out "^\[[01]\] 1,2,.*,59999,60000$" 4
    [ "$(wc -l < out)" -eq 4 ] || fail "a long line was cut"
    timeout 20 "$tutti" run -n 1 ./nothing-here > out 2>&1
    code $? 127
    has out "cannot start './nothing-here'"
    timeout 20 "$tutti" run --hosts localhost:1,other:1 true > out 2>&1
    code $? 2
    has out "write this machine's name"
    timeout 20 "$tutti" run -n 2 --env =blue true > out 2>&1
    code $? 2
    has out "takes NAME or NAME=VALUE"
    timeout 20 "$tutti" run -n 2 --engine pigeon true > out 2>&1
    code $? 2
    has out "there are: shm, tcp"
    timeout 20 "$tutti" run -n 2 --engine mpi true > out 2>&1
    code $? 2
    has out "mpirun -n N -x TUTTI_ENGINE=mpi"
    for engine in shm tcp; do # what the program itself leaves open
        timeout 20 "$tutti" run -n 2 --engine $engine "$rank_program" reduce 1 > out 2>&1
        code $? 0
        has out "rank [01] by $engine" 2
    done
}

# All ranks ask for the descriptors that their connections need; where they may not, that is said.
test_few_descriptors() {
    timeout 60 "$tutti" run -n 16 --engine tcp sh -c "ulimit -Sn 24; exec $rank_program reduce 1" > out 2>&1
    code $? 0
    has out "closed" 16
    timeout 60 "$tutti" run -n 16 --engine tcp sh -c "[ \$TUTTI_RANK = 0 ] || ulimit -n 24; exec $rank_program --join 8 reduce 1" > out 2>&1
    code $? 4
    has out "Too many open files: this process may have 24; raise the limit ('ulimit -n'"
}

# The launcher's port is rank 0's for as long as it lives, not for one group.
test_group_opened_again() {
    timeout 60 "$tutti" run -n 3 "$rank_program" again 10 reduce 1 > out 2>&1
    code $? 0
    has out "opened again 10 times" 3
    has out "closed" 3
}

test_output_that_nobody_reads() {
    { timeout 20 "$tutti" run -n 2 --restarts 1 sh -c 'trap "" PIPE; while echo line; do :; done' 2> out.err
      echo $? > out.code; } | head -2 > out
    code "$(cat out.code)" 141
    has out "line" 2
    has out.err "nobody reads the job's output any more (Broken pipe); ending the job" 1
}

# What a full disk does not take is said once; the job goes on, and does not look as if all were well.
test_output_to_a_full_disk() {
    [ -c /dev/full ] || { skip "there is no /dev/full"; return; }
    timeout 20 "$tutti" run -n 2 --restarts 1 sh -c 'echo x; echo y; touch done.$TUTTI_RANK' > /dev/full 2> out.err
    code $? 1
    has out.err "cannot write the ranks' output to standard output: No space left on device" 1
    [ -e done.0 ] && [ -e done.1 ] || fail "the job did not go on"
    lacks out.err "starting again"
    timeout 20 "$tutti" run -n 2 sh -c 'echo x; exit 7' > /dev/full 2> out.err
    code $? 7
    timeout 20 "$tutti" run -n 2 sh -c 'echo x >&2' 2> /dev/full
    code $? 1
}

# Ctrl-C on `tutti run | tee` ends tee as well: the ranks are told once, and may save.
test_interrupt_that_ends_the_reader() {
    local reader launcher first
    mkfifo pipe
    cat > save.py << 'end'
import os, signal, time
told = []
signal.signal(signal.SIGINT, lambda *_: told.append(1))
rank = os.environ["TUTTI_RANK"]
open("ready." + rank, "w")
while not told:
    print("training", flush=True)
    time.sleep(0.01)
for i in range(50):
    print("saving", flush=True)
    time.sleep(0.01)
open("saved." + rank, "w")
end
    for first in reader launcher; do
        rm -f ready.* saved.*
        cat < pipe > /dev/null &
        reader=$!
        "$tutti" run -n 2 python3 "$folder/save.py" > pipe 2> out.err &
        launcher=$!
        until [ -e ready.0 ] && [ -e ready.1 ]; do sleep 0.05; done
        [ $first = launcher ] || kill $reader
        kill -INT $launcher
        [ $first = reader ] || kill $reader
        { wait $reader; } 2> /dev/null
        wait $launcher
        code $? 0
        [ -e saved.0 ] && [ -e saved.1 ] || fail "the ranks had no time to save"
    done
    rm pipe
}

# A pipe that is full: its reader is there, but does not read.
test_interrupt_while_nobody_reads() {
    mkfifo stuck
    sleep 60 < stuck &
    local reader=$! launcher start
    cp "$(command -v yes)" shout
    "$tutti" run -n 2 "$folder/shout" > stuck 2> out.err &
    launcher=$!
    sleep 1 # until it is full
    [ "$(pgrep -c -f "^$folder/shout")" -eq 2 ] || fail "the ranks do not run"
    start=$(now)
    kill -INT $launcher
    while pgrep -f "^$folder/shout" > /dev/null; do
        [ "$(since "$start" "$(now)" | cut -d. -f1)" -lt 10 ] || { fail "the ranks heard nothing"; break; }
        sleep 0.1
    done
    [ -d /proc/$launcher ] || fail "the last words were not kept for the reader"
    kill -INT $launcher
    wait $launcher
    code $? 130
    under 10 "$(since "$start" "$(now)")"
    { kill $reader; wait $reader; } 2> /dev/null
    rm stuck shout
}

# Nothing is lost to a reader that comes late, and what is not read is not taken from the ranks.
test_output_for_a_slow_reader() {
    { timeout 60 "$tutti" run -n 2 sh -c 'seq 100000; echo end >&2'; echo $? > out.code; } 2> out.err |
        { sleep 1; cat; } > out
    code "$(cat out.code)" 0
    has out "^\[[01]\] [0-9]*$" 200000
    has out.err "end" 2
    timeout 60 "$tutti" run -n 1 sh -c 'seq 300000; exit 3' 2>&1 | { sleep 5; cat; } > out
    has out "^\[0\] [0-9]*$" 300000 # also where the others' patience is over before it comes
    tail -1 out > out.last
    has out.last "first failed rank 0 .*exit code 3"
}

test_terminal_of_rank_zero() {
    python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' "$tutti" run -n 2 sh -c \
        'if [ -t 1 ]; then printf "1/2\r2/2\n"; else echo plain; fi' < /dev/null > out 2>&1
    code $? 0
    has out "^1/2"
    has out "^\[1\] plain"
    timeout 20 "$tutti" run -n 1 sh -c 'echo "$1"' sh --help > out 2>&1 # the program's own
    has out "^\[0\] --help"
    cat > narrow.py << 'end'
import fcntl, os, pty, struct, sys, termios, time
def size(columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
pid, fd = pty.fork()
if pid == 0:
    time.sleep(0.3)
    os.execv(sys.argv[1], sys.argv[1:])
size(50)
seen = b""
while True:
    try:
        got = os.read(fd, 4096)
    except OSError:
        break
    if b"24 50" in seen + got and b"24 50" not in seen:
        size(60)
    seen += got
sys.stdout.write(seen.decode())
end
    timeout 20 python3 narrow.py "$tutti" run -n 2 sh -c '[ $TUTTI_RANK = 0 ] || exit 0
        trap "echo changed" WINCH; exec 3<&1; stty size <&3; until [ "$(stty size <&3)" = "24 60" ]; do sleep 0.05; done; echo wider' > out 2>&1
    has out "^24 50"
    has out "^wider"
    has out "^changed"
}

test_over_ssh() {
    local ip
    own_address || return
    mkdir -p bin
    cat > bin/ssh << 'END'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done # options
echo "$@" >> ssh.log
shift
echo "a shell that greets"
TUTTI_MACHINE=$$ exec env -u TUTTI_SECRET sh -c "$*"
END
    chmod +x bin/ssh
    PATH=$folder/bin:$PATH timeout 20 "$tutti" run --hosts "one@$ip:2,two@$ip:2" --env COLOUR=red "$member" exchange 5 channel > out 2>&1
    code $? 0
    has out "4 ranks on 2 hosts" 4
    has out "0-1; .*: 2-3" 4
    has out "channels plain" 4
    has ssh.log "$ip .*tutti' run --station" 2
    lacks out "a shell that greets"
    # All have met before one dies: the launcher's word may come before rank 0's, that all are there.
    PATH=$folder/bin:$PATH timeout 20 "$tutti" run --hosts "one@$ip:2,two@$ip:2" "$member" exchange 1 abort spin > out 2>&1
    code $? 134
    has out "rank 1 (host .*) was ended by signal 6" 3
    PATH=$folder/bin:$PATH timeout 20 "$tutti" run --hosts "one@$ip:1,two@$ip:1" --remote-tutti /nowhere/tutti true > out 2>&1
    code $? 255
    has out "it was not started"
    has out "must work without a question: ssh .*@$ip /nowhere/tutti --version"
}

# sshd_at FOLDER ADDRESS [COMMAND...]: an sshd of its own, behind COMMAND, with keys in FOLDER. Its users find
# FOLDER/config; it is stopped by stop_sshd.
sshd_at() {
    local at=$1 address=$2 i
    shift 2
    mkdir -p -m 700 "$at"
    [ -f key ] || ssh-keygen -q -t ed25519 -N "" -f key
    ssh-keygen -q -t ed25519 -N "" -f "$at/host_key"
    cp key.pub "$at/authorized"
    cat > "$at/sshd_config" << END
Port $sshd_port
ListenAddress $address
HostKey $at/host_key
PidFile $at/pid
AuthorizedKeysFile $at/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
SetEnv TUTTI_MACHINE=$at
END
    echo "[$address]:$sshd_port $(cat "$at/host_key.pub")" >> known
    "$@" "$(command -v sshd || echo /usr/sbin/sshd)" -f "$at/sshd_config" -E "$at/log" || return 1
    for ((i = 0; i < 50; i++)); do
        [ -s "$at/pid" ] && return
        sleep 0.05
    done
    return 1
}
stop_sshd() {
    local file
    for file in */pid; do [ ! -f "$file" ] || kill "$(cat "$file")"; done
    rm -rf host-[ab] key* known config
}
# real_ssh: skips in words, or sets sshd_port and ssh (the command).
real_ssh() {
    command -v ssh > /dev/null || { skip "there is no ssh (package openssh-client)"; return 1; }
    [ -x "$(command -v sshd || echo /usr/sbin/sshd)" ] || { skip "there is no sshd (package openssh-server)"; return 1; }
    [ "$(id -u)" -ne 0 ] || mkdir -p -m 755 /run/sshd
    port=$((port + 1))
    sshd_port=$port
    ssh="ssh -F $folder/config"
}
# ssh_config NAME ADDRESS...: names that only ssh knows.
ssh_config() {
    while [ $# -gt 1 ]; do
        printf 'Host %s\nHostName %s\nPort %s\nIdentityFile %s/key\nIdentitiesOnly yes\nUserKnownHostsFile %s/known\n' \
            "$1" "$2" "$sshd_port" "$folder" "$folder"
        shift 2
    done > config
}

test_over_a_real_sshd() {
    local launcher processes process left
    real_ssh || return
    ssh_config first-host 127.0.0.1 second-host 127.0.0.2
    if ! sshd_at "$folder/host-a" 127.0.0.1 || ! sshd_at "$folder/host-b" 127.0.0.2; then
        cat host-*/log 2> /dev/null | head -3
        skip "sshd does not start here"
        stop_sshd
        return
    fi
    export TUTTI_SSH=$ssh
    mkdir -p "a folder's name" && cp "$tutti" "a folder's name/tutti"
    cd "a folder's name" || return
    timeout 30 ./tutti run --hosts first-host:2,second-host:2 --env COLOUR="dark 'blue'" sh -c \
        'echo "$TUTTI_RANK $COLOUR $(pwd) $1"; "$0" exchange 5 channel' "$member" 'two  words' > ../out 2>&1
    code $? 0
    cd ..
    for rank in 0 1 2 3; do has out "^\[$rank\] $rank dark 'blue' $folder/a folder's name two  words$"; done
    has out "4 ranks on 2 hosts" 4
    has out "left" 4

    timeout 30 "$tutti" run --hosts first-host:1,second-host:1 sh -c 'echo out of $TUTTI_RANK; exit $((TUTTI_RANK * 7))' > out 2>&1
    code $? 7
    has out "first failed rank 1 (host .*): exit code 7"

    timeout 30 "$tutti" run --hosts first-host:2,second-host:2 "$member" spin > out 2>&1 & # Ctrl-C
    launcher=$!
    await out spinning 4
    processes=$(sed -n 's/.*spinning //p' out)
    secret_in_sight "$processes"
    kill -INT "$(pgrep -P $launcher)"
    wait $launcher
    code $? 130
    gone "$processes"

    "$tutti" run --hosts first-host:2,second-host:2 "$member" spin > out 2>&1 & # the launcher is killed
    launcher=$!
    await out spinning 4
    processes=$(sed -n 's/.*spinning //p' out)
    { kill -9 $launcher; wait $launcher; } 2> /dev/null
    sleep 0.5
    gone "$processes"

    "$tutti" run --hosts first-host:1,second-host:1 "$member" spin > out 2>&1 & # one ssh is killed
    launcher=$!
    await out spinning 2
    processes=$(sed -n 's/.*spinning //p' out)
    kill -9 "$(pgrep -P $launcher -f second-host)"
    wait $launcher
    code $? 137
    gone "$processes"

    timeout 30 "$tutti" run --hosts first-host:1,second-host:1 --remote-tutti /nowhere/tutti true > out 2>&1
    code $? 255
    has out "/nowhere/tutti: \(not found\|No such file\)"
    timeout 30 "$tutti" run --hosts first-host:1,third-host:1 true > out 2>&1
    code $? 255
    has out "no tutti of this version answered on host third-host"
    unset TUTTI_SSH
    stop_sshd
}
# gone PROCESSES: none of them is left.
gone() {
    local process left=0
    for process in $1; do
        [ ! -d "/proc/$process" ] || grep -q 'State:.Z' "/proc/$process/status" || left=$((left + 1))
    done
    [ $left -eq 0 ] || fail "$left processes are left"
}
# secret_in_sight PROCESSES: fails when the job's secret stands in a command line or an environment.
secret_in_sight() {
    local process fd secret file
    process=${1%%[!0-9]*}
    fd=$(tr '\0' '\n' < "/proc/$process/environ" | sed -n 's/^TUTTI_SECRET_FD=//p')
    secret=$(cat "/proc/$process/fd/$fd")
    [ ${#secret} -eq 64 ] || fail "the secret has ${#secret} characters"
    for file in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do
        if tr '\0' '\n' < "$file" | grep -q "$secret"; then fail "the secret stands in $file"; fi
    done 2> /dev/null
}

test_ssh_between_network_namespaces() {
    local a b launcher
    real_ssh || return
    two_hosts || return
    ssh_config host-a 10.77.0.1 host-b 10.77.0.2
    if ! sshd_at "$folder/host-a" 10.77.0.1 ip netns exec $a || ! sshd_at "$folder/host-b" 10.77.0.2 ip netns exec $b; then
        skip "sshd does not start in a network namespace"
    else
        ip netns exec $a timeout 30 "$tutti" run --ssh "$ssh" --hosts root@host-a:2,root@host-b:2 \
            "$rank_program" reduce 1 agree > out 2>&1
        has out "of 4 on 2 hosts" 4
        has out "reduced by" 4
        has out "closed" 4
        TUTTI_SILENCE_MS=1000 ip netns exec $a timeout 40 "$tutti" run --ssh "$ssh" --hosts host-a:2,host-b:2 \
            "$rank_program" loop > out 2>&1 &
        launcher=$!
        await out looping 4
        ip -n $b link set vb-$$ down # the cable is pulled: ssh hangs too
        wait $launcher
        [ $? -ne 0 ] || fail "the job did not fail"
        has out "rank [0-3] .* has not been heard"
        has out "host host-b does not answer any more"
        sleep 1.5 # host b's ranks see the silence themselves
        gone "$(sed -n 's/.*looping //p' out)"
    fi
    stop_sshd
    no_hosts
}

test_under_mpirun() {
    command -v mpirun > /dev/null || { skip "there is no mpirun"; return; }
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        timeout 30 mpirun -n 3 "$member" exchange 5 channel > out 2>&1
    code $? 0
    has out "by mpi" 3
    has out "left" 3
}

# mpi_hosts MPIRUN OPTIONS...: ranks 0 and 1 in $a, 2 and 3 in $b, which have names of their own.
mpi_hosts() {
    cat > agent << END
#!/bin/bash
while [ "\${1#-}" != "\$1" ]; do shift; done # options
[ "\$1" = 10.77.0.1 ] && host=$a || host=$b
shift
exec ip netns exec \$host unshare --uts bash -c "hostname \$host; \$*"
END
    chmod +x agent
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TUTTI_MODULES=$build/src/comm/mpi \
        timeout -k 1 40 ip netns exec $a unshare --uts bash -c "hostname $a; exec \"\$0\" \"\$@\"" "$@" > out 2>&1
}

# mpirun says nothing of where rank 0 is: MPI does.
test_mpirun_between_hosts() {
    local a b engine mpi
    [ -e "$build/src/comm/mpi/tutti_mpi.so" ] || { skip "without OpenMPI's module"; return; }
    two_hosts || return
    printf '#!/bin/sh\nTUTTI_MACHINE=$(hostname) exec "%s" "$@"\n' "$rank_program" > rank
    chmod +x rank
    local openmpi="mpirun.openmpi --mca plm_rsh_agent $folder/agent --mca btl_tcp_if_include 10.77.0.0/24
        --mca oob_tcp_if_include 10.77.0.0/24 --host 10.77.0.1:2,10.77.0.2:2 -n 4 -x TUTTI_SECRET -x TUTTI_MODULES"
    local mpich="mpirun.mpich -launcher ssh -launcher-exec $folder/agent -hosts 10.77.0.1:2,10.77.0.2:2 -n 4"
    command -v mpirun.mpich > /dev/null && [ -e "$build/src/comm/mpi/tutti_mpi_mpich.so" ] || mpich=
    mpi_hosts $openmpi ./rank reduce 1
    has out "would listen on the network (rank 0 is at '10.77.0.1') without a secret"
    export TUTTI_SECRET=a-secret-for-two-hosts
    for engine in "" "--engine mpi"; do
        for mpi in "$openmpi" "$mpich"; do
            [ -n "$mpi" ] || continue
            mpi_hosts $mpi ./rank $engine reduce 1
            code $? 0
            has out "rank [0-3] of 4 on 2 hosts" 4
            has out "log: 4 ranks on 2 hosts (tutti-a-.*: 0-1; tutti-b-.*: 2-3), by mpi, epoch 0, authenticated" 1
            has out "reduced by" 4
        done
    done
    unset TUTTI_SECRET
    no_hosts
}

# A rank that exits with its group open does not wait for the others, who wait for it.
test_exit_under_mpirun() {
    [ -e "$build/src/comm/mpi/tutti_mpi.so" ] || { skip "without OpenMPI's module"; return; }
    local at
    at=$(now)
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        TUTTI_MODULES=$build/src/comm/mpi timeout -k 1 30 mpirun.openmpi -n 3 \
        "$rank_program" --engine mpi reduce 1 exit 7 loop > out 2>&1
    has out "reduced by" 3
    under 15 "$(since "$at" "$(now)")"
}

test_blocks_that_differ_under_mpirun() {
    [ -e "$build/src/comm/mpi/tutti_mpi.so" ] || { skip "without OpenMPI's module"; return; }
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        TUTTI_MODULES=$build/src/comm/mpi timeout -k 1 30 mpirun.openmpi -n 3 \
        "$rank_program" --engine mpi gather > out 2>&1
    code $? 0
    has out "gathered by native" 3
    has out "closed" 3
}

test_what_mpi_lacks_is_refused() {
    [ -e "$build/src/comm/mpi/tutti_mpi.so" ] || { skip "without OpenMPI's module"; return; }
    OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
        TUTTI_MODULES=$build/src/comm/mpi timeout -k 1 30 mpirun.openmpi -n 2 \
        "$rank_program" --engine mpi too_much > out 2>&1
    code $? 0
    has out "all_reduce of 4 x bf16 by 'native' is not possible: MPI cannot add up .*; there are: .*ring" 2
    has out "all_reduce of 1 x f32 by 'native' is not possible: MPI's minima and maxima lose NaN; " 2
    has out "all_reduce of 1 x u8 by 'native' is not possible: some MPIs compare bytes as signed numbers; " 2
    has out "broadcast of 2147483648 x f32 by 'native' is not possible: MPI counts no further .*; there are: .*tree" 2
    has out "closed" 2
}

# A program that has called MPI_Init itself may call MPI from one thread only.
test_programs_that_start_mpi_themselves() {
    [ -e "$build/src/comm/mpi/tutti_mpi.so" ] || { skip "without OpenMPI's module"; return; }
    local library
    library=$(ldd "$build/src/comm/mpi/tutti_mpi.so" | sed -n 's/.*libmpi[^ ]* => \([^ ]*\) .*/\1/p' | head -1)
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    export TUTTI_MODULES=$build/src/comm/mpi
    timeout -k 1 30 mpirun.openmpi -n 2 "$rank_program" --engine mpi --mpi "$library" reduce 1 started 40 > out 2>&1
    code $? 0
    has out "40 calls run by who waits" 2
    has out "closed" 2
    timeout -k 1 30 mpirun.openmpi -n 2 "$rank_program" --engine mpi started 40 > out 2>&1
    code $? 0
    has out "40 calls run by a thread" 2
    TUTTI_MPI=pigeon timeout -k 1 30 mpirun.openmpi -n 2 "$rank_program" --engine mpi started 40 > out 2>&1
    has out "TUTTI_MPI is 'pigeon'; it takes openmpi or mpich"
    unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe TUTTI_MODULES
}

# job_of_mpich NUMBER ...: three ranks in out.NUMBER, behind a wrapper that is no parent of all.
job_of_mpich() {
    local number=$1
    shift
    timeout 30 mpirun.mpich -n 3 "$@" sh -c "'$member' exchange 20 channel; true" > out.$number 2>&1
}

# Each has a port of its own; ranks of two that meet at one port all the same do not take each other's.
test_two_jobs_of_mpich_at_once() {
    command -v mpirun.mpich > /dev/null || { skip "there is no mpirun.mpich"; return; }
    local i
    for i in 1 2 3; do
        job_of_mpich 1 &
        job_of_mpich 2
        wait $!
        has out.1 "left" 3
        has out.2 "left" 3
    done
    port=$((port + 1))
    timeout 30 mpirun.mpich -n 2 -genv TUTTI_MEETING 127.0.0.1:$port "$member" work 3 > out.1 2>&1 &
    sleep 1
    job_of_mpich 2 -genv TUTTI_MEETING 127.0.0.1:$port
    wait $!
    has out.2 "refused: of another job (it belongs to process .* of mpirun, where process .* meets)" 2
    has out.2 "another program or job, or an earlier run, uses its port (.* TUTTI_MEETING=HOST:PORT" 1
}

test_under_torchrun() {
    local torchrun=${TORCHRUN:-$(command -v torchrun)}
    [ -n "$torchrun" ] || { skip "there is no torchrun (TORCHRUN=path)"; return; }
    timeout 60 "$torchrun" --nproc-per-node 2 --master-port $((port += 2)) --no-python "$member" exchange 5 > out 2>&1
    code $? 0
    has out "by torchrun" 2
    has out "left" 2
}

# tls_pair BEFORE_0 BEFORE_1: two ranks that do not come together; what stands before their program.
tls_pair() {
    port=$((port + 1))
    TUTTI_RANK=0 TUTTI_SIZE=2 TUTTI_MEETING=localhost:$port $1 timeout 20 "$member" --deadline 2 > out.0 2>&1 &
    TUTTI_RANK=1 TUTTI_SIZE=2 TUTTI_MEETING=localhost:$port $2 timeout 20 "$member" --deadline 2 > out.1 2>&1
    code $? 4
    wait
    lacks out.0 joined
    lacks out.1 joined
}

test_tls() {
    command -v openssl > /dev/null || { skip "there is no openssl"; return; }
    for authority in ca other; do
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=$authority \
            -keyout $authority.key -out $authority.pem 2> /dev/null
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=rank \
            -keyout $authority-rank.key -out rank.csr 2> /dev/null
        openssl x509 -req -in rank.csr -CA $authority.pem -CAkey $authority.key -CAcreateserial -days 1 \
            -out $authority-rank.pem 2> /dev/null
    done
    openssl x509 -req -in rank.csr -CA ca.pem -CAkey ca.key -days 0 -out old-rank.pem 2> /dev/null
    export TUTTI_TLS_CERT=$folder/ca-rank.pem TUTTI_TLS_KEY=$folder/ca-rank.key TUTTI_TLS_CA=$folder/ca.pem
    timeout 60 "$tutti" bench collectives --engine tcp --op async --bytes 8 > out 2>&1
    code $? 0
    has out "starts itself speak without TLS; with it: tutti run -n 2 --engine tcp" 1
    GLIBC_TUNABLES=glibc.malloc.tcache_count=0:glibc.malloc.perturb=165 \
        ranks 4 timeout -k 1 30 "$rank_program" --engine tcp wait-for-0 # freed words are no words
    kill_zero 1 2 3
    for rank in 1 2 3; do has out.$rank 'closed by host, [A-Za-z ]*; in .*; arrived: 1-3; missing: 0$'; done
    ranks 3 timeout 20 "$member" exchange 5 channel
    wait "${pids[@]}"
    for rank in 0 1 2; do
        has out.$rank "TLS 1.3"
        has out.$rank "channels encrypted"
        has out.$rank left
    done
    ranks 3 timeout 60 "$rank_program" again 20 # the quick ones find rank 0 as it closes connections
    wait "${pids[@]}"
    for rank in 0 1 2; do
        has out.$rank "opened again 20 times"
    done
    local none="env -u TUTTI_TLS_CERT -u TUTTI_TLS_KEY -u TUTTI_TLS_CA"
    tls_pair "" "env TUTTI_TLS_CERT=$folder/other-rank.pem TUTTI_TLS_KEY=$folder/other-rank.key"
    has out.0 "was refused: TLS: the other side's certificate is refused by this one: unable to get"
    has out.1 "TLS: this side's certificate is refused by the other one: .*unknown ca"
    tls_pair "" "env TUTTI_TLS_CERT=$folder/old-rank.pem TUTTI_TLS_KEY=$folder/other-rank.key"
    has out.0 "was refused: TLS: the other side's certificate .*: certificate has expired"
    has out.1 "TLS: this side's certificate is refused by the other one: .*certificate expired"
    tls_pair "" "$none"
    has out.0 "was refused: it did not begin TLS, which this side uses; .*TUTTI_TLS_CERT"
    has out.1 "if it uses TLS, this rank must do so too: set TUTTI_TLS_CERT"
    tls_pair "$none" ""
    has out.0 "was refused: it uses TLS, this side does not; .*TUTTI_TLS_CERT"
    has out.1 "this side uses TLS, the other one does not; .*TUTTI_TLS_CERT"
    openssl pkey -in ca-rank.key -aes128 -passout pass:secret -out locked.key 2> /dev/null
    # At a terminal OpenSSL would ask for the password, and wait.
    TUTTI_TLS_KEY=$folder/locked.key TUTTI_RANK=1 TUTTI_SIZE=2 TUTTI_MEETING=localhost:$port timeout 20 \
        python3 -c 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:], stdin_read=lambda fd: b"") >> 8)' \
        timeout 10 "$member" --deadline 2 > out 2>&1
    code $? 4
    has out "TUTTI_TLS_KEY: '.*locked.key' is encrypted, .*openssl pkey -in"
    chmod 644 ca-rank.key
    TUTTI_RANK=1 TUTTI_SIZE=2 TUTTI_MEETING=localhost:$port timeout 20 "$member" --deadline 2 > out 2>&1
    code $? 4
    has out "the key '.*ca-rank.key' has mode 0644, so others can read it; run 'chmod 600"
    chmod 600 ca-rank.key
    unset TUTTI_TLS_CA
    ranks 2 timeout 20 "$member"
    wait "${pids[@]}"
    unset TUTTI_TLS_CERT TUTTI_TLS_KEY
    has out.0 "set all three"
}

# key_in_core KEY OPTIONS...: rank 1 of two that have come together by it shows its memory.
key_in_core() {
    local key=$1
    shift
    port=$((port + 1))
    openssl req -new -key "$key" -subj /CN=rank -out rank.csr 2> /dev/null
    openssl x509 -req -in rank.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 1 -out "$key.pem" 2> /dev/null
    local common="env TUTTI_SIZE=2 TUTTI_MEETING=localhost:$port TUTTI_TLS_CA=$folder/ca.pem
        TUTTI_TLS_CERT=$folder/$key.pem TUTTI_TLS_KEY=$folder/$key"
    rm -f looked
    TUTTI_RANK=0 timeout 60 $common "$rank_program" "$@" --engine tcp reduce 1 file looked > out.0 2>&1 &
    TUTTI_RANK=1 timeout 60 $common python3 "$here/cores.py" "$key" "$key.pem" "reduced by" looked \
        "$rank_program" "$@" --engine tcp reduce 1 file looked > out.1 2>&1
    code $? 0
    wait
    has out.1 "found 0 of [1-9]" 1
}

test_tls_keys_are_in_no_core_file() {
    command -v openssl > /dev/null || { skip "there is no openssl"; return; }
    command -v python3 > /dev/null || { skip "there is no python3"; return; }
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj /CN=ca -keyout ca.key \
        -out ca.pem 2> /dev/null
    openssl genpkey -algorithm rsa -out rsa8.key 2> /dev/null
    openssl rsa -in rsa8.key -traditional -out rsa1.key 2> /dev/null || openssl rsa -in rsa8.key -out rsa1.key 2> /dev/null
    openssl genpkey -algorithm ec -pkeyopt ec_paramgen_curve:prime256v1 -out ec8.key 2> /dev/null
    openssl ecparam -name secp384r1 -genkey -out ec1.key 2> /dev/null # with its parameters before it
    chmod 600 ./*.key
    local key
    for key in rsa8 rsa1 ec8 ec1; do
        key_in_core $key.key
    done
    key_in_core ec1.key --crypto libcrypto.so.3 # in use: too late for all of its memory
    has out.1 "OpenSSL is.* in use" 1
}

test_schedules_and_stragglers() {
    timeout 20 "$tutti" run -n 3 "$member" agree 9 agree 2 > out 2>&1
    code $? 3
    has out "rank 2 (host .*) has another schedule than rank 0" 3
    TUTTI_SILENCE_MS=1000 timeout 20 "$tutti" run -n 3 "$member" slow 20 exchange 60 skew > out 2>&1
    code $? 0
    local late
    late=$(sed -n 's/.*skew 1: \([0-9]*\) samples, last \([0-9]*\) times.*/\1 \2/p' out)
    awk -v l="$late" 'BEGIN { split(l, a, " "); exit !(a[1] > 5 && a[2] > 0.7 * a[1]) }' ||
        fail "the straggler was last only so often: '$late'"
}

test_collectives_name_a_straggler() {
    timeout 40 "$tutti" run -n 3 "$rank_program" slow 4 > out 2>&1
    code $? 0
    has out "log: 3 ranks on 1 host (.*), by launcher.*; shm within a host: alpha .* us, beta" 1
    has out "log: rank 1 (host .*) came last by far to .* all others waited for it" 1
    has out "log: rank" 1
}

# Also in a job that ends before there were many beats.
test_collectives_name_a_straggler_of_a_short_job() {
    local engine i
    for engine in tcp shm; do
        for i in 1 2 3; do
            timeout 40 "$tutti" run -n 3 --engine $engine "$rank_program" late 100 > out 2>&1
            code $? 0
            has out "log: rank 1 (host .*) came last by far to .* all others waited for it" 1
        done
    done
    timeout 40 "$tutti" run -n 2 "$rank_program" late 5 > out 2>&1
    code $? 0
    lacks out "came last"
}

# In a group that rank 0 is not in, by its number in the job.
test_collectives_name_a_straggler_of_a_group() {
    local engine
    for engine in tcp shm; do
        timeout 40 "$tutti" run -n 4 --engine $engine "$rank_program" late-apart 100 > out 2>&1
        code $? 0
        has out "log: rank 3 (host .*) came last by far to .* all others waited for it" 1
        has out "log: rank" 1
    done
}

# A description of the cluster in the place of measurements; rank 0's is everybody's.
test_links_from_a_description() {
    echo '{"within": {"alpha": "7us", "beta": "3GB/s"}}' > links
    TUTTI_LINKS=links timeout 20 "$tutti" run -n 3 "$rank_program" reduce 1 > out 2>&1
    code $? 0
    has out "shm within a host: alpha 7 us, beta 1/(3 GB/s), given" 1
    echo '{"within": {"alpha": "7 parsecs"}}' > links
    TUTTI_LINKS=links timeout 20 "$tutti" run -n 3 "$rank_program" reduce 1 > out 2>&1
    code $? 4
    has out "'links' describes no cluster: alpha is '7 parsecs', not a time" 3
    timeout 60 "$tutti" bench collectives -n 2 --bytes 64k --describe links > out
    code $? 0
    "$tutti" plan collectives --ranks 16 --links links > out
    code $? 0
    has out "all_reduce, 16 ranks on 16 machines" 1
    echo '{"within": {"alpha": "1us", "beta": "9GB/s"},
           "between": {"alpha": "15us", "beta": {"4k": "1GB/s", "2m": "100GB/s"}}}' > links
    "$tutti" plan collectives --ranks 2 --links links --op broadcast --json > out
    has out '"algorithm":"central","ranks":2,"bytes":134217728,"predicted_us":1357.18' 1
    "$tutti" plan collectives --ranks 2 --links links --op broadcast --json --beta 1GB/s > out
    has out '"algorithm":"central","ranks":2,"bytes":134217728,"predicted_us":134233' 1
}

# Programs that know nothing of logs: rank 0 says once who is in the job and what links cost.
test_the_banner_of_a_program_without_a_log() {
    timeout 20 "$tutti" run -n 3 "$rank_program" --log none reduce 1 > out 2> err
    code $? 0
    has err "tutti: 3 ranks on 1 host (.*), by launcher.*; shm within a host: alpha .* us, beta .*, measured" 1
    timeout 20 "$tutti" run -n 3 --engine tcp "$rank_program" --log none reduce 1 > out 2> err
    code $? 0
    has err "tcp within a host: alpha .* us, beta .*, measured" 1
    timeout 20 "$tutti" run -n 3 "$rank_program" --log silent reduce 1 > out 2> err
    code $? 0
    has err "tutti" 0
}

# two_hosts: namespaces $a and $b, joined by a cable with the ends va-$$ (10.77.0.1) and vb-$$ (10.77.0.2).
two_hosts() {
    a=tutti-a-$$ b=tutti-b-$$
    [ "$(id -u)" -eq 0 ] || { skip "needs root for network namespaces"; return 1; }
    command -v ip > /dev/null || { skip "there is no ip (package iproute2)"; return 1; }
    if ! ip netns add $a 2> /dev/null || ! ip netns add $b 2> /dev/null; then
        skip "network namespaces cannot be made here"
        ip netns del $a 2> /dev/null
        return 1
    fi
    if ! ip link add va-$$ type veth peer name vb-$$ 2> /dev/null; then
        skip "a veth pair cannot be made here"
        no_hosts
        return 1
    fi
    ip link set va-$$ netns $a && ip link set vb-$$ netns $b
    ip -n $a addr add 10.77.0.1/24 dev va-$$ && ip -n $a link set va-$$ up && ip -n $a link set lo up
    ip -n $b addr add 10.77.0.2/24 dev vb-$$ && ip -n $b link set vb-$$ up && ip -n $b link set lo up
}
no_hosts() {
    ip netns del $a
    ip netns del $b
}
# on_hosts COMMAND...: ranks 0 and 1 in $a, 2 and 3 in $b.
on_hosts() {
    local rank host
    pids=()
    for rank in 0 1 2 3; do
        [ $rank -lt 2 ] && host=$a || host=$b
        TUTTI_SECRET=a-secret-for-two-hosts TUTTI_SILENCE_MS=1000 TUTTI_SIZE=4 TUTTI_MEETING=10.77.0.1:4500 \
            TUTTI_RANK=$rank TUTTI_MACHINE=$host ip netns exec $host timeout -k 1 40 "$@" > out.$rank 2>&1 &
        pids+=($!)
    done
}

test_collectives_in_network_namespaces() {
    local a b at
    two_hosts || return
    on_hosts "$rank_program" reduce 1 agree
    wait "${pids[@]}"
    for rank in 0 1 2 3; do
        has out.$rank "rank $rank of 4 on 2 hosts"
        has out.$rank "reduced by" # within by shared memory, between by sockets
        has out.$rank "operation 2 is 'all_gather output' there and 'all_reduce output' on rank 0"
        has out.$rank closed
    done
    on_hosts "$rank_program" loop
    await "out.*" looping 4
    sleep 0.3
    at=$(now)
    ip -n $b link set vb-$$ down # the cable is pulled: connections stay half open
    wait "${pids[@]}"
    for rank in 0 1; do has out.$rank "loop: .*rank [23] .* has not been heard"; done
    has out.2 "loop: .*rank 0 .* has not been heard"
    has out.0 "all_reduce bucket 3 number" # what was under way, with its label
    under 3 "$(since "$at" "$(seen out.0 out.1 out.2 out.3)")"
    figure="a pulled cable is known everywhere after $(since "$at" "$(seen out.0 out.1 out.2 out.3)") s"
    no_hosts
}

# The cable of the data is pulled while ssh goes on, by which the ends of ranks are told: all say the silence.
test_cut_network_beside_ssh() {
    local a b launcher
    two_hosts || return
    fake_hosts ip netns exec HOST
    sed -i "s/^host=.*/case \$1 in 10.77.0.1) host=$a ;; *) host=$b ;; esac/" bin/ssh
    PATH=$folder/bin:$PATH TUTTI_SILENCE_MS=1000 timeout 30 "$tutti" run --hosts 10.77.0.1:2,10.77.0.2:2 \
        "$rank_program" loop > out 2> out.err &
    launcher=$!
    await out looping 4
    sleep 0.5
    ip -n $b link set vb-$$ down
    wait $launcher
    code $? 3
    has out "loop: .*rank [0-3] (host .*) has not been heard for [12]\.[0-9] s" 4
    lacks out "loop: .*exited with code 3 before"
    tail -1 out.err > out.last
    has out.last "first failed rank [0-3] (host .*): exit code 3; its group failed: rank [0-3] .* has not been heard" 1
    no_hosts
}

# Half open in one direction: what host b sends goes to a card that is not there, what it hears arrives.
test_collectives_over_a_connection_that_is_half_deaf() {
    local a b
    two_hosts || return
    on_hosts "$rank_program" loop
    await "out.*" looping 4
    ip -n $b neigh replace 10.77.0.1 lladdr 02:00:00:00:00:99 dev vb-$$ nud permanent
    wait "${pids[@]}"
    for rank in 0 1 2 3; do has out.$rank "loop: .*rank [023] .* has not been heard"; done
    no_hosts
}

# Both hear from rank 0 and it from them: three hosts at a bridge, of which two lose each other.
test_cut_link_between_two_that_rank_0_hears() {
    local a b c=tutti-c-$$ at rank host
    two_hosts || return
    if ! ip -n $a link add bridge type bridge 2> /dev/null; then
        skip "a bridge cannot be made here"
        no_hosts
        return
    fi
    ip netns add $c
    ip link add vc-$$ type veth peer name vd-$$
    ip link set vc-$$ netns $a && ip link set vd-$$ netns $c
    ip -n $a addr flush dev va-$$
    ip -n $a addr add 10.77.0.1/24 dev bridge && ip -n $a link set bridge up
    ip -n $a link set va-$$ master bridge && ip -n $a link set vc-$$ master bridge up
    ip -n $c addr add 10.77.0.3/24 dev vd-$$ && ip -n $c link set vd-$$ up && ip -n $c link set lo up
    pids=()
    for rank in 0 1 2; do
        case $rank in 0) host=$a ;; 1) host=$b ;; *) host=$c ;; esac
        TUTTI_SECRET=a-secret-for-three-hosts TUTTI_SILENCE_MS=1000 TUTTI_SIZE=3 TUTTI_MEETING=10.77.0.1:4500 \
            TUTTI_RANK=$rank TUTTI_MACHINE=$host ip netns exec $host timeout -k 1 40 "$rank_program" loop > out.$rank 2>&1 &
        pids+=($!)
    done
    await "out.*" looping 3
    at=$(now)
    ip -n $b neigh replace 10.77.0.3 lladdr 02:00:00:00:00:99 dev vb-$$ nud permanent
    ip -n $c neigh replace 10.77.0.2 lladdr 02:00:00:00:00:99 dev vd-$$ nud permanent
    wait "${pids[@]}"
    for rank in 0 1 2; do
        has out.$rank "loop: .*rank [12] .* was given up: rank [12] says: .*the network between the two is cut"
    done
    under 4 "$(since "$at" "$(seen out.0 out.1 out.2)")"
    pids=() # and where they never had each other
    for rank in 0 1 2; do
        case $rank in 0) host=$a ;; 1) host=$b ;; *) host=$c ;; esac
        TUTTI_SECRET=a-secret-for-three-hosts TUTTI_SIZE=3 TUTTI_MEETING=10.77.0.1:4600 \
            TUTTI_RANK=$rank TUTTI_MACHINE=$host ip netns exec $host timeout -k 1 40 "$rank_program" --join 3 loop > out.$rank 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}"
    has out.0 "open: .*rank [12] .*rank [12]"
    lacks out.0 "missing: rank 1, 2"
    ip netns del $c
    no_hosts
}

test_collectives_beside_garbage_and_a_thousand_idle_connections() {
    local engine rank cluster first
    for engine in tcp shm; do
        port=$((port + 4))
        first=$port
        port=$((port + 3))
        cluster="\"cluster\":{\"worker\":[\"localhost:$first\",\"localhost:$((first + 1))\",\"localhost:$((first + 2))\"]}"
        pids=()
        for rank in 0 1 2; do
            TF_CONFIG="{$cluster,\"task\":{\"type\":\"worker\",\"index\":$rank}}" \
                timeout -k 1 60 "$rank_program" --engine $engine file flooded.$engine reduce 1 > out.$rank 2>&1 &
            pids+=($!)
        done
        await "out.*" "open: rank" 3
        for rank in 0 1 2; do python3 "$here/flood.py" $((first + rank)) > flood.$rank.log 2>&1 & done
        await "flood.*.log" "1000 idle" 3
        touch flooded.$engine
        wait "${pids[@]}"
        for rank in 0 1 2; do
            has out.$rank "reduced for a while"
            has out.$rank "reduced by"
            has out.$rank closed
        done
        wait
        cat flood.*.log > flood.log
        has flood.log "1000 idle connections" 3
    done
}

test_collectives_lose_a_rank() {
    local engine at victim rank
    for engine in shm tcp; do
        ranks 4 timeout -k 1 30 "$rank_program" --engine $engine loop
        await "out.*" looping 4
        victim=$(sed -n 's/^looping //p' out.2)
        at=$(now)
        { kill -9 "$victim"; wait "${pids[2]}"; } 2> /dev/null
        { wait "${pids[0]}" "${pids[1]}" "${pids[3]}"; } 2> /dev/null
        for rank in 0 1 3; do
            has out.$rank "rank 2 (host .*, process $victim)"
            has out.$rank "all_reduce bucket 3"
        done
        under 1.5 "$(since "$at" "$(seen out.0 out.1 out.3)")"
    done
}

# At the deadline of those who wait it is named, and none of them, rank 0 as any other.
test_collectives_stop_a_rank() {
    local engine victim rank
    for engine in shm tcp; do
        ranks 4 timeout -k 1 30 "$rank_program" --engine $engine --call 1 loop
        await "out.*" looping 4
        victim=$(sed -n 's/^looping //p' out.2)
        kill -STOP "$victim"
        wait "${pids[0]}" "${pids[1]}" "${pids[3]}"
        { kill -9 "$victim"; wait "${pids[2]}"; } 2> /dev/null
        for rank in 0 1 3; do
            has out.$rank "loop: deadline passed: rank 2 (host .*, process $victim) has not been heard for [12].[0-9] s.*; in all_reduce bucket 3 number [0-9]*; arrived: 0-"
            lacks out.$rank "waited too long"
        done
        ranks 4 timeout -k 1 30 "$rank_program" --engine $engine --call 1 loop
        await "out.*" looping 4
        victim=$(sed -n 's/^looping //p' out.0)
        kill -STOP "$victim"
        wait "${pids[1]}" "${pids[2]}" "${pids[3]}"
        { kill -9 "$victim"; wait "${pids[0]}"; } 2> /dev/null
        for rank in 1 2 3; do
            has out.$rank "loop: deadline passed: rank 0 (host .*, process $victim) has not been heard for [12].[0-9] s.*; in all_reduce bucket 3 number [0-9]*; arrived: [01]-3; missing: \(0\|none\)$"
        done
    done
}

# kill_zero RANKS...: rank 0 of four that wait for it is killed; what those ranks then say is in out.RANK, all of it
# within a second.
kill_zero() {
    local victim at
    await "out.*" waiting 4
    sleep 0.3
    victim=$(sed -n 's/^waiting //p' out.0)
    at=$(now)
    { kill -9 "$victim"; wait $(for rank in "$@"; do echo "${pids[$rank]}"; done); } 2> /dev/null
    for rank in "$@"; do
        has out.$rank "rank 0 (host .*, process $victim) is gone.*; in all_reduce bucket 3 number 2 of a group of 4 ranks; "
    done
    took=$(since "$at" "$(seen $(for rank in "$@"; do echo out.$rank; done))")
    under 1 "$took"
}

# Rank 0 asks everybody; when it is the one, the lowest rank that is left does, whatever they speak by.
test_collectives_lose_rank_0() {
    local rank options took all='; arrived: 1-3; missing: 0$'
    for options in "--engine shm" "--engine tcp"; do
        ranks 4 timeout -k 1 30 "$rank_program" $options wait-for-0
        kill_zero 1 2 3
        for rank in 1 2 3; do has out.$rank "$all"; done
    done
    figure="rank 0's death is everybody's verdict after $took s, without shared memory"
    # As if on two machines, and under a launcher.
    ranks 4 bash -c 'TUTTI_MACHINE=m$((TUTTI_RANK / 2)) exec timeout -k 1 30 "$0" wait-for-0' "$rank_program"
    kill_zero 1 2 3
    for rank in 1 2 3; do has out.$rank "$all"; done
    for options in "--engine shm" "--engine tcp"; do
        timeout -k 1 30 "$tutti" run -n 4 "$rank_program" $options wait-for-0 > out 2>&1 &
        pids=($!)
        await out waiting 4
        sleep 0.3
        kill -STOP "$(sed -n 's/^\[0\] waiting //p' out)"
        wait "${pids[@]}"
        has out "wait-for-0: .*rank 0 .* has not been heard" 3
        has out "; arrived: 1-3; missing: 0" 1 # not by every rank
        has out "tutti run: .*its group failed: rank 0 .* has not been heard.*; arrived: 1-3; missing: 0"
    done
}

# The next one is gone, or does not answer, too: it is passed over.
test_collectives_lose_rank_0_and_its_stand_in() {
    local rank took next
    ranks 4 timeout -k 1 30 "$rank_program" --engine tcp wait-for-0
    await "out.*" waiting 4
    next=$(sed -n 's/^waiting //p' out.1)
    kill -STOP "$next"
    kill_zero 2 3
    for rank in 2 3; do has out.$rank "; known to have arrived: 2-3 (as rank 2 sees it: rank 0 cannot be asked)"; done
    figure="rank 0's death is known after $took s while rank 1 is stopped"
    { kill -9 "$next"; wait "${pids[@]}"; } 2> /dev/null
    ranks 4 timeout -k 1 30 "$rank_program" --engine tcp wait-for-0
    await "out.*" waiting 4
    sleep 0.3
    { kill -9 $(sed -n 's/^waiting //p' out.0 out.1); wait "${pids[@]}"; } 2> /dev/null
    cmp <(grep wait-for-0: out.2) <(grep wait-for-0: out.3) || fail "ranks 2 and 3 say different things"
    has out.2 "rank [01] .* is gone.*; in all_reduce bucket 3 number 2 of a group of 4 ranks; .*arrived: 2-3"
}

# Of two machines one is gone, with rank 0 and 1 on it; or only the process of rank 0.
test_hosts_lose_rank_0() {
    local a b rank took
    two_hosts || return
    on_hosts "$rank_program" wait-for-0
    kill_zero 1 2 3
    for rank in 1 2 3; do has out.$rank '; arrived: 1-3; missing: 0$'; done
    on_hosts "$rank_program" wait-for-0
    await "out.*" waiting 4
    sleep 0.3
    ip -n $a neigh replace 10.77.0.2 lladdr 02:00:00:00:00:99 dev va-$$ nud permanent
    ip -n $b neigh replace 10.77.0.1 lladdr 02:00:00:00:00:99 dev vb-$$ nud permanent
    wait "${pids[@]}"
    has out.1 "rank [23] .* has not been heard.*; arrived: 1.*; missing: 0"
    for rank in 2 3; do has out.$rank "rank 0 .* has not been heard.*; known to have arrived: 2-3 (as rank 2 sees it"; done
    no_hosts
}

# Who waits in a subgroup is told which one, and who is missing there; so is who waits for its ranks.
test_collectives_of_a_part_lose_a_rank() {
    local engine victim rank
    for engine in shm tcp; do
        ranks 4 timeout -k 1 30 "$rank_program" --engine $engine part
        await "out.*" apart 4
        sleep 0.3
        victim=$(sed -n 's/^apart //p' out.2)
        { kill -9 "$victim"; wait "${pids[2]}"; } 2> /dev/null
        { wait "${pids[0]}" "${pids[1]}" "${pids[3]}"; } 2> /dev/null
        for rank in 0 1 3; do
            has out.$rank "rank 2 (host .*, process $victim) is gone"
            has out.$rank "in all_reduce bucket 3 number 2 of a group of 3 ranks; arrived: 0-1; missing: 2"
        done
    done
    ranks 4 timeout -k 1 30 "$rank_program" --engine tcp part # without rank 0 nobody can be asked
    await "out.*" apart 4
    sleep 0.3
    { kill -9 "$(sed -n 's/^apart //p' out.0)" "$(sed -n 's/^apart //p' out.2)"; wait "${pids[@]}"; } 2> /dev/null
    has out.1 "in all_reduce bucket 3 number 2 of a group of 3 ranks; known to have arrived: 1"
}

test_hosts_in_network_namespaces() {
    local a b
    two_hosts || return
    export TUTTI_SECRET=a-secret-for-two-hosts TUTTI_SILENCE_MS=1000 TUTTI_SIZE=3 TUTTI_MEETING=10.77.0.1:4500
    TUTTI_RANK=0 TUTTI_MACHINE=a TUTTI_IFACE=va-$$ ip netns exec $a timeout 20 "$member" exchange 5 channel spin > out.0 2>&1 &
    pids=($!)
    TUTTI_RANK=1 TUTTI_MACHINE=a ip netns exec $a timeout 20 "$member" exchange 5 channel spin > out.1 2>&1 &
    pids+=($!)
    TUTTI_RANK=2 TUTTI_MACHINE=b ip netns exec $b timeout 20 "$member" exchange 5 channel spin > out.2 2>&1 &
    pids+=($!)
    unset TUTTI_SECRET TUTTI_SILENCE_MS TUTTI_SIZE TUTTI_MEETING
    await "out.*" spinning 3
    has out.0 "3 ranks on 2 hosts"
    has out.2 "channels plain"
    ip -n $b link set vb-$$ down # the cable is pulled
    wait "${pids[@]}"
    has out.0 "rank 2 .* has not been heard"
    has out.1 "rank 2 .* has not been heard"
    has out.2 "rank 0 .* has not been heard"
    TUTTI_RANK=0 TUTTI_SIZE=2 TUTTI_MEETING=10.77.0.1:4500 TUTTI_IFACE=eth77 TUTTI_SECRET=0123456789abcdef \
        ip netns exec $a timeout 20 "$member" > out.0 2>&1
    has out.0 "no interface of that name"
    no_hosts
}

# Ranks of one machine reach each other on loopback, whatever interface is named.
test_interface_of_a_job_on_loopback() {
    local ip interface
    own_address || return
    interface=$(ip -4 -o addr show scope global | awk '{ print $2; exit }')
    TUTTI_IFACE=$interface timeout 20 "$tutti" run -n 3 --engine tcp "$rank_program" reduce 1 > out 2>&1
    code $? 0
    has out "closed" 3
    TUTTI_IFACE=$interface ranks 2 timeout 20 "$rank_program" --engine tcp reduce 1
    wait "${pids[@]}"
    for rank in 0 1; do has out.$rank "closed"; done
    TUTTI_IFACE=eth77 timeout 20 "$tutti" run -n 2 "$rank_program" reduce 1 > out 2>&1
    has out "no interface of that name.*there are:.* $interface" 2
}

test_interface_in_network_namespaces() {
    local a b
    two_hosts || return
    ip -n $a addr add 10.77.1.1/24 dev lo
    export TUTTI_SECRET=a-secret-for-two-hosts TUTTI_SIZE=2
    if ip -n $a addr add fd77::1/64 dev va-$$ nodad 2> /dev/null && ip -n $b addr add fd77::2/64 dev vb-$$ nodad; then
        export TUTTI_MEETING=[fd77::1]:4500 # the interface has an address of IPv4, too
        TUTTI_RANK=0 TUTTI_MACHINE=a TUTTI_IFACE=va-$$ ip netns exec $a timeout 20 "$member" exchange 1 channel > out.0 2>&1 &
        TUTTI_RANK=1 TUTTI_MACHINE=b TUTTI_IFACE=vb-$$ ip netns exec $b timeout 20 "$member" exchange 1 channel > out.1 2>&1
        wait
        for rank in 0 1; do has out.$rank left; done
    fi
    TUTTI_RANK=0 TUTTI_MEETING=10.77.1.1:4500 TUTTI_IFACE=va-$$ ip netns exec $a timeout 20 "$member" > out.0 2>&1
    has out.0 "look for rank 0 at 10.77.1.1, which is the address of 'lo'"
    TUTTI_RANK=1 TUTTI_MEETING=10.77.0.1:4500 TUTTI_IFACE=lo ip netns exec $b timeout 20 "$member" > out.1 2>&1
    has out.1 "TUTTI_IFACE is 'lo', the loopback"
    unset TUTTI_SECRET TUTTI_SIZE TUTTI_MEETING
    no_hosts
}

# with_shm OPTIONS COMMAND...: where /dev/shm is such a file system, of this command alone.
with_shm() {
    # shellcheck disable=SC2016
    unshare -m bash -c 'mount -t tmpfs -o "$0" tmpfs /dev/shm && "$@"' "$@" > out 2>&1
}

test_little_shared_memory() {
    local apart="unshare -f -p --mount-proc"
    if ! with_shm size=1m true; then
        skip "needs root to mount another /dev/shm"
        return
    fi
    # As in a container: 64 MB, of which two ranks would use 80. Or nothing can be written there.
    for options in size=64m size=64k ro; do
        with_shm $options timeout 20 "$tutti" run -n 2 "$rank_program" memory 40 reduce 1
        code $? 0
        has out "40 MiB over shm, all right" 2
    done
    # Processes that do not see each other have what there is, and beyond it private memory.
    with_shm size=64m timeout 20 "$tutti" run -n 2 $apart "$rank_program" memory 50 reduce 1
    code $? 0
    has out "50 MiB over shm, all right" 2
    with_shm size=1m timeout 20 "$tutti" run -n 2 $apart "$rank_program" memory 4 reduce 1
    code $? 0
    has out "4 MiB over tcp, all right" 2
    has out "log: .*/dev/shm has 10[0-9]* of 1024 KiB left.*--shm-size.*They use sockets now" 1
    with_shm ro timeout 20 "$tutti" run -n 3 --engine shm $apart "$rank_program" reduce 1
    code $? 4
    has out "/dev/shm: Read-only file system.*--shm-size.*TUTTI_ENGINE=tcp" 3
}

# Shared memory is a file, and one that is too large for its maker would end it by a signal.
test_limit_of_file_sizes() {
    timeout 20 "$tutti" run -n 2 sh -c "ulimit -f 100000; exec $rank_program reduce 1" > out 2>&1
    code $? 0
    has out "log: .*may make files of [0-9]* KiB; 'ulimit -f unlimited' lifts that.*They use sockets now" 1
    timeout 20 "$tutti" run -n 2 --engine shm sh -c "ulimit -f 100000; exec $rank_program reduce 1" > out 2>&1
    code $? 4
    has out "'ulimit -f unlimited' lifts that" 2
}

tests=$(declare -F | sed -n 's/^declare -f test_//p')
for name in $tests; do
    [[ $name == *$only* ]] || continue
    bad=0 figure=
    started=$(now)
    rm -f out* ./*.log
    "test_$name"
    case $bad in
        0) passed=$((passed + 1)) ;;
        1) failed=$((failed + 1)) ;;
    esac
    [ -z "${VERBOSE:-}" ] || echo "$name: $(since "$started" "$(now)") s $figure"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
