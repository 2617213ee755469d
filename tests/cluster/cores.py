#!/usr/bin/env python3
"""Runs a command and looks for a private key in what a core file of it would hold.

    cores.py KEY CERTIFICATE WORD LOOKED COMMAND...

Once the command has printed WORD, its memory is read, less what it keeps out of core files (dd in
/proc/PID/smaps), and searched for the lines of KEY (PEM, RSA or of a curve) and for its numbers, in
either order of their bytes. What the certificate holds too is public. Then "found N of M" is
printed and the file LOOKED made; the exit code is the command's.
"""
import base64
import re
import subprocess
import sys


def pem(path):
    """Lines of base64 of a file's last part."""
    return open(path).read().strip().rsplit("-----BEGIN", 1)[1].split("-----")[1].split()


def numbers(der):
    """Numbers and strings of more than 16 bytes, of all depths."""
    at = 0
    while at + 2 <= len(der):
        tag, size, at = der[at], der[at + 1], at + 2
        if size > 0x80:
            more = size & 0x7F
            size, at = int.from_bytes(der[at : at + more], "big"), at + more
        value, at = der[at : at + size], at + size
        inner = value[1:] if tag == 3 else value
        if tag & 0x20 or (tag == 4 and value[:1] == b"\x30"):
            yield from numbers(inner)
        elif tag in (2, 3, 4) and len(inner) > 16:
            yield inner.lstrip(b"\0")


def dumped(pid):
    """What a core file would hold, mapping by mapping; those of files too."""
    memory = open(f"/proc/{pid}/mem", "rb", 0)
    for line in open(f"/proc/{pid}/smaps"):
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r?)", line)
        if head:
            first, last, readable = int(head[1], 16), int(head[2], 16), head[3] and "[v" not in line
        elif line.startswith("VmFlags:") and readable and " dd" not in line:
            try:
                memory.seek(first)
                yield memory.read(last - first)
            except OSError:
                pass  # nothing there, as beyond a file's end


key_path, certificate_path, word, looked, *command = sys.argv[1:]
public = base64.b64decode("".join(pem(certificate_path)))
lines = pem(key_path)
secrets = [n for n in numbers(base64.b64decode("".join(lines))) if n not in public]
needles = secrets + [n[::-1] for n in secrets] + [l.encode() for l in lines if len(l) > 20]

process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
for line in process.stdout:
    print(line, end="", flush=True)
    if word in line:
        found = {n for part in dumped(process.pid) for n in needles if n in part}
        print(f"found {len(found)} of {len(needles)}", flush=True)
        open(looked, "w").close()
sys.exit(process.wait())
