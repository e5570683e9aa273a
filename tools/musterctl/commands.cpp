#include "commands.h"

#include <algorithm>
#include <charconv>

#include "support/quotes.h"
#include "support/units.h"

namespace musterctl {

using muster::Duration;
using muster::ErrorCode;

Duration Run::left() const {
  const auto left = deadline - std::chrono::steady_clock::now();
  return std::max<Duration>(std::chrono::duration_cast<Duration>(left),
                            std::chrono::milliseconds(1));
}

std::optional<muster::ProcessId> parse_process(std::string_view digits) {
  muster::ProcessId id;
  if (digits.size() != 2 * id.bytes.size()) return std::nullopt;
  for (std::size_t index = 0; index < id.bytes.size(); ++index) {
    const char* const begin = digits.data() + 2 * index;
    const auto [end, error] = std::from_chars(begin, begin + 2, id.bytes[index], 16);
    if (error != std::errc{} || end != begin + 2) return std::nullopt;
  }
  return id;
}

std::string refusal_of_duration(const std::string& text, Duration least) {
  const auto parsed = tools::parse_duration(text);
  if (parsed && *parsed >= least) return "";
  const std::string what = least > Duration{1} ? "of at least " + text_of(least) : "above zero";
  return tools::in_quotes(text) + " is no duration " + what + " (" + tools::duration_forms + ")";
}

CLI::Option* add_duration(CLI::App& app, const std::string& name, const std::string& help,
                          std::function<void(Duration)> take) {
  const auto take_text = [take = std::move(take)](const std::string& text) {
    take(tools::parse_duration(text).value_or(Duration{0}));
  };
  return app.add_option_function<std::string>(name, take_text, help)
      ->check(CLI::Validator(
          [](const std::string& text) { return refusal_of_duration(text, Duration{1}); }, ""))
      ->type_name("DURATION");
}

namespace {

int exit_code_of(ErrorCode code, Kind kind) {
  switch (code) {
    case ErrorCode::outcome_unknown:  // what only reads has no outcome: there was no answer
      return kind == Kind::changes ? exit_refused : exit_unavailable;
    case ErrorCode::invalid_argument: return exit_usage;
    case ErrorCode::not_found:
    case ErrorCode::timed_out: return exit_absent;
    case ErrorCode::unavailable:
    case ErrorCode::protocol_error: return exit_unavailable;
    default: return exit_refused;
  }
}

}  // namespace

Answer answer_of(const muster::Error& error, Kind kind) {
  return {{{"error", json_of(error)}}, "", error.message(), exit_code_of(error.code, kind)};
}

Answer value_of(const Run& run, std::string value) {
  Answer answer;
  if (run.common.json) {
    add_bytes(answer.document, "value", value);
  } else {
    answer.text = std::move(value);
  }
  return answer;
}

std::string footer_with(const std::string& examples) {
  return "Examples:\n" + examples +
         "\n`musterctl --help` lists the options that every command has, and the exit codes.";
}

}  // namespace musterctl
