#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/protocol/events.h"

namespace muster::client::protocol {

/// What the rim is to do, in order, and the memory in which frames are put together for it.
class Effects {
 public:
  template <class Each>
  void add(Each effect) {
    effects_.emplace_back(std::in_place_type<Each>, std::move(effect));
  }
  void log(LogLevel level, std::string line) { add(Log{level, std::move(line)}); }

  /// Where the next frame goes: behind the last one, if nothing is to be done in between.
  std::string& outgoing();
  /// A frame that goes before the next one; empty: none does.
  void go_first(std::string frame) { first_ = std::move(frame); }

  bool empty() const { return effects_.empty(); }
  /// Those since the last call. `spare` is memory for the next ones.
  std::vector<Effect> take(std::vector<Effect> spare = {});
  /// The only one, if it is a Transmit; nothing is taken otherwise.
  std::optional<Transmit> take_transmit();
  /// Memory for what is transmitted next, such as what was transmitted.
  void give_spare(std::string bytes);

 private:
  std::string& behind_the_last();

  std::vector<Effect> effects_;
  std::string first_;  ///< that goes before the next frame
  /// Memory for the next Transmits: one may be leaving while the next is written.
  std::array<std::string, 3> spare_bytes_;
};

}  // namespace muster::client::protocol
