#pragma once

// What a process is told about its job by whoever has started it: torchrun, composer, Slurm,
// Open MPI, Kubernetes, or a person. In the library muster-runtime (CMake: Muster::runtime).

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "muster/config.h"
#include "muster/result.h"

MUSTER_BEGIN_NAMESPACE

/// A number that a job gives to each of its processes.
enum class JobNumber : std::uint8_t {
  world_size = 0,        ///< number of processes of the job
  rank = 1,              ///< of this process, from 0
  local_world_size = 2,  ///< number of processes of the job on this node
  local_rank = 3,        ///< of this process among them, from 0
  node_count = 4,        ///< number of nodes
  node_rank = 5,         ///< of this node, from 0
  replica_rank = 6,      ///< of the model replica that this process belongs to, from 0
  fs_local_rank = 7,     ///< of this process among those that share its file system, from 0
};

/// The number's name, as in this file, such as "local_rank".
MUSTER_API std::string_view name_of(JobNumber number);

/// A number, and who says it.
struct FoundNumber {
  int value = 0;
  /// The variables that it comes from, such as "LOCAL_RANK" or "RANK, LOCAL_WORLD_SIZE"; "group":
  /// the group that was formed; empty: nobody says it, so it is that of a single process.
  std::string source;
  /// No variable says the number itself: it follows from others, of nodes of one size.
  bool is_computed = false;
};

/// What counts: the environment, or the group that was formed.
enum class EnvironmentRule : std::uint8_t {
  /// As composer and Databricks: the environment counts, also before a group is formed. Afterwards
  /// the two may not contradict each other.
  environment_first,
  /// As OLMo-core: before a group is formed a process is alone, whatever the environment says.
  group_first,
};

/// What is known of a group that was formed. Numbers that it does not know are empty.
struct FormedGroup {
  int rank = 0;
  int world_size = 1;
  std::optional<int> local_world_size;
  std::optional<int> local_rank;
  std::optional<int> node_count;
  std::optional<int> node_rank;
};

/// How much `Environment::validate` asks for.
enum class Validation : std::uint8_t {
  contradictions,  ///< what is there is well formed, and fits together
  complete,        ///< and a job of several processes says where each of them is
};

/// The variables of a process, read once: later changes of the process's environment do not count.
/// A value; copies are equal.
///
/// Each number has a chain of variables, the first one that is set counts. A variable that is empty
/// counts as not set. docs/runtime.md has the table.
///
/// errors   of every call that returns a number: environment (a variable is no number, is out of
///          its range, is missing, or contradicts another one; `detail` names each with its value)
/// threads  any, also at the same time
class MUSTER_API Environment {
 public:
  using Variables = std::map<std::string, std::string, std::less<>>;

  /// That of this process, as it is now.
  ///
  /// threads  any, but nobody may change the process's environment meanwhile (setenv)
  static Environment of_process();

  /// One that has these variables; none: that of a single process.
  Environment() = default;
  explicit Environment(Variables variables);

  /// The number, if a variable says it, or others say what it must be.
  ///
  /// returns  none: nobody says it
  Result<std::optional<FoundNumber>> find(JobNumber number) const;

  /// The number by a rule; that of a single process (sizes 1, ranks 0) where nobody says it.
  ///
  /// formed  the group that was formed; null: none yet
  /// errors  environment: also where the rule is environment_first and the group says another world
  ///         size or rank, or neither a variable nor the group says the number
  Result<FoundNumber> number(JobNumber number, EnvironmentRule rule,
                             const FormedGroup* formed = nullptr) const;

  /// Whether this is the only process of its job: nothing says otherwise.
  Result<bool> is_single_process() const;

  /// Whether all variables that say a number can be read, and fit together: ranks are below their
  /// sizes, sizes of parts not above that of the whole, and there is no rank without a size.
  ///
  /// errors  environment: names the variable, its value, and the one that it contradicts
  Result<void> validate(Validation how = Validation::complete) const;

  /// The name of this host: BEAKER_NODE_HOSTNAME, else the system's.
  std::string host_name() const;

  /// A variable's value; none: it is not set, or empty.
  std::optional<std::string_view> variable(std::string_view name) const;

  friend bool operator==(const Environment& a, const Environment& b) {
    return a.variables_ == b.variables_;
  }
  friend bool operator!=(const Environment& a, const Environment& b) { return !(a == b); }

 private:
  Variables variables_;
};

MUSTER_END_NAMESPACE
