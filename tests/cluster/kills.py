#!/usr/bin/env python3
"""kills.py TUTTI PROGRAM COUNT [SEED]: kills ranks of a job with servers at random, one after the other.

Of each kill: all others drop the rank from their views (how long that takes is printed), the launcher
starts it again, and it is in a view of all others; nobody else ends. The last line sums up."""
import random
import re
import signal
import os
import subprocess
import sys
import tempfile
import threading
import time

tutti, program, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
seed = int(sys.argv[4]) if len(sys.argv) > 4 else int(time.time())
chance = random.Random(seed)
size, servers = 5, 2
folder = tempfile.mkdtemp()
done = os.path.join(folder, 'done')
job = subprocess.Popen([tutti, 'run', '-n', str(size), '--ps', str(servers), '--restarts', str(count), program,
                        '--deadline', '30', 'file', done], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
process, views, lines = {}, {r: (0, 0.0, ()) for r in range(size)}, []
history = {r: [] for r in range(size)}  # rank -> [(when it was printed, who is in it, its number)]


def read():
    for line in job.stdout:
        lines.append(line)
        rank = re.match(r'\[(\d+)\] ', line)
        if rank:
            rank = int(rank[1])
            if found := re.search(r'process (\d+) is', line):
                process[rank] = int(found[1])
            if found := re.search(r'view (\d+) at ([\d.]+):((?: \d+)*), kept', line):
                history[rank].append((float(found[2]), {int(r) for r in found[3].split()}, int(found[1])))


reader = threading.Thread(target=read, daemon=True)
reader.start()


def fail(why):
    print(f'seed {seed}: {why}\n' + ''.join(lines[-40:]))
    job.kill()
    sys.exit(1)


def await_all(others, holds, limit, what):
    """Until it holds of the last view of all these ranks."""
    until = time.time() + limit
    while not all(history[r] and holds(history[r][-1][1]) for r in others) or \
            len({history[r][-1][2] for r in others}) > 1:
        if job.poll() is not None:
            fail(f'the job ended with {job.returncode} while {what}')
        if time.time() > until:
            fail(f'{limit} s are over: {what}')
        time.sleep(0.005)


everybody = set(range(size))
await_all(everybody, lambda view: view == everybody, 20, 'all meet')
took = []
for number in range(count):
    victim = chance.randrange(size)
    others = everybody - {victim}
    before = {r: process[r] for r in others}
    number_before = max(history[r][-1][2] for r in others)
    begun = time.time()
    history[victim].clear()
    os.kill(process[victim], signal.SIGKILL)
    deadline = time.time() + 20
    # The next process of the rank may be so fast that a view without it is not printed.
    gone = {r: [] for r in others}
    while not all(gone.values()):
        gone = {r: [at for at, view, number in history[r]
                    if at >= begun and (victim not in view or number >= number_before + 2)] for r in others}
        if time.time() > deadline:
            fail(f'kill {number} of rank {victim}: it is still in a view')
        time.sleep(0.002)
    took.append(max(min(gone[r]) - begun for r in others))
    await_all(everybody, lambda view: view == everybody, 20, f'rank {victim} comes again (kill {number})')
    if any(process[r] != before[r] for r in others):
        fail(f'another process than that of rank {victim} has ended')
    time.sleep(chance.random() * 0.2)
open(done, 'w').close()
code = job.wait(30)
reader.join(5)
took.sort()
late = sum(each > 1 for each in took)
print(f'{count} kills: gone from all views after {took[count // 2] * 1e3:.0f} ms (median), '
      f'{took[-1] * 1e3:.0f} ms at most, {late} after more than a second; exit code {code}')
sys.exit(0 if code == 0 and late * 20 <= count else 1)
