#!/usr/bin/env bash
# Sources joined for `make demo` (tools/join.py) compile, with clang too where it is installed:
# tests/joined.sh. Only reads them.
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

compile_joined "$folder/cc" "${CC:-cc}" || exit 1
! command -v clang > /dev/null || compile_joined "$folder/clang" clang
