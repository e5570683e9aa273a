#include <cstring>

#include "calls.h"

// What a call has given: bytes, lists of them, ranks; and the version.

const char* muster_version(void) { return MUSTER_VERSION; }

muster_view muster_text(const char* text) {
  return {text, text == nullptr ? 0 : std::strlen(text)};
}

muster_view muster_bytes_view(const muster_bytes* bytes) {
  if (bytes == nullptr) return {nullptr, 0};
  return {bytes->bytes.data(), bytes->bytes.size()};
}

void muster_bytes_free(muster_bytes* bytes) { delete bytes; }

std::size_t muster_list_count(const muster_list* list) {
  return list == nullptr ? 0 : list->elements.size();
}

bool muster_list_at(const muster_list* list, std::size_t index, muster_view* element) {
  if (list == nullptr || index >= list->elements.size()) return false;
  const auto& found = list->elements[index];
  if (!found) return false;
  if (element != nullptr) *element = {found->data(), found->size()};
  return true;
}

void muster_list_free(muster_list* list) { delete list; }

std::size_t muster_ranks_count(const muster_ranks* ranks) {
  std::size_t count = 0;
  if (ranks == nullptr) return count;
  for (const muster::RankRange range : ranks->ranges) {
    if (range.last < range.first) continue;
    count += static_cast<std::size_t>(std::int64_t{range.last} - range.first + 1);
  }
  return count;
}

int muster_ranks_at(const muster_ranks* ranks, std::size_t index) {
  if (ranks == nullptr) return -1;
  for (const muster::RankRange range : ranks->ranges) {
    if (range.last < range.first) continue;
    const auto count = static_cast<std::size_t>(std::int64_t{range.last} - range.first + 1);
    if (index < count) return range.first + static_cast<int>(index);
    index -= count;
  }
  return -1;
}

void muster_ranks_free(muster_ranks* ranks) { delete ranks; }

std::size_t muster_page_count(const muster_page* page) {
  return page == nullptr ? 0 : page->page.keys.size();
}

bool muster_page_at(const muster_page* page, std::size_t index, muster_key_info* info) {
  if (page == nullptr || index >= page->page.keys.size()) return false;
  const muster::KeyInfo& found = page->page.keys[index];
  muster_key_info known{};
  known.key = {found.key.data(), found.key.size()};
  known.value_bytes = found.value_bytes;
  known.ttl = found.ttl ? found.ttl->count() : -1;
  known.bound = found.bound;
  return muster::c::fill(info, known);
}

std::uint64_t muster_page_cursor(const muster_page* page) {
  return page == nullptr ? 0 : page->page.cursor;
}

void muster_page_free(muster_page* page) { delete page; }
