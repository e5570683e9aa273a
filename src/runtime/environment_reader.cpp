#include "runtime/environment_reader.h"

#include <array>
#include <charconv>
#include <utility>

#include "muster/detail/secret_text.h"
#include "muster/log.h"
#include "runtime/environment_error.h"

// A number is looked for in its variables first, then computed from others. A launcher's own
// variables count only for the processes that it has started itself: where a program that Slurm has
// started starts others, and gives them RANK, Slurm's local rank is not theirs.

namespace muster::runtime {

namespace {

using Found = std::optional<FoundNumber>;

bool is_size(JobNumber number) {
  return number == JobNumber::world_size || number == JobNumber::local_world_size ||
         number == JobNumber::node_count;
}

std::optional<int> number_in(std::string_view text) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// Of "4(x2),3" element `node`: 4, 4, 3.
std::optional<int> tasks_in(std::string_view list, int node) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(entry.size() == list.size() ? entry.size() : entry.size() + 1);
    const std::size_t bracket = entry.find("(x");
    std::optional<int> nodes = 1;
    if (bracket != entry.npos && entry.back() == ')')
      nodes = number_in(entry.substr(bracket + 2, entry.size() - bracket - 3));
    const std::optional<int> tasks = number_in(entry.substr(0, bracket));
    if (!nodes || !tasks || *nodes < 1) return {};
    if (node < *nodes) return tasks;
    node -= *nodes;
  }
  return {};
}

}  // namespace

Result<Found> EnvironmentReader::find(JobNumber number) const {
  auto found = said(number);
  if (!found.has_value() || found->has_value()) return found;
  return computed(number);
}

std::string_view EnvironmentReader::shared_file_system_variable() const {
  for (const std::string_view name : {"MUSTER_SHARED_FS", "OLMO_SHARED_FS"})
    if (environment_.variable(name) == "1") return name;
  return {};
}

Result<Found> EnvironmentReader::read(JobNumber number, std::string_view variable) const {
  const std::optional<std::string_view> text = environment_.variable(variable);
  if (!text) return Found();
  const std::optional<int> value = number_in(*text);
  const int least = is_size(number) ? 1 : 0;
  if (!value || *value < least) {
    return error(shown(variable) + ": the " + std::string(name_of(number)) +
                 " is a decimal number from " + std::to_string(least) + " to 2147483647");
  }
  return Found(FoundNumber{*value, std::string(variable)});
}

std::string EnvironmentReader::shown(std::string_view variable) const {
  const std::optional<std::string_view> text = environment_.variable(variable);
  if (!text) return std::string(variable) + " is not set";
  std::string complaint = detail::complaint_of_secret(variable, *text);
  if (!complaint.empty()) return complaint;
  return std::string(variable) + "=" + printable(text->substr(0, 128));
}

Error EnvironmentReader::error(std::string detail) const {
  return environment_error(operation_, std::move(detail));
}

Result<Found> EnvironmentReader::said(JobNumber number) const {
  for (const NumberVariable& variable : variables_of(number)) {
    if (!counts(number, variable.launcher)) continue;
    auto found = read(number, variable.name);
    if (!found.has_value() || found->has_value()) return found;
  }
  return number == JobNumber::local_world_size ? tasks_on_node() : Found();
}

Result<Found> EnvironmentReader::computed(JobNumber number) const {
  switch (number) {
    case JobNumber::node_count: return of_equal_nodes(JobNumber::world_size);
    case JobNumber::node_rank: return of_equal_nodes(JobNumber::rank);
    case JobNumber::replica_rank: return replica();
    case JobNumber::fs_local_rank: return among_those_with_its_files();
    case JobNumber::world_size:
    case JobNumber::rank:
    case JobNumber::local_world_size:
    case JobNumber::local_rank: break;
  }
  return Found();
}

/// The dividend by the processes of this node, where nothing speaks against nodes that have as many
/// processes each and are numbered one after the other.
Result<Found> EnvironmentReader::of_equal_nodes(JobNumber dividend) const {
  std::array<Found, 5> numbers;
  constexpr std::array sources{JobNumber::world_size, JobNumber::local_world_size,
                               JobNumber::node_count, JobNumber::rank, JobNumber::local_rank};
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto found = said(sources[i]);
    if (!found.has_value()) return found;
    numbers[i] = *std::move(found);
  }
  const auto& [world_size, part, node_count, rank, local_rank] = numbers;
  const Found& whole = dividend == JobNumber::rank ? rank : world_size;
  if (!world_size || !part || !whole || world_size->value % part->value != 0) return Found();
  if (node_count && node_count->value != world_size->value / part->value) return Found();
  if (rank && local_rank && rank->value % part->value != local_rank->value) return Found();
  return Found(FoundNumber{whole->value / part->value, whole->source + ", " + part->source, true});
}

Result<Found> EnvironmentReader::tasks_on_node() const {
  constexpr std::string_view list = "SLURM_STEP_TASKS_PER_NODE";
  const auto tasks = environment_.variable(list);
  if (!tasks || !counts(JobNumber::local_world_size, Launcher::slurm)) return Found();
  const auto node = read(JobNumber::node_rank, "SLURM_NODEID");
  if (!node.has_value() || !*node) return node;
  const std::optional<int> value = tasks_in(*tasks, (*node)->value);
  if (!value || *value < 1) {
    return error(shown(list) + ": it has no number of tasks for node " +
                 std::to_string((*node)->value) + " (SLURM_NODEID), such as 4(x2),3");
  }
  return Found(FoundNumber{*value, std::string(list) + ", SLURM_NODEID"});
}

Result<Found> EnvironmentReader::replica() const {
  const auto replicas = read(JobNumber::node_count, "NUM_REPLICAS");
  const auto world_size = said(JobNumber::world_size);
  const auto rank = said(JobNumber::rank);
  if (!replicas.has_value()) return replicas;
  if (!world_size.has_value()) return world_size;
  if (!rank.has_value()) return rank;
  if (!*replicas || !*world_size || !*rank || (*world_size)->value % (*replicas)->value != 0)
    return Found();
  return Found(FoundNumber{(*rank)->value / ((*world_size)->value / (*replicas)->value),
                           (*rank)->source + ", " + (*world_size)->source + ", NUM_REPLICAS",
                           true});
}

Result<Found> EnvironmentReader::among_those_with_its_files() const {
  const std::string_view shared = shared_file_system_variable();
  auto found = find(shared.empty() ? JobNumber::local_rank : JobNumber::rank);
  if (found.has_value() && *found && !shared.empty())
    (*found)->source += ", " + std::string(shared);
  return found;
}

bool EnvironmentReader::counts(JobNumber number, Launcher launcher) const {
  switch (launcher) {
    case Launcher::common: return true;
    case Launcher::slurm:
      return environment_.variable("SLURM_STEP_ID") &&
             agrees("SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
    case Launcher::open_mpi: return agrees("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
    case Launcher::pmi: return agrees("PMI_RANK", "PMI_SIZE");
    case Launcher::pmix: return environment_.variable("WORLD_SIZE").has_value();
    case Launcher::kubernetes:
      // A job of one process that runs as one of several pods: the index is no rank.
      return number == JobNumber::rank &&
             environment_.variable("WORLD_SIZE").value_or("1") != "1" && is_alone_in_its_pod();
  }
  return false;
}

/// Whether a launcher's rank and size are this process's: nobody else has said others.
bool EnvironmentReader::agrees(std::string_view rank, std::string_view world_size) const {
  const auto is_same = [this](std::string_view common, std::string_view own) {
    const auto said = environment_.variable(common);
    return !said || said == environment_.variable(own);
  };
  return is_same("RANK", rank) && is_same("WORLD_SIZE", world_size);
}

bool EnvironmentReader::is_alone_in_its_pod() const {
  const auto local_world_size = environment_.variable("LOCAL_WORLD_SIZE");
  const auto local_rank = environment_.variable("LOCAL_RANK");
  return (!local_world_size || local_world_size == "1") && (!local_rank || local_rank == "0");
}

}  // namespace muster::runtime
