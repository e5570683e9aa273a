#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "client/interruption.h"
#include "muster/shared.h"
#include "runtime/shared/bundle.h"
#include "runtime/shared/file_error.h"
#include "runtime/shared/folder.h"
#include "runtime/shared/new_file.h"

MUSTER_BEGIN_NAMESPACE

namespace {

Error about_workspace(std::string_view operation, Error error) {
  error.operation = operation;
  error.decided_by = "client";
  return error;
}

Error blame_rank(Error error, int rank) {
  RankReport& report = error.ranks.emplace_back();
  report.rank = rank;
  report.joined = true;  // of which group is not known here
  error.rank_ranges = {{rank, rank}};
  return error;
}

std::string state_file_of(int rank) { return "rank_" + std::to_string(rank) + ".state"; }

std::optional<Error> refusal_of_workspace(const std::optional<std::string>& folder, int rank) {
  if (!folder.has_value()) {
    return base::failure(ErrorCode::not_initialized,
                         "this workspace has no folder: construct it with one");
  }
  if (!folder->empty() && rank >= 0) return {};
  return base::failure(ErrorCode::invalid_argument,
                       "rank " + std::to_string(rank) + " in folder '" + *folder +
                           "': give a rank from 0 and a folder's name");
}

/// Its tensors keep the memory of the whole file.
SharedState state_of_bundle(const runtime::LoadedBundle& loaded) {
  SharedState state;
  state.config = loaded.bundle.state.config;
  for (const NamedTensorView& named : loaded.bundle.state.tensors)
    state.tensors.push_back({named.name, Tensor(named.tensor, loaded.memory.owner())});
  return state;
}

std::string text_of_wait(const SharedReadOptions& options) {
  const auto seconds = std::chrono::duration<double>(options.timeout).count();
  return options.timeout > Duration::zero() ? " within " + std::to_string(seconds) + " s" : "";
}

}  // namespace

SharedStateView SharedState::view() const {
  SharedStateView view;
  view.config = config;
  for (const NamedTensor& named : tensors)
    view.tensors.push_back({named.name, named.tensor.view()});
  return view;
}

SharedWorkspace::SharedWorkspace(std::optional<std::string> folder, int rank)
    : folder_(std::move(folder)), rank_(rank) {}

std::string SharedWorkspace::path_of(int rank) const {
  return folder_.has_value() ? *folder_ + "/" + state_file_of(rank) : std::string();
}

Result<void> SharedWorkspace::write(std::uint64_t generation, const SharedStateView& state) {
  constexpr std::string_view operation = "SharedWorkspace::write";
  const auto failed = [&](Error error) {
    if (error.happened == Happened::unsaid) error.happened = Happened::no;
    return blame_rank(about_workspace(operation, std::move(error)), rank_);
  };
  if (auto refusal = refusal_of_workspace(folder_, rank_)) {
    refusal->happened = Happened::no;
    return about_workspace(operation, *std::move(refusal));
  }
  if (auto refusal = runtime::refusal_of_state(state)) return failed(*std::move(refusal));
  if (auto made = runtime::make_folder(*folder_); !made) return failed(std::move(made).error());
  auto file = runtime::NewFile::create(*folder_, "state");
  if (!file) return failed(std::move(file).error());
  auto written = runtime::encode_bundle(
      state, generation, runtime::BundleCheck::checksum,
      [&](const void* data, std::uint64_t bytes) { return file->append(data, bytes); });
  if (written) written = file->sync();
  if (written) written = file->rename_to(state_file_of(rank_));
  if (!written) return failed(std::move(written).error());
  return {};
}

Result<SharedState> SharedWorkspace::read(int rank, const SharedReadOptions& options) const {
  constexpr std::string_view operation = "SharedWorkspace::read";
  constexpr Duration pause_max = std::chrono::milliseconds(100);
  if (auto refusal = refusal_of_workspace(folder_, rank))
    return about_workspace(operation, *std::move(refusal));
  const auto begun = std::chrono::steady_clock::now();
  client::Interruption interruption;
  Duration pause = std::chrono::milliseconds(1);
  for (;;) {
    auto loaded = runtime::load_bundle(*folder_, state_file_of(rank),
                                       {options.generation_min, options.generation_max});
    if (loaded) return state_of_bundle(*loaded);
    const auto waited =
        std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begun);
    if (loaded.error().code != ErrorCode::not_found || waited >= options.timeout) {
      Error error = std::move(loaded).error();
      if (error.code == ErrorCode::not_found)
        error.detail +=
            "; rank " + std::to_string(rank) + " has written none" + text_of_wait(options);
      error.elapsed = waited;
      return blame_rank(about_workspace(operation, std::move(error)), rank);
    }
    if (interruption.is_there()) return about_workspace(operation, client::Interruption::error());
    std::this_thread::sleep_for(interruption.cut(std::min(pause, options.timeout - waited)));
    pause = std::min(2 * pause, pause_max);
    runtime::refresh_folder(*folder_);
  }
}

Result<void> SharedWorkspace::remove() {
  constexpr std::string_view operation = "SharedWorkspace::remove";
  if (auto refusal = refusal_of_workspace(folder_, rank_))
    return about_workspace(operation, *std::move(refusal));
  if (::unlink(path_of(rank_).c_str()) == 0 || errno == ENOENT) return {};
  const int number = errno;
  return about_workspace(
      operation, runtime::file_failure("'" + path_of(rank_) + "' cannot be removed", number));
}

MUSTER_END_NAMESPACE
