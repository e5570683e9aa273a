#pragma once

#include <map>
#include <string>
#include <string_view>

#include "muster/result.h"

namespace muster::runtime {

/// The kind of communicator for each device, such as cpu -> gloo. Equal whatever the order in which
/// they were written.
using CommunicatorKinds = std::map<std::string, std::string, std::less<>>;

/// Reads "cpu:gloo,cuda:nccl", or "gloo" and "nccl" alone.
///
/// errors  invalid_argument (another device than cpu or cuda, one that is there twice, or of a kind
///         alone that is neither gloo nor nccl)
Result<CommunicatorKinds> communicator_kinds_of(std::string_view text);

/// In the same form, in the order of devices.
std::string text_of(const CommunicatorKinds& kinds);

}  // namespace muster::runtime
