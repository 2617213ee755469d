"""Two checkpoints hold the same gradients (TUTTI_KEEP_GRADIENTS): gradients.py A B BOUND

No element of a variable's gradient may differ by more than BOUND of the largest of that variable, or
of a hundredth of the largest of all where the variable's are smaller than that: some gradients are
zero but for rounding (a bias before a batch norm, the bias of attention's keys). Prints the worst.
"""

import array
import json
import math
import struct
import sys

FLOOR = 0.01


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    shapes = json.loads(header.get("__metadata__", {}).get("tutti.boxes", "{}"))
    found = {}
    for text, entry in header.items():
        name, _, offset = text.partition("@")  # "NAME@8,0" is the box of NAME from [8, 0] on
        if not name.endswith("/gradient"):
            continue
        if entry["dtype"] != "F32":
            sys.exit(f"{path}: {text} is {entry['dtype']}, not F32")
        begin, end = (8 + size + at for at in entry["data_offsets"])
        values = array.array("f", data[begin:end])
        if not offset:
            found[name] = values
            continue
        whole = found.setdefault(name, array.array("f", [math.nan] * math.prod(shapes[name])))
        put(whole, shapes[name], values, entry["shape"], [int(o) for o in offset.split(",")])
    return found


def put(whole, shape, values, dims, offset):
    """A box's values where they belong."""
    for i, value in enumerate(values):
        place, step = 0, 1
        for size, dim, at in zip(reversed(shape), reversed(dims), reversed(offset)):
            place += (i % dim + at) * step
            step *= size
            i //= dim
        whole[place] = value


def largest(values):
    return max((abs(v) for v in values), default=0.0)


def main(first, second, bound):
    wanted, got = read(first), read(second)
    if not wanted:
        sys.exit(f"{first} holds no gradients")
    if sorted(wanted) != sorted(got):
        sys.exit(f"gradients of others: {sorted(set(wanted) ^ set(got))}")
    whole = max(largest(v) for v in wanted.values())
    if not whole > 0 or not math.isfinite(whole):
        sys.exit(f"the largest gradient is {whole}")
    worst, at = -1.0, ""
    for name, a in wanted.items():
        b, scale = got[name], max(largest(a), FLOOR * whole)
        if len(a) != len(b):
            sys.exit(f"{name}: {len(a)} elements, then {len(b)}")
        error = largest(x - y for x, y in zip(a, b)) / scale
        if any(not math.isfinite(y) for y in b):
            error = math.inf
        if error > worst:
            worst, at = error, name
    print(f"{worst:.1e} of the largest of {len(wanted)} gradients: {at}")
    return worst > bound


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
