// What the verbs of a script ask for: words in, wire requests out.

#include <algorithm>
#include <functional>
#include <map>

#include "core_client.h"

namespace muster::script {
namespace {

struct Making {
  OwnedRequest& owned;
  Asked& asked;
  Arguments& arguments;
  Client& client;
  Processes& processes;

  std::string_view key() { return owned.keep(bytes_of(arguments.next("a key"))); }
  std::string_view value() { return owned.keep(bytes_of(arguments.next("a value"))); }
  std::vector<std::string_view> rest() {
    std::vector<std::string_view> all;
    while (auto word = arguments.next()) all.push_back(owned.keep(bytes_of(*word)));
    return all;
  }
  std::uint64_t epoch(const GroupHandle& handle) {
    return static_cast<std::uint64_t>(
        arguments.number("epoch").value_or(static_cast<std::int64_t>(handle.epoch)));
  }
  template <class Number>
  Number number(std::string_view name, Number fallback) {
    const auto given = arguments.number(name);
    return given ? static_cast<Number>(*given) : fallback;
  }
  template <class Number>
  Number number(std::string_view name) {
    const auto given = arguments.number(name);
    if (!given) throw ScriptError("missing: " + std::string(name) + "=");
    return static_cast<Number>(*given);
  }
};

// Keys.

wire::RequestBody set(Making& making) {
  wire::Set body;
  body.only_if_absent = making.arguments.flag("if_absent");
  body.bind_to_session = making.arguments.flag("bound");
  body.ttl = making.arguments.duration("ttl");
  body.key = making.key();
  body.value = making.value();
  return body;
}

wire::RequestBody add(Making& making) {
  const auto key = making.key();
  return wire::Add{key, number_of(making.arguments.next("a number"))};
}

wire::RequestBody compare_set(Making& making) {
  wire::CompareSet body;
  body.key = making.key();
  body.ttl = making.arguments.duration("ttl");
  if (auto from = making.arguments.bytes("from")) body.expected = making.owned.keep(*from);
  const auto to = making.arguments.bytes("to");
  if (!to) throw ScriptError("missing: to=");
  body.desired = making.owned.keep(*to);
  return body;
}

wire::RequestBody append(Making& making) {
  const auto key = making.key();
  return wire::Append{key, making.value()};
}

wire::RequestBody multi_set(Making& making) {
  wire::MultiSet body;
  body.ttl = making.arguments.duration("ttl");
  const auto words = making.rest();
  if (words.size() % 2 != 0) throw ScriptError("multi_set takes keys and values in turn");
  for (std::size_t index = 0; index < words.size(); index += 2) {
    body.entries.push_back({words[index], words[index + 1]});
  }
  return body;
}

wire::RequestBody list(Making& making) {
  wire::List body;
  if (making.arguments.flag("objects")) body.kind = wire::ListKind::objects;
  if (making.arguments.flag("next")) body.cursor = making.client.list_cursor;
  body.count_max = making.number<std::uint32_t>("count", 0);
  if (auto prefix = making.arguments.next()) body.prefix = making.owned.keep(bytes_of(*prefix));
  return body;
}

wire::RequestBody touch(Making& making) {
  const auto key = making.key();
  return wire::Touch{key, making.arguments.duration("ttl")};
}

template <class Body>
wire::RequestBody one_key(Making& making) {
  return Body{making.key()};
}

template <class Body>
wire::RequestBody many_keys(Making& making) {
  return Body{making.rest()};
}

/// `wait many=1025`: as many keys k1, k2 ...
wire::RequestBody many_exists(Making& making) {
  wire::Exists body;
  const auto count = number_of(making.arguments.next("how many keys"));
  for (std::int64_t index = 1; index <= count; ++index) {
    body.keys.push_back(making.owned.keep("k" + std::to_string(index)));
  }
  return body;
}

// Groups.

wire::RequestBody join(Making& making) {
  wire::Join body;
  body.standby = making.arguments.flag("standby");
  making.asked.group = making.arguments.next("a group");
  body.group = making.owned.keep(bytes_of(making.asked.group));
  body.rank = making.number<std::uint32_t>("rank");
  body.world_size = making.number<std::uint32_t>("of");
  body.data_expiration = making.arguments.duration("expiration").value_or(std::chrono::hours(1));
  if (auto info = making.arguments.bytes("info")) body.info = making.owned.keep(*info);
  if (const auto tenants = making.arguments.named("tenants")) {
    for (const std::string& tenant : items_of(*tenants)) {
      body.other_tenants.push_back(making.owned.keep(tenant));
    }
  }
  return body;
}

wire::RequestBody regroup(Making& making) {
  wire::Regroup body;
  making.asked.group = making.client.current_group;
  if (auto group = making.arguments.named("group")) {
    making.asked.group = making.client.current_group = *group;
  }
  GroupHandle& handle = making.client.group(making.arguments);
  body.epoch = making.epoch(handle);
  body.attempt = making.number("attempt", handle.next_attempt);
  handle.next_attempt = body.attempt + 1;
  body.next_round = making.number("next_round", handle.next_round);
  body.new_size = making.number<std::uint32_t>("to", 0);
  if (making.arguments.flag("everyone")) body.new_size = wire::Regroup::everyone;
  body.min_size = making.number<std::uint32_t>("min", 0);
  return body;
}

template <class Body>
wire::RequestBody epoch_only(Making& making) {
  return Body{making.epoch(making.client.group(making.arguments))};
}

wire::RequestBody report_dead(Making& making) {
  const auto process = making.arguments.named("process");
  if (!process) throw ScriptError("missing: process=");
  return wire::ReportDead{
      making.processes.id_of(*process),
      making.owned.keep(making.arguments.bytes("reason").value_or("a supervisor says so"))};
}

template <wire::Collective collective>
wire::RequestBody collective_call(Making& making) {
  GroupHandle& handle = making.client.group(making.arguments);
  wire::CollectiveCall body;
  body.collective = collective;
  body.epoch = making.epoch(handle);
  body.round = making.number("round", handle.next_round);
  handle.next_round = body.round + 1;
  body.root = making.number<std::uint32_t>("root", 0);
  body.codec = making.number<std::uint32_t>("codec", 0);
  body.values = making.rest();
  return body;
}

wire::RequestBody cancel(Making& making) {
  GroupHandle& handle = making.client.group(making.arguments);
  const auto epoch = making.epoch(handle);
  return wire::CancelRound{epoch, making.number("round", handle.next_round - 1)};
}

wire::RequestBody cancel_take(Making& making) {
  const auto request = making.client.request_id(making.arguments.next("a request"));
  return wire::CancelTake{request, making.arguments.flag("gives_back")};
}

wire::RequestBody cancel_regroup(Making& making) {
  GroupHandle& handle = making.client.group(making.arguments);
  const auto epoch = making.epoch(handle);
  return wire::CancelRegroup{epoch, making.number("attempt", handle.next_attempt - 1)};
}

wire::RequestBody interrupt(Making& making) {
  GroupHandle& handle = making.client.group(making.arguments);
  wire::Interrupt body;
  body.epoch = making.epoch(handle);
  body.reason = making.owned.keep(bytes_of(making.arguments.next("a reason")));
  body.number = making.number("number", handle.next_interruption);
  handle.next_interruption = body.number + 1;
  return body;
}

wire::RequestBody send(Making& making) {
  GroupHandle& handle = making.client.group(making.arguments);
  wire::Send body;
  body.epoch = making.epoch(handle);
  body.destination = making.number<std::uint32_t>("to");
  body.tag = making.number<std::uint64_t>("tag", 0);
  std::uint64_t& next = handle.next_sequence[{body.destination, body.tag, true}];
  body.sequence = making.number("sequence", next);
  next = body.sequence + 1;
  body.codec = making.number<std::uint32_t>("codec", 0);
  body.value = making.value();
  return body;
}

wire::RequestBody receive(Making& making) {
  GroupHandle& handle = making.client.group(making.arguments);
  wire::Receive body;
  body.epoch = making.epoch(handle);
  body.source = making.number<std::uint32_t>("from");
  body.tag = making.number<std::uint64_t>("tag", 0);
  body.sequence = making.number("sequence", handle.next_sequence[{body.source, body.tag, false}]);
  body.codec = making.number<std::uint32_t>("codec", 0);
  return body;
}

wire::RequestBody expire_data(Making& making) {
  const auto epoch = making.epoch(making.client.group(making.arguments));
  return wire::ExpireData{epoch, making.arguments.duration("older_than").value_or(Duration(0))};
}

/// `streams=1:0,2:7`: the streams to rank 1 with tag 0 and to rank 2 with tag 7.
wire::RequestBody recover(Making& making) {
  GroupHandle& handle = making.client.group(making.arguments);
  wire::Recover body;
  body.epoch = making.epoch(handle);
  body.round = making.number("round", handle.next_round - 1);
  for (const std::string& stream : making.arguments.list("streams")) {
    const auto colon = stream.find(':');
    if (colon == stream.npos) throw ScriptError("not destination:tag: " + stream);
    body.streams.push_back({static_cast<std::uint32_t>(number_of(stream.substr(0, colon))),
                            static_cast<std::uint64_t>(number_of(stream.substr(colon + 1)))});
  }
  return body;
}

wire::RequestBody status(Making&) { return wire::Status{}; }
wire::RequestBody whoami(Making&) { return wire::WhoAmI{}; }
wire::RequestBody sessions(Making&) { return wire::Sessions{}; }
wire::RequestBody groups(Making&) { return wire::Groups{}; }
wire::RequestBody waiters(Making&) { return wire::Waiters{}; }
wire::RequestBody namespaces(Making& making) {
  wire::NameSpaces body;
  if (const auto after = making.arguments.bytes("after")) body.after = making.owned.keep(*after);
  return body;
}
wire::RequestBody history(Making& making) {
  wire::History body;
  if (const auto word = making.arguments.next()) body.group = making.owned.keep(bytes_of(*word));
  if (const auto after = making.arguments.number("after")) {
    body.after = static_cast<std::uint64_t>(*after);
  }
  return body;
}
wire::RequestBody queue_push(Making& making) {
  const auto key = making.key();
  return wire::QueuePush{key, making.value()};
}
/// `drop_namespace ""`: the default one.
wire::RequestBody drop_namespace(Making& making) {
  return wire::DropNameSpace{making.owned.keep(bytes_of(making.arguments.next("a namespace")))};
}
wire::RequestBody inspect(Making& making) {
  return wire::InspectGroup{making.owned.keep(bytes_of(making.arguments.next("a group")))};
}

/// `settings [NAME]`
wire::RequestBody settings(Making& making) {
  wire::GetSettings body;
  if (const auto word = making.arguments.next()) body.name = making.owned.keep(*word);
  return body;
}
wire::RequestBody set_setting(Making& making) {
  wire::SetSetting body;
  body.name = making.owned.keep(making.arguments.next("a setting"));
  body.value = static_cast<std::uint64_t>(number_of(making.arguments.next("a number")));
  return body;
}
/// `end_session NUMBER|process=P [reason=]`
wire::RequestBody end_session(Making& making) {
  wire::EndSession body;
  if (const auto process = making.arguments.named("process")) {
    body.process = making.processes.id_of(*process);
  } else {
    body.session = static_cast<std::uint64_t>(number_of(making.arguments.next("a session")));
  }
  body.reason = making.owned.keep(making.arguments.named("reason").value_or("it hangs"));
  return body;
}
/// `drain [time=] [reason=]`, `drain cancel`
wire::RequestBody drain(Making& making) {
  wire::Drain body;
  body.cancels = making.arguments.flag("cancel");
  body.time_max = making.arguments.duration("time");
  body.reason = making.owned.keep(making.arguments.named("reason").value_or(""));
  return body;
}

struct Verb {
  std::function<wire::RequestBody(Making&)> make;
  Duration timeout{0};  ///< when the script gives none
};

const std::map<std::string, Verb, std::less<>>& verbs() {
  using wire::Collective;
  constexpr Duration patient = std::chrono::seconds(30);
  static const std::map<std::string, Verb, std::less<>> all = {
      {"set", {set}},
      {"get", {one_key<wire::Get>}},
      {"take", {one_key<wire::Take>}},
      {"queue_push", {queue_push}},
      {"queue_pop", {one_key<wire::QueuePop>}},
      {"queue_length", {one_key<wire::QueueLength>}},
      {"add", {add}},
      {"compare_set", {compare_set}},
      {"append", {append}},
      {"remove", {many_keys<wire::Remove>}},
      {"exists", {many_keys<wire::Exists>}},
      {"exists_many", {many_exists}},
      {"wait", {many_keys<wire::Wait>}},
      {"multi_get", {many_keys<wire::MultiGet>}},
      {"multi_set", {multi_set}},
      {"list", {list}},
      {"touch", {touch}},
      {"join", {join, patient}},
      {"leave", {epoch_only<wire::Leave>}},
      {"regroup", {regroup, patient}},
      {"members", {epoch_only<wire::Members>}},
      {"report_dead", {report_dead}},
      {"barrier", {collective_call<Collective::barrier>, patient}},
      {"broadcast", {collective_call<Collective::broadcast>, patient}},
      {"all_gather", {collective_call<Collective::all_gather>, patient}},
      {"gather", {collective_call<Collective::gather>, patient}},
      {"scatter", {collective_call<Collective::scatter>, patient}},
      {"cancel", {cancel}},
      {"cancel_take", {cancel_take}},
      {"cancel_regroup", {cancel_regroup}},
      {"interrupt", {interrupt}},
      {"send", {send, patient}},
      {"receive", {receive}},
      {"expire_data", {expire_data}},
      {"recover", {recover}},
      {"sessions", {sessions}},
      {"groups", {groups}},
      {"inspect", {inspect}},
      {"waiters", {waiters}},
      {"namespaces", {namespaces}},
      {"history", {history}},
      {"drop_namespace", {drop_namespace}},
      {"settings", {settings}},
      {"set_setting", {set_setting}},
      {"end_session", {end_session}},
      {"drain", {drain}},
      {"status", {status}},
      {"whoami", {whoami}},
  };
  return all;
}

}  // namespace

std::unique_ptr<Asked> request_of(const std::string& verb, Arguments& arguments, Client& client,
                                  Processes& processes) {
  const auto found = verbs().find(verb);
  if (found == verbs().end()) return nullptr;
  auto asked = std::make_unique<Asked>();
  asked->label = arguments.named("as").value_or("");
  wire::Request& request = asked->owned.request;
  request.timeout = arguments.duration("timeout").value_or(found->second.timeout);
  for (const std::string& label : arguments.list("acks")) {
    request.acknowledged.push_back(client.request_id(label));
  }
  Making making{asked->owned, *asked, arguments, client, processes};
  request.body = found->second.make(making);
  const auto id = arguments.number("id");
  request.id = id ? static_cast<std::uint64_t>(*id) : client.next_request_id;
  client.next_request_id = std::max(client.next_request_id, request.id + 1);
  return asked;
}

}  // namespace muster::script
