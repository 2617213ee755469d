#!/usr/bin/env python3
"""Draws what `tutti bench staleness` prints, as SVG files, and says which published shapes hold.

    build/tutti bench staleness > staleness.jsonl
    python3 bench/staleness.py staleness.jsonl docs/pictures

Needs nothing but Python. Points are means over seeds, whiskers their least and largest.
"""
import json
import os
import statistics
import sys

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 320, 64, 48
COLOURS = ['#1b6ca8', '#c8553d', '#588157', '#8e6c8a', '#333333']


def read(path):
    rows = []
    with open(path, encoding='utf-8') as file:
        for line in file:
            if line.startswith('{'):
                rows.append(json.loads(line))
    return rows


def values(rows, key, **where):
    """Values of all seeds of one setting."""
    return [row[key] for row in rows
            if key in row and all(row[name] == value for name, value in where.items())]


class Picture:
    """One diagram; x are places of labels, y goes from 0 to `top`."""

    def __init__(self, title, x_name, y_name, labels, top):
        self.labels, self.top, self.legend = labels, top, 0
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
            f'<text x="{LEFT}" y="18" font-size="14">{title}</text>',
            f'<text x="{WIDTH / 2}" y="{HEIGHT - 8}" text-anchor="middle">{x_name}</text>',
            f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" '
            f'transform="rotate(-90 14 {HEIGHT / 2})">{y_name}</text>']
        for i, label in enumerate(labels):
            self.parts.append(f'<text x="{self.x(i)}" y="{HEIGHT - BOTTOM + 16}" '
                              f'text-anchor="middle">{label}</text>')
        for i in range(5):
            value = top * i / 4
            self.parts.append(f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{self.y(value)}" '
                              f'y2="{self.y(value)}" stroke="#ddd"/>')
            self.parts.append(f'<text x="{LEFT - 6}" y="{self.y(value) + 4}" '
                              f'text-anchor="end">{value:.3g}</text>')

    def x(self, i):
        return LEFT + 30 + (WIDTH - LEFT - 80) * i / max(1, len(self.labels) - 1)

    def y(self, value):
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 40) * min(value, self.top) / self.top

    def line(self, name, series):
        """`series`: for each place the values of all seeds; empty ones are left out."""
        colour = COLOURS[self.legend]
        points = [(self.x(i), v) for i, v in enumerate(series) if v]
        path = ' '.join(f'{x:.1f},{self.y(statistics.mean(v)):.1f}' for x, v in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                          'stroke-width="2"/>')
        for x, v in points:
            self.parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{self.y(min(v)):.1f}" '
                              f'y2="{self.y(max(v)):.1f}" stroke="{colour}"/>')
            self.parts.append(f'<circle cx="{x:.1f}" cy="{self.y(statistics.mean(v)):.1f}" r="3" '
                              f'fill="{colour}"/>')
        self.parts.append(f'<text x="{WIDTH - 26}" y="{34 + 16 * self.legend}" text-anchor="end" '
                          f'fill="{colour}">{name}</text>')
        self.legend += 1

    def write(self, path):
        with open(path, 'w', encoding='utf-8') as file:
            file.write('\n'.join(self.parts + ['</svg>', '']))
        print('drawn', path)


def verdict(text, holds):
    print(('holds   ' if holds else 'MISSED  ') + text)
    return holds


def staleness(rows, folder):
    rows = [row for row in rows if row['shape'] == 'staleness']
    workers = sorted({row['workers'] for row in rows})
    series = {rate: [values(rows, 'accuracy', workers=n, rate=rate) for n in workers]
              for rate in ('none', 'inverse')}
    picture = Picture('Accuracy by the age of gradients', 'staleness (updates)',
                      'test accuracy', [n - 1 for n in workers], 1)
    picture.line('one rate for all', series['none'])
    picture.line('rate / staleness', series['inverse'])
    picture.write(os.path.join(folder, 'staleness.svg'))
    mean = [statistics.mean(v) for v in series['none']]
    good = verdict(f'accuracy falls with staleness: {mean[0]:.3f} fresh, {mean[-1]:.3f} at '
                   f'{workers[-1] - 1}', mean[-1] < mean[0] - 0.05)
    repaired = statistics.mean(series['inverse'][-1])
    return verdict(f'1/tau repairs it: {repaired:.3f} for {mean[-1]:.3f} at {workers[-1] - 1}',
                   repaired > mean[-1]) and good


def backup(rows, folder):
    rows = [row for row in rows if row['shape'] == 'backup']
    kinds = list(dict.fromkeys(row['consistency'] for row in rows))
    series = [values(rows, 'accuracy', consistency=kind) for kind in kinds]
    picture = Picture('Ten workers, one in ten slow: after equal time', 'consistency',
                      'test accuracy', kinds, 1)
    picture.line('accuracy', series)
    picture.write(os.path.join(folder, 'backup.svg'))
    mean = [statistics.mean(v) for v in series]
    return verdict('backup workers beat waiting: ' +
                   ', '.join(f'{k} {m:.3f}' for k, m in zip(kinds, mean)), max(mean[1:]) > mean[0])


def straggler(rows, folder):
    rows = [row for row in rows if row['shape'] == 'straggler']
    kinds = list(dict.fromkeys(row['consistency'] for row in rows))
    before = [values(rows, 'pace_before', consistency=kind) for kind in kinds]
    after = [values(rows, 'pace_after', consistency=kind) for kind in kinds]
    picture = Picture('Four workers, one ten times slower', 'consistency',
                      'gradients a step\'s time', kinds, 4)
    picture.line('before the first has to wait', before)
    picture.line('from then on', after)
    picture.write(os.path.join(folder, 'straggler.svg'))
    pace = dict(zip(kinds, (statistics.mean(v) for v in before)))
    good = True
    for kind in kinds:
        if kind.startswith('ssp'):
            good &= verdict(f'{kind} keeps {pace[kind] / pace["async"]:.0%} of async\'s pace until '
                            'its bound (90 %)', pace[kind] >= 0.9 * pace['async'])
    return good


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rows, folder = read(sys.argv[1]), sys.argv[2]
    os.makedirs(folder, exist_ok=True)
    good = [part(rows, folder) for part in (staleness, backup, straggler)]
    sys.exit(0 if all(good) else 1)


if __name__ == '__main__':
    main()
