#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "auth/identity.h"
#include "core/keys/guest_request.h"
#include "core/memory/charged_memory.h"
#include "core/memory/server_memory.h"
#include "core/session/connection.h"
#include "core/session/options.h"
#include "wire/hello.h"
#include "wire/request.h"

namespace muster::core {

// What happens to the engine. The rim says so in the order in which it happened.

/// What holds for clients that speak another protocol, that knows no sessions: theirs begin without
/// an echo, keep no answers, may be silent, and end with their connections.
struct GuestTerms {
  Duration idle_lifetime{};  ///< of their namespace
  auth::Limits limits;       ///< of their unit; 0: those of the server
};
/// A client has said hello. `fresh_token` is random; it becomes the token of a new session.
struct Hello {
  ConnectionId connection = 0;
  wire::ClientHello hello;
  wire::ResumeToken fresh_token;
  std::string unit;  ///< whose shares it counts for
  /// What was granted to whom the client has proved to be; null: the server asks nobody who he is.
  std::shared_ptr<const auth::Grant> grant;
  /// What its connection takes that a plain one does not, such as TLS. The rim charges it.
  std::uint64_t channel_bytes = 0;
  /// Nothing: it is no guest.
  std::optional<GuestTerms> guest{};
  /// It has come to a Unix socket from a process of the server's own user or of root.
  bool is_of_own_user = false;
  std::uint64_t key = 0;  ///< the id of the key that the client has proved; 0: it has none
};
/// A client has sent back the token of its new session: it has read the hello that welcomed it.
struct Echo {
  ConnectionId connection = 0;
  wire::ResumeToken token;
};
/// Bytes have come, which proves that the client lives. Before the frames that they hold.
struct Heard {
  ConnectionId connection = 0;
};
struct Requested {
  ConnectionId connection = 0;
  const wire::Request* request = nullptr;  ///< its views are read during `apply` only
  /// In which nothing is but the request; null: it lies elsewhere. Empty afterwards if it was kept.
  ChargedMemory* memory = nullptr;
  UnsentReplies unsent{};
};
/// What only guests ask.
struct RequestedByGuest {
  ConnectionId connection = 0;
  std::uint64_t request_id = 0;
  const GuestRequest* request = nullptr;  ///< its views are read during `apply` only
  UnsentReplies unsent{};
};
struct Acknowledged {
  ConnectionId connection = 0;
  const std::vector<std::uint64_t>* request_ids = nullptr;
};
struct Abandoned {
  ConnectionId connection = 0;
  const std::vector<std::uint64_t>* request_ids = nullptr;
};
struct Heartbeat {
  ConnectionId connection = 0;
  std::uint64_t number = 0;
  const std::vector<std::uint64_t>* acknowledged = nullptr;
};
/// The client ends its session in order.
struct Goodbye {
  ConnectionId connection = 0;
};
struct Disconnected {
  ConnectionId connection = 0;
  DisconnectCause cause = DisconnectCause::closed;
  /// Which guest, and why the server has refused its request, which its protocol cannot tell it;
  /// read during `apply` only. Empty: of another kind.
  std::string_view refused{};
};
/// Time has passed: timers fire.
struct Advance {};
/// Nothing was handled for `length` until now. For `gap` of it the process did not run: that is
/// nobody's silence. Before what has come meanwhile.
struct Late {
  Duration length{};
  Duration gap{};
};
/// A piece of the backlog is to be done, of about `work_max` steps and no more than
/// `work_per_event_max`.
struct Continue {
  std::uint32_t work_max = UINT32_MAX;
};
/// Who is known has changed: sessions that have the older grant have the newer one from now on.
/// Those end at once whose newer one is null, or allows nothing in their namespace.
struct Regrant {
  using Grant = std::shared_ptr<const auth::Grant>;
  std::vector<std::pair<Grant, Grant>> grants;  ///< the older and the newer one of each
};
/// Who has started the server wants these of its settings to be as in `options`.
struct Configure {
  const Options* options = nullptr;  ///< read during `apply` only
  std::vector<std::string> names;
  std::string who;  ///< for the log
};
/// Somebody was sent away who cannot be in a group, but may be meant to be in that of the rank that
/// hosts this server.
struct Stranger {
  std::string what;  ///< who, and why, for the error of a group that waits for somebody
};
/// The server stops: every client is told `reason`.
struct Stop {
  std::string reason;
};

using Event = std::variant<Hello, Echo, Heard, Requested, RequestedByGuest, Acknowledged, Abandoned,
                           Heartbeat, Goodbye, Disconnected, Advance, Late, Continue, Regrant,
                           Configure, Stranger, Stop>;

}  // namespace muster::core
