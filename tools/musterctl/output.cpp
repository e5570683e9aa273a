#include "output.h"

#include <algorithm>
#include <iostream>

namespace musterctl {

void print_json(const Json& document) {
  std::cout << document.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
}

void print_table(const std::vector<std::string>& titles,
                 const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::string& title : titles) widths.push_back(title.size());
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], row[column].size());
    }
  }
  const auto print_row = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t column = 0; column < row.size(); ++column) {
      line += row[column];
      if (column + 1 < row.size()) line.append(widths[column] - row[column].size() + 2, ' ');
    }
    std::cout << line << '\n';
  };
  print_row(titles);
  for (const auto& row : rows) print_row(row);
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
  json["host"] = process.host;
  json["pid"] = process.pid;
  json["label"] = process.label;
  json["process"] = to_string(process.id);
}

std::string printable(std::string_view text) {
  std::string shown(text);
  std::replace_if(
      shown.begin(), shown.end(),
      [](char letter) { return (letter >= 0 && letter < ' ') || letter == '\x7f'; }, '?');
  return shown;
}

}  // namespace musterctl
