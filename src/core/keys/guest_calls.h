#pragma once

#include <cstdint>
#include <string_view>

#include "core/keys/guest_request.h"
#include "core/session/session.h"

namespace muster::core {

class Table;

/// What guests ask of a table; each is answered now or, parked, later.
class GuestCalls {
 public:
  explicit GuestCalls(Table& table) : table_(table) {}

  void ask(const RequestContext& context, const AwaitKeys& request);
  void ask(const RequestContext& context, const AwaitRelease& request);
  void ask(const RequestContext& context, const Release& request);
  void ask(const RequestContext& context, const CheckKeys& request);
  void ask(const RequestContext& context, const CountKeys& request);
  void ask(const RequestContext& context, const Push& request);
  void ask(const RequestContext& context, const Pop& request);
  void ask(const RequestContext& context, const CountQueued& request);

  /// What the answer takes beside a short reply.
  std::uint64_t bytes_of_answer(const GuestRequest& request) const;

 private:
  bool has_come(std::string_view key);
  void keep_item(Session& guest, std::string_view key);

  Table& table_;
};

}  // namespace muster::core
