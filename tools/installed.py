#!/usr/bin/env python3
"""Prints what of a build is installed, as ninja's targets: installed.py BUILD. Tests and examples
are not, so that `make install` need not compile them."""
import json
import os
import subprocess
import sys

build = os.path.realpath(sys.argv[1])
made = subprocess.run(['meson', 'introspect', '--targets', build], check=True, capture_output=True)
for target in json.loads(made.stdout):
    if target['installed']:
        print(*(os.path.relpath(path, build) for path in target['filename']))
