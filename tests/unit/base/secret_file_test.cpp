#include "base/secret/secret_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <doctest/doctest.h>

#include "support/temporary_folder.h"

namespace {

using muster::ErrorCode;
using muster::base::read_secret_file;
using muster::base::stamp_of;

struct Folder {
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    const std::string file = folder / name;
    std::ofstream(file) << text;
    REQUIRE(::chmod(file.c_str(), mode) == 0);
    return file;
  }

  muster::test::TemporaryFolder folder;
  std::string path = folder.path();
};

}  // namespace

TEST_CASE("a file of this user that nobody else can read is read whole") {
  const Folder folder;
  const std::string file = folder.write("key", "secret\n");
  CHECK(read_secret_file(file, 7).value().text() == "secret\n");
  CHECK(read_secret_file(folder.write("empty", ""), 7).value().text().empty());
  CHECK(read_secret_file(folder.write("group", "secret", 0440), 7).value().text() == "secret");
  CHECK(read_secret_file(file, 6).error().code == ErrorCode::too_large);
  CHECK(read_secret_file(file, 6).error().limit == 6);
}

TEST_CASE("a link to a file is followed, as mounts of secrets have it") {
  const Folder folder;
  const std::string file = folder.write("data", "one");
  const std::string link = folder.path + "/link";
  std::filesystem::create_symlink("data", link);
  CHECK(read_secret_file(link, 10).value().text() == "one");
  CHECK(stamp_of(link) == stamp_of(file));
}

TEST_CASE("a file that others can read or change is refused, and what is no file") {
  const Folder folder;
  for (const mode_t mode : {0604U, 0602U, 0601U, 0620U, 0660U, 0666U, 0777U}) {
    CAPTURE(mode);
    const auto read = read_secret_file(folder.write("key", "secret", mode), 100);
    CHECK(read.error().code == ErrorCode::invalid_argument);
    CHECK(read.error().detail.find("secret\n") == std::string::npos);
  }
  CHECK(read_secret_file(folder.path, 100).error().code == ErrorCode::invalid_argument);
  const std::string pipe = folder.path + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_secret_file(pipe, 100).error().code == ErrorCode::invalid_argument);
  CHECK(read_secret_file(folder.path + "/none", 100).error().code == ErrorCode::invalid_argument);
  if (::geteuid() != 0) return;
  const std::string file = folder.write("others", "secret");
  REQUIRE(::chown(file.c_str(), 12345, 12345) == 0);
  CHECK(read_secret_file(file, 100).error().code == ErrorCode::invalid_argument);
}

TEST_CASE("a stamp changes with the file, its content and its mode") {
  const Folder folder;
  CHECK_FALSE(stamp_of(folder.path + "/none").has_value());
  const std::string file = folder.write("key", "one");
  const auto first = stamp_of(file);
  CHECK(stamp_of(file) == first);
  folder.write("next", "one");
  std::filesystem::rename(folder.path + "/next", file);
  const auto second = stamp_of(file);
  CHECK(second != first);
  std::ofstream(file, std::ios::app) << "x";
  CHECK(stamp_of(file) != second);
}
