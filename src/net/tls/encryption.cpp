#include "net/tls/encryption.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::net::tls {
namespace {

/// A record holds no more pieces by reference, each with own bytes before it, and own bytes last.
constexpr std::size_t views_of_record =
    2 * (record_bytes_max / SendQueue::by_reference_bytes_min) + 1;

std::string_view to_view(const iovec& bytes) {
  return {static_cast<const char*>(bytes.iov_base), bytes.iov_len};
}

}  // namespace

Read Encryption::read(std::string_view came, std::span<char> plain) {
  const Read done = session_->read(came, plain.data(), plain.size(), out_);
  phase_ = done.phase;
  is_record_cut_ = done.plain == plain.size();
  return done;
}

/// As much from the front of the queue as a record takes, from where that lies if it is one piece.
///
/// gathered  takes the bytes else
std::string_view Encryption::next_record(std::string& gathered) const {
  std::array<iovec, views_of_record> views;
  const std::size_t views_count = queue_.front(views);
  const std::string_view first = to_view(views[0]);
  if (first.size() >= record_bytes_max || views_count == 1)
    return first.substr(0, record_bytes_max);
  gathered = loop_.take_spare();
  for (std::size_t index = 0; index < views_count && gathered.size() < record_bytes_max; ++index) {
    gathered.append(to_view(views[index]).substr(0, record_bytes_max - gathered.size()));
  }
  return gathered;
}

void Encryption::encrypt(std::size_t encrypted_bytes) {
  if (out_.empty() && can_encrypt()) out_ = loop_.take_spare();
  std::string gathered;
  while (can_encrypt() && out_.size() < encrypted_bytes) {
    const std::string_view record = next_record(gathered);
    if (!session_->write(record, out_)) phase_ = Phase::failed;
    queue_.took(record.size());
    if (!gathered.empty()) loop_.give_spare(std::move(gathered));
    gathered.clear();
  }
}

void Encryption::drop_out() {
  out_.clear();
  loop_.give_spare(std::move(out_));
  out_ = {};
}

}  // namespace muster::net::tls
