#include "runtime/shared/gathering.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <thread>
#include <utility>

#include "base/failure.h"
#include "base/rank_ranges.h"
#include "client/interruption.h"
#include "muster/codec_raw.h"
#include "runtime/cut_timeout.h"
#include "runtime/shared/bundle.h"

// The life of a gathering: each of `ranks` but the first writes its state to a file, in memory or
// in the folder. First exchange: all tell all where that is, or what went wrong; from equal
// messages all judge alike. The first one takes what was written; second exchange: it tells whether
// it could. Now the names go, and the bodies run. Third exchange: all tell all how their bodies
// have ended. What was refused on one rank alone still goes through the first exchange, so nobody
// waits in vain.

MUSTER_BEGIN_NAMESPACE

namespace detail {

using runtime::Offer;
using runtime::Trouble;

namespace {

constexpr std::string_view purpose_of_files = "gather";
constexpr std::size_t reported_ranks_max = 64;         // in full, in an error
constexpr std::size_t reported_text_bytes_max = 4096;  // of what a body has thrown

std::string list_of_ranks(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ",") + std::to_string(rank);
  return text;
}

std::string kind_of_tensor(const TensorView& tensor) {
  TensorView kind = tensor;
  kind.device = {};
  return to_string(kind);
}

/// The same for all ranks whose call is the same.
std::string call_of(Gathering::Impl::What what, const GatherOptions& options) {
  std::string text =
      what == Gathering::Impl::What::tensors ? "with_gathered_tensors" : "with_gathered_states";
  text += ", ranks " + (options.ranks.empty() ? "all" : list_of_ranks(options.ranks));
  text += options.folder.empty() ? ", through memory" : ", through a folder";
  if (what == Gathering::Impl::What::tensors && options.equal_tensors) text += ", equal tensors";
  return text;
}

}  // namespace

Gathering::Impl::Impl(RankGroup::Impl& group, What what, const GatherOptions& options)
    : group_(group), what_(what), options_(options), ranks_(options.ranks) {
  if (!ranks_.empty()) return;
  ranks_.resize(static_cast<std::size_t>(group.group().world_size()));
  std::iota(ranks_.begin(), ranks_.end(), 0);
}

Result<void> Gathering::Impl::begin(const std::optional<SharedStateView>& own) {
  auto offers = exchange(make_offer(own));
  if (!offers) return std::move(offers).error();
  if (auto found = disagreement(*offers)) return *std::move(found);
  if (auto found = troubles(*offers)) return *std::move(found);
  std::optional<Trouble> trouble;
  if (is_first())
    if (const auto taken = take_all(*offers, own); !taken)
      trouble = runtime::trouble_of(taken.error());
  auto agreed = settle(trouble, options_.timeout);
  file_.unlink();
  return agreed;
}

std::optional<Error> Gathering::Impl::refusal(const std::optional<SharedStateView>& own) const {
  if (!options_.refusal.empty())
    return base::failure(ErrorCode::invalid_argument, options_.refusal);
  const int world_size = group_.group().world_size();
  std::vector<bool> is_named(static_cast<std::size_t>(world_size));
  for (const int rank : ranks_) {
    if (rank >= 0 && rank < world_size && !is_named[static_cast<std::size_t>(rank)]) {
      is_named[static_cast<std::size_t>(rank)] = true;
      continue;
    }
    return base::failure(ErrorCode::invalid_argument,
                         "GatherOptions::ranks has " + std::to_string(rank) +
                             ": give ranks of the group, from 0 to " +
                             std::to_string(world_size - 1) + ", each once");
  }
  if (options_.body_timeout <= Duration::zero())
    return base::failure(ErrorCode::invalid_argument, "body_timeout is above zero");
  if (!own.has_value() || !is_named[static_cast<std::size_t>(rank())]) return {};
  return runtime::refusal_of_state(*own);
}

Offer Gathering::Impl::make_offer(const std::optional<SharedStateView>& own) {
  Offer offer;
  offer.call = call_of(what_, options_);
  const auto in_trouble = [&](const Error& error) {
    offer.trouble = runtime::trouble_of(error);
    return offer;
  };
  if (const auto refused = refusal(own)) return in_trouble(*refused);
  const bool gives = std::find(ranks_.begin(), ranks_.end(), rank()) != ranks_.end();
  offer.has_state = own.has_value() && gives;
  if (!offer.has_state) return offer;
  if (what_ == What::tensors) offer.kind = kind_of_tensor(own->tensors.front().tensor);
  if (is_first()) return offer;
  auto written = write(*own);
  if (!written) return in_trouble(written.error());
  file_ = *std::move(written);
  offer.file = file_.name();
  offer.bytes = file_.size();
  return offer;
}

Result<runtime::NewFile> Gathering::Impl::write(const SharedStateView& state) const {
  if (!is_through_memory())
    if (auto made = runtime::make_folder(folder()); !made) return std::move(made).error();
  auto file = runtime::NewFile::create(folder(), purpose_of_files);
  if (!file) return file;
  const auto check =
      is_through_memory() ? runtime::BundleCheck::none : runtime::BundleCheck::checksum;
  auto written = runtime::encode_bundle(
      state, 0, check,
      [&](const void* data, std::uint64_t bytes) { return file->append(data, bytes); });
  // The server of the folder has to have it when another host looks.
  if (written && !is_through_memory()) written = file->sync();
  if (!written) return std::move(written).error();
  return file;
}

Result<std::vector<Offer>> Gathering::Impl::exchange(const Offer& own) {
  const auto all =
      group_.group().all_gather_bytes(runtime::encode_offer(own), RawCodec::id, options_.timeout);
  if (!all) return about(all.error());
  std::vector<Offer> offers;
  for (const std::string& bytes : *all) {
    auto offer = runtime::decode_offer(bytes);
    if (!offer.has_value()) {
      Error error = base::failure(ErrorCode::collective_mismatch,
                                  "it has called another collective than this rank");
      blame(error, static_cast<int>(offers.size()));
      return about(std::move(error));
    }
    offers.push_back(*std::move(offer));
  }
  return offers;
}

/// Ranks that have called it with other options than rank 0, or with a tensor that is not equal.
std::optional<Error> Gathering::Impl::disagreement(const std::vector<Offer>& offers) const {
  Error error = base::failure(ErrorCode::mismatch, "");
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (offers[rank].call == offers[0].call) continue;
    if (error.detail.empty())
      error.detail = "'" + offers[0].call + "' at rank 0, '" + offers[rank].call + "' there";
    blame(error, static_cast<int>(rank));
  }
  if (error.detail.empty() && options_.equal_tensors && what_ == What::tensors) {
    std::vector<int> sorted = ranks_;
    std::sort(sorted.begin(), sorted.end());
    const bool has_trouble = std::any_of(
        offers.begin(), offers.end(), [](const Offer& offer) { return offer.trouble.has_value(); });
    if (has_trouble) return {};  // a rank that is named may not be there
    const std::string& kind = offers[static_cast<std::size_t>(ranks_.front())].kind;
    for (const int rank : sorted) {
      const std::string& its = offers[static_cast<std::size_t>(rank)].kind;
      if (its == kind) continue;
      if (error.detail.empty()) {
        error.detail = "rank " + std::to_string(ranks_.front()) + " gave " + kind + ", rank " +
                       std::to_string(rank) + " " + its + ": clear equal_tensors to allow it";
      }
      blame(error, rank);
    }
  }
  if (error.detail.empty()) return {};
  return about(std::move(error));
}

std::optional<Error> Gathering::Impl::troubles(const std::vector<Offer>& offers) const {
  std::optional<Error> together;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    if (!offers[rank].trouble) continue;
    const Error error = error_of(*offers[rank].trouble, static_cast<int>(rank));
    const std::string text = "rank " + std::to_string(rank) + ": " + error.detail;
    if (!together) {
      together = error;
      together->detail = text;
      continue;
    }
    together->detail += "; " + text;
    blame(*together, static_cast<int>(rank));
  }
  return together;
}

Result<void> Gathering::Impl::take_all(const std::vector<Offer>& offers,
                                       const std::optional<SharedStateView>& own) {
  // The second half is for the others to hear how it went.
  const Duration timeout = options_.timeout == default_timeout ? Duration::max() : options_.timeout;
  const auto deadline = Clock::now() + runtime::cut_to_a_year(timeout) / 2;
  for (const int rank : ranks_) {
    const Offer& offer = offers[static_cast<std::size_t>(rank)];
    if (rank == this->rank()) {
      states.push_back(own);
    } else if (!offer.has_state) {
      states.emplace_back();
    } else {
      auto taken = take(offer, deadline);
      if (!taken) {
        Error error = std::move(taken).error();
        error.detail = "of rank " + std::to_string(rank) + ": " + error.detail;
        const bool is_own = error.code == ErrorCode::resource_exhausted;
        blame(error, is_own ? this->rank() : rank);
        return error;
      }
      for (NamedTensorView& named : taken->tensors) named.tensor.is_read_only = true;
      states.emplace_back(*std::move(taken));
    }
  }
  if (what_ == What::states) return {};
  for (const auto& state : states) tensors.push_back(state->tensors.front().tensor);
  return {};
}

Result<SharedStateView> Gathering::Impl::take(const Offer& offer, Clock::time_point deadline) {
  if (!runtime::is_name_of(offer.file, purpose_of_files))
    return base::failure(ErrorCode::protocol_error, "it gave no name of such a file");
  auto taken = is_through_memory() ? take_from_memory(offer) : take_from_folder(offer, deadline);
  if (taken && what_ == What::tensors && taken->tensors.size() != 1)
    return base::failure(ErrorCode::codec_failure, "it is not one tensor");
  // If this fails, the file's own process still does it.
  if (taken) ::unlink((folder() + "/" + offer.file).c_str());
  return taken;
}

Result<SharedStateView> Gathering::Impl::take_from_memory(const Offer& offer) {
  auto segment = runtime::SharedSegment::open(folder(), offer.file, offer.bytes,
                                              runtime::SharedSegment::Access::read_only);
  if (!segment) {
    Error error = std::move(segment).error();
    if (error.code != ErrorCode::not_found) return error;
    error.code = ErrorCode::invalid_argument;
    error.detail +=
        ". It is on another host, or in a container with a /dev/shm of its own: give all ranks "
        "GatherOptions::folder, or let the containers share it";
    return error;
  }
  auto bundle =
      runtime::decode_bundle(segment->data(), segment->size(), runtime::BundleCheck::none);
  if (!bundle) return std::move(bundle).error();
  segments_.push_back(*std::move(segment));
  return std::move(bundle->state);
}

Result<SharedStateView> Gathering::Impl::take_from_folder(const Offer& offer,
                                                          Clock::time_point deadline) {
  // It is there. A client of NFS may not know yet.
  constexpr Duration patience = std::chrono::seconds(5);
  constexpr Duration pause = std::chrono::milliseconds(20);
  const auto give_up_at = std::min(deadline, Clock::now() + patience);
  client::Interruption interruption;
  for (;;) {
    auto loaded = runtime::load_bundle(options_.folder, offer.file);
    if (loaded) {
      loaded_.push_back(std::move(loaded->memory));
      return std::move(loaded->bundle.state);
    }
    if (loaded.error().code != ErrorCode::not_found) return std::move(loaded).error();
    if (Clock::now() >= give_up_at) {
      Error error = std::move(loaded).error();
      error.code = ErrorCode::invalid_argument;
      error.detail += ". Give all ranks a folder that they share";
      return error;
    }
    if (interruption.is_there()) return client::Interruption::error();
    std::this_thread::sleep_for(pause);
    runtime::refresh_folder(options_.folder);
  }
}

Result<void> Gathering::Impl::end(const TurnOutcome& own) {
  std::optional<Trouble> trouble;
  if (own.failure) {
    trouble = Trouble{
        ErrorCode::callback_failed, 0, 0, {}, own.failure->substr(0, reported_text_bytes_max)};
  }
  return settle(trouble, options_.body_timeout);
}

/// One rank's trouble becomes that of all.
Result<void> Gathering::Impl::settle(const std::optional<Trouble>& own, Duration timeout) {
  const auto all =
      group_.group().all_gather_bytes(runtime::encode_trouble(own), RawCodec::id, timeout);
  if (!all) return about(all.error());
  std::vector<Offer> heard;
  for (const std::string& bytes : *all) {
    auto trouble = runtime::decode_trouble(bytes);
    heard.emplace_back().trouble =
        trouble ? *std::move(trouble)
                : Trouble{ErrorCode::collective_mismatch, 0, 0, {}, "it called another collective"};
  }
  if (auto found = troubles(heard)) return *std::move(found);
  return {};
}

/// teller  the rank at fault, unless the trouble names others
Error Gathering::Impl::error_of(const Trouble& trouble, int teller) const {
  Error error = base::failure(trouble.code, trouble.detail);
  error.actual = trouble.actual;
  error.limit = trouble.limit;
  if (trouble.ranks.empty()) blame(error, teller);
  for (const int rank : trouble.ranks) blame(error, rank);
  return about(std::move(error));
}

void Gathering::Impl::blame(Error& error, int rank) const {
  base::add_to(error.rank_ranges, rank);
  const std::vector<JobPlace>& places = group_.places();
  if (rank < 0 || static_cast<std::size_t>(rank) >= places.size()) return;
  if (error.ranks.size() >= reported_ranks_max) return;
  RankReport report;
  report.rank = rank;
  report.joined = true;
  report.process = places[static_cast<std::size_t>(rank)].process;
  error.ranks.push_back(std::move(report));
}

Error Gathering::Impl::about(Error error) const {
  error.operation = what_ == What::tensors ? "with_gathered_tensors" : "with_gathered_states";
  error.group = group_.group().name();
  error.epoch = group_.group().epoch();
  if (error.decided_by.empty()) error.decided_by = "client";
  return error;
}

Gathering::Gathering(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Gathering::~Gathering() = default;
Gathering::Gathering(Gathering&&) noexcept = default;

namespace {

Result<Gathering> gathering_of(RankGroup& group, Gathering::Impl::What what,
                               const std::optional<SharedStateView>& own,
                               const GatherOptions& options) {
  if (group.impl() == nullptr) {
    Error error = base::failure(ErrorCode::not_initialized,
                                "this group is of no ranks: Runtime::init comes first");
    error.operation =
        what == Gathering::Impl::What::tensors ? "with_gathered_tensors" : "with_gathered_states";
    error.decided_by = "client";
    return error;
  }
  auto impl = std::make_unique<Gathering::Impl>(*group.impl(), what, options);
  if (auto begun = impl->begin(own); !begun) return std::move(begun).error();
  return Gathering(std::move(impl));
}

}  // namespace

Result<Gathering> Gathering::of_tensors(RankGroup& group, const TensorView& tensor,
                                        const GatherOptions& options) {
  SharedStateView state;
  state.tensors.push_back({"", tensor});
  return gathering_of(group, Impl::What::tensors, state, options);
}

Result<Gathering> Gathering::of_states(RankGroup& group,
                                       const std::optional<SharedStateView>& state,
                                       const GatherOptions& options) {
  return gathering_of(group, Impl::What::states, state, options);
}

Span<const TensorView> Gathering::tensors() const { return impl_->tensors; }

Span<const std::optional<SharedStateView>> Gathering::states() const { return impl_->states; }

Result<void> Gathering::end(const TurnOutcome& own) { return impl_->end(own); }

}  // namespace detail

MUSTER_END_NAMESPACE
