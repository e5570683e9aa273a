"""All faults of the matrix, in the order of its table."""

from network_faults import NETWORKS, PROXIED
from object_faults import OBJECTS
from rank_faults import MEMBERS, SIGNALS
from reader_faults import READERS
from resource_faults import CLOCKS, RESOURCES
from server_faults import HOSTS, SERVERS

FAULTS = [*SIGNALS, *MEMBERS, *OBJECTS, *PROXIED, *NETWORKS, *SERVERS, *HOSTS, *RESOURCES,
          *READERS, *CLOCKS]
