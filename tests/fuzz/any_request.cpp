#include "any_request.h"

#include <chrono>
#include <string>

namespace muster::fuzz {
namespace {

const std::string long_text(5000, 'x');

class Maker {
 public:
  Maker(Input& input, const std::vector<std::uint64_t>& epochs) : input_(input), epochs_(epochs) {}

  wire::RequestBody key_request(std::size_t kind) {
    switch (kind) {
      case 0: return wire::Set{key(), value(), ttl(), flag(), flag()};
      case 1: return wire::Get{key()};
      case 2: return wire::Take{key()};
      case 3: return wire::Add{key(), static_cast<std::int64_t>(input_.wild())};
      case 4: return wire::CompareSet{key(), maybe_value(), value(), ttl()};
      case 5: return wire::Append{key(), value()};
      case 6: return wire::Remove{some_keys()};
      case 7: return wire::Exists{some_keys()};
      case 8: return wire::Wait{some_keys()};
      case 9: return wire::MultiGet{some_keys()};
      case 10: return multi_set();
      case 11:
        return wire::List{flag() ? wire::ListKind::objects : wire::ListKind::keys, key(),
                          input_.wild(), number()};
      default: return wire::Touch{key(), ttl()};
    }
  }

  wire::RequestBody operators_request() {
    switch (input_.below(16)) {
      case 0: return wire::Status{};
      case 1: return wire::Sessions{small()};
      case 2: return wire::Groups{group()};
      case 3: return wire::InspectGroup{group()};
      case 4: return wire::NameSpaces{maybe_value()};
      case 5: return wire::DropNameSpace{name_space()};
      case 6: return wire::WhoAmI{};
      case 7: return wire::History{flag() ? group() : std::string_view(), small()};
      case 8: return wire::QueuePush{key(), value()};
      case 9: return wire::QueuePop{key()};
      case 10: return wire::QueueLength{key()};
      case 11: return wire::GetSettings{setting()};
      case 12:
        return wire::SetSetting{setting(),
                                flag() ? input_.wild() : std::uint64_t{1} << input_.below(40)};
      case 13: return wire::EndSession{small(), process(), value()};
      case 14: return wire::Drain{flag(), ttl(), value()};
      default: return wire::Waiters{small()};
    }
  }

  wire::RequestBody group_request(std::size_t kind) {
    switch (kind) {
      case 0: return join();
      case 1: return wire::Leave{epoch()};
      case 2: return wire::Regroup{epoch(), from_1(), from_1(), small(), small()};
      case 3: return wire::Members{epoch()};
      case 4: return wire::ReportDead{process(), value()};
      case 5:
        if (flag()) return wire::CancelTake{from_1()};
        return wire::CancelRegroup{epoch(), from_1()};
      case 6:
        if (flag()) return wire::Interrupt{epoch(), from_1(), value()};
        return wire::CancelRound{epoch(), from_1()};
      case 7: return wire::Send{epoch(), small(), tag(), sequence(), 0, value()};
      case 8: return wire::Receive{epoch(), small(), tag(), sequence(), codec()};
      case 9: return wire::ExpireData{epoch(), duration()};
      case 10: return wire::Recover{epoch(), from_1() - 1, streams()};
      case 11: return operators_request();
      default: return collective();
    }
  }

 private:
  bool flag() { return input_.below(2) == 1; }
  std::string_view setting() {
    constexpr std::string_view names[] = {
        "",          "memory-bytes-max", "namespace-memory-bytes-max", "connections-max",
        "log-level", "parked-waits-max", "groups-per-namespace-max",   "namespace-idle-lifetime",
        "heartbeat", "slow_round_log",   "namespaces-per-address-max", "none"};
    return names[input_.below(std::size(names))];
  }
  std::uint32_t number() { return static_cast<std::uint32_t>(input_.wild()); }
  std::uint32_t small() {
    return is_rare() ? number() : static_cast<std::uint32_t>(input_.below(3));
  }
  bool is_rare() { return input_.below(16) == 15; }
  std::uint64_t from_1() { return is_rare() ? input_.wild() : 1 + input_.below(3); }
  std::uint64_t sequence() { return is_rare() ? input_.wild() : input_.below(3); }
  std::uint64_t tag() { return input_.below(2); }
  std::uint32_t codec() { return input_.below(16) == 15 ? 1 : 0; }
  std::uint64_t epoch() {
    const std::size_t index = input_.below(epochs_.size() + 1);
    return index < epochs_.size() ? epochs_[epochs_.size() - 1 - index] : input_.wild();
  }
  Duration duration() { return Duration(static_cast<Duration::rep>(input_.wild() % 16 * 500'000)); }
  wire::Ttl ttl() { return flag() ? wire::Ttl(duration()) : std::nullopt; }
  std::string_view key() {
    const std::size_t index = input_.below(64);
    if (index == 62) return {};
    return index == 63 ? std::string_view(long_text) : keys[index % keys.size()];
  }
  std::string_view value() {
    constexpr std::array<std::string_view, 4> texts = {"1", "", "not", "9223372036854775807"};
    constexpr std::array<std::size_t, 4> sizes = {100, 1000, 3000, 5000};
    const std::size_t index = input_.below(8);
    if (index < texts.size()) return texts[index];
    return std::string_view(long_text).substr(0, sizes[index - texts.size()]);
  }
  std::optional<std::string_view> maybe_value() {
    return flag() ? std::optional(value()) : std::nullopt;
  }
  std::vector<std::string_view> some_keys() {
    std::vector<std::string_view> some(input_.below(6));
    for (std::string_view& one : some) one = key();
    return some;
  }
  wire::MultiSet multi_set() {
    wire::MultiSet request;
    request.entries.resize(input_.below(6));
    for (wire::KeyValue& entry : request.entries) entry = {key(), value()};
    request.ttl = ttl();
    return request;
  }
  ProcessId process() {
    ProcessId id;
    id.bytes[0] = input_.byte() % 8;
    return id;
  }
  std::vector<wire::StreamName> streams() {
    std::vector<wire::StreamName> some(input_.below(4));
    for (wire::StreamName& one : some) one = {small(), tag()};
    return some;
  }
  std::string_view name_space() { return is_rare() ? key() : name_spaces[input_.below(2)]; }
  std::string_view group() { return is_rare() ? key() : keys[input_.below(2)]; }
  wire::Join join() {
    wire::Join request;
    request.group = group();
    request.world_size = 1 + small();
    request.rank = is_rare() ? number() : static_cast<std::uint32_t>(input_.below(3));
    request.data_expiration = is_rare() ? duration() : Duration(2'000'000);
    request.standby = is_rare();
    request.info = is_rare() ? value() : keys[0];
    if (request.standby) request.other_tenants.assign(input_.below(10), key());
    return request;
  }
  wire::CollectiveCall collective() {
    wire::CollectiveCall call;
    call.epoch = epoch();
    call.round = from_1();
    call.collective = static_cast<wire::Collective>(1 + input_.below(5));
    const bool is_for_all = call.collective == wire::Collective::barrier ||
                            call.collective == wire::Collective::all_gather;
    call.root = is_for_all && !is_rare() ? 0 : small();
    call.codec = codec();
    const bool is_barrier = call.collective == wire::Collective::barrier;
    call.values.resize(is_barrier && !is_rare() ? 0 : input_.below(4));
    for (std::string_view& one : call.values) one = value();
    return call;
  }

  Input& input_;
  const std::vector<std::uint64_t>& epochs_;
};

}  // namespace

wire::RequestBody any_request(Input& input, const std::vector<std::uint64_t>& epochs) {
  constexpr std::size_t of_keys = 13;
  constexpr std::size_t of_groups = 16;  // collectives more often
  const std::size_t kind = input.below(of_keys + of_groups);
  Maker maker(input, epochs);
  return kind < of_keys ? maker.key_request(kind) : maker.group_request(kind - of_keys);
}

}  // namespace muster::fuzz
