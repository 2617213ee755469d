#!/usr/bin/env python3
"""The list of operators in docs/onnx.md, from the rules in src/bridge/onnx.

    python3 tools/onnx_docs.py           writes it
    python3 tools/onnx_docs.py --check   says whether it is right"""
import glob
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
PAGE = os.path.join(ROOT, 'docs', 'onnx.md')
BEGIN, END = '<!-- operators: tools/onnx_docs.py -->\n', '<!-- end of operators -->\n'
RULE = re.compile(r'^const tutti_onnx_op \w+ = \{\n(.*?)^\};', re.MULTILINE | re.DOTALL)
FIELD = re.compile(r'^\s*\.(\w+)\s*=\s*(.*?),\n(?=\s*\.|\Z)', re.MULTILINE | re.DOTALL)


def rules():
    """(domain, type) -> what is read, what is written, the note."""
    table, written = {}, set()
    for path in sorted(glob.glob(os.path.join(ROOT, 'src', 'bridge', 'onnx', '*.c'))):
        with open(path, encoding='utf-8') as f:
            text = f.read()
        for body in RULE.findall(text):
            fields = {name: value.strip('"') for name, value in FIELD.findall(body)}
            if 'write' in fields:
                written.add(fields.get('op', ''))
            if 'type' not in fields:
                continue
            row = table.setdefault((fields.get('domain', ''), fields['type']), [False, [], ''])
            row[0] = row[0] or 'read' in fields
            if 'write' in fields and 'op' in fields:
                row[1].append(fields['op'])
            row[2] = fields.get('note', row[2])
    return table, written


def page_part():
    table, written = rules()
    lines = []
    for domain, title in (('', 'ai.onnx'), ('ai.onnx.ml', 'ai.onnx.ml')):
        names = sorted(name for d, name in table if d == domain)
        count = sum(table[domain, name][0] for name in names)
        lines += [f'**{title}**: {count} are read.', '', '| operator | written from | note |', '|---|---|---|']
        for name in names:
            read, ops, note = table[domain, name]
            note = note if read else 'only written'
            lines.append(f'| {name} | {", ".join(f"`{op}`" for op in ops)} | {note} |')
        lines.append('')
    lines += ['Written as several nodes: ' +
              ', '.join(f'`{op}`' for op in sorted(written - {op for row in table.values() for op in row[1]}) if op)
              + '.', '']
    return '\n'.join(lines)


def main(arguments):
    with open(PAGE, encoding='utf-8') as f:
        text = f.read()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    right = before + BEGIN + page_part() + END + after
    if '--check' in arguments:
        same = text == right
        if not same:
            print('docs/onnx.md: the list of operators is old; write it with tools/onnx_docs.py')
        print(f'{int(same)} passed, {int(not same)} failed, 0 skipped')
        return 0 if same else 1
    with open(PAGE, 'w', encoding='utf-8') as f:
        f.write(right)
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
