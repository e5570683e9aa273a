#pragma once

// Options and results of a Store. Included by muster/store.h.

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

/// Receives the result of a call in its callback form. Runs exactly once, where
/// `StoreOptions::handlers` and `executor` say. It does not run inside the call itself, except if
/// the store or group was moved from, in a forked child, after `IoThread::finish`, when memory is
/// out, or if `connect_async` found no thread left. It may run after the store was destroyed, so it
/// must own what it uses. A handler that takes longer than 100 ms is logged; an exception is logged
/// and dropped.
template <class T>
using Handler = std::function<void(Result<T> result)>;

/// Stands for the timeout in the options. Other negative timeouts are `invalid_argument`; timeouts
/// above 30 days count as 30 days.
inline constexpr Duration default_timeout{-1};

/// Where handlers run.
enum class HandlerPlace {
  /// One after the other, on the handler thread that belongs to the I/O thread, or on
  /// `StoreOptions::executor`. Such a handler may make blocking calls. It must not wait for another
  /// handler of the same thread: that one would never run. With `IoThread::create_for_host_loop`
  /// there is no handler thread: such a handler runs in the host's loop, and must not block.
  handler_thread,
  /// Inline: at once on the I/O thread. For handlers that never block, because heartbeats wait for
  /// them. A blocking call there returns `would_deadlock`.
  io_thread,
};

/// What the process uses a store for.
enum class Role {
  client,
  /// Uses keys and inspects the server, as operators do. It cannot join groups
  /// (`permission_denied`), and a server that stops does not wait for it.
  observer,
  /// A client that may also declare other processes dead (`Store::report_dead`) and drop namespaces
  /// (`Store::drop_namespace`). For launchers and other programs that know when a process or a job
  /// has ended.
  supervisor,
};

struct StoreOptions {
  Role role = Role::client;
  /// The namespace of its keys and groups, such as one per job; at most 64 bytes. Keys and groups
  /// in different namespaces do not see each other. (`namespace` is a keyword of C++.)
  std::string name_space;
  /// How long the server keeps the namespace, with its keys, when no session is left in it. Zero:
  /// it is removed with its last session, so that the next run of the job finds nothing of this
  /// one. The longest time that a session of the namespace has asked for counts, for all keys in
  /// it: also those of sessions that ask for nothing, and those that were there before. None: this
  /// session asks for nothing; if no other one does, the namespace is kept as long as the server
  /// says (`ServerOptions::namespace_idle_lifetime`). docs/semantics.md, "Runs".
  std::optional<Duration> namespace_idle_lifetime;
  /// The name of the run that this process belongs to, the same at all of its processes and another
  /// one for each run, such as the number of the restart; at most 64 bytes. `connect` waits until
  /// another run in the namespace is over, at most a session timeout, and fails with `closed` if
  /// that one goes on, or if this run has ended. With a name and no `namespace_idle_lifetime` that
  /// is zero. Empty: whichever run the namespace is of.
  std::string run;
  /// Free text that errors at other ranks show, such as a pod's name; at most 64 bytes.
  std::string label;
  /// A file with the key of who this process is, as `musterctl keygen` writes it; only its owner
  /// and its group can read it. With a key every TCP connection is encrypted, and both sides show
  /// that they have the key; it is never sent, and nothing falls back to a plain connection. The
  /// file is read by `connect`, and again when it has changed: the last one of two keys counts, as
  /// soon as the server knows it. Empty: the file that the variable MUSTER_CREDENTIAL_FILE names,
  /// else the line that MUSTER_CREDENTIAL holds, else none. At a Unix socket the system says who
  /// the process is, and no file is read.
  std::string credential_file;
  /// In place of a key: a certificate and its key in the form PEM; the key may stand in the same
  /// file. The server's certificate must be signed by an authority of `authorities_file`; empty: by
  /// one that the system trusts. Where neither this nor `credential_file` is given, the variables
  /// MUSTER_CERTIFICATE_FILE and MUSTER_CERTIFICATE_KEY_FILE name both files; in place of an empty
  /// `authorities_file` MUSTER_AUTHORITIES_FILE does.
  std::string certificate_file;
  std::string certificate_key_file;
  std::string authorities_file;
  /// Of the server or its cluster: keys are derived for it, so it is the same on both sides; empty:
  /// what the variable MUSTER_SERVER_NAME says, else none. With certificates: the name that the
  /// server's must have; empty: the variable's, else the host of the address.
  std::string server_name;
  /// Timeout of calls with `default_timeout`.
  Duration timeout{std::chrono::seconds(300)};
  /// How long `connect` and `reopen` try on while nobody is there: nobody listens at the address,
  /// or the host name has no address. `default_timeout`: until they time out. Zero: the first
  /// attempt that finds nobody ends them with `unavailable`.
  Duration wait_for_server{default_timeout};
  /// May be shared with other stores: one I/O thread serves thousands of them. None: the store
  /// starts its own.
  std::shared_ptr<IoThread> io_thread;
  /// How long the I/O thread polls for the next event before it sleeps, see
  /// ServerOptions::busy_poll: 0 (never) to `busy_poll_max`.
  Duration busy_poll{0};
  HandlerPlace handlers = HandlerPlace::handler_thread;
  /// Runs handlers instead of the handler thread. Called on the I/O thread: it must queue the work
  /// and return.
  Executor executor;
  /// Empty (the default): nothing is logged.
  Logger logger;
  /// Called once, where handlers run, when a session has ended (session_expired, fenced,
  /// server_restarted; permission_denied: its credential was removed; resource_exhausted: the
  /// server was full and the session held nothing). Every call fails with the same error until
  /// `reopen()`.
  std::function<void(const Error& error)> on_session_end;
};

/// Options of `set`.
struct SetOptions {
  /// Time to live, above zero; none: until the key is removed.
  std::optional<Duration> ttl;
  bool only_if_absent = false;
  /// The server removes the key when this store's session ends.
  bool bind_to_session = false;
};

/// Options of `compare_set` and `multi_set`. A struct, because a time to live and a timeout are of
/// one type, and two arguments of one type are easily swapped.
struct WriteOptions {
  std::optional<Duration> ttl;  ///< as in SetOptions
};

/// The result of `compare_set`.
struct Compared {
  bool applied = false;
  /// If it was not applied: the key's value; none: the key is absent.
  std::optional<std::string> current;
};

template <>
inline constexpr bool is_verdict<Compared> = true;

/// One key of a listing.
struct KeyInfo {
  std::string key;
  std::uint64_t value_bytes = 0;
  std::optional<Duration> ttl;  ///< time left to live; none: until it is removed
  bool bound = false;           ///< it is bound to a session
};
struct KeyPage {
  std::vector<KeyInfo> keys;
  std::uint64_t cursor = 0;  ///< for the next page; 0: this was the last
};

/// Limits and times of a server; docs/semantics.md explains each.
struct Limits {
  std::uint32_t key_bytes_max = 0;
  std::uint32_t value_bytes_max = 0;
  std::uint64_t round_bytes_max = 0;  ///< sum over one collective, or over one multi_ call
  std::uint32_t keys_per_operation_max = 0;
  std::uint32_t world_size_max = 0;
  Duration heartbeat{0};
  Duration session_timeout{0};
  Duration grace{0};
  Duration slack{0};
};

MUSTER_END_NAMESPACE
