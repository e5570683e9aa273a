#pragma once

#include <string>
#include <string_view>

#include "commands.h"

namespace musterctl {

/// Begins a session at the server that `common` names. Where nobody is there, it tries on for
/// `wait_for_server`; `timeout` begins then.
muster::Result<muster::Store> connect(const Common& common, muster::Role role,
                                      muster::Duration wait_for_server, muster::Duration timeout);

/// Runs a command on a connected store.
muster::Result<Answer> ask(const Command& command, muster::Store& store, const Common& common,
                           muster::Duration timeout);

enum class Written { all, nobody_reads, failed };

/// Writes all of `text` to the standard output. SIGPIPE must be ignored.
Written write_out(std::string_view text);

/// Runs the command once and prints what it says.
///
/// returns  the exit code
int run_once(const Chosen& chosen, const Common& common);

}  // namespace musterctl
