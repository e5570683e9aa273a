#include "json/fields.h"

#include <cstddef>
#include <cstdint>

#include "json/bytes.h"

namespace muster::json {

std::string text_of(const Json& document, int indent) {
  return printable_json(document.dump(indent, ' ', false, Json::error_handler_t::replace)) + '\n';
}

std::string line_of(const Json& document) {
  std::string line = text_of(document, -1);
  line.pop_back();
  return line;
}

void add_bytes(Json& json, const std::string& name, std::string_view bytes) {
  json[name] = bytes;
  if (!is_utf8(bytes)) json[name + "_base64"] = base64(bytes);
}

double seconds_of(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

Json json_of(const std::vector<RankRange>& ranks) {
  // The ranges are what a server has said. More ranks than this no group has.
  constexpr std::size_t ranks_max = std::size_t{1} << 17U;
  Json all = Json::array();
  for (const RankRange range : ranks) {
    for (std::int64_t rank = range.first; rank <= range.last; ++rank) {
      if (all.size() == ranks_max) return all;
      all.push_back(rank);
    }
  }
  return all;
}

void add_process(Json& json, const ProcessInfo& process) {
  add_bytes(json, "host", process.host);
  json["pid"] = process.pid;
  add_bytes(json, "label", process.label);
  json["process"] = to_string(process.id);
}

}  // namespace muster::json
