#include "server/token_source.h"

#include <utility>

#include "base/random.h"

namespace muster::server {

std::optional<wire::ResumeToken> TokenSource::next() {
  if (left_ == 0) {
    static_assert(sizeof(tokens_) == asked_at_once * sizeof(wire::ResumeToken().bytes));
    if (!base::fill_random(tokens_.data(), sizeof(tokens_))) return std::nullopt;
    left_ = tokens_.size();
  }
  return std::exchange(tokens_[--left_], {});  // nobody finds it here again
}

}  // namespace muster::server
