#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
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

using Variables = std::map<std::string, std::string>;

Told run(const std::vector<std::string>& command, const Variables& environment = {}) {
  Process::Options options;
  options.command = command;
  options.environment = environment;
  Process process(options);
  Told told;
  told.output = process.read_output();
  told.errors = process.read_errors();
  told.exit_code = process.wait().exit_code;
  return told;
}

Told musterctl(std::vector<std::string> arguments, const Variables& environment = {}) {
  arguments.insert(arguments.begin(), std::getenv("MUSTERCTL"));
  return run(arguments, environment);
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
  const bool has_tls = lines[0]["key_id"].is_string();  // ids of keys are derived by its library
  if (has_tls) {
    const std::string id = lines[0]["key_id"];
    CHECK(musterctl({"credentials", "check", file.path}).output.find("key " + id) != id.npos);
    const Told other =
        musterctl({"--json", "--server-name", "b", "credentials", "check", file.path});
    CHECK(Json::parse(other.output)[0]["key_id"] != id);
  }
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

TEST_CASE("a key in a wrong place is not shown, and the error says where it belongs") {
  const std::string key = Json::parse(musterctl({"--json", "keygen"}).output)["key"];
  const std::string line = "job " + key + " * all";
  const std::string server = "127.0.0.1:1";
  const File token;
  token.write("muster-http-" + key.substr(0, 43) + " " + key + " * all\n");
  const File folder;
  const std::string named = folder.path + "/" + key;
  std::filesystem::create_directories(named);
  struct Mistake {
    std::vector<std::string> arguments;
    Variables environment;
  };
  std::vector<Mistake> mistakes;
  for (const std::string& secret : {key, key.substr(0, 43), line, line + "\r\n"}) {
    mistakes.push_back({{"status"}, {{"MUSTER_CREDENTIAL_FILE", secret}}});
    mistakes.push_back({{"--credential-file", secret, "status"}, {}});
    mistakes.push_back({{"status"}, {{"MUSTER_SERVER", secret}}});
    mistakes.push_back({{"--server", secret, "status"}, {}});
    mistakes.push_back({{"status"}, {{"MUSTER_SERVER_NAME", secret}}});
    mistakes.push_back({{"credentials", "check", secret}, {}});
    mistakes.push_back({{secret}, {}});
    mistakes.push_back({{"status", secret}, {}});
    mistakes.push_back({{"--" + secret, "status"}, {}});
    mistakes.push_back({{"-t", secret, "status"}, {}});
    mistakes.push_back({{"keygen", secret}, {}});
    mistakes.push_back({{"export", "--output", secret}, {}});
  }
  mistakes.push_back({{"--credential-file", named, "status"}, {}});
  mistakes.push_back({{"credentials", "check", token.path}, {}});
  mistakes.push_back({{"status"}, {{"MUSTER_" + key.substr(0, 43), "x"}}});
  for (Mistake& mistake : mistakes) {
    mistake.environment.emplace("MUSTER_SERVER", server);
    const Told told = musterctl(mistake.arguments, mistake.environment);
    CAPTURE(told.errors);
    CHECK(told.exit_code != 0);
    CHECK((told.output + told.errors).find(key.substr(0, 24)) == key.npos);
    CHECK(told.errors.find("because it is now known") != key.npos);
  }
  token.write("certificate:unix:" + key + " * all as=x\n");
  const Told listed = musterctl({"credentials", "check", token.path});
  CHECK(listed.exit_code == 0);
  CHECK(listed.output.find(key.substr(0, 24)) == key.npos);
}

TEST_CASE("a credential file that does not exist is a mistake of the command, not of the server") {
  const Told told = musterctl({"--credential-file", "/nowhere/key", "status"},
                              {{"MUSTER_SERVER", "127.0.0.1:1"}});
  CAPTURE(told.errors);
  CHECK(told.exit_code == 2);
  CHECK(told.errors.find("/nowhere/key: No such file or directory") != told.errors.npos);
  CHECK(told.errors.find("server runs") == told.errors.npos);
}

TEST_CASE("a path in the variable of the key is told apart, and ends of lines do no harm") {
  const Told path = musterctl({"status"}, {{"MUSTER_CREDENTIAL", "/etc/muster/key"}});
  CHECK(path.errors.find("MUSTER_CREDENTIAL_FILE") != path.errors.npos);
  const File file;
  const std::string key = Json::parse(musterctl({"--json", "keygen"}).output)["key"];
  file.write("job " + key + " * all\r\n");
  CHECK(musterctl({"credentials", "check", file.path}).exit_code == 0);
  for (const Variables& variables : {Variables{{"MUSTER_CREDENTIAL", "job " + key + " * all\n"}},
                                     Variables{{"MUSTER_CREDENTIAL", "job " + key + " * all\r\n"}},
                                     Variables{{"MUSTER_CREDENTIAL_FILE", file.path + "\n"}},
                                     Variables{{"MUSTER_CREDENTIAL_FILE", file.path + "\r\n"}}}) {
    Variables all = variables;
    all["MUSTER_SERVER"] = "127.0.0.1:1\n";
    const Told told = musterctl({"--timeout", "1s", "status"}, all);
    CAPTURE(told.errors);
    // All of it was taken: there is no server, or no library for TLS.
    const bool lacks_tls = told.errors.find("unsupported") != told.errors.npos;
    CHECK(told.exit_code == (lacks_tls ? 1 : 4));
    CHECK(told.errors.find("127.0.0.1:1;") != told.errors.npos);
  }
}

}  // namespace
