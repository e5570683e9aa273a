#include <algorithm>

#include "option.h"
#include "support/quotes.h"

// Where the nodes of a job are, and how they meet.

namespace musterrun {
namespace {

using muster::launch::LaunchOptions;
using muster::launch::MasterOptions;
using muster::launch::PlacementOptions;
using muster::launch::RendezvousOptions;

constexpr int port_max = 65535;
constexpr std::size_t job_id_bytes_max = 200;  ///< it is a part of names of files and keys

std::string take_nodes(const std::string& value, const std::string&, Asked& to) {
  const auto colon = value.find(':');
  const auto min = int_in(value.substr(0, colon), 1);
  const auto max = colon == value.npos ? min : int_in(value.substr(colon + 1), 1);
  if (!min || !max || *max < *min)
    return no(value, "number of nodes: write N or MIN:MAX, from 1 on");
  to.options.placement.nodes = {*min, *max};
  return {};
}

std::string take_master_port(const std::string& value, const std::string&, Asked& to) {
  const auto port = int_in(value, 1);
  if (!port || *port > port_max) return no(value, "port, a number from 1 to 65535");
  to.options.master.port = *port;
  return {};
}

std::string take_tcpstore(const std::string& value, const std::string&, Asked& to) {
  using muster::launch::TcpStore;
  if (value != "auto" && value != "on" && value != "off")
    return no(value, "choice of a TCPStore; write auto, on or off");
  to.options.master.tcpstore = value == "on"    ? TcpStore::on
                               : value == "off" ? TcpStore::off
                                                : TcpStore::automatic;
  return {};
}

std::string take_dialect(const std::string& value, const std::string&, Asked& to) {
  using muster::launch::TcpStoreDialect;
  if (value != "first" && value != "second") return no(value, "dialect; write first or second");
  to.options.master.tcpstore_dialect =
      value == "first" ? TcpStoreDialect::first : TcpStoreDialect::second;
  return {};
}

std::string take_rendezvous(const std::string& value, const std::string&, Asked& to) {
  const auto colon = value.rfind(':');
  const auto bracket = value.rfind(']');
  const bool has_port = colon != value.npos && (bracket == value.npos || bracket < colon);
  const auto port = has_port ? int_in(value.substr(colon + 1), 0) : std::optional(29400);
  const std::string host = value.substr(0, has_port ? colon : value.npos);
  const bool is_bare_ipv6 = bracket == value.npos && host.find(':') != host.npos;
  if (host.empty() || host == "[]" || is_bare_ipv6 || !port || *port > port_max)
    return no(value, "address where nodes meet: write HOST:PORT, or [IPV6]:PORT");
  to.options.rendezvous.endpoint = host + ":" + std::to_string(*port);
  return {};
}

std::string take_job_id(const std::string& value, const std::string&, Asked& to) {
  if (value.size() > job_id_bytes_max) {
    return "a job id may have " + std::to_string(job_id_bytes_max) + " bytes, and this one has " +
           std::to_string(value.size());
  }
  to.options.job_id = value == "none" ? "" : value;  // torchrun's word for no id
  return {};
}

std::string take_backend(const std::string& value, const std::string& where, Asked& to) {
  if (value.starts_with("etcd")) {
    return tools::in_quotes(value) +
           " needs etcd, which musterrun does not use: leave this out, and give --rendezvous "
           "HOST:PORT";
  }
  if (value != "static" && value != "c10d") return no(value, "rendezvous; write static or c10d");
  to.rendezvous_backend = value;
  if (value == "c10d") to.notice(where, "is c10d: the nodes meet at Muster's own store instead");
  return {};
}

/// "join_timeout=600,is_host=1"
std::string take_conf(const std::string& value, const std::string&, Asked& to) {
  std::string rest = value;
  while (!rest.empty()) {
    const std::string part = rest.substr(0, rest.find(','));
    rest.erase(0, std::min(part.size() + 1, rest.size()));
    const auto equals = part.find('=');
    if (equals == part.npos || equals == 0)
      return no(part, "part of a configuration; write NAME=VALUE,NAME=VALUE");
    to.rendezvous_conf[part.substr(0, equals)] = part.substr(equals + 1);
  }
  return {};
}

/// The library asks the environment, in the launcher and in the ranks.
Take variable_into(const char* name) {
  return [name](const std::string& value, const std::string&, Asked& to) {
    to.options.variables[name] = value;
    return std::string();
  };
}

/// With which certificate the launcher and the ranks connect, in place of a key.
std::vector<Option> certificate_options() {
  return {
      {{"certificate-file"},
       "",
       "",
       "FILE",
       "the certificate of the job with its chain, PEM, for a musterd that asks for one; without "
       "it "
       "MUSTER_CERTIFICATE_FILE",
       "",
       variable_into("MUSTER_CERTIFICATE_FILE")},
      {{"certificate-key-file"},
       "",
       "",
       "FILE",
       "the key of that certificate, PEM; without it that of the certificate's file",
       "",
       variable_into("MUSTER_CERTIFICATE_KEY_FILE")},
      {{"authorities-file"},
       "",
       "",
       "FILE",
       "who has signed the server's certificate, PEM; without it MUSTER_AUTHORITIES_FILE, else "
       "whom "
       "the system trusts",
       "",
       variable_into("MUSTER_AUTHORITIES_FILE")},
  };
}

/// Of torchrun alone.
std::vector<Option> backend_options() {
  return {
      {{"standalone"},
       "",
       "",
       "",
       "one node alone, which is so without a rendezvous",
       "",
       switch_into(&Asked::is_standalone)},
      {{"rdzv-backend"},
       "",
       "",
       "NAME",
       "static: the endpoint is master_addr and master_port; c10d: the nodes meet there",
       "",
       take_backend},
      {{"rdzv-conf"},
       "",
       "",
       "LIST",
       "of NAME=VALUE; join_timeout and timeout are as --join-timeout, last_call_timeout as "
       "--last-call, of the others one is told",
       "",
       take_conf},
  };
}

}  // namespace

std::vector<Option> place_options() {
  using O = LaunchOptions;
  return {
      {{"nnodes"},
       "",
       "",
       "NODES",
       "how many nodes the job has: N, or MIN:MAX with a rendezvous",
       "1",
       take_nodes},
      {{"node-rank"},
       "",
       "",
       "NUMBER",
       "the number of this node, from 0; without it NODE_RANK",
       "",
       number_into(field<&O::placement, &PlacementOptions::node_rank>, 0)},
      {{"base-rank"},
       "",
       "",
       "NUMBER",
       "the first rank of this node; without it BASE_RANK",
       "",
       number_into(field<&O::placement, &PlacementOptions::base_rank>, 0)},
      {{"world-size"},
       "",
       "",
       "NUMBER",
       "how many ranks the job has on all nodes; without it WORLD_SIZE if that differs from "
       "LOCAL_WORLD_SIZE, else those of this node times --nnodes",
       "",
       number_into(field<&O::placement, &PlacementOptions::world_size>, 1)},
      {{"master-addr"},
       "",
       "",
       "HOST",
       "the address of the node that has rank 0; without it 127.0.0.1 of one node, and MASTER_ADDR "
       "of several",
       "",
       text_into(field<&O::master, &MasterOptions::addr>)},
      {{"master-port"},
       "",
       "",
       "PORT",
       "a free port of that node; without it one is chosen of one node, and MASTER_PORT is that of "
       "several",
       "",
       take_master_port},
      {{"tcpstore"},
       "",
       "",
       "WHEN",
       "auto, on or off: torch's ranks find a TCPStore at that address and port, else rank 0 hosts "
       "one; auto: where nobody reaches it who is not let to the job's own server",
       "auto",
       take_tcpstore},
      {{"tcpstore-dialect"},
       "",
       "",
       "DIALECT",
       "what torch speaks there: second for PyTorch 2.1, first for all others",
       "first",
       take_dialect},
  };
}

std::vector<Option> rendezvous_options() {
  using O = LaunchOptions;
  std::vector<Option> options = {
      {{"rendezvous", "rdzv-endpoint"},
       "",
       "",
       "HOST:PORT",
       "where the nodes meet, and get their ranks; port 29400 if none is named",
       "",
       take_rendezvous},
      {{"allow-unauthenticated"},
       "",
       "",
       "",
       "this node may host the server at an address that others reach: whoever does may use it",
       "",
       switch_into(field<&O::rendezvous, &RendezvousOptions::allow_unauthenticated>)},
      {{"job-id", "rdzv-id"},
       "",
       "",
       "ID",
       "tells the job apart from others; without it one is drawn",
       "",
       take_job_id},
      {{"join-timeout"},
       "",
       "",
       "DURATION",
       "how long to wait for the nodes",
       "600s",
       duration_into(field<&O::rendezvous, &RendezvousOptions::join_timeout>)},
      {{"last-call"},
       "",
       "",
       "DURATION",
       "with MIN nodes there, how long to wait for others after the last one that came",
       "30s",
       duration_into(field<&O::rendezvous, &RendezvousOptions::last_call>)},
      {{"scale-up"},
       "",
       "",
       "",
       "a node that comes later begins another attempt, with all",
       "",
       switch_into(field<&O::scale_up>)},
      {{"role"}, "", "", "NAME", "of these ranks", "default", text_into(field<&O::role>)},
      {{"local-addr"},
       "",
       "",
       "HOST",
       "the address by which other nodes reach this one",
       "",
       text_into(field<&O::rendezvous, &RendezvousOptions::local_addr>)},
  };
  for (std::vector<Option> further : {certificate_options(), backend_options()}) {
    for (Option& option : further) options.push_back(std::move(option));
  }
  return options;
}

}  // namespace musterrun
