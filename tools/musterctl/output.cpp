#include "output.h"

#include <algorithm>

#include "bytes.h"

namespace musterctl {

std::string text_of(const Json& document, int indent) {
  return printable_json(document.dump(indent, ' ', false, Json::error_handler_t::replace)) + '\n';
}

void add_bytes(Json& json, const std::string& name, std::string_view bytes) {
  json[name] = bytes;
  if (!is_utf8(bytes)) json[name + "_base64"] = base64(bytes);
}

std::string table_of(const std::vector<std::string>& titles,
                     const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::string& title : titles) widths.push_back(width_of(title));
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::string text;
  const auto add_row = [&](const std::vector<std::string>& row) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      text += row[column];
      const bool is_last = column + 1 == row.size();
      if (!is_last) text.append(widths[column] - width_of(row[column]) + 2, ' ');
    }
    text += '\n';
  };
  add_row(titles);
  for (const auto& row : rows) add_row(row);
  return text;
}

std::string text_of(muster::Duration duration) {
  const auto milliseconds = std::max<std::int64_t>(duration / std::chrono::milliseconds(1), 0);
  if (milliseconds < 1000) return std::to_string(milliseconds) + " ms";
  const auto seconds = milliseconds / 1000;
  if (seconds < 60) {
    return std::to_string(seconds) + "." + std::to_string(milliseconds % 1000 / 100) + " s";
  }
  if (seconds < 3600) {
    return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  }
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds % 3600 / 60) + " min";
}

double seconds_of(muster::Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

std::string text_of(const std::vector<muster::RankRange>& ranks) {
  std::string text;
  for (const muster::RankRange range : ranks) {
    text += (text.empty() ? "" : ", ") + std::to_string(range.first);
    if (range.last != range.first) text += "-" + std::to_string(range.last);
  }
  const bool is_one = ranks.size() == 1 && ranks[0].first == ranks[0].last;
  return (is_one ? "rank " : "ranks ") + text;
}

Json json_of(const std::vector<muster::RankRange>& ranks) {
  Json all = Json::array();
  for (const muster::RankRange range : ranks) {
    for (int rank = range.first; rank <= range.last; ++rank) all.push_back(rank);
  }
  return all;
}

std::string text_of(const muster::ProcessInfo& process) {
  std::string text = "host " + printable(process.host) + ", pid " + std::to_string(process.pid);
  if (!process.label.empty()) text += ", label " + printable(process.label);
  return text;
}

void add_process(Json& json, const muster::ProcessInfo& process) {
  add_bytes(json, "host", process.host);
  json["pid"] = process.pid;
  add_bytes(json, "label", process.label);
  json["process"] = to_string(process.id);
}

Json json_of(const muster::Error& error) {
  Json json = {{"code", name_of(error.code)}};
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
  if (error.elapsed.count() != 0) json["elapsed_s"] = seconds_of(error.elapsed);
  add_name("decided_by", error.decided_by);
  if (error.decided_by_rank >= 0) {
    json["decided_by_rank"] = error.decided_by_rank;
    json["decided_by_timeout_s"] = seconds_of(error.decided_by_timeout);
  }
  add_name("where", error.where);
  if (error.cause != muster::LossCause::none) json["cause"] = name_of(error.cause);
  if (error.happened != muster::Happened::unsaid) json["happened"] = name_of(error.happened);
  add_number("expected", error.expected);
  add_number("actual", error.actual);
  add_number("limit", error.limit);
  Json ranks = Json::array();
  for (const muster::RankReport& report : error.ranks) {
    Json rank = {{"rank", report.rank}};
    if (report.joined) add_process(rank, report.process);
    if (report.silence) rank["silence_s"] = seconds_of(*report.silence);
    if (!report.called.empty()) rank["called"] = report.called;
    if (report.cause != muster::LossCause::none) rank["cause"] = name_of(report.cause);
    ranks.push_back(std::move(rank));
  }
  json["ranks"] = std::move(ranks);
  json["ranks_at_fault"] = json_of(error.rank_ranges);
  json["message"] = error.message();
  return json;
}

}  // namespace musterctl
