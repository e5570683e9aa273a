#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "handles.h"
#include "muster/c.h"
#include "muster/operate.h"

// What a call's result is in C: one value for each parameter of `done` after the error.

namespace muster::c {

using Bytes = std::unique_ptr<muster_bytes>;
using List = std::unique_ptr<muster_list>;

inline std::tuple<bool> in_c(bool flag) { return {flag}; }
inline std::tuple<std::int64_t> in_c(std::int64_t number) { return {number}; }
inline std::tuple<std::uint64_t> in_c(std::uint64_t count) { return {count}; }
std::tuple<Bytes> in_c(std::string bytes);
std::tuple<List> in_c(std::vector<std::string> objects);
std::tuple<List> in_c(std::vector<std::optional<std::string>> values);
std::tuple<bool, Bytes> in_c(Compared compared);
std::tuple<std::unique_ptr<bool[]>, std::size_t> in_c(const std::vector<bool>& flags);
std::tuple<std::unique_ptr<muster_page>> in_c(KeyPage page);
std::tuple<Bytes, std::uint64_t> in_c(ReceivedBytes received);
std::tuple<std::unique_ptr<muster_delivery>> in_c(Delivery delivery);
std::tuple<std::unique_ptr<muster_ranks>> in_c(BarrierResult passed);
std::tuple<std::unique_ptr<muster_recovered>> in_c(RecoveredRound outcome);
std::tuple<std::unique_ptr<muster_store>> in_c(Store store);
std::tuple<std::unique_ptr<muster_group>> in_c(StatelessProcessGroup group);
/// As a document.
std::tuple<Bytes> in_c(const std::vector<MemberInfo>& members);
std::tuple<Bytes> in_c(const SettingInfo& setting);

/// Hands a value over to who frees it.
template <class T>
T* handed_over(std::unique_ptr<T>& value) noexcept {
  return value.release();
}
/// But flags are lent.
inline const bool* handed_over(std::unique_ptr<bool[]>& flags) noexcept { return flags.get(); }
template <class Number>
Number handed_over(Number& value) noexcept {
  return value;
}

}  // namespace muster::c
