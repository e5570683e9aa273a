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

#include "communicator/arguments.h"
#include "communicator/life.h"
#include "gloo/mesh.h"
#include "gloo/operations.h"
#include "muster/gloo_communicator.h"

MUSTER_BEGIN_NAMESPACE

/// Life cycle: made by gloo::Formation when all ranks have it -> called -> over: its gate is closed
/// for one reason, those inside are interrupted, and when they have left the connections go, on a
/// thread of their own.
class GlooCommunicator::Impl : public communicator::HasLife<GlooCommunicator::Impl> {
 public:
  using Clock = std::chrono::steady_clock;

  Impl(GlooOptions options, communicator::Place place, std::shared_ptr<gloo::Mesh> mesh);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const GlooOptions& options() const { return options_; }

  /// In a forked child, once: its copies of the sockets.
  void close_inherited();
  /// The first reason counts.
  void end(Error why);

  /// One call, as it was made.
  struct Subject {
    std::string_view operation;
    Duration timeout{0};
    const void* stream = nullptr;
    communicator::Arguments arguments{DataType::uint8};
    const void* send = nullptr;
    void* receive = nullptr;
    std::size_t count = 0;
    /// How often the longer of its buffers is as long as `count`.
    std::size_t parts = 1;
    bool is_needed_to_send = true;
    bool is_needed_to_receive = true;
    /// What comes would overwrite what is not sent yet.
    bool are_buffers_two = false;
  };
  using Work = void (*)(const gloo::Operation& operation);

  /// Runs a collective of Gloo's.
  Result<void> collective(const Subject& subject, Work work);
  /// Sends or receives; inside of `grouped` it only begins to.
  Result<void> post(const Subject& subject, gloo::Posted::Direction direction);
  Result<void> grouped(const std::function<Result<void>()>& calls, Duration timeout);
  Result<void> close(Duration timeout);

 private:
  class Turn;
  class Group;

  static std::uint32_t tag_of(std::string_view operation,
                              std::initializer_list<std::uint64_t> of_all_ranks);
  static gloo::Operation operation_of(const Subject& subject, gloo::Mesh& mesh, std::uint32_t tag);

  std::optional<Error> refusal_of(const Subject& subject) const;
  /// is_in_host  whether what `work` throws now is the host's, and goes on to it
  Result<void> run(std::string_view operation, Duration timeout,
                   const std::function<void(gloo::Mesh& mesh)>& work,
                   const bool& is_in_host = false);
  Error trouble_of(const gloo::Mesh& mesh, const std::string& said);
  void retire();
  std::shared_ptr<gloo::Mesh> mesh();

  const GlooOptions options_;
  std::mutex mesh_mutex_;
  std::shared_ptr<gloo::Mesh> mesh_;
  std::atomic<std::thread::id> caller_{};  ///< who is inside
  // Of the thread that is inside:
  bool is_in_group_ = false;
  Clock::time_point call_began_;
  std::uint64_t sequence_ = 0;  ///< of the collectives
  std::vector<gloo::Posted> posted_;
};

MUSTER_END_NAMESPACE
