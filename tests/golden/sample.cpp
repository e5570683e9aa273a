#include "sample.h"

#include <iterator>

namespace muster::golden {
namespace {

constexpr std::size_t bytes_per_line = 16;
constexpr std::size_t hex_at = 8;
constexpr std::size_t note_at = hex_at + 3 * bytes_per_line + 1;

void append_line(std::string& text, std::size_t offset, std::string_view bytes,
                 std::string_view note) {
  constexpr char digits[] = "0123456789abcdef";
  std::string line = std::to_string(offset);
  line.insert(0, hex_at - 2 - line.size(), ' ');
  line += "  ";
  for (const char character : bytes) {
    const auto byte = static_cast<unsigned char>(character);
    line += {digits[byte >> 4], digits[byte & 15], ' '};
  }
  if (!note.empty()) {
    line.resize(note_at, ' ');
    line += note;
  }
  while (line.back() == ' ') line.pop_back();
  text += line + "\n";
}

int digit_of(char character) {
  if (character >= '0' && character <= '9') return character - '0';
  if (character >= 'a' && character <= 'f') return character - 'a' + 10;
  return -1;
}

}  // namespace

std::vector<Sample> all_samples() {
  std::vector<Sample> all;
  for (auto* part : {hello_samples, frame_samples, store_request_samples, group_request_samples,
                     reply_samples, error_samples}) {
    std::vector<Sample> samples = part();
    std::move(samples.begin(), samples.end(), std::back_inserter(all));
  }
  return all;
}

std::string text_of(const Sample& sample) {
  std::string text = "# " + sample.name + ": " + sample.about + "\n";
  text += "# " + std::to_string(sample.bytes.size()) + " bytes\n#\n";
  text += "# byte  hexadecimal";
  text.append(note_at - hex_at - std::string_view("hexadecimal").size(), ' ');
  text += "field\n";
  const std::string_view bytes = sample.annotated.bytes();
  std::size_t offset = 0;
  for (const Note& note : sample.annotated.notes()) {
    const std::size_t end = offset + note.bytes;
    std::string_view words = note.text;
    for (; offset < end; words = {}) {
      const std::size_t count = std::min(bytes_per_line, end - offset);
      append_line(text, offset, bytes.substr(offset, count), words);
      offset += count;
    }
  }
  return text;
}

std::string bytes_of(std::string_view text) {
  std::string bytes;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.front() == '#') continue;
    for (std::size_t at = hex_at; at + 1 < line.size() && at + 1 < note_at; at += 3) {
      const int high = digit_of(line[at]);
      const int low = digit_of(line[at + 1]);
      if (high < 0 || low < 0) break;
      bytes += static_cast<char>(high * 16 + low);
    }
  }
  return bytes;
}

}  // namespace muster::golden
