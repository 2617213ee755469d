#!/usr/bin/env bash
# Every example under every strategy against one device, and what becomes of a training whose workers
# fail: tests/strategies/run.sh BUILD [--long] [NAME]
# The last line is "N passed, N failed, N skipped". --long takes 50 steps and the whole matrix: every
# example under every strategy, on 1 to 4 workers of every engine and kind of device (make
# test-strategies). NAME, a regular expression, takes the tests whose name it matches; VERBOSE=1 shows
# those that pass, too.
#
# The flags of an example are words, and done is the name of a line:
# shellcheck disable=SC1010,SC2046,SC2207
set -u
build=$(realpath "${1:-build}")
here=$(realpath "$(dirname "$0")")
shift
long=
[ "${1:-}" != --long ] || { long=1 && shift; }
only=${1:-}
tutti=$build/tutti
passed=0 failed=0 skipped=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset TUTTI_STRATEGY TUTTI_DEVICES TUTTI_DEVICE TUTTI_ENGINE

fail() {
    echo "FAIL strategies $name: $*"
    [ $bad -ne 0 ] || tail -q -n 5 out out.err 2> /dev/null
    bad=1
}
skip() {
    echo "skip strategies $name: $*"
    bad=2
}
# has FILE TEXT [COUNT]: the text stands there, COUNT times if given.
has() {
    local count
    count=$(grep -c -- "$2" "$1")
    if [ $# -gt 2 ]; then
        [ "$count" -eq "$3" ] || fail "'$2' stands $count times in $1, not $3 times"
    else
        [ "$count" -gt 0 ] || fail "'$2' does not stand in $1"
    fi
}
lacks() { ! grep -q -- "$2" "$1" || fail "'$2' stands in $1"; }
code() { [ "$1" -eq "$2" ] || fail "exit code $1, not $2"; }
# under LIMIT SECONDS
under() { awk -v a="$2" -v b="$1" 'BEGIN { exit !(a <= b) }' || fail "$2 s, more than $1 s"; }
# await FILE TEXT COUNT: until it stands there.
await() {
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(cat "$1" 2> /dev/null | grep -c -- "$2")" -ge "$3" ] && return
        sleep 0.05
    done
    fail "'$2' did not come"
}
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", b - a }'; }

# ---- what is compared ----

# same A B RELATIVE POINTS [LEAST]: two files of --json lines tell the same training: losses to a
# relative error (of LEAST where they are smaller: differences of means), accuracies to so many points
# of a hundred, counts to the digit, times left out.
cat > same.awk << 'AWK'
# value(NUMBER, NAME) for each pair of a line; text values count as they stand
function pairs(line, into, order,    n, key) {
    n = 0
    while (match(line, /"[a-z_0-9]+": *[^,}]+/)) {
        key = substr(line, RSTART + 1, RLENGTH - 1)
        line = substr(line, RSTART + RLENGTH)
        order[++n] = substr(key, 1, index(key, "\"") - 1)
        sub(/^[^:]*: */, "", key)
        into[order[n]] = key
    }
    return n
}
function size(x) { return x < 0 ? -x : x }
function differ(what) { print FILENAME " line " FNR ": " what; wrong++ }
FNR == NR { kept[FNR] = $0; lines = FNR; next }
{
    second = FNR
    delete a; delete b; delete names; delete others
    n = pairs(kept[FNR], a, names)
    if (pairs($0, b, others) != n || n == 0)
        differ("other fields: " kept[FNR] " | " $0)
    for (i = 1; i <= n; i++) {
        key = names[i]; x = a[key]; y = b[key]
        if (key ~ /^(seconds|samples_per_second)$/) continue
        if (y == "") differ(key " is missing")
        else if (key ~ /accuracy|right/) { if (size(x - y) * 100 > points + 1e-5) differ(key " " x " | " y) }
        else if (key ~ /loss|mse|mae|stood/) {
            scale = size(x) < least ? least : size(x)
            if (x y ~ /n/ || size(x - y) > relative * scale) differ(key " " x " | " y) # nan, null, inf
        } else if (x != y) differ(key " " x " | " y)
    }
}
END { if (lines == 0 || second != lines) { print lines + 0 " lines, then " second + 0; wrong++ } exit wrong > 0 }
AWK
same() { awk -v relative="$3" -v points="$4" -v least="${5:-0}" -f same.awk "$1" "$2" > out.same || fail "not the same: $(head -c 400 out.same | tr '\n' ';')"; }
# lines FILE: the --json lines of the one rank that prints.
lines() { sed -n 's/^\(\[0\] \)\?{/{/p' "$1"; }

# ---- the examples ----

"$tutti" data make mnist few --limit 203 > /dev/null || exit 1
"$tutti" data make mnist digits --limit ${long:+2}203 > /dev/null || exit 1 # one digit is less than 0.3 points
"$tutti" data make cifar10 images --limit 203 > /dev/null || exit 1
seq -s ' ' 1 3000 > numbers.txt
examples="softmax mnist tickets loop cifar text resnet autoencoder queues gan agent encoder finetune"
# is_slow WAY: with devices that run reference kernels only; a few steps must do.
is_slow() { [[ $1 =~ whole|mixed|central4 ]]; }
# flags EXAMPLE [WAY]: small data and few steps; 31 rows are cut unevenly by 2, 3 and 4.
flags() {
    local batch=31 epochs=2 steps=2 digits=few
    [ -z "$long" ] || is_slow "${2:-}" || { epochs=5 steps=10 digits=digits; }
    case $1 in
        softmax | mnist | loop | autoencoder) echo --data $digits --batch $batch ;;
        resnet) echo --data $digits --batch 10 ;;
        cifar) echo --data images --batch 13 ;;
        tickets) echo --batch 7 ;;
        text) echo --data numbers.txt --batch 5 --set context=16 --set width=32 --set blocks=1 --set sample=0 ;;
        queues) echo --batch $batch ;;
        gan) echo --batch 61 ;;
        agent) steps=2 ;;
        encoder) echo --batch 7 ;;
        finetune) echo --data $digits --set from=digits.onnx --batch 7 ;;
    esac
    echo --epochs $epochs --steps-per-epoch $steps --json --set "checkpoints=ckpt/{epoch}"
}
# tolerance EXAMPLE: relative error of losses, points of accuracy, least size of a loss. Attention's and batch norm's sums
# amplify rounding, and so do networks that learn from each other; a push that is drawn otherwise
# changes all that comes after it.
tolerance() {
    case $1 in
        text | encoder) echo 1e-4 0.3 ;;
        resnet) [ -n "$long" ] && echo 2e-2 0.3 || echo 1e-3 0.3 ;;
        gan) echo 1e-2 0.5 1 ;;
        agent) echo 1e-3 0.3 1 ;;
        *) echo 1e-5 0 ;;
    esac
}

# trained WAY COMMAND... : one training in its own folder, spread that way; its lines are in out.json.
trained() {
    local way=$1 before=() after=() workers kind status
    shift
    case $way in
        one) after=(--strategy one_device) ;;
        mirrored2) after=(--strategy mirrored --devices "cpu:0,cpu:1") ;;
        mirrored3) after=(--strategy mirrored --devices "cpu:0,cpu:1,cpu:2") ;;
        far2) after=(--strategy mirrored --devices "far:0,far:1") ;;
        mixed3) after=(--strategy mirrored --devices "cpu:0,far:0,whole:0") ;;
        central2) after=(--strategy central_storage --devices "cpu:0,cpu:1") ;;
        central3) after=(--strategy central_storage --devices "far:0,cpu:0,cpu:1") ;;
        mirrored4) after=(--strategy mirrored --devices "cpu:0,cpu:1,cpu:2,cpu:3") ;;
        whole2) after=(--strategy mirrored --devices "whole:0,whole:1") ;;
        onefar) after=(--strategy one_device --devices "far:0") ;;
        onewhole) after=(--strategy one_device --devices "whole:0") ;;
        central4) after=(--strategy central_storage --devices "cpu:0,far:0,whole:0,cpu:1") ;;
        levels*) # workers of two devices each
            before=("$tutti" run -n "${way#levels}")
            after=(--devices "cpu:0,far:0")
            ;;
        mpi* | shm* | tcp*) # so many workers, on devices of that kind: shm3, tcp2far
            workers=${way:3:1} kind=${way:4}
            before=("$tutti" run -n "$workers" --engine "${way:0:3}")
            [[ $way != mpi* ]] || before=(mpirun -n "$workers")
            [ -z "$kind" ] || after=(--devices "$kind:0")
            ;;
    esac
    rm -rf run && mkdir run && ln -s ../digits ../few ../images ../numbers.txt ../digits.onnx run/
    (cd run && timeout -k 2 "${limit:-${long:+3}60}" "${before[@]}" "$@" "${after[@]}") > out 2> out.err
    status=$?
    lines out > out.json
    return $status
}

# baseline EXAMPLE [WAY]: $kept is the file with its training on one device, which is made once.
baseline() {
    kept=one.$1
    ! is_slow "${2:-}" || kept+=.few
    if [ "$1" = finetune ] && [ ! -s digits.onnx ]; then # what it begins with
        "$tutti" train finetune --data few --epochs 1 --quiet --set expect=0 > out 2> out.err ||
            fail "no digits.onnx: exit code $?"
    fi
    [ -s "$kept" ] || { trained one "$tutti" train "$1" $(flags "$1" "${2:-}") && cp out.json "$kept"; } ||
        fail "$1 on one device: exit code $?"
}

check_example() {
    local example=$1 way=$2
    [[ $way != mpi* ]] || command -v mpirun > /dev/null || { skip "there is no mpirun"; return; }
    baseline "$example" "$way"
    [ $bad -eq 0 ] || return
    trained "$way" "$tutti" train "$example" $(flags "$example" "$way")
    code $? 0
    lacks out '^\[[1-9]' # one rank prints
    if [ -n "$long" ] && [ "$example" = resnet ]; then # of batch norm's curve the end counts
        for each in "$kept" out.json; do
            grep '"done"' "$each" | sed 's/"accuracy": [^,]*, //' > "$each.end"
        done
        same "$kept.end" out.json.end $(tolerance "$example")
    else
        same "$kept" out.json $(tolerance "$example")
    fi
}

# Ways of summing gradients change no number but by rounding.
check_setting() {
    local way=$1 setting=$2
    baseline mnist
    trained "$way" "$tutti" train mnist $(flags mnist) --set "$setting"
    code $? 0
    same one.mnist out.json 1e-5 0
}

# Computing forward values again changes no bit.
check_again() {
    local example=$1 way=$2 setting=$3
    trained "$way" "$tutti" train "$example" $(flags "$example")
    code $? 0
    cp out.json kept.json
    trained "$way" "$tutti" train "$example" $(flags "$example") --set "$setting"
    code $? 0
    same kept.json out.json 0 0
}

# Gradients of embeddings as rows or as tables.
check_sparse() {
    local way=$1 setting=$2
    baseline tickets
    trained "$way" "$tutti" train tickets $(flags tickets) --set "sparse=$setting"
    code $? 0
    same one.tickets out.json $(tolerance tickets)
}

# Workers that read everything see every example as often as there are workers; one line says so.
check_sharing() {
    local setting=$1 text=$2
    trained shm2 "$tutti" train mnist --data digits --batch 31 --epochs 1 --set "shard=$setting"
    code $? 0
    has out "data: $text" 1
}

# ---- batches that do not come out even ----

# 203 rows in batches of 67 leave 2: fewer than replicas.
check_short() {
    local way=$1 batch=$2
    local all=(--data digits --batch "$batch" --epochs 2 --json)
    [ -s "one.short$batch" ] || { trained one "$tutti" train autoencoder "${all[@]}" && cp out.json "one.short$batch"; } ||
        fail "on one device: exit code $?"
    trained "$way" "$tutti" train autoencoder "${all[@]}"
    code $? 0
    same "one.short$batch" out.json 1e-5 0
}

# ---- files ----

# What 2 workers save, 1 and 3 read, and evaluate alike.
check_save_and_eval() {
    trained shm2 "$tutti" train mnist $(flags mnist) --save ../model
    code $? 0
    [ -s model.safetensors ] || fail "there is no model.safetensors"
    for way in one shm3 mirrored2; do
        trained $way "$tutti" eval ../model --data digits --batch 50 --json
        code $? 0
        has out '"loss"' 1
        cp out.json eval.$way
        [ $way = one ] || same eval.one eval.$way 1e-5 0
    done
}

# A checkpoint of 2 workers, gone on with by others, gives the curve of one device.
check_resume() {
    local way=$1 all=(--data digits --batch 31 --steps-per-epoch 3 --json --set "checkpoints=../kept.$1/{epoch}")
    [ -s one.resume ] || { trained one "$tutti" train mnist "${all[@]}" --epochs 4 && cp out.json one.resume; }
    rm -rf kept.*
    trained shm2 "$tutti" train mnist "${all[@]}" --epochs 2
    code $? 0
    lines out > first.json
    trained "$way" "$tutti" train mnist "${all[@]}" --epochs 4 --resume
    code $? 0
    { grep -v done first.json; lines out; } | grep -v done > both.json
    grep -v done one.resume > curve.json
    same curve.json both.json 1e-5 0
}

# ---- deterministic mode ----

# The same bits in the weights, however the batch is cut, with a short last batch.
check_bits() {
    local example=$1 way=$2 all=(--deterministic --epochs 2 --json --set "checkpoints=ckpt/{epoch}")
    case $example in
        resnet) all+=(--data digits --batch 10 --steps-per-epoch 3) ;;
        text) all+=($(flags text)) ;;
        tickets) all+=(--batch 7 --steps-per-epoch 3) ;;
        *) all+=(--data digits --batch 67) ;;
    esac
    [ -s "bits.$example.safetensors" ] || trained one "$tutti" train "$example" "${all[@]}" --save "../bits.$example"
    [ -s "bits.$example.safetensors" ] || { fail "nothing was saved on one device"; return; }
    rm -f other.*
    trained "$way" "$tutti" train "$example" "${all[@]}" --save ../other
    code $? 0
    cmp -s "bits.$example.safetensors" other.safetensors || fail "the weights have other bits"
}

# ---- faults ----

# started N ARGUMENTS...: a long training under the launcher, in the background; its first epoch is done.
started() {
    local ranks=$1
    shift
    rm -rf run && mkdir run && ln -s ../digits run/
    (cd run && exec timeout -k 2 20 "$tutti" run -n "$ranks" "${launch[@]}" sh -c \
        'echo $$ > process.$TUTTI_RANK; exec "$@"' sh "$tutti" train mnist --data digits --batch 31 --steps-per-epoch 3 \
        --json "$@") > out 2> out.err &
    launcher=$! # timeout, which has the launcher as its child
    await out '"epoch": 2' 1
}

check_killed() {
    local at rank=$1 launch=(--engine "$2")
    started 3 --epochs 2000
    at=$(now)
    kill -9 "$(cat "run/process.$rank")"
    wait $launcher
    code $? 137
    figure="ended after $(since "$at" "$(now)") s"
    under 2 "$(since "$at" "$(now)")"
    has out.err "rank $rank .*signal 9"
    [[ $(tail -n 1 out.err) == *"first failed rank $rank"* ]] || fail "the first failure is not last"
    lacks out.err "rank $(((rank + 1) % 3)) (.*signal"
    lacks out '"done"'
}

# Started again, the job goes on from its last checkpoint and ends as if nothing had been.
check_restarts() {
    local launch=(--restarts 2)
    local all=(--epochs 40 --set "checkpoints=ckpt/{epoch}")
    started 2 "${all[@]}" --resume
    kill -9 "$(cat run/process.1)"
    wait $launcher
    code $? 0
    has out.err "starting again, 1 of 2"
    has out '"done": true' 1
    has out '"epoch": 1,' 1
    lines out | grep -v done | awk '{ k[$2] = $0 } END { for (e in k) print k[e] }' | sort -t: -k2 -n > curve.json
    trained one "$tutti" train mnist --data digits --batch 31 --steps-per-epoch 3 --json "${all[@]}"
    grep -v done out.json | sort -t: -k2 -n > whole.json
    same whole.json curve.json 1e-5 0
}

# SIGTERM to the launcher: all save after the same step and end with TUTTI_EXIT_PREEMPTED; one process
# goes on from that step.
check_preempted() {
    command -v pgrep > /dev/null || { skip "there is no pgrep (procps)" && return; }
    local launch=() at steps all=(--set "checkpoints=../kept.term/{epoch}")
    started 3 --epochs 2000 "${all[@]}"
    at=$(now)
    kill -TERM "$(pgrep -P $launcher | head -1)"
    wait $launcher
    code $? 75
    figure="ended after $(since "$at" "$(now)") s"
    under 2 "$(since "$at" "$(now)")"
    has out '"interrupted": true' 1
    steps=$(sed -n 's/.*"interrupted": true.*"steps": \([0-9]*\).*/\1/p' out)
    [ $bad -eq 0 ] || return
    trained one "$tutti" train mnist --data digits --batch 31 --steps-per-epoch 3 --json --epochs $((steps / 3 + 2)) \
        "${all[@]}" --resume
    code $? 0
    has out.err "step $steps$"
}

# Workers that were not started alike end with a message that says so.
check_unlike() {
    local which=$1 first=$2 second=$3 text=$4 at
    at=$(now)
    limit=20 trained as_it_is "$tutti" run -n 2 sh -c \
        "if [ \$TUTTI_RANK = 0 ]; then exec $tutti train $first; else exec $tutti train $second; fi"
    local status=$?
    figure="exit code $status after $(since "$at" "$(now)") s"
    [ $status -ne 124 ] && [ $status -ne 137 ] || fail "it hung"
    [ $status -ne 0 ] || fail "another $which went unnoticed"
    has out.err "$text"
}

# ---- forecasts and accounts ----

# What is predicted of a step's memory is what it takes, to 5 %; and its time is predicted.
check_memory() {
    trained "$2" "$tutti" bench forecast "$1" --one --steps 3 --threads 1
    code $? 0
    figure=$(awk '/"bench":"forecast"/ { while (match($0, /"[a-z_]+":[0-9.e+-]+/)) {
                      split(substr($0, RSTART + 1, RLENGTH - 1), pair, /":/); v[pair[1]] = pair[2]
                      $0 = substr($0, RSTART + RLENGTH) } found = 1 }
                  END { share = found ? v["predicted_mib"] / v["measured_mib"] : 0
                        printf "%.3f of %.2f MiB", share, v["measured_mib"]
                        exit !(share > 0.95 && share < 1.05 && v["predicted_ms"] > 0) }' out) ||
        fail "predicted memory: $figure"
}

# Before the first step, once: what it will take; the same for a cluster that is not there.
check_forecast() {
    trained shm2 "$tutti" train mnist $(flags mnist) --set forecast=on
    code $? 0
    has out.json '"forecast": *"multi_worker_mirrored".*"replicas": *2' 1
    head -n 1 out.json | grep -q '"forecast"' || fail "the forecast is not the first line"
    has out.json '"done".*"waiting_share".*"slowest"' 1
    rm -rf run && mkdir run && ln -s ../digits run/
    (cd run && "$tutti" plan mnist --data digits --batch 31 --ranks 8 --hosts 4 --alpha 20us --beta 1ns) > out 2> out.err
    code $? 0
    has out 'recommended' 1
    for each in one_device mirrored multi_worker_mirrored central_storage; do has out "^$each " 1; done
}

# A cluster that is not there, for every example; the strategies that cannot be say why.
check_plan() {
    rm -rf run && mkdir run && ln -s ../few ../images ../numbers.txt ../digits.onnx run/
    baseline "$1"
    (cd run && timeout -k 2 60 "$tutti" plan "$1" $(flags "$1" | sed 's/--epochs.*//') --ranks 8 --hosts 2 \
        --alpha 20us --beta 1ns --flops 1e12) > out 2> out.err
    code $? 0
    has out 'recommended' 1
    for each in one_device mirrored multi_worker_mirrored central_storage; do has out "^$each " 1; done
    lacks out.err 'nothing has read'
}

# Loops that are written by hand say it as well, of each of their programs.
check_foretold() {
    trained "$2" "$tutti" train "$1" $(flags "$1" | sed 's/--epochs.*//') --epochs 1 --steps-per-epoch 9 --json --set forecast=on
    code $? 0
    has out.json '"forecast".*"program".*"step_seconds": *[0-9.e-]*[1-9].*"memory_bytes": *[1-9]' "$3"
}

# Of three ranks one is slow, and is named.
check_slow() {
    trained as_it_is "$tutti" run -n 3 --engine "$1" sh -c \
        '[ $TUTTI_RANK != 1 ] || export TUTTI_DEVICE=far:0 TUTTI_FAR_DELAY_US=4000; exec "$@"' sh \
        "$tutti" train mnist --data digits --batch 31 --epochs 1 --steps-per-epoch 20 --threads 1 \
        --set "checkpoints=ckpt/{epoch}"
    code $? 0
    figure=$(grep -o 'waiting .*' out)
    has out 'time: input .*, compute .*, exposed communication .*, waiting .*, most of it for rank 1 (' 1
}

# One file with a row for each rank, on one clock: what meets, meets at the same time.
check_trace() {
    local way=$1 ranks=$2
    command -v python3 > /dev/null || { skip "there is no python3" && return; }
    rm -f trace.json*
    TUTTI_TRACE=../trace.json trained "$way" "$tutti" train mnist $(flags mnist) --threads 1
    code $? 0
    [ -z "$(ls trace.json.* 2> /dev/null)" ] || fail "parts of the trace are left"
    figure=$(python3 "$here/trace.py" trace.json "$ranks") || fail "$figure"
}

# ---- all of them ----

run_test() {
    name=$1
    shift
    [[ $name =~ $only ]] || return
    bad=0 figure=
    local started
    started=$(now)
    rm -f out out.*
    "$@"
    case $bad in
        0) passed=$((passed + 1)) ;;
        1) failed=$((failed + 1)) ;;
        2) skipped=$((skipped + 1)) ;;
    esac
    [ -z "${VERBOSE:-}" ] || [ $bad -ne 0 ] || echo "ok $name ($(since "$started" "$(now)") s) $figure"
}

ways="mirrored2 mirrored3 far2 mixed3 central2 central3 shm2 shm3 shm4 tcp2 tcp3 tcp4 levels2 mpi2 mpi3"
all="onefar onewhole $ways mirrored4 whole2 central4 levels3"
for each in shm tcp mpi; do all+=" $(echo "$each"{1,2,3,4}{,far,whole})"; done
all=$(tr ' ' '\n' <<< "$all" | awk '!seen[$0]++')
for example in $examples; do
    case ${long:-$example} in
        1) mine=$all ;;
        mnist) mine=$ways ;;
        autoencoder) mine="mirrored3 mixed3 central3 tcp3 levels2" ;;
        gan) mine="mirrored2 shm3 far2 tcp2far" ;;
        *) mine="mirrored2 shm3" ;;
    esac
    for way in $mine; do run_test "${example}_$way" check_example "$example" "$way"; done
done
for setting in reduction=ring reduction=tree reduction=reduce_to_one bucket=1 overlap=on; do
    run_test "mirrored3_$setting" check_setting mirrored3 $setting
    run_test "tcp2_$setting" check_setting tcp2 $setting
done
for setting in gather dense; do
    run_test "sparse_${setting}_mirrored3" check_sparse mirrored3 $setting
    run_test "sparse_${setting}_shm2" check_sparse shm2 $setting
done
run_test sharing_by_element check_sharing auto "by element: each of 2 workers reads its rows of every batch"
run_test sharing_off check_sharing off "not shared: each of 2 workers reads everything"
for way in mirrored3 far2 central2 shm2 shm4 levels2; do run_test "short_$way" check_short $way 67; done
run_test three_rows_on_four_workers check_short tcp4 3
for way in mirrored2 far2 central2 shm2; do run_test "again_resnet_$way" check_again resnet $way remat=1; done
run_test again_text_tcp2 check_again text tcp2 remat=1
run_test save_and_eval check_save_and_eval
for example in autoencoder mnist resnet ${long:+text tickets cifar}; do
    for way in mirrored2 tcp3 levels3 ${long:+mirrored3 far2 central2 shm2 shm4 levels2 mpi3}; do
        run_test "bits_${example}_$way" check_bits "$example" "$way"
    done
done
for way in one shm3 mirrored2; do run_test "resume_$way" check_resume $way; done
run_test killed_rank_shm check_killed 1 shm
run_test killed_rank_tcp check_killed 2 tcp
run_test killed_rank_zero check_killed 0 shm
run_test restarts check_restarts
run_test preempted check_preempted
plain="--data digits --epochs 1 --steps-per-epoch 3 --json"
run_test unlike_batch check_unlike batch "mnist $plain --batch 8" "mnist $plain --batch 9" "rank 1"
run_test unlike_model check_unlike model "mnist $plain --batch 8" "autoencoder $plain --batch 8" "rank 1"
run_test unlike_seed check_unlike seed "mnist $plain --batch 8 --seed 1" "mnist $plain --batch 8 --seed 2" "rank 1"
run_test unlike_length check_unlike "number of steps" "mnist $plain" "mnist $plain --steps-per-epoch 2" "rank 1"
for example in softmax mnist tickets loop cifar text resnet autoencoder gan agent encoder finetune; do
    for way in one mirrored2 shm2; do run_test "memory_${example}_$way" check_memory "$example" $way; done
done
run_test forecast check_forecast
for example in $examples; do run_test "plan_$example" check_plan "$example"; done
for way in one mirrored2 shm2; do
    for example in softmax loop agent; do run_test "foretold_${example}_$way" check_foretold $example $way 1; done
    run_test "foretold_gan_$way" check_foretold gan $way 2
done
run_test foretold_queues check_foretold queues one 1
for engine in shm tcp; do
    run_test "slow_rank_$engine" check_slow $engine
    run_test "trace_$engine" check_trace ${engine}3 3
done

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
