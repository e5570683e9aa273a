#define DOCTEST_CONFIG_IMPLEMENT
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "sample.h"
#include "wire/operation.h"

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

int write_all() {
  for (const Sample& sample : all_samples()) {
    std::ofstream out(folder / (sample.name + ".txt"), std::ios::binary);
    out << text_of(sample);
    if (!out.flush()) {
      std::cerr << "cannot write " << sample.name << ".txt in " << folder << "\n";
      return 1;
    }
  }
  std::cout << "wrote " << all_samples().size() << " files to " << folder << "\n";
  return 0;
}

}  // namespace

TEST_CASE("every message has the bytes and the fields of its golden file") {
  for (const Sample& sample : all_samples()) {
    CAPTURE(sample.name);
    CHECK(content_of(folder / (sample.name + ".txt")) == text_of(sample));
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

TEST_CASE("the protocol's text tells of every message, operation and error code") {
  const std::string text = content_of(folder / "../../docs/protocol.md");
  for (const Sample& sample : all_samples()) {
    CAPTURE(sample.name);
    CHECK(text.find("`" + sample.name + "`") != text.npos);
  }
  for (unsigned number = 0; number < 1000; ++number) {
    const std::string_view operation = wire::name_of(static_cast<wire::Operation>(number));
    const std::string_view error = name_of(static_cast<ErrorCode>(number));
    const std::string digits = std::to_string(number);
    CAPTURE(number);
    if (!operation.empty()) {
      CHECK(text.find("| `" + std::string(operation) + "` " + digits) != text.npos);
    }
    if (error != "unknown") {
      CHECK(text.find("| " + digits + " | `" + std::string(error) + "` |") != text.npos);
    }
  }
}

int main(int count, char** arguments) {
  if (count == 2 && std::string_view(arguments[1]) == "--write") return write_all();
  doctest::Context context(count, arguments);
  return context.run();
}
