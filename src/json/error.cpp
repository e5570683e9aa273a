#include "muster/error.h"

#include <utility>

#include "json/documents.h"
#include "json/fields.h"

namespace muster::json {

Json json_of(const Error& error) {
  Json json = {{"code", name_of(error.code)}, {"number", static_cast<int>(error.code)}};
  const auto add_name = [&](const char* name, const std::string& value) {
    if (!value.empty()) add_bytes(json, name, value);
  };
  const auto add_number = [&](const char* name, std::uint64_t value) {
    if (value != 0) json[name] = value;
  };
  add_name("operation", error.operation);
  add_name("group", error.group);
  add_number("epoch", error.epoch);
  json["round"] = error.round;
  if (error.stream) {
    json["stream"] = {{"source", error.stream->source},
                      {"destination", error.stream->destination},
                      {"tag", error.stream->tag},
                      {"sequence", error.stream->sequence}};
  }
  if (error.elapsed.count() != 0) json["elapsed_s"] = seconds_of(error.elapsed);
  add_name("decided_by", error.decided_by);
  if (error.decided_by_rank >= 0) {
    json["decided_by_rank"] = error.decided_by_rank;
    json["decided_by_timeout_s"] = seconds_of(error.decided_by_timeout);
  }
  add_name("where", error.where);
  if (error.cause != LossCause::none) json["cause"] = name_of(error.cause);
  if (error.happened != Happened::unsaid) json["happened"] = name_of(error.happened);
  add_number("expected", error.expected);
  add_number("actual", error.actual);
  add_number("limit", error.limit);
  Json ranks = Json::array();
  for (const RankReport& report : error.ranks) {
    Json rank = {{"rank", report.rank}};
    if (report.joined) add_process(rank, report.process);
    if (report.silence) rank["silence_s"] = seconds_of(*report.silence);
    if (!report.called.empty()) rank["called"] = report.called;
    if (report.cause != LossCause::none) rank["cause"] = name_of(report.cause);
    ranks.push_back(std::move(rank));
  }
  json["ranks"] = std::move(ranks);
  json["ranks_at_fault"] = json_of(error.rank_ranges);
  add_name("detail", error.detail);
  json["message"] = error.message();
  return json;
}

}  // namespace muster::json
