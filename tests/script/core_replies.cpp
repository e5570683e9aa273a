// What replies, errors and events say: bytes in, lines out.

#include <algorithm>

#include "core_client.h"
#include "core_inspect_replies.h"
#include "wire/reply.h"

namespace muster::script {
namespace {

template <class Reply>
Reply decoded(std::string_view body) {
  auto reply = wire::decode_body<Reply>(body);
  if (!reply) throw ScriptError("a reply cannot be decoded: " + reply.error().message());
  return *std::move(reply);
}

std::string quoted_list(const std::vector<std::string_view>& values) {
  std::vector<std::string> parts;
  for (const auto& value : values) parts.push_back(in_quotes(value));
  return joined(parts, ",");
}

std::string text_or_none(const std::optional<Duration>& duration) {
  return duration ? script::text_of(*duration) : "none";
}

std::string_view name_of(wire::RoundState state) {
  switch (state) {
    case wire::RoundState::none: return "none";
    case wire::RoundState::not_called: return "not_called";
    case wire::RoundState::done: return "done";
    case wire::RoundState::failed: return "failed";
  }
  return "?";
}

void tell_round(Line& line, const wire::RoundReply& round) {
  if (!round.values.empty()) line.with("values", quoted_list(round.values));
  if (!round.unconfirmed.empty()) {
    line.with("unconfirmed", script::text_of(round.unconfirmed));
  }
}

void tell_list(Line& line, wire::ListReply reply, Client& client) {
  client.list_cursor = reply.cursor;
  std::sort(reply.entries.begin(), reply.entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<std::string> names;
  std::vector<std::string> sizes;
  std::vector<std::string> ttls;
  std::vector<std::string> bound;
  for (const wire::ListEntry& entry : reply.entries) {
    names.push_back(name_or_quoted(entry.name));
    sizes.push_back(std::to_string(entry.value_bytes));
    ttls.push_back(text_or_none(entry.ttl));
    if (entry.bound) bound.push_back(names.back());
  }
  line.with("names", names.empty() ? "none" : joined(names, ","));
  line.further("count", std::to_string(names.size()));
  line.further("bytes", joined(sizes, ","));
  line.further("ttls", joined(ttls, ","));
  line.further("bound", joined(bound, ","));
  line.with("more", reply.cursor == 0 ? "no" : "yes");
}

void tell_formed(Line& line, const Asked& asked, const wire::FormedReply& reply, Client& client) {
  const auto known = client.groups.find(asked.group);
  if (known == client.groups.end() || known->second.epoch != reply.epoch) {
    client.groups.insert_or_assign(asked.group, GroupHandle{reply.epoch, 1, 1, {}, 1});
  }
  client.current_group = asked.group;
  line.words += " formed";
  line.with("epoch", std::to_string(reply.epoch));
  line.with("rank", std::to_string(reply.rank));
  line.with("of", std::to_string(reply.world_size));
  line.further("hosting_rank", std::to_string(reply.hosting_rank));
  line.further("candidates", std::to_string(reply.candidates));
  line.further("expiration", script::text_of(reply.data_expiration));
}

void tell_applied(Line& line, const wire::AppliedReply& reply) {
  line.words += reply.applied ? " ok" : " not_applied";
  if (reply.value) line.with("value", in_quotes(*reply.value));
}

void tell_recovered(Line& line, const wire::RecoverReply& reply, const Processes& processes) {
  line.words += " ok";
  line.with("state", std::string(name_of(reply.state)));
  tell_round(line, reply.round);
  if (!reply.next_sequences.empty()) {
    std::vector<std::string> next;
    for (const auto sequence : reply.next_sequences) next.push_back(std::to_string(sequence));
    line.with("next", joined(next, ","));
  }
  if (reply.error) {
    line.with("error", std::string(muster::name_of(reply.error->code)));
    tell(line, *reply.error, processes);
  }
}

void tell_presence(Line& line, const wire::PresenceReply& reply) {
  std::vector<std::string> parts;
  for (const bool present : reply.present) parts.push_back(present ? "yes" : "no");
  line.with("present", joined(parts, ","));
}

void tell_values(Line& line, const wire::ValuesReply& reply) {
  std::vector<std::string> parts;
  for (const auto& value : reply.values) parts.push_back(value ? in_quotes(*value) : "none");
  line.with("values", joined(parts, ","));
}

/// The client's next receive asks for the next object.
void move_on(const wire::Receive& asked, Client& client) {
  for (auto& [name, handle] : client.groups) {
    if (handle.epoch != asked.epoch) continue;
    std::uint64_t& next = handle.next_sequence[{asked.source, asked.tag, false}];
    next = std::max(next, asked.sequence + 1);
  }
}

/// The group's handle after an error: a call that was refused has not taken its number.
void take_back(const Asked& asked, const Error& error, Client& client) {
  const wire::RequestBody& body = asked.owned.request.body;
  if (const auto* receive = std::get_if<wire::Receive>(&body)) {
    if (error.code == ErrorCode::expired) move_on(*receive, client);
  }
  if (error.code == ErrorCode::sequence_gap) return;
  for (auto& [name, handle] : client.groups) {
    const auto* call = std::get_if<wire::CollectiveCall>(&body);
    if (call != nullptr && call->epoch == handle.epoch && error.round == 0) {
      handle.next_round = call->round;
    }
    const auto* regroup = std::get_if<wire::Regroup>(&body);
    if (regroup != nullptr && regroup->epoch == handle.epoch &&
        error.code == ErrorCode::invalid_argument) {
      handle.next_attempt = regroup->attempt;
    }
    const auto* send = std::get_if<wire::Send>(&body);
    if (send != nullptr && send->epoch == handle.epoch) {
      handle.next_sequence[{send->destination, send->tag, true}] = send->sequence;
    }
  }
}

void tell_received(Line& line, const wire::Receive& asked, std::string_view body, Client& client) {
  const auto reply = decoded<wire::ReceiveReply>(body);
  line.with("value", in_quotes(reply.value));
  line.with("sequence", std::to_string(reply.sequence));
  line.further("codec", std::to_string(reply.codec));
  move_on(asked, client);
}

void tell_interrupted(Line& line, const wire::Interrupt& asked, std::string_view body,
                      Client& client) {
  const auto round = static_cast<std::uint64_t>(decoded<wire::NumberReply>(body).number);
  for (auto& [name, handle] : client.groups) {
    if (handle.epoch == asked.epoch) handle.next_round = round + 1;
  }
  line.with("round", std::to_string(round));
}

void tell_fields(Line& line, const wire::StatusReply& reply) {
  for (const auto& [name, value] : reply.fields) {
    line.further(std::string(name), name_or_quoted(value));
  }
}

void tell_cancelled(Line& line, std::string_view body) {
  if (decoded<wire::CancelTakeReply>(body).given_back) line.with("given_back", "yes");
}

/// Words and fields of a reply that succeeded.
void tell_success(Line& line, const Asked& asked, std::string_view body, Client& client,
                  const Processes& processes) {
  switch (wire::operation_of(asked.owned.request.body)) {
    case wire::operation<wire::Set>:
    case wire::operation<wire::CompareSet>:
      return tell_applied(line, decoded<wire::AppliedReply>(body));
    case wire::operation<wire::Join>:
    case wire::operation<wire::Regroup>:
      return tell_formed(line, asked, decoded<wire::FormedReply>(body), client);
    case wire::operation<wire::Recover>:
      return tell_recovered(line, decoded<wire::RecoverReply>(body), processes);
    default: line.words += " ok";
  }
  switch (wire::operation_of(asked.owned.request.body)) {
    case wire::operation<wire::Get>:
    case wire::operation<wire::Take>:
    case wire::operation<wire::QueuePop>:
      line.with("value", in_quotes(decoded<wire::ValueReply>(body).value));
      return;
    case wire::operation<wire::Add>:
    case wire::operation<wire::Append>:
    case wire::operation<wire::Remove>:
    case wire::operation<wire::QueuePush>:
    case wire::operation<wire::QueueLength>:
    case wire::operation<wire::ExpireData>:
    case wire::operation<wire::DropNameSpace>:
    case wire::operation<wire::EndSession>:
    case wire::operation<wire::Drain>: {
      line.with("number", std::to_string(decoded<wire::NumberReply>(body).number));
      return;
    }
    case wire::operation<wire::Interrupt>:
      return tell_interrupted(line, std::get<wire::Interrupt>(asked.owned.request.body), body,
                              client);
    case wire::operation<wire::Send>: {
      line.further("sequence", std::to_string(decoded<wire::NumberReply>(body).number));
      return;
    }
    case wire::operation<wire::Exists>:
      return tell_presence(line, decoded<wire::PresenceReply>(body));
    case wire::operation<wire::MultiGet>:
      return tell_values(line, decoded<wire::ValuesReply>(body));
    case wire::operation<wire::List>:
      return tell_list(line, decoded<wire::ListReply>(body), client);
    case wire::operation<wire::Members>:
      return tell_members(line, decoded<wire::MembersReply>(body), processes);
    case wire::operation<wire::CollectiveCall>:
      return tell_round(line, decoded<wire::RoundReply>(body));
    case wire::operation<wire::Receive>:
      return tell_received(line, std::get<wire::Receive>(asked.owned.request.body), body, client);
    case wire::operation<wire::Status>:
    case wire::operation<wire::WhoAmI>: return tell_fields(line, decoded<wire::StatusReply>(body));
    case wire::operation<wire::Sessions>:
      return tell_sessions(line, decoded<wire::SessionsReply>(body), processes);
    case wire::operation<wire::Groups>: return tell_groups(line, decoded<wire::GroupsReply>(body));
    case wire::operation<wire::InspectGroup>:
      return tell_group(line, decoded<wire::InspectGroupReply>(body), processes);
    case wire::operation<wire::Waiters>:
      return tell_waiters(line, decoded<wire::WaitersReply>(body), processes);
    case wire::operation<wire::NameSpaces>:
      return tell_name_spaces(line, decoded<wire::NameSpacesReply>(body));
    case wire::operation<wire::History>:
      return tell_history(line, decoded<wire::HistoryReply>(body), processes);
    case wire::operation<wire::GetSettings>:
    case wire::operation<wire::SetSetting>:
      return tell_settings(line, decoded<wire::SettingsReply>(body));
    case wire::operation<wire::CancelTake>: return tell_cancelled(line, body);
    default: decoded<wire::EmptyReply>(body);
  }
}

void tell_ranks(Line& line, const Error& error, const Processes& processes) {
  if (!error.rank_ranges.empty()) line.with("ranks", text_of(error.rank_ranges));
  if (error.ranks.empty()) return;
  std::vector<std::string> names;
  std::vector<std::string> places;
  std::vector<std::string> labels;
  std::vector<std::string> silences;
  std::vector<std::string> calls;
  std::vector<std::string> causes;
  for (const RankReport& report : error.ranks) {
    const ProcessInfo& process = report.process;
    names.push_back(report.joined ? processes.name_of(process.id) : "never_joined");
    places.push_back(process.host + "/" + std::to_string(process.pid));
    labels.push_back(process.label);
    silences.push_back(text_or_none(report.silence));
    calls.push_back(report.called);
    causes.emplace_back(name_of(report.cause));
  }
  line.further("processes", joined(names, ","));
  line.further("places", joined(places, ","));
  line.further("labels", joined(labels, ","));
  line.further("silences", joined(silences, ","));
  line.further("calls", in_quotes(joined(calls, ",")));
  const bool is_lost = error.code == ErrorCode::rank_lost;
  const bool differ = is_lost && error.cause == LossCause::none;
  line.fields.push_back(
      {"causes", joined(causes, ","), differ ? Field::Kind::required : Field::Kind::further});
}

}  // namespace

void tell(Line& line, const Error& error, const Processes& processes) {
  tell_ranks(line, error, processes);
  if (error.cause != LossCause::none) line.with("cause", std::string(name_of(error.cause)));
  if (error.decided_by_rank >= 0) {
    line.with("decided_by", "rank" + std::to_string(error.decided_by_rank));
  } else if (!error.decided_by.empty()) {
    line.further("decided_by", name_or_quoted(error.decided_by));
  }
  if (error.decided_by_timeout != Duration::zero()) {
    line.further("timeout", text_of(error.decided_by_timeout));
  }
  if (error.expected != 0 || error.actual != 0) {
    const bool alone = error.limit != 0 || error.code == ErrorCode::expired;
    if (!alone) line.with("expected", std::to_string(error.expected));
    // How full something is depends on what the server's own records take.
    const bool measured = error.code == ErrorCode::resource_exhausted;
    const auto kind = measured ? Field::Kind::further : Field::Kind::required;
    line.fields.push_back({"actual", std::to_string(error.actual), kind});
  }
  if (error.limit != 0) line.with("limit", std::to_string(error.limit));
  line.further("operation", error.operation.empty() ? "none" : error.operation);
  line.further("group", error.group.empty() ? "none" : name_or_quoted(error.group));
  line.further("epoch", std::to_string(error.epoch));
  line.further("round", std::to_string(error.round));
  line.further("elapsed", text_of(error.elapsed));
  line.further("detail", whole_in_quotes(error.detail));
}

void tell(Line& line, const wire::Event& event, const Processes& processes) {
  std::string kind = "session_ended";
  if (event.kind == wire::EventKind::epoch_broken) kind = "epoch_broken";
  if (event.kind == wire::EventKind::rank_left) kind = "rank_left";
  if (event.kind == wire::EventKind::interrupted) kind = "interrupted";
  line.words += "event " + kind + " " + std::string(muster::name_of(event.error.code));
  if (event.kind == wire::EventKind::session_ended && event.ends_session != true) {
    line.words += event.ends_session ? " of_connection" : " unsaid";
  }
  if (event.epoch != 0) line.with("epoch", std::to_string(event.epoch));
  tell(line, event.error, processes);
}

Line reply_line(const Asked& asked, std::uint16_t code, std::string_view body, Client& client,
                const Processes& processes) {
  Line line;
  line.words = client.name + ":";
  if (code == 0) {
    tell_success(line, asked, body, client, processes);
  } else {
    const auto decoded_error = wire::decode_error(code, body);
    if (!decoded_error) throw ScriptError("an error cannot be decoded");
    const Error& error = *decoded_error;
    line.words += " " + std::string(muster::name_of(error.code));
    tell(line, error, processes);
    take_back(asked, error, client);
  }
  if (!asked.label.empty()) line.with("as", asked.label);
  return line;
}

}  // namespace muster::script
