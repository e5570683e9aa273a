// What the default codec makes of a small object, with the fingerprint of its type and without.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "muster/codec_cereal.h"
#include "work.h"

namespace muster::bench {
namespace {

struct Step {
  std::int64_t number = 7;
  double loss = 0.25;
  std::string checkpoint = "weights/000007";

  template <class Archive>
  void serialize(Archive& archive) {
    archive(number, loss, checkpoint);
  }
};

std::string bytes_of(const Step& step, std::optional<std::uint64_t> fingerprint) {
  std::string bytes;
  detail::CerealWriter archive(bytes, fingerprint);
  archive(step);
  return bytes;
}

std::function<void()> encode(std::size_t) {
  return [step = Step()] {
    auto bytes = CerealCodec::encode(step);
    use(bytes);
  };
}

std::function<void()> encode_without(std::size_t) {
  return [step = Step()] {
    auto bytes = bytes_of(step, std::nullopt);
    use(bytes);
  };
}

std::function<void()> decode(std::size_t) {
  return [bytes = *CerealCodec::encode(Step())] {
    auto step = CerealCodec::decode<Step>(bytes);
    use(step);
  };
}

/// As an object of a program without Muster is taken.
std::function<void()> decode_without(std::size_t) {
  return [bytes = bytes_of(Step(), std::nullopt)] {
    auto step = CerealCodec::decode<Step>(bytes);
    use(step);
  };
}

}  // namespace

std::vector<Work> object_work() {
  return {{"objects/encode three fields", encode},
          {"objects/encode three fields without a fingerprint", encode_without},
          {"objects/decode three fields", decode},
          {"objects/decode three fields without a fingerprint", decode_without}};
}

}  // namespace muster::bench
