#include "wire/hello.h"

#include <algorithm>

#include "wire/codec.h"
#include "wire/failure.h"
#include "wire/foreign.h"
#include "wire/request.h"

namespace muster::wire {
namespace {

constexpr Duration idle_lifetime_max = std::chrono::hours(24 * 365);

std::string_view view_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

template <std::size_t size>
void put(Writer& writer, const std::array<std::uint8_t, size>& bytes) {
  writer.raw(view_of(bytes.data(), size));
}

template <std::size_t size>
void get(Reader& reader, std::array<std::uint8_t, size>& bytes) {
  for (std::uint8_t& byte : bytes) byte = reader.u8();
}

/// As many bytes of `name` as fit, then zeros up to `field_bytes`.
void put_name(Writer& writer, std::string_view name, std::size_t field_bytes) {
  const std::string_view cut = name.substr(0, field_bytes);
  writer.raw(cut);
  writer.raw(std::string(field_bytes - cut.size(), '\0'));
}

std::uint8_t size_of(std::string_view name, std::size_t field_bytes) {
  return static_cast<std::uint8_t>(std::min(name.size(), field_bytes));
}

std::string get_name(Reader& reader, std::size_t size, std::size_t field_bytes) {
  const std::string_view field = reader.raw(field_bytes);
  if (size > field.size()) {
    reader.fail();
    return {};
  }
  return std::string(field.substr(0, size));
}

std::uint32_t wire_short_duration(Duration duration) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(wire_duration(duration), UINT32_MAX));
}

Error no_common_version(std::uint64_t expected, std::uint64_t actual) {
  Error error = failure(ErrorCode::unsupported, "the other side speaks another protocol version");
  error.expected = expected;
  error.actual = actual;
  return error;
}

void put_limits(Writer& writer, const ServerLimits& limits) {
  writer.u32(limits.key_bytes_max);
  writer.u32(limits.value_bytes_max);
  writer.u64(limits.round_bytes_max);
  writer.u32(limits.keys_per_operation_max);
  writer.u32(limits.cached_results_max);
  writer.u32(limits.parked_waits_max);
  writer.u32(limits.world_size_max);
  writer.u32(wire_short_duration(limits.heartbeat));
  writer.u32(wire_short_duration(limits.session_timeout));
  writer.u32(wire_short_duration(limits.grace));
  writer.u32(wire_short_duration(limits.slack));
}

ServerLimits get_limits(Reader& reader) {
  ServerLimits limits;
  limits.key_bytes_max = reader.u32();
  limits.value_bytes_max = reader.u32();
  limits.round_bytes_max = reader.u64();
  limits.keys_per_operation_max = reader.u32();
  limits.cached_results_max = reader.u32();
  limits.parked_waits_max = reader.u32();
  limits.world_size_max = reader.u32();
  limits.heartbeat = Duration(reader.u32());
  limits.session_timeout = Duration(reader.u32());
  limits.grace = Duration(reader.u32());
  limits.slack = Duration(reader.u32());
  return limits;
}

/// Bytes 48 to 191 of an accepting hello: what the client has to know.
void put_terms(Writer& writer, const ServerHello& hello) {
  const ProcessInfo& host = hello.hosting_process;
  put_limits(writer, hello.limits);
  put(writer, host.id.bytes);
  writer.u32(host.pid);
  writer.i32(hello.hosting_rank);
  writer.u8(size_of(host.host, name_bytes_max));
  put_name(writer, host.host, name_bytes_max);
  writer.u32(hello.limits.cached_result_bytes_max);
  writer.u8(hello.gives_back ? 1 : 0);
  writer.u16(0);
}

void get_terms(Reader& reader, ServerHello& hello) {
  hello.limits = get_limits(reader);
  get(reader, hello.hosting_process.id.bytes);
  hello.hosting_process.pid = reader.u32();
  hello.hosting_rank = reader.i32();
  const std::uint8_t host_bytes = reader.u8();
  hello.hosting_process.host = get_name(reader, host_bytes, name_bytes_max);
  hello.limits.cached_result_bytes_max = reader.u32();
  hello.gives_back = reader.u8() != 0;
  reader.u16();
}

Result<void> check_start(std::string_view bytes, std::size_t size) {
  if (Result<void> start = check_magic(bytes); !start) return start;
  if (bytes.size() == size) return {};
  return protocol_error("the hello has " + std::to_string(bytes.size()) + " of its " +
                        std::to_string(size) + " bytes");
}

}  // namespace

Result<void> check_magic(std::string_view first_bytes) {
  const std::string_view start = first_bytes.substr(0, magic.size());
  if (start == view_of(magic.data(), start.size())) return {};
  const std::string_view other = foreign_protocol(first_bytes);
  if (other.empty()) return protocol_error("the other side does not speak Muster's protocol");
  return protocol_error("the other side seems to speak " + std::string(other) +
                        ", not Muster's protocol");
}

void append_client_hello(std::string& out, const ClientHello& hello) {
  const std::size_t end = out.size() + client_hello_bytes;
  Writer writer(out);
  put(writer, magic);
  writer.u16(hello.version_min);
  writer.u16(hello.version_max);
  writer.u8(static_cast<std::uint8_t>(hello.role));
  writer.u8(hello.auth_method);
  writer.u16(0);
  writer.u64(hello.incarnation);
  writer.u64(hello.session_id);
  put(writer, hello.token.bytes);
  put(writer, hello.auth_nonce);
  put(writer, hello.process.id.bytes);
  writer.u32(hello.process.pid);
  writer.u8(size_of(hello.process.host, name_bytes_max));
  writer.u8(size_of(hello.process.label, name_bytes_max));
  writer.u8(size_of(hello.name_space, name_bytes_max));
  writer.u8(0);
  put_name(writer, hello.process.host, name_bytes_max);
  put_name(writer, hello.process.label, name_bytes_max);
  put_name(writer, hello.name_space, name_bytes_max);
  writer.u8(hello.idle_lifetime ? 1 : 0);
  writer.u8(size_of(hello.run, name_bytes_max));
  writer.u16(0);
  writer.u64(wire_duration(hello.idle_lifetime.value_or(Duration::zero())));
  put_name(writer, hello.run, name_bytes_max);
  out.resize(end, '\0');
}

Result<ClientHello> decode_client_hello(std::string_view bytes) {
  if (Result<void> start = check_start(bytes, client_hello_bytes); !start) {
    return std::move(start).error();
  }
  Reader reader(bytes.substr(magic.size()));
  ClientHello hello;
  hello.version_min = reader.u16();
  hello.version_max = reader.u16();
  if (hello.version_min > hello.version_max) {
    return protocol_error("the hello's oldest version is above its newest");
  }
  if (hello.version_min > protocol_version) {
    return no_common_version(protocol_version, hello.version_min);
  }
  if (hello.version_max < protocol_version) {
    return no_common_version(protocol_version, hello.version_max);
  }
  const std::uint8_t role = reader.u8();
  if (role > static_cast<std::uint8_t>(last_role)) {
    return failure(ErrorCode::unsupported, "role " + std::to_string(role) + " is not known here");
  }
  hello.role = static_cast<Role>(role);
  hello.auth_method = reader.u8();
  reader.u16();
  hello.incarnation = reader.u64();
  hello.session_id = reader.u64();
  get(reader, hello.token.bytes);
  get(reader, hello.auth_nonce);
  get(reader, hello.process.id.bytes);
  hello.process.pid = reader.u32();
  const std::uint8_t host_bytes = reader.u8();
  const std::uint8_t label_bytes = reader.u8();
  const std::uint8_t name_space_bytes = reader.u8();
  reader.u8();
  hello.process.host = get_name(reader, host_bytes, name_bytes_max);
  hello.process.label = get_name(reader, label_bytes, name_bytes_max);
  hello.name_space = get_name(reader, name_space_bytes, name_bytes_max);
  const bool has_idle_lifetime = reader.u8() != 0;
  const std::uint8_t run_bytes = reader.u8();
  reader.u16();
  const Duration idle_lifetime = duration_from_wire(reader.u64(), idle_lifetime_max);
  if (has_idle_lifetime) hello.idle_lifetime = idle_lifetime;
  hello.run = get_name(reader, run_bytes, name_bytes_max);
  if (!reader.ok()) return protocol_error("a name in the hello is longer than its field");
  return hello;
}

void append_server_hello(std::string& out, const ServerHello& hello) {
  Writer writer(out);
  put(writer, magic);
  writer.u16(hello.version);
  writer.u16(hello.status);
  writer.u8(hello.auth_method);
  writer.u8(hello.resumed ? 1 : 0);
  writer.u16(0);
  writer.u64(hello.incarnation);
  writer.u64(hello.session_id);
  put(writer, hello.token.bytes);
  if (hello.status == 0) {
    put_terms(writer, hello);
  } else {
    writer.u8(size_of(hello.detail, refusal_bytes_max));
    put_name(writer, hello.detail, refusal_bytes_max);
  }
  put(writer, hello.auth_nonce);
  put(writer, hello.auth_proof);
}

Result<ServerHello> decode_server_hello(std::string_view bytes) {
  if (Result<void> start = check_start(bytes, server_hello_bytes); !start) {
    return std::move(start).error();
  }
  Reader reader(bytes.substr(magic.size()));
  ServerHello hello;
  hello.version = reader.u16();
  hello.status = reader.u16();
  if (hello.status == 0 && hello.version != protocol_version) {
    return no_common_version(protocol_version, hello.version);
  }
  hello.auth_method = reader.u8();
  const std::uint8_t resumed = reader.u8();
  if (resumed > 1) return protocol_error("the hello's `resumed` is neither 0 nor 1");
  hello.resumed = resumed == 1;
  reader.u16();
  hello.incarnation = reader.u64();
  hello.session_id = reader.u64();
  get(reader, hello.token.bytes);
  if (hello.status == 0) {
    get_terms(reader, hello);
  } else {
    const std::uint8_t detail_bytes = reader.u8();
    hello.detail = get_name(reader, detail_bytes, refusal_bytes_max);
  }
  get(reader, hello.auth_nonce);
  get(reader, hello.auth_proof);
  if (!reader.ok()) return protocol_error("a text in the hello is longer than its field");
  if (hello.limits.heartbeat == Duration::zero() ||
      hello.limits.session_timeout < hello.limits.heartbeat) {
    return protocol_error("the hello asks for a heartbeat of zero or above the session timeout");
  }
  return hello;
}

}  // namespace muster::wire
