#pragma once

#include <string>

namespace musterctl {

/// While it lives, keys are read from the terminal as they are typed, if this program has one and
/// is not in its background.
class Keyboard {
 public:
  Keyboard();
  ~Keyboard();
  Keyboard(const Keyboard&) = delete;
  Keyboard& operator=(const Keyboard&) = delete;

  /// To be polled; -1: there is none.
  int descriptor() const { return is_ours_ ? 0 : -1; }
  /// What was typed, without waiting; nothing more comes after a hang-up.
  std::string typed();

  /// Makes the terminal as it was. From any thread, for whoever ends the program.
  static void restore();

 private:
  bool is_ours_ = false;
};

}  // namespace musterctl
