// Messages of HTTP/1.1, divided in several ways, compared with a plain parser of the whole text.
#include <arpa/inet.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "fuzz/bytes_checks.h"
#include "http/support/messages.h"

namespace tambour::fuzz {
namespace {

using http::detail::h1::RequestParser;
using http::detail::h1::ResponseParser;
using test::Message;
using test::StrictResponseParser;
using test::Verdict;

/// Why the model stops: the end of the text, a message that is not complete, or a bad one.
enum class Stop { end, incomplete, rejected };

struct ModelField {
  std::string spelled_name;
  std::string name;  ///< In lower case.
  std::string value;
  bool is_ignored = false;
};

bool is_framing(const ModelField& field) {
  return field.name == "content-length" || field.name == "transfer-encoding";
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string trim(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

const std::string token = "[-!#$%&'*+.^_`|~0-9A-Za-z]";

bool matches(const std::string& text, const std::string& pattern, std::smatch& match) {
  static std::vector<std::pair<std::string, std::regex>> compiled;
  auto found = std::ranges::find(compiled, pattern, &std::pair<std::string, std::regex>::first);
  if (found == compiled.end())
    found = compiled.insert(compiled.end(), {pattern, std::regex(pattern)});
  return std::regex_match(text, match, found->second);
}

bool matches(const std::string& text, const std::string& pattern) {
  std::smatch match;
  return matches(text, pattern, match);
}

bool is_control(char c) { return (static_cast<unsigned char>(c) < 32 && c != '\t') || c == 127; }

/// Replaces control characters by spaces, and removes those at both ends.
std::string repaired(std::string text) {
  std::ranges::replace_if(text, is_control, ' ');
  return trim(text);
}

enum class Mode { request, response, lenient_response };

/// A plain parser of a whole text: it looks for the empty line after a head, and then checks each
/// line with regular expressions.
class Model {
 public:
  Model(std::string text, Mode mode)
      : text_(std::move(text)),
        has_requests_(mode == Mode::request),
        is_lenient_(mode == Mode::lenient_response) {}

  Stop run() {
    while (true) {
      const Stop stop = read_message();
      if (stop != Stop::end) return stop;
      messages.push_back(message_);
      if (at_ == text_.size()) return Stop::end;
    }
  }

  std::vector<Message> messages;

 private:
  Stop read_message() {
    message_ = {};
    if (has_requests_ && text_.compare(at_, 2, "\r\n") == 0) at_ += 2;
    if (at_ == text_.size()) return Stop::incomplete;
    const auto lines = take_lines();
    if (!lines) return Stop::incomplete;
    std::vector<ModelField> fields;
    if (lines->empty() || !read_fields({lines->begin() + 1, lines->end()}, fields))
      return Stop::rejected;
    const bool valid = has_requests_ ? check_request_line(lines->front(), fields)
                                     : check_status_line(lines->front());
    if (!valid) return Stop::rejected;
    return read_body(fields);
  }

  /// The lines up to the empty one, if there is one.
  std::optional<std::vector<std::string>> take_lines() {
    std::vector<std::string> lines;
    std::size_t at = at_;
    while (true) {
      const std::size_t end = text_.find(is_lenient_ ? "\n" : "\r\n", at);
      if (end == std::string::npos) return std::nullopt;
      std::string line = text_.substr(at, end - at);
      at = end + (is_lenient_ ? 1 : 2);
      if (is_lenient_ && line.ends_with('\r')) line.pop_back();
      if (line.empty()) break;
      lines.push_back(line);
    }
    at_ = at;
    return lines;
  }

  bool read_fields(const std::vector<std::string>& lines, std::vector<ModelField>& fields) {
    for (const std::string& line : lines) {
      if (is_lenient_ && (line[0] == ' ' || line[0] == '\t')) {
        if (!continue_field(line, fields)) return false;
        continue;
      }
      ModelField field;
      std::smatch match;
      if (!matches(line, "(" + token + "*)([ \t]*):([^]*)", match)) return false;
      field.spelled_name = match[1].str();
      field.name = lower(field.spelled_name);
      field.is_ignored = field.name.empty();
      const std::string blanks = match[2].str();
      if (field.is_ignored ? !is_lenient_ || !blanks.empty()
                           : !blanks.empty() && (!is_lenient_ || is_framing(field)))
        return false;
      field.value = trim(match[3].str());
      if (!check_value(field.value, is_framing(field))) return false;
      field.value = repaired(field.value);
      fields.push_back(field);
    }
    for (const ModelField& field : fields) {
      if (!field.is_ignored) message_.fields += field.spelled_name + ": " + field.value + '\n';
    }
    return true;
  }

  bool check_value(const std::string& value, bool is_framing) const {
    if (!is_lenient_ || is_framing) return std::ranges::none_of(value, is_control);
    return value.find('\r') == std::string::npos && value.find('\0') == std::string::npos;
  }

  bool continue_field(const std::string& line, std::vector<ModelField>& fields) {
    if (fields.empty()) return false;
    ModelField& last = fields.back();
    const bool is_ignored = last.is_ignored || (in_trailers_ && is_forbidden_trailer(last));
    if (!is_ignored && is_framing(last)) return false;
    if (!check_value(trim(line), false)) return false;
    const std::string more = repaired(line);
    last.value += (last.value.empty() || more.empty() ? "" : " ") + more;
    return true;
  }

  static bool is_forbidden_trailer(const ModelField& field) {
    return matches(field.name,
                   "authorization|connection|content-encoding|content-length|content-range|expect|"
                   "host|proxy-authorization|te|trailer|transfer-encoding|upgrade");
  }

  static bool is_host(const std::string& text) {
    std::smatch match;
    if (!matches(text, "(\\[.*\\]|[^:\\[]*)(:([0-9]*))?", match)) return false;
    const std::string port = match[3].str();
    const std::string digits = port.substr(std::min(port.find_first_not_of('0'), port.size()));
    if (digits.size() > 5 || (!digits.empty() && std::stoi(digits) > 65535)) return false;
    const std::string host = match[1].str();
    if (!host.starts_with('['))
      return matches(host, "([-._~!$&'()*+,;=0-9A-Za-z]|%[0-9A-Fa-f]{2})*");
    const std::string address = host.substr(1, host.size() - 2);
    in6_addr bytes;
    return matches(address, "[vV][0-9A-Fa-f]+\\.[-._~!$&'()*+,;=:0-9A-Za-z]+") ||
           (address.find('\0') == std::string::npos &&
            ::inet_pton(AF_INET6, address.c_str(), &bytes) == 1);
  }

  static bool is_target(const std::string& method, const std::string& target) {
    static const std::string path_chars = "-._~!$&'()*+,;=:@/\\[\\]\\\\^`{|}0-9A-Za-z";
    static const std::string rest =
        "([" + path_chars + "]|%[0-9A-Fa-f]{2})*(\\?[" + path_chars + "?%]*)?";
    if (method == "CONNECT") return is_host(target) && matches(target, "(.+):[0-9]+");
    if (target == "*") return method == "OPTIONS";
    if (target.starts_with('/')) return matches(target, rest);
    std::smatch match;
    if (!matches(target, "[hH][tT][tT][pP][sS]?://([^/?]+)(.*)", match)) return false;
    const std::string host = match[1].str();
    return !host.starts_with(':') && is_host(host) && matches(match[2].str(), rest);
  }

  bool check_request_line(const std::string& line, const std::vector<ModelField>& fields) {
    std::smatch match;
    if (!matches(line, "(" + token + "{1,31}) ([^ ]+) HTTP/1\\.([0-9])", match)) return false;
    message_.start = match[1].str();
    is_old_ = match[3].str() == "0";
    const auto hosts = values_of(fields, "host");
    if (hosts.size() > 1 || (hosts.empty() && !is_old_)) return false;
    if (!hosts.empty() && !is_host(hosts[0])) return false;
    return is_target(match[1].str(), match[2].str());
  }

  bool check_status_line(const std::string& line) {
    std::smatch match;
    const std::string pattern = is_lenient_ ? "HTTP/1\\.([0-9])[ \t]+([1-9][0-9][0-9])([ \t][^]*)?"
                                            : "HTTP/1\\.([0-9]) ([1-9][0-9][0-9]) ([^]*)";
    if (!matches(line, pattern, match) || line.find('\r') != std::string::npos) return false;
    // The phrase has no meaning for clients.
    if (!is_lenient_ && std::ranges::any_of(match[3].str(), is_control)) return false;
    is_old_ = match[1].str() == "0";
    message_.start = match[2].str();
    return true;
  }

  static std::vector<std::string> values_of(const std::vector<ModelField>& fields,
                                            const std::string& name) {
    std::vector<std::string> values;
    for (const ModelField& field : fields) {
      if (field.name == name) values.push_back(field.value);
    }
    return values;
  }

  /// The elements of all lists.
  static std::vector<std::string> split(const std::vector<std::string>& values) {
    std::vector<std::string> elements;
    for (const std::string& value : values) {
      std::size_t begin = 0;
      for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
        end = value.find(',', begin);
        elements.push_back(trim(value.substr(begin, end - begin)));
      }
    }
    return elements;
  }

  Stop read_body(const std::vector<ModelField>& fields) {
    auto lengths = values_of(fields, "content-length");
    if (is_lenient_ && !lengths.empty()) lengths = split(lengths);
    const auto codings = values_of(fields, "transfer-encoding");
    if (!codings.empty()) {
      if (is_old_ || !lengths.empty() || codings.size() > 1 || lower(codings[0]) != "chunked")
        return Stop::rejected;
    }
    if (lengths.size() > 1 && !is_lenient_) return Stop::rejected;
    std::uint64_t length = 0;
    for (const std::string& text : lengths) {
      if (!matches(text, "[0-9]{1,19}")) return Stop::rejected;
      length = std::stoull(text);
      if (length > INT64_MAX || length != std::stoull(lengths[0])) return Stop::rejected;
    }
    const std::string& start = message_.start;
    if (has_requests_ && start == "CONNECT" && (!codings.empty() || length > 0))
      return Stop::rejected;
    if (!has_requests_) {
      if (start == "101") return Stop::incomplete;  // The connection is not HTTP any more.
      if (start[0] == '1' || start == "204" || start == "304") return finish();
    }
    if (!codings.empty()) return read_chunks();
    if (!has_requests_ && lengths.empty()) {
      message_.body = text_.substr(at_);
      at_ = text_.size();
      return finish();
    }
    if (length > std::uint64_t{64} * 1024 * 1024) return Stop::rejected;
    if (text_.size() - at_ < length) return Stop::incomplete;
    message_.body = text_.substr(at_, length);
    at_ += length;
    return finish();
  }

  Stop read_chunks() {
    const std::string quoted = "\"(?:[^\"\\\\]|\\\\.)*\"";
    const std::string extension =
        "[ \t]*;[ \t]*" + token + "+(?:[ \t]*=[ \t]*(?:" + token + "+|" + quoted + "))?";
    const std::string pattern = is_lenient_ ? "([0-9A-Fa-f]{1,16})[ \t]*(?:;[^]*)?"
                                            : "([0-9A-Fa-f]{1,15})(?:" + extension + ")*";
    while (true) {
      const std::size_t end = text_.find("\r\n", at_);
      if (end == std::string::npos) return Stop::incomplete;
      const std::string line = text_.substr(at_, end - at_);
      std::smatch match;
      if (std::ranges::any_of(line, is_control) || !matches(line, pattern, match))
        return Stop::rejected;
      at_ = end + 2;
      const std::uint64_t size = std::stoull(match[1].str(), nullptr, 16);
      if (size == 0) break;
      if (size > std::uint64_t{64} * 1024 * 1024) return Stop::rejected;
      if (text_.size() - at_ < size + 2)
        return text_.size() - at_ > size && text_[at_ + size] != '\r' ? Stop::rejected
                                                                      : Stop::incomplete;
      message_.body += text_.substr(at_, size);
      if (text_.compare(at_ + size, 2, "\r\n") != 0) return Stop::rejected;
      at_ += size + 2;
    }
    const auto lines = take_lines();
    if (!lines) return Stop::incomplete;
    std::vector<ModelField> trailers;
    in_trailers_ = true;
    const std::string head = std::exchange(message_.fields, "");
    if (!read_fields(*lines, trailers)) return Stop::rejected;
    in_trailers_ = false;
    message_.fields = head;
    for (const ModelField& field : trailers) {
      if (is_forbidden_trailer(field) && !is_lenient_) return Stop::rejected;
      if (!field.is_ignored && !is_forbidden_trailer(field))
        message_.trailers += field.spelled_name + ": " + field.value + '\n';
    }
    return finish();
  }

  Stop finish() {
    message_.end = at_;
    message_.is_complete = true;
    return Stop::end;
  }

  std::string text_;
  bool has_requests_;
  bool is_lenient_;
  bool in_trailers_ = false;
  std::size_t at_ = 0;
  bool is_old_ = false;
  Message message_;
};

template <class Parser>
Verdict read(std::string_view text, const std::vector<std::size_t>& ends, bool in_blocks) {
  test::MessageReader<Parser> reader;
  return test::read_in_pieces(text, ends, reader, in_blocks);
}

template <class Parser>
constexpr Mode mode_of = std::is_same_v<Parser, RequestParser>          ? Mode::request
                         : std::is_same_v<Parser, StrictResponseParser> ? Mode::response
                                                                        : Mode::lenient_response;

template <class Parser>
void check(const std::string& text, Bytes bytes) {
  const Verdict whole = read<Parser>(text, {}, false);
  std::vector<std::size_t> every;
  for (std::size_t i = 1; i < text.size(); ++i) every.push_back(i);
  expect(read<Parser>(text, every, false) == whole, "the verdict differs byte by byte");
  expect(read<Parser>(text, every, true) == whole, "the verdict differs in blocks of one byte");
  if (text.size() > 1 && bytes.size() > 1) {
    std::vector<std::size_t> ends = {bytes[0] % text.size(), bytes[1] % text.size()};
    std::ranges::sort(ends);
    expect(read<Parser>(text, ends, true) == whole, "the verdict depends on the pieces");
  }

  Model model(text, mode_of<Parser>);
  const Stop stop = model.run();
  std::vector<Message> complete = whole.messages;
  if (!complete.empty() && !complete.back().is_complete) complete.pop_back();
  expect(complete.size() == model.messages.size(), "another number of complete messages");
  for (std::size_t i = 0; i < complete.size(); ++i) {
    Message& found = complete[i];
    found.start = found.start.substr(0, found.start.find(' '));
    found.is_persistent = false;
    expect(found == model.messages[i], "a message has other parts or another end");
  }
  const bool failed = whole.error != StreamError::eof && whole.error != StreamError::truncated;
  if (stop == Stop::end) expect(whole.error == StreamError::eof, "a complete text was rejected");
  if (stop == Stop::rejected) expect(failed, "a bad message was not rejected");
  if (stop == Stop::incomplete && failed) {
    // The error was found before the end of a line or head, which must then be bad in every case.
    for (const char* rest : {"\r\n\r\n", "\r\n", "\"\r\n\r\n", "\n\r\n\r\n"})
      expect(Model(text + rest, mode_of<Parser>).run() != Stop::end,
             "a message was rejected that may become valid");
  }
}

}  // namespace

void check_http(Bytes bytes) {
  const std::string text(text_of(bytes));
  check<RequestParser>(text, bytes);
  check<ResponseParser>(text, bytes);
  check<StrictResponseParser>(text, bytes);
  const std::string head = "PUT / HTTP/1.1\r\nHost: a\r\n";
  check<RequestParser>(head + text, bytes);
  check<RequestParser>(head + "Transfer-Encoding: chunked\r\n\r\n" + text, bytes);
  const std::string response = "HTTP/1.1 200 OK\r\n";
  check<ResponseParser>(response + text, bytes);
  check<StrictResponseParser>(response + text, bytes);
  check<ResponseParser>(response + "Transfer-Encoding: chunked\r\n\r\n" + text, bytes);
}

}  // namespace tambour::fuzz
