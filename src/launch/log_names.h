#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "muster/result.h"

namespace muster::launch {

/// Whose output a file has.
struct LogPlace {
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  int local_world_size = 1;
  int node_rank = 0;
  int attempt = 0;
  std::string role;
};

/// The name of a file with places for numbers, such as "logs/{rank}.txt". `{{` and `}}` stand for
/// braces. The places: rank, local_rank, world_size, local_world_size, node_rank, attempt, role.
class LogFormat {
 public:
  /// errors  invalid_argument
  static Result<LogFormat> parse(std::string_view text);

  std::string name(const LogPlace& place) const;

 private:
  enum class Key : int { rank, local_rank, world_size, local_world_size, node_rank, attempt, role };
  std::vector<std::variant<std::string, Key>> parts_;
};

}  // namespace muster::launch
