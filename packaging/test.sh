#!/usr/bin/env bash
# What users get beside the library: installation, manual page, completions, reference, tarball.
# packaging/test.sh BUILD; the last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1
build=$(realpath "${1:-build}")
passed=0 failed=0 skipped=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
made=$build/packaging

# check NAME COMMAND...: one test; what it prints is shown when it fails.
check() {
    local name=$1
    shift
    if "$@" > "$work/log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        tail -n 20 "$work/log"
        echo "packaging: $name failed"
    fi
}

# with PROGRAM NAME COMMAND...: the same where the program is installed.
with() {
    local program=$1
    shift
    if command -v "$program" > /dev/null; then check "$@"; else skipped=$((skipped + 1)); fi
}

every_name_is_documented() {
    nm -D --defined-only "$build/libtutti.so" | awk '{ print $3 }' > "$work/exported"
    [ -s "$work/exported" ] && python3 tools/reference.py include/tutti --check --exported "$work/exported"
}

reference_has_every_name() {
    local name
    while read -r name; do
        case $name in
            tutti__* | *_) ;; # x_: a piece of a macro
            tutti_*) grep -q "id=\"$name\"" "$made"/reference/*.html || { echo "$name is missing" && return 1; } ;;
        esac
    done < "$work/exported"
}

manual_has_every_command() {
    local command
    for command in $("$build/tutti" --help | sed -n 's/^  \([a-z]*\)  *[a-z].*/\1/p' | grep -v '^tutti$'); do
        grep -q "^.SS $command:" "$made/tutti.1" || { echo "$command is missing" && return 1; }
    done
}

manual_has_no_warnings() { [ -z "$(LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$made/tutti.1" 2>&1 > /dev/null)" ]; }

manual_has_the_exit_codes_of_run() {
    grep -q -A 1 '^.B 130$' "$made/tutti.1" && grep -q -A 1 '^.B else$' "$made/tutti.1"
}

# completes EXPECTED WORDS...: bash offers EXPECTED for the last word.
completes() (
    expected=$1
    shift
    # shellcheck disable=SC1091
    . "$made/tutti"
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _tutti
    printf '%s\n' "${COMPREPLY[@]}" | grep -qx -- "$expected"
)

# What the help of an option says of others must not make them options of the command.
no_completion_resumes_run() {
    ! completes --resume tutti run --res && ! grep '^    run)' "$made/_tutti" | grep -q -- '--resume' &&
        ! grep "_from run'" "$made/tutti.fish" | grep -q -- '-l resume'
}

zsh_is_told_whole_descriptions() {
    grep -qF '[where to compute\: cpu\:0]' "$made/_tutti" && grep -qF ':NAME=x.npy:_files' "$made/_tutti" &&
        grep -qF '[dataset=NAME, split=NAME, expect=V]' "$made/_tutti"
}

# Every link of an installed page to a file: the file must be installed too.
links_hold() {
    local page target broken=0
    while IFS=: read -r page target; do
        target=${target#*](}
        target=${target%%[)#]*}
        case $target in *://* | mailto:* | '') continue ;; esac
        [ -e "${page%/*}/$target" ] || { echo "${page#"$1"} links to $target" && broken=1; }
    done < <(grep -roE --include='*.md' '\]\([^)[:space:]]*\)' "$1" &&
        grep -roE --include='*.html' 'href="[^"]*"' "$1" | sed 's/:href="\(.*\)"$/:](\1)/')
    return $broken
}

installs_and_uninstalls() {
    local stage=$work/stage file left
    DESTDIR=$stage meson install -C "$build" --no-rebuild --quiet || return
    cp "$build/meson-logs/install-log.txt" "$work/installed.txt"
    for file in bin/tutti include/tutti/tutti.h include/tutti/tutti.hpp libtutti.a libtutti.so libtutti.so.0 pkgconfig/tutti.pc man1/tutti.1 \
        completions/tutti site-functions/_tutti vendor_completions.d/tutti.fish doc/tutti/README.md \
        doc/tutti/docs/guide.md doc/tutti/reference/index.html; do
        [ -n "$(find "$stage" -path "*/$file")" ] || { echo "$file is not installed" && return 1; }
    done
    links_hold "$stage" || return
    tools/uninstall.sh "$work/installed.txt" || return
    left=$(find "$stage" ! -type d)
    [ -z "$left" ] || { echo "left: $left" && return 1; }
}

# The same bytes twice, and again from what was unpacked, without git; it configures there.
tarball_makes_itself() {
    local one again
    one=$(tools/dist.sh "$work/one") && tar -x -C "$work" -f "$one" || return
    again=$("$work/tutti-$(tools/version.sh)/tools/dist.sh" "$work/again") || return
    cmp "$one" "$again" && cmp "$one" "$(tools/dist.sh "$work/two")" || return
    PATH=$work/no-git:$PATH meson setup -Dtests=false "$work/configured" "$work/tutti-$(tools/version.sh)"
}

command_lines_hold() {
    python3 tests/outside/docs.py . "$work/docs" &&
        python3 tests/outside/commands.py "$work/docs/commands.txt" "$build/tutti" .
}

mkdir "$work/no-git"
printf '#!/bin/sh\nexit 127\n' > "$work/no-git/git"
chmod +x "$work/no-git/git"

check "every public name is documented" every_name_is_documented
check "the reference has every name" reference_has_every_name
if [ -e "$made/tutti.1" ]; then
    check "the manual has every command" manual_has_every_command
    check "the manual has the exit codes of run" manual_has_the_exit_codes_of_run
    with man "the manual reads without warnings" manual_has_no_warnings
    check "bash completes commands" completes train tutti tra
    check "bash completes options" completes --epochs tutti train mnist --ep
    check "bash completes names" completes mnist tutti train mn
    check "bash completes names of trainings to plan" completes mnist tutti plan mn
    check "bash completes files" completes README.md tutti bench infer README
    check "no shell completes what run refuses" no_completion_resumes_run
    check "bash completes values" completes bf16 tutti train mnist --precision b
    check "the completion for bash parses" bash -n "$made/tutti"
    with zsh "the completion for zsh parses" zsh -n "$made/_tutti"
    check "descriptions for zsh" zsh_is_told_whole_descriptions
    with fish "the completion for fish parses" fish -n "$made/tutti.fish"
    check "install and uninstall" installs_and_uninstalls
else
    skipped=$((skipped + 15))
fi
check "the tarball makes itself" tarball_makes_itself
check "command lines of the documentation" command_lines_hold

echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
