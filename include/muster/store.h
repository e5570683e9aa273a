#pragma once

// Start here. A Store is one connection to a server (`musterd`, or one that another process
// embeds) and one session there. Many threads may use one store; a call that waits never blocks
// another. Every group that is made on the store shares it, see muster/process_group.h.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/call.h"
#include "muster/config.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/store_options.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Keys and values on a server, and the session that groups are made on.
///
/// Every call blocks until it is done or its timeout has passed, and has a callback form that
/// ends in `_async` and never blocks. A timeout covers the whole call; a call ends at the latest
/// at its timeout + `limits().slack` (+ 100 ms when the I/O thread is kept from running), and then
/// says `outcome_unknown`. While the connection is down calls wait for it to come back; the server
/// applies each once, however often it was sent.
///
/// errors   of every call, beside its own: invalid_argument, too_large (actual, limit),
///          resource_exhausted, timed_out, cancelled, closed, unavailable, suspended,
///          outcome_unknown, session_expired, server_restarted, fenced, forked, protocol_error;
///          of the blocking forms also would_deadlock
/// threads  any; the blocking forms not from an inline handler (see HandlerPlace)
///
/// A Store is a handle. The session ends with `close()`, or when the store and all groups made on
/// it are gone. A store that was moved from gives `closed` from every call.
///
/// After fork() the child gets `forked` from every call, and its destructors close the sockets
/// that it inherited; the parent is not concerned.
class MUSTER_API Store {
 public:
  /// Connects to a server and begins a session there.
  ///
  /// Blocks until the server has answered; tries again until then, so that the server may start
  /// later than its clients.
  ///
  /// address  "host:port", "[ipv6]:port" or "unix:/path"
  /// timeout  of everything: name look-up, attempts, hello
  /// errors   unavailable (`detail`: how often what was tried, and the last reason), busy (so said
  ///          the server to the end), protocol_error (something else answers there), unsupported,
  ///          permission_denied, resource_exhausted (of this process), invalid_argument
  /// threads  any, but not from an inline handler
  static Result<Store> connect(std::string_view address, StoreOptions options = {},
                               Duration timeout = std::chrono::seconds(30));
  static Call connect_async(std::string_view address, StoreOptions options, Duration timeout,
                            Handler<Store> handler);

  /// Closes, unless groups of it live on: pending calls end with `closed`. Hands a goodbye to the
  /// kernel (100 ms at most when the I/O thread is busy); never waits for the network.
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  // One key. A key is any bytes, at least one and at most `limits().key_bytes_max`; a value is
  // any bytes, at most `limits().value_bytes_max`.

  /// Sets `key`; without a TTL an older TTL is gone.
  ///
  /// returns  false when `only_if_absent` was asked for and the key is there
  /// cost     one round trip
  Result<bool> set(std::string_view key, std::string_view value, const SetOptions& options = {},
                   Duration timeout = default_timeout);

  /// The key's value.
  ///
  /// Blocks until it is set. A timeout of zero asks once.
  ///
  /// errors   timed_out, not_found (zero timeout)
  /// cost     one round trip; nothing is polled
  Result<std::string> get(std::string_view key, Duration timeout = default_timeout);

  /// As `get`, and removes the key. Of several takers exactly one gets it, in order of asking.
  ///
  /// errors   timed_out, not_found (zero timeout)
  /// cost     one round trip; nothing is polled
  Result<std::string> take(std::string_view key, Duration timeout = default_timeout);

  /// Adds to a decimal signed 64-bit number; a missing key counts as 0. Applied exactly once.
  ///
  /// returns  the new number
  /// errors   not_a_number, out_of_range; the value is as it was
  /// cost     one round trip
  Result<std::int64_t> add(std::string_view key, std::int64_t delta,
                           Duration timeout = default_timeout);

  /// Sets `key` to `desired` when it holds `expected`.
  ///
  /// expected  none: when the key is absent
  /// returns   whether it was applied; otherwise what the key holds
  /// cost      one round trip
  Result<Compared> compare_set(std::string_view key, std::optional<std::string_view> expected,
                               std::string_view desired, WriteOptions options = {},
                               Duration timeout = default_timeout);

  /// Appends to the value; a missing key counts as empty.
  ///
  /// returns  the new length in bytes
  /// cost     one round trip
  Result<std::uint64_t> append(std::string_view key, std::string_view suffix,
                               Duration timeout = default_timeout);

  /// Gives the key a new time to live.
  ///
  /// ttl      above zero; none: it lives until removed
  /// errors   not_found
  /// cost     one round trip
  Result<void> touch(std::string_view key, std::optional<Duration> ttl,
                     Duration timeout = default_timeout);

  /// Removes the key.
  ///
  /// returns  whether it was there
  /// cost     one round trip
  Result<bool> remove(std::string_view key, Duration timeout = default_timeout);

  /// Whether the key is there now.
  ///
  /// cost     one round trip
  Result<bool> exists(std::string_view key, Duration timeout = default_timeout);

  // Many keys: at most `limits().keys_per_operation_max` of them, `limits().round_bytes_max` of
  // values in all.

  /// Removes the keys.
  ///
  /// returns  how many of them there were
  /// cost     one round trip
  Result<std::uint64_t> multi_remove(Span<const std::string_view> keys,
                                     Duration timeout = default_timeout);

  /// Whether the keys are there now.
  ///
  /// returns  one element per key, in their order
  /// cost     one round trip
  Result<std::vector<bool>> multi_exists(Span<const std::string_view> keys,
                                         Duration timeout = default_timeout);

  /// Blocks until all keys are present at one instant.
  ///
  /// errors   timed_out, not_found (zero timeout)
  /// cost     one round trip; nothing is polled
  Result<void> wait(Span<const std::string_view> keys, Duration timeout = default_timeout);

  /// The values that are there now, all read at one instant.
  ///
  /// returns  one element per key, in their order; none: absent
  /// cost     one round trip
  Result<std::vector<std::optional<std::string>>> multi_get(Span<const std::string_view> keys,
                                                            Duration timeout = default_timeout);

  /// Sets all or none, at one instant.
  ///
  /// cost     one round trip
  Result<void> multi_set(Span<const std::pair<std::string_view, std::string_view>> entries,
                         WriteOptions options = {}, Duration timeout = default_timeout);

  /// One page of the keys that begin with `prefix`, in no order. A key that exists throughout
  /// a listing is on exactly one of its pages; a page may be empty and not the last.
  ///
  /// cursor   0, or that of the page before
  /// cost     one round trip; the server looks at a bounded number of keys per page
  Result<KeyPage> list(std::string_view prefix, std::uint64_t cursor = 0,
                       Duration timeout = default_timeout);

  // Callback forms: the same arguments, promises and errors. They never block; what the arguments
  // view is used before they return. The Call that they return can end that one call.

  Call set_async(std::string_view key, std::string_view value, const SetOptions& options,
                 Duration timeout, Handler<bool> handler);
  Call get_async(std::string_view key, Duration timeout, Handler<std::string> handler);
  Call take_async(std::string_view key, Duration timeout, Handler<std::string> handler);
  Call add_async(std::string_view key, std::int64_t delta, Duration timeout,
                 Handler<std::int64_t> handler);
  Call compare_set_async(std::string_view key, std::optional<std::string_view> expected,
                         std::string_view desired, WriteOptions options, Duration timeout,
                         Handler<Compared> handler);
  Call append_async(std::string_view key, std::string_view suffix, Duration timeout,
                    Handler<std::uint64_t> handler);
  Call touch_async(std::string_view key, std::optional<Duration> ttl, Duration timeout,
                   Handler<void> handler);
  Call remove_async(std::string_view key, Duration timeout, Handler<bool> handler);
  Call exists_async(std::string_view key, Duration timeout, Handler<bool> handler);
  Call multi_remove_async(Span<const std::string_view> keys, Duration timeout,
                          Handler<std::uint64_t> handler);
  Call multi_exists_async(Span<const std::string_view> keys, Duration timeout,
                          Handler<std::vector<bool>> handler);
  Call wait_async(Span<const std::string_view> keys, Duration timeout, Handler<void> handler);
  Call multi_get_async(Span<const std::string_view> keys, Duration timeout,
                       Handler<std::vector<std::optional<std::string>>> handler);
  Call multi_set_async(Span<const std::pair<std::string_view, std::string_view>> entries,
                       WriteOptions options, Duration timeout, Handler<void> handler);
  Call list_async(std::string_view prefix, std::uint64_t cursor, Duration timeout,
                  Handler<KeyPage> handler);

  // The session.

  /// Declares a process dead that a supervisor knows to be: its session ends at once as after a
  /// loss. If it lives, its next call fails with `fenced`.
  ///
  /// reason   for people, at most `limits().key_bytes_max`; the others' errors show it
  /// errors   not_found (no session of that process)
  /// cost     one round trip
  Result<void> report_dead(const ProcessId& process, std::string_view reason,
                           Duration timeout = default_timeout);
  Call report_dead_async(const ProcessId& process, std::string_view reason, Duration timeout,
                         Handler<void> handler);

  /// What the server tells of itself: pairs of name and value, see docs/operations.md.
  ///
  /// cost     one round trip
  Result<std::vector<std::pair<std::string, std::string>>> status(
      Duration timeout = default_timeout);
  Call status_async(Duration timeout,
                    Handler<std::vector<std::pair<std::string, std::string>>> handler);

  /// Ends every call that has begun with `cancelled`. Undecided rounds and regroups of its groups
  /// end with `cancelled` for all ranks, as soon as the server has answered; when it does not
  /// within 2 s, with `outcome_unknown` here. Later calls are not concerned.
  ///
  /// threads  any, and signal handlers: async-signal-safe
  void cancel() noexcept;

  /// Ends the session in order: bound keys go, groups are left, pending and later calls end with
  /// `closed`. Hands a goodbye to the kernel (100 ms at most when the I/O thread is busy); never
  /// waits for the network.
  ///
  /// threads  any
  void close();

  /// After session_expired, fenced or server_restarted: begins a new session. Groups of the old
  /// one stay dead. Returns at once while a session stands.
  ///
  /// Blocks until the server has answered, as `connect` does.
  ///
  /// errors   as `connect`
  Result<void> reopen(Duration timeout = default_timeout);
  Call reopen_async(Duration timeout, Handler<void> handler);

  /// As of the server that answered last.
  Limits limits() const;
  /// As it was given to `connect`.
  const std::string& address() const;
  /// This process, as the errors of others show it.
  const ProcessInfo& process() const;
  /// Of the server that answered last: another number after it was restarted.
  std::uint64_t incarnation() const;

  class Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  explicit Store(std::shared_ptr<Impl> impl);
  friend class StatelessProcessGroup;
  std::shared_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
