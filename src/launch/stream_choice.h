#pragma once

#include <map>
#include <string_view>

#include "muster/result.h"

namespace muster::launch {

/// Some of the two output streams of a rank.
struct Streams {
  bool has_stdout = false;
  bool has_stderr = false;
};

/// Which output streams of which local ranks are meant, as in torchrun's --redirects and --tee.
class StreamChoice {
 public:
  /// Of no rank.
  StreamChoice() = default;

  /// text    "0" (none), "1" (stdout), "2" (stderr), "3" (both), for all local ranks; or for each
  ///         by itself, such as "0:1,3:3": then none of those that are not named
  /// errors  invalid_argument (`detail`: the part that is wrong)
  static Result<StreamChoice> parse(std::string_view text);

  Streams of(int local_rank) const;
  /// Nothing was chosen, of no rank.
  bool is_none() const {
    return !otherwise_.has_stdout && !otherwise_.has_stderr && by_local_rank_.empty();
  }

 private:
  Streams otherwise_;
  std::map<int, Streams> by_local_rank_;
};

}  // namespace muster::launch
