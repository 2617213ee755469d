#!/usr/bin/env python3
"""Turns text files into C: for each x.cu a constant `tutti_cuda_text tutti__cuda_text_x_cu`.

    embed.py --output DIR/cuda_texts.c FILE...

Beside it stand cuda_texts.h, which the build knows, and tables/cuda_texts.h with the declarations:
of each text, and of the descriptor `tutti_cuda_source_x` of each x.cu.
"""
import argparse
import os
import re

HEAD = '''/* Made by tools/embed.py. */
#include "device/cuda/compile/source.h"
'''
LONGEST = 400  # bytes of one C string; the compiler joins them


def c_string(line):
    escaped = line.replace('\\', '\\\\').replace('"', '\\"').replace('\t', '\\t')
    return f'    "{escaped}\\n"'


def constant(path):
    name = os.path.basename(path)
    with open(path, encoding='ascii') as file:
        lines = file.read().splitlines()
    for number, line in enumerate(lines, 1):
        if len(line) > LONGEST:
            raise SystemExit(f'{path}:{number}: a line of more than {LONGEST} characters')
    identifier = re.sub(r'\W', '_', name)
    text = '\n'.join(c_string(line) for line in lines)
    return (f'\nconst tutti_cuda_text tutti__cuda_text_{identifier} = {{\n'
            f'    "{name}",\n{text}}};\n')


def declaration(path):
    stem, end = os.path.splitext(os.path.basename(path))
    text = f'extern const tutti_cuda_text tutti__cuda_text_{stem}_{end[1:]};\n'
    if end == '.cu':
        text += f'extern const tutti_cuda_source tutti_cuda_source_{stem};\n'
    return text


def write(path, text):
    with open(path, 'w', encoding='ascii') as file:
        file.write(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--output', required=True)
    parser.add_argument('files', nargs='+')
    arguments = parser.parse_args()
    files = sorted(arguments.files)
    folder = os.path.dirname(arguments.output)
    write(arguments.output, HEAD + ''.join(constant(path) for path in files))
    write(os.path.join(folder, 'cuda_texts.h'), '#include "tables/cuda_texts.h"\n')
    os.makedirs(os.path.join(folder, 'tables'), exist_ok=True)
    write(os.path.join(folder, 'tables', 'cuda_texts.h'),
          HEAD + ''.join(declaration(path) for path in files))


if __name__ == '__main__':
    main()
