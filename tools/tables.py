#!/usr/bin/env python3
"""Makes the tables of the one-place rule.

A kind of thing (an operator, a pass, ...) has a table when the header that defines the type says
so in a comment:

    tables: tutti_op

Every descriptor of that kind in the sources joins the table, sorted by name, with NULL after the
last. A descriptor is a definition that begins in the first column:

    const tutti_op tutti_op_add = {

In a file compiled once for each instruction set the name is TUTTI_ISA_NAME(tutti_kernel_add).
What looks like one and begins otherwise is a mistake, and so are two of a kind that say the same of
what they are known by: `.name`, and `.version`, `.op`, `.target` where they say so.

Given --output DIR/tables.c this writes
    DIR/tables.c      the tables: `const tutti_op *const tutti__op_table[]`
    DIR/tables.h      a declaration of every table and every descriptor
    DIR/tables/op.h   a declaration of one table; rooms include this one

With --tests the tool makes the table of the unit tests instead, from lines `TUTTI_TEST(name)` and
`TUTTI_TEST_ALONE(name)`. Every machine has every test: none stands between #if and #endif.
"""
import argparse
import os
import re
import sys

KIND = re.compile(r'^(?:/\*| \*)\s+tables: (tutti_\w+)(?: \*/)?$', re.M)
DESCRIPTOR = re.compile(r'^const (tutti_\w+) (?:(\w+)|TUTTI_ISA_NAME\((\w+)\)) = \{', re.M)
ALIKE = re.compile(r'\b(tutti_\w+)\s+(?:tutti_\w+|TUTTI_ISA_NAME\(\w+\))\s*=\s*\{')
KNOWN_BY = re.compile(r'^    \.(name|version|op|target) = ("[^"]*"|\d+),', re.M)
TEST = re.compile(r'^[ \t]*TUTTI_TEST(_ALONE)?\((\w+)\)', re.M)
CONDITION = re.compile(r'^[ \t]*#[ \t]*(if|endif)', re.M)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MADE = '/* Made by tools/tables.py. */\n'


class Mistake(Exception):
    pass


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def is_conditional(match):
    """Whether only some machines compile what was found."""
    words = CONDITION.findall(match.string, 0, match.start())
    return words.count('if') > words.count('endif')


def find(pattern, path):
    """Every match of a pattern in a file, with the place where it stands."""
    text = read(path)
    for match in pattern.finditer(text):
        line = text.count('\n', 0, match.start()) + 1
        yield match, f'{os.path.relpath(path, ROOT)}:{line}'


def walk_headers(folders, skipped):
    """Header files below the folders, and the folders themselves, in a fixed order."""
    headers, visited = [], []
    for top in folders:
        for folder, children, files in os.walk(top):
            children[:] = sorted(c for c in children if os.path.join(folder, c) not in skipped)
            visited.append(folder)
            headers += [os.path.join(folder, f) for f in sorted(files) if f.endswith('.h')]
    return headers, visited


def find_kinds(headers):
    """kind -> header that defines it"""
    kinds, places = {}, {}
    for header in headers:
        for match, place in find(KIND, header):
            kind = match.group(1)
            if kind in kinds:
                raise Mistake(f'{place}: {kind} has a table from {places[kind]} already')
            kinds[kind], places[kind] = header, place
    return kinds


def refuse_lost(kinds, path):
    """A descriptor that DESCRIPTOR does not see would be in no table."""
    seen = {place for _, place in find(DESCRIPTOR, path)}
    for match, place in find(ALIKE, path):
        if match.group(1) in kinds and place not in seen:
            raise Mistake(f'{place}: a descriptor begins in the first column, and in one line: '
                          f'const {match.group(1)} NAME = {{')


def known_by(match):
    """What users know a descriptor by, as far as it says so in words; None: by nothing."""
    body = match.string[match.end():].split('\n};', 1)[0]
    said = dict(KNOWN_BY.findall(body))
    return tuple(sorted(said.items())) if 'name' in said else None


def find_descriptors(kinds, sources, sets):
    """kind -> sorted names; `sets`: (sources, instruction sets they are compiled for)"""
    found, places, known = {kind: [] for kind in kinds}, {}, {}
    every_isa_source = list(dict.fromkeys(path for isa_sources, _ in sets for path in isa_sources))
    for path in sources + every_isa_source:
        refuse_lost(kinds, path)
        for match, place in find(DESCRIPTOR, path):
            kind, plain, isa_name = match.groups()
            if kind not in kinds:
                raise Mistake(f'{place}: no header says `tables: {kind}`, so this descriptor would '
                              'be lost (if it is not one, make it static)')
            if bool(isa_name) != (path in every_isa_source):
                raise Mistake(f'{place}: files in tutti_isa_sources, and only they, write '
                              'TUTTI_ISA_NAME(name)')
            same = (kind, known_by(match))
            if same[1] and same in known:
                raise Mistake(f'{place}: {dict(same[1])["name"]} is the name of the {noun(kind)} '
                              f'at {known[same]} too')
            known[same] = place
            own = [isa for isa_sources, isas in sets if path in isa_sources for isa in isas]
            names = [f'{isa_name}_{isa}' for isa in own] if isa_name else [plain]
            for name in names:
                if name in places:
                    raise Mistake(f'{place}: {name} is defined at {places[name]} too')
                places[name] = place
            found[kind] += names
    return {kind: sorted(names) for kind, names in found.items()}


def include_path(header):
    """The header's name as sources write it."""
    for top in ('include', 'src'):
        relative = os.path.relpath(header, os.path.join(ROOT, top))
        if not relative.startswith('..'):
            return relative
    return os.path.relpath(header, ROOT)


def noun(kind):
    return kind.removeprefix('tutti_')


def kind_text(kind, header):
    """tables/op.h. It never names a descriptor, so it stays as it is when one is added."""
    guard = f'TUTTI_TABLES_{noun(kind).upper()}_H'
    return (f'{MADE}#ifndef {guard}\n#define {guard}\n\n#include "{header}"\n\n'
            f'/* Sorted by name; NULL after the last. */\n'
            f'extern const {kind} *const tutti__{noun(kind)}_table[];\n\n#endif\n')


def declarations_text(found, stem):
    guard = f'TUTTI_{stem.upper()}_H'
    out = [f'{MADE}#ifndef {guard}', f'#define {guard}', '']
    out += [f'#include "tables/{noun(kind)}.h"' for kind in sorted(found)]
    for kind in sorted(kind for kind in found if found[kind]):
        out += [''] + [f'extern const {kind} {name};' for name in found[kind]]
    return '\n'.join(out + ['', '#endif']) + '\n'


def tables_text(found, stem):
    out = [f'{MADE}#include "{stem}.h"', '', '#include <stddef.h>']
    for kind in sorted(found):
        out += ['', f'const {kind} *const tutti__{noun(kind)}_table[] = {{']
        out += [f'    &{name},' for name in found[kind]]
        out += ['    NULL,', '};']
    return '\n'.join(out) + '\n'


def write_tables(output, kinds, found):
    folder = os.path.dirname(output)
    stem = os.path.basename(output).removesuffix('.c')
    os.makedirs(os.path.join(folder, 'tables'), exist_ok=True)
    for kind, header in kinds.items():
        write_if_changed(os.path.join(folder, 'tables', noun(kind) + '.h'),
                         kind_text(kind, include_path(header)))
    write_if_changed(os.path.join(folder, stem + '.h'), declarations_text(found, stem))
    write_if_changed(output, tables_text(found, stem))


def tests_text(paths):
    places, rows = {}, []
    for path in paths:
        for match, place in find(TEST, path):
            alone, name = match.groups()
            if not match.group().startswith('TUTTI_TEST'):
                raise Mistake(f'{place}: a test begins in the first column')
            if is_conditional(match):
                raise Mistake(f'{place}: a test stands on every machine; what differs is inside it')
            if name in places:
                raise Mistake(f'{place}: the test {name} is at {places[name]} too')
            places[name] = place
            file = os.path.relpath(path, os.path.join(ROOT, 'src'))
            rows.append((file.removesuffix('_test.c'), name, 'true' if alone else 'false'))
    out = [MADE + '#include "base/test.h"', '']
    out += [f'void tutti_test_{name}(void);' for _, name, _ in rows]
    out.append('const tutti_test tutti__test_table[] = {')
    out += [f'    {{"{file}", "{name}", tutti_test_{name}, {alone}}},' for file, name, alone in rows]
    out += ['    {0},', '};']
    return '\n'.join(out) + '\n'


def write_if_changed(path, text):
    if not os.path.exists(path) or read(path) != text:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)


def write_depfile(path, output, needed):
    escaped = ' '.join(name.replace(' ', '\\ ') for name in needed)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(f'{output}: {escaped}\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--output', required=True)
    parser.add_argument('--depfile')
    parser.add_argument('--headers', nargs='*', default=[], help='folders, seen from the root')
    parser.add_argument('--except', nargs='*', default=[], dest='skipped')
    parser.add_argument('--sources', nargs='*', default=[])
    parser.add_argument('--isa-sources', nargs='*', default=[])
    parser.add_argument('--isa', nargs='*', default=[])
    parser.add_argument('--stream-sources', nargs='*', default=[])
    parser.add_argument('--stream-isa', nargs='*', default=[])
    parser.add_argument('--wide-sources', nargs='*', default=[])
    parser.add_argument('--wide-isa', nargs='*', default=[])
    parser.add_argument('--bf16-sources', nargs='*', default=[])
    parser.add_argument('--bf16-isa', nargs='*', default=[])
    parser.add_argument('--int8-sources', nargs='*', default=[])
    parser.add_argument('--int8-isa', nargs='*', default=[])
    parser.add_argument('--tests', nargs='*')
    args = parser.parse_args()

    if args.tests is not None:
        write_if_changed(args.output, tests_text(args.tests))
        return
    headers, folders = walk_headers([os.path.join(ROOT, f) for f in args.headers],
                                    {os.path.join(ROOT, f) for f in args.skipped})
    kinds = find_kinds(headers)
    found = find_descriptors(kinds, args.sources, [(args.isa_sources, args.isa),
                                                   (args.stream_sources, args.stream_isa),
                                                   (args.wide_sources, args.wide_isa),
                                                   (args.bf16_sources, args.bf16_isa),
                                                   (args.int8_sources, args.int8_isa)])
    write_tables(args.output, kinds, found)
    if args.depfile:
        write_depfile(args.depfile, args.output, headers + folders)


if __name__ == '__main__':
    try:
        main()
    except Mistake as mistake:
        sys.exit(f'tables.py: {mistake}')
