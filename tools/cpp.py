#!/usr/bin/env python3
"""Makes tutti.hpp, the C++20 face of the public headers, from the headers: 
cpp.py HEADERS OUTPUT DEPFILE.

Each tutti_x becomes tutti::x, and tutti_nn_x tutti::nn::x. Options come last and in braces; a count
and the list behind it are one list in braces. A struct of options has a twin here whose members all
have defaults, so that compilers do not ask for those that are left out."""
import os
import re
import sys

KEYWORDS = {'and', 'or', 'not', 'xor', 'if', 'switch', 'while', 'register', 'export', 'operator', 'new', 'delete', 'union'}
COUNT = re.compile(r'(?:int|size_t|int64_t) (?:\w+_)?(?:count|rank)$')
PLACE = 'const char *file_ = __builtin_FILE(), int line_ = __builtin_LINE()'
SIZED = 'size_t struct_size;'

HEAD = '''/* tutti.hpp: all of Tutti for C++20, with options by name. Made from the headers by tools/cpp.py.
 *
 *     auto *m = tutti::sequential(job, {tutti::dense(64, {.activation = TUTTI_RELU}), tutti::dense(10)});
 *     tutti::compile(m, {.optimizer = tutti::adam({.learning_rate = 1e-3}), .loss = tutti::mse()});
 *     tutti::fit(m, data, {.epochs = 3, .callbacks = {tutti::terminate_on_nan()}});
 *
 * What tutti_x is in C is tutti::x here, tutti_nn_x is tutti::nn::x. Options are named in the order
 * of their struct. */
#ifndef TUTTI_HPP
#define TUTTI_HPP

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

#include "tutti/tutti.h"

namespace tutti {

/* A list in braces, of C's elements; From: what each of them is made from. */
template <class Element, class From = Element> class list {
  public:
    list() = default;
    list(std::initializer_list<From> from) : elements(from.begin(), from.end()) {}
    list(std::vector<Element> from) : elements(std::move(from)) {}
    template <class Count = int> Count count() const { return static_cast<Count>(elements.size()); }
    Element *data() const { return const_cast<Element *>(elements.data()); }

  private:
    std::vector<Element> elements;
};

/* Axes, or an index, in braces. */
struct axis_list {
    ::tutti_axes value = {};
    axis_list() = default;
    axis_list(::tutti_axes from) : value(from) {}
    axis_list(std::initializer_list<int64_t> from)
    {
        value.count = static_cast<int>(from.size());
        std::copy_n(from.begin(), std::min(from.size(), std::size(value.values)), value.values);
    }
    operator ::tutti_axes() const { return value; }
};

/* A type: tutti::type(TUTTI_F32, {28, 28, 1}). */
inline ::tutti_type type(::tutti_dtype dtype, const list<int64_t> &dims = {})
{
    return ::tutti_type_make(dtype, dims.count(), dims.data());
}

template <class To, class From> inline void set_(To &to, const From &from) { to = from; }
template <class To, std::size_t n> inline void set_(To (&to)[n], const To (&from)[n])
{
    std::copy_n(from, n, to);
}
'''


def split(text, mark):
    """Parts between marks that stand in no brackets."""
    parts, depth, part = [], 0, ''
    for letter in text:
        depth += (letter in '({[') - (letter in ')}]')
        if letter == mark and depth == 0:
            parts.append(part.strip())
            part = ''
        else:
            part += letter
    return [p for p in parts + [part.strip()] if p]


def plain(text):
    return re.sub(r'\s+', ' ', text).strip()


class Headers:
    def __init__(self, folder):
        self.macros, self.structs, self.functions = {}, {}, []
        self.paths = sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith('.h'))
        for path in self.paths:
            with open(path, encoding='utf-8') as file:
                self.read(re.sub(r'/\*.*?\*/', ' ', file.read(), flags=re.DOTALL).replace('\\\n', ' '))

    def read(self, text):
        for name, params, body in re.findall(r'^#define (\w+)(\([^)]*\))?[ \t]*(.*)$', text, re.M):
            self.macros.setdefault(name, []).append((split(params[1:-1], ','), plain(body)))
        code = re.sub(r'^ *#.*$', '', text, flags=re.M)
        for body, name in re.findall(r'^typedef struct \w+ \{(.*?)^\} (tutti_\w+);', code, re.M | re.DOTALL):
            self.structs[name] = plain(body)
        for found in re.findall(r'^(?:TUTTI_API|static inline)\s+([^;{]*?)(?:;|\n\{)', code, re.M):
            match = re.match(r'(.*?)\(?\b(tutti_\w+[^_])\)?\s*\((.*)\)$', plain(found))
            if match and '...' not in match[3] and '(*' not in match[3] and 'va_list' not in match[3]:
                self.functions.append(match.groups())

    def members(self, struct):
        """(text of the declaration, name) of each member."""
        body = self.structs[struct]
        for macro in re.findall(r'\bTUTTI_\w+_SETTINGS\b', body):
            body = body.replace(macro, self.macros[macro][0][1])
        for declaration in split(body, ';'):
            if declaration.startswith('struct {') or '(*' in declaration:
                name = re.search(r'(?:\} |\(\*)(\w+)', declaration)[1]
                yield declaration, name
                continue
            for part in split(declaration, ','):
                yield declaration, re.search(r'(\w+)(?:\[[^]]*\])*$', part)[1]

    def options(self, struct):
        return struct in self.structs and next(self.members(struct))[1] == 'struct_size' and \
            next(self.members(struct))[0] + ';' == SIZED

    def body(self, name):
        """What a macro stands for, with helpers such as TUTTI_RNN_ written out."""
        params, body = self.macros[name][-1]
        match = re.match(r'(TUTTI_\w+_)\(("\w+"), __VA_ARGS__\)$', body)
        if match and self.macros[match[1]][0][0][0] == 'kind':
            body = re.sub(r'\bkind\b', match[2], self.macros[match[1]][0][1], count=1)
        return params, body


def short(name):
    name = re.sub(r'_with$', '', name)[len('tutti_'):]
    return name + '_' if name in KEYWORDS else name


def twin(headers, struct, elements):
    """A struct of options with defaults, and how it becomes C's."""
    lines, sets = [], []
    for declaration, name in headers.members(struct):
        found = re.match(r'struct \{ ?(\w+) (\w+); (?:const )?(\w+ ?\**?) ?(?:const )?\*(?:const \*)?(\w+); ?\}', declaration)
        if name == 'struct_size' and declaration + ';' == SIZED:
            sets.append('c.struct_size = sizeof c;')
        elif found:
            kind = found[3].strip()
            of = f'decltype(std::declval<::{struct}>().{name}.{found[4]})'
            of = f'std::remove_const_t<std::remove_pointer_t<{of}>>'
            lines.append(f'list<{of}{", ::tutti::" + short(kind) if kind in elements else ""}> {name} = {{}};')
            sets.append(f'c.{name}.{found[2]} = {name}.count<decltype(c.{name}.{found[2]})>();')
            sets.append(f'c.{name}.{found[4]} = {name}.data();')
        elif declaration.startswith('tutti_axes '):
            lines.append(f'axis_list {name} = {{}};')
            sets.append(f'c.{name} = {name};')
        else:
            lines.append(f'decltype(::{struct}::{name}) {name} = {{}};')
            sets.append(f'set_(c.{name}, {name});')
    body = ''.join(f'        {line}\n' for line in sets)
    return (f'struct {short(struct)} {{\n' + ''.join(f'    {line}\n' for line in lines) +
            f'    operator ::{struct}() const\n    {{\n        ::{struct} c = {{}};\n{body}        return c;\n    }}\n}};\n')


def written(result, name, params, here, lines, value):
    """One function, in its namespace."""
    name, space = short(name), ''
    if name.startswith('nn_'):
        name, space = name[3:], 'nn'
    if here:
        params = params + [PLACE]
        lines = lines + ['::tutti_here(file_, line_);']
    text = f'inline {result}{name}({", ".join(params)})\n{{\n' + ''.join(f'    {line}\n' for line in lines)
    text += f'    return {value};\n}}\n'
    return f'namespace {space} {{\n{text}}}\n' if space else text


def function(headers, result, name, params, public, macro):
    """A wrapper of a function: lists in braces, options last."""
    taken, given, last, lines, at = {}, [], [], [], 0
    while at < len(params):
        text = params[at]
        own = re.search(r'(\w+)(\[[^]]*\])?$', text)[1]
        nothing = text == 'void'
        options = re.match(r'const (tutti_\w+) \*(\w+)$', text)
        items = COUNT.match(text) and at + 1 < len(params) and (
            re.match(r'const (?!void|char)(\w+) \*(\w+)$', params[at + 1]) or
            re.match(r'(.* \**) ?const \*(\w+)$', params[at + 1]))
        if items:
            count = text.split()[0]
            taken[own] = f'const list<{items[1].strip()}> &{items[2]}'
            given += [f'{items[2]}.count<{count}>()', f'{items[2]}.data()']
            at += 1
        elif options and headers.options(options[1]):
            last.append(f'const {short(options[1])} &{own} = {{}}')
            lines.append(f'const ::{options[1]} {own}_ = {own};')
            given.append(f'&{own}_')
        elif not nothing:
            taken[own] = text
            given.append(own)
        at += 1
    named = [p for p in (macro[0] if macro else []) if p in taken]
    order = [taken[p] for p in named] + [text for own, text in taken.items() if own not in named]
    here = bool(macro) and ('TUTTI_AT' in macro[1] or 'TUTTI_BINARY_' in macro[1])
    return written(result, public, order + last, here, lines, f'(::{name})({", ".join(given)})')


def kinds(headers, name):
    """Layers, strategies, losses, metrics and initializers, which are macros only."""
    params, body = headers.body(name)
    match = re.match(r'TUTTI_(LOSS|METRIC)_\(("\w+"), __VA_ARGS__\)$', body)
    if match:
        kind = match[1].lower()
        return written(f'tutti_{kind} ', name, [f'const {kind} &settings = {{}}'], False,
                       [f'const ::tutti_{kind} like = settings;'], f'(::tutti_{kind}_by_name)({match[2]}, &like)')
    match = re.match(r'(?:tutti_init_make\()(\w+), (.*)\)$', body) or \
        re.match(r'(?:TUTTI_FULL_)(\()(__VA_ARGS__), \)$', body)
    if match:
        first = [p for p in params if p != '...']
        numbers = re.sub(r',? ?TUTTI_\w*DIMS_?\(.*', '', match[2])
        if match[1] == '(':
            return written('tutti_init ', name, ['double value', 'const list<int64_t> &dims = {}'], False, [],
                           '(::tutti_init_make)(TUTTI_INIT_FULL, value, 0, dims.count(), dims.data())')
        if 'ONE_DIMS' in match[2]:
            first.append('second')
            numbers += ', second'
        return written('tutti_init ', name, [f'double {p}' for p in first] + ['const list<int64_t> &dims = {}'], False,
                       [], f'(::tutti_init_make)({match[1]}, {numbers}, dims.count(), dims.data())')
    match = re.match(r'(tutti_layer_make|tutti_strategy_create)\( ?("\w+"), TUTTI_OPTIONS\((\w+), (.*)\)\)$', body)
    if not match:
        return ''
    maker, kind, struct, given = match.groups()
    taken, lines = [], [f'::{struct} c_ = settings;']
    for part in split(given, ','):
        size = re.match(r'TUTTI_SIZE_\((\w+),', part)
        member = re.match(r'\.(\w+) = (.*)$', part)
        if part == '__VA_ARGS__':
            continue
        if size:
            taken.append(f'int64_t {size[1]}')
            lines.append(f'c_.{size[1]}[0] = {size[1]};')
        elif member[1] == 'dims':
            taken.append('const list<int64_t> &dims')
            lines.append('std::copy_n(dims.data(), std::min(dims.count<std::size_t>(), std::size(c_.dims)), c_.dims);')
        elif member[1] == 'rank':
            lines.append('c_.rank = dims.count<int64_t>();')
        else:
            default = ' = nullptr' if member[1] == 'context' else ''
            taken.append(f'decltype(::{struct}::{member[1]}) {member[1]}{default}')
            lines.append(f'c_.{member[1]} = {member[1]};')
    result = 'tutti_layer *' if maker == 'tutti_layer_make' else 'tutti_strategy *'
    return written(result, name, taken + [f'const {short(struct)} &settings = {{}}'], result == 'tutti_layer *', lines,
                   f'(::{maker})({kind}, &c_)')


def macro_names(headers):
    """Functions whose macros have other names: {function: (name, macro)}."""
    names = {}
    for name, forms in headers.macros.items():
        for form in forms:
            for behind in re.findall(r'^(?:TUTTI_AT\( ?)?(tutti_\w+)\(', form[1]) + \
                    re.findall(r': (tutti_\w+)', form[1] if form[1].startswith('_Generic') else ''):
                if name.startswith('tutti_') and behind not in headers.macros:
                    names[behind] = (name, form)
    return names


def main():
    headers = Headers(sys.argv[1])
    names = macro_names(headers)
    options = [s for s in headers.structs if headers.options(s)] + ['tutti_loss', 'tutti_metric']
    elements = {e for s in options for d, _ in headers.members(s)
                for e in re.findall(r'^struct \{.*?(tutti_\w+) \*\w+; ?\}', d)
                if e in headers.structs and e != 'tutti_sym'}
    parts = [HEAD]
    parts += [twin(headers, s, elements) for s in sorted(elements - set(options)) + options]
    for result, name, params in headers.functions:
        macros = headers.macros.get(name)
        public, macro = names.get(name, (name, macros[-1] if macros else None))
        parts.append(function(headers, result, name, split(params, ','), public, macro))
        if macro and ('TUTTI_BINARY_' in macro[1] or 'TUTTI_OPERANDS_' in macro[1]):
            for side in ('tutti_sym a', 'tutti_sym b'):
                numbered = params.replace(side, side.replace('tutti_sym', 'double'))
                parts.append(function(headers, result, name, split(numbered, ','), public, macro))
    parts += [kinds(headers, name) for name in headers.macros if name.startswith('tutti_')]
    text = '\n'.join(part for part in parts if part) + '\n} // namespace tutti\n\n#endif\n'
    with open(sys.argv[2], 'w', encoding='utf-8') as file:
        file.write(text)
    with open(sys.argv[3], 'w', encoding='utf-8') as file:
        file.write(f'{sys.argv[2]}: {" ".join(headers.paths)}\n')


if __name__ == '__main__':
    main()
