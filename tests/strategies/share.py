"""share.py ALONE JOB RANKS SHARDS: by the FLOPs in two traces, no rank of a job does more than
ceil(SHARDS / RANKS) / SHARDS of one worker's work and a tenth of it, and all of them do all of it."""
import json
import sys


def work(path):
    """FLOPs of each process."""
    with open(path, encoding='utf-8') as file:
        events = json.load(file)['traceEvents']
    done = {}
    for e in events:
        if e['ph'] == 'X' and 'args' in e:
            done[e['pid']] = done.get(e['pid'], 0) + e['args']['flops']
    return list(done.values())


def main(alone, job, ranks, shards):
    whole, parts = sum(work(alone)), work(job)
    most = -(-shards // ranks) / shards + 0.1
    figure = f'{max(parts, default=0) / max(whole, 1):.3f} of {whole:.3g} FLOPs, {most:.3f} allowed'
    print(figure)
    return len(parts) == ranks and whole > 0 and max(parts) <= most * whole and sum(parts) >= 0.9 * whole


sys.exit(not main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
