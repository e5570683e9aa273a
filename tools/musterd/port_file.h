#pragma once

#include <string>

#include "base/file_handle.h"

namespace musterd {

/// The file that tells the ports, one per line; removed at the end if it is still the one that was
/// written.
class PortFile {
 public:
  PortFile() = default;
  ~PortFile();
  PortFile(const PortFile&) = delete;
  PortFile& operator=(const PortFile&) = delete;

  /// It appears whole or not at all. Follows no link that is in its place, and writes into no file
  /// that was there before.
  ///
  /// returns  whether it is there; if not, errno says why
  bool write(const std::string& path, const std::string& text);

 private:
  std::string name_;
  muster::base::FileHandle folder_;  // it stays the same one, whatever its path leads to later
  muster::base::FileHandle file_;
};

}  // namespace musterd
