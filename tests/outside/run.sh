#!/usr/bin/env bash
# Installs the build into a staging folder and builds the programs here against it, with nothing
# but pkg-config to find it, once with the shared and once with the static library.
set -eu
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build}")
stage=$build/stage

rm -rf "$stage"
DESTDIR=$stage meson install -C "$build" --no-rebuild --quiet
file=$(find "$stage" -name tutti.pc)
export PKG_CONFIG_PATH=${file%/*} PKG_CONFIG_SYSROOT_DIR=$stage
library=${file%/pkgconfig/tutti.pc}
LD_LIBRARY_PATH=$library LIBRARY=$library make -s -C tests/outside OUT="$build/outside" run
