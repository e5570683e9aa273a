#pragma once

#include <optional>
#include <string>

#include "base/file_handle.h"

namespace musterrun {

/// A folder for what nobody keeps: output of ranks that nobody asked for, and error files. It is
/// locked as long as musterrun or its guardian lives, who inherits the lock.
class OwnFolder {
 public:
  /// Makes one where TMPDIR says, and removes those of musterruns that have been killed together
  /// with their guardians.
  ///
  /// returns  nothing: errno says why there is none
  static std::optional<OwnFolder> make();

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  muster::base::FileHandle lock_;
};

/// Removes one with all that is in it, its lock last: what is left if this is interrupted is found.
void remove_own_folder(const std::string& path);

}  // namespace musterrun
