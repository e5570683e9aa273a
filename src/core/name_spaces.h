#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>

#include "core/name_space.h"

namespace muster::core {

/// All namespaces. One is made with its first session and deleted when no session is left and
/// nothing is in it.
class NameSpaces {
 public:
  explicit NameSpaces(EngineServices& services) : services_(services) {}

  /// The namespace of that name, made if need be. Null: there are too many.
  NameSpace* find_or_make(const std::string& name);
  /// Says that a session of the namespace has gone.
  void session_gone(NameSpace& name_space);
  /// Looks at one namespace that has no sessions, and deletes it if it is empty by now.
  void delete_one_unused();

  std::size_t size() const { return name_spaces_.size(); }
  void add_counts(Counts& counts) const;
  void clear() { name_spaces_.clear(); }

 private:
  EngineServices& services_;
  std::unordered_map<std::string, std::unique_ptr<NameSpace>> name_spaces_;
  std::deque<NameSpace*> watched_;  ///< without sessions when they came here
};

}  // namespace muster::core
