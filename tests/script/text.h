#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "muster/types.h"

// How scripts write words, times and bytes; README.md in this folder has the rules.

namespace muster::script {

/// A script that cannot be understood; its text is for the script's author.
struct ScriptError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The words of a line: what blanks separate, outside of double quotes.
std::vector<std::string> words_of(std::string_view line);

/// The items of a list: what commas separate, outside of double quotes.
std::vector<std::string> items_of(std::string_view list);

/// "1.5s", "200ms", "7us", "2m", "1h", "0"; nothing when `word` is no time.
std::optional<Duration> duration_of(std::string_view word);
std::string text_of(Duration duration);

/// Throws ScriptError when `word` is no number.
std::int64_t number_of(std::string_view word);
int int_of(std::string_view word);

/// The bytes that a word stands for: abc, "a b", "a\x00\n\"", or any of them `*1000` times.
std::string bytes_of(std::string_view word);

/// The word that stands for `bytes`; always in quotes, repetitions and long ones shortened.
std::string in_quotes(std::string_view bytes);
/// A text for people, however long.
std::string whole_in_quotes(std::string_view text);

/// As it is when it is a simple name, else in quotes.
std::string name_or_quoted(std::string_view bytes);

std::string joined(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace muster::script
