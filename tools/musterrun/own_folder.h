#pragma once

#include <optional>
#include <string>

#include "base/file_handle.h"

namespace musterrun {

/// A folder for what nobody keeps: output of ranks that nobody asked for, and error files. It is
/// locked as long as musterrun or its guardian lives, which inherits the lock.
class OwnFolder {
 public:
  /// The folder that TMPDIR names, as an absolute path; /tmp if it names none.
  static std::string usual_place();
  /// Makes one in the place, and removes those of musterruns that have been killed together with
  /// their guardians.
  ///
  /// returns  nothing: errno says why there is none
  static std::optional<OwnFolder> make(const std::string& place);

  const std::string& path() const { return path_; }

  /// Removes it with all that is in it, its lock last: what is left if this is interrupted is
  /// found. Works on the folder that was made, whatever its path leads to now.
  void remove() const;

 private:
  bool create(const std::string& place);
  const char* name() const { return path_.c_str() + path_.rfind('/') + 1; }

  std::string path_;
  muster::base::FileHandle place_;   ///< where it is
  muster::base::FileHandle folder_;  ///< itself
  muster::base::FileHandle lock_;
};

}  // namespace musterrun
