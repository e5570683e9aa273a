#include "communicator/common_impl.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/rank_ranges.h"
#include "client/failure.h"
#include "communicator/messages.h"

namespace muster::communicator {
namespace {

/// Identifies a rank of a communicator: its process, and its rank there.
std::string identity_of(const ProcessId& id, int rank) {
  std::string text(reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size());
  append_number(text, static_cast<std::uint32_t>(rank));
  return text;
}

/// The ranks that are another process than before.
std::vector<RankRange> changed_ranks(const std::vector<std::string>& now,
                                     const std::vector<ProcessId>& before) {
  std::vector<RankRange> ranges;
  for (std::size_t rank = 0; rank < std::max(now.size(), before.size()); ++rank) {
    const bool is_same = rank < now.size() && rank < before.size() &&
                         now[rank] == identity_of(before[rank], static_cast<int>(rank));
    if (!is_same) base::add_to(ranges, static_cast<int>(rank));
  }
  return ranges;
}

}  // namespace

CommonImpl::CommonImpl(Membership membership, const CommunicatorOptions& options,
                       std::uint32_t codec)
    : membership_(std::move(membership)),
      timeout_(options.timeout),
      codec_(codec),
      lifecycle_(std::make_shared<Lifecycle>(options.on_loss, options.on_end)) {}

std::optional<Error> CommonImpl::refusal(std::string_view operation) const {
  if (!owner_.is_forked()) return std::nullopt;
  return about(operation, forked(), Lifecycle::Clock::now());
}

Error CommonImpl::about(std::string_view operation, Error error, TimePoint began) const {
  error.operation = operation;
  error.happened = Happened::unsaid;  // as in Agreement
  error.group = membership_.group;
  error.epoch = membership_.epoch;
  if (error.where.empty()) error.where = membership_.where;
  if (error.decided_by.empty()) error.decided_by = "client";
  error.elapsed = std::chrono::duration_cast<Duration>(Lifecycle::Clock::now() - began);
  return error;
}

void CommonImpl::watch(StatelessProcessGroup& group) {
  lifecycle_->watch(group, [weak = weak_from_this()](const Error& error) {
    if (const auto self = weak.lock()) self->end(error);
  });
}

Result<void> CommonImpl::attach(StatelessProcessGroup& group, Duration timeout) {
  const auto began = Lifecycle::Clock::now();
  if (const auto reason = gate().reason()) return about("attach", *reason, began);
  const auto all = group.all_gather_bytes(identity_of(group.store().process().id, membership_.rank),
                                          codec_, timeout);
  if (!all) return about("attach", all.error(), began);
  auto changed = changed_ranks(*all, membership_.processes);
  if (!changed.empty()) {
    Error error =
        client::failure(ErrorCode::mismatch, "another process or rank than it was made with");
    error.rank_ranges = std::move(changed);
    return about("attach", std::move(error), began);
  }
  watch(group);
  return {};
}

void CommonImpl::abort_all(const std::vector<std::shared_ptr<Impl>>& communicators) {
  for (const auto& each : communicators) {
    static_cast<CommonImpl&>(*each).end(client::failure(ErrorCode::aborted, "by its host"));
  }
}

bool CommonImpl::close_gate(Error why) {
  why.group = membership_.group;
  why.epoch = membership_.epoch;
  return lifecycle_->close(std::move(why));
}

void CommonImpl::release() {
  if (owner_.is_forked()) {
    close_inherited();
    base::keep_forever(shared_from_this());
    return;
  }
  lifecycle_->unwatch();
  end(client::failure(ErrorCode::aborted, "the communicator's handle is gone"));
}

}  // namespace muster::communicator
