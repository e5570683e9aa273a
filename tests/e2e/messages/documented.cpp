#include "e2e/messages/documented.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>

// The table's columns: code, what happened, fields always, fields sometimes, what to do. A field is
// named in backticks.

namespace muster::test {
namespace {

using Names = std::set<std::string>;

struct Row {
  Names always;
  Names sometimes;
};

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::size_t begin = 1;
  while (begin < line.size()) {
    const std::size_t end = std::min(line.find('|', begin), line.size());
    cells.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return cells;
}

Names names_in(const std::string& cell) {
  Names names;
  for (std::size_t begin = cell.find('`'); begin != std::string::npos;) {
    const std::size_t end = cell.find('`', begin + 1);
    if (end == std::string::npos) break;
    names.insert(cell.substr(begin + 1, end - begin - 1));
    begin = cell.find('`', end + 1);
  }
  return names;
}

const std::map<std::string, Row>& rows() {
  static const std::map<std::string, Row> all = [] {
    std::map<std::string, Row> read;
    const char* const path = std::getenv("MUSTER_ERRORS_DOCUMENT");
    REQUIRE(path != nullptr);
    std::ifstream document(path);
    for (std::string line; std::getline(document, line);) {
      const auto cells = cells_of(line);
      if (cells.size() < 5 || names_in(cells[0]).size() != 1) continue;
      read[*names_in(cells[0]).begin()] = {names_in(cells[2]), names_in(cells[3])};
    }
    return read;
  }();
  return all;
}

/// The fields that have a value.
Names set_fields_of(const Error& error) {
  Names names;
  const auto note = [&](const char* name, bool is_set) {
    if (is_set) names.insert(name);
  };
  note("operation", !error.operation.empty());
  note("group", !error.group.empty());
  note("epoch", error.epoch != 0);
  note("round", error.round != 0);
  note("stream", error.stream.has_value());
  note("elapsed", error.elapsed > Duration::zero());
  note("decided_by", !error.decided_by.empty());
  note("decided_by_rank", error.decided_by_rank >= 0);
  note("decided_by_timeout", error.decided_by_timeout > Duration::zero());
  note("where", !error.where.empty());
  note("ranks", !error.ranks.empty());
  note("rank_ranges", !error.rank_ranges.empty());
  note("cause",
       error.cause != LossCause::none &&
           std::all_of(error.ranks.begin(), error.ranks.end(),
                       [&](const RankReport& report) { return report.cause == error.cause; }));
  note("expected", error.expected != 0);
  note("actual", error.actual != 0);
  note("limit", error.limit != 0);
  note("happened", error.happened != Happened::unsaid);
  note("detail", !error.detail.empty());
  note("called", std::any_of(error.ranks.begin(), error.ranks.end(),
                             [](const RankReport& report) { return !report.called.empty(); }));
  return names;
}

}  // namespace

void check_documented(const Error& error) {
  const std::string code(name_of(error.code));
  CAPTURE(code);
  const std::string said = error.message();
  CAPTURE(said);
  const auto row = rows().find(code);
  REQUIRE(row != rows().end());
  const Names set = set_fields_of(error);
  for (const char* const field : {"operation", "decided_by"}) CHECK(set.count(field) == 1);
  for (const std::string& field : row->second.always) {
    CAPTURE(field);
    CHECK(set.count(field) == 1);
  }
  const Names common = {"operation", "group", "epoch",  "round",      "stream",
                        "elapsed",   "where", "detail", "decided_by", "happened"};
  for (const std::string& field : set) {
    CAPTURE(field);
    const bool is_named =
        common.count(field) + row->second.always.count(field) + row->second.sometimes.count(field) >
        0;
    CHECK(is_named);
  }
}

void check(const Error& error, ErrorCode code) {
  CHECK(error.code == code);
  check_documented(error);
}

}  // namespace muster::test
