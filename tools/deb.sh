#!/usr/bin/env bash
# Builds the Debian packages from the release tarball, and lets lintian judge them: tools/deb.sh FOLDER
# Tests are run by `make test`; DEB_BUILD_OPTIONS= runs them in the build too.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/.."
version=$(tools/version.sh)
for needed in dpkg-buildpackage dh; do
    command -v $needed > /dev/null || {
        echo "$needed is missing; install dpkg-dev and debhelper, lintian too if you can" >&2
        exit 1
    }
done
[ "$(sed -n '1s/^tutti (\(.*\)-[^-]*) .*/\1/p' packaging/debian/changelog)" = "$version" ] || {
    echo "packaging/debian/changelog is not about version $version; add an entry" >&2
    exit 1
}

rm -rf "$folder"
tarball=$(tools/dist.sh "$folder")
mv "$tarball" "$folder/tutti_$version.orig.tar.gz"
tar -x -f "$folder/tutti_$version.orig.tar.gz" -C "$folder"
cp -r packaging/debian "$folder/tutti-$version/debian"
log=$folder/build.log
(cd "$folder/tutti-$version" &&
    DEB_BUILD_OPTIONS=${DEB_BUILD_OPTIONS-nocheck} dpkg-buildpackage --unsigned-source --unsigned-changes) \
    > "$log" 2>&1 || {
    tail -n 40 "$log"
    echo "the packages were not built; all of it is in $log" >&2
    exit 1
}
if command -v lintian > /dev/null; then
    lintian --allow-root --fail-on error,warning "$folder"/*.changes
else
    echo "lintian is not installed: nobody has judged the packages" >&2
fi
ls "$folder"/*.deb
