// Forms as multipart/form-data, divided in several ways, compared with a plain parser.
#include <algorithm>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <tambour/tambour.h>

#include "fuzz/bytes_checks.h"
#include "fuzz/input.h"
#include "http/forms/multipart_parser.h"
#include "http/forms/parameters.h"

namespace tambour::fuzz {
namespace {

using http::FormLimits;
using http::detail::forms::MultipartParser;

enum class Ending { complete, truncated, rejected };

struct Part {
  std::vector<std::pair<std::string, std::string>> fields;
  std::string contents;

  bool operator==(const Part&) const = default;
};

/// The parts that are complete, and how the form ends.
struct Parts {
  std::vector<Part> parts;
  Ending ending = Ending::truncated;

  bool operator==(const Parts&) const = default;
};

constexpr FormLimits limits{.parts_max = 4, .part_bytes_max = 100};

/// A plain parser of a whole form with the boundary "b".
class FormModel {
 public:
  explicit FormModel(std::string text) : text_(std::move(text)) {}

  Parts run() {
    Parts parsed;
    const std::size_t preamble = text_.find("\r\n--b");
    if (!text_.starts_with("--b") && preamble == std::string::npos) return parsed;
    at_ = text_.starts_with("--b") ? 3 : preamble + 5;
    for (std::size_t parts = 0;; ++parts) {
      Part part;
      parsed.ending = read_delimiter(parts);
      if (parsed.ending != Ending::truncated || at_ == std::string::npos) return parsed;
      parsed.ending = read_part(part);
      if (parsed.ending != Ending::complete) return parsed;
      parsed.parts.push_back(part);
    }
  }

 private:
  /// Returns `truncated` if a part follows, too.
  Ending read_delimiter(std::size_t parts) {
    const bool is_last = text_.substr(at_, 2) == "--";
    if (is_last) at_ += 2;
    at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size());
    const std::string mark = text_.substr(at_, 2);
    if (is_last) return mark.empty() || mark == "\r\n" ? Ending::complete : Ending::rejected;
    at_ = mark.size() < 2 ? std::string::npos : at_ + 2;
    if (mark.size() < 2) return Ending::truncated;
    return mark == "\r\n" && parts < limits.parts_max ? Ending::truncated : Ending::rejected;
  }

  Ending read_part(Part& part) {
    static const std::regex field(
        "([-!#$%&'*+.^_`|~0-9A-Za-z]+):[ \t]*((?:[^\\x00-\\x08\\x0a-\\x1f\\x7f]*[^\\x00-\\x20\\x7f]"
        ")?)[ \t]*");
    for (bool more = true; more;) {
      const std::size_t end = text_.find('\n', at_);
      if (end == std::string::npos) return Ending::truncated;
      if (end == at_ || text_[end - 1] != '\r') return Ending::rejected;
      const std::string line = text_.substr(at_, end - 1 - at_);
      at_ = end + 1;
      more = !line.empty();
      std::smatch match;
      if (more && (!std::regex_match(line, match, field) || part.fields.size() == 32))
        return Ending::rejected;
      if (more) part.fields.emplace_back(match[1], match[2]);
    }
    const std::size_t end = text_.find("\r\n--b", at_);
    // What may be the begin of a delimiter does not count yet.
    const std::size_t known = end != std::string::npos ? end : std::max(text_.size(), at_ + 4) - 4;
    if (known - at_ > limits.part_bytes_max) return Ending::rejected;
    if (end == std::string::npos) return Ending::truncated;
    part.contents = text_.substr(at_, end - at_);
    at_ = end + 5;
    return Ending::complete;
  }

  std::string text_;
  std::size_t at_ = 0;
};

/// The same, by the parser, whose input arrives in pieces.
Parts parse(std::string_view text, std::size_t piece_bytes, std::size_t bytes_max) {
  MultipartParser parser("b", limits);
  Parts parsed;
  Part part;
  Buffer input;
  Buffer contents;
  while (true) {
    const auto event = parser.parse(input, contents, bytes_max);
    if (!event) {
      parsed.ending = Ending::rejected;
      expect(parser.parse(input, contents, bytes_max) == event, "an error is not final");
      return parsed;
    }
    if (*event == MultipartParser::Event::part) {
      for (const http::Field field : parser.headers())
        part.fields.emplace_back(field.name, field.value);
    }
    if (*event == MultipartParser::Event::part_end) {
      part.contents = contents.to_string();
      contents.clear();
      parsed.parts.push_back(std::exchange(part, Part()));
    }
    if (*event != MultipartParser::Event::none) continue;
    if (text.empty()) break;
    input.append(text.substr(0, piece_bytes));
    text.remove_prefix(std::min(piece_bytes, text.size()));
  }
  const auto ended = parser.end_input();
  parsed.ending = Ending::complete;
  if (!ended)
    parsed.ending = ended.error() == StreamError::truncated ? Ending::truncated : Ending::rejected;
  return parsed;
}

void check_name(std::string_view text) {
  const std::string safe = http::safe_file_name(text);
  expect(safe.find_first_of("/\\") == std::string::npos, "a safe name has a separator");
  expect(safe.size() <= 255, "a safe name is too long");
  expect(!safe.starts_with('.') && !safe.ends_with('.'), "a safe name begins or ends with a dot");
  expect(std::ranges::none_of(safe, [](char c) { return (c >= 0 && c < ' ') || c == '\x7F'; }),
         "a safe name has a control character");
  expect(http::safe_file_name(safe) == safe, "a safe name is not safe");
}

/// What was parsed, written again, is the same.
void check_parameters(std::string_view text) {
  const auto parsed = http::detail::forms::parse_parameters(text);
  if (!parsed) return;
  std::string again(parsed->value);
  for (const auto& [name, value] : parsed->parameters) {
    again.append(";").append(name).append("=\"");
    for (const char c : value) again.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
    again.append("\"");
  }
  const auto second = http::detail::forms::parse_parameters(again);
  expect(second && second->value == parsed->value && second->parameters == parsed->parameters,
         "parameters that were written again differ");
}

}  // namespace

void check_multipart(Bytes bytes) {
  check_name(text_of(bytes));
  check_parameters(text_of(bytes));
  Input choices(bytes);
  const std::size_t piece_bytes = 1 + choices.below(40);
  const std::size_t bytes_max = 1 + choices.below(40);
  const std::string_view text = text_of(bytes.subspan(std::min<std::size_t>(bytes.size(), 2)));
  const Parts expected = FormModel(std::string(text)).run();
  expect(parse(text, text.size() + 1, 1000) == expected, "the parts of the whole text are wrong");
  expect(parse(text, 1, 1) == expected, "the parts of single bytes are wrong");
  expect(parse(text, piece_bytes, bytes_max) == expected, "the parts of pieces are wrong");
}

}  // namespace tambour::fuzz
