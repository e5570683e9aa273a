// What is encoded here is the client's half of the work, or the server's for replies; it is decoded
// by the other.

#include <chrono>
#include <string>

#include "samples.h"
#include "wire/frame.h"
#include "wire/hello.h"
#include "wire/reply.h"
#include "wire/request.h"
#include "work.h"

namespace muster::bench {
namespace {

using namespace std::chrono_literals;

wire::Request request_of(wire::RequestBody body) {
  wire::Request request;
  request.id = 1;
  request.timeout = 5s;
  request.acknowledged = {7};
  request.body = std::move(body);
  return request;
}

void add_request(std::vector<Work>& work, const std::string& name, const wire::RequestBody& body) {
  work.push_back({"wire/encode " + name, [body](std::size_t) {
                    return [request = request_of(body), out = std::string()]() mutable {
                      out.clear();
                      wire::append_request(out, request);
                      use(out);
                    };
                  }});
  work.push_back({"wire/decode " + name, [body](std::size_t) {
                    std::string bytes;
                    wire::append_request(bytes, request_of(body));
                    return [bytes, request = wire::Request()]() mutable {
                      const auto frame = wire::cut_frame(bytes, frame_body_bytes_max);
                      auto read = wire::decode_request(**frame, request);
                      use(read);
                      use(request);
                    };
                  }});
}

template <class Reply>
void add_reply(std::vector<Work>& work, const std::string& name, const Reply& reply) {
  work.push_back({"wire/encode " + name, [reply](std::size_t) {
                    return [reply, out = std::string()]() mutable {
                      out.clear();
                      wire::append_body(out, reply);
                      use(out);
                    };
                  }});
  work.push_back({"wire/decode " + name, [reply](std::size_t) {
                    std::string bytes;
                    wire::append_body(bytes, reply);
                    return [bytes] {
                      auto decoded = wire::decode_body<Reply>(bytes);
                      use(decoded);
                    };
                  }});
}

void decode_hello(const std::string& bytes) {
  auto hello = wire::decode_client_hello(bytes);
  use(hello);
}

void add_ids(std::vector<Work>& work) {
  work.push_back({"wire/decode a heartbeat", [](std::size_t) {
                    std::string bytes;
                    wire::append_ids(bytes, wire::FrameType::heartbeat, 1, {7});
                    return [bytes, ids = std::vector<std::uint64_t>()]() mutable {
                      const auto frame = wire::cut_frame(bytes, frame_body_bytes_max);
                      auto read = wire::decode_ids(**frame, ids);
                      use(read);
                      use(ids);
                    };
                  }});
  work.push_back({"wire/decode a hello", [](std::size_t) {
                    wire::ClientHello hello;
                    hello.process.host = "a host";
                    hello.name_space = "a namespace";
                    std::string bytes;
                    wire::append_client_hello(bytes, hello);
                    return [bytes] { decode_hello(bytes); };
                  }});
}

}  // namespace

std::vector<Work> wire_work() {
  constexpr std::string_view key = "key-000000000001";
  wire::Set set;
  set.key = key;
  set.value = value();
  wire::MultiGet multi_get;
  wire::MultiSet multi_set;
  static Keys keys;  // the requests are views of it
  Numbers numbers(100'000);
  for (const Key& one : next_keys(keys, numbers)) {
    multi_get.keys.push_back(one.name());
    multi_set.entries.push_back({one.name(), value()});
  }
  wire::Join join;
  join.group = "a group";
  join.world_size = 64;
  wire::CollectiveCall barrier;
  barrier.epoch = barrier.round = 1;
  wire::CollectiveCall all_gather = barrier;
  all_gather.collective = wire::Collective::all_gather;
  all_gather.values = {value()};

  std::vector<Work> work;
  add_request(work, "a set", set);
  add_request(work, "a get", wire::Get{key});
  add_request(work, "an add", wire::Add{key, 1});
  add_request(work, "a multi-get of 64", multi_get);
  add_request(work, "a multi-set of 64", multi_set);
  add_request(work, "a join", join);
  add_request(work, "a barrier", barrier);
  add_request(work, "an all_gather", all_gather);
  add_ids(work);
  add_reply(work, "a value", wire::ValueReply{value()});
  wire::ValuesReply values;
  values.values.assign(keys_at_once, value());
  add_reply(work, "64 values", values);
  wire::RoundReply round;
  round.values.assign(keys_at_once, value());
  add_reply(work, "an all_gather's 64 values", round);
  return work;
}

}  // namespace muster::bench
