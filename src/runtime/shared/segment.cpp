#include "runtime/shared/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "runtime/shared/file_error.h"

namespace muster::runtime {

Result<SharedSegment> SharedSegment::create(const std::string& folder, std::string_view purpose,
                                            std::uint64_t bytes) {
  auto file = NewFile::create(folder, purpose);
  if (!file) return std::move(file).error();
  if (auto reserved = file->reserve(bytes); !reserved) return std::move(reserved).error();
  return map(*std::move(file));
}

Result<SharedSegment> SharedSegment::map(NewFile file) {
  SharedSegment segment;
  segment.name_ = file.name();
  segment.size_ = file.size();
  auto mapped = segment.map_file(file.descriptor(), PROT_READ | PROT_WRITE);
  if (!mapped) return std::move(mapped).error();
  segment.file_ = std::move(file);
  return segment;
}

Result<SharedSegment> SharedSegment::open(const std::string& folder, std::string_view name,
                                          std::uint64_t bytes, Access access) {
  SharedSegment segment;
  segment.name_ = name;
  segment.size_ = bytes;
  const std::string path = folder + "/" + segment.name_;
  if (name.find('/') != std::string_view::npos)
    return base::failure(ErrorCode::invalid_argument, "'" + segment.name_ + "' is no file's name");
  const int mode = access == Access::read_only ? O_RDONLY : O_RDWR;
  const base::FileHandle file(
      ::open(path.c_str(), mode | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) {
    const int number = errno;
    Error error = file_failure("'" + path + "' cannot be opened", number);
    if (number == ENOENT) error.code = ErrorCode::not_found;
    return error;
  }
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return file_failure("'" + path + "' cannot be read", errno);
  if (!S_ISREG(found.st_mode) || found.st_uid != ::geteuid())
    return base::failure(ErrorCode::codec_failure, "'" + path + "' is no file of this user");
  if (static_cast<std::uint64_t>(found.st_size) != bytes) {
    return base::failure(ErrorCode::codec_failure, "'" + path + "' has " +
                                                       std::to_string(found.st_size) +
                                                       " bytes, not " + std::to_string(bytes));
  }
  auto mapped = segment.map_file(file.get(),
                                 access == Access::read_only ? PROT_READ : PROT_READ | PROT_WRITE);
  if (!mapped) return std::move(mapped).error();
  return segment;
}

SharedSegment::~SharedSegment() { unmap(); }

SharedSegment::SharedSegment(SharedSegment&& other) noexcept { *this = std::move(other); }

SharedSegment& SharedSegment::operator=(SharedSegment&& other) noexcept {
  if (this == &other) return *this;
  unmap();
  name_ = std::move(other.name_);
  data_ = std::exchange(other.data_, nullptr);
  size_ = std::exchange(other.size_, 0);
  file_ = std::move(other.file_);
  return *this;
}

Result<void> SharedSegment::map_file(int descriptor, int protection) {
  if (size_ == 0) return {};
  void* const begin = ::mmap(nullptr, size_, protection, MAP_SHARED, descriptor, 0);
  if (begin == MAP_FAILED) {
    return file_failure("no memory to map '" + name_ + "' of " + std::to_string(size_) + " bytes",
                        errno);
  }
  data_ = static_cast<char*>(begin);
  return {};
}

void SharedSegment::unmap() {
  if (data_ != nullptr) ::munmap(data_, size_);
  data_ = nullptr;
}

}  // namespace muster::runtime
