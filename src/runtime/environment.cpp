#include "muster/environment.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include <climits>

#include "runtime/environment_error.h"
#include "runtime/environment_names.h"
#include "runtime/environment_reader.h"

extern char** environ;

MUSTER_BEGIN_NAMESPACE

using runtime::EnvironmentReader;
using runtime::first_variable_of;

namespace {

constexpr std::array all_numbers{JobNumber::world_size,       JobNumber::rank,
                                 JobNumber::local_world_size, JobNumber::local_rank,
                                 JobNumber::node_count,       JobNumber::node_rank,
                                 JobNumber::replica_rank,     JobNumber::fs_local_rank};

int of_single_process(JobNumber number) {
  switch (number) {
    case JobNumber::world_size:
    case JobNumber::local_world_size:
    case JobNumber::node_count: return 1;
    case JobNumber::rank:
    case JobNumber::local_rank:
    case JobNumber::node_rank:
    case JobNumber::replica_rank:
    case JobNumber::fs_local_rank: break;
  }
  return 0;
}

std::optional<int> known(const FormedGroup& formed, JobNumber number) {
  switch (number) {
    case JobNumber::world_size: return formed.world_size;
    case JobNumber::rank: return formed.rank;
    case JobNumber::local_world_size: return formed.local_world_size;
    case JobNumber::local_rank: return formed.local_rank;
    case JobNumber::node_count: return formed.node_count;
    case JobNumber::node_rank: return formed.node_rank;
    case JobNumber::replica_rank: return 0;
    case JobNumber::fs_local_rank: break;
  }
  return {};
}

/// "RANK or SLURM_PROCID or ..." would be long: the first one is what a person sets.
std::string missing(JobNumber number) {
  return "nothing says the " + std::string(name_of(number)) + ": set " +
         std::string(first_variable_of(number));
}

/// Whether the numbers that are said fit together.
class CrossCheck {
 public:
  explicit CrossCheck(const EnvironmentReader& reader) : reader_(reader) {}

  Result<void> run(Validation how) {
    for (const JobNumber number : all_numbers) {
      // Nothing else depends on the replica, which others may name by a text.
      if (how == Validation::contradictions && number == JobNumber::replica_rank) continue;
      if (const auto found = reader_.find(number); !found.has_value()) return found.error();
      auto said = reader_.said(number);
      if (!said.has_value()) return std::move(said).error();
      of(number) = *std::move(said);
    }
    for (const auto& check : {ranks_have_sizes(), parts_fit(), nodes_fit()})
      if (!check) return check;
    return how == Validation::complete ? says_where() : Result<void>();
  }

 private:
  std::optional<FoundNumber>& of(JobNumber number) {
    return numbers_[static_cast<std::size_t>(number)];
  }
  int value(JobNumber number) { return of(number) ? of(number)->value : of_single_process(number); }
  /// Its variable, with its value.
  std::string shown(JobNumber number) {
    return reader_.shown(of(number)->source.substr(0, of(number)->source.find(',')));
  }

  Result<void> ranks_have_sizes() {
    if (!of(JobNumber::world_size)) {
      for (const JobNumber number : all_numbers) {
        if (of(number) && number != JobNumber::replica_rank &&
            value(number) != of_single_process(number)) {
          return reader_.error(shown(number) + ", but " + missing(JobNumber::world_size) +
                               ", or leave both out for a single process");
        }
      }
    } else if (!of(JobNumber::rank) && value(JobNumber::world_size) > 1) {
      return reader_.error(shown(JobNumber::world_size) + ", but " + missing(JobNumber::rank));
    }
    return {};
  }

  Result<void> parts_fit() {
    for (const auto& [part, whole] : {std::pair(JobNumber::rank, JobNumber::world_size),
                                      std::pair(JobNumber::local_rank, JobNumber::local_world_size),
                                      std::pair(JobNumber::node_rank, JobNumber::node_count)}) {
      if (of(part) && of(whole) && value(part) >= value(whole)) {
        return reader_.error(shown(part) + " contradicts " + shown(whole) +
                             ": a rank is below its size");
      }
    }
    for (const JobNumber part : {JobNumber::local_world_size, JobNumber::node_count}) {
      if (of(part) && of(JobNumber::world_size) && value(part) > value(JobNumber::world_size)) {
        return reader_.error(shown(part) + " contradicts " + shown(JobNumber::world_size) +
                             ": it has no more than the job has processes");
      }
    }
    return {};
  }

  Result<void> nodes_fit() {
    const JobNumber whole = JobNumber::world_size;
    const JobNumber part = JobNumber::local_world_size;
    const JobNumber nodes = JobNumber::node_count;
    if (!of(whole) || !of(part) || !of(nodes)) return {};
    const bool is_one_node = value(nodes) == 1;
    if (is_one_node == (value(part) == value(whole))) return {};
    return reader_.error(shown(nodes) + " contradicts " + shown(part) + " and " + shown(whole) +
                         (is_one_node ? ": one node has all processes of the job"
                                      : ": each node has a process of the job"));
  }

  Result<void> says_where() {
    if (value(JobNumber::world_size) == 1) return {};
    if (!of(JobNumber::local_rank))
      return reader_.error(shown(JobNumber::world_size) + ", but " +
                           missing(JobNumber::local_rank));
    if (!of(JobNumber::local_world_size) && !of(JobNumber::node_count)) {
      return reader_.error(shown(JobNumber::world_size) + ", but neither LOCAL_WORLD_SIZE nor " +
                           "NUM_NODES is set: set one of them");
    }
    return {};
  }

  const EnvironmentReader& reader_;
  std::array<std::optional<FoundNumber>, all_numbers.size()> numbers_;
};

}  // namespace

std::string_view name_of(JobNumber number) {
  switch (number) {
    case JobNumber::world_size: return "world_size";
    case JobNumber::rank: return "rank";
    case JobNumber::local_world_size: return "local_world_size";
    case JobNumber::local_rank: return "local_rank";
    case JobNumber::node_count: return "node_count";
    case JobNumber::node_rank: return "node_rank";
    case JobNumber::replica_rank: return "replica_rank";
    case JobNumber::fs_local_rank: return "fs_local_rank";
  }
  return "unknown";
}

Environment Environment::of_process() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == text.npos) continue;
    variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(variables));
}

Environment::Environment(Variables variables) : variables_(std::move(variables)) {}

Result<std::optional<FoundNumber>> Environment::find(JobNumber number) const {
  return EnvironmentReader(*this, "Environment::find").find(number);
}

Result<FoundNumber> Environment::number(JobNumber number, EnvironmentRule rule,
                                        const FormedGroup* formed) const {
  const EnvironmentReader reader(*this, "Environment::number");
  if (!formed && rule == EnvironmentRule::group_first)
    return FoundNumber{of_single_process(number), {}};

  const bool is_of_group = number == JobNumber::world_size || number == JobNumber::rank;
  if (formed && is_of_group && rule == EnvironmentRule::group_first)
    return FoundNumber{*known(*formed, number), "group"};

  if (formed && number == JobNumber::fs_local_rank) {
    const auto said = reader.read(number, first_variable_of(number));
    if (!said.has_value()) return said.error();
    if (*said) return **said;
    const bool is_shared = !reader.shared_file_system_variable().empty();
    return this->number(is_shared ? JobNumber::rank : JobNumber::local_rank, rule, formed);
  }

  auto found = reader.find(number);
  if (!found.has_value()) return std::move(found).error();
  const std::optional<int> of_group = formed ? known(*formed, number) : of_single_process(number);
  if (formed && is_of_group) {
    if (*found && (*found)->value != *of_group) {
      return reader.error(reader.shown((*found)->source) + " contradicts the group, whose " +
                          std::string(name_of(number)) + " is " + std::to_string(*of_group));
    }
    return FoundNumber{*of_group, "group"};
  }
  if (*found) return **std::move(found);
  if (!of_group) return reader.error(missing(number));
  return FoundNumber{*of_group, formed && number != JobNumber::replica_rank ? "group" : ""};
}

Result<bool> Environment::is_single_process() const {
  const EnvironmentReader reader(*this, "Environment::is_single_process");
  for (const JobNumber number : all_numbers) {
    if (number == JobNumber::replica_rank) continue;
    const auto found = reader.find(number);
    if (!found.has_value()) return found.error();
    if (*found && (*found)->value != of_single_process(number)) return false;
  }
  return true;
}

Result<void> Environment::validate(Validation how) const {
  const EnvironmentReader reader(*this, "Environment::validate");
  return CrossCheck(reader).run(how);
}

std::string Environment::host_name() const {
  if (const auto name = variable("BEAKER_NODE_HOSTNAME")) return std::string(*name);
  std::array<char, HOST_NAME_MAX + 1> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

std::optional<std::string_view> Environment::variable(std::string_view name) const {
  const auto place = variables_.find(name);
  if (place == variables_.end() || place->second.empty()) return {};
  return place->second;
}

MUSTER_END_NAMESPACE
