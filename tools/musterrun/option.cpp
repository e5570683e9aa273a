#include "option.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "support/quotes.h"
#include "support/units.h"

namespace musterrun {

using muster::Duration;
using muster::launch::LaunchOptions;

std::vector<std::string> Option::spellings() const {
  std::vector<std::string> all;
  for (const std::string& each : names) {
    std::string with_underscores = each;
    std::replace(with_underscores.begin(), with_underscores.end(), '-', '_');
    all.push_back("--" + each);
    if (with_underscores != each) all.push_back("--" + with_underscores);
  }
  return all;
}

const std::vector<Option>& all_options() {
  static const std::vector<Option> all = [] {
    std::vector<Option> options = program_options();
    for (const auto& part : {ending_options(), place_options(), rendezvous_options(),
                             output_options(), torchrun_options()})
      options.insert(options.end(), part.begin(), part.end());
    return options;
  }();
  return all;
}

std::string no(const std::string& value, const std::string& valid) {
  return tools::in_quotes(value) + " is no " + valid;
}

std::optional<int> int_in(std::string_view text, int least) {
  const auto number = tools::parse_number(text);
  if (!number || *number > static_cast<std::uint64_t>(std::numeric_limits<int>::max())) return {};
  const int value = static_cast<int>(*number);
  return value >= least ? std::optional(value) : std::nullopt;
}

std::optional<int> process_count_in(std::string_view text, int least) {
  const auto count = int_in(text, least);
  return count && *count <= processes_max ? count : std::nullopt;
}

template <class Number>
Take number_into(Field<Number> field, int least) {
  return [field, least](const std::string& value, const std::string&, Asked& to) {
    const auto number = int_in(value, least);
    if (!number) return no(value, "whole number from " + std::to_string(least) + " on");
    field(to.options) = *number;
    return std::string();
  };
}

template Take number_into(Field<int>, int);
template Take number_into(Field<std::optional<int>>, int);

template <class Text>
Take text_into(Field<Text> field) {
  return [field](const std::string& value, const std::string&, Asked& to) {
    // Such as of a variable of the shell that is not set.
    if (value.empty()) return std::string("its value is empty");
    field(to.options) = value;
    return std::string();
  };
}

template Take text_into(Field<std::string>);
template Take text_into(Field<std::optional<std::string>>);

Take duration_into(Field<Duration> field) {
  return [field](const std::string& value, const std::string&, Asked& to) {
    const auto duration = tools::parse_duration(value);
    if (!duration) return no(value, std::string("duration (") + tools::duration_forms + ")");
    field(to.options) = *duration;
    return std::string();
  };
}

Take switch_into(Field<bool> field) {
  return [field](const std::string&, const std::string&, Asked& to) {
    field(to.options) = true;
    return std::string();
  };
}

Take switch_into(bool Asked::*member) {
  return [member](const std::string&, const std::string&, Asked& to) {
    to.*member = true;
    return std::string();
  };
}

}  // namespace musterrun
