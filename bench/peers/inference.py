#!/usr/bin/env python3
"""ONNX files answered by ours and by onnxruntime, in turn on the same cores; prints one table.

    inference.py [--tutti build/tutti] [--python PYTHON] [--threads N] [--rounds N] [--seconds S]
                 [--models DIR] [--nice N] [--json] [WORK...]

PYTHON has torch, numpy, onnx and onnxruntime; this script itself needs nothing. Works: mnist, cifar
and text are examples of ours, exported by `tutti export`; mobilenet and resnet18 are networks with
random weights, exported by PyTorch. Both contenders have a process each that lives through all rounds
and is asked in turn, so that a disturbance meets both; the best round of each counts. onnxruntime runs
as its users call it and with bound inputs and outputs, whichever is faster.

Process start to first answer: until the process says that it has it, ours with the model read and
compiled, onnxruntime's with Python and its imports, and beside it onnxruntime's session and first run
alone, of a library that is loaded already."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = {'mnist': [], 'cifar': [], 'text': ['--set', 'blocks=4']}
WORKS = {'mnist': 1.2, 'cifar': 1.2, 'text': 1.2, 'mobilenet': 0.9, 'resnet18': 0.9}  # wanted
BATCHES = 1, 32
WANTED_START = 5.0
LARGEST_ERROR = 1e-4  # relative to the largest output


# ---- in the peers' Python ----

def networks(torch):
    """MobileNetV2 and ResNet-18, as torchvision has them."""
    nn = torch.nn

    def layer(channels, filters, size=3, stride=1, groups=1, activation=nn.ReLU6):
        parts = [nn.Conv2d(channels, filters, size, stride, size // 2, groups=groups, bias=False),
                 nn.BatchNorm2d(filters)]
        return nn.Sequential(*parts, *([activation()] if activation else []))

    class Inverted(nn.Module):
        def __init__(self, channels, filters, stride, widen):
            super().__init__()
            wide = channels * widen
            parts = [layer(channels, wide, 1)] if widen > 1 else []
            parts += [layer(wide, wide, 3, stride, wide), layer(wide, filters, 1, activation=None)]
            self.parts = nn.Sequential(*parts)
            self.shortcut = stride == 1 and channels == filters

        def forward(self, x):
            return x + self.parts(x) if self.shortcut else self.parts(x)

    class Basic(nn.Module):
        def __init__(self, channels, filters, stride):
            super().__init__()
            self.parts = nn.Sequential(layer(channels, filters, 3, stride, activation=nn.ReLU),
                                       layer(filters, filters, activation=None))
            same = stride == 1 and channels == filters
            self.beside = nn.Identity() if same else layer(channels, filters, 1, stride, activation=None)

        def forward(self, x):
            return torch.relu(self.parts(x) + self.beside(x))

    def mobilenet():
        parts, channels = [layer(3, 32, 3, 2)], 32
        for widen, filters, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                              (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for i in range(count):
                parts.append(Inverted(channels, filters, stride if i == 0 else 1, widen))
                channels = filters
        parts += [layer(channels, 1280, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)]
        return nn.Sequential(*parts)

    def resnet18():
        parts, channels = [layer(3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
        for filters, stride in ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1)):
            parts.append(Basic(channels, filters, stride))
            channels = filters
        return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))

    return {'mobilenet': mobilenet, 'resnet18': resnet18}


def export(folder, works):
    import warnings
    import torch
    warnings.simplefilter('ignore')
    torch.manual_seed(1)
    for name, make in networks(torch).items():
        if name not in works:
            continue
        model = make()
        for part in model.modules():  # as after training: no statistics of 0 and 1
            if isinstance(part, torch.nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
        axes = {'x': {0: 'batch'}, 'y': {0: 'batch'}}
        torch.onnx.export(model.eval(), torch.randn(1, 3, 224, 224), os.path.join(folder, f'{name}.onnx'),
                          input_names=['x'], output_names=['y'], dynamic_axes=axes, dynamo=False)


def open_session(file, threads):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=['CPUExecutionProvider'])


def make_input(session, batch):
    import numpy
    given = session.get_inputs()[0]
    shape = [batch if i == 0 else size for i, size in enumerate(given.shape)]
    draw = numpy.random.default_rng(1)
    if 'float' in given.type:
        return given.name, draw.standard_normal(shape).astype(numpy.float32)
    return given.name, draw.integers(0, 10, shape).astype(numpy.int64 if '64' in given.type else numpy.int32)


def best_of(work, seconds):
    best, began, done = float('inf'), time.perf_counter(), 0
    while done < 3 or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        done += 1
    return best


def answer(given):
    """The other contender: its first answer, then a round for each line "SECONDS"."""
    import resource
    import onnxruntime
    start = time.perf_counter()
    session = open_session(given.answer, given.threads)
    created = time.perf_counter()
    name, x = make_input(session, given.batch)
    feed = {name: x}
    made = time.perf_counter()
    session.run(None, feed)
    alone = time.perf_counter() - made + created - start
    print(json.dumps({'alone_ms': alone * 1e3, 'version': onnxruntime.__version__,
                      'resident_mib': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)
    binding = session.io_binding()
    binding.bind_cpu_input(name, x)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    for line in sys.stdin:
        seconds = float(line) / 2
        plain = best_of(lambda: session.run(None, feed), seconds)
        bound = best_of(lambda: session.run_with_iobinding(binding), seconds)
        print(json.dumps({'ms': min(plain, bound) * 1e3,
                          'resident_mib': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


def check(given):
    """The largest difference of outputs, relative to the largest output."""
    import numpy
    session = open_session(given.check, given.threads)
    name, x = make_input(session, given.batch)
    theirs = session.run(None, {name: x})
    with tempfile.TemporaryDirectory() as folder:
        numpy.save(f'{folder}/x.npy', x)
        subprocess.run([given.tutti, 'predict', given.check, '--input', f'{name}={folder}/x.npy',
                        '--output', f'{folder}/y.npz'], check=True, stdout=subprocess.DEVNULL)
        ours = numpy.load(f'{folder}/y.npz')
        worst = max(float(numpy.abs(ours[output.name] - value).max() / numpy.abs(value).max())
                    for output, value in zip(session.get_outputs(), theirs))
    print(json.dumps({'error': worst}))


# ---- the driver ----

def fail(text):
    print(f'inference.py: {text}', file=sys.stderr)
    sys.exit(1)


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, **options)
    if done.returncode:
        fail(f'{" ".join(command[:4])}: {(done.stderr.strip() or "no message").splitlines()[-1]}')
    return done.stdout


def make_models(given, works, folder):
    for name, settings in EXAMPLES.items():
        if name in works and not os.path.exists(f'{folder}/{name}.onnx'):
            subprocess.run([given.tutti, 'train', name, '--epochs', '1', '--steps-per-epoch', '1', '--quiet',
                            '--save', name, *settings], cwd=folder, check=False, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)  # one step is too few for what the example expects
            run([given.tutti, 'export', name, f'{name}.onnx'], cwd=folder)
    left = [name for name in works if not os.path.exists(f'{folder}/{name}.onnx')]
    if left:
        run([given.python, '-B', __file__, '--export', folder, *left])


class Contender:
    """A process that answers in turn."""

    def __init__(self, command, environment=None):
        start = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.PIPE, env=os.environ | (environment or {}))
        self.first = self.read()
        self.first_ms = (time.perf_counter() - start) * 1e3

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            fail((self.process.stderr.read().strip() or 'a contender ended').splitlines()[-1])
        return json.loads(line)

    def round(self, seconds):
        self.process.stdin.write(f'{seconds}\n')
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait()


def nice(given):
    return ['nice', '-n', str(given.nice)] if given.nice else []


def ours(given, file, batch, *more):
    return Contender(nice(given) + [given.tutti, 'bench', 'infer', file, '--batch', str(batch), '--threads',
                                    str(given.threads), '--json', *more])


def theirs(given, file, batch):
    return Contender(nice(given) + [given.python, '-B', __file__, '--answer', file, '--batch', str(batch),
                                    '--threads', str(given.threads)], {'OMP_NUM_THREADS': str(given.threads)})


def steady(given, file, batch):
    pair = ours(given, file, batch, '--paced'), theirs(given, file, batch)
    best, resident = [float('inf')] * 2, [0, 0]
    for _ in range(given.rounds):
        for i, contender in enumerate(pair):
            line = contender.round(given.seconds)
            best[i], resident[i] = min(best[i], line['ms']), line['resident_mib']
            time.sleep(0.02)  # threads that wait for more work spin a little
    for contender in pair:
        contender.close()
    return {'ms': best, 'resident_mib': resident, 'version': pair[1].first['version']}


def starts(given, file):
    """Least milliseconds to the first answer: our process, theirs, their session alone."""
    least = [float('inf')] * 3
    for _ in range(given.rounds):
        for i in range(2):
            contender = theirs(given, file, 1) if i else ours(given, file, 1, '--cold')
            contender.close()
            least[i] = min(least[i], contender.first_ms)
            if i:
                least[2] = min(least[2], contender.first['alone_ms'])
    return least


def measure(given, works, folder):
    rows, first, version = [], [], 'unknown'
    for name in works:
        file = f'{folder}/{name}.onnx'
        for batch in BATCHES:
            row = steady(given, file, batch)
            version = row['version']
            error = json.loads(run([given.python, '-B', __file__, '--check', file, '--batch', str(batch), '--tutti',
                                    given.tutti, '--threads', str(given.threads)]))['error']
            rows.append({'work': name, 'batch': batch, 'tutti_ms': row['ms'][0], 'onnxruntime_ms': row['ms'][1],
                         'times': row['ms'][1] / row['ms'][0], 'wanted': WORKS[name], 'error': error,
                         'tutti_mib': row['resident_mib'][0], 'onnxruntime_mib': row['resident_mib'][1]})
        least = starts(given, file)
        first.append({'work': name, 'first_ms': least[0], 'onnxruntime_first_ms': least[1],
                      'onnxruntime_session_ms': least[2], 'times': least[1] / least[0],
                      'times_session': least[2] / least[0], 'wanted': WANTED_START})
        if given.json:
            for row in rows[-len(BATCHES):] + first[-1:]:
                print(json.dumps(row), flush=True)
    return rows, first, version


def show(given, rows, first, version):
    print(f'{given.threads} threads each, best of {given.rounds} rounds in turn; onnxruntime {version}')
    print(f'{"work":<12}{"batch":>6}{"tutti ms":>11}{"onnxruntime":>13}{"times":>8}{"wanted":>8}{"error":>10}'
          f'{"MiB":>8}{"theirs":>8}')
    for r in rows:
        good = r['times'] >= r['wanted'] and r['error'] <= LARGEST_ERROR
        print(f'{r["work"]:<12}{r["batch"]:>6}{r["tutti_ms"]:>11.4g}{r["onnxruntime_ms"]:>13.4g}{r["times"]:>8.3g}'
              f'{r["wanted"]:>8g}{r["error"]:>10.1e}{r["tutti_mib"]:>8.0f}{r["onnxruntime_mib"]:>8.0f}'
              f'{"" if good else "  BEHIND" if r["error"] <= LARGEST_ERROR else "  WRONG"}')
    print('process start to first answer, batch 1, ms; session: onnxruntime without Python and its imports')
    for r in first:
        print(f'{r["work"]:<18}{r["first_ms"]:>11.4g}{r["onnxruntime_first_ms"]:>13.4g}{r["times"]:>8.3g}'
              f'{r["wanted"]:>8g}   session {r["onnxruntime_session_ms"]:.4g}, {r["times_session"]:.3g} times ours'
              f'{"" if r["times"] >= r["wanted"] else "  BEHIND"}')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('works', nargs='*', metavar='WORK', help=', '.join(WORKS))
    parser.add_argument('--tutti', default=os.path.join(HERE, '../../build/tutti'))
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--rounds', type=int, default=10)
    parser.add_argument('--seconds', type=float, default=0.3, help='of a round; at least 3 runs')
    parser.add_argument('--models', help='a folder for the files; what is there is not made again')
    parser.add_argument('--nice', type=int, default=0)
    parser.add_argument('--json', action='store_true', help='every result as it comes, no table')
    for role in ('--export', '--answer', '--check'):
        parser.add_argument(role, help=argparse.SUPPRESS)
    parser.add_argument('--batch', type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.export:
        return export(given.export, given.works)
    if given.answer:
        return answer(given)
    if given.check:
        return check(given)
    unknown = [work for work in given.works if work not in WORKS]
    if unknown:
        parser.error(f'there is no {unknown[0]}; these exist: {", ".join(WORKS)}')
    given.tutti = os.path.abspath(given.tutti)
    works = given.works or list(WORKS)
    load = os.getloadavg()[0]
    if load > 0.5 * given.threads:
        print(f'the machine is busy (load {load:.1f}): ratios will be uncertain', file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        if given.models:
            os.makedirs(given.models, exist_ok=True)
            folder = os.path.abspath(given.models)
        make_models(given, works, folder)
        found = measure(given, works, folder)
        if not given.json:
            show(given, *found)
    return 0


if __name__ == '__main__':
    sys.exit(main())
