#include "net/tls/encryption.h"

#include <utility>

namespace muster::net::tls {

Read Encryption::read(std::string_view came, std::span<char> plain) {
  const Read done = session_->read(came, plain.data(), plain.size(), out_);
  phase_ = done.phase;
  is_record_cut_ = done.plain == plain.size();
  return done;
}

void Encryption::encrypt(std::size_t encrypted_bytes) {
  if (out_.empty() && can_encrypt()) out_ = loop_.take_spare();
  std::string gathered;
  while (can_encrypt() && out_.size() < encrypted_bytes) {
    const std::string_view record = queue_.next_record(gathered);
    if (!session_->write(record, out_)) phase_ = Phase::failed;
    queue_.took(record.size());
    if (!gathered.empty()) queue_.give_back(std::move(gathered));
    gathered.clear();
  }
}

void Encryption::drop_out() {
  out_.clear();
  loop_.give_spare(std::move(out_));
  out_ = {};
}

}  // namespace muster::net::tls
