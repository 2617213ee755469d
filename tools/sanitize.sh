#!/usr/bin/env bash
# The unit tests under a sanitizer: tools/sanitize.sh address|undefined|thread BUILD [FILTER...]
set -eu
cd "$(dirname "$0")/.."
sanitizer=$1
build=$2
shift 2

if [ ! -f "$build/build.ninja" ]; then
    meson setup "$build" -Dexamples=false -Dbuildtype=debugoptimized -Db_sanitize="$sanitizer" \
        -Db_lundef=false -Dc_args=-fno-sanitize-recover=all > /dev/null
fi
ninja -C "$build" --quiet tutti_tests
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}

# With AddressSanitizer compilers put vectors of 64 bytes on the stack where they are not aligned, and
# AVX-512 then ends in a SEGV that is nobody's mistake.
if [ "$sanitizer" = address ] && [ "$(uname -m)" = x86_64 ]; then
    export TUTTI_ISA=${TUTTI_ISA:-avx2}
fi

# Looking for leaks takes seconds at the end of each process on some machines (aarch64), so that is
# done with those of a file in one, after every test has run on its own.
# Sizes that no machine has must fail as they do without the sanitizer.
ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=1:allocator_may_return_null=1 \
    "$build/tutti_tests" --timeout 600 "$@"
if [ "$sanitizer" = address ]; then
    echo "again, the tests of a file in one process, for leaks"
    ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 \
        "$build/tutti_tests" --together --timeout 1800 "$@"
fi
