#!/usr/bin/env python3
"""Writes the code of the documentation into files that a compiler can judge: docs.py ROOT OUT

A block of ```c becomes
  x_program.c  when it has a main: to be linked and run;
  x_inside.c   when it includes a header of src/: to be compiled with the library's own headers;
  x_run.c      otherwise, to be linked and run too: functions and objects as they are, lines in a
               function of their own, with the names of lines.h.
A block of ```cpp becomes x.cpp, lines too.

What a block needs to run, and readers need not see, stands in a comment right before it:

    <!-- run: statements -->         before its lines, or, where it defines functions, instead of them
    <!-- run: not, because ... -->   compiled only

Functions in the guide without either are an error. The lines of ```sh that start with tutti or make
go to commands.txt, with their page and line; see commands.py."""
import glob
import os
import re
import sys
import textwrap

BLOCK = re.compile(r'(?:^<!-- run: ((?:(?!-->).)*?) -->\n)?^( *)```(c|cpp|sh)\n(.*?)^\2```$', re.MULTILINE | re.DOTALL)
DEFINES = re.compile(r'^(static|const \w+ \w|extern|enum|typedef|#define|#include|TUTTI_TEST|TUTTI_API|tutti_sym \w+\(|tutti_status \w+\()',
                     re.MULTILINE)


MAIN = '''
int main(int argc, char **argv)
{
    lines_begin(&argc, &argv);
    %s
    return lines_end();
}
'''


def form(language, text, run, place):
    """-> (ending of the file's name, its text)"""
    if 'int main(' in text:
        return '_program.c', text
    if re.search(r'^#include "(base|data|graph|io|ops|program|device|passes|nn|cli)/', text, re.MULTILINE):
        return '_inside.c', text
    if language == 'cpp':
        return '.cpp', '#include "lines.h"\n#include <tutti/tutti.hpp>\n\nstatic void lines(void)\n{\n' + text + '}\n'
    defines = DEFINES.search(text) and not re.search(r'^static const char \*const devices', text)
    code = text if defines else 'static void lines(void)\n{\n' + text + '}\n'
    if run is None and defines and 'guide' in place:
        raise SystemExit(f'{place}: how is this run? Say so before it: <!-- run: statements -->')
    if run is None and defines or run and run.startswith('not,'):
        return '_file.c', '#include <tutti/tutti.h>\n#include "acme/acme.h"\n#include "lines.h"\n' + code
    statements = (run or '') + ('' if defines else '\n    lines();')
    return '_run.c', '#define LINES_RUN\n#include "lines.h"\n\n' + code + MAIN % statements


def commands(text, place, line):
    """Lines of a shell's block that start with tutti or make, without their comments."""
    for i, one in enumerate(text.split('\n')):
        if re.match(r'(tutti|make)\b', one):
            yield f'{place}:{line + i}|{re.sub(r" +#.*$", "", one).strip()}\n'


def main(root, out):
    os.makedirs(out, exist_ok=True)
    for old in glob.glob(os.path.join(out, '*.*')):
        os.remove(old)
    pages = glob.glob(os.path.join(root, 'docs', '**', '*.md'), recursive=True)
    listed = []
    for path in [os.path.join(root, name) for name in ('README.md', 'CONTRIBUTING.md')] + sorted(pages):
        with open(path, encoding='utf-8') as file:
            text = file.read()
        place = os.path.relpath(path, root)
        for match in BLOCK.finditer(text):
            run, _, language, block = match.groups()
            line = text.count('\n', 0, match.start(4)) + 1
            if language == 'sh':
                listed += commands(textwrap.dedent(block), place, line)
                continue
            name = place.removesuffix('.md').replace('-', '_').replace(os.sep, '_')
            ending, code = form(language, textwrap.dedent(block), run, f'{place}:{line}')
            with open(os.path.join(out, f'{name}_{line}{ending}'), 'w', encoding='utf-8') as file:
                file.write(code)
    with open(os.path.join(out, 'commands.txt'), 'w', encoding='utf-8') as file:
        file.writelines(listed)


if __name__ == '__main__':
    main(*sys.argv[1:])
