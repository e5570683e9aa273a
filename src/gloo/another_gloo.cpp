#include "gloo/another_gloo.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace muster::gloo_internal {
namespace {

/// allreduce, which every Gloo since 2018 has.
constexpr const char* name_to_look_for = "_ZN4gloo9allreduceERKNS_16AllreduceOptionsE";
constexpr std::string_view own_library = "libgloo";
constexpr std::string_view own_version = ".so.0";

std::vector<std::string> objects() {
  std::vector<std::string> paths;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        static_cast<std::vector<std::string>*>(to)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

/// The object that defines the name, as one sees it who has that object's handle: it looks into
/// what the object needs, too. A program that only calls the function may seem to define it.
std::optional<std::string> definer(void* handle) {
  void* const place = ::dlsym(handle, name_to_look_for);
  Dl_info info{};
  void* entry = nullptr;
  if (place == nullptr || ::dladdr1(place, &info, &entry, RTLD_DL_SYMENT) == 0) return std::nullopt;
  const auto* const symbol = static_cast<const ElfW(Sym)*>(entry);
  if (symbol != nullptr && symbol->st_shndx == SHN_UNDEF) return std::nullopt;
  return info.dli_fname;
}

}  // namespace

bool is_own_gloo(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (name.substr(0, own_library.size()) != own_library) return false;
  name.remove_prefix(own_library.size());
  if (!name.empty() && name.front() == '-') {
    const auto is_digit = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); };
    constexpr std::size_t digits = 8;
    const std::string_view digest = name.substr(1, digits);
    if (digest.size() != digits || !std::all_of(digest.begin(), digest.end(), is_digit))
      return false;
    name.remove_prefix(1 + digits);
  }
  return name.substr(0, own_version.size()) == own_version;
}

std::optional<std::string> another_gloo() {
  for (const std::string& path : objects()) {
    // An empty path is that of the program itself.
    void* const handle = ::dlopen(path.empty() ? nullptr : path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    auto found = definer(handle);
    ::dlclose(handle);
    if (found && !is_own_gloo(*found)) return found;
  }
  return std::nullopt;
}

}  // namespace muster::gloo_internal
