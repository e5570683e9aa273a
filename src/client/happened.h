#pragma once

#include <string_view>

#include "client/protocol/fate.h"
#include "muster/error.h"

namespace muster::client {

/// Says in the error of a public call whether it happened, if the call is to change something.
/// `operation` is the call's name, as errors have it. Every error of every call passes here, but
/// those of codecs, which the calls' forms on objects make.
void tell_happened(Error& error, std::string_view operation, protocol::Fate fate);

}  // namespace muster::client
