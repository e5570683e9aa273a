"""Faults of the server and of its machine."""

import server_effects
from fault import CLOSED, GROUP_PHASES, Fault
from scenario import DEFAULT

SERVERS = [
    Fault("server_restart", "the server is killed and restarted", server_effects.server_restarted,
          None, promise="1.5 s after it listens"),
    Fault("server_gone", "the server is killed and does not come back",
          server_effects.server_gone, None, promise="min(deadline, 30 s)"),
    Fault("server_stop", "the server stops", server_effects.server_stops, None, promise="e"),
    Fault("server_pause", "the server is paused", server_effects.server_paused, None,
          promise="`suspended` at 0.8 S + e"),
]
HOSTED = {"effect": server_effects.host_dies, "inject": None, "hosted": True,
          "prepare": server_effects.prepare_host,
          "phases": ("during_join", *GROUP_PHASES)}
HOSTS = [
    Fault("host_dies", "the process that embeds the server dies, refused", victim_dies=True,
          bound_s=lambda t: CLOSED["bound_s"](DEFAULT), promise="G + e", **HOSTED),
    Fault("host_silent", "the process that embeds the server is silent",
          bound_s=lambda t: 0.8 * DEFAULT.session + DEFAULT.slack, promise="0.8 S + e",
          **HOSTED),
]
