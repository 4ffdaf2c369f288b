// Lists of fields, as far as other files of evhttp need more than event2/http.h has.
#pragma once

#include <sys/queue.h>

#include <string_view>

#include <event2/keyvalq_struct.h>

struct evhttp_uri;

// Declared by libevent's http-internal.h only. `decode_plus_ctl`: 1 decodes "+" to a space, a
// negative value does so after a question mark. `ret` may be the same as `uri`.
extern "C" int evhttp_decode_uri_internal(const char* uri, std::size_t length, char* ret,
                                          int decode_plus_ctl);

namespace tambour::libevent {

/// A copy that event_mm_free_() frees, or null.
[[nodiscard]] char* copy_text(std::string_view text) noexcept;

/// Appends a field. Neither text may contain a null byte. Returns false if there is no memory.
[[nodiscard]] bool append_field(evkeyvalq& list, std::string_view name,
                                std::string_view value) noexcept;

/// True if a field with this name has `token` among the elements of its list, without regard to
/// case.
[[nodiscard]] bool has_token(const evkeyvalq& list, const char* name,
                             std::string_view token) noexcept;

/// The target of a CONNECT request: a host and a port. Returns null if it is none, or if there is
/// no memory.
[[nodiscard]] evhttp_uri* parse_authority_form(const char* target) noexcept;

}  // namespace tambour::libevent
