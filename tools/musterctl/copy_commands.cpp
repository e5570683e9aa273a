#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ask.h"
#include "base/secret/unshown.h"
#include "commands.h"

// The keys of a namespace as lines of JSON, out and in again. Neither keeps more of them in memory
// than a page: pages of names come from the server, with their values by and by, and leave as they
// come.

namespace musterctl {
namespace {

using muster::Duration;
using muster::KeyInfo;
using muster::Result;
using muster::base::shown_unless_secret;

constexpr std::uint64_t batch_bytes_max = 4U << 20;
constexpr Duration request_time = std::chrono::seconds(10);

/// A copy takes as long as it takes, unless somebody has said how long: then that is for all of it,
/// and else each request has so much.
Duration time_for_request(const Run& run) { return run.common.timeout ? run.left() : request_time; }

Answer failed_with(const std::string& code, const std::string& complaint) {
  Json error = {{"code", code}, {"message", complaint}};
  return Answer{{{"error", std::move(error)}}, "", complaint, exit_refused};
}

/// `name`, or, of what is no UTF-8, `name` + "_base64" alone.
void add_exactly(Json& json, const std::string& name, std::string_view bytes) {
  if (is_utf8(bytes)) {
    json[name] = std::string(bytes);
  } else {
    json[name + "_base64"] = base64(bytes);
  }
}

/// Where the lines go: a file, or the standard output.
class LinesOut {
 public:
  /// path  empty: the standard output
  bool open(const std::string& path) {
    path_ = path;
    if (path.empty()) return true;
    file_.open(path, std::ios::binary | std::ios::trunc);
    return static_cast<bool>(file_);
  }
  bool write(const std::string& text) {
    if (path_.empty()) return write_out(text) == Written::all;
    file_.write(text.data(), static_cast<std::streamsize>(text.size()));
    return static_cast<bool>(file_);
  }
  bool close() {
    if (path_.empty()) return true;
    file_.close();
    return static_cast<bool>(file_);
  }
  std::string complaint() const {
    return "cannot write to " + (path_.empty() ? "the standard output" : path_);
  }

 private:
  std::string path_;
  std::ofstream file_;
};

struct ExportArguments {
  std::string prefix;
  std::string output;
};

/// So many keys from `begin` on, at most `keys_max`, that their values come in one reply.
std::size_t batch_end(const std::vector<KeyInfo>& keys, std::size_t begin, std::size_t keys_max,
                      const muster::Limits& limits) {
  const std::uint64_t bytes_max = std::min<std::uint64_t>(batch_bytes_max, limits.round_bytes_max);
  keys_max = std::min<std::size_t>(keys_max, limits.keys_per_operation_max);
  std::uint64_t bytes = 0;
  std::size_t end = begin;
  while (end < keys.size() && end - begin < keys_max) {
    bytes += keys[end].value_bytes;
    if (end > begin && bytes > bytes_max) break;
    ++end;
  }
  return end;
}

class Export {
 public:
  Export(Run& run, const ExportArguments& arguments) : run_(run), arguments_(arguments) {}

  /// A file is opened, and emptied, when it is known that there is something to copy from.
  Result<Answer> all() {
    std::uint64_t cursor = 0;
    do {
      auto page = run_.store.list(arguments_.prefix, cursor, time_for_request(run_));
      if (!page) return page.error();
      if (cursor == 0) {
        if (page->keys.empty() && page->cursor == 0) {
          if (auto absent = no_such_namespace(run_, Kind::waits)) return *std::move(absent);
        }
        if (!out_.open(arguments_.output)) {
          return failed_with("unwritable_output", out_.complaint());
        }
      }
      std::erase_if(page->keys, [this](const KeyInfo& key) {
        bound_count_ += key.bound ? 1 : 0;
        return key.bound;
      });
      for (std::size_t begin = 0; begin < page->keys.size();) {
        const std::size_t end = batch_end(page->keys, begin, keys_max_, run_.store.limits());
        const auto error = batch(page->keys, begin, end);
        // A server that is full has no memory to put the values of many keys into one reply.
        const bool is_too_much = error && error->code == muster::ErrorCode::resource_exhausted;
        if (is_too_much && end - begin > 1) {
          keys_max_ = (end - begin) / 2;
          continue;
        }
        if (error) return *error;
        if (has_failed_) return failed_with("unwritable_output", out_.complaint());
        begin = end;
      }
      cursor = page->cursor;
    } while (cursor != 0);
    if (!out_.close()) return failed_with("unwritable_output", out_.complaint());
    return summary();
  }

 private:
  std::optional<muster::Error> batch(const std::vector<KeyInfo>& keys, std::size_t begin,
                                     std::size_t end) {
    std::vector<std::string_view> names;
    for (std::size_t index = begin; index < end; ++index) names.push_back(keys[index].key);
    const auto values = names.size() == 1 ? value_of(names[0])
                                          : run_.store.multi_get(names, time_for_request(run_));
    if (!values) return values.error();
    std::string lines;
    for (std::size_t index = begin; index < end; ++index) {
      const auto& value = (*values)[index - begin];
      if (!value) continue;  // it has gone meanwhile
      Json json;
      add_exactly(json, "key", keys[index].key);
      add_exactly(json, "value", *value);
      if (keys[index].ttl) json["ttl_s"] = seconds_of(*keys[index].ttl);
      lines += muster::json::line_of(json) + '\n';
      ++written_count_;
    }
    has_failed_ = !out_.write(lines);
    return std::nullopt;
  }

  /// Its reply takes none of the server's memory; none: it has gone.
  Result<std::vector<std::optional<std::string>>> value_of(std::string_view key) {
    while (true) {
      const auto is_there = run_.store.exists(key, time_for_request(run_));
      if (!is_there.has_value()) return is_there.error();
      if (!*is_there) return std::vector<std::optional<std::string>>(1);
      auto value = run_.store.get(key, time_for_request(run_));
      if (value) return std::vector<std::optional<std::string>>{*std::move(value)};
      if (value.error().code != muster::ErrorCode::timed_out || run_.common.timeout) {
        return value.error();
      }
    }
  }

  /// The standard output has the keys, unless they have a file.
  Answer summary() const {
    std::string text =
        std::to_string(written_count_) + (written_count_ == 1 ? " key" : " keys") + " written";
    if (bound_count_ != 0) {
      text += "; left out, since they are bound to sessions: " + std::to_string(bound_count_);
    }
    Answer answer;
    answer.document = {{"written", written_count_}, {"bound", bound_count_}};
    (arguments_.output.empty() ? answer.complaint : answer.text) = text;
    if (!arguments_.output.empty()) answer.text += '\n';
    return answer;
  }

  Run& run_;
  const ExportArguments& arguments_;
  LinesOut out_;
  bool has_failed_ = false;
  std::size_t keys_max_ = SIZE_MAX;  ///< of a batch, from where the server had no memory for more
  std::uint64_t written_count_ = 0;
  std::uint64_t bound_count_ = 0;
};

struct ImportArguments {
  std::string file;
  bool if_absent = false;
};

struct Imported {
  std::string key;
  std::string value;
  std::optional<Duration> ttl;
};

/// `name`, or `name` + "_base64"; none: neither, or it is not that.
std::optional<std::string> read_exactly(const Json& json, const std::string& name) {
  if (const auto text = json.find(name); text != json.end()) {
    if (!text->is_string()) return std::nullopt;
    return text->get<std::string>();
  }
  const auto encoded = json.find(name + "_base64");
  if (encoded == json.end() || !encoded->is_string()) return std::nullopt;
  return muster::json::from_base64(encoded->get<std::string>());
}

std::optional<Imported> read_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  auto key = read_exactly(json, "key");
  auto value = read_exactly(json, "value");
  if (!key || !value) return std::nullopt;
  Imported imported{*std::move(key), *std::move(value), std::nullopt};
  const auto ttl = json.find("ttl_s");
  if (ttl == json.end() || ttl->is_null()) return imported;
  constexpr double seconds_max = 1e9;
  if (!ttl->is_number()) return std::nullopt;
  const double seconds = ttl->get<double>();
  if (!(seconds >= 0 && seconds <= seconds_max)) return std::nullopt;
  const Duration time(static_cast<Duration::rep>(seconds * 1e6));
  imported.ttl = std::max(time, Duration{1});
  return imported;
}

Result<Answer> run_import(Run& run, const ImportArguments& arguments) {
  std::ifstream file;
  if (arguments.file != "-") file.open(arguments.file, std::ios::binary);
  std::istream& in = arguments.file == "-" ? std::cin : file;
  if (!in) {
    return failed_with("unreadable_input", "cannot read " + shown_unless_secret(arguments.file) +
                                               ": " + std::strerror(errno));
  }
  std::uint64_t set_count = 0;
  std::uint64_t there_count = 0;
  const auto so_far = [&] { return "; set before: " + std::to_string(set_count); };
  std::string line;
  for (std::uint64_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const auto imported = read_line(line);
    const std::string where = shown_unless_secret(arguments.file) + ":" + std::to_string(number);
    if (!imported) {
      return failed_with("unreadable_input", where + ": no line of an export" + so_far());
    }
    muster::SetOptions options;
    options.ttl = imported->ttl;
    options.only_if_absent = arguments.if_absent;
    const auto applied =
        run.store.set(imported->key, imported->value, options, time_for_request(run));
    if (!applied.has_value()) {
      Answer refused = answer_of(applied.error(), Kind::changes);
      refused.complaint = where + ": " + refused.complaint + so_far();
      return refused;
    }
    ++(*applied ? set_count : there_count);
  }
  if (in.bad())
    return failed_with("unreadable_input",
                       "cannot read " + shown_unless_secret(arguments.file) + so_far());
  std::string text = std::to_string(set_count) + (set_count == 1 ? " key" : " keys") + " set";
  if (there_count != 0) text += "; there already: " + std::to_string(there_count);
  return Answer{{{"set", set_count}, {"there", there_count}}, text + '\n', "", exit_ok};
}

}  // namespace

void add_copy_commands(CLI::App& app, Chosen& chosen) {
  auto exported = std::make_shared<ExportArguments>();
  auto* out = app.add_subcommand("export", "Writes keys and values as lines of JSON.");
  out->footer(
      footer_with("  musterctl export config/ > config.jsonl\n"
                  "  musterctl export --output all.jsonl\n"));
  out->add_option("PREFIX", exported->prefix, "of the keys; without it all of the namespace");
  out->add_option("-o,--output", exported->output, "instead of the standard output")
      ->type_name("FILE");
  out->callback([=, &app, &chosen] {
    if (const auto refused = muster::base::refuse_secret_path("--output", exported->output))
      throw CLI::ValidationError(refused->detail);
    if (exported->output.empty() && app.get_option("--json")->count() != 0) {
      throw CLI::ValidationError("musterctl export",
                                 "--json prints one document; let the lines go to --output FILE");
    }
    chosen.kind = Kind::waits;
    chosen.command = [=](Run& run) { return Export(run, *exported).all(); };
  });
  auto imported = std::make_shared<ImportArguments>();
  auto* in = app.add_subcommand("import", "Sets the keys that an export has written.");
  in->footer(
      footer_with("  musterctl -n job8 import --if-absent config.jsonl\n"
                  "  musterctl export | musterctl -s other:29400 import -\n"));
  in->add_option("FILE", imported->file, "\"-\": the standard input")->required();
  in->add_flag("--if-absent", imported->if_absent, "leave keys as they are that are there");
  in->callback(
      [=, &chosen] { chosen.command = [=](Run& run) { return run_import(run, *imported); }; });
}

}  // namespace musterctl
