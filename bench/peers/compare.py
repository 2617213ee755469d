#!/usr/bin/env python3
"""Ours and the peers' in turn, on the same threads; prints one table with the ratio to the best peer.

    compare.py [--tutti build/tutti] [--python PYTHON] [--kann PROGRAM] [--threads N] [--rounds N]
               [--json] [WORK...]

PYTHON has the peers; this script itself needs nothing. In each round every contender has one process
for each work; the best round of each counts. A peer that is missing or fails is said so below the
table."""
import argparse
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ['pytorch', 'pytorch-fused', 'pytorch-last', 'pytorch-compiled', 'pytorch-im2col',
           'tensorflow', 'tensorflow-xla', 'kann']
HIGHER = {'GFLOP/s', 'samples/s'}
LIMIT_SECONDS = 600

Work = collections.namedtuple('Work', 'ours script arguments peers')


def step(name, batch, precision='f32', images=False, kann=False):
    peers = ['pytorch', 'pytorch-fused'] + ['pytorch-last'] * images
    peers += ['pytorch-compiled', 'tensorflow', 'tensorflow-xla'] + ['kann'] * kann
    arguments = ['--batch', str(batch), '--precision', precision]
    return Work(['step', name] + arguments, 'step.py', ['--work', name] + arguments, peers)


WORKS = {
    'mnist': step('mnist', 64, images=True, kann=True),
    'epoch': Work(['epoch'], 'epoch.py', [],
                  ['pytorch', 'pytorch-fused', 'tensorflow', 'tensorflow-xla']),
    'cifar4': step('cifar', 4, images=True, kann=True),
    'cifar': step('cifar', 64, images=True, kann=True),
    'tickets': step('tickets', 32),
    'text': step('text', 32),
    'text-bf16': step('text', 32, 'bf16'),
    'resnet': step('resnet', 64, images=True),
    'conv': Work(['conv'], 'conv.py', [], ['pytorch-last', 'pytorch-im2col', 'tensorflow']),
    'gemm': Work(['gemm'], 'gemm.py', [], ['pytorch', 'tensorflow']),
    'fused': Work(['fused'], 'fused.py', [],
                  ['pytorch', 'pytorch-compiled', 'tensorflow', 'tensorflow-xla']),
    'dispatch': Work(['dispatch'], 'dispatch.py', [], ['pytorch', 'tensorflow']),
}
STEPS = [name for name, work in WORKS.items() if work.script == 'step.py']
# What we call otherwise than the peers, for which there is no trace to speak of.
ALIASES = {'scalar addition, trace on': 'scalar addition', 'empty session run': 'empty run'}
# How many times better than the best peer we want to be, by (bench, work). Of convolutions: than each
# peer.
WANTED = {
    ('step', 'mnist, batch 64, f32'): 2.0,
    ('epoch', 'MNIST epoch through fit, batch 64'): 2.5,
    ('step', 'cifar, batch 4, f32'): 4.0,
    ('step', 'cifar, batch 64, f32'): 2.0,
    ('step', 'tickets, batch 32, f32'): 2.0,
    ('step', 'text, batch 32, f32'): 1.3,
    ('step', 'text, batch 32, bf16'): 1.3,
    ('step', 'resnet, batch 64, f32'): 1.2,
}
WANTED_CONV = {'pytorch-im2col': 1.5}  # the others: 1


class Failed(Exception):
    pass


def run(command, environment=None):
    """The JSON lines that a command prints."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT_SECONDS, check=False, env=os.environ | (environment or {}))
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Failed(str(error)) from error
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ['no message']
        raise Failed(f'exit code {done.returncode}: {last[0][:150]}')
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def our_rows(line):
    """(bench, work, unit, value, share of peak) of one of our lines."""
    if 'name' not in line:
        yield line['bench'], ALIASES.get(line['work'], line['work']), line['unit'], line['value'], None
        return
    work = f'{line["name"]}, batch {line["batch"]}, {line["precision"]}'
    yield 'step', work, 'ms', line['ms'], line['share_of_peak']
    if line['name'] == 'mnist':
        first = f'{work}: process start to first finished step'
        yield 'step', first, 'ms', line['first_step_ms'], None
        yield 'step', f'{work}: resident memory', 'MiB', line['resident_mib'], None


class Results:
    """The best value of each (bench, work, unit) and contender."""

    def __init__(self, printing):
        self.best = collections.defaultdict(dict)
        self.shares = {}
        self.failures = {}
        self.versions = {}
        self.peaks = {}
        self.cpu = 'unknown CPU'
        self.printing = printing

    def add(self, contender, bench, work, unit, value, share=None):
        if self.printing:
            print(json.dumps({'bench': bench, 'work': work, 'peer': contender, 'value': value,
                              'unit': unit} | ({'share_of_peak': share} if share else {})), flush=True)
        key, better = (bench, work, unit), max if unit in HIGHER else min
        known = self.best[key].get(contender, value)
        self.best[key][contender] = better(known, value)
        if share:
            self.shares[key] = max(self.shares.get(key, 0), share)

    def ours(self, line):
        self.cpu = line.get('cpu', self.cpu).split(',')[0]
        if line['bench'] == 'peak':
            self.peaks[line['work']] = max(line['value'], self.peaks.get(line['work'], 0))
            return
        for row in our_rows(line):
            self.add('tutti', *row)

    def theirs(self, line, peer):
        self.versions[peer.split('-')[0]] = line['version']
        self.add(peer, line['bench'], line['work'], line['unit'], line['value'])

    def fail(self, name, contender, error):
        self.failures[name, contender] = str(error)
        if self.printing:
            print(json.dumps({'bench': name, 'peer': contender, 'error': str(error)}), flush=True)

    def share(self, key):
        """Of the machine's peak, that ours reaches; None where FLOPs are not known."""
        if key in self.shares:
            return self.shares[key]
        peak = self.peaks.get('bf16' if 'bf16' in key[1] else 'f32')
        return self.best[key]['tutti'] / peak if peak and key[2] == 'GFLOP/s' else None


def command_of(given, work, peer):
    if peer != 'kann':
        script = os.path.join(HERE, work.script)
        return [given.python, '-B', script, peer, '--threads', str(given.threads), *work.arguments]
    if not given.kann:
        raise Failed('not built: KANN_DIR names its source folder')
    return [given.kann, work.arguments[1], work.arguments[3], str(given.threads)]


def measure(results, name, given):
    work = WORKS[name]
    environment = {'TUTTI_THREADS': str(given.threads)}
    for command in (['peak'], work.ours):
        try:
            for line in run([given.tutti, 'bench', *command, '--json'], environment):
                results.ours(line)
        except Failed as error:
            results.fail(name, 'tutti', error)
    for peer in given.peers or work.peers:
        if peer not in work.peers:
            continue
        try:
            for line in run(command_of(given, work, peer)):
                results.theirs(line, peer)
        except Failed as error:
            results.fail(name, peer, error)


def ratio(values, unit, peer):
    """How many times better ours is."""
    times = values['tutti'] / values[peer]
    return times if unit in HIGHER else 1 / times


def verdict(key, values):
    """(times the best peer, its name, what is wanted, whether that is reached)."""
    bench, work, unit = key
    ratios = {peer: ratio(values, unit, peer) for peer in values if peer != 'tutti'}
    best = min(ratios, key=ratios.get)
    if bench == 'conv':
        wanted = {peer: WANTED_CONV.get(peer, 1.0) for peer in ratios}
        text = '/'.join(f'{limit:g}' for limit in sorted(set(wanted.values())))
        return ratios[best], best, text, all(ratios[p] >= wanted[p] for p in ratios)
    wanted = WANTED.get((bench, work), 1.0)
    return ratios[best], best, f'{wanted:g}', ratios[best] >= wanted


def warn_when_busy():
    load = os.getloadavg()[0]
    if load > 0.5 * len(os.sched_getaffinity(0)):
        print(f'the machine is busy (load {load:.1f}): ratios will be uncertain', file=sys.stderr)


def show(results, given):
    names = [name for name in COLUMNS if any(name in values for values in results.best.values())]
    versions = ', '.join(f'{name} {version}' for name, version in results.versions.items())
    peaks = ', '.join(f'{name} {value:.4g} {"GB/s" if name == "copy" else "GFLOP/s"}'
                      for name, value in results.peaks.items())
    print(f'on {results.cpu}, {given.threads} threads each, best of {given.rounds} rounds; {versions}')
    print(f'peaks of the machine: {peaks}')
    head = ''.join(f'{name:>17}' for name in names)
    print(f'{"work":<66}{"unit":>9}{"tutti":>10}{head}{"of peak":>9}   times the best, wanted')
    for key, values in results.best.items():
        if 'tutti' not in values or len(values) == 1:
            continue
        cells = ''.join(f'{values[name]:>17.4g}' if name in values else f'{"-":>17}' for name in names)
        share = results.share(key)
        times, best, wanted, reached = verdict(key, values)
        print(f'{key[0] + ": " + key[1]:<66}{key[2]:>9}{values["tutti"]:>10.4g}{cells}'
              f'{f"{100 * share:.1f}%" if share else "-":>9}   {times:.3g} {best}, {wanted}'
              f'{"" if reached else "  BEHIND"}')
    for (name, contender), error in results.failures.items():
        print(f'not measured: {contender} on {name}: {error}')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('works', nargs='*', metavar='WORK', help=f'step, {", ".join(WORKS)}')
    parser.add_argument('--tutti', default=os.path.join(HERE, '../../build/tutti'))
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--kann', help='the program that run.sh builds of kann.c')
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--peers', nargs='+', choices=COLUMNS, help='only these')
    parser.add_argument('--json', action='store_true', help='every result as it comes, no table')
    given = parser.parse_args()
    unknown = [work for work in given.works if work not in WORKS and work != 'step']
    if unknown:
        parser.error(f'there is no {unknown[0]}; these exist: step, {", ".join(WORKS)}')
    works = [name for work in given.works for name in (STEPS if work == 'step' else [work])]
    warn_when_busy()
    results = Results(given.json)
    for _ in range(given.rounds):
        for name in works or WORKS:
            measure(results, name, given)
    if not given.json:
        show(results, given)
    return 0 if results.best else 1


if __name__ == '__main__':
    sys.exit(main())
