#!/usr/bin/env python3
"""Synchronous data parallelism, two workers of one thread, each on a core of its own: ours over shared
memory and TCP, DistributedDataParallel over gloo, MultiWorkerMirroredStrategy.

    parallel.py [--tutti build/tutti] [--python PYTHON] [--rounds N] [--nice N] [--json] [WORK...]

    mnist      examples/2_mnist.c, 64 examples a worker: also against two of our jobs side by side that
               know nothing of each other
    lockstep   the same, session against session in one job, in turns of 16 steps; and what waiting
               for the slower of the two in every step would cost by itself
    null       a step with one scalar variable
    dense      100 MiB of variables: the step against that of two jobs side by side plus the bare
               all-reduce of 100 MiB
    mirrored   one process with two devices of one thread against one device with two threads

PYTHON has the peers. In each round every contender of a work has its turn; the best round of each
counts, and the median of the rounds' ratios stands beside the ratio of these."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT_SECONDS = 300
EPOCHS, STEPS = 12, 40  # of a training, short so that some are undisturbed; the first warms it up
PEERS = ['pytorch', 'pytorch-fused', 'tensorflow']
MIB = 100


class Failed(Exception):
    pass


def gather(processes):
    """The JSON lines that each of these printed."""
    out, codes = [], []
    for process in processes:
        try:
            text, error = process.communicate(timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            for other in processes:
                other.kill()
            raise Failed(f'not done after {LIMIT_SECONDS} s') from None
        codes.append((process.returncode, (error.strip().splitlines() or ['no message'])[-1][:150]))
        out.append([json.loads(line) for line in text.splitlines() if line.startswith('{')])
    for code, message in codes:
        if code:
            raise Failed(f'exit code {code}: {message}')
    return out


class Machine:
    """Starts what is measured: on which cores, in a folder of its own."""

    def __init__(self, given, folder):
        self.given, self.folder = given, folder
        self.cores = sorted(os.sched_getaffinity(0))[:2]
        self.port = 20000 + os.getpid() % 10000

    def start(self, command, folder='', environment=None):
        folder = os.path.join(self.folder, folder)
        os.makedirs(folder, exist_ok=True)
        return subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE,
                                env=os.environ | (environment or {}))

    def apart(self, command):
        """The same command on each core."""
        return gather([self.start(['taskset', '-c', str(core), *command], f'apart{core}')
                       for core in self.cores])

    def together(self, engine, command):
        """As the two ranks of a job, each pinned; rank 0's lines."""
        core = '$((TUTTI_RANK == 0 ? {} : {}))'.format(*self.cores)
        job = [self.given.tutti, 'run', '--no-prefix', '-n', '2', '--engine', engine, 'sh', '-c',
               f'exec taskset -c {core} "$0" "$@"', *command]
        return gather([self.start(job)])[0]

    def one(self, command, environment=None):
        """One process on both cores."""
        cores = ','.join(str(core) for core in self.cores)
        return gather([self.start(['taskset', '-c', cores, *command], '', environment)])[0]

    def peer(self, name, work, steps):
        self.port += 2
        script = [self.given.python, '-B', os.path.join(HERE, 'parallel_worker.py'), name, '--work',
                  work, '--threads', '1', '--port', str(self.port), '--steps', str(steps)]
        lines = gather([self.start(['taskset', '-c', str(core), *script, '--rank', str(rank)])
                        for rank, core in enumerate(self.cores)])[0]
        return lines[-1]['value']

    def train(self, *options, steps=STEPS):
        return [self.given.tutti, 'train', *options, '--json', '--epochs', str(EPOCHS),
                '--steps-per-epoch', str(steps)]

    def bench(self, *options):
        return [self.given.tutti, 'bench', *options, '--json']


def speeds(lines):
    """Of the epochs after the first."""
    return [line['samples_per_second'] for line in lines if 'epoch' in line][1:]


def mnist(machine):
    one = ['--threads', '1']

    def together(engine):
        train = machine.train('mnist', '--batch', '128', *one)
        return lambda: max(speeds(machine.together(engine, train)))

    def apart():
        jobs = machine.apart(machine.train('mnist', '--batch', '64', *one))
        return max(sum(pair) for pair in zip(*(speeds(lines) for lines in jobs)))

    def peer(name):
        return lambda: machine.peer(name, 'mnist', 50)

    return {'tutti shm': together('shm'), 'apart': apart, 'tutti tcp': together('tcp'),
            **{name: peer(name) for name in PEERS}}


def lockstep(machine):
    """Medians of the turns of one job."""
    waiting = {}

    def together(engine):
        lines = machine.together(engine, machine.bench('lockstep', '--engine', engine))
        found = {line['work'].split(': ')[1]: line['value'] for line in lines if 'work' in line}
        waiting[engine] = found['the same if only waiting cost time']
        return found['speed against workers apart']

    return {'shm': lambda: together('shm'), 'shm, only waiting': lambda: waiting['shm'],
            'tcp': lambda: together('tcp'), 'tcp, only waiting': lambda: waiting['tcp']}


def null(machine):
    def together(engine):
        command = machine.bench('parallel', '--engine', engine, '--seconds', '1')
        return lambda: machine.together(engine, command)[0]['value']

    def alone():
        command = machine.bench('parallel', '--alone', '--seconds', '1')
        return max(lines[0]['value'] for lines in machine.apart(command))

    def peer(name):
        return lambda: machine.peer(name, 'null', 300)

    return {'tutti shm': together('shm'), 'tutti tcp': together('tcp'), 'tutti alone': alone,
            **{name: peer(name) for name in PEERS if name != 'pytorch-fused'}}


def dense(machine):
    work = ['parallel', '--work', 'dense', '--mib', str(MIB), '--seconds', '3']

    def together(engine):
        command = machine.bench(*work, '--engine', engine)
        return lambda: machine.together(engine, command)[0]['value'] / 1e3

    def alone():
        jobs = machine.apart(machine.bench(*work, '--alone'))
        return max(lines[0]['value'] for lines in jobs) / 1e3

    def bare(engine):
        command = machine.bench('collectives', '-n', '2', '--bytes', f'{MIB}m', '--engine', engine,
                                '--algorithm', 'auto')
        return lambda: min(line['us'] for line in machine.one(command) if 'us' in line) / 1e3

    return {'tutti shm': together('shm'), 'tutti tcp': together('tcp'), 'apart': alone,
            'all-reduce shm': bare('shm'), 'all-reduce tcp': bare('tcp')}


def mirrored(machine, name, batch):
    train = machine.train(name, '--batch', str(batch), '--threads', '2',
                          steps=4 if name == 'text' else STEPS)

    def measure(*options):
        return lambda: max(speeds(machine.one([*train, *options])))

    return {'mirrored': measure('--strategy', 'mirrored', '--devices', 'cpu:0,cpu:1'),
            'one device': measure('--device', 'cpu:0')}


# The unit and whether more of it is better; what is measured; (what is judged, formula, limit).
# A limit is of the formula's value: at least it where more is better, at most it else.
def better_than(ours, peer):
    return lambda best: best[ours] / best[peer]


def dense_ratio(engine):
    return lambda best: best[f'tutti {engine}'] / (best['apart'] + best[f'all-reduce {engine}'])


WORKS = {
    'mnist': ('samples/s', True, mnist, [
        *((f'tutti shm / {peer}', better_than('tutti shm', peer), 2.5) for peer in PEERS),
        *((f'tutti tcp / {peer}', better_than('tutti tcp', peer), 2.5) for peer in PEERS),
        ('tutti shm / two jobs apart', better_than('tutti shm', 'apart'), 0.95),
        ('tutti tcp / two jobs apart', better_than('tutti tcp', 'apart'), 0.90)]),
    'lockstep': ('of two jobs apart', True, lockstep, [
        ('shm, of two jobs apart', lambda best: best['shm'], 0.95),
        ('tcp, of two jobs apart', lambda best: best['tcp'], 0.90)]),
    'null': ('us', False, null, [
        ('tutti shm, us', lambda best: best['tutti shm'], 20),
        ('tutti tcp, us', lambda best: best['tutti tcp'], 100),
        ('tutti tcp / pytorch', better_than('tutti tcp', 'pytorch'), 1)]),
    'dense': ('ms', False, dense, [
        ('tutti shm / (apart + bare all-reduce)', dense_ratio('shm'), 1.1),
        ('tutti tcp / (apart + bare all-reduce)', dense_ratio('tcp'), 1.1)]),
    'mirrored-mnist': ('samples/s', True, lambda machine: mirrored(machine, 'mnist', 128), [
        ('mirrored / one device', better_than('mirrored', 'one device'), 1.0)]),
    'mirrored-text': ('samples/s', True, lambda machine: mirrored(machine, 'text', 64), [
        ('mirrored / one device', better_than('mirrored', 'one device'), 0.95)]),
}


class Results:
    """What each contender of a work reached, round by round."""

    def __init__(self, printing):
        self.printing = printing
        self.rounds = {}
        self.failures = {}

    def add(self, name, measured):
        self.rounds.setdefault(name, []).append(measured)

    def best(self, name):
        choose = max if WORKS[name][1] else min
        found = {}
        for measured in self.rounds[name]:
            for contender, value in measured.items():
                found[contender] = choose(found.get(contender, value), value)
        return found

    def line(self, name, contender, value):
        if self.printing:
            print(json.dumps({'bench': 'parallel', 'work': name, 'peer': contender, 'value': value,
                              'unit': WORKS[name][0]}), flush=True)


def measure(results, name, machine, keep):
    measured = {}
    for contender, work in WORKS[name][2](machine).items():
        if contender in PEERS and contender not in keep:
            continue
        try:
            measured[contender] = work()
            results.line(name, contender, measured[contender])
        except (Failed, OSError, KeyError, IndexError, ValueError) as error:
            results.failures[name, contender] = str(error)
    results.add(name, measured)


def value_of(formula, values):
    try:
        return formula(values)
    except KeyError:  # somebody did not run
        return None


def judge(results, name):
    unit, higher, _, goals = WORKS[name]
    best = results.best(name)
    for contender, value in best.items():
        print(f'{name:<16}{contender:<42}{value:>12.4g} {unit}')
    for title, formula, limit in goals:
        ratio = value_of(formula, best)
        if ratio is None:
            continue
        each = [value_of(formula, measured) for measured in results.rounds[name]]
        middle = statistics.median(value for value in each if value is not None)
        reached = ratio >= limit if higher else ratio <= limit
        print(f'{name:<16}{title:<42}{ratio:>12.4g} of the best, {middle:.4g} median; wanted '
              f'{"at least" if higher else "at most"} {limit:g}{"" if reached else "  BEHIND"}')


def cpu_name():
    try:
        text = subprocess.run(['lscpu'], stdout=subprocess.PIPE, text=True, check=False,
                              env=os.environ | {'LC_ALL': 'C'}).stdout
    except OSError:
        text = ''
    names = [line.split(':')[1].strip() for line in text.splitlines() if line.startswith('Model name')]
    return names[0] if names else 'unknown CPU'


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('works', nargs='*', metavar='WORK', help=', '.join(WORKS))
    parser.add_argument('--tutti', default=os.path.join(HERE, '../../build/tutti'))
    parser.add_argument('--python', default=os.environ.get('PEERS_PYTHON', sys.executable))
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--nice', type=int, default=0, help='-19: before others on a busy machine')
    parser.add_argument('--peers', nargs='*', choices=PEERS, default=PEERS, help='only these')
    parser.add_argument('--json', action='store_true', help='every result as it comes, no table')
    given = parser.parse_args()
    given.works = [name for name in WORKS
                   if not given.works or any(name.startswith(work) for work in given.works)]
    if not given.works:
        parser.error(f'these works exist: {", ".join(WORKS)}')
    given.tutti = os.path.abspath(given.tutti)
    if os.sep in given.python:
        given.python = os.path.abspath(given.python)
    return given


def main():
    given = arguments()
    if given.nice:
        os.nice(given.nice)
    results = Results(given.json)
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(given, folder)
        if len(machine.cores) < 2:
            sys.exit('two cores are needed, one for each worker')
        for _ in range(given.rounds):
            for name in given.works:
                measure(results, name, machine, given.peers)
    if not given.json:
        print(f'on {cpu_name()}, cores {machine.cores[0]} and {machine.cores[1]}, best of '
              f'{given.rounds} rounds, load {os.getloadavg()[0]:.1f}')
        for name in results.rounds:
            judge(results, name)
    for (name, contender), error in results.failures.items():
        print(f'not measured: {contender} on {name}: {error}', file=sys.stderr)
    return 1 if results.failures else 0


if __name__ == '__main__':
    sys.exit(main())
