// Random calls of the functions of evbuffers that search bytes and lines.
#include <string_view>
#include <utility>

#include "buffer_model.h"

namespace buffer_model {

void Test::search(Tracked& in) {
  const std::size_t start = random_.below(in.bytes.size() + 1);
  std::string text = some_bytes(1 + random_.below(6));
  if (random_.below(2) == 0 && in.bytes.size() > start) {
    const std::size_t from = start + random_.below(in.bytes.size() - start);
    text = in.bytes.substr(from, 1 + random_.below(random_.below(4) == 0 ? 3000 : 12));
  }
  const evbuffer_ptr begin = position(in, start);
  const std::size_t found = in.bytes.find(text, start);
  switch (random_.below(3)) {
    case 0: {
      operation_ = "search";
      const evbuffer_ptr at = evbuffer_search(in.buffer, text.data(), text.size(), &begin);
      equal(at.pos, found == std::string::npos ? -1 : static_cast<long long>(found), "position");
      return;
    }
    case 1: {
      operation_ = "search_range";
      const std::size_t end = start + random_.below(in.bytes.size() - start + 1);
      const evbuffer_ptr limit = position(in, end);
      const evbuffer_ptr at =
          evbuffer_search_range(in.buffer, text.data(), text.size(), &begin, &limit);
      const bool inside = found != std::string::npos && found + text.size() <= end;
      equal(at.pos, inside ? static_cast<long long>(found) : -1, "position");
      return;
    }
    default: {
      operation_ = "ptr_set";
      const std::size_t more = random_.size();
      evbuffer_ptr at = begin;
      const bool valid = start + more <= in.bytes.size();
      equal(evbuffer_ptr_set(in.buffer, &at, more, EVBUFFER_PTR_ADD), valid ? 0 : -1, "result");
      equal(at.pos, valid ? static_cast<long long>(start + more) : -1, "position");
      if (!valid || at.pos == static_cast<ev_ssize_t>(in.bytes.size())) return;
      evbuffer_iovec extent{};
      if (evbuffer_peek(in.buffer, 1, &at, &extent, 1) < 1) fail("nothing at %zd", at.pos);
      equal(*static_cast<const char*>(extent.iov_base), in.bytes[static_cast<std::size_t>(at.pos)],
            "byte");
    }
  }
}

namespace {

/// The position and length of the next end of line, or npos.
std::pair<std::size_t, std::size_t> line_end(std::string_view text, std::size_t start,
                                             evbuffer_eol_style style) {
  constexpr auto none = std::string_view::npos;
  std::size_t at = none;
  switch (style) {
    case EVBUFFER_EOL_ANY: {
      at = text.find_first_of("\r\n", start);
      if (at == none) break;
      const std::size_t end = text.find_first_not_of("\r\n", at);
      return {at, (end == none ? text.size() : end) - at};
    }
    case EVBUFFER_EOL_CRLF:
      at = text.find('\n', start);
      if (at != none && at > start && text[at - 1] == '\r') return {at - 1, 2};
      break;
    case EVBUFFER_EOL_CRLF_STRICT:
      return {text.find("\r\n", start), 2};
    case EVBUFFER_EOL_LF:
      at = text.find('\n', start);
      break;
    case EVBUFFER_EOL_NUL:
      at = text.find('\0', start);
      break;
  }
  return {at, 1};
}

}  // namespace

void Test::lines(Tracked& in) {
  const auto style = static_cast<evbuffer_eol_style>(random_.below(5));
  if (random_.below(2) == 0) {
    operation_ = "search_eol";
    const std::size_t start = random_.below(in.bytes.size() + 1);
    evbuffer_ptr begin = position(in, start);
    std::size_t size = 99;
    const evbuffer_ptr at = evbuffer_search_eol(in.buffer, &begin, &size, style);
    const auto [expected, expected_size] = line_end(in.bytes, start, style);
    equal(at.pos, static_cast<long long>(expected), "position");
    if (at.pos >= 0)
      equal(static_cast<long long>(size), static_cast<long long>(expected_size), "size");
    return;
  }
  operation_ = "readln";
  std::size_t size = 99;
  char* const line = evbuffer_readln(in.buffer, &size, style);
  const auto [expected, expected_size] = line_end(in.bytes, 0, style);
  if (in.front_frozen || expected == std::string::npos) {
    if (line != nullptr) fail("a line");
    return;
  }
  if (line == nullptr) fail("no line");
  equal(static_cast<long long>(size), static_cast<long long>(expected), "size");
  if (in.bytes.compare(0, size, line, size) != 0) fail("another line");
  std::free(line);
  in.bytes.erase(0, expected + expected_size);
}

}  // namespace buffer_model
