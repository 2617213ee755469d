#!/usr/bin/env python3
"""Holds the command lines of the documentation against the programs: commands.py LIST TUTTI ROOT

LIST has lines PLACE|COMMAND (see docs.py). A target of make must exist. What takes no time and no
files is run; of the others the subcommand must exist and every option stand in its help."""
import re
import subprocess
import sys

RUN = re.compile(r'tutti (data|plan (?!.*--(links|measured))[^|]*|ops|doctor)$')


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True, encoding='utf-8', timeout=120)
    return done.returncode, done.stdout + done.stderr


def complaint(line, tutti, root):
    """What is wrong with a command line, or None."""
    program, *words = line.split()
    if program == 'make':
        targets = [w for w in words if '=' not in w]
        code, text = output('make', '-s', '-C', root, '-n', '-q', *targets)
        return text if code == 2 else None
    if RUN.match(line):
        code, text = output(tutti, *words)
        return None if code == 0 else text
    code, help_text = output(tutti, words[0], '--help')
    if code != 0:
        return help_text
    if len(words) > 1 and re.fullmatch('[a-z]+', words[1]):
        help_text += output(tutti, words[0], words[1], '--help')[1]
    if words[0] == 'run':  # what follows the program is the program's
        end = next((i for i, w in enumerate(words) if w.startswith('./') or w == 'tutti'), len(words))
        wrong = complaint(' '.join(words[end:]), tutti, root) if words[end:][:1] == ['tutti'] else None
        if wrong:
            return wrong
        words = words[:end]
    unknown = [w for w in words if w.startswith('-') and not re.search(rf'(?<![\w-]){w}(?![\w-])', help_text)]
    return f'its help does not know {", ".join(unknown)}' if unknown else None


def main(path, tutti, root):
    passed = failed = 0
    with open(path, encoding='utf-8') as file:
        for place, line in (one.rstrip('\n').split('|', 1) for one in file):
            wrong = complaint(line, tutti, root)
            passed, failed = passed + (wrong is None), failed + (wrong is not None)
            if wrong is not None:
                print(f'{place}: {line}\n  {wrong.strip()}')
    print(f'{passed} passed, {failed} failed')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
