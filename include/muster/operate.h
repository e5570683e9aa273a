#pragma once

// For operators and their tools: what a running server is told to change. `musterctl` has a command
// for each.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/call.h"
#include "muster/config.h"
#include "muster/result.h"
#include "muster/setting.h"
#include "muster/store.h"
#include "muster/store_options.h"
#include "muster/types.h"

MUSTER_BEGIN_NAMESPACE

/// A setting of the server.
struct SettingInfo {
  std::string name;  ///< as the flags of musterd: "memory-bytes-max"
  SettingKind kind = SettingKind::number;
  std::uint64_t value = 0;
  std::uint64_t least = 0;            ///< that it may be set to
  std::uint64_t most = 0;             ///< that it may be set to
  std::optional<std::uint64_t> used;  ///< of what it limits; none: that is not one number
  std::string fixed_because;          ///< why it changes with a restart only; empty: it changes
};

// threads  as the calls of a store; the callback forms end in `_async`
// cost     one round trip

/// Lists the server's settings, those that change while it runs first.
///
/// name    of the only one that is meant; empty: all
/// errors  those of a store; not_found (there is no setting of that name), permission_denied (its
///         credential has not the right "observe")
MUSTER_API Result<std::vector<SettingInfo>> inspect_settings(Store& store,
                                                             std::string_view name = {},
                                                             Duration timeout = default_timeout);
MUSTER_API Call inspect_settings_async(Store& store, std::string_view name, Duration timeout,
                                       Handler<std::vector<SettingInfo>> handler);

/// Changes a setting at once, until the server ends. A limit that is below what is used takes
/// nothing away: what it limits is refused until less is used.
///
/// value    as the kind of the setting says
/// returns  the setting as it is then
/// errors   those of a store; not_found, invalid_argument (out of range, or it changes with a
///          restart only), permission_denied (the store is no supervisor's, or its credential has
///          not the right "admin")
MUSTER_API Result<SettingInfo> set_setting(Store& store, std::string_view name, std::uint64_t value,
                                           Duration timeout = default_timeout);
MUSTER_API Call set_setting_async(Store& store, std::string_view name, std::uint64_t value,
                                  Duration timeout, Handler<SettingInfo> handler);

/// Ends a session of the store's namespace at once. Its groups lose its ranks with the cause
/// `reported`; its client's next call fails with `fenced`. Its process may begin another one.
///
/// session  its number, of `inspect_sessions`
/// reason   text for people, at most `limits().key_bytes_max` bytes; its client is told
/// returns  1
/// errors   those of a store; not_found, invalid_argument (it is the store's own),
///          permission_denied (the store is no supervisor's)
MUSTER_API Result<std::uint64_t> end_session(Store& store, std::uint64_t session,
                                             std::string_view reason,
                                             Duration timeout = default_timeout);
MUSTER_API Call end_session_async(Store& store, std::uint64_t session, std::string_view reason,
                                  Duration timeout, Handler<std::uint64_t> handler);

/// The same, of all sessions that a process has in the store's namespace.
///
/// returns  how many those were
MUSTER_API Result<std::uint64_t> end_sessions_of(Store& store, const ProcessId& process,
                                                 std::string_view reason,
                                                 Duration timeout = default_timeout);
MUSTER_API Call end_sessions_of_async(Store& store, const ProcessId& process,
                                      std::string_view reason, Duration timeout,
                                      Handler<std::uint64_t> handler);

/// Lets no client begin a session any more: it is told `unavailable` with the reason. Those who are
/// there go on. When the last one has ended its session, or `time_max` is over, `musterd` tells
/// those who are left and ends; a server in a process of another program goes on to refuse
/// newcomers, see `ServerOptions::on_drained`. Asked again, the newer time and reason hold.
///
/// time_max  none: it waits for everybody
/// reason    text for people, at most `limits().key_bytes_max` bytes
/// returns   the sessions of others that are there, without observers
/// errors    those of a store; permission_denied (as set_setting)
MUSTER_API Result<std::uint64_t> drain(Store& store, std::optional<Duration> time_max,
                                       std::string_view reason, Duration timeout = default_timeout);
MUSTER_API Call drain_async(Store& store, std::optional<Duration> time_max, std::string_view reason,
                            Duration timeout, Handler<std::uint64_t> handler);

/// Lets clients in again, if the server has not ended yet.
///
/// errors  those of a store; not_found (it is not being drained), permission_denied
MUSTER_API Result<void> cancel_drain(Store& store, Duration timeout = default_timeout);
MUSTER_API Call cancel_drain_async(Store& store, Duration timeout, Handler<void> handler);

MUSTER_END_NAMESPACE
