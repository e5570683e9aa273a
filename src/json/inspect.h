#pragma once

#include <cstdint>
#include <string_view>

#include "json/fields.h"
#include "muster/result.h"
#include "muster/store.h"
#include "muster/types.h"

namespace muster::json {

/// What of a server there is to look at. The numbers are those of `muster_inspect`.
enum class Subject : std::uint8_t {
  status = 1,
  sessions = 2,
  groups = 3,
  waiters = 4,
  objects = 5,
  namespaces = 6,
  group = 7,
  identity = 8,
  history = 9,
  settings = 10,
};

/// Asks the server, and gives its answer as a document.
///
/// name    of the group; of objects: the beginning of their paths; of the history: of one group, or
///         empty: of all; of settings: of the only one, or empty: all
/// errors  those of the call of muster/inspect.h, or of muster/operate.h
Result<Json> inspect(Store& store, Subject subject, std::string_view name, Duration timeout);

}  // namespace muster::json
