#!/usr/bin/env python3
"""The layer check: a room includes only rooms on lower floors, and itself.

Public headers (tutti/...) and the generated tables (tables/...) may be included everywhere; they
themselves include nothing from src/. A test (x_test.c) may include any room."""
import os
import re
import sys

FLOORS = [
    ['base'],
    ['tensor', 'cluster'],
    ['graph', 'comm', 'io'],
    ['ops', 'data', 'state'],
    ['program'],
    ['passes', 'device'],
    ['parallel'],
    ['exec'],
    ['nn', 'service'],
    ['bridge'],
    ['cli'],
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS, 1) for room in rooms}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]')
C_HEADERS = {'stdarg.h', 'stdbool.h', 'stddef.h', 'stdint.h', 'stdio.h'}


def sources(top):
    for folder, children, files in os.walk(top):
        children.sort()
        for name in sorted(files):
            if name.endswith(('.c', '.h')):
                yield os.path.join(folder, name)


def includes(path):
    with open(path, encoding='utf-8') as file:
        for number, line in enumerate(file, 1):
            match = INCLUDE.match(line)
            if match:
                yield number, match.group(1), match.group(2)


def fault_inside(room, bracket, name):
    """What is wrong with an include in a room, or None."""
    if bracket == '<':
        return f'write "{name}"' if name.startswith('tutti/') else None
    target = name.split('/')[0]
    if target in ('tutti', 'tables', room):
        return None
    if target not in FLOOR:
        return f'"{name}" is in no room; write "room/name.h"'
    if FLOOR[target] < FLOOR[room]:
        return None
    way = 'sideways' if FLOOR[target] == FLOOR[room] else 'up'
    return (f'{room} (floor {FLOOR[room]}) includes "{name}" '
            f'(floor {FLOOR[target]}): the arrow runs {way}')


def fault_public(bracket, name):
    """The same for a header that users see: the C library and its own kind, nothing else."""
    if name.startswith('tutti/') if bracket == '"' else name in C_HEADERS:
        return None
    return f'a public header includes {name}'


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    faults = []
    for path in sources('src'):
        room = path.split(os.sep)[1]
        if room not in FLOOR:
            faults.append(f'{path}:1: {room} is no room')
        elif not path.endswith('_test.c'):
            faults += [f'{path}:{line}: {fault}' for line, bracket, name in includes(path)
                       if (fault := fault_inside(room, bracket, name))]
    for path in sources('include'):
        faults += [f'{path}:{line}: {fault}' for line, bracket, name in includes(path)
                   if (fault := fault_public(bracket, name))]
    if faults:
        sys.exit('\n'.join(faults))


if __name__ == '__main__':
    main()
