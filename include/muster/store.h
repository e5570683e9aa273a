#pragma once

// Start here. A Store is one connection to a server (`musterd`, or one that another process
// embeds) and one session there. Many threads may use one store; a call that waits never blocks
// another. Every group that is made on the store shares it, see muster/process_group.h.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/config.h"
#include "muster/io_thread.h"
#include "muster/log.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Takes the result of a call in its callback form. Runs exactly once, on the store's handler
/// thread or executor; what it throws is logged and dropped.
template <class T>
using Handler = std::function<void(Result<T> result)>;

/// As a timeout: the one of the store's options.
inline constexpr Duration default_timeout{-1};

/// Where handlers run.
enum class HandlerPlace {
  handler_thread,  ///< the I/O thread's companion, or `StoreOptions::executor` if there is one
  io_thread,       ///< inline: for handlers that never block and make no blocking call
};

struct StoreOptions {
  /// A chroot inside the server for keys and groups, e.g. one per job; at most 64 bytes.
  std::string name_space;
  /// Free text that errors at other ranks show, such as a pod's name; at most 64 bytes.
  std::string label;
  /// Of calls that are given `default_timeout`.
  Duration timeout{std::chrono::seconds(300)};
  /// Shared with other stores; none: a thread of its own.
  std::shared_ptr<IoThread> io_thread;
  HandlerPlace handlers = HandlerPlace::handler_thread;
  Executor executor;
  /// Silent by default.
  Logger logger;
  /// Told once when the session is over (session_expired, fenced, server_restarted); every call
  /// fails with the same error until `reopen()`.
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

/// A key in a listing.
struct KeyInfo {
  std::string key;
  std::uint64_t value_bytes = 0;
  std::optional<Duration> ttl;  ///< what is left of it
  bool bound = false;           ///< to a session
};
struct KeyPage {
  std::vector<KeyInfo> keys;
  std::uint64_t cursor = 0;     ///< for the next page; 0: this was the last
};

/// What a server allows; `Store::limits()`.
struct Limits {
  std::uint32_t key_bytes_max = 0;
  std::uint32_t value_bytes_max = 0;
  std::uint64_t round_bytes_max = 0;
  std::uint32_t keys_per_operation_max = 0;
  std::uint32_t world_size_max = 0;
  Duration heartbeat{0};
  Duration session_timeout{0};
  Duration grace{0};
  Duration slack{0};
};

/// Every call blocks until it is done or its timeout has passed; each has a callback form that
/// ends in `_async` and never blocks. Errors that every call can give, beside its own:
/// invalid_argument, too_large, resource_exhausted, timed_out, cancelled, closed, unavailable,
/// suspended, outcome_unknown, session_expired, server_restarted, fenced, forked, would_deadlock,
/// protocol_error. Threads: any.
class MUSTER_API Store {
 public:
  /// Connects to a server and begins a session there.
  ///
  /// Blocks until the server has answered; tries again until then, so that the server may start
  /// later than its clients.
  ///
  /// address  "host:port", "[ipv6]:port" or "unix:/path"
  /// timeout  of everything: name look-up, attempts, hello
  /// errors   unavailable (what was tried, and the last reason), protocol_error (something else
  ///          answers there), unsupported, busy, invalid_argument
  static Result<Store> connect(std::string_view address, StoreOptions options = {},
                               Duration timeout = std::chrono::seconds(30));

  /// Closes without blocking: pending calls end with `closed`.
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  // One key.

  /// Sets `key`.
  ///
  /// returns  false when `only_if_absent` was asked for and the key is there
  /// cost     one round trip
  Result<bool> set(std::string_view key, std::string_view value, const SetOptions& options = {},
                   Duration timeout = default_timeout);

  /// The key's value; waits until it is set. A timeout of zero asks once.
  ///
  /// errors   timed_out, not_found (zero timeout)
  /// cost     one round trip; nothing is polled
  Result<std::string> get(std::string_view key, Duration timeout = default_timeout);

  /// As `get`, and removes the key. Of several takers exactly one gets it, in order of asking.
  Result<std::string> take(std::string_view key, Duration timeout = default_timeout);

  /// Adds to a decimal signed 64-bit number; a missing key counts as 0. Applied exactly once.
  ///
  /// returns  the new number
  /// errors   not_a_number, out_of_range
  Result<std::int64_t> add(std::string_view key, std::int64_t delta,
                           Duration timeout = default_timeout);

  /// Sets `key` to `desired` when it holds `expected` (none: when it is absent).
  ///
  /// returns  nothing when it was done; otherwise what the key holds
  struct Compared {
    bool applied = false;
    std::optional<std::string> current;
  };
  Result<Compared> compare_set(std::string_view key, std::optional<std::string_view> expected,
                               std::string_view desired, std::optional<Duration> ttl = {},
                               Duration timeout = default_timeout);

  /// Appends to the value; a missing key counts as empty.
  ///
  /// returns  the new length in bytes
  Result<std::uint64_t> append(std::string_view key, std::string_view suffix,
                               Duration timeout = default_timeout);

  /// Gives the key a new time to live; none: it lives until removed.
  ///
  /// errors   not_found
  Result<void> touch(std::string_view key, std::optional<Duration> ttl,
                     Duration timeout = default_timeout);

  /// returns  whether it was there
  Result<bool> remove(std::string_view key, Duration timeout = default_timeout);

  Result<bool> exists(std::string_view key, Duration timeout = default_timeout);

  // Many keys: at most `limits().keys_per_operation_max`.

  /// returns  how many of the keys there were
  Result<std::uint64_t> multi_remove(Span<const std::string_view> keys,
                                     Duration timeout = default_timeout);

  /// returns  one element per key
  Result<std::vector<bool>> multi_exists(Span<const std::string_view> keys,
                                         Duration timeout = default_timeout);

  /// Blocks until all keys are present at one instant.
  Result<void> wait(Span<const std::string_view> keys, Duration timeout = default_timeout);

  /// The values that are there now, one element per key.
  Result<std::vector<std::optional<std::string>>> multi_get(Span<const std::string_view> keys,
                                                            Duration timeout = default_timeout);

  /// Sets all or none.
  Result<void> multi_set(Span<const std::pair<std::string_view, std::string_view>> entries,
                         std::optional<Duration> ttl = {}, Duration timeout = default_timeout);

  /// One page of the keys that begin with `prefix`, in no order. A key that exists throughout
  /// a listing is on exactly one of its pages.
  ///
  /// cursor   0, or that of the page before
  Result<KeyPage> list(std::string_view prefix, std::uint64_t cursor = 0,
                       Duration timeout = default_timeout);

  // Callback forms: the same promises, the handler gets the result.

  void set_async(std::string_view key, std::string_view value, const SetOptions& options,
                 Duration timeout, Handler<bool> handler);
  void get_async(std::string_view key, Duration timeout, Handler<std::string> handler);
  void take_async(std::string_view key, Duration timeout, Handler<std::string> handler);
  void add_async(std::string_view key, std::int64_t delta, Duration timeout,
                 Handler<std::int64_t> handler);
  void compare_set_async(std::string_view key, std::optional<std::string_view> expected,
                         std::string_view desired, std::optional<Duration> ttl, Duration timeout,
                         Handler<Compared> handler);
  void append_async(std::string_view key, std::string_view suffix, Duration timeout,
                    Handler<std::uint64_t> handler);
  void touch_async(std::string_view key, std::optional<Duration> ttl, Duration timeout,
                   Handler<void> handler);
  void remove_async(std::string_view key, Duration timeout, Handler<bool> handler);
  void exists_async(std::string_view key, Duration timeout, Handler<bool> handler);
  void multi_remove_async(Span<const std::string_view> keys, Duration timeout,
                          Handler<std::uint64_t> handler);
  void multi_exists_async(Span<const std::string_view> keys, Duration timeout,
                          Handler<std::vector<bool>> handler);
  void wait_async(Span<const std::string_view> keys, Duration timeout, Handler<void> handler);
  void multi_get_async(Span<const std::string_view> keys, Duration timeout,
                       Handler<std::vector<std::optional<std::string>>> handler);
  void multi_set_async(Span<const std::pair<std::string_view, std::string_view>> entries,
                       std::optional<Duration> ttl, Duration timeout, Handler<void> handler);
  void list_async(std::string_view prefix, std::uint64_t cursor, Duration timeout,
                  Handler<KeyPage> handler);

  // The session.

  /// Declares a process dead that a supervisor knows to be: its session ends at once as after a
  /// loss. If it lives, its next call fails with `fenced`.
  Result<void> report_dead(const ProcessId& process, std::string_view reason,
                           Duration timeout = default_timeout);

  /// What the server tells of itself: pairs of name and value, see docs/operations.md.
  Result<std::vector<std::pair<std::string, std::string>>> status(
      Duration timeout = default_timeout);

  /// Ends every pending call with `cancelled`, and the undecided rounds of its groups for all
  /// ranks. Later calls are not concerned.
  ///
  /// threads  any, and signal handlers: async-signal-safe
  void cancel() noexcept;

  /// Ends the session in order: bound keys go, groups are left. Pending calls end with `closed`.
  void close();

  /// After session_expired, fenced or server_restarted: begins a new session. Groups of the old
  /// one stay dead.
  Result<void> reopen(Duration timeout = default_timeout);

  /// As of the server that answered last.
  Limits limits() const;
  const std::string& address() const;
  const ProcessInfo& process() const;
  std::uint64_t incarnation() const;

  class Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  explicit Store(std::shared_ptr<Impl> impl);
  friend class StatelessProcessGroup;
  std::shared_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
