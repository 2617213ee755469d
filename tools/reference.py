#!/usr/bin/env python3
"""Makes the API reference from the public headers.

    reference.py HEADERS --output FOLDER   writes index.html and a page for each header of a folder
    reference.py HEADERS --check           names what has no words; exit code 1 if anything has none

A header is read as paragraphs, parted by blank lines: comments, and the declarations below them. A
comment speaks for the declarations below it, up to the next comment or blank line; one on the
declaration's own last line speaks for it too. A comment that is a paragraph of its own begins a
section. What is said of a macro is said of the functions that it calls, what
is said of a struct of options of the function that takes it, and of one name once is enough."""
import argparse
import html
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COMMENT = re.compile(r'/\*(.*?)\*/', re.DOTALL)
# Names that a declaration brings into the world, by its kind.
FUNCTION = re.compile(r'^TUTTI_API\b[^;]*?\b(tutti_\w+)\)?\s*\(', re.DOTALL)
OBJECT = re.compile(r'^(?:TUTTI_API )?extern\b[^;(]*?\b(tutti_\w+)(?:\[[^]]*\])*\s*;', re.DOTALL)
MACRO = re.compile(r'^#define ((?:tutti|TUTTI)_\w+)(\()?')
RECORD = re.compile(r'^typedef (?:struct|union|enum)\b(?:.*\})?\s*(?:tutti_\w+ )?(tutti_\w+);\s*(?:/\*.*\*/)?$', re.DOTALL)
SIGNATURE = re.compile(r'^typedef\b[^;]*?\b\(?\*?(tutti_\w+)\)?\s*\(', re.DOTALL)
PLAIN = re.compile(r'^typedef\b[^;]*\b(tutti_\w+);')
INLINE = re.compile(r'^static inline\b[^;{]*?\b(tutti_\w+)\s*\(', re.DOTALL)
KINDS = [('function', FUNCTION), ('object', OBJECT), ('function', INLINE), ('macro', MACRO),
         ('type', RECORD), ('type', SIGNATURE), ('type', PLAIN)]


class Entry:
    """One declaration with the words that were said about it."""

    def __init__(self, text, line, words):
        self.text, self.line, self.words = text, line, words
        self.kind, self.name = 'other', None
        for kind, pattern in KINDS:
            match = pattern.search(text)
            if match:
                self.kind, self.name = kind, match.group(1)
                break
        self.calls = self.kind == 'macro' and bool(MACRO.match(text).group(2))
        self.own_words = ' '.join(comment_text(c) for c in COMMENT.findall(text))

    def hidden(self):
        """Include guards, C++ brackets and names that end in _ are not part of the API."""
        return self.name is None or self.name.endswith('_') or self.name.endswith('_H')


def comment_text(inside):
    lines = [re.sub(r'^\s*\* ?', '', line).rstrip() for line in inside.split('\n')]
    return '\n'.join(lines).strip('\n').strip()


def logical_lines(text):
    """(first line's number, text): preprocessor lines with their continuations; statements up to
    the ; or } that ends them; comments; blank lines as ''."""
    lines, at = text.split('\n'), 0
    while at < len(lines):
        start, piece = at, [lines[at]]
        first = lines[at].strip()
        if first.startswith('/*'):
            while '*/' not in piece[-1] and at + 1 < len(lines):
                at += 1
                piece.append(lines[at])
        elif first.startswith('#'):
            while piece[-1].endswith('\\') and at + 1 < len(lines):
                at += 1
                piece.append(lines[at])
        elif first and not first.startswith('extern "C"'):
            while not complete('\n'.join(piece)) and at + 1 < len(lines):
                at += 1
                piece.append(lines[at])
        at += 1
        yield start + 1, '\n'.join(piece) if first else ''


def complete(text):
    code = COMMENT.sub('', text)
    if '/*' in code or code.count('{') != code.count('}') or code.count('(') != code.count(')'):
        return False
    code = code.rstrip()
    return code.endswith(';') or (code.endswith('}') and not code.startswith('typedef'))


def read_header(path):
    """-> (summary of the header, [section or Entry])"""
    with open(path, encoding='utf-8') as file:
        text = file.read()
    summary, items, words = '', [], ''
    alone = None  # a comment that no declaration has followed yet
    for line, piece in logical_lines(text):
        if not piece:
            if alone:
                items.append(alone)
            words, alone = '', None
        elif piece.startswith('/*'):
            words = comment_text(COMMENT.match(piece).group(1)) if COMMENT.match(piece) else ''
            if not summary and line == 1:
                summary = words
            else:
                alone = words
        elif re.match(r'#(if|else|elif|endif|include|undef|ifdef|ifndef|pragma)|extern "C"|\}$', piece):
            continue
        else:
            entry = Entry(piece, line, words)
            if not entry.hidden():
                items.append(entry)
                alone = None
    return summary, items


def undocumented(path, items):
    """Functions, objects and macros that stand for functions, without a word about them."""
    entries = [item for item in items if isinstance(item, Entry)]
    said = {entry.name for entry in entries if entry.words or entry.own_words}
    for entry in entries:
        if entry.calls and entry.name in said:
            said.update(re.findall(r'\btutti_\w+', entry.text))
    options = {name for name in said if name.endswith(('_options', '_settings'))}
    for item in entries:
        if options & set(re.findall(r'\btutti_\w+', item.text)):
            continue
        if item.name not in said and (item.kind in ('function', 'object') or
                                      item.calls and item.name.startswith('tutti_')):
            yield f'{os.path.relpath(path, ROOT)}:{item.line}: {item.name} is not documented'


STYLE = '''body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
pre{background:#f5f5f2;padding:.6rem .8rem;overflow-x:auto;font-size:14px;line-height:1.4}
p{white-space:pre-line;margin:.6rem 0}h1{font-size:1.5rem}h2{font-size:1.05rem;margin:2rem 0 .3rem}
code{font-size:.92em}a{color:#06c;text-decoration:none}li{margin:.1rem 0}ul.names{columns:3}'''


def page(title, body):
    return ('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n')


def words_html(words):
    """Paragraphs; indented lines are code; lines of one paragraph flow together."""
    parts, code, flow = [], [], []

    def flush():
        if flow:
            parts.append('<p>' + html.escape(' '.join(flow)) + '</p>')
        if code:
            indent = min((len(c) - len(c.lstrip()) for c in code if c.strip()), default=0)
            parts.append('<pre>' + html.escape('\n'.join(c[indent:] for c in code).strip('\n')) + '</pre>')
        flow.clear()
        code.clear()

    for line in words.split('\n'):
        if re.match(r' {3,}\S', line):
            if flow:
                flush()
            code.append(line)
        elif not line.strip():
            (code.append('') if code else flush())
        else:
            if code:
                flush()
            flow.append(line.strip())
    flush()
    return '\n'.join(parts)


def declaration_text(text):
    """A declaration as its caller reads it; what a macro expands to is left out."""
    match = re.match(r'#define \w+(\([^)]*\))?', text)
    if match:
        first = re.match(r'#define (\w+)(\([^)]*\))?\s*(.*)', text, re.DOTALL)
        value = first.group(3).split('\n')[0].rstrip('\\ ')
        short = '\n' not in text and not first.group(2)
        return f'{first.group(1)}{first.group(2) or ""}' + (f' = {value}' if short and value else '')
    if text.startswith('static inline'):
        return text[:text.index('{')].strip() + ';'
    return text.replace('TUTTI_API ', '')


def linked(text, places, own):
    """Escaped code, with names that have an entry turned into links."""
    def link(match):
        name = match.group(0)
        if name not in places or name == own:
            return name
        return f'<a href="{places[name]}#{name}">{name}</a>'
    return re.sub(r'\b(?:tutti|TUTTI)_\w+', link, html.escape(text, quote=False))


def blocks(items):
    """Sections, and runs of entries that share their words."""
    run = []
    for item in items:
        if run and (not isinstance(item, Entry) or item.words != run[-1].words or not item.words):
            yield run
            run = []
        if isinstance(item, Entry):
            run.append(item)
        else:
            yield item
    if run:
        yield run


def header_page(name, summary, items, places):
    title = f'tutti/{name}'
    body = [f'<p><a href="index.html">Tutti: API reference</a></p>\n<h1>{title}</h1>',
            words_html(re.sub(r'^[\w.]+: ', '', summary))]
    for block in blocks(items):
        if not isinstance(block, list):
            body.append('<hr>' + words_html(block))
            continue
        names = list(dict.fromkeys(entry.name for entry in block))
        body.append('<h2>' + ', '.join(f'<a id="{n}">{n}</a>' for n in names) + '</h2>')
        seen = set()
        for entry in block:
            if entry.kind == 'macro' and entry.name in seen and not entry.calls:
                continue
            seen.add(entry.name)
            code = declaration_text(entry.text)
            body.append('<pre>' + linked(code, places, entry.name) + '</pre>')
        body.append(linked_words(words_html(block[0].words), places))
    return page(title, '\n'.join(body))


def linked_words(text, places):
    return re.sub(r'\b(?:tutti|TUTTI)_\w+',
                  lambda m: f'<a href="{places[m.group(0)]}#{m.group(0)}">{m.group(0)}</a>'
                  if m.group(0) in places else m.group(0), text)


def index_page(headers):
    body = ['<h1>Tutti: API reference</h1>',
            '<p>Made from the headers, which say the same. The guide is in docs/guide.md.</p>']
    for name, (summary, items) in headers.items():
        names = dict.fromkeys(i.name for i in items if isinstance(i, Entry))
        line = re.sub(r'^[\w.]+: ', '', summary.split('\n\n')[0].replace('\n', ' '))
        stem = name.replace('.h', '.html')
        body.append(f'<h2><a href="{stem}">tutti/{name}</a></h2><p>{html.escape(line)}</p><ul class="names">'
                    + ''.join(f'<li><a href="{stem}#{n}">{n}</a></li>' for n in names) + '</ul>')
    return page('Tutti: API reference', '\n'.join(body))


def write(headers, folder):
    os.makedirs(folder, exist_ok=True)
    places = {}
    for name, (_, items) in headers.items():
        for item in items:
            if isinstance(item, Entry):
                places.setdefault(item.name, name.replace('.h', '.html'))
    pages = {name.replace('.h', '.html'): header_page(name, *header, places)
             for name, header in headers.items()}
    pages['index.html'] = index_page(headers)
    for name, text in pages.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(text)
    os.utime(folder)  # a build sees the folder's own time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('--output')
    parser.add_argument('--depfile')
    parser.add_argument('--check', action='store_true')
    parser.add_argument('--exported', help='file with the names that the library exports, one a line')
    options = parser.parse_args()
    paths = sorted(os.path.join(options.folder, n) for n in os.listdir(options.folder) if n.endswith('.h'))
    headers = {os.path.basename(path): read_header(path) for path in paths}
    if options.output:
        write(headers, options.output)
    if options.depfile:
        with open(options.depfile, 'w', encoding='utf-8') as file:
            file.write(f'{options.output}: {" ".join([options.folder] + paths)}\n')
    if options.check:
        missing = [line for path in paths
                   for line in undocumented(path, headers[os.path.basename(path)][1])]
        names = {i.name for _, items in headers.values() for i in items if isinstance(i, Entry)}
        if options.exported:
            with open(options.exported, encoding='utf-8') as file:
                missing += [f'{name} is exported, and in no header' for name in file.read().split()
                            if name.startswith('tutti_') and not name.startswith('tutti__')
                            and not name.endswith('_') and name not in names]  # x_: a piece of a macro
        print('\n'.join(missing) if missing else f'{len(names)} names, all documented')
        return 1 if missing else 0
    return 0


if __name__ == '__main__':
    sys.exit(main())
