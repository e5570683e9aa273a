"""A process group without global state on a TCPStore, by the algorithm that vLLM's has.

Objects are pickled into keys that count; a receiver asks for the next number. A barrier is a
broadcast of a name, a key of each rank that says it has come, and one that says it goes. The key
of an object has its receiver and its number, and nothing else; what expires is removed by its
sender, when it sends again. That is how it is meant to be: this is what Muster is compared with.
"""

import collections
import os
import pickle
import time
import uuid


class BarrierTimeout(RuntimeError):
    pass


class StatelessGroup:
    def __init__(self, store, rank, world_size, expiration_s=3600.0):
        self.store = store
        self.rank = rank
        self.world_size = world_size
        self.expiration_s = expiration_s
        self.sent_to = collections.Counter()
        self.received_from = collections.Counter()
        self.broadcasts_of = collections.Counter()
        self.own_keys = collections.deque()  # (key, when it was set), the oldest first

    def meet(self, timeout_s):
        """Counts who has come; rank 0 alone waits for all."""
        self.store.add("init", 1)
        until = time.monotonic() + timeout_s
        while self.rank == 0 and self.store.add("init", 0) < self.world_size:
            if time.monotonic() > until:
                raise TimeoutError("timed out before all ranks had come")
            time.sleep(0.01)

    def expire(self):
        while self.own_keys and time.time() - self.own_keys[0][1] > self.expiration_s:
            self.store.delete_key(self.own_keys.popleft()[0])

    def put(self, key, value):
        self.expire()
        self.store.set(key, pickle.dumps(value))
        self.own_keys.append((key, time.time()))

    def send(self, value, destination):
        self.put(f"send_to/{destination}/{self.sent_to[destination]}", value)
        self.sent_to[destination] += 1

    def receive(self, source):
        value = pickle.loads(self.store.get(f"send_to/{self.rank}/{self.received_from[source]}"))
        self.received_from[source] += 1
        return value

    def broadcast(self, value, source):
        key = f"broadcast_from/{source}/{self.broadcasts_of[source]}"
        if self.rank == source:
            self.put(key, value)
        else:
            value = pickle.loads(self.store.get(key))
        self.broadcasts_of[source] += 1
        return value

    def all_gather(self, value):
        return [self.broadcast(value, source) for source in range(self.world_size)]

    def barrier(self, timeout_s):
        """Rank 0 goes last and removes what the barrier has needed, but for its name."""
        name = self.broadcast(f"barrier_{uuid.uuid4()}", 0)
        self.pass_phase(f"arrival_{name}", timeout_s)
        self.store.set(f"departure_{name}_{self.rank}", b"1")
        if self.rank == 0:
            self.see_all(f"departure_{name}", timeout_s)
            for phase in ("arrival", "departure"):
                for rank in range(self.world_size):
                    self.store.delete_key(f"{phase}_{name}_{rank}")

    def pass_phase(self, phase, timeout_s):
        self.store.set(f"{phase}_{self.rank}", b"1")
        self.see_all(phase, timeout_s)

    def see_all(self, phase, timeout_s):
        """Asks for one rank after the other. Each `get` waits as long as the store does."""
        until = time.monotonic() + timeout_s
        missing = set(range(self.world_size))
        while missing:
            if time.monotonic() > until:
                raise BarrierTimeout(f"the barrier timed out after {timeout_s:.2f} seconds")
            for rank in sorted(missing):
                try:
                    self.store.get(f"{phase}_{rank}")
                    missing.remove(rank)
                except RuntimeError:
                    os.sched_yield()
