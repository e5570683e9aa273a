#include "core/session/long_copies.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/memory/long_bytes.h"

namespace muster::core {

/// Bytes that come one after the other.
class LongCopies::Growing final : public LongBytes {
 public:
  /// Takes over a charge of `charged_bytes` that was made already; what is more is charged later.
  Growing(Quota& quota, char* memory, std::size_t size, std::uint64_t charged_bytes)
      : LongBytes(quota, memory, size, {memory, size}, charged_bytes) {}

  void append(std::string_view bytes) {
    bytes.copy(memory_ + filled_bytes_, bytes.size());
    filled_bytes_ += bytes.size();
    const std::uint64_t taken_bytes = filled_bytes_ + payload_overhead_bytes;
    if (taken_bytes <= charged_bytes_) return;
    quota_.charge_always(taken_bytes - charged_bytes_);
    charged_bytes_ = taken_bytes;
  }

 private:
  std::size_t filled_bytes_ = 0;
};

Payload LongCopies::begin(Quota& quota, std::vector<CopyPart> parts, Charging charging) {
  std::size_t size = 0;
  for (const CopyPart& part : parts) size += part.size();
  const bool is_charged_later = charging == Charging::always;
  const std::uint64_t charged_bytes = payload_overhead_bytes + (is_charged_later ? 0 : size);
  if (!quota.charge(charged_bytes, charging)) return nullptr;
  char* const memory = static_cast<char*>(std::malloc(size));
  if (memory == nullptr) {
    quota.release(charged_bytes);
    quota.set_short(true);
    return nullptr;
  }
  auto whole = std::make_shared<Growing>(quota, memory, size, charged_bytes);
  const auto copy = copies_.insert(copies_.end(), Copy{whole, std::move(parts), 0, 0, {}});
  by_payload_.emplace(whole.get(), copy);
  backlog_.add(*this);
  return whole;
}

bool LongCopies::hold(SendReply& reply) {
  const auto found = by_payload_.find(reply.tail.get());
  if (found == by_payload_.end()) return false;
  found->second->held.push_back(std::move(reply));
  return true;
}

/// A copy that nobody else has, either, is not made.
void LongCopies::forget(ConnectionId connection) {
  for (auto copy = copies_.begin(); copy != copies_.end();) {
    const auto next = std::next(copy);
    const auto count = std::erase_if(
        copy->held, [&](const SendReply& reply) { return reply.connection == connection; });
    if (count != 0 && copy->held.empty() && copy->whole.use_count() == 1) {
      by_payload_.erase(copy->whole.get());
      copies_.erase(copy);
    }
    copy = next;
  }
}

void LongCopies::clear() {
  by_payload_.clear();
  copies_.clear();
}

int LongCopies::work(int work_max) {
  if (copies_.empty()) return 0;
  Copy& copy = copies_.front();
  const std::size_t copied = copy_some(copy, static_cast<std::size_t>(work_max) * bytes_per_step);
  work_ += copied / bytes_per_step;
  if (copy.part == copy.parts.size()) finish(copies_.begin());
  return copies_.empty() ? 0 : work_max;
}

/// A part that has been copied lets go of its payload. Returns how many bytes were copied.
std::size_t LongCopies::copy_some(Copy& copy, std::size_t bytes_max) {
  std::size_t left_bytes = bytes_max;
  while (left_bytes > 0 && copy.part < copy.parts.size()) {
    CopyPart& part = copy.parts[copy.part];
    std::string_view from = part.text;
    std::size_t done = copy.done;
    if (done >= from.size() && part.value != nullptr) {
      done -= from.size();
      from = part.value->view();
    }
    const std::string_view piece = from.substr(done, left_bytes);
    copy.whole->append(piece);
    copy.done += piece.size();
    left_bytes -= piece.size();
    if (copy.done < part.size()) continue;
    part = {};
    ++copy.part;
    copy.done = 0;
  }
  return bytes_max - left_bytes;
}

void LongCopies::finish(Copies::iterator copy) {
  for (SendReply& reply : copy->held) effects_.emplace_back(std::move(reply));
  by_payload_.erase(copy->whole.get());
  copies_.erase(copy);
}

void LongCopies::make_whole(const Payload& payload) {
  const auto found = by_payload_.find(payload.get());
  if (found == by_payload_.end()) return;
  const auto copy = found->second;
  for (std::size_t part = copy->part; part < copy->parts.size(); ++part) {
    make_whole(copy->parts[part].value);
  }
  work_ += copy_some(*copy, SIZE_MAX) / bytes_per_step;
  finish(copy);
}

}  // namespace muster::core
