"""A TCPStore of torch: prints the port that it listens on, and serves until it is killed."""

import datetime
import time

from torch.distributed import TCPStore

store = TCPStore("127.0.0.1", 0, None, True, datetime.timedelta(seconds=300),
                 wait_for_workers=False)
print(store.port, flush=True)
while True:
    time.sleep(3600)
