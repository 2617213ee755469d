#!/usr/bin/env bash
# Sources joined for `make demo` (tools/join.py) compile, with clang too where it is installed, and
# `make install` after it keeps what is compiled: tests/joined.sh. Only reads them.
set -u
cd "$(dirname "$0")/.." || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

list_commands() {
    python3 - "$1" <<'PYTHON'
import json, os, sys
for command in json.load(open(sys.argv[1] + '/compile_commands.json')):
    if os.path.basename(command['file']).startswith('joined_'):
        print(command['command'], '-fsyntax-only', end='\0')
PYTHON
}

# compile_joined BUILD COMPILER
compile_joined() {
    { CC=$2 meson setup "$1" -Dinstruction_sets=native && ninja -C "$1" tables.h command_tables.h; } > "$1.log" 2>&1 || {
        cat "$1.log"
        return 1
    }
    [ "$(list_commands "$1" | tr -cd '\0' | wc -c)" -gt 50 ] || {
        echo "no joined sources"
        return 1
    }
    list_commands "$1" | (cd "$1" && xargs -0 -P "$(nproc)" -n 1 sh -c 'eval "$0"')
}

# How the compiler makes each object of what is installed.
list_objects() {
    ninja -C "$1" -t commands $(tools/installed.py "$1") | grep -- ' -c ' | sort
}

# keep_objects BUILD: a build that `make demo` has set up, and then `make install`.
keep_objects() {
    touch "$1/native"
    list_objects "$1" > "$1.demo"
    make --no-print-directory configure-install BUILD="$1" || return 1
    list_objects "$1" > "$1.install"
    [ "$(wc -l < "$1.install")" -gt 50 ] && [ -z "$(comm -23 "$1.demo" "$1.install")" ] || {
        echo "make install compiles anew what make demo has compiled:"
        comm -23 "$1.demo" "$1.install" | sed 's/.* -o \([^ ]*\) .*/  \1/' | head -n 5
        return 1
    }
}

compile_joined "$folder/cc" "${CC:-cc}" && keep_objects "$folder/cc" || exit 1
! command -v clang > /dev/null || compile_joined "$folder/clang" clang
