#!/usr/bin/env bash
# Builds for the other kind of CPU and runs unit tests under qemu: tools/cross/test.sh BUILD [FILTER...]
#
# Numbers are tested with everything that the emulator's CPU has, and with the least that the library
# needs. Tests of time, of signals and of limits of memory are not run by default: there qemu is
# tested, not the library. Installs what is missing, as packages of a foreign architecture (Debian, root).
set -eu
cd "$(dirname "$0")/../.."
build=$1
shift

case $(uname -m) in
    x86_64) cpu=aarch64 cpus=(max cortex-a76) ;;
    aarch64) cpu=x86_64 cpus=(max Haswell) ;;
    *)
        echo "only for x86_64 and aarch64; this is $(uname -m)" >&2
        exit 1
        ;;
esac
tools/deps.sh --quiet cross

if [ ! -f "$build/build.ninja" ]; then
    meson setup "$build" --cross-file "tools/cross/$cpu.ini" -Dexamples=false > /dev/null
fi
ninja -C "$build" --quiet tutti_tests

[ $# -gt 0 ] || set -- device/cpu/ ops/ tensor/
status=0
for model in "${cpus[@]}"; do
    echo "$cpu, qemu's $model"
    # Emulated processes know the folders of their own CPU only by these names.
    QEMU_CPU=$model QEMU_LD_PREFIX=/usr/$cpu-linux-gnu "qemu-$cpu" "$build/tutti_tests" --timeout 900 "$@" || status=1
done
exit $status
