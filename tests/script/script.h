#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "text.h"

// Plain-text interaction scripts: a step says what happens, the lines below it that begin with
// `>` say everything that must come of it, in order. This part knows the form of scripts only;
// a Runner carries the steps out. README.md in this folder is for those who write scripts.

namespace muster::script {

/// `name=value` on an output line.
struct Field {
  enum class Kind {
    required,  ///< a script must name it
    further,   ///< a script may name it
    contains,  ///< in a script only, `name~value`: the value has this in it
  };
  std::string name;
  std::string value;
  Kind kind = Kind::required;
};

/// One line of output, expected or real: `[time] words... [name=value]...`.
struct Line {
  std::optional<Duration> at;  ///< since the step began; only where time passes
  std::string words;
  std::vector<Field> fields;
  int number = 0;  ///< of the script's line; 0 when it is real

  /// Adds a field that scripts must name, or (`further`) may name.
  Line& with(std::string name, std::string value);
  Line& further(std::string name, std::string value);
};

Line line_of(std::string_view text);
std::string text_of(const Line& line);

/// Whether `actual` is what `expected` asks for.
bool matches(const Line& expected, const Line& actual);

/// The words of a step. Each is asked for once; one that nobody asked for is an error.
class Arguments {
 public:
  explicit Arguments(const std::vector<std::string>& words);

  /// The next word that is not `name=value`.
  std::optional<std::string> next();
  std::string next(std::string_view what_is_missing);

  std::optional<std::string> named(std::string_view name);
  std::optional<std::string> bytes(std::string_view name);
  std::optional<Duration> duration(std::string_view name);
  std::optional<std::int64_t> number(std::string_view name);
  std::vector<std::string> list(std::string_view name);
  /// Whether the word `name` stands there alone.
  bool flag(std::string_view name);

  /// Throws ScriptError when a word was not asked for.
  void finish() const;

 private:
  std::vector<std::string> plain_;
  std::map<std::string, std::string, std::less<>> named_;
};

/// `a b: get k timeout=5s` is two steps, one per actor.
struct Step {
  int number = 0;                   ///< of the script's line
  std::string text;                 ///< the line
  std::vector<std::string> actors;  ///< may be empty
  std::string verb;                 ///< "+" when only time passes; its word is the time
  std::vector<std::string> words;   ///< after the verb
  std::vector<Line> expected;
};

/// The only word of a step, a time; throws ScriptError if there is no such word.
Duration duration_in(const Step& step);

/// The first multiple of `period` after `now`.
base::Instant next_beat(base::Instant now, Duration period);

struct Script {
  std::string path;
  std::vector<std::string> lines;
  std::vector<Step> steps;
};

/// Throws ScriptError with path and line.
Script parse(std::string path, std::string_view text);

/// Carries out the steps of one script.
class Runner {
 public:
  virtual ~Runner() = default;
  /// What came of the step for one of its actors (empty when it has none), in order.
  virtual std::vector<Line> run(const Step& step, const std::string& actor) = 0;
};

struct Outcome {
  int steps = 0;
  std::string differences;  ///< for people; empty: all as expected
  std::string rewritten;    ///< the script with its expectations replaced by what came
};

Outcome run(const Script& script, Runner& runner);

}  // namespace muster::script
