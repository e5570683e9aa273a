#include <algorithm>

#include "script.h"

namespace muster::script {
namespace {

/// Where the name of a `name=value` or `name~value` word ends; npos when it is neither.
std::size_t name_end_of(std::string_view word) {
  const auto end = word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  if (end == word.npos || end == 0) return word.npos;
  return word[end] == '=' || word[end] == '~' ? end : word.npos;
}

const Field* find(const std::vector<Field>& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [&](const Field& field) { return field.name == name; });
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

Line& Line::with(std::string name, std::string value) {
  fields.push_back({std::move(name), std::move(value), Field::Kind::required});
  return *this;
}

Line& Line::further(std::string name, std::string value) {
  fields.push_back({std::move(name), std::move(value), Field::Kind::further});
  return *this;
}

Line line_of(std::string_view text) {
  Line line;
  std::vector<std::string> plain;
  for (std::string& word : words_of(text)) {
    const auto end = name_end_of(word);
    if (end != word.npos) {
      const auto kind = word[end] == '~' ? Field::Kind::contains : Field::Kind::required;
      std::string value = word.substr(end + 1);
      if (kind == Field::Kind::contains) value = bytes_of(value);
      line.fields.push_back({word.substr(0, end), std::move(value), kind});
    } else if (plain.empty() && !line.at && duration_of(word)) {
      line.at = duration_of(word);
    } else {
      plain.push_back(std::move(word));
    }
  }
  line.words = joined(plain, " ");
  return line;
}

std::string text_of(const Line& line) {
  std::string text = line.at ? text_of(*line.at) + " " : "";
  text += line.words;
  for (const Field& field : line.fields) {
    if (field.kind == Field::Kind::further) continue;
    text += " " + field.name + "=" + field.value;
  }
  return text;
}

bool matches(const Line& expected, const Line& actual) {
  if (expected.at != actual.at || expected.words != actual.words) return false;
  for (const Field& field : expected.fields) {
    const Field* const real = find(actual.fields, field.name);
    if (real == nullptr) return false;
    const bool contains = field.kind == Field::Kind::contains;
    if (contains ? real->value.find(field.value) == std::string::npos
                 : real->value != field.value) {
      return false;
    }
  }
  return std::all_of(actual.fields.begin(), actual.fields.end(), [&](const Field& field) {
    return field.kind == Field::Kind::further || find(expected.fields, field.name) != nullptr;
  });
}

Arguments::Arguments(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    const auto end = name_end_of(word);
    if (end == word.npos || word[end] == '~') {
      plain_.push_back(word);
    } else if (!named_.emplace(word.substr(0, end), word.substr(end + 1)).second) {
      throw ScriptError("given twice: " + word);
    }
  }
}

std::optional<std::string> Arguments::next() {
  if (plain_.empty()) return std::nullopt;
  std::string word = std::move(plain_.front());
  plain_.erase(plain_.begin());
  return word;
}

std::string Arguments::next(std::string_view what_is_missing) {
  auto word = next();
  if (!word) throw ScriptError("missing: " + std::string(what_is_missing));
  return *std::move(word);
}

std::optional<std::string> Arguments::named(std::string_view name) {
  const auto found = named_.find(name);
  if (found == named_.end()) return std::nullopt;
  std::string value = std::move(found->second);
  named_.erase(found);
  return value;
}

std::optional<std::string> Arguments::bytes(std::string_view name) {
  const auto word = named(name);
  return word ? std::optional(bytes_of(*word)) : std::nullopt;
}

std::optional<Duration> Arguments::duration(std::string_view name) {
  const auto word = named(name);
  if (!word) return std::nullopt;
  const auto duration = duration_of(*word);
  if (!duration) throw ScriptError("not a time: " + *word);
  return duration;
}

std::optional<std::int64_t> Arguments::number(std::string_view name) {
  const auto word = named(name);
  return word ? std::optional(number_of(*word)) : std::nullopt;
}

std::vector<std::string> Arguments::list(std::string_view name) {
  const auto word = named(name);
  return word ? items_of(*word) : std::vector<std::string>();
}

bool Arguments::flag(std::string_view name) { return std::erase(plain_, std::string(name)) > 0; }

void Arguments::finish() const {
  if (!plain_.empty()) throw ScriptError("not understood: " + plain_.front());
  if (!named_.empty()) throw ScriptError("not understood: " + named_.begin()->first + "=");
}

}  // namespace muster::script
