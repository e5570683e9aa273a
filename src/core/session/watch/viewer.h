#pragma once

#include <string_view>

#include "core/session/session.h"

namespace muster::core {

/// Who looks at what there is: a session, which may see what is its own, or the server's own
/// process, which may see everything.
class Viewer {
 public:
  Viewer() = default;  ///< the server's own process
  explicit Viewer(const Session& session) : session_(&session) {}

  bool may_see(std::string_view tenant) const {
    return session_ == nullptr || session_->may_see(tenant);
  }
  bool may_see_all() const { return session_ == nullptr || session_->may_see_all(); }
  bool may_see_name_space(std::string_view name) const {
    return session_ == nullptr || session_->may_see_name_space(name);
  }
  bool is_of(const Unit& unit) const {
    return session_ != nullptr && &session_->account.unit == &unit;
  }
  /// Null: the server's own process.
  const Session* session() const { return session_; }

 private:
  const Session* session_ = nullptr;
};

}  // namespace muster::core
