#!/usr/bin/env bash
# Writes the release tarball: tools/dist.sh FOLDER, prints its path. The same sources give the same
# bytes. Inside a git checkout it holds what git tracks or would add, elsewhere (in an unpacked
# tarball) everything but what was built; so a tarball makes itself again.
set -eu
export LC_ALL=C TZ=UTC
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
name=tutti-$(tools/version.sh)

files() {
    if [ -e .git ]; then
        git ls-files -co --exclude-standard --deduplicate -z | while IFS= read -r -d '' file; do
            [ ! -e "$file" ] || printf '%s\0' "$file"
        done
    else
        find . -type f ! -path './build*/*' ! -path './.cache/*' ! -path '*/__pycache__/*' ! -path './debian/*' \
            ! -path './.pc/*' ! -path './obj-*/*' ! -name '*.o' ! -name '*.swp' ! -name '*~' -printf '%P\0'
    fi | sort -z
}

# When the sources were made: as told, the newest commit, or what the tarball says of its files.
if [ -n "${SOURCE_DATE_EPOCH:-}" ]; then
    made=$SOURCE_DATE_EPOCH
elif [ -e .git ]; then
    made=$(git log -1 --format=%ct)
else
    made=$(stat -c %Y CHANGELOG.md)
fi

files | tar --create --format=ustar --null --no-recursion --files-from=- --mtime="@$made" --owner=0 --group=0 \
    --numeric-owner --mode=u+rwX,go+rX,go-w --transform="s,^,$name/," | gzip -9 -n > "$folder/$name.tar.gz.part"
mv "$folder/$name.tar.gz.part" "$folder/$name.tar.gz"
echo "$folder/$name.tar.gz"
