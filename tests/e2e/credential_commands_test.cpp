#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "musterctl.h"
#include "support/process.h"
#include "support/temporary_folder.h"

// The commands of musterctl that need no server: a key is made, a file is looked at.

namespace {

using Json = nlohmann::json;
using muster::test::Process;

struct Told {
  std::string output;
  std::string errors;
  int exit_code = -1;
};

Told run(const std::vector<std::string>& command) {
  Process::Options options;
  options.command = command;
  Process process(options);
  Told told;
  told.output = process.read_output();
  told.errors = process.read_errors();
  told.exit_code = process.wait().exit_code;
  return told;
}

Told musterctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::getenv("MUSTERCTL"));
  return run(arguments);
}

/// A folder with a file of mode 0600, both of which go.
struct File {
  void write(const std::string& text) const {
    std::ofstream(path) << text;
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
  }
  mode_t mode() const {
    struct stat status {};
    REQUIRE(::stat(path.c_str(), &status) == 0);
    return status.st_mode & 07777;
  }

  muster::test::TemporaryFolder folder;
  std::string path = folder / "credentials";
};

TEST_CASE("a fresh key is a line that a file of credentials takes") {
  const File file;
  const Told made = musterctl(
      {"keygen", "team/trainer", "--namespaces", "train-*,eval", "--rights", "read,write"});
  CHECK(made.exit_code == 0);
  CHECK(made.errors.empty());
  file.write(made.output);
  const Told listed = musterctl({"--json", "credentials", "check", file.path});
  CHECK(listed.exit_code == 0);
  const Json lines = Json::parse(listed.output);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0]["identity"] == "team/trainer");
  CHECK(lines[0]["tenant"] == "team");
  CHECK(lines[0]["proof"] == "key");
  CHECK(lines[0]["namespaces"] == "train-*,eval");
  CHECK(lines[0]["rights"] == "read,write");
  CHECK(lines[0]["not_after"].is_null());
  const std::string key = Json::parse(musterctl({"--json", "keygen"}).output)["key"];
  CHECK(key.size() == 44);
  CHECK(made.output.find(key) == made.output.npos);
}

TEST_CASE("others cannot read the file that a key is written to") {
  const File file;
  const std::string program = std::getenv("MUSTERCTL");
  const Told made = run({"/bin/sh", "-c", "umask 022; \"$0\" keygen > \"$1\"", program, file.path});
  CHECK(made.exit_code == 0);
  CHECK(file.mode() == 0600);
  CHECK(!made.errors.empty());
  const Told more = run({"/bin/sh", "-c", "\"$0\" keygen other >> \"$1\"", program, file.path});
  CHECK(more.errors.empty());
  CHECK(musterctl({"credentials", "check", file.path}).exit_code == 0);
}

TEST_CASE("a key for nobody, for nothing or with no right is wrong usage") {
  CHECK(musterctl({"keygen", "a b"}).exit_code == 2);
  CHECK(musterctl({"keygen", "a", "--namespaces", "a,,b"}).exit_code == 2);
  CHECK(musterctl({"keygen", "a", "--rights", "fly"}).exit_code == 2);
  CHECK(musterctl({"keygen", "--watch"}).exit_code == 2);
  CHECK(musterctl({"credentials"}).exit_code == 2);
  CHECK(musterctl({"credentials", "check"}).exit_code == 2);
}

TEST_CASE("all that is wrong with a file is told, and no key") {
  const File file;
  const std::string key = Json::parse(musterctl({"--json", "keygen"}).output)["key"];
  std::string text;
  for (int line = 1; line <= 30; ++line) text += "a b" + key + " * all\n";
  file.write(text);
  const Told told = musterctl({"credentials", "check", file.path});
  CHECK(told.exit_code == 1);
  CHECK(told.output.empty());
  for (int line = 1; line <= 30; ++line) {
    CHECK(told.errors.find("line " + std::to_string(line) + ":") != told.errors.npos);
  }
  CHECK(told.errors.find(key) == told.errors.npos);
  const Json problems =
      Json::parse(musterctl({"--json", "credentials", "check", file.path}).output)["problems"];
  CHECK(problems.size() == 30);
  CHECK(problems[29]["line"] == 30);
}

TEST_CASE("a file that others can read, or that is not there, is refused") {
  const File file;
  CHECK(musterctl({"credentials", "check", file.path}).exit_code == 1);
  file.write("# nobody\n");
  CHECK(musterctl({"credentials", "check", file.path}).exit_code == 0);
  REQUIRE(::chmod(file.path.c_str(), 0644) == 0);
  CHECK(musterctl({"credentials", "check", file.path}).exit_code == 1);
}

TEST_CASE("where nobody is asked who he is, musterctl has the rights of an observer") {
  const muster::test::Musterctl with_server;
  const Json self = Json::parse(with_server({"--json", "whoami"}).output);
  CHECK(self["identity"].is_null());
  CHECK(self["tenant"].is_null());
  CHECK(self["rights"] == "read,write,observe");
  CHECK(self["connection"] == "plain");
}

}  // namespace
