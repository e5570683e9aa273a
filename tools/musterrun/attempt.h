#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <asio/io_context.hpp>

#include "guardian_link.h"
#include "launch/log_names.h"
#include "launch/options.h"
#include "launch/variables.h"
#include "rank_stream.h"

namespace musterrun {

/// Where the ranks of this node are in an attempt.
struct AttemptPlace {
  int number = 0;
  int world_size = 1;
  int base_rank = 0;
  int node_rank = 0;
  std::optional<int> node_count = 1;
  /// Among the ranks of the same role, the first one of this node, and how many those are; none:
  /// all ranks have it.
  std::optional<int> base_role_rank;
  std::optional<int> role_world_size;
  std::string master_addr;
  int master_port = 0;
  bool has_agent_store = false;  ///< there is a TCPStore
  std::string store;             ///< MUSTER_STORE; empty: as inherited
  std::string name_space;        ///< MUSTER_NAMESPACE, with `store`
  std::string job_id;
};

/// The ranks of this node in one attempt: what they are started with, where their output goes, and
/// what is known of their ends.
///
/// threads  that of the context
class Attempt {
 public:
  Attempt(asio::io_context& context, Console& console, const muster::launch::LaunchOptions& options,
          const muster::launch::Variables& environment, const muster::launch::LogFolder& files,
          AttemptPlace place);

  /// returns  what is wrong; empty: the guardian is ordered to start all
  std::string start(GuardianLink& guardian);
  int rank_of(int local_rank) const { return place_.base_rank + local_rank; }
  /// What a rank that has ended said last.
  std::string last_words(int local_rank);

 private:
  struct RankState {
    std::unique_ptr<RankStream> output;
    std::unique_ptr<RankStream> errors;
    std::string error_file;
  };
  /// What a line that is shown begins with.
  std::string prefix_of(int local_rank) const;
  StreamTarget target_of(int local_rank, Console::Stream stream, std::string& problem) const;
  bool keeps_files() const;
  std::string start_rank(GuardianLink& guardian, int local_rank);
  std::string open_stream(int local_rank, Console::Stream stream,
                          std::unique_ptr<RankStream>& opened) const;

  asio::io_context& context_;
  Console& console_;
  const muster::launch::LaunchOptions& options_;
  const muster::launch::Variables& environment_;
  const muster::launch::LogFolder& files_;
  const AttemptPlace place_;
  std::map<int, RankState> ranks_;
};

}  // namespace musterrun
