#include "wire/request.h"

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

template <class Body>
void get_body(Reader& reader, RequestBody& into) {
  Decoder decoder(reader);
  fields(decoder, into.emplace<Body>());
}

using GetBody = void (*)(Reader&, RequestBody&);

GetBody decoder_of(Operation operation) {
  switch (operation) {
    case Operation::set: return get_body<Set>;
    case Operation::get: return get_body<Get>;
    case Operation::take: return get_body<Take>;
    case Operation::add: return get_body<Add>;
    case Operation::compare_set: return get_body<CompareSet>;
    case Operation::append: return get_body<Append>;
    case Operation::remove: return get_body<Remove>;
    case Operation::exists: return get_body<Exists>;
    case Operation::wait: return get_body<Wait>;
    case Operation::multi_get: return get_body<MultiGet>;
    case Operation::multi_set: return get_body<MultiSet>;
    case Operation::list: return get_body<List>;
    case Operation::touch: return get_body<Touch>;
    case Operation::join: return get_body<Join>;
    case Operation::leave: return get_body<Leave>;
    case Operation::regroup: return get_body<Regroup>;
    case Operation::members: return get_body<Members>;
    case Operation::report_dead: return get_body<ReportDead>;
    case Operation::cancel_regroup: return get_body<CancelRegroup>;
    case Operation::collective: return get_body<CollectiveCall>;
    case Operation::cancel_round: return get_body<CancelRound>;
    case Operation::send: return get_body<Send>;
    case Operation::receive: return get_body<Receive>;
    case Operation::expire_data: return get_body<ExpireData>;
    case Operation::recover: return get_body<Recover>;
    case Operation::status: return get_body<Status>;
    case Operation::sessions: return get_body<Sessions>;
    case Operation::groups: return get_body<Groups>;
    case Operation::inspect_group: return get_body<InspectGroup>;
    case Operation::waiters: return get_body<Waiters>;
  }
  return nullptr;
}

struct OperationOf {
  Operation operator()(const Set&) const { return Operation::set; }
  Operation operator()(const Get&) const { return Operation::get; }
  Operation operator()(const Take&) const { return Operation::take; }
  Operation operator()(const Add&) const { return Operation::add; }
  Operation operator()(const CompareSet&) const { return Operation::compare_set; }
  Operation operator()(const Append&) const { return Operation::append; }
  Operation operator()(const Remove&) const { return Operation::remove; }
  Operation operator()(const Exists&) const { return Operation::exists; }
  Operation operator()(const Wait&) const { return Operation::wait; }
  Operation operator()(const MultiGet&) const { return Operation::multi_get; }
  Operation operator()(const MultiSet&) const { return Operation::multi_set; }
  Operation operator()(const List&) const { return Operation::list; }
  Operation operator()(const Touch&) const { return Operation::touch; }
  Operation operator()(const Join&) const { return Operation::join; }
  Operation operator()(const Leave&) const { return Operation::leave; }
  Operation operator()(const Regroup&) const { return Operation::regroup; }
  Operation operator()(const Members&) const { return Operation::members; }
  Operation operator()(const ReportDead&) const { return Operation::report_dead; }
  Operation operator()(const CancelRegroup&) const { return Operation::cancel_regroup; }
  Operation operator()(const CollectiveCall&) const { return Operation::collective; }
  Operation operator()(const CancelRound&) const { return Operation::cancel_round; }
  Operation operator()(const Send&) const { return Operation::send; }
  Operation operator()(const Receive&) const { return Operation::receive; }
  Operation operator()(const ExpireData&) const { return Operation::expire_data; }
  Operation operator()(const Recover&) const { return Operation::recover; }
  Operation operator()(const Status&) const { return Operation::status; }
  Operation operator()(const Sessions&) const { return Operation::sessions; }
  Operation operator()(const Groups&) const { return Operation::groups; }
  Operation operator()(const InspectGroup&) const { return Operation::inspect_group; }
  Operation operator()(const Waiters&) const { return Operation::waiters; }
};

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

Operation operation_of(const RequestBody& body) { return std::visit(OperationOf{}, body); }

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
  const auto operation = static_cast<Operation>(frame.header.code);
  const GetBody get_body_of_operation = decoder_of(operation);
  if (get_body_of_operation == nullptr) {
    return failure(ErrorCode::unsupported,
                   "operation " + std::to_string(frame.header.code) + " is not known here");
  }
  Reader reader(frame.body);
  request.id = frame.header.id;
  request.timeout = duration_from_wire(reader.u64(), base::timeout_max);
  get_ids(reader, request.acknowledged);
  get_body_of_operation(reader, request.body);
  skip_optional_fields(reader);
  if (!reader.ok() || !within_limits(request.body)) {
    return protocol_error("the bytes are no " + std::string(name_of(operation)) + " request");
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
    default: return protocol_error("the frame carries no request ids");
  }
  get_ids(reader, request_ids);
  if (frame.header.type != FrameType::request) skip_optional_fields(reader);
  if (!reader.ok()) return protocol_error("the bytes are no list of request ids");
  return {};
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
