#include "core/session/tallies/outcomes.h"

#include <set>
#include <string>

#include <doctest/doctest.h>

#include "core/session/tallies/tallies.h"

namespace muster::core {
namespace {

TEST_CASE("each outcome has a name of its own") {
  std::set<std::string_view> names;
  for (std::size_t outcome = 0; outcome < outcomes_count; ++outcome) {
    CHECK(outcome_name(outcome) != "unknown");
    CHECK(names.insert(outcome_name(outcome)).second);
  }
  CHECK(outcome_name(0) == "ok");
  CHECK(outcome_name(outcomes_count - 1) == "abandoned");
}

TEST_CASE("an error counts by its code, and one that the server never answers as internal") {
  Outcomes outcomes;
  const wire::Operation get = wire::operation<wire::Get>;
  outcomes.count(get, 0);
  outcomes.count_abandoned(get);
  for (const ErrorCode code : outcome_errors) outcomes.count(get, static_cast<std::uint16_t>(code));
  outcomes.count(get, static_cast<std::uint16_t>(ErrorCode::nccl));
  outcomes.count(get, 60000);
  for (std::size_t outcome = 0; outcome < outcomes_count; ++outcome) {
    const std::uint64_t expected = outcome_name(outcome) == "internal" ? 3 : 1;
    CHECK(outcomes.of(row_of(get), outcome) == expected);
    CHECK(outcomes.of(row_of(wire::operation<wire::Set>), outcome) == 0);
  }
}

TEST_CASE("the row of an operation is that of its facts") {
  for (std::size_t index = 0; index < wire::operations_count; ++index) {
    CHECK(row_of(wire::operation_facts[index].number) == index);
  }
}

TEST_CASE("all causes of a loss are counted") {
  CHECK(name_of(static_cast<LossCause>(loss_causes_count - 1)) != "unknown");
  CHECK(name_of(static_cast<LossCause>(loss_causes_count)) == "unknown");
}

}  // namespace
}  // namespace muster::core
