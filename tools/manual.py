#!/usr/bin/env python3
"""Makes the manual page and the shells' completions of `tutti` from what the command itself says.

    manual.py FOLDER --guide docs/guide/command.md COMMAND...   COMMAND: how to start tutti

writes FOLDER/tutti.1, tutti (bash), _tutti (zsh) and tutti.fish. `tutti --help` gives the
subcommands, `tutti X --help` their arguments; the page of the guide gives the environment. So they
cannot say anything else than the program."""
import argparse
import os
import re
import subprocess
import sys

ENTRY = re.compile(r'^( +)(\S.*?)  +(\S.*)$')  # "  --option VALUE   what it does"
LISTED = re.compile(r'^()(\S+)  +(\S.*)$')  # "make     what it does"
OPTION = re.compile(r'(?<![\w-])(--[a-z][a-z-]*|-[a-z](?=, --))(?:[ =](\[?(?:[a-z]+=)?[A-Z][\w=\[\].:,-]*|\w+(?:\|\w+)+|[a-z]+\.[a-z]+))?')
LIST_BEGINS = re.compile(r'\n(?=(?:\w+  +\S.*(?:\n {4,}.*)*(?:\n|$)){2})')
CHOICES = re.compile(r'^(\w+(?:, \w+)* or \w+)(?=$|[;,])')
SETTING = re.compile(r'--set (\w+=\w[\w.]*\w|\w+=\w)')
CODES = re.compile(r'(exit codes:)( +\S+ +)(?=\S)')
FILES = re.compile(r'FILE|DIR|PATH|PROGRAM|OUT|IN\b|\.\w+')


class Command:
    """One subcommand, as its help tells it."""

    def __init__(self, name, summary, text):
        self.name, self.summary = name, summary
        usage, _, rest = text.partition('\n\n')
        self.usage = [re.sub(r'^usage: ', '', line).strip() for line in usage.split('\n')]
        self.paragraphs = [p for p in LIST_BEGINS.sub('\n\n', rest).strip('\n').split('\n\n') if p]
        self.verbs = list(dict.fromkeys(re.findall(rf'\btutti {name} ([a-z]+)\b', text)))
        self.names = self._names()
        lists = [options_of(line) for line in rest.split('\n')]
        forms = self.usage + [line for line in lists if line.startswith('tutti ')]
        self.takes_files = any(FILES.search(OPTION.sub('', form)) for form in forms)
        self.options = {}  # --name -> (value or None, choices, what it does)
        for line in self.usage + [line for line in rest.split('\n') if options_of(line)]:
            self._add_options(line)
        self._add_settings(text)

    def _names(self):
        """The examples that `train` lists behind its help."""
        for paragraph in self.paragraphs:
            if paragraph.startswith('names:'):
                return [line.split()[0] for line in paragraph.split('\n')[1:]]
        return []

    def _add_options(self, line):
        entry = ENTRY.match(line)
        words = entry.group(3) if entry and entry.group(2).startswith('-') else ''
        for name, value in OPTION.findall(options_of(line) or line):
            old_value, old_choices, old_words = self.options.get(name, ('', [], ''))
            value = old_value or re.sub(r'[][]', '', value)
            choices = value.split('|') if '|' in value else old_choices
            listed = CHOICES.match(words)
            if value and listed and not choices:
                choices = re.split(r', | or ', listed.group(1))
            self.options[name] = (value, choices, old_words or (words if name in entry_names(entry) else ''))
        alias = re.match(r' *(-\w), (--[\w-]+)', line)
        if alias:  # "-n, --ranks N"
            self.options[alias.group(1)] = self.options[alias.group(2)]

    def _add_settings(self, text):
        """--set stands once for each setting: together they are what it does."""
        settings = list(dict.fromkeys(SETTING.findall(text)))
        if '--set' in self.options and settings:
            self.options['--set'] = ('KEY=VALUE', [], ', '.join(settings))

    def first_words(self):
        return self.names + [verb for verb in self.verbs if verb not in self.names]


def options_of(line):
    """The part of a line of help that names options, '' of prose: it begins with one, or with a form
    of the command. What is said of an option may speak of others, also of other commands'."""
    entry = ENTRY.match(line)
    part = entry.group(2) if entry else line.strip()
    return part if line.startswith(' ') and re.match(r'-|\[-|tutti ', part) else ''


def entry_names(entry):
    return re.findall(r'-+[a-z][a-z-]*', entry.group(2)) if entry else []


def ask(command, *arguments):
    return subprocess.run(command + list(arguments), check=True, capture_output=True, text=True,
                          encoding='utf-8').stdout


def read_commands(command):
    text = ask(command, '--help')
    title = text.split('\n')[0]
    listed = re.findall(r'^  ([a-z]\w*) +(\S.*)$', text.split('\n\n')[2], re.M)
    if not listed:
        raise SystemExit('manual.py: `tutti --help` lists no commands')
    commands = [Command(name, summary, ask(command, name, '--help')) for name, summary in listed]
    train = next(c for c in commands if c.name == 'train')
    for c in commands:
        if any('names of tutti train' in ' '.join(p.split()) for p in c.paragraphs):
            c.names = train.names
    return title, commands


# ---- the manual page ----

def roff(text):
    text = text.replace('\\', '\\e').replace('-', '\\-').replace("'", '\\(aq').replace('…', '...')
    return re.sub(r'^\.', '\\\\&.', text)


def roff_entries(paragraph):
    """Lines of two columns as tagged paragraphs, or None where they are something else."""
    lines, entries = paragraph.split('\n'), []
    pattern = ENTRY if lines[0].startswith(' ') else LISTED
    for line in lines:
        match = pattern.match(line)
        column = match and (not entries or match.group(1) == entries[0][0])
        if column:
            entries.append([match.group(1), match.group(2), match.group(3)])
        elif entries and re.match(r' {8,}\S', line):
            entries[-1][2] += ' ' + line.strip()
        else:
            return None
    return ''.join(f'.TP\n.B {roff(tag)}\n{roff(words)}\n' for _, tag, words in entries)


def roff_codes(paragraph, title, first):
    """A table that begins on the line of its title, as "exit codes: 0    words" does."""
    column, entries = len(title) + len(first), []
    for line in paragraph.split('\n'):
        tag, words = line[len(title):column].strip(), line[column:].strip()
        if tag:
            entries.append([tag, words])
        else:
            entries[-1][1] += ' ' + words
    return f'.PP\n{roff(title)}\n' + ''.join(f'.TP\n.B {roff(tag)}\n{roff(words)}\n' for tag, words in entries)


def roff_paragraph(paragraph):
    head, _, rest = paragraph.partition('\n')
    codes = CODES.match(head)
    if codes and rest.startswith(' '):
        return roff_codes(paragraph, *codes.groups())
    if head.endswith(':') and rest.startswith(' '):
        return f'.PP\n{roff(head)}\n' + roff_paragraph(rest)
    entries = roff_entries(paragraph)
    if entries:
        return entries
    if paragraph.startswith(' '):
        return '.PP\n.nf\n' + '\n'.join(roff(line) for line in paragraph.split('\n')) + '\n.fi\n'
    return '.PP\n' + '\n'.join(roff(line) for line in paragraph.split('\n')) + '\n'


def environment(path):
    """Rows of the table below "## Environment": (names, default, words)."""
    with open(path, encoding='utf-8') as file:
        text = file.read().partition('## Environment')[2]
    rows = re.findall(r'^\| (`TUTTI_.*?) \| (.*?) ?\| (.*?) \|$', text, re.M)
    if not rows:
        raise SystemExit(f'manual.py: {path} has no table of the environment')
    return [[re.sub(r'\[(.*?)\]\(.*?\)', r'\1', cell).replace('`', '') for cell in row] for row in rows]


def manual(title, commands, rows):
    version = title.split(':')[0].split()[1]
    short = re.sub(r'.*?: ', '', title).rstrip('.')
    parts = [f'.TH TUTTI 1 "" "Tutti {version}" "User Commands"\n.SH NAME\ntutti \\- {roff(short)}\n'
             '.SH SYNOPSIS\n.B tutti\n.I COMMAND\n.RI [ OPTIONS ]\n.br\n.B tutti\n.I COMMAND\n.B \\-\\-help\n'
             '.br\n.B tutti \\-\\-version\n.SH DESCRIPTION\n'
             'Trains, evaluates and inspects models; runs jobs of several processes; measures the machine.\n'
             'Results go to standard output, complaints to standard error.\n.SH COMMANDS\n']
    for command in commands:
        parts.append(f'.SS {command.name}: {roff(command.summary)}\n.nf\n'
                     + ''.join(f'.B {roff(line)}\n' for line in command.usage) + '.fi\n')
        parts += [roff_paragraph(p) for p in command.paragraphs]
    parts.append('.SH ENVIRONMENT\nEvery flag of a job is read from TUTTI_<FLAG> too, as TUTTI_EPOCHS.\n')
    for names, default, words in rows:
        known = f' (default {default})' if default else ''
        parts.append(f'.TP\n.B {roff(names + known)}\n{roff(words)}\n')
    parts.append('.SH EXIT STATUS\n0 success, 1 the command failed, 2 wrong usage.\n'
                 '.SH SEE ALSO\nThe guide and the reference of the C API, installed with the documentation.\n')
    return ''.join(parts)


# ---- completions ----

def valued(commands, test):
    return sorted({name for c in commands for name, (value, choices, _) in c.options.items() if test(value, choices)})


def bash(commands):
    lines = ['# Completion of tutti for bash; made from its help.', '_tutti() {',
             '    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words= files=no',
             '    if [ "$COMP_CWORD" -eq 1 ]; then',
             f'        words="{" ".join(c.name for c in commands)} --help --version"', '    else',
             '        case ${COMP_WORDS[1]}/$before in']
    for c in commands:
        for name, (value, choices, _) in c.options.items():
            if choices:
                lines.append(f'            {c.name}/{name}) words="{" ".join(choices)}" ;;')
            elif value and FILES.search(value):
                lines.append(f'            {c.name}/{name}) files=yes ;;')
            elif value:
                lines.append(f'            {c.name}/{name}) return ;;')
    lines += ['            *)', '                case ${COMP_WORDS[1]} in']
    for c in commands:
        words = ' '.join(list(c.options) + ['--help'])
        first = f' [ "$COMP_CWORD" -ne 2 ] || words="{" ".join(c.first_words())} $words";' if c.first_words() else ''
        files = ' files=yes;' if c.takes_files else ''
        lines.append(f'                    {c.name}) words="{words}";{first}{files} ;;')
    lines += ['                esac ;;', '        esac', '    fi',
              '    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")',
              '    [ $files = no ] || { mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word"); '
              'compopt -o filenames 2> /dev/null; }',
              '}', 'complete -F _tutti tutti', '']
    return '\n'.join(lines)


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh(commands):
    def escaped(text):
        return re.sub(r'([][:\\])', r'\\\1', text)

    def spec(name, value, choices, words):
        action = f'({" ".join(choices)})' if choices else '_files' if FILES.search(value) else ' '
        return quoted(f'*{name}[{escaped(words)}]' + (f':{escaped(value)}:{action}' if value else ''))
    lines = ['#compdef tutti', '# Completion of tutti for zsh; made from its help.', 'local -a commands', 'commands=(']
    lines += [f'    {quoted(c.name + ":" + escaped(c.summary))}' for c in commands]
    lines += [')', 'if (( CURRENT == 2 )); then', "    _describe 'command' commands", '    return', 'fi',
              'local command=${words[2]}', 'shift words', '(( CURRENT-- ))', 'case $command in']
    for c in commands:
        specs = [spec(name, *rest) for name, rest in c.options.items()]
        specs.append(quoted('--help[tells more]'))
        if c.first_words():
            specs.append(quoted(f'1:what:({" ".join(c.first_words())})'))
        if c.takes_files or not c.first_words():
            specs.append(quoted('*:file:_files'))
        lines.append(f'    {c.name}) _arguments ' + ' '.join(specs) + ' ;;')
    return '\n'.join(lines + ['esac', ''])


def fish(commands):
    lines = ['# Completion of tutti for fish; made from its help.', 'complete -c tutti -f',
             "complete -c tutti -n __fish_use_subcommand -l help -d 'lists the commands'",
             "complete -c tutti -n __fish_use_subcommand -l version -d 'prints the version'"]
    for c in commands:
        lines.append(f'complete -c tutti -n __fish_use_subcommand -a {c.name} -d {quoted(c.summary)}')
        where = f"complete -c tutti -n '__fish_seen_subcommand_from {c.name}'"
        if c.first_words():
            lines.append(f'{where} -a {quoted(" ".join(c.first_words()))}')
        if c.takes_files:
            lines.append(f'{where} -F')
        for name, (value, choices, words) in c.options.items():
            flag = f'-l {name[2:]}' if name.startswith('--') else f'-s {name[1:]}'
            takes = f' -x -a {quoted(" ".join(choices))}' if choices else \
                    ' -r -F' if FILES.search(value) else ' -x' if value else ''
            lines.append(f'{where} {flag}{takes}' + (f' -d {quoted(words)}' if words else ''))
    return '\n'.join(lines + [''])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('folder')
    parser.add_argument('--guide', required=True)
    parser.add_argument('command', nargs='+')
    options = parser.parse_args()
    title, commands = read_commands(options.command)
    for name, text in [('tutti.1', manual(title, commands, environment(options.guide))),
                       ('tutti', bash(commands)), ('_tutti', zsh(commands)), ('tutti.fish', fish(commands))]:
        with open(os.path.join(options.folder, name), 'w', encoding='utf-8') as file:
            file.write(text)


if __name__ == '__main__':
    sys.exit(main())
