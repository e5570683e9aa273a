#include "runtime_offers.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/failure.h"

namespace muster::script {
namespace {

using runtime::TensorCollective;
using runtime::TensorOffer;

constexpr std::array collectives{TensorCollective::all_reduce, TensorCollective::broadcast,
                                 TensorCollective::all_gather, TensorCollective::reduce_scatter,
                                 TensorCollective::broadcast_state_dict};
constexpr std::array ways{TensorWay::automatic, TensorWay::store, TensorWay::shared_memory,
                          TensorWay::gloo, TensorWay::nccl};
constexpr std::array dtypes{dtype::int32,   dtype::int64,   dtype::float16,
                            dtype::float32, dtype::float64, dtype::bfloat16};

template <class Named, class Name>
auto named(const Named& all, const std::string& wanted, Name name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return name(one) == wanted; });
  if (found == all.end()) throw ScriptError("nothing is called " + wanted);
  return *found;
}

}  // namespace

/// `offer COLLECTIVE [DTYPE SIZE,...] [root=R] [way=WAY] [limit=N] [bucket=N] [operation=N] [cuda]
/// [refuses=CODE]`: of the next rank, as it comes to the others.
void Offers::add(Arguments& words) {
  const auto name = [](auto one) { return std::string(name_of(one)); };
  TensorOffer offer;
  offer.collective = named(collectives, words.next("the collective"), name);
  if (words.flag("cuda")) offer.device = DeviceType::cuda;
  for (const std::string& size : words.list("shape")) offer.shape.push_back(number_of(size));
  if (const auto wanted = words.named("dtype"))
    offer.dtype = named(dtypes, *wanted, [](Dtype one) { return to_string(one); });
  if (const auto way = words.named("way")) offer.way = named(ways, *way, name);
  offer.root = static_cast<int>(words.number("root").value_or(-1));
  offer.store_bytes_max = static_cast<std::uint64_t>(words.number("limit").value_or(0));
  offer.bucket_bytes = static_cast<std::uint64_t>(words.number("bucket").value_or(0));
  offer.operation = static_cast<ReduceOp>(words.number("operation").value_or(0));
  if (words.flag("refuses"))
    offer.refusal = base::failure(ErrorCode::invalid_argument, "the tensor is read-only");
  words.finish();
  sent_.push_back(runtime::encode(offer));
}

/// Of the ranks since the last one.
Result<void> Offers::compare() {
  std::vector<TensorOffer> offers;
  for (const std::string& bytes : sent_) {
    auto offer = runtime::decode_tensor_offer(bytes);
    if (!offer) return std::move(offer).error();
    offers.push_back(*std::move(offer));
  }
  auto compared = runtime::compare(offers);
  sent_.clear();
  return compared;
}

/// The last one is cut to so many bytes.
void Offers::cut(Arguments& words) {
  sent_.back().resize(static_cast<std::size_t>(number_of(words.next("the bytes"))));
  words.finish();
}

}  // namespace muster::script
