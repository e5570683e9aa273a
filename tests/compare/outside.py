"""What can be seen of a process, and done to it, from outside."""

import asyncio
import os
import signal
import socket
from pathlib import Path

from observation import in_words
from processes import PATIENCE_S, Violation, within

TCP_LISTENS = "0A"


async def connection(address):
    host, port = address.rsplit(":", 1)
    return await within(PATIENCE_S, f"a connection to {address}",
                        asyncio.open_connection(host, int(port)))


def is_running(program):
    return program.process.returncode is None


async def how_it_ended(program):
    number = await within(PATIENCE_S, f"the end of {program.name}", program.process.wait())
    return f"ends by {signal.Signals(-number).name}" if number < 0 else f"ends with {number}"


async def processes_ended(programs, after_s=0.5):
    """In words, which of the processes have ended a little later."""
    await asyncio.sleep(after_s)
    ways = [await how_it_ended(program) for program in programs if not is_running(program)]
    if not ways:
        return ""
    if len(programs) == 1:
        return f"; **then its process {ways[0]}**"
    return f"; **then {len(ways)} of {len(programs)} such processes {in_words(sorted(set(ways)))}**"


async def stop(program):
    """SIGSTOP, and that it stands still."""
    program.signal(signal.SIGSTOP)
    tasks = Path(f"/proc/{program.pid}/task")
    while any((task / "stat").read_text().rsplit(")", 1)[1].split()[0] != "T"
              for task in tasks.iterdir()):
        await asyncio.sleep(0.01)


def status_bytes(program, name):
    """A number of /proc/PID/status; 0 of a process that has ended."""
    if is_running(program):
        for line in Path(f"/proc/{program.pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    return 0


def resident_bytes(program):
    return status_bytes(program, "VmRSS")


def most_resident_bytes(program):
    return status_bytes(program, "VmHWM")


def address_of(hexadecimal):
    """An address of /proc/net/tcp or tcp6."""
    words = bytes.fromhex(hexadecimal)
    swapped = b"".join(words[at:at + 4][::-1] for at in range(0, len(words), 4))
    return socket.inet_ntop(socket.AF_INET if len(words) == 4 else socket.AF_INET6, swapped)


def listening_addresses(program):
    """Where the process listens, by what the kernel says of its sockets."""
    sockets = set()
    for entry in Path(f"/proc/{program.pid}/fd").iterdir():
        try:
            sockets.add(os.readlink(entry))
        except OSError:
            continue
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == TCP_LISTENS and f"socket:[{fields[9]}]" in sockets:
                found.append(address_of(fields[1].split(":")[0]))
    return found
