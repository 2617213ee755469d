#!/bin/sh
# The library's version, read from the public header, which is the one place that holds it.
cd "$(dirname "$0")/.." || exit 1
sed -n 's/^#define TUTTI_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' include/tutti/base.h |
    paste -s -d .
