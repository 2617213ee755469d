#!/usr/bin/env python3
"""Writes the code of the documentation into files that a compiler can judge: docs.py ROOT OUT

A block of ```c becomes
  x_program.c  when it has a main: to be linked and run;
  x_inside.c   when it includes a header of src/: to be compiled with the library's own headers;
  x_file.c     when it defines functions or objects;
  x_lines.c    otherwise: the lines in a function of their own, with the names of lines.h.
A block of ```cpp becomes x.cpp, lines too."""
import glob
import os
import re
import sys
import textwrap

BLOCK = re.compile(r'^( *)```(c|cpp)\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
DEFINES = re.compile(r'^(static|const \w+ \w|extern|enum|typedef|#define|#include|TUTTI_TEST|TUTTI_API|tutti_sym \w+\(|tutti_status \w+\()',
                     re.MULTILINE)


def form(language, text):
    if 'int main(' in text:
        return '_program.c', text
    if re.search(r'^#include "(base|data|graph|io|ops|program|device|passes|nn|cli)/', text, re.MULTILINE):
        return '_inside.c', text
    lines = '#include "lines.h"\n\nstatic void lines(void)\n{\n' + text + '}\n'
    if language == 'cpp':
        return '.cpp', lines
    if DEFINES.search(text) and not re.search(r'^static const char \*const devices', text):
        return '_file.c', '#include <tutti/tutti.h>\n#include "acme/acme.h"\n' + text
    return '_lines.c', lines


def main(root, out):
    os.makedirs(out, exist_ok=True)
    for old in glob.glob(os.path.join(out, '*')):
        os.remove(old)
    pages = glob.glob(os.path.join(root, 'docs', '**', '*.md'), recursive=True)
    for path in [os.path.join(root, 'README.md')] + sorted(pages):
        with open(path, encoding='utf-8') as file:
            text = file.read()
        for match in BLOCK.finditer(text):
            line = text.count('\n', 0, match.start()) + 2
            name = os.path.relpath(path, root).removesuffix('.md').replace('-', '_').replace(os.sep, '_')
            ending, code = form(match.group(2), textwrap.dedent(match.group(3)))
            with open(os.path.join(out, f'{name}_{line}{ending}'), 'w', encoding='utf-8') as file:
                file.write(code)


if __name__ == '__main__':
    main(*sys.argv[1:])
