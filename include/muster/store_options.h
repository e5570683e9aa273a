#pragma once

// What a Store is told and what it tells: muster/store.h includes this.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "muster/config.h"
#include "muster/io_thread.h"
#include "muster/log.h"
#include "muster/result.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Takes the result of a call in its callback form. Runs exactly once, where
/// `StoreOptions::handlers` and `executor` say, never before the call has returned on the same
/// thread unless the store was moved from or belongs to the parent of a forked child. It may run
/// after the store is gone: let it own what it uses. One that takes longer than 100 ms is logged;
/// what it throws is logged and dropped.
template <class T>
using Handler = std::function<void(Result<T> result)>;

/// As a timeout: the one of the options. Other negative timeouts are `invalid_argument`; those
/// above 30 days count as 30 days.
inline constexpr Duration default_timeout{-1};

/// Where handlers run.
enum class HandlerPlace {
  /// One after the other on the handler thread of the I/O thread, or on `StoreOptions::executor`.
  /// Such a handler may make blocking calls; one that waits for another handler of the same
  /// thread waits for ever.
  handler_thread,
  /// At once on the I/O thread, for handlers that never block: heartbeats wait for them. Blocking
  /// calls give `would_deadlock` there.
  io_thread,
};

/// What a store is for.
enum class Role {
  client,
  /// Uses keys and looks at the server, as operators do: takes no part in groups
  /// (`permission_denied`), and a server that stops does not wait for it.
  observer,
};

struct StoreOptions {
  Role role = Role::client;
  /// A chroot inside the server for keys and groups, e.g. one per job; at most 64 bytes.
  std::string name_space;
  /// Free text that errors at other ranks show, such as a pod's name; at most 64 bytes.
  std::string label;
  /// Of calls that are given `default_timeout`.
  Duration timeout{std::chrono::seconds(300)};
  /// Shared with other stores; none: a thread of its own. One serves thousands of stores.
  std::shared_ptr<IoThread> io_thread;
  /// After the last event the I/O thread looks for the next one for so long before it sleeps, as
  /// ServerOptions::busy_poll says: 0 (never) to `busy_poll_max`.
  Duration busy_poll{0};
  HandlerPlace handlers = HandlerPlace::handler_thread;
  /// Runs handlers in place of the handler thread. Called on the I/O thread: it must queue the
  /// work and return.
  Executor executor;
  /// Silent by default.
  Logger logger;
  /// Told once, as handlers are, when a session is over (session_expired, fenced,
  /// server_restarted): every call fails with the same error until `reopen()`.
  std::function<void(const Error& error)> on_session_end;
};

/// How a key is set.
struct SetOptions {
  /// Time to live, above zero; none: until it is removed.
  std::optional<Duration> ttl;
  bool only_if_absent = false;
  /// The key goes when this store's session ends.
  bool bind_to_session = false;
};

/// How `compare_set` and `multi_set` set keys. A time to live and a timeout beside each other would
/// be mixed up; this keeps them apart.
struct WriteOptions {
  std::optional<Duration> ttl;  ///< as in SetOptions
};

/// What `compare_set` found.
struct Compared {
  bool applied = false;
  /// When it was not applied: what the key holds; none: it is absent.
  std::optional<std::string> current;
};

/// A key in a listing.
struct KeyInfo {
  std::string key;
  std::uint64_t value_bytes = 0;
  std::optional<Duration> ttl;  ///< what is left of it
  bool bound = false;           ///< to a session
};
struct KeyPage {
  std::vector<KeyInfo> keys;
  std::uint64_t cursor = 0;  ///< for the next page; 0: this was the last
};

/// What a server allows and promises; docs/semantics.md explains each.
struct Limits {
  std::uint32_t key_bytes_max = 0;
  std::uint32_t value_bytes_max = 0;
  std::uint64_t round_bytes_max = 0;  ///< sum of one collective or of one multi_ call
  std::uint32_t keys_per_operation_max = 0;
  std::uint32_t world_size_max = 0;
  Duration heartbeat{0};
  Duration session_timeout{0};
  Duration grace{0};
  Duration slack{0};
};

MUSTER_END_NAMESPACE
