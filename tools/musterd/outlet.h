#pragma once

#include <string_view>

namespace musterd {

/// A descriptor that is written to without waiting, although its owner has not set it so: others
/// may write there, too, who do not expect that.
class Outlet {
 public:
  explicit Outlet(int descriptor);
  ~Outlet();
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;

  /// returns  how many bytes were taken; -1: none ever will be
  long write_some(std::string_view text) const;
  /// Waits until all of it was taken. Returns whether it was.
  bool write_all(std::string_view text) const;

 private:
  int descriptor_;
  bool is_socket_ = false;    ///< which can be told so with each write
  int without_waiting_ = -1;  ///< a pipe or a terminal, opened once more; of others nobody knows
};

}  // namespace musterd
