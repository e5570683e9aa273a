#pragma once

// Start here. A Store is one session with a server (`musterd`, or a server that another process
// embeds) and the connection that carries it. Many threads may use one store: a call that waits
// does not block other calls. Groups are created on a store and share its session, see
// muster/process_group.h.

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
#include "muster/keys.h"
#include "muster/result.h"
#include "muster/store_options.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// Keys and values on a server, and the session that groups are made on.
///
/// Every call blocks until it is done or its timeout has passed. Its callback form, which ends in
/// `_async`, never blocks. The timeout covers the whole call. If the server does not answer, the
/// call ends with `outcome_unknown` after its timeout + `limits().slack` (+ 100 ms if the I/O
/// thread does not get to run). While the connection is down, calls wait for the reconnect. The
/// server applies each call once, even if the client sends it again.
///
/// The error of a call that changes something says whether it happened (`Error::happened`): no,
/// then it may be repeated; or maybe, then look first. A call that only reads may be repeated at
/// any time.
///
/// errors   of every call, beside its own: invalid_argument, too_large (actual, limit),
///          resource_exhausted, timed_out, cancelled, closed, unavailable, suspended,
///          outcome_unknown, session_expired, server_restarted, fenced, forked, protocol_error;
///          of the blocking forms also would_deadlock
/// threads  any; the blocking forms not from an inline handler (see HandlerPlace)
///
/// A Store is a handle. The session ends with `close()`, or when the store and all groups created
/// on it are destroyed. After a move, every call on the old store returns `closed`.
///
/// After fork(), every call in the child returns `forked`, and the child's destructors close the
/// sockets that it inherited. This does not affect the parent.
class MUSTER_API Store {
 public:
  /// Connects to a server and begins a session there.
  ///
  /// Blocks until the server has accepted the session. Tries again after each failed attempt, so
  /// the server may start later than its clients, unless `StoreOptions::wait_for_server` bounds
  /// that.
  ///
  /// address  "host:port", "[ipv6]:port", "unix:/path", or "unix:@name" for a Unix socket without a
  ///          file (Linux calls it abstract)
  /// timeout  of the whole call: name look-up, all attempts, hello
  /// errors   unavailable (`detail`: the last reason, and the number of attempts until the
  ///          timeout), busy (the server refused new sessions until the timeout), protocol_error
  ///          (something other than a Muster server answered), unsupported, permission_denied,
  ///          resource_exhausted (in this process), invalid_argument
  /// threads  any, but not from an inline handler
  static Result<Store> connect(std::string_view address, StoreOptions options = {},
                               Duration timeout = std::chrono::seconds(30));
  static Call connect_async(std::string_view address, StoreOptions options, Duration timeout,
                            Handler<Store> handler);

  /// Does what `close` does, unless groups on this store still exist.
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;

  // One key. A key has 1 to `limits().key_bytes_max` bytes, a value 0 to
  // `limits().value_bytes_max` bytes. Both may hold any bytes.

  /// Sets `key`. Removes its time to live, unless `options` gives a new one.
  ///
  /// returns  false if `only_if_absent` is set and the key exists; else true
  /// cost     one round trip
  Result<bool> set(std::string_view key, std::string_view value, const SetOptions& options = {},
                   Duration timeout = default_timeout);

  /// Returns the value of `key`.
  ///
  /// Blocks until the key exists. With a timeout of zero it does not wait.
  ///
  /// errors   timed_out, not_found (zero timeout)
  /// cost     one round trip; nothing is polled
  Result<std::string> get(std::string_view key, Duration timeout = default_timeout);

  /// As `get`, and removes the key. Of several that wait, the one that asked first gets the value.
  /// When it is cancelled, it gives back a value that is on its way, or returns it if the key has
  /// been set again since. After an error with `Happened::maybe` the value may be gone.
  ///
  /// errors   timed_out, not_found (zero timeout)
  /// cost     one round trip; nothing is polled
  Result<std::string> take(std::string_view key, Duration timeout = default_timeout);

  /// Adds `delta` to the value, a signed 64-bit number in decimal digits. A missing key counts
  /// as 0. Applied exactly once; after an error with `Happened::maybe`, once or not at all.
  ///
  /// returns  the new number
  /// errors   not_a_number, out_of_range; the value does not change then
  /// cost     one round trip
  Result<std::int64_t> add(std::string_view key, std::int64_t delta,
                           Duration timeout = default_timeout);

  /// Sets `key` to `desired` if its value is `expected`.
  ///
  /// expected  none: sets the key if it is absent
  /// returns   whether it was applied; if not, the key's value
  /// cost      one round trip
  Result<Compared> compare_set(std::string_view key, std::optional<std::string_view> expected,
                               std::string_view desired, WriteOptions options = {},
                               Duration timeout = default_timeout);

  /// Appends `suffix` to the value. A missing key counts as empty.
  ///
  /// returns  the new length in bytes
  /// cost     one round trip
  Result<std::uint64_t> append(std::string_view key, std::string_view suffix,
                               Duration timeout = default_timeout);

  /// Gives the key a new time to live.
  ///
  /// ttl      above zero; none: until the key is removed
  /// errors   not_found
  /// cost     one round trip
  Result<void> touch(std::string_view key, std::optional<Duration> ttl,
                     Duration timeout = default_timeout);

  /// Removes the key.
  ///
  /// returns  whether it existed
  /// cost     one round trip
  Result<bool> remove(std::string_view key, Duration timeout = default_timeout);

  /// Whether the key exists now.
  ///
  /// cost     one round trip
  Result<bool> exists(std::string_view key, Duration timeout = default_timeout);

  // The queue of a key, beside its value: neither knows of the other, and `exists`, `remove` and
  // `list` see values alone. Programs that use TCPStore at a port of the server have the same
  // queues.

  /// Puts `item` behind the others in the queue of `key`. Applied exactly once; after an error with
  /// `Happened::maybe`, once or not at all.
  ///
  /// item     0 to `limits().value_bytes_max` bytes
  /// returns  how many items there are then, before those who wait have popped one
  /// cost     one round trip; the server keeps the item until it is popped
  Result<std::uint64_t> queue_push(std::string_view key, std::string_view item,
                                   Duration timeout = default_timeout);

  /// Removes the first item from the queue of `key` and returns it.
  ///
  /// Blocks until there is one. With a timeout of zero it does not wait. Of several callers that
  /// wait, the one that asked first gets the item. A client of TCPStore that is told of an item has
  /// it kept for it until its next request. Cancelled in time, it gives an item back that is on its
  /// way, to its place before all that were pushed later. After an error with `Happened::maybe` the
  /// item may be gone.
  ///
  /// errors   timed_out, not_found (zero timeout)
  /// cost     one round trip; nothing is polled
  Result<std::string> queue_pop(std::string_view key, Duration timeout = default_timeout);

  /// How many items are in the queue of `key`.
  ///
  /// cost     one round trip
  Result<std::uint64_t> queue_length(std::string_view key, Duration timeout = default_timeout);

  // Many keys: at most `limits().keys_per_operation_max` keys, and `limits().round_bytes_max`
  // bytes of values, per call. A call without keys succeeds and changes nothing.

  /// Removes the keys.
  ///
  /// returns  how many of them existed
  /// cost     one round trip
  Result<std::uint64_t> multi_remove(const Keys& keys, Duration timeout = default_timeout);

  /// Whether each key exists now.
  ///
  /// returns  one element per key, in the order of `keys`
  /// cost     one round trip
  Result<std::vector<bool>> multi_exists(const Keys& keys, Duration timeout = default_timeout);

  /// Blocks until all keys exist at the same instant.
  ///
  /// errors   timed_out, not_found (zero timeout)
  /// cost     one round trip; nothing is polled
  Result<void> wait(const Keys& keys, Duration timeout = default_timeout);

  /// Returns the current values, all read at the same instant.
  ///
  /// returns  one element per key, in the order of `keys`; none: the key is absent
  /// cost     one round trip
  Result<std::vector<std::optional<std::string>>> multi_get(const Keys& keys,
                                                            Duration timeout = default_timeout);

  /// Sets all keys at the same instant, or none.
  ///
  /// cost     one round trip
  Result<void> multi_set(const KeyValues& entries, WriteOptions options = {},
                         Duration timeout = default_timeout);

  /// Returns one page of the keys that begin with `prefix`, in no order. A key that exists during
  /// the whole listing is on exactly one page. A page may be empty and not be the last one.
  ///
  /// cursor   0 for the first page, then the cursor of the page before
  /// cost     one round trip; the server looks at a bounded number of keys per page
  Result<KeyPage> list(std::string_view prefix, std::uint64_t cursor = 0,
                       Duration timeout = default_timeout);

  // Callback forms: the same arguments, promises and errors. They never block. After they have
  // returned, they no longer use what the arguments point to. The Call that they return can cancel
  // that one call.

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
  Call queue_push_async(std::string_view key, std::string_view item, Duration timeout,
                        Handler<std::uint64_t> handler);
  Call queue_pop_async(std::string_view key, Duration timeout, Handler<std::string> handler);
  Call queue_length_async(std::string_view key, Duration timeout, Handler<std::uint64_t> handler);
  Call multi_remove_async(const Keys& keys, Duration timeout, Handler<std::uint64_t> handler);
  Call multi_exists_async(const Keys& keys, Duration timeout, Handler<std::vector<bool>> handler);
  Call wait_async(const Keys& keys, Duration timeout, Handler<void> handler);
  Call multi_get_async(const Keys& keys, Duration timeout,
                       Handler<std::vector<std::optional<std::string>>> handler);
  Call multi_set_async(const KeyValues& entries, WriteOptions options, Duration timeout,
                       Handler<void> handler);
  Call list_async(std::string_view prefix, std::uint64_t cursor, Duration timeout,
                  Handler<KeyPage> handler);

  // The session.

  /// For a supervisor that knows that a process has died: ends the sessions of that process at
  /// once, as if they were lost. If the process is alive, its next call fails with `fenced`.
  /// Only a store with `Role::supervisor` may.
  ///
  /// reason   text for people, at most `limits().key_bytes_max` bytes; the errors that follow
  ///          from it show the text
  /// errors   not_found (that process has no session), permission_denied (another role)
  /// cost     one round trip
  Result<void> report_dead(const ProcessId& process, std::string_view reason,
                           Duration timeout = default_timeout);
  Call report_dead_async(const ProcessId& process, std::string_view reason, Duration timeout,
                         Handler<void> handler);

  /// For a supervisor, such as one that has started a job that is over: removes a namespace with
  /// all of its keys, at one instant. Refused while anybody is in it. `inspect_namespaces` lists
  /// them. Only a store with `Role::supervisor` may.
  ///
  /// name     of another namespace than the store's own; empty: the default one
  /// returns  how many keys it had
  /// errors   not_found (there is none of that name), busy (`detail`: how many sessions are in it,
  ///          and whose), permission_denied (another role), invalid_argument (the store's own)
  /// cost     one round trip; the server frees the memory of the keys in pieces, afterwards
  Result<std::uint64_t> drop_namespace(std::string_view name, Duration timeout = default_timeout);
  Call drop_namespace_async(std::string_view name, Duration timeout,
                            Handler<std::uint64_t> handler);

  /// Returns the server's state as pairs of name and value, see docs/operations.md.
  ///
  /// cost     one round trip
  Result<std::vector<std::pair<std::string, std::string>>> status(
      Duration timeout = default_timeout);
  Call status_async(Duration timeout,
                    Handler<std::vector<std::pair<std::string, std::string>>> handler);

  /// Ends all pending calls with `cancelled`. Changes that were sent may have happened, see
  /// `Error::happened`. A pending collective or regroup is cancelled for all ranks: its call here
  /// ends when the server has confirmed that, or with `outcome_unknown` after 2 s without an
  /// answer. So does a pending `take` or `queue_pop`, since only the server knows whether it had a
  /// value. Does not affect later calls.
  ///
  /// threads  any, and signal handlers: async-signal-safe
  void cancel() noexcept;

  /// Ends the session: the server removes the keys bound to it, and this process leaves its
  /// groups. Pending and later calls end with `closed`; pending changes may have happened. Returns
  /// when the goodbye is in the kernel's send buffer, after at most 100 ms; never waits for the
  /// network.
  ///
  /// threads  any
  void close();

  /// Begins a new session after the end of one (`StoreOptions::on_session_end`). Groups of the old
  /// session do not come back. Returns at once if the session has not ended.
  ///
  /// Blocks until the server has accepted the session, as `connect` does.
  ///
  /// errors   as `connect`
  Result<void> reopen(Duration timeout = default_timeout);
  Call reopen_async(Duration timeout, Handler<void> handler);

  /// A further handle of the same session, which lasts as long as the last of its handles and
  /// groups. `close`, `cancel` and `reopen` of one are those of all.
  Store share() const;

  /// The server's limits, from its last hello.
  Limits limits() const;
  /// The address that was given to `connect`.
  const std::string& address() const;
  /// This process, as errors at other processes show it.
  const ProcessInfo& process() const;
  /// The server's incarnation, from its last hello: a number that changes when it restarts.
  std::uint64_t incarnation() const;

  class Impl;
  const std::shared_ptr<Impl>& impl() const { return impl_; }

 private:
  explicit Store(std::shared_ptr<Impl> impl);
  friend class StatelessProcessGroup;
  std::shared_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
