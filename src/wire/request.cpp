#include "wire/request.h"

#include <array>
#include <tuple>
#include <type_traits>

#include "wire/codec.h"
#include "wire/failure.h"

namespace muster::wire {
namespace {

void put_ids(Writer& writer, const std::vector<std::uint64_t>& ids) {
  writer.u32(static_cast<std::uint32_t>(ids.size()));
  for (const std::uint64_t id : ids) writer.u64(id);
}

void get_ids(Reader& reader, std::vector<std::uint64_t>& ids) {
  std::uint32_t count = reader.count(item_bytes_min<std::uint64_t>);
  if (count > ids_per_frame_max) {
    reader.fail();
    count = 0;
  }
  ids.resize(count);
  for (std::uint64_t& id : ids) id = reader.u64();
}

using GetBody = void (*)(Reader&, RequestBody&);

/// Of one that is there already, every field is read anew, and its memory used again.
template <class Body>
void get_body(Reader& reader, RequestBody& into) {
  auto* body = std::get_if<Body>(&into);
  if (body == nullptr) body = &into.emplace<Body>();
  Decoder decoder(reader);
  fields(decoder, *body);
}

static_assert(every_request([]<class Body>(std::type_identity<Body>) {
                return HasFields<Decoder, Body> && HasFields<Encoder, const Body>;
              }),
              "the body of every request has its fields beside it, in wire/request_bodies.h");

/// By the indices of the table of operations.
constexpr auto body_getters = std::apply(
    []<class... Bodies, class... Replies>(const Row<Bodies, Replies>&...) {
      return std::array<GetBody, operations_count>{get_body<Bodies>...};
    },
    operation_table);

std::size_t begin_request(std::string& out, const Request& request, Operation operation) {
  FrameHeader header;
  header.type = FrameType::request;
  header.code = static_cast<std::uint16_t>(operation);
  header.id = request.id;
  const std::size_t begun_at = begin_frame(out, header);
  Writer writer(out);
  writer.u64(wire_duration(request.timeout));
  put_ids(writer, request.acknowledged);
  return begun_at;
}

bool within_limits(const RequestBody& body) {
  const auto* recover = std::get_if<Recover>(&body);
  return recover == nullptr || recover->streams.size() <= streams_per_recover_max;
}

}  // namespace

void append_operation(std::string& out, const RequestBody& body) {
  Encoder encoder(out);
  std::visit([&](const auto& operation) { fields(encoder, operation); }, body);
}

void append_request(std::string& out, const Request& request) {
  const std::size_t begun_at = begin_request(out, request, operation_of(request.body));
  append_operation(out, request.body);
  end_frame(out, begun_at);
}

void append_request(std::string& out, const Request& request, Operation operation,
                    std::string_view operation_fields) {
  const std::size_t begun_at = begin_request(out, request, operation);
  out.append(operation_fields);
  end_frame(out, begun_at);
}

Result<void> decode_request(const Frame& frame, Request& request) {
  if (frame.header.type != FrameType::request) return protocol_error("the frame is no request");
  if (frame.header.id == 0) return protocol_error("a request has the id 0");
  const auto index = find_operation(frame.header.code);
  if (!index) {
    return failure(ErrorCode::unsupported,
                   "operation " + std::to_string(frame.header.code) + " is not known here");
  }
  Reader reader(frame.body);
  request.id = frame.header.id;
  request.timeout = duration_from_wire(reader.u64(), base::timeout_max);
  get_ids(reader, request.acknowledged);
  body_getters[*index](reader, request.body);
  if (!reader.at_end()) skip_optional_fields(reader);
  if (!reader.ok() || !within_limits(request.body)) {
    return protocol_error("the bytes are no " + std::string(operation_facts[*index].name) +
                          " request");
  }
  return {};
}

void append_ids(std::string& out, FrameType type, std::uint64_t id,
                const std::vector<std::uint64_t>& request_ids) {
  FrameHeader header;
  header.type = type;
  header.id = id;
  const std::size_t begun_at = begin_frame(out, header);
  Writer writer(out);
  put_ids(writer, request_ids);
  end_frame(out, begun_at);
}

Result<void> decode_ids(const Frame& frame, std::vector<std::uint64_t>& request_ids) {
  Reader reader(frame.body);
  switch (frame.header.type) {
    case FrameType::request: reader.u64(); break;
    case FrameType::acknowledge:
    case FrameType::abandon:
    case FrameType::heartbeat: break;
    default: return protocol_error("frames of this type are sent by servers only");
  }
  get_ids(reader, request_ids);
  if (frame.header.type != FrameType::request) skip_optional_fields(reader);
  if (!reader.ok()) return protocol_error("the bytes are no list of request ids");
  return {};
}

void append_echo(std::string& out, const ResumeToken& token) {
  FrameHeader header;
  header.type = FrameType::echo;
  const std::size_t begun_at = begin_frame(out, header);
  Writer(out).raw({reinterpret_cast<const char*>(token.bytes.data()), token.bytes.size()});
  end_frame(out, begun_at);
}

Result<ResumeToken> decode_echo(const Frame& frame) {
  if (frame.header.type != FrameType::echo) return protocol_error("the frame is no echo");
  Reader reader(frame.body);
  ResumeToken token;
  for (std::uint8_t& byte : token.bytes) byte = reader.u8();
  skip_optional_fields(reader);
  if (!reader.ok()) return protocol_error("the bytes are no echo of a hello");
  return token;
}

void append_goodbye(std::string& out, std::string_view reason) {
  FrameHeader header;
  header.type = FrameType::goodbye;
  const std::size_t begun_at = begin_frame(out, header);
  Writer(out).bytes(reason);
  end_frame(out, begun_at);
}

Result<std::string_view> decode_goodbye(const Frame& frame) {
  if (frame.header.type != FrameType::goodbye) return protocol_error("the frame is no goodbye");
  Reader reader(frame.body);
  const std::string_view reason = reader.bytes();
  skip_optional_fields(reader);
  if (!reader.ok()) return protocol_error("the bytes are no goodbye");
  return reason;
}

}  // namespace muster::wire
