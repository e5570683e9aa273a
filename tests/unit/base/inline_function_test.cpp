#include "base/inline_function.h"

#include <memory>
#include <string>

#include <doctest/doctest.h>

namespace muster::base {
namespace {

using Function = InlineFunction<std::string(std::string&& text), 16>;

TEST_CASE("an inline function calls what it holds, wherever it has moved to") {
  auto held = std::make_shared<std::string>("a ");
  Function first = [held](std::string&& text) { return *held + std::move(text); };
  CHECK(first("call") == "a call");
  Function second = std::move(first);
  CHECK_FALSE(first);
  CHECK(held.use_count() == 2);
  first = std::move(second);
  CHECK_FALSE(second);
  CHECK(first("call") == "a call");
  CHECK(held.use_count() == 2);
}

TEST_CASE("an inline function lets go of what it held") {
  const auto held = std::make_shared<int>(1);
  {
    Function function = [held](std::string&& text) { return std::move(text); };
    CHECK(held.use_count() == 2);
    function = {};
    CHECK(held.use_count() == 1);
    function = [held](std::string&&) { return std::string(); };
    CHECK(held.use_count() == 2);
  }
  CHECK(held.use_count() == 1);
}

TEST_CASE("an inline function holds what cannot be copied") {
  InlineFunction<int(), 8> function = [owned = std::make_unique<int>(7)] { return *owned; };
  const auto moved = std::make_unique<InlineFunction<int(), 8>>(std::move(function));
  CHECK((*moved)() == 7);
}

}  // namespace
}  // namespace muster::base
