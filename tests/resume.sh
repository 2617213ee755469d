#!/usr/bin/env bash
# Every example is killed (SIGKILL) several times and goes on: tests/resume.sh [BUILD [NAME …]]
# Its weights are then, bit by bit, those of a run that nobody disturbed, and so are the numbers of its last line.
# KILLS is the number of kills (3), FLAGS what each training is given besides. The last line is "N passed, N failed".
set -u
build=$(realpath "${1:-build}")
shift
names=${*:-softmax mnist tickets loop cifar text resnet autoencoder queues gan agent encoder finetune gpt sort}
passed=0 failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

check() { # check TEXT COMMAND...
    local text=$1
    shift
    if "$@" > "$folder/out" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$text"
        tail -5 "$folder/out"
    fi
}

flags_of() { # a training of some seconds
    case $1 in
        softmax) echo "--epochs 3 --steps-per-epoch 400 --set save_every=70" ;;
        mnist) echo "--epochs 5 --steps-per-epoch 30 --batch 16 --set checkpoints=ckpt/{epoch}" ;;
        tickets) echo "--epochs 2 --steps-per-epoch 12 --batch 16 --set save_every=5" ;;
        loop) echo "--epochs 2 --steps-per-epoch 60 --batch 16 --set save_every=9" ;;
        cifar) echo "--epochs 2 --steps-per-epoch 60 --batch 8 --set save_every=9" ;;
        text) echo "--epochs 2 --steps-per-epoch 10 --batch 4 --set sample=5 --set save_every=3" ;;
        resnet) echo "--epochs 2 --steps-per-epoch 9 --batch 8 --set save_every=2" ;;
        autoencoder) echo "--epochs 2 --steps-per-epoch 60 --batch 32 --set save_every=9" ;;
        queues) echo "--epochs 2 --steps-per-epoch 500 --set save_every=60" ;;
        gan) echo "--epochs 3 --steps-per-epoch 60 --set save_every=13" ;;
        agent) echo "--epochs 2 --steps-per-epoch 5 --set save_every=3" ;;
        encoder) echo "--epochs 2 --steps-per-epoch 50 --set save_every=9" ;;
        finetune) echo "--epochs 10 --set save_every=3" ;;
        gpt) echo "--epochs 2 --steps-per-epoch 20 --set accumulate=2 --set save_every=3 --set expect=0" ;;
        sort) echo "--epochs 2 --steps-per-epoch 60 --set save_every=9" ;;
    esac
}

# The numbers that do not depend on time.
last_line() {
    python3 -c '
import json, sys
last = json.loads([line for line in open(sys.argv[1]) if line.startswith("{")][-1])
for key in ("seconds", "samples_per_second", "resumed_at"):
    last.pop(key, None)
print(json.dumps(last, sort_keys=True))' "$1"
}

same() { [ -n "$1" ] && [ "$1" = "$2" ]; }

train() { # train NAME ARGS...: in the present folder
    local name=$1
    shift
    # shellcheck disable=SC2046
    "$build/tutti" train "$name" $(flags_of "$name") --seed 5 --json --save x ${FLAGS:-} "$@"
}

# Kills a run after a share of the time that the undisturbed one took.
cut() { # cut NAME SECONDS
    train "$1" --resume > cut.json 2>> cut.err &
    local child=$!
    sleep "$2"
    kill -9 $child 2> cut.kill
    wait $child 2> cut.kill
}

for name in $names; do
    mkdir -p "$folder/$name/whole" "$folder/$name/cut"
    cd "$folder/$name/whole" || exit 1
    begin=$(date +%s%N)
    check "$name: the undisturbed run" train "$name"
    cp "$folder/out" "$folder/$name/whole.json"
    took=$((($(date +%s%N) - begin) / 1000000))
    cd "$folder/$name/cut" || exit 1
    for ((i = 1; i <= ${KILLS:-3}; i++)); do
        cut "$name" "$(awk "BEGIN { print $took * (0.15 + 0.25 * $((RANDOM % 1000)) / 1000) / 1000 }")"
    done
    check "$name: it does not go on" train "$name" --resume
    cp "$folder/out" "$folder/$name/cut.json"
    check "$name: other weights" cmp x.safetensors ../whole/x.safetensors
    whole=$(last_line ../whole.json) now=$(last_line ../cut.json)
    check "$name: other numbers: $whole, now $now" same "$whole" "$now"
    echo "$name: $took ms undisturbed; went on from steps" \
        "$(cat cut.err ../cut.json | sed -n 's/.*training goes on from .*, step //p' | tr '\n' ' ')"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
