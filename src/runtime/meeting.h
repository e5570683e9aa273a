#pragma once

#include <optional>
#include <string>
#include <vector>

#include "muster/result.h"
#include "muster/runtime.h"
#include "muster/store.h"
#include "runtime/communicator_kinds.h"

namespace muster::runtime {

/// Where the processes of a job meet, and as what: the options of `Runtime::init`, with what the
/// environment says in place of those that are empty.
struct MeetingPoint {
  std::string store;  ///< the address of a server; empty: rank 0 hosts it, at `host`
  std::string host;   ///< empty as well: the process is alone
  std::string name_space;
  std::string group;
  CommunicatorKinds kinds;
  std::optional<int> device;
  std::vector<std::string> other_tenants;
  Duration data_expiration{0};
  Duration timeout{0};
  int rank = 0;
  int world_size = 1;
};

/// errors  environment (no server is named, or no rank), invalid_argument
Result<MeetingPoint> meeting_point(const Environment& environment, const RuntimeOptions& options);

/// In what the two differ, for people; empty: they are equal.
std::string difference_of(const MeetingPoint& a, const MeetingPoint& b);

/// Closes a listening socket that nobody has taken over when it goes.
class SocketGuard {
 public:
  /// socket  -1: there is none, any more
  explicit SocketGuard(const int& socket) : socket_(socket) {}
  ~SocketGuard();
  SocketGuard(const SocketGuard&) = delete;
  SocketGuard& operator=(const SocketGuard&) = delete;

 private:
  const int& socket_;
};

/// Forms the world there. `store` is set if this process has connected to a server itself, and
/// outlives the group. If the listening socket of `options` is taken over, it is -1 afterwards.
Result<StatelessProcessGroup> meet(const MeetingPoint& point, HostedGroupOptions& options,
                                   std::optional<Store>& store);

}  // namespace muster::runtime
