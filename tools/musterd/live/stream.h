#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "json/fields.h"
#include "muster/watch.h"

namespace musterd {

using muster::json::Json;

/// What the viewers of a stream are told: everything at first, and then what differs from what they
/// know. Each has a version of it; what has changed since one is written once for all who have it.
///
/// Life: somebody asks -> the server's overview is looked at, and what differs in it gets the next
/// version -> he gets the text from his version to that one. The clock on the wall tells it whether
/// an overview is young. On one thread.
class Stream {
 public:
  /// server  its document, which may change
  explicit Stream(muster::Watch watch) : watch_(std::move(watch)) {}

  struct Piece {
    std::string_view text;      ///< there until the next call; empty: nothing has changed
    std::uint64_t version = 0;  ///< that its reader has then; 0: nothing is known yet
  };
  /// known   the version that the reader has; 0: none
  /// server  the document of the server itself
  Piece next(std::uint64_t known, const Json& server);

 private:
  using Name = std::pair<std::string, std::string>;  ///< namespace, name

  struct Group {
    std::shared_ptr<const muster::GroupView> view;
    std::string text;
    std::uint64_t changed = 0;
    bool is_seen = false;
  };
  struct Part {
    std::string text;
    std::uint64_t changed = 0;
  };
  struct Gone {
    std::uint64_t version;
    std::string text;
  };
  struct Event {
    std::uint64_t version;
    std::shared_ptr<const muster::WatchedEvent> event;
  };
  /// Looks at the keys of the namespaces in turn.
  struct Keys {
    std::optional<std::vector<std::string>> to_look_at;
    std::vector<std::pair<std::string, muster::KeyPrefixes>> seen;
    Json prefixes = Json::array();
    std::uint64_t bytes = 0;
    std::chrono::system_clock::time_point next{};
  };

  void take(const muster::Overview& overview, const Json& server);
  void take_groups(const muster::Overview& overview);
  void take_events(const muster::Overview& overview);
  void look_at_keys(const muster::Overview& overview);
  void sum_up_keys();
  void set_part(const char* name, std::string text);
  void forget();
  std::string events_since(std::uint64_t version) const;
  std::string whole() const;
  std::string change_since(std::uint64_t version) const;
  std::string message(const char* event, std::string members) const;

  const muster::Watch watch_;
  std::shared_ptr<const muster::Overview> overview_;
  muster::GroupView::Time now_{};  ///< of what is told; that of the overview while it is young
  std::uint64_t version_ = 0;
  bool has_changed_ = false;  ///< while one is taken
  std::map<Name, Group> groups_;
  std::map<std::string, Part, std::less<>> parts_;
  std::map<Name, Gone> gone_;
  std::uint64_t gone_known_from_ = 0;  ///< who has an older version does not know all who are gone
  std::deque<Event> events_;
  std::uint64_t last_change_ = 0;
  Keys keys_;
  std::uint64_t operations_ = 0;
  std::map<std::uint64_t, std::string> texts_;  ///< to this version, by that which is known
};

}  // namespace musterd
