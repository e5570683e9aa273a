#include "values.h"

#include <algorithm>
#include <utility>

#include "json/documents.h"
#include "json/fields.h"

namespace muster::c {

std::tuple<Bytes> in_c(std::string bytes) { return {Bytes(new muster_bytes{std::move(bytes)})}; }

std::tuple<List> in_c(std::vector<std::string> objects) {
  auto list = std::make_unique<muster_list>();
  list->elements.reserve(objects.size());
  for (std::string& object : objects) list->elements.emplace_back(std::move(object));
  return {std::move(list)};
}

std::tuple<List> in_c(std::vector<std::optional<std::string>> values) {
  return {List(new muster_list{std::move(values)})};
}

std::tuple<bool, Bytes> in_c(Compared compared) {
  Bytes current;
  if (compared.current) current.reset(new muster_bytes{*std::move(compared.current)});
  return {compared.applied, std::move(current)};
}

std::tuple<std::unique_ptr<bool[]>, std::size_t> in_c(const std::vector<bool>& flags) {
  auto row = std::make_unique<bool[]>(flags.size());
  std::copy(flags.begin(), flags.end(), row.get());
  return {std::move(row), flags.size()};
}

std::tuple<std::unique_ptr<muster_page>> in_c(KeyPage page) {
  return {std::unique_ptr<muster_page>(new muster_page{std::move(page)})};
}

std::tuple<Bytes, std::uint64_t> in_c(ReceivedBytes received) {
  return {Bytes(new muster_bytes{std::move(received.bytes)}), received.sequence};
}

std::tuple<std::unique_ptr<muster_delivery>> in_c(Delivery delivery) {
  return {std::unique_ptr<muster_delivery>(new muster_delivery{std::move(delivery), {}})};
}

std::tuple<std::unique_ptr<muster_ranks>> in_c(BarrierResult passed) {
  return {std::unique_ptr<muster_ranks>(new muster_ranks{std::move(passed.unconfirmed)})};
}

std::tuple<std::unique_ptr<muster_recovered>> in_c(RecoveredRound outcome) {
  auto recovered = std::make_unique<muster_recovered>();
  recovered->round = outcome.round;
  recovered->called = outcome.called;
  if (outcome.error) recovered->error.reset(error_of(*outcome.error));
  recovered->values = std::move(*std::get<0>(in_c(std::move(outcome.values))));
  return {std::move(recovered)};
}

std::tuple<std::unique_ptr<muster_store>> in_c(Store store) {
  return {std::make_unique<muster_store>(std::move(store))};
}

std::tuple<std::unique_ptr<muster_group>> in_c(StatelessProcessGroup group) {
  return {std::unique_ptr<muster_group>(new muster_group{std::move(group)})};
}

std::tuple<Bytes> in_c(const std::vector<MemberInfo>& members) {
  return in_c(json::line_of(json::list_of(members)));
}

std::tuple<Bytes> in_c(const SettingInfo& setting) {
  return in_c(json::line_of(json::json_of(setting)));
}

}  // namespace muster::c
