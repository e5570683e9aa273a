#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/name_space.h"
#include "muster/error.h"

namespace muster::core {

/// All namespaces, and the units that have something in them. A namespace is made with its first
/// session, and goes when no session is left and nothing is in it.
class NameSpaces {
 public:
  explicit NameSpaces(EngineServices& services) : services_(services), units_(services.quota()) {}
  NameSpaces(const NameSpaces&) = delete;
  NameSpaces& operator=(const NameSpaces&) = delete;

  Units& units() { return units_; }

  /// Null: there is none.
  NameSpace* find(const std::string& name) const;
  /// Why `unit` cannot make one more.
  std::optional<Error> refusal_to_make(const std::string& name, const Unit& unit);
  NameSpace& make(const std::string& name, Unit& unit);

  /// A session of the account has gone.
  void session_gone(NameSpace& name_space, Account& account);
  /// Looks at some of what nobody may need any more: namespaces and accounts without sessions.
  void sweep();

  /// Removes the namespace, which has no sessions, with its keys.
  void drop(NameSpace& name_space);

  /// Where requests are parked.
  WaitingNames& waiting_names() { return waiting_names_; }
  std::size_t size() const { return name_spaces_.size(); }
  void clear();

 private:
  using Map = std::unordered_map<std::string, std::unique_ptr<NameSpace>>;

  bool is_over(NameSpace& name_space);
  /// Whether it has gone.
  bool drop_if_over(NameSpace& name_space);

  EngineServices& services_;
  WaitingNames waiting_names_;
  Units units_;
  Map name_spaces_;
  std::deque<std::string> idle_;  ///< without sessions when they came here
  std::deque<std::unique_ptr<NameSpace>> dropped_;
};

}  // namespace muster::core
