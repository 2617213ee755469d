"""All-reduce of f32 between processes of this machine: ours, OpenMPI's and Gloo's (through PyTorch).

    collectives.py --tutti build/tutti [--python PYTHON] [--ranks 2 4] [--bytes 8 67108864] [--rounds 3]

Prints a table with our speed against theirs, each the best of some rounds in which all take turns;
--json prints every line as it comes. OpenMPI and PyTorch are left out, in words, where they are missing."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def lines(command, **more):
    """The JSON lines that a command prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, **more)
    return [json.loads(line) for line in done.stdout.decode().splitlines() if line.startswith('{')]


def ours(given, ranks, size, *options):
    command = [given.tutti, 'bench', 'collectives', '-n', str(ranks), '--bytes', str(size),
               '--algorithm', 'auto', '--json', *options]
    return min(row['us'] for row in lines(command) if 'us' in row)


def openmpi(ranks, size, transport):
    if not shutil.which('mpicc'):
        return None
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'collectives')
        subprocess.run(['mpicc', '-O2', os.path.join(HERE, 'collectives_mpi.c'), '-o', program],
                       check=True)
        command = ['mpirun', '--oversubscribe', '-n', str(ranks), '--mca', 'pml', 'ob1', '--mca',
                   'btl', f'{transport},self', program, str(size)]
        if os.geteuid() == 0:
            command.insert(1, '--allow-run-as-root')
        return min(row['us'] for row in lines(command) if 'us' in row)


def gloo_rank(rank, ranks, size, port):
    """One process; rank 0 prints."""
    import time
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'tcp://127.0.0.1:{port}', rank=rank,
                            world_size=ranks)
    data = torch.zeros(size // 4)
    times = 1 if size >= 1 << 18 else 20 if size >= 1 << 14 else 100
    best = float('inf')
    for _ in range(20 if size >= 16 << 20 else 40):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(times):
            dist.all_reduce(data)
        best = min(best, (time.perf_counter() - start) / times)
    if rank == 0:
        print(json.dumps({'op': 'all_reduce', 'peer': 'gloo', 'us': best * 1e6}))
    dist.destroy_process_group()


def gloo(given, ranks, size):
    probe = [given.python, '-c', 'import torch.distributed']
    if subprocess.run(probe, stderr=subprocess.DEVNULL, check=False).returncode:
        return None
    port = str(20000 + os.getpid() % 20000)
    environment = os.environ | {'CUDA_VISIBLE_DEVICES': '', 'GLOO_SOCKET_IFNAME': 'lo'}
    processes = [subprocess.Popen([given.python, __file__, '--gloo-rank', str(rank), str(ranks),
                                   str(size), port], stdout=subprocess.PIPE, env=environment)
                 for rank in range(ranks)]
    out = [process.communicate()[0] for process in processes]
    return json.loads(out[0].decode().strip().splitlines()[-1])['us']


def once(given, ranks, size):
    return {'tutti shm, arena': ours(given, ranks, size),
            'tutti shm, private': ours(given, ranks, size, '--private'),
            'openmpi shm': openmpi(ranks, size, 'vader'),
            'tutti tcp': ours(given, ranks, size, '--engine', 'tcp'),
            'openmpi tcp': openmpi(ranks, size, 'tcp'), 'gloo': gloo(given, ranks, size)}


def compare(given, ranks, size):
    rounds = []
    for number in range(given.rounds):
        print(f'{ranks} ranks, {size} bytes: round {number + 1} of {given.rounds}', file=sys.stderr)
        rounds.append(once(given, ranks, size))
    for name, first in rounds[0].items():
        if first is None:
            print(f'{name}: not installed', file=sys.stderr)
            continue
        us = min(each[name] for each in rounds)
        base = 'tutti shm, arena' if 'shm' in name else 'tutti tcp'
        times = us / min(each[base] for each in rounds)
        if given.json:
            print(json.dumps({'op': 'all_reduce', 'what': name, 'ranks': ranks, 'bytes': size,
                              'us': us, 'times_ours': times}), flush=True)
        else:
            print(f'{name:22} {ranks:3} ranks {size:10} bytes {us:12.2f} us {times:7.2f} x ours',
                  flush=True)


def main():
    if sys.argv[1:2] == ['--gloo-rank']:
        gloo_rank(*(int(text) for text in sys.argv[2:6]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--tutti', default='build/tutti')
    parser.add_argument('--python', default=os.environ.get('PEERS_PYTHON', sys.executable))
    parser.add_argument('--ranks', type=int, nargs='+', default=[2, 4])
    parser.add_argument('--bytes', type=int, nargs='+', default=[8, 64 << 20])
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--json', action='store_true')
    given = parser.parse_args()
    for ranks in given.ranks:
        for size in given.bytes:
            compare(given, ranks, size)


if __name__ == '__main__':
    main()
