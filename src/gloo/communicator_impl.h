#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "communicator/common_impl.h"
#include "gloo/mesh.h"
#include "gloo/operations.h"
#include "muster/gloo.h"

namespace muster::gloo_internal {

/// Life cycle: made by Creation when all ranks have it -> called -> ended: its gate is closed for
/// one reason, and calls in progress are interrupted. When they have returned, the connections are
/// closed on another thread.
class Impl final : public communicator::CommonImpl {
 public:
  using Clock = std::chrono::steady_clock;

  Impl(const gloo::Options& options, communicator::Membership membership,
       std::shared_ptr<Mesh> mesh);
  ~Impl() override;

  std::string_view kind() const override { return "gloo"; }
  std::optional<Error> error() override { return gate().reason(); }
  Result<void> perform(const communicator::OperationCall& call) override;
  Result<void> grouped(const std::function<Result<void>()>& calls, Duration timeout) override;
  Result<void> close(Duration timeout) override;
  void end(Error why) override;

 private:
  class CallInProgress;
  class OpenGroup;

  void close_inherited() override;
  /// Runs a collective.
  void collective(Mesh& mesh, const communicator::OperationCall& call);
  /// Sends or receives; inside `grouped` it only begins to.
  void post(Mesh& mesh, const communicator::OperationCall& call);
  /// is_in_host  whether an exception of `work` is the host's, and goes on to the caller
  Result<void> run(std::string_view operation, Duration timeout,
                   const std::function<void(Mesh& mesh)>& work, const bool& is_in_host = false);
  Error failure_of(const Mesh& mesh, const std::string& said);
  void release_mesh();
  std::shared_ptr<Mesh> mesh();

  const Duration abort_timeout_;
  std::mutex mesh_mutex_;
  std::shared_ptr<Mesh> mesh_;
  std::atomic<std::thread::id> caller_{};  ///< the thread of the call in progress
  // Only that thread uses the rest:
  bool is_in_group_ = false;
  Clock::time_point call_began_;
  std::uint64_t sequence_ = 0;  ///< the number of collectives so far
  std::vector<Posted> posted_;
};

}  // namespace muster::gloo_internal
