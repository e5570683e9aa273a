#pragma once

#include <string_view>
#include <variant>
#include <vector>

namespace muster::core {

// What guests ask that is no operation of Muster's own protocol; all else they ask as others do. A
// key of theirs may also have a queue: items that are pushed and popped, beside its value.

/// Until each of the keys has been there: with a value, or with an item in its queue that is not
/// reserved for another guest. Those that go again have come. None at all are there.
struct AwaitKeys {
  std::vector<std::string_view> keys;
};
/// Until somebody releases those who wait at the key. Neither this nor `Release` is postponed: each
/// follows at once on what its guest has done before.
struct AwaitRelease {
  std::string_view key;
};
struct Release {
  std::string_view key;
};
/// Whether all of them are there, as of `AwaitKeys`: a byte, 1 or 0.
struct CheckKeys {
  std::vector<std::string_view> keys;
};
/// How many have a value: a number, as in wire::NumberReply.
struct CountKeys {};
/// Behind the others in the key's queue. It wakes one of those who wait for the key.
struct Push {
  std::string_view key;
  std::string_view item;
};
/// How many are in the queue, and then the first of them, which leaves it; 0 if there is none, or
/// all are reserved for other guests.
struct Pop {
  std::string_view key;
};
struct CountQueued {
  std::string_view key;
};

using GuestRequest =
    std::variant<AwaitKeys, AwaitRelease, Release, CheckKeys, CountKeys, Push, Pop, CountQueued>;

}  // namespace muster::core
