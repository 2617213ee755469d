#!/usr/bin/env python3
"""The orphan check: every C file of the rooms and benchmarks is named in a meson.build, its
folder's or one above. A file that is named nowhere is not compiled, and its descriptor in no table,
without a word from the build."""
import os
import re
import sys

TOPS = ['src', 'bench']
NAME = re.compile(r"'([\w./-]+\.c)'")


def named_in(folder):
    """Paths that a folder's meson.build names."""
    path = os.path.join(folder, 'meson.build')
    if not os.path.exists(path):
        return set()
    with open(path, encoding='utf-8') as file:
        return {os.path.normpath(os.path.join(folder, name)) for name in NAME.findall(file.read())}


def main():
    os.chdir(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    named, there = named_in('.'), []
    for top in TOPS:
        for folder, children, files in os.walk(top):
            if folder == os.path.join('bench', 'peers'):
                continue  # built by those who have the peers
            children.sort()
            named |= named_in(folder)
            there += [os.path.join(folder, name) for name in sorted(files) if name.endswith('.c')]
    orphans = [path for path in there if path not in named]
    for path in orphans:
        print(f"{path}: no meson.build names it, so it is not compiled; add '"
              f"{os.path.basename(path)}' to the one of its folder or above")
    return 1 if orphans else 0


if __name__ == '__main__':
    sys.exit(main())
