"""What the peers' benchmarks share: arguments, timing, one JSON line a result.

A benchmark is called as `NAME.py PEER [--threads N]` and measures one peer in a process of its own,
because the thread pools of two frameworks in one process disturb each other."""
import argparse
import json
import os
import resource
import sys
import time

PYTORCH = ('pytorch', 'pytorch-fused', 'pytorch-last', 'pytorch-compiled')
TENSORFLOW = ('tensorflow', 'tensorflow-xla')


def arguments(*peers, more=None):
    """The peer to measure; the number of threads goes into the environment before any import.
    `more` adds arguments of the benchmark's own."""
    parser = argparse.ArgumentParser()
    parser.add_argument('peer', choices=peers)
    parser.add_argument('--threads', type=int, default=len(os.sched_getaffinity(0)))
    if more:
        more(parser)
    given = parser.parse_args()
    os.environ['OMP_NUM_THREADS'] = str(given.threads)
    os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
    os.environ['CUDA_VISIBLE_DEVICES'] = ''
    return given


def pytorch(threads):
    import torch
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    return torch


def tensorflow(threads):
    import tensorflow
    tensorflow.config.threading.set_intra_op_parallelism_threads(threads)
    tensorflow.config.threading.set_inter_op_parallelism_threads(threads)
    tensorflow.random.set_seed(1)
    return tensorflow


def report(bench, work, peer, value, unit):
    version = sys.modules[peer_module(peer)].__version__
    print(json.dumps({'bench': bench, 'work': work, 'peer': peer, 'value': value, 'unit': unit,
                      'version': version}), flush=True)


def peer_module(peer):
    return 'tensorflow' if peer.startswith('tensorflow') else 'torch'


def best_seconds(repeats, times, work, most_seconds=5):
    """Of the fastest of at most `repeats` rounds in `most_seconds`, at least 3, each doing the work
    `times` times; two warm it up."""
    work()
    work()
    best, began = float('inf'), time.perf_counter()
    for done in range(repeats):
        start = time.perf_counter()
        if done >= 3 and start - began > most_seconds:
            break
        for _ in range(times):
            work()
        best = min(best, (time.perf_counter() - start) / times)
    return best


def seconds_since_start():
    """Since this process began, by the kernel's account."""
    with open('/proc/self/stat', encoding='ascii') as file:
        ticks = int(file.read().rpartition(')')[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf('SC_CLK_TCK')


def resident_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
