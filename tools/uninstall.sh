#!/usr/bin/env bash
# Removes what `make install` installed: tools/uninstall.sh LIST, the list that it left in the build
# folder. Folders go when they are empty and belong to nobody else.
set -eu
list=$1
[ -f "$list" ] || {
    echo "$list is missing: nothing was installed from this build by 'make install'" >&2
    exit 1
}

paths() { grep -v '^#' "$list"; }

paths | while IFS= read -r path; do
    [ -d "$path" ] && [ ! -L "$path" ] || rm -f "$path"
done
# Deepest first. Folders of the system hold more than ours, so rmdir leaves them.
paths | while IFS= read -r path; do
    folder=$([ -d "$path" ] && echo "$path" || dirname "$path")
    while [ "$folder" != / ] && [ "$folder" != . ]; do
        echo "$folder"
        folder=$(dirname "$folder")
    done
done | sort -u -r | while IFS= read -r folder; do
    case $folder in
        */tutti | */tutti/* | */man1 | */completions | */bash-completion | */site-functions | */vendor_completions.d | */fish | */zsh | */pkgconfig)
            rmdir "$folder" 2> /dev/null || true
            ;;
    esac
done
rm -f "$list"
