# What `run.sh --gpu` runs: every example on one GPU and on logical devices of it, 50 steps, against one
# CPU. Read by run.sh.
#
# shellcheck shell=bash disable=SC2154
for example in $examples gpt vae; do
    for way in gpu1 gpu2 gpu4 gpucentral2; do
        run_test "${example}_$way" check_example "$example" "$way"
    done
done
