#!/usr/bin/env python3
"""flood.py PORT: 1,000 connections that say nothing, held for two seconds, and some that say garbage."""
import os
import resource
import socket
import sys
import time

resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
address = ('127.0.0.1', int(sys.argv[1]))
garbage = [b'GET / HTTP/1.1\r\n\r\n', b'TT', b'TT\x02\x00\xff\xff\xff\xff', b'TT\x02\x00\x00\x10\x00\x00' + b'x' * 4096,
           b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc', os.urandom(100000)]
for data in garbage * 5:
    with socket.create_connection(address) as each:
        try:
            each.sendall(data)
            each.recv(1)
        except OSError:
            pass
idle = [socket.create_connection(address) for _ in range(1000)]
print(len(idle), 'idle connections', flush=True)
time.sleep(2)
