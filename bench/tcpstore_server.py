"""A TCPStore of torch: prints the port that it listens on, and serves until it is killed.

tcpstore_server.py [libuv]   libuv: by the server that newer ones have beside the older one
"""

import datetime
import sys
import time

from torch.distributed import TCPStore

choice = {"use_libuv": True} if sys.argv[1:] == ["libuv"] else {}
store = TCPStore("127.0.0.1", 0, None, True, datetime.timedelta(seconds=300),
                 wait_for_workers=False, **choice)
print(store.port, flush=True)
while True:
    time.sleep(3600)
