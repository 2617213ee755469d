#!/usr/bin/env python3
"""Models that Tutti exports, checked by onnx and run by onnxruntime.

    python3 tests/peers/onnx_check.py FOLDER                             (written by onnx.c)
    python3 tests/peers/onnx_check.py model.onnx inputs.npz outputs.npz

Every file passes onnx.checker with strict shape inference, and gives the outputs that Tutti gave,
to 1e-4 of the larger of 1 and the value. Needs numpy, onnx and onnxruntime."""
import glob
import os
import sys

import numpy as np
import onnx
import onnxruntime

TOLERANCE = 1e-4


def check(model_path, inputs_path, outputs_path):
    model = onnx.load(model_path)
    onnx.checker.check_model(model, full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model_path, options, providers=['CPUExecutionProvider'])
    inputs, expected = np.load(inputs_path), np.load(outputs_path)
    names = [output.name for output in session.get_outputs()]
    if names != list(expected.keys()):
        raise AssertionError(f'outputs are {names}, expected {list(expected.keys())}')
    network = not os.path.basename(model_path).startswith('op_')
    for name in names:
        if network and (not np.isfinite(expected[name]).all() or np.ptp(expected[name]) == 0):
            raise AssertionError(f'{name} proves nothing: it is constant or not finite')
    feeds = {i.name: inputs[i.name] for i in session.get_inputs()}
    worst = compare(names, session.run(None, feeds), expected)
    # The batch is free: the first example alone gives the first outputs.
    if network:
        alone = session.run(None, {name: value[:1] for name, value in feeds.items()})
        worst = max(worst, compare(names, alone, {name: expected[name][:1] for name in names}))
    transposes = sum(node.op_type == 'Transpose' for node in model.graph.node)
    print(f'{os.path.basename(model_path)}: {len(model.graph.node)} nodes, '
          f'{transposes} of them transposes, largest difference {worst:.2g}')


def compare(names, results, expected):
    """The largest difference; a mistake when it is too large."""
    worst = 0.0
    for name, result in zip(names, results):
        wanted = expected[name]
        if result.shape != wanted.shape or result.dtype != wanted.dtype:
            raise AssertionError(f'{name} is {result.dtype}{result.shape}, '
                                 f'expected {wanted.dtype}{wanted.shape}')
        result, wanted = result.astype(np.float64), wanted.astype(np.float64)
        same = (result == wanted) | (np.isnan(result) & np.isnan(wanted))
        with np.errstate(invalid='ignore'):
            error = np.where(same, 0, np.abs(result - wanted) / np.maximum(1, np.abs(wanted)))
        error = float(error.max(initial=0))
        if not error <= TOLERANCE:  # NaN differs too
            raise AssertionError(f'{name} differs by {error:g}')
        worst = max(worst, error)
    return worst


def main(arguments):
    if len(arguments) == 3:
        check(*arguments)
        return 0
    failures = 0
    for path in sorted(glob.glob(os.path.join(arguments[0], '*.onnx'))):
        stem = os.path.join(arguments[0], os.path.basename(path).split('.')[0])
        try:
            check(path, stem + '.inputs.npz', stem + '.outputs.npz')
        except Exception as error:  # every file gets its line
            print(f'{os.path.basename(path)}: {error}')
            failures += 1
    return 1 if failures else 0


if __name__ == '__main__':
    if len(sys.argv) not in (2, 4):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1:]))
