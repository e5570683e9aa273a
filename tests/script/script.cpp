// A script is parsed into steps, each with the lines expected of it. After a step has run, real
// and expected lines are aligned by their longest common subsequence; what is not in it is a
// difference. A rewrite keeps the lines that matched as they were written.

#include "script.h"

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace muster::script {
namespace {

std::string trimmed(std::string_view line) {
  const auto first = line.find_first_not_of(" \t\r");
  if (first == line.npos) return "";
  return std::string(line.substr(first, line.find_last_not_of(" \t\r") - first + 1));
}

Step step_of(const std::string& text, int number) {
  Step step;
  step.number = number;
  step.text = text;
  if (text.front() == '+') {
    step.verb = "+";
    step.words = {text.substr(1)};
    return step;
  }
  step.words = words_of(text);
  const auto last_actor =
      std::find_if(step.words.begin(), step.words.end(), [](const std::string& word) {
        return word.size() > 1 && word.back() == ':' && word.find('"') == word.npos;
      });
  if (last_actor != step.words.end()) {
    last_actor->pop_back();
    step.actors.assign(step.words.begin(), last_actor + 1);
    step.words.erase(step.words.begin(), last_actor + 1);
  }
  if (step.words.empty()) throw ScriptError("nothing happens here");
  step.verb = step.words.front();
  step.words.erase(step.words.begin());
  return step;
}

void parse_line(Script& script, const std::string& text, int number) {
  if (text.empty() || text.front() == '#') return;
  if (text.front() != '>') {
    script.steps.push_back(step_of(text, number));
    return;
  }
  if (script.steps.empty()) throw ScriptError("an effect before any step");
  Line line = line_of(std::string_view(text).substr(1));
  line.number = number;
  script.steps.back().expected.push_back(std::move(line));
}

/// One row of an alignment: an expected line, a real one, or a pair that matches.
struct Row {
  const Line* expected = nullptr;
  const Line* actual = nullptr;
};

std::vector<Row> aligned(const std::vector<Line>& expected, const std::vector<Line>& actual) {
  const std::size_t rows = expected.size();
  const std::size_t columns = actual.size();
  std::vector<std::vector<int>> common(rows + 1, std::vector<int>(columns + 1, 0));
  for (std::size_t i = rows; i-- > 0;) {
    for (std::size_t j = columns; j-- > 0;) {
      common[i][j] = std::max(common[i + 1][j], common[i][j + 1]);
      if (matches(expected[i], actual[j])) {
        common[i][j] = std::max(common[i][j], common[i + 1][j + 1] + 1);
      }
    }
  }
  std::vector<Row> alignment;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < rows || j < columns) {
    if (i < rows && j < columns && matches(expected[i], actual[j]) &&
        common[i][j] == common[i + 1][j + 1] + 1) {
      alignment.push_back({&expected[i++], &actual[j++]});
    } else if (j == columns || (i < rows && common[i + 1][j] >= common[i][j + 1])) {
      alignment.push_back({&expected[i++], nullptr});
    } else {
      alignment.push_back({nullptr, &actual[j++]});
    }
  }
  return alignment;
}

/// A real line that nobody expected, with everything that a script may say of it.
std::string full_text_of(const Line& line) {
  std::string text = text_of(line);
  std::string further;
  for (const Field& field : line.fields) {
    if (field.kind == Field::Kind::further) further += " " + field.name + "=" + field.value;
  }
  return further.empty() ? text : text + "   (" + further.substr(1) + ")";
}

std::string difference_of(const Script& script, const Step& step, const std::vector<Row>& rows) {
  std::ostringstream out;
  out << script.path << ":" << step.number << ": " << step.text << "\n";
  for (const Row& row : rows) {
    if (row.expected != nullptr) {
      const std::string& written = script.lines[static_cast<std::size_t>(row.expected->number - 1)];
      out << (row.actual != nullptr ? "             " : "  missing    ") << written << "\n";
    } else {
      out << "  unexpected > " << full_text_of(*row.actual) << "\n";
    }
  }
  return out.str();
}

bool all_match(const std::vector<Row>& rows) {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.expected != nullptr && row.actual != nullptr;
  });
}

/// Collects, per line of the script, what a rewrite puts below it.
class Rewrite {
 public:
  explicit Rewrite(const Script& script) : script_(script), below_(script.lines.size() + 1) {}

  void keep(const Step& step, const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      if (row.actual == nullptr) continue;
      auto& below = below_[static_cast<std::size_t>(step.number)];
      below.push_back(row.expected != nullptr
                          ? script_.lines[static_cast<std::size_t>(row.expected->number - 1)]
                          : "> " + text_of(*row.actual));
    }
  }

  std::string text() const {
    std::string text;
    for (std::size_t index = 0; index < script_.lines.size(); ++index) {
      const std::string& line = script_.lines[index];
      if (trimmed(line).rfind('>', 0) != 0) text += line + "\n";
      for (const std::string& below : below_[index + 1]) text += below + "\n";
    }
    return text;
  }

 private:
  const Script& script_;
  std::vector<std::vector<std::string>> below_;
};

std::vector<Line> run_step(const Step& step, Runner& runner) {
  if (step.actors.empty()) return runner.run(step, "");
  std::vector<Line> lines;
  for (const std::string& actor : step.actors) {
    for (Line& line : runner.run(step, actor)) lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace

Duration duration_in(const Step& step) {
  const auto duration = step.words.size() == 1 ? duration_of(step.words[0]) : std::nullopt;
  if (!duration) throw ScriptError("not a time: " + step.text);
  return *duration;
}

base::Instant next_beat(base::Instant now, Duration period) {
  return base::Instant((now.time_since_epoch() / period + 1) * period);
}

Script parse(std::string path, std::string_view text) {
  Script script;
  script.path = std::move(path);
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    script.lines.push_back(line);
    const int number = static_cast<int>(script.lines.size());
    try {
      parse_line(script, trimmed(line), number);
    } catch (const ScriptError& problem) {
      throw ScriptError(script.path + ":" + std::to_string(number) + ": " + problem.what());
    }
  }
  if (script.lines.empty() || script.lines.front().rfind("# ", 0) != 0) {
    throw ScriptError(script.path + ":1: a script opens with a comment that says what it shows");
  }
  if (script.steps.empty()) throw ScriptError(script.path + ":1: the script has no steps");
  return script;
}

Outcome run(const Script& script, Runner& runner) {
  Outcome outcome;
  Rewrite rewrite(script);
  for (const Step& step : script.steps) {
    ++outcome.steps;
    std::vector<Line> actual;
    try {
      actual = run_step(step, runner);
    } catch (const ScriptError& problem) {
      throw ScriptError(outcome.differences + script.path + ":" + std::to_string(step.number) +
                        ": " + problem.what());
    }
    const auto rows = aligned(step.expected, actual);
    rewrite.keep(step, rows);
    if (!all_match(rows)) outcome.differences += difference_of(script, step, rows);
  }
  outcome.rewritten = rewrite.text();
  return outcome;
}

}  // namespace muster::script
