#include "runtime/meeting.h"

#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <random>
#include <utility>

#include "base/failure.h"
#include "muster/detail/secret_text.h"
#include "muster/log.h"
#include "runtime/environment_error.h"

namespace muster::runtime {

namespace {

constexpr std::string_view init_operation = "Runtime::init";

std::string text_of_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

std::string variable_or(const Environment& environment, std::string_view name,
                        std::string_view otherwise) {
  return std::string(environment.variable(name).value_or(otherwise));
}

/// A host and a port of it; of a Unix socket the whole address and 0.
struct HostAndPort {
  std::string host;
  std::uint16_t port = 0;
};

Result<HostAndPort> host_and_port_of(std::string_view address) {
  if (auto complaint = detail::complaint_of_secret("host", address); !complaint.empty())
    return base::failure(ErrorCode::invalid_argument, std::move(complaint));
  if (address.substr(0, 5) == "unix:") return HostAndPort{std::string(address), 0};
  const std::size_t colon = address.rfind(':');
  HostAndPort found;
  const std::string_view port = colon == address.npos ? "" : address.substr(colon + 1);
  const auto [end, failure] = std::from_chars(port.data(), port.data() + port.size(), found.port);
  const bool is_port = failure == std::errc() && end == port.data() + port.size();
  if (!is_port || colon == 0 || found.port == 0) {
    return base::failure(ErrorCode::invalid_argument,
                         "host '" + printable(address) +
                             "': write host:port, with a port above zero, or unix:/path");
  }
  std::string_view host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  found.host = host;
  return found;
}

Result<int> number_of(const Environment& environment, JobNumber number) {
  auto found = environment.number(number, EnvironmentRule::environment_first);
  if (!found) return std::move(found).error();
  return found->value;
}

/// "MASTER_ADDR:MASTER_PORT"
Result<std::string> master_address(const Environment& environment) {
  const auto address = environment.variable("MASTER_ADDR");
  const auto port = environment.variable("MASTER_PORT");
  if (!address || !port) {
    return environment_error(init_operation, std::string(address ? "MASTER_PORT" : "MASTER_ADDR") +
                                                 " is not set, but host_at_master_address is");
  }
  const bool is_ipv6 = address->find(':') != address->npos;
  return (is_ipv6 ? "[" + std::string(*address) + "]" : std::string(*address)) + ":" +
         std::string(*port);
}

/// A name that no other process has, for a socket without a file.
std::string private_address() {
  std::random_device random;
  char name[64];
  std::snprintf(name, sizeof name, "unix:@muster-%08x%08x%08x%08x", random(), random(), random(),
                random());
  return name;
}

}  // namespace

Result<MeetingPoint> meeting_point(const Environment& environment, const RuntimeOptions& options) {
  if (auto valid = environment.validate(Validation::contradictions); !valid)
    return std::move(valid).error();
  const auto rank = number_of(environment, JobNumber::rank);
  const auto world_size = number_of(environment, JobNumber::world_size);
  if (!rank) return rank.error();
  if (!world_size) return world_size.error();
  auto kinds = communicator_kinds_of(options.communicators);
  if (!kinds) return std::move(kinds).error();

  MeetingPoint point;
  point.rank = *rank;
  point.world_size = *world_size;
  point.kinds = *std::move(kinds);
  point.device = options.device;
  if (!point.device) {
    // LOCAL_RANK is the device even if all ranks of a host have 0, which is then no local rank.
    const auto told = environment.find(JobNumber::local_rank);
    if (told.has_value() && *told) point.device = (*told)->value;
  }
  point.timeout = options.group.timeout;
  point.other_tenants = options.group.other_tenants;
  point.data_expiration = options.group.data_expiration;
  point.name_space = options.group.store.name_space.empty()
                         ? variable_or(environment, "MUSTER_NAMESPACE", "")
                         : options.group.store.name_space;
  point.group = options.group.name.empty() ? "world" : options.group.name;
  point.store =
      options.store.empty() ? variable_or(environment, "MUSTER_STORE", "") : options.store;
  if (!point.store.empty()) return point;

  point.host = options.host;
  if (point.host.empty() && options.host_at_master_address) {
    auto address = master_address(environment);
    if (!address) return std::move(address).error();
    point.host = *std::move(address);
  }
  if (!point.host.empty()) {
    if (const auto place = host_and_port_of(point.host); !place) return place.error();
  } else if (point.world_size > 1) {
    return environment_error(
        init_operation, "nothing says where the " + std::to_string(point.world_size) +
                            " ranks meet: set MUSTER_STORE to the address of a server, such as "
                            "musterd's, or give RuntimeOptions::store or host");
  }
  return point;
}

std::string difference_of(const MeetingPoint& a, const MeetingPoint& b) {
  const auto text = [](const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>) {
      return "'" + printable(value) + "'";
    } else {
      return std::to_string(value);
    }
  };
  const auto differ = [&](const char* name, const auto& first, const auto& second) {
    return first == second ? std::string()
                           : std::string(name) + " was " + text(first) + ", and is " + text(second);
  };
  for (std::string found :
       {differ("store", a.store, b.store), differ("host", a.host, b.host),
        differ("the namespace", a.name_space, b.name_space), differ("group.name", a.group, b.group),
        differ("communicators", text_of(a.kinds), text_of(b.kinds)),
        differ("device", a.device.value_or(-1), b.device.value_or(-1)),
        differ("group.other_tenants", text_of_names(a.other_tenants),
               text_of_names(b.other_tenants)),
        differ("group.data_expiration (us)", a.data_expiration.count(), b.data_expiration.count()),
        differ("group.timeout (us)", a.timeout.count(), b.timeout.count())})
    if (!found.empty()) return found;
  return {};
}

SocketGuard::~SocketGuard() {
  if (socket_ >= 0) ::close(socket_);
}

Result<StatelessProcessGroup> meet(const MeetingPoint& point, HostedGroupOptions& options,
                                   std::optional<Store>& store) {
  options.store.name_space = point.name_space;
  options.name = point.group;
  if (!point.store.empty()) {
    auto connected = Store::connect(point.store, options.store, point.timeout);
    if (!connected) return std::move(connected).error();
    store.emplace(*std::move(connected));
    return StatelessProcessGroup::create(*store, point.group, point.rank, point.world_size,
                                         options);
  }
  HostedGroupOptions of_host = options;
  options.listening_socket = -1;
  const auto place = host_and_port_of(point.host.empty() ? private_address() : point.host);
  return StatelessProcessGroup::create(place->host, place->port, point.rank, point.world_size,
                                       point.data_expiration, point.timeout, of_host);
}

}  // namespace muster::runtime
