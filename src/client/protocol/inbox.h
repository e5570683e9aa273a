#pragma once

#include <string>
#include <string_view>

namespace muster::client::protocol {

/// Bytes that came and are not used yet. Whole frames are read where they came; only a cut one is
/// kept, in memory that grows with what has arrived and never with what a header declares.
class Inbox {
 public:
  /// What there is now: what was kept and `bytes`, viewed until `settle`.
  void push(std::string_view bytes) {
    if (kept_.empty()) {
      rest_ = bytes;
    } else {
      kept_.append(bytes);
      rest_ = kept_;
    }
  }

  std::string_view rest() const { return rest_; }
  void consume(std::size_t count) { rest_.remove_prefix(count); }

  /// Everything is consumed. Views of it stay valid until `settle`.
  void drop_rest() { rest_ = {}; }

  /// Keeps what was not consumed.
  void settle() {
    if (kept_.empty()) {
      kept_.assign(rest_);
    } else {
      kept_.erase(0, kept_.size() - rest_.size());
    }
    if (kept_.empty() && kept_.capacity() > spare_bytes_max) std::string().swap(kept_);
    rest_ = {};
  }

 private:
  static constexpr std::size_t spare_bytes_max = 1u << 20;

  std::string kept_;
  std::string_view rest_;
};

}  // namespace muster::client::protocol
