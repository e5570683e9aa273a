"""All faults of the matrix, in the order of its table."""

from network_faults import NETWORKS, PROXIED
from rank_faults import MEMBERS, SIGNALS
from resource_faults import CLOCKS, RESOURCES
from server_faults import HOSTS, SERVERS

FAULTS = [*SIGNALS, *MEMBERS, *PROXIED, *NETWORKS, *SERVERS, *HOSTS, *RESOURCES, *CLOCKS]
