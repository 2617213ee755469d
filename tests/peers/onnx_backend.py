#!/usr/bin/env python3
"""ONNX's own node tests, run by Tutti: how many are covered, and which of them fail.

    python3 tests/peers/onnx_backend.py PROGRAM [DATA] [--verbose]

PROGRAM is tests/peers/onnx_backend.c, built (tests/peers/onnx_backend.sh does so). DATA is a folder
of node tests; by default that of the package onnx, or where it holds none, one that is made from it.
A test is covered when all that it needs is supported; the others name what is missing. Exit code 1
when less than 60 % are covered or less than 95 % of these pass. Needs onnx and numpy."""
import collections
import os
import subprocess
import sys
import tempfile

import onnx
from onnx import numpy_helper


RANDOM = ('test_bernoulli', 'test_training_dropout')


def write_cases(folder):
    """Node tests that the package makes in memory, as files."""
    from onnx.backend.test.case.node import collect_testcases
    for case in collect_testcases():
        if case.kind != 'node' or case.model is None:
            continue
        path = os.path.join(folder, case.name)
        os.makedirs(os.path.join(path, 'test_data_set_0'))
        onnx.save(case.model, os.path.join(path, 'model.onnx'))
        sets = case.data_sets() if callable(case.data_sets) else case.data_sets
        inputs, outputs = list(sets)[0]
        for what, ports, values in (('input', case.model.graph.input, inputs),
                                    ('output', case.model.graph.output, outputs)):
            for i, (port, value) in enumerate(zip(ports, values)):
                file = os.path.join(path, 'test_data_set_0', f'{what}_{i}.pb')
                with open(file, 'wb') as f:
                    f.write(to_bytes(port, value))


def to_bytes(port, value):
    if isinstance(value, onnx.TensorProto):
        return value.SerializeToString()
    if port.type.HasField('tensor_type'):
        return numpy_helper.from_array(value, port.name).SerializeToString()
    return b''


def find_cases(given):
    """The folder of the tests."""
    if given:
        return given
    folder = os.path.join(os.path.dirname(onnx.__file__), 'backend', 'test', 'data', 'node')
    if os.path.isdir(folder):
        return folder
    folder = tempfile.mkdtemp()
    write_cases(folder)
    return folder


def operators(path):
    """The operator a test is about (that of its name), its domain, and whether it is a function's
    body written out."""
    model = onnx.load(os.path.join(path, 'model.onnx'), load_external_data=False)
    domains = {node.domain for node in model.graph.node} | {o.domain for o in model.opset_import}
    node = model.graph.node[0] if len(model.graph.node) == 1 else None
    return (node.op_type if node else '(several)'), domains <= {'', 'ai.onnx'}


def run(program, paths):
    """Each path with its answer; a crash counts as a failure of the test that was running."""
    answers = {}
    left = list(paths)
    while left:
        done = subprocess.run([program], input='\n'.join(left) + '\n', capture_output=True, text=True)
        for line in done.stdout.splitlines():
            kind, path, why = (line.split('\t', 2) + ['', ''])[:3]
            if kind in ('pass', 'fail', 'unsupported'):
                answers[path] = (kind, why)
        missing = [path for path in left if path not in answers]
        if missing:
            answers[missing[0]] = ('fail', f'the program ended with {done.returncode}')
        left = missing[1:]
    return answers


def report(answers, verbose):
    table = collections.defaultdict(collections.Counter)
    total = collections.Counter()
    for path, (kind, why) in sorted(answers.items()):
        operator, default = operators(path)
        if not default:
            continue
        if os.path.basename(path).startswith(RANDOM):
            kind, why = 'unsupported', 'draws numbers, which are our own'
        table[operator][kind] += 1
        total[kind] += 1
        if kind == 'fail' or (verbose and kind == 'unsupported'):
            print(f'{kind:12}{os.path.basename(path)}: {why}')
    print(f'\n{"operator":32}{"tests":>6}{"pass":>6}{"fail":>6}{"not covered":>13}')
    for operator, count in sorted(table.items()):
        print(f'{operator:32}{sum(count.values()):6}{count["pass"]:6}{count["fail"]:6}'
              f'{count["unsupported"]:13}')
    covered = total['pass'] + total['fail']
    every = covered + total['unsupported']
    print(f'\n{every} tests of the default domain; {covered} covered '
          f'({100 * covered / every:.1f} %), of these {total["pass"]} pass '
          f'({100 * total["pass"] / max(1, covered):.1f} %)')
    return covered >= 0.6 * every and total['pass'] >= 0.95 * covered


def main(arguments):
    verbose = '--verbose' in arguments
    arguments = [a for a in arguments if a != '--verbose']
    folder = find_cases(arguments[1] if len(arguments) > 1 else None)
    paths = sorted(os.path.join(folder, name) for name in os.listdir(folder)
                   if os.path.exists(os.path.join(folder, name, 'model.onnx')))
    return 0 if report(run(arguments[0], paths), verbose) else 1


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
