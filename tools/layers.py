#!/usr/bin/env python3
"""The layer check: a room uses only rooms on lower floors, and itself.

1. Includes. Public headers (tutti/...) and the generated tables (tables/...) may be included
   everywhere; they themselves include nothing from src/.
2. Symbols. A function or object that a room defines is used on that floor and above only, also
   where a public header declares it. Descriptors are reached through tables, which know no floors.
3. Sub-rooms. Where a room's folders have an order, a file includes headers of its own folder, of
   folders before it, and those that stand in the room itself.
4. Struct tags. A name with tutti_ means one thing.

A test (x_test.c) may use any room."""
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
    ['forecast'],
    ['nn', 'service'],
    ['bridge'],
    ['cli'],
]
FLOOR = {room: number for number, rooms in enumerate(FLOORS, 1) for room in rooms}
# Folders of a room, the lowest first; those of one entry do not know each other.
INSIDE = {
    'comm': ['sim', 'fabric', 'coll', 'compress', 'cost', 'local shm tcp mpi', 'group transport'],
    'parallel': ['spmd', 'collectives', 'pipeline', 'strategies', 'consistency'],
    'exec': ['plan', 'run', 'kernels tape'],
    'service': ['policies', 'store', 'coordinator'],
    'nn': ['model', 'losses', 'metrics', 'optimizers', 'layers', 'training',
           'callbacks quantize generate'],
}
STOREY = {f'{room}/{folder}': number for room, entries in INSIDE.items()
          for number, entry in enumerate(entries, 1) for folder in entry.split()}
# What is not mended yet: a file, and the header above it that it includes.
KNOWN = {
    ('nn/model/model_strategy.c', 'nn/training/trainer.h'), # whether a fit is under way
    ('nn/model/weights.c', 'nn/training/trainer.h'),        # losses of outputs that come with weights
}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.M)
C_HEADERS = {'stdarg.h', 'stdbool.h', 'stddef.h', 'stdint.h', 'stdio.h'}
NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)
# At the beginning of a line: a function with its body, an object with its value.
DEFINED = re.compile(r'^(?!static\b|typedef\b|extern\b)[A-Za-z_][^;={}()#\n]*?\(?\b(tutti_\w+)\b\)?'
                     r'(?:\((?:[^;{}()]|\([^;{}()]*\))*\)\n\{|[ \t]*(?:\[[^\]\n]*\])?(?: =|;))', re.M)
USED = re.compile(r'(?<!struct )(?<!enum )\btutti_\w+')
TYPE = re.compile(r'\}[ \t]*(tutti_\w+);|\b(?:struct|union|enum)\s+(tutti_\w+)')
TAG = re.compile(r'\b(?:struct|union|enum)\s+(tutti_\w+)\s*\{')


def sources(top):
    for folder, children, files in os.walk(top):
        children.sort()
        for name in sorted(files):
            if name.endswith(('.c', '.h')):
                path = os.path.join(folder, name)
                with open(path, encoding='utf-8') as file:
                    yield path, file.read()


def line_of(text, place):
    return text.count('\n', 0, place) + 1


def includes(text):
    for match in INCLUDE.finditer(text):
        yield line_of(text, match.start()), match.group(1), match.group(2)


def folder_of(name):
    """'comm/tcp/pairs.h' -> 'comm/tcp', 'comm/comm.h' -> 'comm'"""
    return '/'.join(name.split('/')[:-1][:2])


def fault_inside(path, bracket, name):
    """What is wrong with an include in a room, or None."""
    source = path.split('/', 1)[1]
    room = source.split('/')[0]
    if bracket == '<':
        return f'write "{name}"' if name.startswith('tutti/') else None
    target = name.split('/')[0]
    if target in ('tutti', 'tables'):
        return None
    if target not in FLOOR:
        return f'"{name}" is in no room; write "room/name.h"'
    if target == room:
        here, there = STOREY.get(folder_of(source)), STOREY.get(folder_of(name))
        if not here or not there or folder_of(source) == folder_of(name) or there < here:
            return None
        if (source, name) in KNOWN:
            return None
        return (f'{folder_of(source)}/ includes "{name}", which stands beside or above it: '
                f'{" < ".join(INSIDE[room])}')
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


def blank(text):
    """Without comments, texts and lines of the preprocessor; lines stay where they are."""
    return NOISE.sub(lambda m: '\n' * m.group().count('\n') or ' ', text)


def faults_of_symbols(files):
    """`files`: path -> text without comments."""
    homes = {}
    for path, text in files.items():
        if path.endswith('.c'):
            for name in DEFINED.findall(text):
                homes.setdefault(name, set()).add(path.split('/')[1])
    for text in files.values(): # tutti_identity is a struct of cluster and an operator's function
        for names in TYPE.findall(text):
            homes.pop(names[0] or names[1], None)
    for path, text in files.items():
        room = path.split('/')[1]
        told = set()
        for match in USED.finditer(text):
            name = match.group()
            rooms = homes.get(name)
            if not rooms or name in told or room in rooms:
                continue
            above = [r for r in rooms if FLOOR[r] >= FLOOR[room]]
            if len(above) == len(rooms):
                told.add(name)
                yield (f'{path}:{line_of(text, match.start())}: {room} (floor {FLOOR[room]}) uses '
                       f'{name} of {above[0]} (floor {FLOOR[above[0]]})')


def faults_of_tags(files):
    homes = {}
    for path, text in files.items():
        for name in TAG.findall(text):
            homes.setdefault(name, []).append(path)
    for name, paths in sorted(homes.items()):
        if len(paths) > 1:
            yield f'{paths[1]}:1: {name} means something else in {paths[0]}; two names'


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..'))
    faults, files, used = [], {}, set()
    for path, text in sources('src'):
        room = path.split(os.sep)[1]
        if room not in FLOOR:
            faults.append(f'{path}:1: {room} is no room')
        elif not path.endswith('_test.c'):
            faults += [f'{path}:{line}: {fault}' for line, bracket, name in includes(text)
                       if (fault := fault_inside(path, bracket, name))]
            files[path] = blank(text)
            used |= {name for _, _, name in includes(text)}
    for path, text in sources('include'):
        faults += [f'{path}:{line}: {fault}' for line, bracket, name in includes(text)
                   if (fault := fault_public(bracket, name))]
    for path in [path for path in files if path.endswith('.h') and path[4:] not in used]:
        del files[path] # a header for tests
    faults += faults_of_symbols(files)
    faults += faults_of_tags(files)
    if faults:
        sys.exit('\n'.join(faults))


if __name__ == '__main__':
    main()
