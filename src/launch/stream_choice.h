#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "muster/result.h"

namespace muster::launch {

/// Which outputs of which local ranks an option names: "3" or "0:1,1:2", as torchrun writes it.
class StreamChoice {
 public:
  enum class Stream : std::uint8_t { output = 1, errors = 2 };

  /// text    0 (none), 1 (standard output), 2 (standard error) or 3 (both) for all ranks; or for
  ///         some, each as LOCAL_RANK:NUMBER, separated by commas
  /// errors  invalid_argument (`detail`: the part that is wrong)
  static Result<StreamChoice> parse(std::string_view text);

  bool has(int local_rank, Stream stream) const;

 private:
  std::uint8_t of_all_ = 0;
  std::map<int, std::uint8_t> of_ranks_;
};

}  // namespace muster::launch
