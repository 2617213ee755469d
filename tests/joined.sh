#!/usr/bin/env bash
# Sources joined for `make demo` (tools/join.py) compile: tests/joined.sh. Only reads them.
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
{ meson setup "$build" -Dinstruction_sets=native && ninja -C "$build" tables.h command_tables.h; } > "$build/log" 2>&1 || {
    cat "$build/log"
    exit 1
}
list_commands() {
    python3 - "$build" <<'PYTHON'
import json, sys
for command in json.load(open(sys.argv[1] + '/compile_commands.json')):
    if '/joined/' in command['file']:
        print(command['command'], '-fsyntax-only', end='\0')
PYTHON
}
[ "$(list_commands | tr -cd '\0' | wc -c)" -gt 50 ] || {
    echo "no joined sources"
    exit 1
}
cd "$build" && list_commands | xargs -0 -P "$(nproc)" -n 1 sh -c 'eval "$0"'
