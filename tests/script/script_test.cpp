#include "script.h"

#include <doctest/doctest.h>

// The scripts are only worth what their comparison is worth: here it must find differences.

namespace muster::script {
namespace {

/// Says what the step says: `a: says x=1 y=2` gives the line `a: x=1 y=2`, y as a further field.
class Parrot : public Runner {
 public:
  std::vector<Line> run(const Step& step, const std::string& actor) override {
    std::vector<Line> lines;
    if (step.verb == "is_silent") return lines;
    Arguments arguments(step.words);
    Line& line = lines.emplace_back();
    line.words = actor + ": " + arguments.next().value_or("ok");
    if (const auto x = arguments.named("x")) line.with("x", *x);
    if (const auto y = arguments.named("y")) line.further("y", *y);
    line.at = arguments.duration("at");
    arguments.finish();
    return lines;
  }
};

Outcome outcome_of(const std::string& steps) {
  Parrot parrot;
  return run(parse("test.txt", "# A test.\n" + steps), parrot);
}

bool passes(const std::string& steps) { return outcome_of(steps).differences.empty(); }

TEST_CASE("a script passes when exactly what it expects comes") {
  CHECK(passes("a: says hello x=1\n> a: hello x=1\n"));
  CHECK(passes("a b: says hello\n> a: hello\n> b: hello\n"));
  CHECK(passes("a: is_silent\n"));
  CHECK(passes("a: says hello at=5s\n> 5s a: hello\n"));
}

TEST_CASE("what is missing, what is too much and what differs fails") {
  CHECK_FALSE(passes("a: is_silent\n> a: hello\n"));
  CHECK_FALSE(passes("a: says hello\n"));
  CHECK_FALSE(passes("a: says hello\n> a: hello\n> a: hello\n"));
  CHECK_FALSE(passes("a: says hello\n> b: hello\n"));
  CHECK_FALSE(passes("a: says hello\n> a: goodbye\n"));
  CHECK_FALSE(passes("a b: says hello\n> b: hello\n> a: hello\n"));
}

TEST_CASE("times are compared") {
  CHECK_FALSE(passes("a: says hello at=5s\n> a: hello\n"));
  CHECK_FALSE(passes("a: says hello at=5s\n> 4.999s a: hello\n"));
  CHECK_FALSE(passes("a: says hello\n> 5s a: hello\n"));
}

TEST_CASE("required fields must be named, further ones may be, and all named ones must be true") {
  CHECK_FALSE(passes("a: says hello x=1\n> a: hello\n"));
  CHECK_FALSE(passes("a: says hello x=1\n> a: hello x=2\n"));
  CHECK(passes("a: says hello x=1 y=2\n> a: hello x=1\n"));
  CHECK(passes("a: says hello x=1 y=2\n> a: hello y=2 x=1\n"));
  CHECK_FALSE(passes("a: says hello x=1 y=2\n> a: hello x=1 y=3\n"));
  CHECK_FALSE(passes("a: says hello x=1\n> a: hello x=1 y=2\n"));
}

TEST_CASE("name~value asks whether the value contains it") {
  CHECK(passes("a: says hello y=abcdef\n> a: hello y~cde\n"));
  CHECK_FALSE(passes("a: says hello y=abcdef\n> a: hello y~xyz\n"));
  CHECK_FALSE(passes("a: says hello\n> a: hello y~xyz\n"));
}

TEST_CASE("a difference tells the file, the line and both sides") {
  const auto outcome = outcome_of("a: says hello x=1 y=2\n> a: hello x=2\n");
  CHECK(outcome.differences ==
        "test.txt:2: a: says hello x=1 y=2\n"
        "  missing    > a: hello x=2\n"
        "  unexpected > a: hello x=1   (y=2)\n");
}

TEST_CASE("a rewrite keeps what was right as it was written, comments too") {
  const auto outcome = outcome_of(
      "a: says hello y=1\n"
      ">  a: hello y=1\n"
      "# Why.\n"
      "b: says hello x=5\n"
      "> b: goodbye\n"
      "\n"
      "c: is_silent\n"
      "> c: too much\n");
  CHECK(outcome.rewritten ==
        "# A test.\n"
        "a: says hello y=1\n"
        ">  a: hello y=1\n"
        "# Why.\n"
        "b: says hello x=5\n"
        "> b: hello x=5\n"
        "\n"
        "c: is_silent\n");
}

TEST_CASE("a script that cannot be understood says where") {
  CHECK_THROWS_AS(parse("test.txt", "a: says hello\n"), ScriptError);
  CHECK_THROWS_AS(parse("test.txt", "# A test without steps.\n"), ScriptError);
  CHECK_THROWS_AS(parse("test.txt", "# A test.\n> a: hello\n"), ScriptError);
  CHECK_THROWS_AS(parse("test.txt", "# A test.\na: says \"hello\n"), ScriptError);
  CHECK_THROWS_WITH(outcome_of("\na: says hello z=1\n"), "test.txt:3: not understood: z=");
}

TEST_CASE("times are read and written with their unit") {
  CHECK(duration_of("1.5s") == std::chrono::milliseconds(1500));
  CHECK(duration_of("4.999999s") == std::chrono::microseconds(4999999));
  CHECK(duration_of("7us") == std::chrono::microseconds(7));
  CHECK(duration_of("10m") == std::chrono::minutes(10));
  CHECK(duration_of("0") == Duration::zero());
  CHECK_FALSE(duration_of("s").has_value());
  CHECK_FALSE(duration_of("5 s").has_value());
  CHECK_FALSE(duration_of("5parsecs").has_value());
  CHECK(text_of(std::chrono::milliseconds(1500)) == "1.5s");
  CHECK(text_of(std::chrono::milliseconds(2050)) == "2.05s");
  CHECK(text_of(std::chrono::milliseconds(200)) == "200ms");
  CHECK(text_of(std::chrono::microseconds(1500)) == "1500us");
  CHECK(text_of(std::chrono::hours(1)) == "3600s");
  CHECK(text_of(Duration::zero()) == "0s");
}

TEST_CASE("bytes are read as words or in quotes, and written in quotes") {
  using namespace std::string_literals;
  CHECK(bytes_of("abc") == "abc");
  CHECK(bytes_of("\"a b\"") == "a b");
  CHECK(bytes_of("\"\\x00\\n\\\"\\\\\"") == "\0\n\"\\"s);
  CHECK(bytes_of("\"ab\"*3") == "ababab");
  CHECK(bytes_of("x*1000").size() == 1000);
  CHECK(in_quotes("\0\n\"\\\xff"s) == "\"\\x00\\n\\\"\\\\\\xff\"");
  CHECK(bytes_of(in_quotes("\0\n\"\\\xff"s)) == "\0\n\"\\\xff"s);
  CHECK(in_quotes(std::string(1000, 'x')) == "\"x\"*1000");
  CHECK(name_or_quoted("p/1") == "p/1");
  CHECK(name_or_quoted("a b") == "\"a b\"");
  CHECK(words_of("a: set  \"x y\" z") == std::vector<std::string>{"a:", "set", "\"x y\"", "z"});
  CHECK(items_of("\"a,b\",c") == std::vector<std::string>{"\"a,b\"", "c"});
}

}  // namespace
}  // namespace muster::script
