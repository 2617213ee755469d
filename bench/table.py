#!/usr/bin/env python3
"""Reads the JSON lines of several rounds of `tutti bench`, prints one table.

Of times and speeds the best round counts; of ratios the median, since the best would reward a
round whose other side was disturbed. A ratio to the best library is made anew from the best speeds."""
import json
import statistics
import sys

SPEEDS = {'GFLOP/s', 'samples/s'}  # more is better
RATIOS = {'x', 'share', 'times', '%'}


def combine(unit, values):
    if unit in RATIOS:
        return statistics.median(values)
    return max(values) if unit in SPEEDS else min(values)


def read(lines):
    """{(bench, work, unit): [values, limit]} in the order of appearance, and the CPU."""
    found, cpu = {}, 'unknown CPU'
    for line in lines:
        result = json.loads(line)
        work = result['work']
        if 'name' in result:  # a step: its figures stand in one object
            work = f'{work}, batch {result["batch"]}, {result["precision"]}'
            key = result['bench'], f'{work}, of peak', '%'
            found.setdefault(key, [[], 0])[0].append(100 * result['share_of_peak'])
        key = result['bench'], work, result['unit']
        found.setdefault(key, [[], result['limit']])[0].append(result['value'])
        cpu = result['cpu']
    return found, cpu


def share_of_best(values, work):
    """'256: session against the best' from the speeds of '256: …'."""
    size = work.split(':')[0] + ':'
    speeds = {name: value for (_, name, unit), value in values.items()
              if unit == 'GFLOP/s' and name.startswith(size)}
    return speeds[size + ' session'] / max(speeds.values())


def verdict(unit, value, limit):
    if not limit:
        return ''
    more = unit in ('share', 'times')
    good = value >= limit if more else value <= limit
    side = 'at least' if more else 'at most '
    return f'{side} {limit:<6g} {"ok" if good else "MISSED"}'


def main():
    found, cpu = read(sys.stdin)
    values = {key: combine(key[2], seen) for key, (seen, _) in found.items()}
    print(f'on {cpu}; best of times and speeds, median of ratios')
    missed = 0
    for (bench, work, unit), value in sorted(values.items(), key=lambda item: item[0][0]):
        if unit == 'share':
            value = share_of_best(values, work)
        said = verdict(unit, value, found[bench, work, unit][1])
        missed += said.endswith('MISSED')
        print(f'{bench:<15}{work:<46}{value:>10.4g} {unit:<10}{said}'.rstrip())
    print(f'{missed} limits missed' if missed else 'every limit is kept')


if __name__ == '__main__':
    main()
