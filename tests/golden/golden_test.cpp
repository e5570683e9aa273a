#define DOCTEST_CONFIG_IMPLEMENT
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "sample.h"
#include "wire/operation_table.h"

// Each message of the protocol has a file beside this one that shows its bytes. A change of the
// format shows up here as a difference. To write the files anew after a change that is meant:
//
//    golden_protocol --write

using namespace muster;
using namespace muster::golden;

namespace {

const std::filesystem::path folder = MUSTER_GOLDEN_DIR;

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

/// The content of every golden file.
std::map<std::filesystem::path, std::string> all_files() {
  std::map<std::filesystem::path, std::string> files;
  for (const Sample& sample : all_samples()) {
    files[folder / (sample.name + ".txt")] = text_of(sample);
  }
  return files;
}

int write_all() {
  for (const auto& [file, content] : all_files()) {
    std::ofstream out(file, std::ios::binary);
    out << content;
    if (!out.flush()) {
      std::cerr << "cannot write " << file << "\n";
      return 1;
    }
  }
  std::cout << "wrote " << all_files().size() << " files to " << folder << "\n";
  return 0;
}

}  // namespace

TEST_CASE("every golden file is what the samples make") {
  for (const auto& written : all_files()) {
    CAPTURE(written.first.string());
    CHECK(content_of(written.first) == written.second);
  }
}

TEST_CASE("the encoder writes what the golden files say") {
  for (const Sample& sample : all_samples()) {
    CAPTURE(sample.name);
    CHECK(sample.bytes == sample.annotated.bytes());
    CHECK(sample.bytes == bytes_of(content_of(folder / (sample.name + ".txt"))));
  }
}

TEST_CASE("the bytes of every golden file decode to what encodes to them") {
  for (const Sample& sample : all_samples()) {
    CAPTURE(sample.name);
    const std::string bytes = bytes_of(content_of(folder / (sample.name + ".txt")));
    const Result<std::string> again = sample.again(bytes);
    REQUIRE(again.has_value());
    CHECK(*again == bytes);
  }
}

TEST_CASE("no golden file is without its message") {
  std::set<std::string> names;
  for (const Sample& sample : all_samples()) CHECK(names.insert(sample.name + ".txt").second);
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() != ".txt") continue;
    CAPTURE(file.path().string());
    CHECK(names.count(file.path().filename().string()) == 1);
  }
}

TEST_CASE("the protocol's text tells of every message and error code") {
  const std::string text = content_of(folder / "../../docs/protocol.md");
  for (const Sample& sample : all_samples()) {
    CAPTURE(sample.name);
    CHECK(text.find("`" + sample.name + "`") != text.npos);
  }
  for (unsigned number = 0; number < 1000; ++number) {
    const std::string_view error = name_of(static_cast<ErrorCode>(number));
    CAPTURE(number);
    if (error == "unknown") continue;
    CHECK(text.find("| " + std::to_string(number) + " | `" + std::string(error) + "` |") !=
          text.npos);
  }
}

TEST_CASE("the protocol's text tells of every operation what the table of operations does") {
  const std::string text = content_of(folder / "../../docs/protocol.md");
  const std::vector<Sample> samples = all_samples();
  for (const wire::OperationFacts& facts : wire::operation_facts) {
    const std::string name(facts.name);
    CAPTURE(name);
    const std::string row =
        "| `" + name + "` " + std::to_string(static_cast<unsigned>(facts.number));
    const std::size_t begin = text.find(row);
    REQUIRE(begin != text.npos);
    std::string marks =
        text.substr(begin + row.size(), text.find(" → ", begin) - begin - row.size());
    if (const std::size_t when = marks.find(" when"); when != marks.npos) {
      marks.erase(when, marks.find(',', when) - when);
      CHECK(facts.change == wire::StateChange::received);
    } else {
      CHECK(facts.change != wire::StateChange::received);
    }
    std::string expected;
    if (facts.change != wire::StateChange::none) expected += ", kept";
    if (facts.answered == wire::Answered::later) expected += ", waits";
    CHECK(marks == expected);
    const auto is_sample = [&](const Sample& each) {
      return each.name.starts_with("request_" + name);
    };
    CHECK(std::ranges::any_of(samples, is_sample));
  }
}

int main(int count, char** arguments) {
  if (count == 2 && std::string_view(arguments[1]) == "--write") return write_all();
  doctest::Context context(count, arguments);
  return context.run();
}
