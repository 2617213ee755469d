#!/usr/bin/env bash
# Checks without running anything: tools/check.sh all|format|format-fix|layers|cppcheck|clang|tidy
set -u
cd "$(dirname "$0")/.." || exit 1
what=${1:-all}
build=build-clang

sources() {
    local folder
    for folder in include src tests examples bench; do
        [ ! -d $folder ] || find $folder -name '*.[ch]'
    done | LC_ALL=C sort
}

format() { sources | xargs clang-format --dry-run --Werror; }
format_fix() { sources | xargs clang-format -i; }
layers() { python3 tools/layers.py && python3 tools/orphans.py; }

# Left out: what cppcheck misjudges: compound literals (also ones that hold what a function then
# gives away), outputs that a failing call leaves alone, memory lent for the length of a call, one
# vector as an array of one, vectors of integers (which wrap). The sanitizers watch leaks
# and NULL, clang's analyzer watches what is not initialised.
cppcheck_sources() {
    cppcheck --quiet --error-exitcode=1 --inline-suppr --std=c11 -j "$(nproc)" \
        --enable=warning,performance,portability -Iinclude -Isrc -I$build \
        -D__linux__ -D__GNUC__=12 -DTUTTI_ISA=base -U__has_feature \
        --suppress=missingInclude --suppress=unknownMacro --suppress=invalidPointerCast \
        --suppress=memleakOnRealloc --suppress=nullPointerRedundantCheck \
        --suppress=uninitvar --suppress=legacyUninitvar --suppress=uninitStructMember \
        --suppress=autoVariables --suppress=objectIndex --suppress=returnDanglingLifetime \
        --suppress=memleak:src/state/queues_save.c --suppress=nullPointer:src/exec/run/control_test.c \
        --suppress=internalAstError --suppress=pointerSize --suppress=zerodivcond \
        --suppress=integerOverflow:src/device/cpu/tile/math.h src
}

# clang builds without a warning, and clang-tidy needs what that build generates.
clang_build() {
    [ -f $build/build.ninja ] || CC=clang meson setup $build > /dev/null || return
    ninja -C $build --quiet
}

# tidy_sources EXPRESSION... -- OPTION...: runs clang-tidy on what `find src` finds by the expression.
tidy_sources() {
    local expression=()
    while [ "$1" != -- ]; do
        expression+=("$1")
        shift
    done
    shift
    find src -name '*.c' "${expression[@]}" | LC_ALL=C sort |
        xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p $build "$@" 2> /dev/null
}

# Tests go without the analyzer, which follows what happens after a failed check; sanitizers run them.
tidy() {
    clang_build || return
    local tests=(-name '*_test.c' -o -name 'testing*.c' -o -name '*_check.c')
    tidy_sources ! '(' "${tests[@]}" ')' -- &&
        tidy_sources '(' "${tests[@]}" ')' -- --checks='-clang-analyzer-*'
}

run() {
    echo "$1"
    "$2" || failed="$failed $1"
}

failed=
case $what in
    all)
        run layers layers
        run format format
        run cppcheck cppcheck_sources
        run clang clang_build
        run clang-tidy tidy
        ;;
    format) run format format ;;
    format-fix) run format format_fix ;;
    layers) run layers layers ;;
    cppcheck) run cppcheck cppcheck_sources ;;
    clang) run clang clang_build ;;
    tidy) run clang-tidy tidy ;;
    *)
        echo "unknown check '$what'" >&2
        exit 2
        ;;
esac
[ -z "$failed" ] || {
    echo "failed:$failed"
    exit 1
}
