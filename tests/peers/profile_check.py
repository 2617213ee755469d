#!/usr/bin/env python3
"""A profile of ours through the converter of TensorBoard's own profile plugin: trace viewer, operator
statistics and overview.

    python3 tests/peers/profile_check.py PROGRAM     (tests/peers/profile.c, compiled)

Needs tensorboard-plugin-profile (xprof); says so and passes without it."""
import glob
import json
import os
import subprocess
import sys
import tempfile

STEPS = 20


def convert(path, tool):
    from xprof.convert import raw_to_tool_data
    data, _ = raw_to_tool_data.xspace_to_tool_data([path], tool, {})
    return json.loads(data)


def rows(table):
    names = [column['id'] for column in table['cols']]
    return [dict(zip(names, (cell.get('v') for cell in row['c']))) for row in table['rows']]


def check(path):
    events = [e for e in convert(path, 'trace_viewer')['traceEvents'] if e.get('ph') == 'X']
    assert len(events) > 10 * STEPS and all(e['dur'] >= 0 for e in events), len(events)
    assert any(e['name'].startswith(('conv2d', 'conv/conv2d')) for e in events)
    operators = rows(convert(path, 'framework_op_stats')[0])
    # alone ('conv/conv2d'), or fused with what follows it ('conv2d.add.relu')
    conv = [o for o in operators if o['operation'].startswith(('conv2d', 'conv/conv2d'))]
    assert len(conv) == 1 and conv[0]['occurrences'] == STEPS and conv[0]['total_time'] > 0, conv
    steps = [t for t in convert(path, 'overview_page') if t.get('cols') and
             t['cols'][0]['id'] == 'stepnum'][0]
    assert len(steps['rows']) >= STEPS - 2 and float(steps['p']['steptime_ms_average']) > 0
    print(f'profile: {len(events)} events, {len(operators)} operators, {len(steps["rows"])} steps '
          f'of {steps["p"]["steptime_ms_average"]} ms in the profile plugin')


def main():
    try:
        import xprof.convert.raw_to_tool_data  # noqa: F401
    except ImportError:
        print('profile: skipped, there is no tensorboard-plugin-profile')
        return
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        check(glob.glob(os.path.join(folder, 'plugins/profile/*/*.xplane.pb'))[0])


if __name__ == '__main__':
    sys.exit(main())
