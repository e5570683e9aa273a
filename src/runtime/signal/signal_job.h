#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "muster/environment.h"
#include "muster/result.h"
#include "muster/signal_file.h"

namespace muster::runtime {

/// What tells a job and its attempt apart from others in the same folder.
struct SignalJob {
  std::string text;  ///< for people, and compared
  /// Nobody has it twice, so what is found under this name is of this very start of the job.
  bool is_unique = false;
};

/// errors  environment
Result<SignalJob> signal_job(const Environment& environment, const SignalFolderOptions& options);

/// Which ranks share a file, and this one's place among them.
struct SignalRanks {
  int rank = 0;  ///< among them; 0 works first
  int count = 1;
  int node_rank = 0;    ///< in the file's name
  int world_rank = -1;  ///< -1: not known
  bool is_job = false;  ///< they are all ranks of the job
};

/// Those of a node, or those of the job where all share files.
///
/// errors  environment
Result<SignalRanks> signal_ranks(const Environment& environment, detail::Shared shared,
                                 std::string_view operation);

/// "._signal_file_node1_" and six letters and digits, made of the number.
std::string signal_file_name(int node_rank, std::uint64_t number);
/// Whether a file may be called that by `signal_file_name`.
bool is_signal_file_name(std::string_view name);

}  // namespace muster::runtime
