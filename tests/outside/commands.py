#!/usr/bin/env python3
"""Holds the command lines of the documentation against the programs: commands.py LIST TUTTI ROOT

LIST has lines PLACE|COMMAND (see docs.py). A target of make must exist. What takes no time and no
files is run; of the others the subcommand must exist and every option stand in its help. Beside
them: what --json prints must be JSON, and misspelt words must be answered with what was meant."""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

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


# ---- answers in JSON ----

# Lines run in an empty folder, first those that make what the others look at.
MADE = ['train softmax --epochs 1 --steps-per-epoch 2 --lr 1e30 --logs logs --save soft --quiet',
        'train tickets --epochs 1 --steps-per-epoch 1 --save tickets --quiet --set expect=0',
        'data make digits digits --limit 10', 'data make digits npz --limit 10 --format npz',
        'data make cifar10 cifar --limit 10', 'export tickets tickets.onnx']
JSON = ['data --json', 'data inspect odd.csv --json', 'ops --json', 'show . --json', 'show pixel.png --json',
        'show odd.csv --json', 'show odd.safetensors --json', 'show soft.checkpoint.safetensors --json',
        'show tickets.safetensors --json', 'show tickets.json --json', 'show tickets.onnx --json',
        'show logs/train/* --json', 'show digits/train-images-idx3-ubyte --json',
        'show npz/train.npz --json', 'show whole.npy --json', 'show cifar/test_batch.bin --json',
        'show odd.txt --json', 'plan collectives --ranks 4 --alpha 1us --beta 1ns --json',
        'plan softmax --ranks 2 --json', 'train softmax --epochs 1 --steps-per-epoch 2 --lr 1e30 --json',
        'predict tickets --input title=whole.npy --input body=whole.npy --input tags=twelve.npy --json']


def write_npy(name, code, dims, data):
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {dims}, }}\n".encode()
    with open(name, 'wb') as file:
        file.write(b'\x93NUMPY\1\0' + struct.pack('<H', len(header)) + header + data)


def write_files():
    """Names and values that have to be quoted, an entry that cannot be read, arrays for predict."""
    header = json.dumps({'__metadata__': {'odd "key"': '{"loss": 2.5}\\', 'line': 'a\nb'},
                         'a "tensor"': {'dtype': 'F32', 'shape': [1], 'data_offsets': [0, 4]}}).encode()
    with open('odd.safetensors', 'wb') as file:
        file.write(struct.pack('<Q', len(header)) + header + bytes(4))
    with open('odd.csv', 'w', encoding='utf-8') as file:
        file.write('"a ""column""",b\\\n1,2\n')
    with open('odd.txt', 'w', encoding='utf-8') as file:
        file.write('"one\n')
    with open('pixel.png', 'wb') as file:
        file.write(bytes.fromhex('89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154'
                                 '789c63606060000000040001f61738550000000049454e44ae426082'))
    os.symlink('nowhere', 'a "dangling" link')
    write_npy('whole.npy', '<f4', (1, 3), struct.pack('<3f', 1, 2, 3))
    write_npy('halves.npy', '<f4', (1, 3), struct.pack('<3f', 1, 2.5, 3))
    write_npy('twelve.npy', '<f4', (1, 12), bytes(48))


def run(tutti, line):
    """-> (exit code, standard output, standard error) of the command line"""
    done = subprocess.run(['bash', '-c', f'"$0" {line}', tutti], capture_output=True, text=True, encoding='utf-8',
                          timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def refuse(word):
    raise ValueError(f'{word} is not JSON')


def json_complaint(line, tutti):
    """What keeps a parser from reading the lines that a command prints, or None."""
    code, text, error = run(tutti, line)
    if code != 0 or not text:
        return error or 'printed nothing'
    for one in text.splitlines():
        try:
            json.loads(one, parse_constant=refuse)
        except ValueError as wrong:
            return f'{wrong}: {one}'
    return None


# ---- what was meant ----

ASKED = '--input body=whole.npy --input tags=twelve.npy'
ANSWERS = [('eval tickets --jsno', "'--jsno' is no flag of eval; is '--json' meant?"),
           ('predict tickets --jsno', "is '--json' meant?"),
           ('export tickets out.onnx --opst 17', "is '--opset' meant?"),
           ('show tickets.json --jason', "is '--json' meant?"),
           ('data make digits out --limt 3', "'--limt' is no flag of data; is '--limit' meant?"),
           ('data mak digits out', "is 'make' meant?"),
           ('data inspect mnits', "is 'mnist' meant?"),
           ('ops rleu', "is 'relu' meant?"),
           ('bench setp', "is 'step' meant?"),
           ('bench gemm_libraries --round 3', "is '--rounds' meant?"),
           ('run --rank 2 true', "is '--ranks' meant?"),
           ('plan softmax --ranks 2 --flop 1e12', "is '--flops' meant?"),
           ('plan softmax --ranks 2 --epoch 1', "is '--epochs' meant?"),
           ('plan collectives --ranks 4 --alpha 1us --beta 1ns --simulat', "is '--simulate' meant?"),
           (f'predict tickets --input titel=whole.npy {ASKED}', "the model has no input 'titel'; is 'title' meant?"),
           (f'predict tickets --input title=whole.npy --input title=whole.npy {ASKED}',
            "--input 'title' is given twice"),
           (f'predict tickets --input title=halves.npy {ASKED}',
            "input 'title' takes i32, but its array is f32 and element 1 is 2.5"),
           ('train softmax --lr 1e35', 'it is from 0 to 1e+30'),
           ('train mnist --set memory=1KiB', 'the limit is 1.00 KiB')]


def answer_complaint(line, words, tutti):
    code, _, error = run(tutti, line)
    return None if code in (1, 2) and words in error else f'not "{words}" but {code}: {error}'


def check_answers(tutti):
    """-> a list of (command line, what is wrong with its answer, or None)"""
    before, tutti = os.getcwd(), os.path.abspath(tutti)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        write_files()
        checked = [(line, error if code else None) for line in MADE for code, _, error in [run(tutti, line)]]
        checked += [(line, json_complaint(line, tutti)) for line in JSON]
        checked += [(line, answer_complaint(line, words, tutti)) for line, words in ANSWERS]
        os.chdir(before)
    return checked


def main(path, tutti, root):
    passed = failed = 0
    for line, wrong in check_answers(tutti):
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        if wrong is not None:
            print(f'tutti {line}\n  {wrong.strip()}')
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
