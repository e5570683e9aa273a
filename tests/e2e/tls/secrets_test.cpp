#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "auth/derivation.h"
#include "auth/key.h"
#include "muster/process_group.h"
#include "muster/store.h"
#include "net/tls/library.h"
#include "support/await.h"
#include "support/process.h"
#include "support/sanitizers.h"
#include "support/secret_needles.h"
#include "support/server.h"
#include "support/temporary_folder.h"

// Where keys are not: in what is said, and in memory once they are let go. Another process makes
// them, so that this one never has them but by what it tests.

namespace muster::test {
namespace {

using Names = std::set<std::string>;

constexpr const char* server_name = "cluster";

std::string hex_of(std::string_view bytes, std::string_view digits) {
  std::string hex;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    hex += digits[value >> 4U];
    hex += digits[value & 15U];
  }
  return hex;
}

std::string base64_of(std::string_view bytes) { return auth::Key::of(bytes).value().base64(); }

/// A line of the file that tells what is looked for, masked.
void tell(std::ofstream& told, const std::string& name, std::string secret) {
  for (char& byte : secret) {
    byte = static_cast<char>(static_cast<unsigned char>(byte) ^ SecretNeedles::mask);
  }
  told << name << ' ' << hex_of(secret, "0123456789abcdef") << '\n';
}

void tell_all_forms(std::ofstream& told, const std::string& name, const std::string& bytes) {
  tell(told, name, bytes);
  tell(told, name + " as base64", base64_of(bytes));
  tell(told, name + " as hex", hex_of(bytes, "0123456789abcdef"));
  tell(told, name + " as HEX", hex_of(bytes, "0123456789ABCDEF"));
}

void write_line(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app) << text;
  ::chmod(path.c_str(), 0600);
}

/// In a process of its own.
void make_keys(const std::string& folder) {
  std::ofstream told(folder + "/told");
  for (const std::string name : {"stays", "goes"}) {
    std::string bytes(auth::Key::bytes_min, '\0');
    std::ifstream("/dev/urandom").read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    const auto secret = net::tls::derive(bytes, auth::info_of_secret(server_name));
    const std::string line = "job/" + name + " " + base64_of(bytes) + " * all\n";
    for (const char* const file : {"/both", "/stays"}) {
      if (file == std::string_view("/both") || name == "stays") write_line(folder + file, line);
    }
    write_line(folder + "/" + name + ".own", line);
    write_line(folder + "/" + name + ".wrong",
               line + "job/" + name + " " + base64_of(bytes) + "\n");
    tell_all_forms(told, name, bytes);
    const auto* const derived = reinterpret_cast<const char*>(secret.value().data());
    tell_all_forms(told, "derived: " + name, {derived, net::tls::secret_bytes});
  }
}

/// The files of two keys, and what to look for.
struct Keys {
  Keys() {
    const pid_t maker = ::fork();
    if (maker == 0) {
      make_keys(folder.path());
      ::_exit(0);
    }
    int status = -1;
    REQUIRE(::waitpid(maker, &status, 0) == maker);
    REQUIRE(status == 0);
    std::ifstream told(folder / "told");
    for (std::string line; std::getline(told, line);) {
      const auto space = line.rfind(' ');
      std::string masked;
      for (std::size_t at = space + 1; at + 1 < line.size(); at += 2) {
        masked += static_cast<char>(std::stoul(line.substr(at, 2), nullptr, 16));
      }
      needles.add(line.substr(0, space), masked);
    }
  }

  StoreOptions options(const std::string& file) const {
    StoreOptions options;
    options.credential_file = folder / file;
    options.server_name = server_name;
    return options;
  }

  TemporaryFolder folder;
  SecretNeedles needles;
};

Names without_those_of(const Names& names, std::string_view key) {
  Names left;
  for (const std::string& name : names) {
    if (name.find(key) == name.npos) left.insert(name);
  }
  return left;
}

std::string listed(const Names& names) {
  std::string all;
  for (const std::string& name : names) all += name + "; ";
  return all;
}

/// What is left when threads that end meanwhile have let go what they had.
template <class Look>
std::string left_at_last(const Look& look) {
  Names left;
  holds_soon([&] {
    left = look();
    return left.empty();
  });
  return listed(left);
}

void use(Store& store, const std::string& name) {
  REQUIRE(store.set(name, "value").has_value());
  auto group = must(StatelessProcessGroup::create(store, name, 0, 1));
  must(group.barrier());
}

// What sanitizers keep of memory that is let go cannot be wiped there.
TEST_CASE("memory has a key no longer than its credential or its store is there" *
          doctest::skip(MUSTER_TEST_HAS_ASAN || MUSTER_TEST_HAS_TSAN)) {
  const Keys keys;
  const auto look = [&] { return keys.needles.find_in_own_memory(); };
  REQUIRE(look().empty());
  ServerOptions options;
  options.session_timeout = std::chrono::seconds(5);  // of one whose key is refused
  options.credentials_file = keys.folder / "both";
  options.server_name = server_name;
  {
    Server server = start_disturbed_server(std::move(options));
    const std::string address = server.addresses().front();
    {
      auto stays = must(Store::connect(address, keys.options("stays.own")));
      auto goes = must(Store::connect(address, keys.options("goes.own")));
      use(stays, "stays");
      use(goes, "goes");
      // Of what is there some is found, so the rest would be.
      const Names there = look();
      for (const char* const name : {"stays", "goes", "derived: stays", "derived: goes"}) {
        CHECK_MESSAGE(there.count(name) == 1, name);
      }
      // OpenSSL has the derived ones in its own memory, as long as a connection is there.
      for (const std::string& name : keys.needles.find_in_own_dump()) {
        CHECK_MESSAGE(name.rfind("derived: ", 0) == 0, name);
      }
      std::filesystem::rename(keys.folder / "stays", keys.folder / "both");
      CHECK(must(server.reload_credentials()).removed == std::vector<std::string>{"job/goes"});
      CHECK_FALSE(goes.set("k", "v").has_value());
      goes.close();
      stays.close();
    }
    CHECK(left_at_last([&] { return without_those_of(look(), "stays"); }) == "");
    CHECK(look().count("stays") == 1);
  }
  CHECK(left_at_last(look) == "");
}

/// All that is logged, at every level.
class Heard {
 public:
  Logger logger() {
    return [this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      text_.append(line).append("\n");
    };
  }
  void add(const Error& error) {
    const std::lock_guard lock(mutex_);
    text_ += error.message() + "\n" + error.detail + "\n";
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// What musterctl prints of a server that knows its user.
std::string printed(const std::string& address, std::vector<std::string> arguments) {
  Process::Options options;
  options.command = std::move(arguments);
  options.command.insert(options.command.begin(), std::getenv("MUSTERCTL"));
  options.environment = {{"MUSTER_SERVER", address}};
  Process process(options);
  std::string output = process.read_output();
  CHECK_MESSAGE(process.wait().exit_code == 0, process.read_errors());
  return output;
}

TEST_CASE("no log line, no error and no answer has a key") {
  const Keys keys;
  write_line(keys.folder / "both",
             "unix:uid=" + std::to_string(::geteuid()) + " * admin as=operator\n");
  Heard heard;
  ServerOptions options;
  options.session_timeout = std::chrono::seconds(5);
  options.listen = {"127.0.0.1:0", "unix:" + (keys.folder / "socket")};
  options.credentials_file = keys.folder / "both";
  options.server_name = server_name;
  options.logger = heard.logger();
  Server server = start_disturbed_server(options);
  const std::string address = server.addresses().front();
  const auto with_log = [&](const std::string& file) {
    StoreOptions of = keys.options(file);
    of.logger = heard.logger();
    return of;
  };
  auto stays = must(Store::connect(address, with_log("stays.own")));
  auto goes = must(Store::connect(address, with_log("goes.own")));
  auto group = must(StatelessProcessGroup::create(stays, "group", 0, 1));
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"status", "--json"},
                                             {"sessions", "--json"},
                                             {"groups", "--json"},
                                             {"namespaces", "--json"},
                                             {"whoami", "--json"}}) {
    const std::string told = printed(server.addresses().back(), command);
    CHECK_FALSE(told.empty());
    CHECK(listed(keys.needles.find_in(told)) == "");
  }
  heard.add(must_fail(Store::connect(address, with_log("stays.wrong"))));
  auto elsewhere = with_log("stays.own");
  elsewhere.server_name = "elsewhere";
  heard.add(must_fail(Store::connect(address, elsewhere)));
  options.credentials_file = keys.folder / "goes.wrong";
  heard.add(must_fail(Server::start(options)));
  std::filesystem::rename(keys.folder / "goes.wrong", keys.folder / "both");
  heard.add(must_fail(server.reload_credentials()));
  std::filesystem::rename(keys.folder / "stays", keys.folder / "both");
  must(server.reload_credentials());
  heard.add(must_fail(goes.set("k", "v")));
  heard.add(must_fail(Store::connect(address, with_log("goes.own"))));
  const std::string text = heard.text();
  CHECK(text.find("not admitted: nobody has the key") != text.npos);
  CHECK(listed(keys.needles.find_in(text)) == "");
  // It would be found.
  std::string line;
  std::getline(std::ifstream(keys.folder / "stays.own"), line);
  CHECK(listed(keys.needles.find_in(text + line)) == "stays as base64; ");
}

}  // namespace
}  // namespace muster::test
