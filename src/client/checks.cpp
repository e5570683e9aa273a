#include "client/checks.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "auth/identity.h"
#include "base/secret/unshown.h"
#include "client/failure.h"

namespace muster::client {
namespace {

using Refusal = std::optional<Error>;

/// advice  what to do beside raising `option` of the server
Refusal too_large(const char* what, std::uint64_t actual, std::uint64_t limit, const char* advice,
                  const char* option) {
  if (actual <= limit) return std::nullopt;
  Error error = failure(ErrorCode::too_large, std::string(what) + " is too large; " + advice +
                                                  "raise the server's " + option);
  error.actual = actual;
  error.limit = limit;
  return error;
}

/// Collects the first thing that is wrong.
class Checker {
 public:
  explicit Checker(const Limits& limits) : limits_(limits) {}

  Refusal take() { return std::move(refusal_); }

  void key(std::string_view key) {
    if (key.empty()) note(invalid_argument("key: at least one byte"));
    note(too_large("the key", key.size(), limits_.key_bytes_max, "shorten it, or ",
                   "key_bytes_max"));
  }

  void value(std::string_view value) {
    note(too_large("the value", value.size(), limits_.value_bytes_max, "split it, or ",
                   "value_bytes_max"));
  }

  void keys(const std::vector<std::string_view>& keys) {
    count(keys.size());
    for (const std::string_view each : keys) key(each);
  }

  void count(std::size_t keys) {
    note(too_large("the number of keys", keys, limits_.keys_per_operation_max,
                   "give fewer at a time, or ", "keys_per_operation_max"));
  }

  void sum(std::uint64_t bytes) {
    note(too_large("the sum of the values", bytes, limits_.round_bytes_max,
                   "give less at a time, or ", "round_bytes_max"));
  }

  void ttl(const wire::Ttl& ttl) {
    if (ttl && *ttl <= Duration::zero()) note(invalid_argument("ttl: above zero"));
  }

  void text(const char* what, std::string_view text) {
    note(too_large(what, text.size(), limits_.key_bytes_max, "shorten it, or ", "key_bytes_max"));
  }

  void setting(std::string_view name) {
    if (const auto refused = base::refuse_secret("the setting's name", name))
      note(invalid_argument(refused->detail));
    text("the setting's name", name);
  }

  void name_space(std::string_view name) {
    if (name.size() > wire::name_bytes_max) note(invalid_argument("namespace: at most 64 bytes"));
  }

  void world_size(std::uint64_t size) {
    note(too_large("world_size", size, limits_.world_size_max, "", "world_size_max"));
  }

  void other_tenants(const std::vector<std::string_view>& tenants) {
    if (tenants.size() > wire::other_tenants_max) {
      note(invalid_argument("other_tenants: at most " + std::to_string(wire::other_tenants_max)));
    }
    if (!std::all_of(tenants.begin(), tenants.end(), auth::is_part_of_identity)) {
      note(invalid_argument("other_tenants: 1 to 64 letters, digits, '_', '.' and '-' each"));
    }
  }

 private:
  void note(Refusal refusal) {
    if (!refusal_) refusal_ = std::move(refusal);
  }

  const Limits& limits_;
  Refusal refusal_;
};

// One per request that can break a rule.

void check(Checker& checker, const wire::Set& body) {
  checker.key(body.key);
  checker.value(body.value);
  checker.ttl(body.ttl);
}
void check(Checker& checker, const wire::Get& body) { checker.key(body.key); }
void check(Checker& checker, const wire::Take& body) { checker.key(body.key); }
void check(Checker& checker, const wire::Add& body) { checker.key(body.key); }
void check(Checker& checker, const wire::CompareSet& body) {
  checker.key(body.key);
  if (body.expected) checker.value(*body.expected);
  checker.value(body.desired);
  checker.ttl(body.ttl);
}
void check(Checker& checker, const wire::Append& body) {
  checker.key(body.key);
  checker.value(body.suffix);
}
void check(Checker& checker, const wire::Remove& body) { checker.keys(body.keys); }
void check(Checker& checker, const wire::Exists& body) { checker.keys(body.keys); }
void check(Checker& checker, const wire::Wait& body) { checker.keys(body.keys); }
void check(Checker& checker, const wire::MultiGet& body) { checker.keys(body.keys); }
void check(Checker& checker, const wire::MultiSet& body) {
  checker.count(body.entries.size());
  std::uint64_t sum = 0;
  for (const wire::KeyValue& entry : body.entries) {
    checker.key(entry.key);
    checker.value(entry.value);
    sum += entry.value.size();
  }
  checker.sum(sum);
  checker.ttl(body.ttl);
}
void check(Checker& checker, const wire::QueuePush& body) {
  checker.key(body.key);
  checker.value(body.item);
}
void check(Checker& checker, const wire::QueuePop& body) { checker.key(body.key); }
void check(Checker& checker, const wire::QueueLength& body) { checker.key(body.key); }
void check(Checker& checker, const wire::List& body) { checker.text("the prefix", body.prefix); }
void check(Checker& checker, const wire::Touch& body) {
  checker.key(body.key);
  checker.ttl(body.ttl);
}
void check(Checker& checker, const wire::Join& body) {
  checker.text("the group's name", body.group);
  checker.value(body.info);
  checker.world_size(body.world_size);
  checker.other_tenants(body.other_tenants);
}
void check(Checker& checker, const wire::Regroup& body) {
  if (body.new_size != wire::Regroup::everyone) checker.world_size(body.new_size);
}
void check(Checker& checker, const wire::ReportDead& body) {
  checker.text("the reason", body.reason);
}
void check(Checker& checker, const wire::EndSession& body) {
  checker.text("the reason", body.reason);
}
void check(Checker& checker, const wire::Drain& body) { checker.text("the reason", body.reason); }
void check(Checker& checker, const wire::SetSetting& body) { checker.setting(body.name); }
void check(Checker& checker, const wire::GetSettings& body) { checker.setting(body.name); }
void check(Checker& checker, const wire::Interrupt& body) {
  checker.text("the reason", body.reason);
}
void check(Checker& checker, const wire::DropNameSpace& body) { checker.name_space(body.name); }
void check(Checker& checker, const wire::CollectiveCall& body) {
  std::uint64_t sum = 0;
  for (const std::string_view value : body.values) {
    checker.value(value);
    sum += value.size();
  }
  checker.sum(sum);
}
void check(Checker& checker, const wire::Send& body) { checker.value(body.value); }

// Nothing in these can break a rule.

void check(Checker&, const wire::Leave&) {}
void check(Checker&, const wire::Members&) {}
void check(Checker&, const wire::CancelTake&) {}
void check(Checker&, const wire::CancelRegroup&) {}
void check(Checker&, const wire::CancelRound&) {}
void check(Checker&, const wire::Receive&) {}
void check(Checker&, const wire::ExpireData&) {}
void check(Checker&, const wire::Recover&) {}
void check(Checker&, const wire::Status&) {}
void check(Checker&, const wire::WhoAmI&) {}
void check(Checker&, const wire::Sessions&) {}
void check(Checker&, const wire::Groups&) {}
void check(Checker&, const wire::InspectGroup&) {}
void check(Checker&, const wire::Waiters&) {}
void check(Checker&, const wire::NameSpaces&) {}
void check(Checker&, const wire::History&) {}

static_assert(wire::every_request([]<class Body>(std::type_identity<Body>) {
                return requires(Checker & checker, const Body& body) { check(checker, body); };
              }),
              "every operation has its check, be it empty");

}  // namespace

std::optional<Error> refusal_of(const wire::RequestBody& body, const Limits& limits) {
  Checker checker(limits);
  std::visit([&](const auto& each) { check(checker, each); }, body);
  return checker.take();
}

}  // namespace muster::client
