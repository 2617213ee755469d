#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (60), starting from its corpus: tools/fuzz.sh BUILD
# What crashes it stays in BUILD; add it to the corpus together with the fix.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build-fuzz}

if [ ! -f "$build/build.ninja" ]; then
    CC=clang meson setup "$build" -Dfuzz=true -Dtests=false -Dexamples=false \
        -Dbuildtype=debugoptimized -Db_sanitize=address,undefined -Db_lundef=false \
        -Dc_args=-fsanitize=fuzzer-no-link > /dev/null
fi
ninja -C "$build" --quiet
found=no
for target in "$build"/tests/fuzz/*_fuzz; do
    [ -x "$target" ] || continue
    found=yes
    name=$(basename "$target")
    mkdir -p "$build/corpus/$name"
    echo "$name"
    corpus=("$build/corpus/$name")
    [ ! -d "tests/fuzz/corpus/$name" ] || corpus+=("tests/fuzz/corpus/$name")
    limits=()
    # What a rank sends early may take a quarter of memory, of which only what comes is touched.
    [ "$name" != fabric_fuzz ] || limits=(-malloc_limit_mb=65536)
    "$target" "${limits[@]}" -max_total_time="${FUZZ_SECONDS:-60}" -timeout=10 -rss_limit_mb=2048 \
        -artifact_prefix="$build/" -print_final_stats=1 "${corpus[@]}"
done
[ $found = yes ] || echo "no fuzz targets yet"
