# What is tested of strategies beside the examples' matrix. Read by run.sh.
#
# The flags of an example are words, and done is the name of a line:
# shellcheck shell=bash disable=SC1010,SC2046,SC2207,SC2034,SC2154
# Ways of summing gradients change no number but by rounding.
check_setting() {
    local way=$1 setting=$2
    baseline mnist
    trained "$way" "$tutti" train mnist $(flags mnist) --set "$setting"
    code $? 0
    same "$kept" out.json 1e-5 0
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
    same "$kept" out.json $(tolerance tickets)
}

# Workers that read everything see every example as often as there are workers; one line says so.
check_sharing() {
    local setting=$1 text=$2
    trained shm2 "$tutti" train mnist --data digits --batch 31 --epochs 1 --set "shard=$setting"
    code $? 0
    has out "data: $text" 1
}

# A job whose description is wrong trains nowhere, whatever the strategy.
check_described_wrongly() {
    local strategy
    for strategy in "" "--strategy auto" "--strategy mirrored"; do
        # shellcheck disable=SC2086 # option and value
        TUTTI_SIZE=4 "$tutti" train mnist --epochs 1 --steps-per-epoch 1 $strategy > out 2>&1
        code $? 1
        has out 'TUTTI_SIZE=4 is set, but TUTTI_RANK is not'
    done
    TF_CONFIG='{bad' "$tutti" train mnist --epochs 1 --steps-per-epoch 1 > out 2>&1
    code $? 1
    has out 'TF_CONFIG'
}

# ---- batches that do not come out even ----

# 203 rows in batches of 67 leave 2: fewer than replicas.
check_short() {
    local way=$1 batch=$2
    local all=(--data digits --batch "$batch" --epochs 2 --json)
    once "one.short$batch" kept one "$tutti" train autoencoder "${all[@]}"
    trained "$way" "$tutti" train autoencoder "${all[@]}"
    code $? 0
    same "$folder/one.short$batch" out.json 1e-5 0
}

# Queues of processes of which one has no rows at all.
check_few() {
    local way=$1 batch=$2
    local all=(--batch "$batch" --epochs 2 --steps-per-epoch 4 --json)
    trained one "$tutti" train queues "${all[@]}"
    code $? 0
    cp out.json kept.json
    trained "$way" "$tutti" train queues "${all[@]}"
    code $? 0
    same kept.json out.json 1e-5 0
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
    once one.resume kept one "$tutti" train mnist "${all[@]}" --epochs 4
    rm -rf kept.*
    trained shm2 "$tutti" train mnist "${all[@]}" --epochs 2
    code $? 0
    lines out > first.json
    trained "$way" "$tutti" train mnist "${all[@]}" --epochs 4 --resume
    code $? 0
    { grep -v done first.json; lines out; } | grep -v done > both.json
    grep -v done "$folder/one.resume" > curve.json
    same curve.json both.json 1e-5 0
}

# check_left_out WAY EXAMPLE COMPRESSION: what compression left out is in checkpoints: a training that goes on
# gives the bits of one that was never stopped.
check_left_out() {
    local all=(train "$2" --data digits --batch 31 --steps-per-epoch 5 --set "wire=$3")
    trained "$1" "$tutti" "${all[@]}" --epochs 3 --save ../once --set 'checkpoints=../once/{epoch}'
    code $? 0
    all+=(--save ../twice --set 'checkpoints=../twice/{epoch}')
    trained "$1" "$tutti" "${all[@]}" --epochs 2
    code $? 0
    trained "$1" "$tutti" "${all[@]}" --epochs 3 --resume
    code $? 0
    has out.err "training goes on from .*, step 10"
    cmp once.safetensors twice.safetensors || fail "other weights"
}

# check_streamed FROM_TO: a training out of queues that was begun one way and is gone on with in another gives
# the curve of one device. What was in the queues is filled in again.
check_streamed() {
    local from=${1%_*} to=${1#*_} all=(--batch 31 --json --save ../kept --set save_every=7)
    once one.streamed kept one "$tutti" train queues --batch 31 --json --epochs 4 --steps-per-epoch 10
    trained "$from" "$tutti" train queues "${all[@]}" --epochs 2 --steps-per-epoch 10
    code $? 0
    lines out > first.json
    trained "$to" "$tutti" train queues "${all[@]}" --epochs 4 --steps-per-epoch 10 --resume
    code $? 0
    has out.err "training goes on from .*, step 20"
    { grep -v done first.json; lines out; } | grep -v done > both.json
    grep -v done "$folder/one.streamed" > curve.json
    same curve.json both.json 1e-5 0
}

# Streams that are at their end before the steps are: all processes end at the same one.
check_stream_ends() {
    local all=(--data few --batch 31 --epochs 2 --steps-per-epoch 9 --json)
    trained one "$tutti" train queues "${all[@]}"
    code $? 0
    has out.json '"done".*"steps": 12' 1 # 203 digits are 6 batches
    cp out.json kept.json
    trained "$1" "$tutti" train queues "${all[@]}"
    code $? 0
    same kept.json out.json 1e-5 0
}

# ---- deterministic mode ----

saved() { trained "${alone_on:-one}" "$tutti" train "$@" --save ../saved && mv saved.safetensors made; }
# The same bits in the weights, however the batch is cut, with a short last batch. $alone_on: the way of one device.
check_bits() {
    local example=$1 way=$2 all=(--deterministic --epochs 2 --json --set "checkpoints=ckpt/{epoch}")
    case $example in
        resnet) all+=(--data digits --batch 10 --steps-per-epoch 3) ;;
        autoencoder | mnist | softmax | loop) all+=(--data few --batch 67) ;;
        agent) all+=(--steps-per-epoch 25) ;;
        *) all=(--deterministic $(flags "$example")) ;;
    esac
    [ "$example" != finetune ] || once digits.onnx make_onnx
    once "bits.$example" saved "$example" "${all[@]}"
    [ $bad -eq 0 ] || return
    trained "$way" "$tutti" train "$example" "${all[@]}" --save ../other
    code $? 0
    cmp -s "$folder/bits.$example" other.safetensors || fail "the weights have other bits"
}

# check_narrow EXAMPLE PRECISION: on a GPU in 16 bits, weights in f32, as a CPU does it.
check_narrow() {
    local example=$1 precision=$2
    once "narrow.$example.$precision" kept one "$tutti" train "$example" $(flags "$example") --precision "$precision"
    [ $bad -eq 0 ] || return
    trained gpu1 "$tutti" train "$example" $(flags "$example") --precision "$precision"
    code $? 0
    same "$folder/narrow.$example.$precision" out.json 5e-2 5 0.5
}

# ---- faults ----

# started N ARGUMENTS...: a long training under the launcher, in the background; its first epoch is done.
started() {
    local ranks=$1
    shift
    new_run
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
    has out.err "during step [0-9]"
    has out.err "hold version [0-9]"
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

# check_cut SIGNAL CODE EXAMPLE FLAGS...: a loop written by hand, of which one process gets a signal, ends
# with that code; gone on with, it comes to the weights it would have had.
check_cut() {
    local signal=$1 ends=$2 launcher
    shift 2
    trained shm3 "$tutti" train "$@" --save ../whole
    code $? 0
    new_run
    (cd run && exec timeout -k 2 20 "$tutti" run -n 3 sh -c 'echo $$ > process.$TUTTI_RANK; exec "$@"' \
        sh "$tutti" train "$@" --save ../cut --set save_every=10) > out 2> out.err &
    launcher=$!
    await cut.checkpoint.safetensors.previous '' 1
    kill "-$signal" "$(cat run/process.1)"
    wait $launcher
    code $? "$ends"
    [ ! -e cut.safetensors ] || [ "$signal" != KILL ] || fail "weights were saved of a training that failed"
    trained shm3 "$tutti" train "$@" --save ../cut --resume
    code $? 0
    has out.err "training goes on from"
    cmp -s whole.safetensors cut.safetensors || fail "the weights have other bits"
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
    limited 60 "$tutti" plan mnist --data "$folder/digits" --batch 31 --ranks 8 --hosts 4 --alpha 20us --beta 1ns > out 2> out.err
    code $? 0
    has out 'recommended' 1
    for each in one_device mirrored multi_worker_mirrored central_storage; do has out "^$each " 1; done
    has out ' 1.32 MiB of gradients$' 1
    limited 60 "$tutti" plan mnist --data "$folder/digits" --batch 31 --ranks 3 --deterministic > out 2> out.err
    code $? 0
    has out ' 1.32 MiB of gradients$' 1 # which have no buckets
}

# A cluster that is not there, for every example; the strategies that cannot be say why.
check_plan() {
    [ "$1" != finetune ] || once digits.onnx make_onnx
    trained as_it_is "$tutti" plan "$1" $(flags "$1" | sed 's/--epochs.*//') --ranks 8 --hosts 2 --alpha 20us --beta 1ns --flops 1e12
    code $? 0
    has out 'recommended' 1
    for each in one_device mirrored multi_worker_mirrored central_storage; do has out "^$each " 1; done
    lacks out.err 'nothing has read'
}

# A model from its file is planned for the shapes that it takes, whatever data there is.
check_plan_file() {
    cat > model.json << 'END'
{"tutti": "0.1.0", "kind": "sequential", "name": "m", "precision": "f32",
 "layers": [{"kind": "input", "name": "input", "rank": 3, "dims": [12, 10, 3, 0, 0, 0, 0, 0]},
            {"kind": "conv2d", "name": "c", "filters": 8, "kernel_size": [3, 0]},
            {"kind": "flatten", "name": "f"}, {"kind": "dense", "name": "d", "units": 5}],
 "inputs": [{"name": "input", "dtype": "f32", "shape": [12, 10, 3]}]}
END
    limited 60 "$tutti" plan model.json --ranks 8 --hosts 4 --alpha 20us --beta 1ns > out 2> out.err
    code $? 0
    has out 'recommended' 1
    has out '^multi_worker_mirrored  *8 ' 1
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

# In deterministic mode nobody does the others' work, by the FLOPs in the traces.
check_share() {
    local workers=$1
    command -v python3 > /dev/null || { skip "there is no python3" && return; }
    for way in one "shm$workers"; do
        TUTTI_TRACE=../$way.json trained "$way" "$tutti" train mnist $(flags mnist) --threads 1 --deterministic
        code $? 0
    done
    figure=$(python3 "$here/share.py" one.json "shm$workers.json" "$workers" 8) || fail "$figure"
}
