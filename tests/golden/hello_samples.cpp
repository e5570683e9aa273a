#include "builders.h"
#include "wire/hello.h"

namespace muster::golden {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t incarnation = 0x1122334455667788;
constexpr std::array role_names{"client", "observer", "supervisor"};

wire::ResumeToken sample_token() {
  wire::ResumeToken token;
  for (std::size_t index = 0; index < token.bytes.size(); ++index) {
    token.bytes[index] = static_cast<std::uint8_t>(0xa0 + index);
  }
  return token;
}

template <std::size_t size>
std::string_view view(const std::array<std::uint8_t, size>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), size};
}

std::string padded(std::string text, std::size_t bytes) {
  text.resize(bytes, '\0');
  return text;
}

Sample client_sample(std::string name, std::string about, const wire::ClientHello& hello) {
  Sample sample;
  sample.name = std::move(name);
  sample.about = std::move(about);
  sample.framed = false;
  wire::append_client_hello(sample.bytes, hello);
  Annotator& at = sample.annotated;
  at.raw("magic", view(wire::magic));
  at.number("version_min", hello.version_min, 2);
  at.number("version_max", hello.version_max, 2);
  at.number("role", static_cast<std::uint64_t>(hello.role), 1,
            role_names[static_cast<std::size_t>(hello.role)]);
  at.number("auth_method", hello.auth_method, 1, "none");
  at.number("reserved", 0, 2);
  at.note("incarnation", hello.incarnation);
  at.note("session_id", hello.session_id);
  at.raw("token", view(hello.token.bytes));
  at.raw("auth_nonce", view(hello.auth_nonce));
  at.note("process.id", hello.process.id);
  at.note("process.pid", hello.process.pid);
  at.number("host length", hello.process.host.size(), 1);
  at.number("label length", hello.process.label.size(), 1);
  at.number("namespace length", hello.name_space.size(), 1);
  at.number("reserved", 0, 1);
  at.raw("host", padded(hello.process.host, 64));
  at.raw("label", padded(hello.process.label, 64));
  at.raw("namespace", padded(hello.name_space, 64));
  at.number("has idle_lifetime", hello.idle_lifetime ? 1 : 0, 1);
  at.number("run length", hello.run.size(), 1);
  at.number("reserved", 0, 2);
  at.duration("idle_lifetime", hello.idle_lifetime.value_or(Duration::zero()), 8);
  at.raw("run", padded(hello.run, 64));
  at.raw("reserved", padded("", 140));
  sample.again = client_hello_again;
  return sample;
}

void annotate_terms(Annotator& at, const wire::ServerHello& hello) {
  const wire::ServerLimits& limits = hello.limits;
  at.note("key_bytes_max", limits.key_bytes_max);
  at.note("value_bytes_max", limits.value_bytes_max);
  at.note("round_bytes_max", limits.round_bytes_max);
  at.note("keys_per_operation_max", limits.keys_per_operation_max);
  at.note("cached_results_max", limits.cached_results_max);
  at.note("parked_waits_max", limits.parked_waits_max);
  at.note("world_size_max", limits.world_size_max);
  at.duration("heartbeat", limits.heartbeat, 4);
  at.duration("session_timeout", limits.session_timeout, 4);
  at.duration("grace", limits.grace, 4);
  at.duration("slack", limits.slack, 4);
  at.note("hosting_process.id", hello.hosting_process.id);
  at.note("hosting_process.pid", hello.hosting_process.pid);
  if (hello.hosting_rank < 0) {
    at.raw("hosting_rank (-1: none)", "\xff\xff\xff\xff");
  } else {
    at.number("hosting_rank", static_cast<std::uint64_t>(hello.hosting_rank), 4);
  }
  at.number("hosting_process.host length", hello.hosting_process.host.size(), 1);
  at.raw("hosting_process.host", padded(hello.hosting_process.host, 64));
  at.note("cached_result_bytes_max", limits.cached_result_bytes_max);
  at.number("gives_back", hello.gives_back ? 1 : 0, 1);
  at.raw("reserved", padded("", 2));
}

Sample server_sample(std::string name, std::string about, const wire::ServerHello& hello) {
  Sample sample;
  sample.name = std::move(name);
  sample.about = std::move(about);
  sample.framed = false;
  wire::append_server_hello(sample.bytes, hello);
  Annotator& at = sample.annotated;
  at.raw("magic", view(wire::magic));
  at.number("version", hello.version, 2);
  at.number("status", hello.status, 2,
            hello.status == 0 ? "ok" : muster::name_of(static_cast<ErrorCode>(hello.status)));
  at.number("auth_method", hello.auth_method, 1, "none");
  at.number("resumed", hello.resumed ? 1 : 0, 1);
  at.number("reserved", 0, 2);
  at.note("incarnation", hello.incarnation);
  at.note("session_id", hello.session_id);
  at.raw("token", view(hello.token.bytes));
  if (hello.status == 0) {
    annotate_terms(at, hello);
  } else {
    at.number("detail length", hello.detail.size(), 1);
    at.raw("detail", padded(hello.detail, 143));
  }
  at.raw("auth_nonce", view(hello.auth_nonce));
  at.raw("auth_proof", view(hello.auth_proof));
  sample.again = server_hello_again;
  return sample;
}

}  // namespace

std::vector<Sample> hello_samples() {
  wire::ClientHello first;
  first.process = sample_process();
  first.name_space = "job-42";
  wire::ClientHello resuming = first;
  resuming.incarnation = incarnation;
  resuming.session_id = 9;
  resuming.token = sample_token();

  wire::ClientHello of_run = first;
  of_run.idle_lifetime = 30s;
  of_run.run = "restart-2";

  wire::ServerHello accepting;
  accepting.incarnation = incarnation;
  accepting.session_id = 9;
  accepting.token = sample_token();
  wire::ServerHello embedded = accepting;
  embedded.resumed = true;
  embedded.hosting_process = sample_process();
  embedded.hosting_process.label.clear();
  embedded.hosting_rank = 0;
  wire::ServerHello refusing;
  refusing.incarnation = incarnation;
  refusing.status = static_cast<std::uint16_t>(ErrorCode::fenced);
  refusing.detail = "declared dead by the supervisor on b1";
  return {
      client_sample("hello_client", "The first bytes of a connection: begin a session.", first),
      client_sample("hello_client_resume", "The first bytes of a connection: resume a session.",
                    resuming),
      client_sample("hello_client_run", "The same of a process that says which run it is of.",
                    of_run),
      server_sample("hello_server", "The answer of musterd to a new session.", accepting),
      server_sample("hello_server_embedded", "The answer of an embedded server to a resume.",
                    embedded),
      server_sample("hello_server_refusing", "The answer of a server that closes next.", refusing),
  };
}

}  // namespace muster::golden
