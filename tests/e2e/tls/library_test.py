"""Test: muster-tls in hosts of many kinds.

library_test.py MUSTERD RELAY HOST HOST_STATIC SHIM FAKE LIBMUSTER LIBMUSTER_TLS: hosts with and
without a credential, before a relay that speaks TLS for a musterd that speaks none: what is loaded
and when, a host that has another library with OpenSSL's names, an interpreter with an OpenSSL of
its own, forks, and ends with a store that is open. Prints what is wrong; exits 1 if something is.
"""

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

TIMEOUT_S = 60
KEY = base64.b64encode(bytes(range(1, 33))).decode()

MUSTERD, RELAY, HOST, HOST_STATIC, SHIM, FAKE, LIBMUSTER, LIBMUSTER_TLS = sys.argv[1:9]

findings = []


def find(what, told=None):
    if told is not None:
        what += f": exit code {told.returncode}\n{told.stdout}{told.stderr}"
    findings.append(what)


def environment(credential, **more):
    cleaned = {name: value for name, value in os.environ.items()
               if not name.startswith("MUSTER_CREDENTIAL")}
    if credential:
        cleaned["MUSTER_CREDENTIAL"] = f"host {KEY} * all\n"
    return {**cleaned, **more}


def said(*command, credential=True, **more):
    return subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
                          env=environment(credential, **more))


class Program:
    """A server that tells its address in its first lines, and ends with its standard input."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True,
                                        env=environment(False))
        self.address = self.process.stdout.readline().split()[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait(TIMEOUT_S)


def check(plain, address, folder):
    folders = os.pathsep.join([os.path.dirname(LIBMUSTER), os.path.dirname(LIBMUSTER_TLS)])
    paths = {"LD_LIBRARY_PATH": folders}

    told = said(HOST, "use", plain, credential=False, **paths)
    libraries = told.stdout.split()
    if told.returncode != 0 or any(name.startswith(("libssl", "libcrypto", "libmuster-tls"))
                                   for name in libraries):
        find("a host without a credential loads no TLS", told)
    if not any(name.startswith("libmuster.so") for name in libraries):
        find("the host does not have the shared library", told)

    # Where nothing but libmuster is.
    for library in Path(LIBMUSTER).parent.glob("libmuster.so.?"):
        shutil.copy(library, folder)
    told = said(HOST, "use", plain, credential=False, LD_LIBRARY_PATH=folder)
    if told.returncode != 0:
        find("a host without a credential needs no muster-tls", told)
    told = said(HOST, "lacking", address, LD_LIBRARY_PATH=folder)
    if told.returncode != 0 or "libmuster-tls.so.0" not in told.stdout:
        find("what is missing is named", told)

    told = said(HOST, "use", address, **paths)
    names = told.stdout
    if told.returncode != 0 or "libmuster-tls.so" not in names or "libssl" not in names:
        find("a host with a credential loads muster-tls", told)

    told = said(HOST_STATIC, "use", address)
    if told.returncode != 0 or "libmuster" in told.stdout or "libssl" not in told.stdout:
        find("a static host has muster-tls linked", told)

    told = said(HOST, "fork", address, **paths)
    if told.returncode != 0:
        find("children exec and exit, and the parent goes on", told)

    told = said(HOST, "leave", address, **paths)
    if told.returncode != 0:
        find("a process ends with its store open", told)

    if FAKE == "-":
        return
    told = said(HOST, "use", address, LD_PRELOAD=FAKE, **paths)
    if told.returncode != 0:
        find("other names of OpenSSL in the host are not used", told)
    program = ("import ctypes, hashlib, ssl, sys; ssl.create_default_context();"
               "shim = ctypes.CDLL(sys.argv[1]);"
               "code = shim.muster_test_leave(sys.argv[2].encode());"
               "hashlib.new('sha256', b'x').hexdigest(); ssl.create_default_context();"
               "sys.exit(code)")
    told = said("/usr/bin/python3", "-c", program, SHIM, address, **paths)
    if told.returncode != 0:
        find("an interpreter with an OpenSSL of its own", told)


def main():
    with tempfile.TemporaryDirectory() as folder, \
            Program(MUSTERD, "--listen", "127.0.0.1:0") as server, \
            Program(RELAY, server.address, KEY) as relay:
        check(server.address, relay.address, folder)
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings in {Path(__file__).name}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
