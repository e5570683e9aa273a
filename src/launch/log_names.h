#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/options.h"
#include "muster/result.h"

// How files are called that take what ranks print.

namespace muster::launch {

/// What a format may name.
struct LogPlace {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  int node_rank = 0;
  int attempt = 0;
  std::string role;
};

/// A file's name with keys, such as "logs/{role}_{rank}.txt"; "{{" and "}}" stand for braces. A
/// number may have a width, as in Python: "{rank:03d}".
///
/// Ranks may share a file: it is opened for appending.
class LogFormat {
 public:
  /// errors  invalid_argument (`detail`: the key that there is not, or the brace that is alone, and
  ///         the keys that there are)
  static Result<LogFormat> parse(std::string_view text);

  std::string name_of(const LogPlace& place) const;

 private:
  struct Piece {
    std::string text;
    bool is_key = false;
    std::size_t width = 0;  ///< the least number of digits or letters
    char fill = ' ';
  };
  std::vector<Piece> pieces_;
};

/// The files below --log-dir, as torchrun lays them out.
class LogFolder {
 public:
  /// random  tells the folder apart from those of other launchers that have the same job
  LogFolder(std::string_view log_dir, std::string_view job_id, std::string_view random);

  /// "DIR/JOB_RANDOM"
  const std::string& path() const { return path_; }
  /// "DIR/JOB_RANDOM/attempt_0/1"
  std::string folder_of(int attempt, int local_rank) const;
  std::string stdout_of(int attempt, int local_rank) const;
  std::string stderr_of(int attempt, int local_rank) const;
  /// Where the rank may write why it has failed.
  std::string error_of(int attempt, int local_rank) const;
  /// The same where nothing is kept, and ranks have no folders: "DIR/JOB_RANDOM/attempt_0_1.json"
  std::string unkept_error_of(int attempt, int local_rank) const;

 private:
  std::string path_;  ///< "DIR/JOB_RANDOM"
};

}  // namespace muster::launch
