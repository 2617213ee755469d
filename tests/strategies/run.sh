#!/usr/bin/env bash
# Every example under every strategy against one device, and what becomes of a training whose workers
# fail: tests/strategies/run.sh BUILD [--long | --gpu] [--jobs N] [NAME]
# The last line is "N passed, N failed, N skipped"; what failed is said once more before it. --long takes
# 50 steps and the whole matrix: every example under every strategy, on 1 to 4 workers of every engine
# and kind of device (make test-strategies). --jobs N keeps N cores busy: tests run beside each other,
# one of four workers in the place of four, but for those that look at the clock. By default there are
# as many as cores with --long, else one at a time. NAME, a regular expression, takes the tests whose
# name it matches. VERBOSE=1 shows those that pass, too, with their seconds, as --long does.
set -u
build=$(realpath "${1:-build}")
here=$(realpath "$(dirname "$0")")
shift
long='' gpu='' jobs='' only=''
while [ $# -gt 0 ]; do
    case $1 in
        --long) long=1 jobs=${jobs:-$(nproc)} VERBOSE=1 ;;
        --gpu) long=1 gpu=1 jobs=${jobs:-$(nproc)} VERBOSE=1 ;;
        --jobs) jobs=$2 && shift ;;
        *) only=$1 ;;
    esac
    shift
done
jobs=${jobs:-1}
tutti=$build/tutti
passed=0 failed=0 skipped=0 used=0
declare -A running=() # by process: how many cores it takes, and its name
declare -A cpu=()     # seconds, by example
folder=$(mktemp -d)
mkdir "$folder/tests" && touch "$folder/failures"
mkfifo "$folder/ended" && exec 3<> "$folder/ended" # a line for each test that has: process, status
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset TUTTI_STRATEGY TUTTI_DEVICES TUTTI_DEVICE TUTTI_ENGINE
[ "$jobs" -eq 1 ] || export TUTTI_THREADS=1 OMPI_MCA_hwloc_base_binding_policy=none
. "$here/training.sh"
. "$here/checks.sh"

# ---- tests beside each other ----

end_all() {
    [ ${#running[@]} -eq 0 ] || kill "${!running[@]}" 2> /dev/null
    wait
    rm -rf "$folder"
}
trap end_all EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# one_test NAME COMMAND...: in a process and a folder of its own; the exit status is how it went.
one_test() {
    local started wall spent
    name=$1 bad=0 figure=
    trap '' INT # run.sh is told, and tells us
    trap 'echo "$BASHPID $bad" >&3' EXIT
    trap 'kill $(jobs -p) 2> /dev/null; wait; bad=1; exit 1' TERM
    mkdir "$folder/tests/$name" && cd "$folder/tests/$name" || exit 1
    shift
    started=$(now)
    "$@"
    wall=$(since "$started" "$(now)")
    times > spent
    spent=$(awk -F'[ms ]+' 'NR == 2 { print $1 * 60 + $2 + $3 * 60 + $4 }' spent)
    if [ -n "${VERBOSE:-}" ]; then
        case $bad in
            0) echo "ok $name ($wall s, cpu $spent s) $figure" ;;
            1) echo "   $name took $wall s, cpu $spent s" ;;
        esac
    fi
    cd "$folder" && rm -rf "tests/$name"
    echo "$spent" > "$name.cpu"
    exit $bad
}

# Waits until one of the tests has ended, and prints what it says.
collect() {
    local process status what
    read -r process status <&3
    wait "$process"
    case $status in
        0) passed=$((passed + 1)) ;;
        2) skipped=$((skipped + 1)) ;;
        *) failed=$((failed + 1)) ;;
    esac
    what=${running[$process]}
    used=$((used - ${what%% *}))
    what=${what#* }
    unset "running[$process]"
    cat "$folder/$what.report"
    grep '^FAIL' "$folder/$what.report" >> "$folder/failures"
    cpu[${what%_*}]=$(awk -v a="${cpu[${what%_*}]:-0}" '{ a += $1 } END { print a }' "$folder/$what.cpu")
}

# room_for N: waits until so many cores are free.
room_for() { while [ ${#running[@]} -gt 0 ] && [ $((used + $1)) -gt "$jobs" ]; do collect; done; }

# run_test NAME COMMAND...: begins it as soon as there is room for its workers.
run_test() {
    local need=1
    [[ $1 =~ $only ]] || return 0
    [[ ! $1 =~ (mirrored|far|mixed|central|whole|sharded|tensor|both|gpu|gpucentral|shm|tcp|mpi|levels)([1-4]) ]] || need=${BASH_REMATCH[2]}
    [ -z "${alone:-}" ] || need=$jobs
    room_for "$need"
    one_test "$@" > "$folder/$1.report" 2>&1 &
    running[$!]="$need $1" used=$((used + need))
}
# Beside nothing else: it looks at the clock.
alone() { alone=1 run_test "$@"; }

# ---- all of them ----

cd "$folder" || exit 1
"$tutti" data make mnist few --limit 203 > /dev/null || exit 1
"$tutti" data make mnist digits --limit ${long:+2}203 > /dev/null || exit 1 # one digit is less than 0.3 points
"$tutti" data make cifar10 images --limit 203 > /dev/null || exit 1
seq -s ' ' 1 3000 > numbers.txt

# Prints what failed once more, and the last line.
finish() {
    room_for "$jobs"
    [ -z "$long" ] || for each in "${!cpu[@]}"; do printf '%-28s %8.1f s of cpu\n' "$each" "${cpu[$each]}"; done | sort
    cat "$folder/failures"
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed -eq 0 ]
    exit
}
if [ -n "$gpu" ]; then
    . "$here/gpu.sh"
    finish
fi

ways="mirrored2 mirrored3 far2 mixed3 central2 central3 shm2 shm3 shm4 tcp2 tcp3 tcp4 levels2 mpi2 mpi3 served ps1 ps2"
ways="$ways sharded2 sharded3 tensor2 both4 shmsharded2 tcpsharded3 shmtensor2"
matrix="onefar onewhole $ways mirrored4 whole2 central4 levels3"
for each in shm tcp mpi; do matrix="$matrix $(echo "$each"{1,2,3,4}{,far,whole})"; done
matrix=$(tr ' ' '\n' <<< "$matrix" | awk '!seen[$0]++')
for example in $examples; do
    case ${long:-$example} in
        1) mine=$matrix ;;
        mnist) mine=$ways ;;
        autoencoder) mine="mirrored3 mixed3 central3 tcp3 levels2" ;;
        gan) mine="mirrored2 shm3 far2 tcp2far ps1" ;;
        *) mine="mirrored2 shm3 ps1" ;;
    esac
    [ -n "$long" ] || [ "$example" = mnist ] || mine="$mine sharded2 tensor2 shmsharded2 shmtensor2"
    # Which process saves what is cut is not agreed where queues end: src/parallel/README.md.
    [ -n "$long" ] || [ "$example" != queues ] || mine="mirrored2 shm3 ps1 sharded2 tensor2"
    for way in $mine; do
        [[ $way =~ ^(served|ps) ]] || run_test "gradients_${example}_$way" check_gradients "$example" "$way"
        run_test "${example}_$way" check_example "$example" "$way"
    done
done
# Pipelines: batch norm of resnet is that of micro-batches, and has numbers of its own.
for example in mnist autoencoder tickets; do
    for way in pipe2 pipefar2 pipechunks2 pipeshm2 pipetcp2; do
        run_test "gradients_${example}_$way" check_gradients "$example" "$way"
        run_test "${example}_$way" check_example "$example" "$way"
    done
done
for example in autoencoder mnist; do run_test "bits_${example}_pipe2" check_bits "$example" pipe2; done
for setting in reduction=ring reduction=tree reduction=reduce_to_one bucket=1 overlap=on; do
    run_test "mirrored3_$setting" check_setting mirrored3 $setting
    run_test "tcp2_$setting" check_setting tcp2 $setting
done
for setting in gather dense; do
    run_test "sparse_${setting}_mirrored3" check_sparse mirrored3 $setting
    run_test "sparse_${setting}_shm2" check_sparse shm2 $setting
done
run_test described_wrongly check_described_wrongly
run_test sharing_by_element check_sharing auto "by element: each of 2 workers reads its rows of every batch"
run_test sharing_off check_sharing off "not shared: each of 2 workers reads everything"
for way in mirrored3 far2 central2 shm2 shm4 levels2; do run_test "short_$way" check_short $way 67; done
run_test three_rows_on_four_workers check_short tcp4 3
run_test three_streamed_on_four_workers check_few shm4 3
for way in mirrored2 far2 central2 shm2; do run_test "again_resnet_$way" check_again resnet $way remat=1; done
run_test again_text_tcp2 check_again text tcp2 remat=1
run_test save_and_eval check_save_and_eval
exact="mirrored2 tcp3 levels3" # with the kernels of one device: not on `whole`
[ -z "$long" ] || exact+=" mirrored3 mirrored4 far2 central2 central3 shm2 shm3 shm4 tcp2 tcp4 tcp2far levels2 mpi2 mpi3 mpi4"
for example in ${long:+$examples} $([ -n "$long" ] || echo autoencoder mnist resnet queues); do
    for way in $exact; do
        run_test "bits_${example}_$way" check_bits "$example" "$way"
    done
done
for way in one shm3 mirrored2; do run_test "resume_$way" check_resume $way; done
for way in shm2 tcp3 mirrored2; do run_test "resume_left_out_$way" check_left_out $way mnist topk:0.05; done
run_test resume_left_out_loop check_left_out shm2 loop powersgd:2
for ways in one_shm3 shm2_one shm3_shm2 tcp2_mirrored2; do run_test "resume_queues_$ways" check_streamed $ways; done
run_test stream_ends_shm3 check_stream_ends shm3
alone killed_rank_shm check_killed 1 shm
alone killed_rank_tcp check_killed 2 tcp
alone killed_rank_zero check_killed 0 shm
alone restarts check_restarts
alone preempted check_preempted
hand=(loop --data digits --epochs 4 --batch 3 --json)
alone cut_loop_killed check_cut KILL 137 "${hand[@]}"
alone cut_loop_preempted check_cut TERM 75 "${hand[@]}"
alone cut_softmax_interrupted check_cut INT 0 softmax --data digits --epochs 2 --steps-per-epoch 900 --batch 9 --json
alone cut_gan_preempted check_cut TERM 75 gan --epochs 2 --steps-per-epoch 150 --json --deterministic
plain="--data digits --epochs 1 --steps-per-epoch 3 --json"
alone unlike_batch check_unlike batch "mnist $plain --batch 8" "mnist $plain --batch 9" "rank 1"
alone unlike_model check_unlike model "mnist $plain --batch 8" "autoencoder $plain --batch 8" "rank 1"
alone unlike_seed check_unlike seed "mnist $plain --batch 8 --seed 1" "mnist $plain --batch 8 --seed 2" "rank 1"
alone unlike_rate check_unlike "learning rate" "mnist $plain --lr 0.01" "mnist $plain --lr 0.02" "rank 1"
alone unlike_length check_unlike "number of steps" "mnist $plain" "mnist $plain --steps-per-epoch 2" "rank 1"
for example in softmax mnist tickets loop cifar text resnet autoencoder gan agent encoder finetune sort; do
    for way in one mirrored2 shm2; do run_test "memory_${example}_$way" check_memory "$example" $way; done
done
run_test forecast check_forecast
run_test plan_file check_plan_file
for example in $examples; do run_test "plan_$example" check_plan "$example"; done
for way in one mirrored2 shm2; do
    for example in softmax loop agent queues; do run_test "foretold_${example}_$way" check_foretold $example $way 1; done
    run_test "foretold_gan_$way" check_foretold gan $way 2
done
for workers in 2 3 5; do run_test "share_of_$workers" check_share $workers; done
for engine in shm tcp; do
    alone "slow_rank_$engine" check_slow $engine
    alone "trace_$engine" check_trace ${engine}3 3
done

finish
