#!/usr/bin/env python3
"""proxy.py FROM TO: forwards connections to localhost:FROM on to localhost:TO. After SIGUSR1 it keeps
them open and forwards nothing more: a half-open connection, as a dead router leaves it."""
import select
import signal
import socket
import sys

silent = False


def fall_silent(number, frame):
    global silent
    silent = True


def main():
    signal.signal(signal.SIGUSR1, fall_silent)
    listener = socket.create_server(('127.0.0.1', int(sys.argv[1])))
    other = {}
    print('ready', flush=True)
    while True:
        try:
            ready, _, _ = select.select([listener, *other], [], [], 0.1)
        except InterruptedError:
            continue
        for each in ready:
            if each is listener:
                near, _ = listener.accept()
                try:
                    far = socket.create_connection(('127.0.0.1', int(sys.argv[2])))
                except OSError:
                    near.close()
                    continue
                other[near], other[far] = far, near
            elif each in other:
                try:
                    data = each.recv(65536)
                except OSError:
                    data = b''
                if silent and data:
                    continue
                if silent:
                    del other[each]
                    continue
                if data:
                    other[each].sendall(data)
                else:
                    twin = other.pop(each)
                    other.pop(twin, None)
                    each.close()
                    twin.close()


main()
