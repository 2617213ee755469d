#!/usr/bin/env bash
# Runs every example briefly, and the command on the same work: tests/examples.sh BUILD
# Each is held to what so few steps reach. The last line is "N passed, N failed".
set -u
build=$(realpath "${1:-build}")
gpt2=$(realpath "$(dirname "$0")/gpt2")
passed=0 failed=0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1

# expect CODE NAME COMMAND...: one test; what the command prints is shown when it fails.
expect() {
    local code=$1 name=$2 started=$SECONDS status
    shift 2
    timeout 120 "$@" > out 2> err
    status=$?
    if [ $status -eq "$code" ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        cat out err
        echo "example $name: exit status $status, not $code"
    fi
    [ $((SECONDS - started)) -lt 20 ] || echo "example $name: $((SECONDS - started)) s"
}

# holds TEXT: what the last command printed contains TEXT.
holds() {
    if cat out err | grep -q -- "$1"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        cat out err
        echo "not there: $1"
    fi
}

run() { # run PROGRAM STEPS EXPECT ARGS...
    local program=$1 steps=$2 least=$3
    shift 3
    expect 0 "$program" "$build/examples/$program" --epochs 1 --steps-per-epoch "$steps" \
        --set expect="$least" "$@"
}

run 1_softmax 300 0.85 --save softmax
run 2_mnist 200 0.90 --save mnist --quiet --logs board
expect 0 "9_inference" "$build/examples/9_inference" mnist --set expect=0.90
run 3_tickets 60 0.25
run 4_loop 150 0.85 --save loop --quiet
run 5_cifar 150 0.20
run 6_text 40 0.20 --batch 8 --set sample=20
run 7_resnet 60 0.30 --batch 32
run 8_autoencoder 150 0.30
run 17_vae 150 0.65 --set picture=new.png
holds "divergence"
expect 0 "its picture" test -s new.png
run 10_queues 300 0.80
run 11_gan 100 0.01
run 12_agent 10 40
run 13_encoder 200 0.85
run 18_transformer 140 0.60
run 15_gpt 150 0.45 --set sample=20
holds 'tokens/s'
run 15_gpt 10 0.05 --set accumulate=2 --set dropout=0.1 --set remat=1 --set export="$folder"
expect 0 "GPT-2 that was written" "$build/examples/15_gpt" --set from="$folder" --set train=0
gpt="$build/examples/15_gpt --set from=$gpt2 --set train=0 --set temperature=0 --set prompt=Hello"
expect 0 "GPT-2 of transformers" $gpt --set sample=20
grep -av tokens/s out > cached
expect 0 "without a cache" $gpt --set sample=20 --set cache=0
grep -av tokens/s out > plain
expect 0 "the same text" cmp cached plain
expect 1 "more tokens than positions" $gpt --set sample=40
holds "model 'gpt' has positions for 32"
expect 1 "a model of another size" $gpt --set width=48
holds 'mismatched  wte/embeddings: f32\[800,24\] in the file, f32\[800,48\] in the model'
expect 1 "no merges" "$build/examples/15_gpt" --set vocab="$folder" --data "$gpt2/config.json"
holds 'vocab.json'
expect 1 "no such preset" "$build/examples/15_gpt" --set preset=gpt3
holds 'there are tiny, gpt2, gpt2-medium'
printf '\1\0\2\0\377\377%060d' 0 > train.bin
expect 1 "tokens of another vocabulary" "$build/examples/15_gpt" --data train.bin --set preset=tiny --set context=8
holds 'is none of the vocabulary'
expect 0 "14_finetune" "$build/examples/14_finetune"
expect 0 "its file" test -s digits.onnx
expect 0 "14_finetune of a file" "$build/examples/14_finetune" --set from=digits.onnx --json
holds '"val_accuracy": 0.[789]'
expect 1 "no file" "$build/examples/14_finetune" --set from=nothing.onnx
holds 'nothing.onnx'

tutti=$build/tutti
expect 0 "train by name" "$tutti" train mnist --epochs 1 --steps-per-epoch 20 --json --seed 3 --batch 16
holds '"val_accuracy": '
holds '"done": true'
expect 0 "train goes on" "$tutti" train mnist --epochs 2 --steps-per-epoch 20 --json --seed 3 --batch 16 --resume
holds '"epoch": 2'
expect 0 "a loop in JSON" "$tutti" train loop --epochs 2 --steps-per-epoch 10 --json --logs board2
holds '"epoch": 2, "loss": '
holds '"done": true'
expect 0 "its event files" test -d board2/train -a -d board2/validation
expect 2 "a wrong flag" "$tutti" train mnist --epoch 1
holds "'--epoch' is no flag of mnist"
expect 1 "no place to save" "$tutti" train mnist --epochs 1 --steps-per-epoch 1 --save /proc/nothing/model
holds '/proc/nothing'
if "$tutti" ops > /dev/full 2> err || "$tutti" --help > /dev/full 2> err; then
    failed=$((failed + 1))
    echo "a full disk below standard output is no failure"
fi
if "$tutti" ops >&- 2> err; then
    failed=$((failed + 1))
    echo "a closed standard output is no failure"
fi
step="'$build/examples/2_mnist' --epochs 1 --steps-per-epoch 1 --set expect=0 --json"
expect 1 "a program on a full disk" bash -c "$step > /dev/full"
expect 1 "a program without standard output" bash -c "$step >&-"
expect 71 "too few descriptors" bash -c "ulimit -n 8; '$tutti' run -n 2 true"
printf '%0400000d\n' 0 | tr 0 , > wide.csv
expect 0 "a line of many columns" bash -c "ulimit -v 250000; '$tutti' show wide.csv --json"
mkfifo pipe
expect 1 "a pipe is no text" timeout 20 "$tutti" train text --data pipe
expect 1 "a device is no text" timeout 20 "$tutti" train text --data /dev/zero
expect 0 "all kernels of an operator that has many" "$tutti" ops fused
holds 'fused.matmul_bias_activation ([a-z0-9 ]*base)'
expect 0 "no room for a checkpoint" bash -c \
    "trap '' XFSZ; ulimit -f 3000; '$tutti' train loop --epochs 2 --steps-per-epoch 3 --batch 8 --json --save full"
holds 'the training goes on'
expect 0 "the model is there" test -s full.safetensors -a ! -e full.checkpoint.safetensors
expect 2 "a setting that is no number" "$tutti" train softmax --set expect=high
holds 'set expect takes a number'
for file in full.safetensors board2 mnist.json; do
    expect 0 "show $file" "$tutti" show "$file"
done
expect 0 "inspect a dataset" "$tutti" data inspect mnist --json
holds '^{"split":"test","components":\["f32'
expect 0 "inspect a file" "$tutti" data inspect full.safetensors --json
holds '^{"name":"'
printf '{"a":' > half.json
expect 1 "show what is no model" "$tutti" show half.json --json
holds "JSON"
expect 2 "a wire that is none" "$tutti" train mnist --set wire=f64
holds 'set wire takes'
expect 1 "save without a name" "$tutti" train softmax --epochs 1 --steps-per-epoch 2 --save "$folder/"
holds 'names a folder'
expect 1 "a folder as text" "$tutti" train text --data "$folder"
expect 2 "an empty batch" "$tutti" train mnist --batch 0
holds "from 1 to 16777216"
expect 2 "no precision" "$tutti" train softmax --precision f8
expect 0 "a setting that nobody reads" "$tutti" train softmax --epochs 1 --steps-per-epoch 2 --set exepct=0.9
holds "nothing has read --set exepct; is 'expect' meant?"
expect 0 "train a file" "$tutti" train mnist.json --epochs 1 --steps-per-epoch 100 --set expect=0.7 --json
holds '"samples_per_second": '
expect 0 "eval" "$tutti" eval mnist --set expect=0.90 --json
holds '"accuracy": 0.9'
python3 - << 'END'
import struct
head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 28, 28, 1), }".ljust(117) + b"\n"
with open("one.npy", "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(4 * 784))
END
expect 0 "predict one" "$tutti" predict mnist --input one.npy --json
expect 1 "an input that is none" "$tutti" predict mnist --input nothing=one.npy --json
holds "the model has no input 'nothing'; it has input"
expect 1 "an input too many" "$tutti" predict mnist --input one.npy --input one.npy
expect 1 "eval nothing" "$tutti" eval nothing
holds 'nothing.json'
expect 2 "train nothing" "$tutti" train nothing
holds 'autoencoder'
expect 2 "train without a name" "$tutti" train
expect 0 "train's help" "$tutti" train --help
holds 'exit codes:'
expect 2 "an unknown strategy" "$tutti" train mnist --strategy mirored
holds 'there is no strategy'
expect 0 "two devices" "$tutti" train mnist --strategy mirrored --devices cpu:0,cpu:1 --epochs 1 --steps-per-epoch 2
holds 'strategy mirrored'
expect 0 "a plan" "$tutti" plan mnist --ranks 8 --hosts 4 --alpha 20us --beta 10GB/s --flops 1e12
holds 'recommended'
expect 0 "doctor" "$tutti" doctor
holds 'strategies.* mirrored'
expect 1 "too little" "$tutti" train softmax --epochs 1 --steps-per-epoch 2 --set expect=0.99 --quiet

# A GAN's losses are the same bits, whoever computes them.
losses() { sed -n 's/.*"epoch": 1, \(.*"right": [0-9.]*\).*/\1/p' out; }
gan=("$tutti" train gan --epochs 1 --steps-per-epoch 12 --batch 64 --json --deterministic)
expect 0 "gan on one device" "${gan[@]}"
one=$(losses)
holds '"critic_loss": -*[0-9]'
expect 0 "gan on two devices" "${gan[@]}" --strategy mirrored --devices cpu:0,cpu:1
expect 0 "its losses" test "$one" = "$(losses)"
expect 0 "gan in two processes" "$tutti" run -n 2 -- "${gan[@]}"
expect 0 "its losses" test "$one" = "$(losses)"

# One training step of each, measured; the last line is the step's.
cat > step_fields.py << 'END'
import json, sys
step = json.loads(open("step.json").read().splitlines()[-1])
assert step["name"] == sys.argv[1] and step["batch"] == int(sys.argv[2]) and step["threads"] == 1, step
assert step["precision"] == sys.argv[3] and step["steps"] == 2 and step["cpu"], step
for field in ("ms", "samples_per_second", "share_of_peak", "first_step_ms", "resident_mib", "gflop"):
    assert step[field] > 0, field
assert abs(step["samples_per_second"] * step["ms"] / 1000 / step["batch"] - 1) < 1e-3, step
assert step["first_step_ms"] > step["compile_ms"], step
assert 0 < step["bound_bytes"] <= step["planned_bytes"] <= 1.1 * step["bound_bytes"], step
END
while read -r name batch precision; do
    expect 0 "a step of $name" "$tutti" bench step "$name" --batch "$batch" --precision "$precision" \
        --threads 1 --steps 2 --json
    cp out step.json
    expect 0 "its fields" python3 step_fields.py "$name" "$batch" "$precision"
done << 'END'
softmax 100 f32
mnist 64 f32
tickets 8 f32
loop 16 f32
cifar 4 f32
text 2 bf16
resnet 4 f32
autoencoder 32 f32
END
expect 0 "where a step goes" "$tutti" bench step mnist --steps 2 --profile --json
holds '"kernel":"matmul'
holds '"share_of_roofline":'
expect 2 "a step of nothing" "$tutti" bench step nothing
holds 'autoencoder'
expect 2 "a wrong flag of a step" "$tutti" bench step mnist --step 2
for command in ops show "bench fused" "bench gemm" "bench fit" "bench infer"; do
    # shellcheck disable=SC2086 # command and benchmark
    expect 2 "a wrong flag of $command" "$tutti" $command --wrong
done
for wrong in "--ranks 0" "--ranks -3" "--ranks 2 --hosts 5" "--ranks 2 --flops much"; do
    expect 2 "plan $wrong" "$tutti" plan mnist $wrong
done
expect 2 "a wrong flag of a plan" "$tutti" plan collectives --ranks 8 --alpha 1us --beta 1ns --bytes 1m
holds "does not know '--bytes'"
expect 2 "a bandwidth for a latency" "$tutti" plan collectives --ranks 8 --alpha 10GB/s --beta 10GB/s
expect 2 "a bandwidth of ten bytes" "$tutti" plan collectives --ranks 8 --alpha 1us --beta 0.1
holds "is a link of 10 bytes a second"
expect 2 "a latency without end" "$tutti" plan collectives --ranks 8 --alpha inf --beta 10GB/s
expect 2 "an option without a value" "$tutti" bench collectives --bytes
holds "--bytes needs a value"
expect 2 "stragglers without a simulation" "$tutti" plan collectives --ranks 8 --alpha 1us --beta 10GB/s --stragglers 1
expect 2 "a host named twice" "$tutti" run --hosts a:2,a:1 true
expect 2 "more stragglers than ranks" "$tutti" plan collectives --ranks 8 --alpha 1us --beta 10GB/s --stragglers 9
holds "more than --ranks 8"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
