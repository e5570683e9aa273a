#include <limits>
#include <sstream>
#include <string>
#include <variant>

#include "fuzz.h"
#include "musterd/given.h"
#include "server/settings.h"

// musterd's configuration file: any text is refused with what is wrong, or gives settings that the
// server takes or refuses; those that it takes are such as clients can be told.

using namespace musterd;
using muster::fuzz::require;

namespace {

bool fits_into_hello(muster::Duration duration) {
  return duration >= muster::Duration::zero() &&
         duration.count() <= std::numeric_limits<std::uint32_t>::max();
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::istringstream text(std::string(reinterpret_cast<const char*>(data), size));
  const auto given = read_settings(text, "file");
  if (const auto* exit = std::get_if<Exit>(&given)) {
    require(exit->code == exit_usage && !exit->text.empty(), "it is said what is wrong");
    return 0;
  }
  const auto read = configuration_of(std::get<GivenByName>(given));
  if (const auto* exit = std::get_if<Exit>(&read)) {
    require(exit->code == exit_usage && !exit->text.empty(), "it is said what is wrong");
    return 0;
  }
  const auto& configuration = std::get<Configuration>(read);
  const auto settings = muster::server::make_settings(configuration.server);
  if (!settings) {
    require(settings.error().code == muster::ErrorCode::invalid_argument, "an option is wrong");
    return 0;
  }
  const muster::wire::ServerLimits& limits = settings->core.limits;
  require(fits_into_hello(limits.heartbeat) && fits_into_hello(limits.session_timeout) &&
              fits_into_hello(limits.grace) && fits_into_hello(limits.slack),
          "clients can be told the times");
  require(limits.heartbeat * 5 <= limits.session_timeout, "heartbeats are often enough");
  require(settings->core.namespace_memory_bytes_max <= settings->core.memory_bytes_max,
          "a namespace is within the server");
  return 0;
}
