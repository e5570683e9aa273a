#include "runtime/shared/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <utility>

#include "runtime/shared/file_error.h"
#include "runtime/shared/new_file.h"

// The life of a reading: the file is opened, its header says whether it is of the generation that
// is wanted, and only then is the rest read, into memory: a mapping of a file that is cut meanwhile
// would end the process by SIGBUS. A file that was replaced at an NFS server may be stale or look
// damaged, so it is opened again; one that is damaged is so the second time.

namespace muster::runtime {

namespace {

struct FileState {
  dev_t device;
  ino_t number;
  off_t size;
  timespec changed;

  friend bool operator==(const FileState& a, const FileState& b) {
    return a.device == b.device && a.number == b.number && a.size == b.size &&
           a.changed.tv_sec == b.changed.tv_sec && a.changed.tv_nsec == b.changed.tv_nsec;
  }
};

/// One file that is open.
class BundleFile {
 public:
  static Result<BundleFile> open(const std::string& path) {
    BundleFile file;
    file.descriptor_ =
        base::FileHandle(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    const int number = errno;
    if (!file.descriptor_) {
      Error error = file_failure("'" + path + "' cannot be opened", number);
      if (number == ENOENT) error.code = ErrorCode::not_found;
      return error;
    }
    struct stat found {};
    if (::fstat(file.descriptor_.get(), &found) != 0)
      return file_failure("'" + path + "' cannot be read", errno);
    file.path_ = path;
    file.is_regular_ = S_ISREG(found.st_mode);
    file.identity_ = {found.st_dev, found.st_ino, found.st_size, found.st_mtim};
    return file;
  }

  const FileState& identity() const { return identity_; }

  Result<LoadedBundle> load(GenerationRange generations) const {
    if (!is_regular_) return damaged("it is no regular file");
    const auto bytes = static_cast<std::uint64_t>(identity_.size);
    std::string head(bundle_header_bytes, '\0');
    if (auto read = read_at(0, head.data(), head.size()); !read) return std::move(read).error();
    const auto header = decode_bundle_header(head);
    if (!header) return damaged(header.error().detail);
    if (header->generation < generations.min || header->generation > generations.max) {
      return base::failure(ErrorCode::not_found, "'" + path_ + "' is of generation " +
                                                     std::to_string(header->generation) +
                                                     ", which is not one that was asked for");
    }
    // Before there is memory for what a damaged file claims.
    if (header->bytes != bytes)
      return damaged("it has " + std::to_string(bytes) + " bytes, but was written with " +
                     std::to_string(header->bytes));
    auto memory = Tensor::make(dtype::uint8, {static_cast<std::int64_t>(bytes)});
    if (!memory) return std::move(memory).error();
    char* const data = static_cast<char*>(memory->view().data);
    if (auto read = read_at(0, data, bytes); !read) return std::move(read).error();
    auto bundle = decode_bundle(data, bytes, BundleCheck::checksum);
    if (!bundle) return damaged(bundle.error().detail);
    return LoadedBundle{*std::move(memory), *std::move(bundle)};
  }

 private:
  Error damaged(const std::string& why) const {
    return base::failure(ErrorCode::codec_failure, "'" + path_ + "': " + why);
  }

  Result<void> read_at(std::uint64_t offset, char* data, std::uint64_t bytes) const {
    while (bytes > 0) {
      const ssize_t count = ::pread(descriptor_.get(), data, bytes, static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return file_failure("'" + path_ + "' cannot be read", errno);
      if (count == 0) return damaged("it is cut off");
      data += count;
      offset += static_cast<std::uint64_t>(count);
      bytes -= static_cast<std::uint64_t>(count);
    }
    return {};
  }

  std::string path_;
  base::FileHandle descriptor_;
  bool is_regular_ = false;
  FileState identity_{};
};

}  // namespace

Result<void> make_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!failed || std::filesystem::is_directory(folder)) return {};
  return file_failure("the folder '" + folder + "' cannot be made", failed.value());
}

void refresh_folder(const std::string& folder) {
  DIR* const entries = ::opendir(folder.c_str());
  if (entries == nullptr) return;
  static_cast<void>(::readdir(entries));
  ::closedir(entries);
}

Result<LoadedBundle> load_bundle(const std::string& folder, const std::string& name,
                                 GenerationRange generations) {
  constexpr int tries_max = 16;
  std::optional<FileState> damaged;
  for (int tries = 1;; ++tries) {
    const auto file = BundleFile::open(folder + "/" + name);
    auto loaded = file ? file->load(generations) : Result<LoadedBundle>(file.error());
    if (loaded || tries == tries_max) return loaded;
    if (loaded.error().code == ErrorCode::codec_failure) {
      if (damaged && *damaged == file->identity()) return loaded;
      damaged = file->identity();
    } else if (loaded.error().code != ErrorCode::unavailable) {
      return loaded;
    }
    refresh_folder(folder);
  }
}

}  // namespace muster::runtime
