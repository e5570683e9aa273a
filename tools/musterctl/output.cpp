#include "output.h"

#include <algorithm>

namespace musterctl {

std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char letter) {
    return (static_cast<unsigned char>(letter) & 0xc0U) != 0x80;
  }));
}

std::string table_of(const std::vector<std::string>& titles,
                     const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const std::string& title : titles) widths.push_back(width_of(title));
  for (const auto& row : rows) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      widths[column] = std::max(widths[column], width_of(row[column]));
    }
  }
  std::string text;
  const auto add_row = [&](const std::vector<std::string>& row) {
    for (std::size_t column = 0; column < row.size(); ++column) {
      text += row[column];
      const bool is_last = column + 1 == row.size();
      if (!is_last) text.append(widths[column] - width_of(row[column]) + 2, ' ');
    }
    text += '\n';
  };
  add_row(titles);
  for (const auto& row : rows) add_row(row);
  return text;
}

}  // namespace musterctl
