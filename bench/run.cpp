#include "run.h"

#include <algorithm>
#include <iostream>

namespace muster::bench {

bool Run::has(Kind kind) const {
  return std::find(kinds_.begin(), kinds_.end(), kind) != kinds_.end();
}

bool Run::wants(const Json& parameters) const {
  return std::all_of(filter_.begin(), filter_.end(), [&](const auto& wanted) {
    const auto found = parameters.find(wanted.first);
    if (found == parameters.end()) return true;
    return wanted.second ==
           (found->is_string() ? found->template get<std::string>() : found->dump());
  });
}

std::unique_ptr<Subject> Run::start(Kind kind, std::vector<std::string> flags, Wire wire) const {
  return std::make_unique<Subject>(kind, programs_, server_core(), std::move(flags), wire);
}

std::vector<std::unique_ptr<Subject>> Run::start(std::initializer_list<Kind> kinds) const {
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const Kind kind : kinds) {
    if (has(kind)) subjects.push_back(start(kind));
  }
  return subjects;
}

void Run::record(std::string_view question, const Json& parameters, std::string_view subject,
                 const Json& values) {
  const std::string name =
      std::string(question) + ' ' + parameters.dump() + ' ' + std::string(subject);
  Row*& row = by_name_[name];
  if (row == nullptr) {
    row = &rows_.emplace_back(
        Row{std::string(question), parameters, std::string(subject), Json::array()});
  }
  row->rounds.push_back(values);
}

void Run::excuse(std::string_view question, const std::string& why) {
  say(std::string(question) + ": " + why);
  excuses_.push_back({{"question", question}, {"why", why}});
}

void Run::say(const std::string& what) const { std::cerr << what << std::endl; }

Json Run::result() const {
  Json rows = Json::array();
  for (const Row& row : rows_) {
    rows.push_back({{"question", row.question},
                    {"parameters", row.parameters},
                    {"subject", row.subject},
                    {"rounds", row.rounds}});
  }
  return {{"rows", std::move(rows)}, {"not_measured", excuses_}};
}

}  // namespace muster::bench
