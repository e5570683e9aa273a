#pragma once

#include <functional>
#include <initializer_list>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "measure.h"
#include "subject.h"
#include "swarm.h"

namespace muster::bench {

/// How long it may take: seconds (does it work at all?), two minutes, 40 minutes.
enum class Extent { tiny, quick, full };

/// One run of the benchmarks: what is measured, with what, and what was found.
///
/// A question asks the same of several subjects, one after the other, in each of its rounds. Each
/// measurement is recorded as it is; minimum and median are for the report to find.
class Run {
 public:
  using Filter = std::map<std::string, std::string>;

  /// filter  what parameters must be, as text; those that a case does not have do not matter
  Run(Programs programs, std::vector<Kind> kinds, Extent extent, Filter filter)
      : programs_(std::move(programs)),
        kinds_(std::move(kinds)),
        extent_(extent),
        filter_(std::move(filter)) {}

  Extent extent() const { return extent_; }
  /// The value for the extent of this run.
  template <class T>
  T by_extent(T tiny, T quick, T full) const {
    return extent_ == Extent::tiny ? tiny : extent_ == Extent::quick ? quick : full;
  }
  int rounds() const { return by_extent(1, 5, 5); }

  /// Those of these kinds that take part in this run, started.
  std::vector<std::unique_ptr<Subject>> start(std::initializer_list<Kind> kinds) const;
  std::unique_ptr<Subject> start(Kind kind, std::vector<std::string> flags = {},
                                 Wire wire = Wire::clear) const;
  bool has(Kind kind) const;
  /// Whether the filter lets this case pass.
  bool wants(const Json& parameters) const;

  /// One measurement. Those with the same question, parameters and subject are rounds of one row.
  void record(std::string_view question, const Json& parameters, std::string_view subject,
              const Json& values);
  /// What could not be measured, and why; the run goes on.
  void excuse(std::string_view question, const std::string& why);
  /// Says on the standard error what happens.
  void say(const std::string& what) const;

  Json result() const;

 private:
  struct Row {
    std::string question;
    Json parameters;
    std::string subject;
    Json rounds = Json::array();
  };

  Programs programs_;
  std::vector<Kind> kinds_;
  Extent extent_;
  Filter filter_;
  std::list<Row> rows_;
  std::map<std::string, Row*> by_name_;
  Json excuses_ = Json::array();
};

struct Question {
  std::string_view name;
  std::string_view what;
  void (*measure)(Run& run);
  /// It is asked when it or its page is named, and its results are on that page; empty: it is asked
  /// with the others.
  std::string_view page = {};

  bool goes_by(std::string_view given) const {
    return given == name || (!page.empty() && given == page);
  }
};
const std::vector<Question>& all_questions();

}  // namespace muster::bench
