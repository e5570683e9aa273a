#include "runtime/signal/signal_job.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "muster/log.h"
#include "runtime/environment_error.h"
#include "runtime/environment_reader.h"

namespace muster::runtime {

namespace {

constexpr std::string_view opening = "SignalFolder::open";
constexpr std::string_view signal_prefix = "._signal_file_node";
constexpr std::string_view letters =
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr std::size_t letters_count = 6;

/// Variables that together tell jobs apart.
struct JobNames {
  std::array<std::string_view, 2> names;  // the second one may be empty
  bool is_unique = false;
};

// torchrun's id is often given by hand, and the same port serves one job after the other. Slurm
// never counts a step twice.
constexpr std::array job_names{
    JobNames{{"TORCHELASTIC_RUN_ID", ""}, false},
    JobNames{{"SLURM_JOB_ID", "SLURM_STEP_ID"}, true},
    JobNames{{"MASTER_ADDR", "MASTER_PORT"}, false},
    JobNames{{"SLURM_JOB_ID", ""}, false},
    JobNames{{"MUSTER_NAMESPACE", "MUSTER_STORE"}, false},
};

/// "NAME=value, NAME=value"; empty: one is not set.
std::string told_by(const Environment& environment, const JobNames& job) {
  std::string text;
  for (const std::string_view name : job.names) {
    if (name.empty()) continue;
    const auto value = environment.variable(name);
    // What torchrun gives where nobody has named the run.
    if (!value || (name == "TORCHELASTIC_RUN_ID" && *value == "none")) return {};
    text += (text.empty() ? "" : ", ") + std::string(name) + "=" + printable(*value);
  }
  return text;
}

/// A number that has to be said; of a single process it need not.
Result<int> required_number(const Environment& environment, JobNumber number,
                            std::string_view operation) {
  auto found = environment.find(number);
  if (!found.has_value()) return std::move(found).error();
  if (*found) return (*found)->value;
  auto is_single = environment.is_single_process();
  if (!is_single.has_value()) return std::move(is_single).error();
  if (*is_single)
    return number == JobNumber::local_world_size || number == JobNumber::world_size ? 1 : 0;
  return environment_error(operation, "the " + std::string(name_of(number)) +
                                          " is not known: set " +
                                          std::string(first_variable_of(number)));
}

}  // namespace

Result<SignalJob> signal_job(const Environment& environment, const SignalFolderOptions& options) {
  SignalJob job;
  if (!options.job.empty()) {
    job = {"job " + printable(options.job), false};
  } else {
    for (const JobNames& names : job_names) {
      job = {told_by(environment, names), names.is_unique};
      if (!job.text.empty()) break;
    }
  }
  if (job.text.empty()) {
    const auto is_single = environment.is_single_process();
    if (!is_single.has_value()) return is_single.error();
    if (*is_single) return SignalJob{"a single process", false};
    return environment_error(
        opening,
        "nothing tells this job apart from others: set TORCHELASTIC_RUN_ID, SLURM_JOB_ID, or "
        "MASTER_ADDR and MASTER_PORT, or give SignalFolderOptions::job");
  }
  if (!options.attempt.empty()) {
    job.text += ", attempt " + printable(options.attempt);
    return job;
  }
  for (const std::string_view name : {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"})
    if (const auto value = environment.variable(name))
      job.text += ", " + std::string(name) + "=" + printable(*value);
  return job;
}

Result<SignalRanks> signal_ranks(const Environment& environment, detail::Shared shared,
                                 std::string_view operation) {
  const bool is_job =
      shared == detail::Shared::file_system &&
      !EnvironmentReader(environment, operation).shared_file_system_variable().empty();
  const auto rank =
      required_number(environment, is_job ? JobNumber::rank : JobNumber::local_rank, operation);
  if (!rank) return rank.error();
  const auto count = required_number(
      environment, is_job ? JobNumber::world_size : JobNumber::local_world_size, operation);
  if (!count) return count.error();
  // The leader's, where the file is for all.
  const auto node_rank =
      is_job ? Result<int>(0) : required_number(environment, JobNumber::node_rank, operation);
  if (!node_rank) return node_rank.error();
  const auto world_rank = environment.find(JobNumber::rank);
  if (!world_rank.has_value()) return world_rank.error();
  if (*rank >= *count) {
    return environment_error(operation, "this process is rank " + std::to_string(*rank) + " of " +
                                            std::to_string(*count) +
                                            (is_job ? " of its job" : " of its node"));
  }
  if (shared == detail::Shared::file_system) {
    const auto fs_local_rank = environment.find(JobNumber::fs_local_rank);
    if (!fs_local_rank.has_value()) return fs_local_rank.error();
    if (*fs_local_rank && (*fs_local_rank)->value != *rank) {
      return environment_error(
          operation, "FS_LOCAL_RANK=" + std::to_string((*fs_local_rank)->value) + ", but the " +
                         (is_job ? "rank is " : "local rank is ") + std::to_string(*rank) +
                         ", and nothing says which ranks share files: set MUSTER_SHARED_FS=1 if "
                         "all do, or unset FS_LOCAL_RANK");
    }
  }
  return SignalRanks{*rank, *count, *node_rank, *world_rank ? (*world_rank)->value : -1, is_job};
}

std::string signal_file_name(int node_rank, std::uint64_t number) {
  std::string name = std::string(signal_prefix) + std::to_string(node_rank) + "_";
  for (std::size_t count = 0; count < letters_count; ++count) {
    name += letters[number % letters.size()];
    number /= letters.size();
  }
  return name;
}

bool is_signal_file_name(std::string_view name) {
  if (name.substr(0, signal_prefix.size()) != signal_prefix) return false;
  name.remove_prefix(signal_prefix.size());
  const std::size_t digits_count =
      std::min(name.find_first_not_of(letters.substr(0, 10)), name.size());
  const std::string_view rest = name.substr(digits_count);
  return digits_count > 0 && rest.size() == 1 + letters_count && rest[0] == '_' &&
         rest.find_first_not_of(letters, 1) == std::string_view::npos;
}

}  // namespace muster::runtime
