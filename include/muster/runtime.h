#pragma once

// How a process of a job begins: it learns its ranks, meets the others and gets its groups. In the
// library muster-runtime (CMake: Muster::runtime). docs/runtime.md tells what this has in place of
// which function of composer, OLMo-core, ModelOpt and Databricks' runtime.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "muster/communicator.h"
#include "muster/config.h"
#include "muster/environment.h"
#include "muster/mesh.h"
#include "muster/process_group.h"
#include "muster/result.h"
#include "muster/span.h"
#include "muster/store.h"

MUSTER_BEGIN_NAMESPACE

/// Where a process of the job is, as all of them know it.
struct JobPlace {
  int rank = 0;
  int local_rank = 0;  ///< among those on its node
  int local_world_size = 1;
  int node_rank = 0;
  ProcessInfo process;

  friend bool operator==(const JobPlace& a, const JobPlace& b) {
    return a.rank == b.rank && a.local_rank == b.local_rank &&
           a.local_world_size == b.local_world_size && a.node_rank == b.node_rank &&
           a.process.id == b.process.id;
  }
};

/// Makes communicators of one kind. `gloo_maker()` of muster/runtime_gloo.h and `nccl_maker()` of
/// muster/runtime_nccl.h give those of Muster's libraries.
struct CommunicatorMaker {
  std::string kind;  ///< such as "nccl"
  /// device  the ordinal of this rank's device, of communicators for "cuda"; else 0
  std::function<Result<Communicator>(StatelessProcessGroup& group, int device, Duration timeout)>
      make;
};

/// Options of `Runtime::init`. Where several ranks are to meet, all give the same.
struct RuntimeOptions {
  /// Of the world group, its store and, where rank 0 hosts it, its server. Empty names stand for
  /// "world", and for the namespace of MUSTER_NAMESPACE. `group.timeout` is that of `init`.
  HostedGroupOptions group;
  /// The address of a server that runs already; empty: that of MUSTER_STORE, if that is set.
  std::string store;
  /// If no server is named: where rank 0 hosts one and the others find it, "host:port" or
  /// "unix:/path". Rank 0 listens there, or on `group.listening_socket`, which `init` takes over in
  /// any case.
  std::string host;
  /// If no server is named and `host` is empty: rank 0 hosts one at MASTER_ADDR and MASTER_PORT.
  /// These belong to torch, so this is for jobs without torch.
  bool host_at_master_address = false;
  /// The communicators of the world, by device, such as "cpu:gloo,cuda:nccl", or "gloo" for
  /// "cpu:gloo", "nccl" for "cuda:nccl"; in any order. Empty: none.
  std::string communicators;
  /// Who makes them: one for each kind in `communicators`.
  std::vector<CommunicatorMaker> makers;
  /// The ordinal of this rank's CUDA device; none: its local rank, as the environment says it.
  std::optional<int> device;
};

/// Ranks of the job that work together: the world, or some of it.
///
/// A handle; the group leaves, and its communicators are aborted, when it is destroyed.
class MUSTER_API RankGroup {
 public:
  /// Of a group that was not made by a Runtime; its ranks tell each other where they are.
  /// Collective.
  ///
  /// environment  what this process was told of its place
  /// errors       mismatch (ranks: those that were told something else than the others),
  ///              environment, those of a collective
  /// cost         one round trip
  static Result<RankGroup> of(StatelessProcessGroup group,
                              const Environment& environment = Environment::of_process(),
                              Duration timeout = default_timeout);

  RankGroup();  ///< of no ranks
  ~RankGroup();
  RankGroup(RankGroup&&) noexcept;
  RankGroup& operator=(RankGroup&&) noexcept;

  /// Of no ranks: null.
  StatelessProcessGroup* group() const;
  /// The world's rank of each rank of this group.
  const std::vector<int>& world_ranks() const;
  /// Where each rank of this group is: in the world, and on its node.
  const std::vector<JobPlace>& places() const;
  /// This group's rank of a rank of the world; none: it is not in this group.
  std::optional<int> rank_of(int world_rank) const;
  /// The communicator for "cpu" or "cuda"; null: none was asked for.
  Communicator* communicator(std::string_view device) const;

  class Impl;
  explicit RankGroup(std::unique_ptr<Impl> impl);
  Impl* impl() const { return impl_.get(); }

 private:
  std::unique_ptr<Impl> impl_;
};

/// Options of `Runtime::subgroup`.
struct SubgroupOptions {
  /// Tells groups of the same ranks apart; the same on all of its members.
  std::string name;
  std::string communicators;  ///< as RuntimeOptions
  Duration timeout = default_timeout;
};

/// This process's part in a job. Nothing is global to the process: several may be in one process,
/// for tests, or for jobs in jobs.
///
/// errors   of every call that needs the world, beside its own: not_initialized
/// threads  `abort` and queries: any; other calls: one at a time
class MUSTER_API Runtime {
 public:
  /// That of this process's environment.
  Runtime();
  explicit Runtime(Environment environment);
  /// Leaves, without waiting for anybody: communicators are aborted, the session ends.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// Meets the other processes of the job: connects to the server (or hosts it), forms the world,
  /// checks that what the ranks were told of their nodes fits together, makes the communicators,
  /// and passes a barrier. Logs one line for each node.
  ///
  /// A single process needs no address: its store and groups are inside it, at no port and no file.
  ///
  /// Blocks until all ranks have called it, or the timeout has passed; with a server that runs
  /// already, waiting for it and for the ranks may take the timeout each. A second call with
  /// equal options does nothing.
  ///
  /// errors   environment (a variable is missing, wrong or contradicts another one, or no server is
  ///          named), mismatch (ranks: those that were told something else than the others),
  ///          invalid_argument (also: other options than at the first call), those of
  ///          `StatelessProcessGroup::create` and of the makers
  /// cost     a join, two rounds, and what the communicators take
  /// see      docs/runtime.md "How a job begins"
  Result<void> init(RuntimeOptions options = {});
  bool is_initialized() const;

  const Environment& environment() const;
  /// What is known of the world; null before `init`. For `Environment::number`.
  const FormedGroup* formed() const;
  /// A number of this process: after `init` that of the world, before as the rule says.
  Result<FoundNumber> number(JobNumber number,
                             EnvironmentRule rule = EnvironmentRule::environment_first) const;

  // Of the world. Before `init`: rank 0 of 1, as a single process.

  int rank() const;
  int world_size() const;
  int local_rank() const;
  int local_world_size() const;
  int node_rank() const;
  int node_count() const;
  /// Where each rank is; empty before `init`.
  const std::vector<JobPlace>& places() const;

  /// Before `init` of no ranks.
  RankGroup& world();
  /// Null before `init`.
  Store* store() const;

  /// Forms a group of some ranks of the world. Only these ranks call it, each as often as the
  /// others: every call makes another group, also of the same ranks.
  ///
  /// Blocks until all of them have called it. After a call that fails the next one tries again to
  /// form the same group.
  ///
  /// world_ranks  in the order of their ranks in the new group, each once, with this process's own
  /// errors       invalid_argument, those of `StatelessProcessGroup::create` and of the makers
  /// cost         a round trip, and what the communicators take
  Result<RankGroup> subgroup(Span<const int> world_ranks, const SubgroupOptions& options = {});
  /// The group of the ranks along a dimension of a mesh.
  Result<RankGroup> subgroup(const Mesh& mesh, std::string_view dimension,
                             const SubgroupOptions& options = {});

  /// Ends this process's part in order: waits for the others, ends the communicators, leaves.
  ///
  /// Blocks until all ranks have called it, or the timeout has passed; leaves in either case.
  ///
  /// errors  timed_out (ranks: missing), rank_lost, rank_left
  Result<void> shutdown(Duration timeout = std::chrono::seconds(60));

  /// Ends this process, for a failure after which the job cannot go on: tells the others why, so
  /// that what they wait for fails with `interrupted` and the reason, aborts the communicators, and
  /// calls `_exit`. Takes at most two seconds.
  ///
  /// code    the exit status
  [[noreturn]] void abort(int code, std::string_view reason) noexcept;

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

MUSTER_END_NAMESPACE
