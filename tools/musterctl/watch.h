#pragma once

#include "commands.h"

namespace musterctl {

/// Repeats the command every `common.watch` until it is interrupted or nobody reads any more.
///
/// returns  the exit code
int watch(const Command& command, const Common& common);

}  // namespace musterctl
