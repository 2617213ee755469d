#!/usr/bin/env python3
"""Ours and the peers' in turn, on the same threads; prints one table with the ratio to the best peer.

    compare.py [--tutti build/tutti] [--python PYTHON] [--threads N] [--rounds N] [--json] [NAME...]

PYTHON has the peers; this script itself needs nothing. NAMEs are dispatch, gemm, fused, step. In each
round every contender has one process; the best round of each counts."""
import argparse
import collections
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PEERS = {
    'dispatch': ['pytorch', 'tensorflow'],
    'gemm': ['pytorch', 'tensorflow'],
    'fused': ['pytorch', 'pytorch-compiled', 'tensorflow', 'tensorflow-xla'],
    'step': ['pytorch', 'pytorch-fused', 'tensorflow', 'tensorflow-xla'],
}
OURS = {'step': ['step', 'mnist']}
# What we call otherwise than the peers, for which there is no trace to speak of.
ALIASES = {
    'scalar addition, trace on': 'scalar addition',
    'empty session run': 'empty run',
    'lecture network, session': 'lecture network',
}
HIGHER = {'GFLOP/s', 'samples/s'}
LIMIT_SECONDS = 600


def run(command, environment=None):
    """The JSON lines that a command prints; nothing, with a complaint, when it fails."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=LIMIT_SECONDS, check=False, env=os.environ | (environment or {}))
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f'{" ".join(command)}: {error}', file=sys.stderr)
        return []
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ['no message']
        print(f'{" ".join(command)}: exit code {done.returncode}: {last[0]}', file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


class Results:
    """The best value of each (bench, work, unit) and contender."""

    def __init__(self, printing):
        self.best = collections.defaultdict(dict)
        self.versions = {}
        self.cpu = 'unknown CPU'
        self.printing = printing

    def add(self, line, contender):
        if self.printing:
            print(json.dumps(line | {'peer': contender}), flush=True)
        key = line['bench'], ALIASES.get(line['work'], line['work']), line['unit']
        known = self.best[key].get(contender, line['value'])
        self.best[key][contender] = (max if line['unit'] in HIGHER else min)(known, line['value'])
        self.cpu = line.get('cpu', self.cpu)
        if 'version' in line:
            self.versions[contender.split('-')[0]] = line['version']


def measure(results, bench, given):
    environment = {'TUTTI_THREADS': str(given.threads)}
    for line in run([given.tutti, 'bench'] + OURS.get(bench, [bench]) + ['--json'], environment):
        results.add(line, 'tutti')
    script = os.path.join(HERE, bench + '.py')
    for peer in PEERS[bench]:
        for line in run([given.python, '-B', script, peer, '--threads', str(given.threads)]):
            results.add(line, peer)


def ratio(values, unit):
    """Ours against the best peer, above 1 when we are better, and that peer's name."""
    peers = {name: value for name, value in values.items() if name != 'tutti'}
    best = (max if unit in HIGHER else min)(peers, key=peers.get)
    ours = values['tutti']
    return (ours / peers[best] if unit in HIGHER else peers[best] / ours), best


def warn_when_busy():
    load = os.getloadavg()[0]
    if load > 0.5 * len(os.sched_getaffinity(0)):
        print(f'the machine is busy (load {load:.1f}): ratios will be uncertain', file=sys.stderr)


def show(results, given):
    names = ['tutti', 'pytorch', 'pytorch-compiled', 'pytorch-fused', 'tensorflow', 'tensorflow-xla']
    versions = ', '.join(f'{name} {version}' for name, version in results.versions.items())
    print(f'on {results.cpu.split(",")[0]}, {given.threads} threads each, best of {given.rounds} rounds;'
          f' {versions}')
    print('the last column is how many times better ours is than the best peer')
    print(f'{"work":<54}' + ''.join(f'{name:>18}' for name in names) + '   best peer')
    for (bench, work, unit), values in results.best.items():
        if 'tutti' not in values or len(values) == 1:
            continue
        cells = ''.join(f'{values[name]:>18.4g}' if name in values else f'{"-":>18}' for name in names)
        times, best = ratio(values, unit)
        mark = '' if times >= 1 else '  BEHIND'
        print(f'{bench + ": " + work + ", " + unit:<54}{cells}   {times:.3g}x {best}{mark}')


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('benches', nargs='*', metavar='NAME')
    parser.add_argument('--tutti', default=os.path.join(HERE, '../../build/tutti'))
    parser.add_argument('--python', default=sys.executable)
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--json', action='store_true', help='every result as it comes, no table')
    given = parser.parse_args()
    unknown = [bench for bench in given.benches if bench not in PEERS]
    if unknown:
        parser.error(f'there is no {unknown[0]}; these exist: {", ".join(PEERS)}')
    warn_when_busy()
    results = Results(given.json)
    for _ in range(given.rounds):
        for bench in given.benches or PEERS:
            measure(results, bench, given)
    if not given.json:
        show(results, given)
    return 0 if results.best else 1


if __name__ == '__main__':
    sys.exit(main())
