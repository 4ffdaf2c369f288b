// Reads messages with llhttp, if it was found.
#include "http/support/reference_parser.h"

#ifdef TAMBOUR_HAS_LLHTTP

#include <llhttp.h>

namespace tambour::test {
namespace {

/// Collects the parts of the current message. llhttp passes each part in several spans.
struct Collector {
  ReferenceVerdict verdict{};
  std::string name{};
  std::string value{};
  std::string target{};
  bool has_head = false;

  Message& message() { return verdict.messages.back(); }

  static Collector& of(llhttp_t* parser) { return *static_cast<Collector*>(parser->data); }

  static int begin(llhttp_t* parser) {
    Collector& self = of(parser);
    self.has_head = false;
    self.target.clear();
    self.verdict.messages.emplace_back();
    return 0;
  }
  static int append_target(llhttp_t* parser, const char* at, std::size_t size) {
    of(parser).target.append(at, size);
    return 0;
  }
  static int append_name(llhttp_t* parser, const char* at, std::size_t size) {
    of(parser).name.append(at, size);
    return 0;
  }
  static int append_value(llhttp_t* parser, const char* at, std::size_t size) {
    of(parser).value.append(at, size);
    return 0;
  }
  static int append_body(llhttp_t* parser, const char* at, std::size_t size) {
    of(parser).message().body.append(at, size);
    return 0;
  }
  static int end_field(llhttp_t* parser) {
    Collector& self = of(parser);
    std::string& fields = self.has_head ? self.message().trailers : self.message().fields;
    // llhttp leaves white space at the end of values.
    const std::size_t end = self.value.find_last_not_of(" \t");
    self.value.resize(end == std::string::npos ? 0 : end + 1);
    fields += self.name + ": " + self.value + '\n';
    self.name.clear();
    self.value.clear();
    return 0;
  }
  static int end_head(llhttp_t* parser) {
    Collector& self = of(parser);
    self.has_head = true;
    const bool is_request = llhttp_get_type(parser) == HTTP_REQUEST;
    self.message().start =
        is_request ? llhttp_method_name(static_cast<llhttp_method_t>(llhttp_get_method(parser)))
                   : std::to_string(llhttp_get_status_code(parser));
    self.message().start += ' ' + self.target;
    // llhttp leaves it to its user that some responses have no body.
    const int status = is_request ? 0 : llhttp_get_status_code(parser);
    return (status >= 100 && status < 200) || status == 204 || status == 304 ? 1 : 0;
  }
  static int end_message(llhttp_t* parser) {
    Message& message = of(parser).message();
    message.is_complete = true;
    message.is_persistent = llhttp_should_keep_alive(parser) != 0;
    return HPE_PAUSED;  // So that the position of the end is known.
  }
};

}  // namespace

bool has_reference_parser() noexcept { return true; }

ReferenceVerdict read_with_reference(std::string_view text, bool has_requests,
                                     const std::vector<std::size_t>& ends) {
  llhttp_settings_t settings;
  llhttp_settings_init(&settings);
  settings.on_message_begin = &Collector::begin;
  settings.on_url = &Collector::append_target;
  settings.on_header_field = &Collector::append_name;
  settings.on_header_value = &Collector::append_value;
  settings.on_header_value_complete = &Collector::end_field;
  settings.on_headers_complete = &Collector::end_head;
  settings.on_body = &Collector::append_body;
  settings.on_message_complete = &Collector::end_message;
  Collector collector;
  llhttp_t parser;
  llhttp_init(&parser, has_requests ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
  parser.data = &collector;

  llhttp_errno_t error = HPE_OK;
  const char* at = text.data();
  const char* const text_end = at + text.size();
  for (std::size_t piece = 0; piece <= ends.size() && error == HPE_OK; ++piece) {
    const char* const end = piece < ends.size() ? text.data() + ends[piece] : text_end;
    while (true) {
      error = llhttp_execute(&parser, at, static_cast<std::size_t>(end - at));
      if (error == HPE_OK) at = end;
      if (error != HPE_PAUSED && error != HPE_PAUSED_UPGRADE) break;
      at = llhttp_get_error_pos(&parser);
      collector.message().end = static_cast<std::size_t>(at - text.data());
      collector.verdict.upgraded = parser.upgrade != 0;
      if (!collector.message().is_persistent || collector.verdict.upgraded || at == text_end)
        return collector.verdict;
      llhttp_resume(&parser);
    }
  }
  if (error == HPE_OK) error = llhttp_finish(&parser);
  if (error == HPE_PAUSED) {
    collector.message().end = text.size();
    error = HPE_OK;
  }
  // The end of the text within a message is no rejection.
  if (error != HPE_OK && error != HPE_INVALID_EOF_STATE) {
    collector.verdict.failed = true;
    const char* const reason = llhttp_get_error_reason(&parser);
    collector.verdict.reason =
        std::string(llhttp_errno_name(error)) + ": " + (reason != nullptr ? reason : "");
  }
  return collector.verdict;
}

}  // namespace tambour::test

#else

namespace tambour::test {

bool has_reference_parser() noexcept { return false; }

ReferenceVerdict read_with_reference(std::string_view /*text*/, bool /*has_requests*/,
                                     const std::vector<std::size_t>& /*ends*/) {
  return {};
}

}  // namespace tambour::test

#endif
