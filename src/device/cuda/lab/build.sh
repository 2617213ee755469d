#!/usr/bin/env bash
# Builds the laboratory with nothing but a C compiler, bash and Python: src/device/cuda and the ground
# floor, no Meson; without the kernels by operator, which need graph and operators.
# Usage: src/device/cuda/lab/build.sh [FOLDER]   makes FOLDER/lab
set -eu
cd "$(dirname "$0")/../../../.."
folder=${1:-build-lab}
cc=${CC:-gcc}
mkdir -p "$folder/base"
echo '#define TUTTI_MODULE_FOLDER ""' > "$folder/base/folders.h"
python3 tools/embed.py --output "$folder/cuda_texts.c" src/device/cuda/kernels/*.cu src/device/cuda/kernels/*.cuh
sources=$(find src/base src/device/cuda -name '*.c' | sort |
    grep -v -e '_test\.c$' -e declarations_check -e base/test_ -e cuda/module -e cuda/host -e cuda/front \
        -e cuda/operators/ -e lab/operators -e lab/fused -e lab/emulated/)
python3 tools/tables.py --output "$folder/cuda_tables.c" --depfile "$folder/tables.d" \
    --headers src/device/cuda --sources $(ls src/device/cuda/kernels/*.c)
mkdir -p "$folder/objects"
export folder cc flags="-std=gnu17 -O2 -g -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers \
-D_DEFAULT_SOURCE -Iinclude -Isrc -I$folder"
compile_one() {
    object=$folder/objects/$(echo "$1" | tr '/' '_').o
    [ "$object" -nt "$1" ] && [ -z "$(find src/device/cuda -name '*.h' -newer "$object")" ] ||
        $cc $flags -c "$1" -o "$object"
}
export -f compile_one
printf '%s\n' $sources "$folder/cuda_texts.c" "$folder/cuda_tables.c" |
    xargs -P "${JOBS:-$(nproc)}" -I{} bash -c 'compile_one {}'
$cc -o "$folder/lab" "$folder"/objects/*.o -lpthread -ldl -lm -lz
