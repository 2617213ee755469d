"""trace.py FILE RANKS: the trace of a job holds a row of every rank, and ranks are inside the same
collective at the same time."""
import json
import sys


def fail(text):
    print(text)
    sys.exit(1)


def main(path, ranks):
    with open(path, encoding='utf-8') as file:
        events = json.load(file)['traceEvents']
    names = {e['pid']: e['args']['name'] for e in events
             if e['ph'] == 'M' and e['name'] == 'process_name'}
    if sorted(names.values()) != [f'rank {r}' for r in range(ranks)]:
        fail(f'the rows are {sorted(names.values())}')
    meetings = {}  # name → process → [(start, end)]
    for e in events:
        if e['ph'] != 'X':
            continue
        if e['pid'] not in names or e['dur'] < 0:
            fail(f'an event of no rank, or before its start: {e}')
        if e.get('args', {}).get('op', '').startswith('all_reduce'):
            spans = meetings.setdefault(e['name'], {}).setdefault(e['pid'], [])
            spans.append((e['ts'], e['ts'] + e['dur']))
    together = apart = 0
    for name, rows in meetings.items():
        if len(rows) != ranks or len({len(spans) for spans in rows.values()}) != 1:
            fail(f'{name} has {({names[p]: len(s) for p, s in rows.items()})}')
        for spans in zip(*(sorted(s) for s in rows.values())):
            # Nobody leaves before the last has come; clocks differ by some microseconds.
            if max(s for s, _ in spans) <= min(e for _, e in spans) + 50:
                together += 1
            else:
                apart += 1
    if apart or not together:
        fail(f'{apart} meetings at different times, {together} at the same')
    print(f'{len(events)} events, {together} meetings of {ranks} ranks')


main(sys.argv[1], int(sys.argv[2]))
