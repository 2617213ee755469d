# What `run.sh --gpu` runs: every example on one GPU and on logical devices of it, 50 steps, against one
# CPU; the same bits on any number of them; 16 bits. Read by run.sh.
#
# shellcheck shell=bash disable=SC2034,SC2154
examples+=" gpt vae"
alone_on=gpu1
for example in $examples; do
    for way in gpu1 gpu2 gpu4 gpucentral2; do
        run_test "${example}_$way" check_example "$example" "$way"
    done
done
for example in autoencoder mnist softmax loop resnet tickets text cifar; do
    for way in gpu1 gpu2 gpu4; do
        run_test "bits_${example}_$way" check_bits "$example" "$way"
    done
done
for example in mnist autoencoder tickets text cifar gpt; do
    for precision in bf16 f16; do
        run_test "narrow_${example}_$precision" check_narrow "$example" "$precision"
    done
done
