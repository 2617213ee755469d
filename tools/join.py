#!/usr/bin/env python3
"""Joins sources into few files for the compiler, which spends a quarter of its time on starting and
on reading the same headers again.

    join.py --root DIR --compiler CC... --join NAME FILE... --join NAME FILE...

prints a line for each file of the compiler's: NAME and the sources that it is to include.

Files stand together only where none can see what another keeps to itself:
    - no two define the same name at file scope, be it a function, an object, a type or an enumerator;
    - no name of one is declared by a header that another reads, or by any header of the system;
    - no macro of one is a word in another or in a header that another reads;
    - no two read headers that define the same type or function;
    - what one asks of the system's headers (_GNU_SOURCE) all ask, and none sets a pragma.
"""
import argparse
import collections
import os
import re
import subprocess

MOST_FILES = 8       # in one: the compilation must still divide among cores
MOST_BYTES = 48_000  # of text

NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|(?<!include )"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.S)
DIRECTIVE = re.compile(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.M)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include ["<]([^">]+)[">]', re.M)
MACRO = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)', re.M)
LINKAGE = re.compile(r'#ifdef __cplusplus\n.*?#endif', re.S)
WORD = re.compile(r'[A-Za-z_]\w*')
BRACES = re.compile(r'\{[^{}]*\}')
PARENTHESES = re.compile(r'\([^()]*\)')
ENUMERATORS = re.compile(r'\benum\b[^;{}()]*\{([^{}]*)\}')
TAG = re.compile(r'\b(?:struct|union|enum)\s+(\w+)\s*\{')
MACRO_CALL = re.compile(r'^[A-Z][A-Z0-9_]*\s*\(([^)]*)\)', re.M)
FORWARD = re.compile(r'\btypedef\s+(?:struct|union)\s+\w+\s+\w+\s*;')
TYPE = re.compile(r'\btypedef\b[^;]*?(\w+)\s*(?:\(\)|\[[^\]]*\])?\s*;')
INLINE = re.compile(r'\binline\b[^;{}()]*?\b(\w+)\s*\(\)\s*\{')
FUNCTION = re.compile(r'\b(\w+)\b\s*\(\)\s*[;{]')
# The last word before what ends a declarator: its parameters, its size, its value, its end.
DECLARED = re.compile(r'\b(\w+)\b\s*(?:\(\)|\[[^\]]*\]|=[^;,]*|,|;|\{\})')
# Words of the language, not names.
KEYWORDS = {'enum', 'struct', 'union', 'typedef', 'static', 'const', '__attribute__', 'TUTTI_PRINTF',
            'TUTTI_VEC'}


def without(text, pattern, left):
    """The text without what stands in braces or parentheses, from inside to outside."""
    marker = '\0'
    while True:
        shorter = pattern.sub(marker, text)
        if shorter == text:
            return text.replace(marker, left)
        text = shorter


class Names:
    """What a text without comments and directives declares outside functions; a word too many only
    keeps files apart."""
    def __init__(self, text):
        tags = set(TAG.findall(text))
        enumerators = {word for body in ENUMERATORS.findall(text) for word in WORD.findall(body)}
        text = without(text, BRACES, '{}')
        called = {word for arguments in MACRO_CALL.findall(text) for word in WORD.findall(arguments)}
        text = without(text, PARENTHESES, '()')
        self.types = tags | set(TYPE.findall(FORWARD.sub('', text)))
        self.inline = set(INLINE.findall(text))
        self.functions = set(FUNCTION.findall(text)) - self.types
        self.all = (self.types | enumerators | called | set(DECLARED.findall(text))) - KEYWORDS


class File:
    def __init__(self, path):
        with open(path, encoding='utf-8') as file:
            text = LINKAGE.sub('', file.read())
        self.path, self.size = path, len(text)
        text = NOISE.sub(' ', text)
        names = Names(DIRECTIVE.sub('', text))
        self.words = set(WORD.findall(text))
        self.macros = set(MACRO.findall(text))
        self.names = names.all | self.macros
        self.types, self.functions, self.inline = names.types, names.functions, names.inline
        self.includes = INCLUDE.findall(text)
        self.pragma = '#pragma' in text or '_Pragma' in text


class Headers:
    """The project's headers that files read."""
    def __init__(self, root):
        self.folders = [os.path.join(root, folder) for folder in ('include', 'src', '.')]
        self.files, self.system = {}, set()

    def find(self, name):
        if name not in self.files:
            paths = [path for path in (os.path.join(f, name) for f in self.folders) if os.path.exists(path)]
            self.files[name] = File(paths[0]) if paths else None
            if not paths:
                self.system.add(name)
        return self.files[name]

    def read_by(self, file, found):
        for name in file.includes:
            header = self.find(name)
            if header and name not in found:
                found[name] = header
                self.read_by(header, found)
        return found


class Source:
    def __init__(self, path, headers):
        file = File(path)
        self.path, self.size, self.pragma = path, file.size, file.pragma
        self.asks = '_GNU_SOURCE' in file.macros
        self.macros = file.macros - {'_GNU_SOURCE'}
        self.own = file.names - {'_GNU_SOURCE'}
        self.words = file.words
        self.headers = headers.read_by(file, {})

    def look_into_headers(self, declared, words):
        """Of what headers say only what some source calls its own matters: by header."""
        self.declared = set().union(*(declared[name] for name in self.headers))
        self.own -= self.declared
        self.words = self.words.union(*(words[name] for name in self.headers))
        self.headers = set(self.headers)


class Group:
    def __init__(self, source):
        self.paths, self.size, self.asks = [source.path], source.size, source.asks
        self.own, self.macros, self.words = set(source.own), set(source.macros), set(source.words)
        self.declared, self.headers = set(source.declared), set(source.headers)

    def takes(self, source, rivals):
        return (len(self.paths) < MOST_FILES and self.size + source.size <= MOST_BYTES
                and self.asks == source.asks
                and self.own.isdisjoint(source.own)
                and self.own.isdisjoint(source.declared) and self.declared.isdisjoint(source.own)
                and self.macros.isdisjoint(source.words) and self.words.isdisjoint(source.macros)
                and not any(self.headers & rivals[header] for header in source.headers if header in rivals))

    def add(self, source):
        self.paths.append(source.path)
        self.size += source.size
        self.own |= source.own
        self.macros |= source.macros
        self.words |= source.words
        self.declared |= source.declared
        self.headers |= source.headers


def find_rivals(headers):
    """header -> those that define a type of the same name, or a function"""
    users = collections.defaultdict(set)
    for name, header in headers.items():
        for declared in header.types | header.functions:
            users[declared].add(name)
    rivals = collections.defaultdict(set)
    for name, header in headers.items():
        for other in set().union(*(users[defined] for defined in header.types | header.inline)) - {name}:
            rivals[name].add(other)
            rivals[other].add(name)
    return rivals


def read_by_compiler(compiler, headers):
    text = ''.join(f'#if __has_include(<{name}>)\n#include <{name}>\n#endif\n' for name in headers)
    return subprocess.run([*compiler, '-D_GNU_SOURCE', '-E', '-P', '-xc', '-'], input=text, check=False,
                          capture_output=True, encoding='utf-8')


def names_of_system(compiler, headers):
    """What the system's headers declare. clang has those of other CPUs too, and refuses to read them."""
    headers = sorted(headers)
    made = read_by_compiler(compiler, headers)
    if made.returncode != 0:
        headers = [name for name in headers if read_by_compiler(compiler, [name]).returncode == 0]
        made = read_by_compiler(compiler, headers)
    made.check_returncode()
    return Names(made.stdout).all


def join(sources, rivals, system):
    """The sources in groups. Those whose names many have come first: each has a group of its own,
    which the others fill."""
    users = collections.Counter(name for source in sources for name in source.own)
    groups, alone = [], []
    for source in sorted(sources, key=lambda s: -max((users[name] for name in s.own), default=0)):
        if source.pragma or not source.own.isdisjoint(system):
            alone.append(Group(source))
            continue
        for group in groups:
            if group.takes(source, rivals):
                group.add(source)
                break
        else:
            groups.append(Group(source))
    return groups + alone


def read_sources(lists, headers):
    """Sources of each list, with what they see of the headers."""
    lists = [[Source(path, headers) for path in paths] for _, *paths in lists]
    everyone = [source for sources in lists for source in sources]
    own = set().union(*(source.own for source in everyone))
    macros = set().union(*(source.macros for source in everyone))
    found = {name: file for name, file in headers.files.items() if file}
    declared = {name: file.names & own for name, file in found.items()}
    words = {name: file.words & macros for name, file in found.items()}
    for source in everyone:
        source.look_into_headers(declared, words)
    return lists, find_rivals(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--root', required=True)
    parser.add_argument('--compiler', required=True, nargs='+')
    parser.add_argument('--join', required=True, nargs='+', action='append')
    options = parser.parse_args()
    headers = Headers(options.root)
    lists, rivals = read_sources(options.join, headers)
    system = names_of_system(options.compiler, headers.system)
    for (name, *_), sources in zip(options.join, lists):
        for group in join(sources, rivals, system):
            print(name, *(os.path.relpath(path, options.root) for path in group.paths))


if __name__ == '__main__':
    main()
