#include "base/secret/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/failure.h"
#include "base/file_handle.h"
#include "base/secret/unshown.h"

namespace muster::base {
namespace {

constexpr mode_t modes_refused = S_IWGRP | S_IRWXO;

FileStamp stamp_of_status(const struct stat& status) {
  constexpr std::int64_t ns_per_s = 1'000'000'000;
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          status.st_ctim.tv_sec * ns_per_s + status.st_ctim.tv_nsec};
}

Error refuse_file(ErrorCode code, const std::string& path, const std::string& why) {
  if (auto refused = refuse_secret("the path of a file", path))
    return failure(code, refused->detail + ". There is such a file: " + why);
  return failure(code, path + ": " + why);
}

Error refuse_by_errno(const std::string& path, int number) {
  if (auto refused = refuse_secret_path("the path of a file", path)) return *std::move(refused);
  const bool is_shortage =
      number == EMFILE || number == ENFILE || number == ENOMEM || number == EIO;
  const ErrorCode code = is_shortage ? ErrorCode::unavailable : ErrorCode::invalid_argument;
  return refuse_file(code, path, std::generic_category().message(number));
}

/// returns  what is wrong; empty: nothing
std::string objection(const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return "it is no regular file";
  if (status.st_uid != 0 && status.st_uid != ::geteuid()) {
    return "it belongs to another user (uid " + std::to_string(status.st_uid) +
           "), who could change it: it has to belong to this one, or to root";
  }
  if ((status.st_mode & modes_refused) != 0) {
    return "others can read or change it: chmod 600 (where a system gives it out as a secret: "
           "mode 0400 or 0440)";
  }
  return {};
}

}  // namespace

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return stamp_of_status(status);
}

FileStamps stamps_of(std::initializer_list<std::string> paths) {
  FileStamps stamps;
  for (const std::string& path : paths) {
    if (!path.empty()) stamps.push_back(stamp_of(path));
  }
  return stamps;
}

/// It is opened once, and what was opened is looked at: its name may lead elsewhere by then.
Result<SecretText> read_secret_file(const std::string& path, std::size_t bytes_max) {
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!file) return refuse_by_errno(path, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return refuse_by_errno(path, errno);
  const std::string wrong = objection(status);
  if (!wrong.empty()) return refuse_file(ErrorCode::invalid_argument, path, wrong);
  SecretText read(bytes_max + 1);
  std::size_t size = 0;
  while (size <= bytes_max) {
    const ssize_t count = ::read(file.get(), read.data() + size, bytes_max + 1 - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return refuse_by_errno(path, errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > bytes_max) {
    Error error = refuse_file(ErrorCode::too_large, path,
                              "it has more than " + std::to_string(bytes_max) + " bytes");
    error.limit = bytes_max;
    return error;
  }
  struct stat now {};
  if (::fstat(file.get(), &now) != 0) return refuse_by_errno(path, errno);
  if (stamp_of_status(now) != stamp_of_status(status)) {
    return refuse_file(ErrorCode::unavailable, path, "it was changed while it was read");
  }
  read.cut(size);
  return read;
}

}  // namespace muster::base
