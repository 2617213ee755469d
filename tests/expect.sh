# expect.sh: what tests in the shell expect of files, exit codes and times; each calls `fail` of who reads this.
# shellcheck shell=bash
# has FILE TEXT [COUNT]: the text stands there, COUNT times if given.
has() {
    local count
    count=$(grep -c -- "$2" "$1")
    if [ $# -gt 2 ]; then
        [ "$count" -eq "$3" ] || fail "'$2' stands $count times in $1, not $3 times"
    else
        [ "$count" -gt 0 ] || fail "'$2' does not stand in $1"
    fi
}
lacks() { ! grep -q -- "$2" "$1" || fail "'$2' stands in $1"; }
code() { [ "$1" -eq "$2" ] || fail "exit code $1, not $2"; }
# under LIMIT SECONDS
under() { awk -v a="$2" -v b="$1" 'BEGIN { exit !(a <= b) }' || fail "$2 s, more than $1 s"; }
