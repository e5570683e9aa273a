"""Runs asio_server with two workers, asks it from several connections at once, and ends it.

run_asio_server.py ASIO_SERVER
"""

import os
import signal
import socket
import subprocess
import sys


def check(holds, what):
    if not holds:
        sys.exit("not so: " + what)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.lines = self.socket.makefile("rw", newline="\n")

    def ask(self, line):
        self.lines.write(line + "\n")
        self.lines.flush()

    def answer(self):
        return self.lines.readline().rstrip("\n")


def start(program):
    server = subprocess.Popen([program, "2"], stdout=subprocess.PIPE, text=True)
    words = server.stdout.readline().split()
    check(words[:2] == ["ready", "at"], "it becomes ready")
    return server, int(words[2])


def end(server):
    server.send_signal(signal.SIGTERM)
    last, _ = server.communicate(timeout=40)
    return last, server.returncode


def requests_beside_each_other(program):
    server, port = start(program)
    try:
        waiting, other = Client(port), Client(port)
        waiting.ask("get answer")
        other.ask("sum 1 2 3")
        check(other.answer() == "14", "a request does not wait for another connection's")
        clients = [Client(port) for _ in range(20)]
        for number, client in enumerate(clients):
            client.ask(f"sum {number} {number + 1} 1")
        for number, client in enumerate(clients):
            check(client.answer() == str(number ** 2 + (number + 1) ** 2 + 1), "all are answered")
        check(len(os.listdir(f"/proc/{server.pid}/task")) == 1, "the server has one thread")
        other.ask("set answer forty two")
        check(other.answer() == "kept", "the store keeps it")
        check(waiting.answer() == "forty two", "who waited for it gets it")
        other.ask("anything else")
        check(other.answer() == "this is no request", "and nothing else is taken")
        waiting.ask("get missing")
        check(end(server) == ("ended: 0 sessions left\n", 0), "it ends in order")
        check("cancelled" in waiting.answer(), "who still waits hears it")
    finally:
        server.kill()


def a_worker_that_dies(program):
    server, port = start(program)
    try:
        client = Client(port)
        with open(f"/proc/{server.pid}/task/{server.pid}/children", encoding="ascii") as children:
            worker = int(children.read().split()[0])
        os.kill(worker, signal.SIGKILL)
        client.ask("sum 1 2")
        check("worker 1" in client.answer(), "the answer names the worker that is gone")
        client.ask("set name value")
        check(client.answer() == "kept", "the server lives on")
        check(end(server) == ("ended: 0 sessions left\n", 0), "it ends in order")
    finally:
        server.kill()


requests_beside_each_other(sys.argv[1])
a_worker_that_dies(sys.argv[1])
