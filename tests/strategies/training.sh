# What the tests of strategies are written in, and how they train. Read by run.sh; each test runs in a
# folder of its own, and what several need is in $folder.
#
# The flags of an example are words; variables are given and taken by run.sh:
# shellcheck shell=bash disable=SC2046,SC2034,SC2154
fail() {
    echo "FAIL strategies $name: $*"
    [ $bad -ne 0 ] || tail -q -n 5 out out.err 2> /dev/null
    bad=1
}
skip() {
    echo "skip strategies $name: $*"
    bad=2
}
. "$here/../expect.sh"
# await FILE TEXT COUNT: until it stands there.
await() {
    local i
    for ((i = 0; i < 400; i++)); do
        [ "$(cat "$1" 2> /dev/null | grep -c -- "$2")" -ge "$3" ] && return
        sleep 0.05
    done
    fail "'$2' did not come"
}
# limited SECONDS COMMAND...: in the background, where a test that is told to end reaches it.
limited() {
    timeout -k 2 "$@" &
    wait $!
}
# once FILE COMMAND...: what several tests need is made by the first of them; the command leaves it in
# the file `made`.
once() {
    local file=$folder/$1
    shift
    {
        flock 9
        if [ ! -s "$file" ] && [ ! -e "$file.failed" ]; then
            rm -f made
            { "$@" 9>&- && mv made "$file"; } || { echo "exit code $?" && tail -n 3 out.err; } > "$file.failed" 2>&1
        fi
    } 9> "$file.lock"
    [ -s "$file" ] || fail "no ${file##*/}: $(tr '\n' ' ' < "$file.failed")"
}
now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.3f", b - a }'; }

# ---- what is compared ----

# same A B RELATIVE POINTS [LEAST]: two files of --json lines tell the same training (same.awk).
same() {
    awk -v relative="$3" -v points="$4" -v least="${5:-0}" -f "$here/same.awk" "$1" "$2" > out.same ||
        fail "not the same: $(head -c 400 out.same | tr '\n' ';')"
    figure=$(tail -n 1 out.same)
}
# lines FILE: the --json lines of the one rank that prints.
lines() { sed -n 's/^\(\[0\] \)\?{/{/p' "$1"; }

# ---- the examples ----

examples="softmax mnist tickets loop cifar text resnet autoencoder queues gan agent encoder finetune sort"
# flags EXAMPLE: small data and few steps, 50 of them with --long; 31 rows are cut unevenly by 2, 3 and 4.
flags() {
    local epochs=2 steps=2 digits=few
    [ -z "$long" ] || { epochs=5 steps=10; }
    case $1 in
        softmax | mnist | loop | autoencoder) echo --data $digits --batch 31 ;;
        queues) echo --batch 31 ;; # files of 203 digits would be at their end before 50 steps
        resnet) # one of the test digits is less than 0.3 points of accuracy, which is final after 200 steps
            [ -z "$long" ] || { epochs=8 steps=25 digits=digits; }
            echo --data $digits --batch $([ -z "$long" ] && echo 10 || echo 31)
            ;;
        cifar) echo --data images --batch 13 ;;
        tickets) # tests of 2000 tickets
            [ -z "$long" ] || { epochs=2 steps=25; }
            echo --batch 7
            ;;
        text) echo --data numbers.txt --batch 5 --set context=16 --set width=32 --set blocks=1 --set sample=0 ;;
        gan) echo --batch 61 ;;
        agent) steps=2 ;; # 10 are as many as are the same: see tolerance
        encoder) echo --batch 7 ;;
        finetune) echo --data $digits --set from=digits.onnx --batch 7 ;;
        sort) echo --batch 7 --precision f32 ;;
        gpt) echo --batch 5 --set sample=0 ;;
        vae) echo --data $digits --batch 31 ;;
    esac
    echo --epochs $epochs --steps-per-epoch $steps --json --set "checkpoints=ckpt/{epoch}"
}
# tolerance EXAMPLE: relative error of losses, points of accuracy, least size of a loss. Attention's and
# batch norm's sums amplify rounding. So do networks that learn from each other, where Adam's first steps
# have the sign of a gradient, however small, and a penalty's slope jumps where a unit begins to fire. Of
# an agent's 300,000 pushes one or two are drawn otherwise because of a rounding, and change all that
# comes after: before the 20th step none was. In deterministic mode both have the same bits.
tolerance() {
    case $1 in
        text | encoder | sort) echo 1e-4 0.3 ;;
        resnet) [ -n "$long" ] && echo 2e-2 0.3 1 || echo 1e-3 0.3 ;;
        gan) [ -n "$gpu" ] && echo 3e-2 1 1 || echo 1e-2 0.5 1 ;;
        agent) echo 1e-3 0.3 1 ;;
        *) [ -n "$gpu" ] && echo 1e-4 0.3 || echo 1e-5 0 ;;
    esac
}

# logical N: so many logical devices of one GPU.
logical() {
    local i
    for ((i = 0; i < $1; i++)); do printf 'gpu:0/%d%s' $i "$([ $((i + 1)) -eq "$1" ] || echo ,)"; done
}
new_run() { rm -rf run && mkdir run && ln -s "$folder"/{digits,few,images,numbers.txt,digits.onnx} run/; }
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
        sharded2) after=(--strategy fully_sharded --devices "cpu:0,cpu:1" --set zero=3) ;;
        sharded3) after=(--strategy fully_sharded --devices "cpu:0,far:0,cpu:1" --set zero=2) ;;
        tensor2) after=(--strategy tensor --devices "cpu:0,cpu:1") ;;
        both4) # data, weights in blocks, and neurons divided
            after=(--strategy tensor --devices "cpu:0,far:0,cpu:1,cpu:2" --mesh data=2,model=2
                --layout "batch:data; weights:data; hidden:model; heads:model; channels:model")
            ;;
        onefar) after=(--strategy one_device --devices "far:0") ;;
        onewhole) after=(--strategy one_device --devices "whole:0") ;;
        central4) after=(--strategy central_storage --devices "cpu:0,far:0,whole:0,cpu:1") ;;
        gpu1) after=(--strategy one_device --devices gpu:0) ;;
        gpu[2-4]) after=(--strategy mirrored --devices "$(logical "${way#gpu}")") ;;
        gpucentral*) after=(--strategy central_storage --devices "$(logical "${way#gpucentral}")") ;;
        served) after=(--strategy parameter_server) ;; # servers within the process
        ps*) # one worker, whose losses are those of one device, and so many servers
            before=("$tutti" run -n $((${way#ps} + 1)) --ps "${way#ps}")
            after=(--set consistency=ssp:3)
            ;;
        pipe[0-9]) after=(--strategy pipeline --set stages=${way#pipe} --set micro=4) ;;
        pipefar2) after=(--strategy pipeline --devices far:0,cpu:0 --set micro=3 --set schedule=zero_bubble) ;;
        pipechunks2) after=(--strategy pipeline --devices cpu:0,cpu:1 --set stages=4 --set micro=4) ;;
        pipeshm* | pipetcp*) # a stage in each of so many workers
            before=("$tutti" run -n "${way:7}" --engine "${way:4:3}")
            after=(--strategy pipeline --set micro=4)
            ;;
        levels*) # workers of two devices each
            before=("$tutti" run -n "${way#levels}")
            after=(--devices "cpu:0,far:0")
            ;;
        *sharded[2-4])
            before=("$tutti" run -n "${way: -1}" --engine "${way:0:3}")
            after=(--strategy fully_sharded --set zero=3)
            ;;
        *tensor[2-4])
            before=("$tutti" run -n "${way: -1}" --engine "${way:0:3}")
            after=(--strategy tensor)
            ;;
        mpi* | shm* | tcp*) # so many workers, on devices of that kind: shm3, tcp2far
            workers=${way:3:1} kind=${way:4}
            before=("$tutti" run -n "$workers" --engine "${way:0:3}")
            [[ $way != mpi* ]] || before=(mpirun -n "$workers")
            [ -z "$kind" ] || after=(--devices "$kind:0")
            ;;
    esac
    new_run
    (cd run && exec timeout -k 2 "${limit:-${long:+3}60}" "${before[@]}" "$@" "${after[@]}") > out 2> out.err &
    wait $!
    status=$?
    lines out > out.json
    return $status
}

# kept WAY COMMAND...: a training whose lines are wanted by several tests.
kept() { trained "$@" && cp out.json made; }
make_onnx() {
    limited 60 "$tutti" train finetune --data "$folder/few" --epochs 1 --quiet --set expect=0 > out 2> out.err &&
        mv digits.onnx made
}
# baseline EXAMPLE: $kept is the file with its training on one device, which is made once.
baseline() {
    kept=$folder/one.$1
    [ "$1" != finetune ] || once digits.onnx make_onnx # what it begins with
    once "one.$1" kept one "$tutti" train "$1" $(flags "$1")
}

check_example() {
    local example=$1 way=$2
    [[ $way != mpi* ]] || command -v mpirun > /dev/null || { skip "there is no mpirun"; return; }
    baseline "$example"
    [ $bad -eq 0 ] || return
    trained "$way" "$tutti" train "$example" $(flags "$example")
    code $? 0
    lacks out '^\[[1-9]' # one rank prints
    lacks out.err 'for want of a kernel'
    if [ -n "$long" ] && [ "$example" = resnet ]; then # of batch norm's curve the end counts
        for each in "$kept" out.json; do
            grep '"done"' "$each" | sed 's/"accuracy": [^,]*, //' > "${each##*/}.end"
        done
        same "${kept##*/}.end" out.json.end $(tolerance "$example")
    else
        same "$kept" out.json $(tolerance "$example")
    fi
}

# stepped WAY EXAMPLE: one step; its gradients (TUTTI_KEEP_GRADIENTS) are in the checkpoint `made`. Of a
# GAN, whose generator learns every fourth, four steps that move no weight.
stepped() {
    local steps=1 more=()
    [ "$2" != gan ] || { steps=4 more=(--lr 1e-30); }
    rm -f made
    TUTTI_KEEP_GRADIENTS=1 trained "$1" "$tutti" train "$2" --epochs 1 --steps-per-epoch $steps "${more[@]}" \
        --save ../stepped $(flags "$2" | sed 's/--epochs [0-9]* --steps-per-epoch [0-9]*//') || return
    mv stepped.checkpoint.safetensors made 2> /dev/null || mv run/ckpt/*.safetensors made # a callback's
}

# The first step's gradients are those of one device to 1e-5 of the largest (gradients.py).
check_gradients() {
    local example=$1 way=$2
    command -v python3 > /dev/null || { skip "there is no python3"; return; }
    [[ $way != mpi* ]] || command -v mpirun > /dev/null || { skip "there is no mpirun"; return; }
    [ "$example" != finetune ] || once digits.onnx make_onnx
    once "gradients.$example" stepped one "$example"
    [ $bad -eq 0 ] || return
    stepped "$way" "$example"
    code $? 0
    [ $bad -eq 0 ] || return
    figure=$(python3 "$here/gradients.py" "$folder/gradients.$example" made 1e-5 2>&1) || fail "gradients differ: $figure"
}
