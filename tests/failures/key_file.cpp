#include "failures/key_file.h"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "support/temporary_folder.h"

namespace muster::test {
namespace {

struct KeyFile {
  KeyFile() {
    std::ofstream(path) << "job/rank ZXhhbXBsZSAxLCBldmVyeWJvZHkga25vd3MgdGhpcy4= * all\n";
    ::chmod(path.c_str(), 0600);
    ::setenv("MUSTER_CREDENTIAL_FILE", path.c_str(), 1);
  }
  TemporaryFolder folder;
  std::string path = folder / "key";
};

}  // namespace

bool is_tls() { return std::getenv("MUSTER_TEST_TLS") != nullptr; }

const std::string& key_file() {
  static const std::string none;
  if (!is_tls()) return none;
  static const KeyFile file;
  return file.path;
}

}  // namespace muster::test
