#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "json/fields.h"
#include "muster/watch.h"

// What is seen of a server at a glance, as the documents of the stream.

namespace musterd {

using muster::json::Json;

/// Since 1970.
std::int64_t unix_ms(std::chrono::system_clock::time_point time);

Json json_of(const muster::GroupView& group);
/// With its age as of `now`.
Json json_of(const muster::WatchedEvent& event, std::chrono::system_clock::time_point now);
Json json_of(const std::vector<muster::LimitUse>& limits);
Json json_of(const muster::KeyPrefixes& prefixes);
/// Of the histogram of waits.
Json json_of_waits(const muster::Overview& overview);

/// Why the group does not work, in a sentence that stays the same until something happens; empty:
/// it does.
std::string sentence_of(const muster::GroupView& group);

}  // namespace musterd
