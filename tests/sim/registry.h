#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/events.h"
#include "scheduler.h"

namespace muster::sim {

/// Who proves which credential line.
enum class Line : std::uint8_t {
  worker,
  other_worker,
  observer,
  one_stranger,
  other_stranger,
  caretaker,
  impostor
};
inline constexpr std::size_t lines_count = 7;

/// What the server's credentials are at the moment. Workers, the observer and who comes at the end
/// are of one tenant, strangers and impostors of another. Lines change while the world goes on.
class Registry {
 public:
  using Grant = core::Regrant::Grant;

  /// is_used  else nobody is asked who he is
  explicit Registry(bool is_used);

  void add(std::uint64_t client, Line line) { lines_[client] = line; }
  /// What a client has whose hello comes; null: nobody is asked.
  Grant of(std::uint64_t client) const;
  bool is_used() const { return is_used_; }

  /// One line has another version from now on: another key, other rights, or it is removed, or
  /// back.
  ///
  /// returns  what the server is told
  core::Regrant change(Random& random);
  /// A line of workers is removed, until `restore`.
  ///
  /// returns  what the server is told
  core::Regrant revoke(Line line, Instant until);
  void restore(Line line);
  bool is_revoked(Line line) const { return grants_[static_cast<std::size_t>(line)] == nullptr; }
  /// Whether this client proves that line.
  bool has(std::uint64_t client, Line line) const;
  /// Until when its line is gone, or was the last time; nothing: it never was.
  std::optional<Instant> revoked_until(std::uint64_t client) const;

 private:
  Grant& at(Line line) { return grants_[static_cast<std::size_t>(line)]; }

  bool is_used_;
  std::array<Grant, lines_count> grants_;
  Grant nobody_;  ///< which may begin no session
  std::map<std::uint64_t, Line> lines_;
  std::map<Line, Instant> revoked_until_;
};

}  // namespace muster::sim
