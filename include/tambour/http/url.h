// URLs: parsing, normalization, resolution of references, percent-encoding, query parameters.
//
// A Url is a valid URI reference as RFC 3986 defines it: what it accepts, every other
// implementation of the RFC reads in the same way. Text with other characters, for example spaces
// or letters outside ASCII, is rejected and not repaired; encode such parts with percent_encode()
// first. The HTTP client does so with URLs that programs and redirects give it. Components are
// returned as they are written, percent-encoded: decode after splitting, because a decoded
// component may contain delimiters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tambour/base/result.h>
#include <tambour/detail/lifetime.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/error.h>

#pragma GCC visibility push(default)

namespace tambour::http {

/// The components of a URL, percent-encoded, without their delimiters. A component that is absent
/// differs from an empty one: "a?" has an empty query, "a" has none.
struct UrlParts {
  std::optional<std::string_view> scheme{};
  /// Userinfo, host and port: "user@example.org:80", "[::1]".
  std::optional<std::string_view> authority{};
  std::string_view path{};
  std::optional<std::string_view> query{};
  std::optional<std::string_view> fragment{};
};

/// The default port of a scheme: 80 for http and ws, 443 for https and wss, otherwise 0.
[[nodiscard]] std::uint16_t default_port(std::string_view scheme) noexcept;

/// A URL or a relative reference: RFC 3986, section 4.1. A value; all functions that return a
/// std::string_view refer to it.
class Url {
 public:
  /// The maximum length in bytes.
  static constexpr std::size_t size_max = 65535;

  /// The empty reference, which refers to the document that contains it.
  Url() = default;

  /// Accepts absolute URLs and relative references: "https://example.org/a?b#c", "//host/a",
  /// "../a", "?b". Fails with the errors of URLs in http::ErrorCode. Throws std::bad_alloc.
  [[nodiscard]] static Result<Url> parse(std::string_view text);

  /// Composes a URL (RFC 3986, section 5.3). Fails like parse(), and with
  /// http::ErrorCode::url_ambiguous_path if the result would be read as other components: a path
  /// that begins with "//" without an authority, or does not begin with "/" after one. Throws
  /// std::bad_alloc.
  [[nodiscard]] static Result<Url> compose(const UrlParts& parts);

  /// The text, normalized by parse().
  [[nodiscard]] const std::string& to_string() const noexcept TAMBOUR_LIFETIME_BOUND {
    return text_;
  }
  /// The components, for compose().
  [[nodiscard]] UrlParts parts() const noexcept;

  /// True if it has a scheme.
  [[nodiscard]] bool is_absolute() const noexcept { return has_scheme_; }
  /// Without the colon; empty if the URL is relative. Schemes are case-insensitive.
  [[nodiscard]] std::string_view scheme() const noexcept TAMBOUR_LIFETIME_BOUND {
    return slice(0, scheme_end_);
  }
  [[nodiscard]] bool has_authority() const noexcept { return has_authority_; }
  /// Userinfo, host and port; empty if there is none.
  [[nodiscard]] std::string_view authority() const noexcept TAMBOUR_LIFETIME_BOUND {
    return slice(authority_begin_, path_begin_);
  }
  /// "user:password". Not sent in HTTP requests; RFC 9110, section 4.2.4, deprecates it.
  [[nodiscard]] std::optional<std::string_view> userinfo() const noexcept;
  /// An IPv6 address is returned without its brackets, as connect() and Endpoint::parse(address,
  /// port) expect it. Host names are case-insensitive.
  [[nodiscard]] std::string_view host() const noexcept TAMBOUR_LIFETIME_BOUND {
    return slice(host_begin_, host_end_);
  }
  /// True if the host is written in brackets.
  [[nodiscard]] bool has_ip_literal() const noexcept { return has_brackets_; }
  /// No value if there is no port, or only its colon.
  [[nodiscard]] std::optional<std::uint16_t> port() const noexcept { return port_; }
  /// The port, or default_port() of the scheme.
  [[nodiscard]] std::uint16_t port_or_default() const noexcept {
    return port_ ? *port_ : default_port(scheme());
  }
  /// The components, percent-encoded; without "?" and "#". Not set is not the same as empty.
  [[nodiscard]] std::string_view path() const noexcept TAMBOUR_LIFETIME_BOUND {
    return slice(path_begin_, path_end_);
  }
  [[nodiscard]] std::optional<std::string_view> query() const noexcept;
  [[nodiscard]] std::optional<std::string_view> fragment() const noexcept;

  /// Path and query in the form in which a request names them (RFC 9112, section 3.2.1): an empty
  /// path becomes "/". Throws std::bad_alloc.
  [[nodiscard]] std::string request_target() const;

  /// The URL to which `reference` refers in a document at this URL: RFC 3986, section 5.2. The
  /// fragment of this URL is ignored. Fails with http::ErrorCode::url_not_absolute if this URL has
  /// no scheme, with url_ambiguous_path, and with url_too_long. Throws std::bad_alloc.
  [[nodiscard]] Result<Url> resolve(const Url& reference) const;

  /// An equivalent URL in normal form (RFC 3986, sections 6.2.2 and 6.2.3): scheme and host in
  /// lower case, percent-encoding in upper case and only where it is needed, no dot segments in
  /// absolute paths, and for http, https, ws and wss no default port and no empty path. Throws
  /// std::bad_alloc.
  [[nodiscard]] Url normalized() const;

  /// Compares the text. Compare normalized() URLs to find equivalent ones.
  bool operator==(const Url& other) const noexcept { return text_ == other.text_; }

 private:
  [[nodiscard]] std::string_view slice(std::size_t begin, std::size_t end) const noexcept {
    return std::string_view(text_).substr(begin, end - begin);
  }
  Result<> parse_parts();
  Result<> parse_scheme();
  Result<> parse_authority();

  std::string text_;
  // Indexes into the text. Delimiters are outside of the components.
  std::uint16_t scheme_end_ = 0;
  std::uint16_t authority_begin_ = 0;  ///< Also the begin of the userinfo.
  std::uint16_t host_begin_ = 0;
  std::uint16_t host_end_ = 0;
  std::uint16_t path_begin_ = 0;  ///< Also the end of the authority.
  std::uint16_t path_end_ = 0;
  std::uint16_t query_end_ = 0;
  std::optional<std::uint16_t> port_;
  bool has_scheme_ = false;
  bool has_authority_ = false;
  bool has_userinfo_ = false;
  bool has_brackets_ = false;
  bool has_query_ = false;
  bool has_fragment_ = false;
};

/// Where text is put, which determines the characters that percent_encode() encodes.
enum class UrlComponent : std::uint8_t {
  path,          ///< A path; "/" is not encoded.
  path_segment,  ///< One segment of a path; "/" is encoded.
  query,         ///< A whole query; "&" and "=" are not encoded.
  fragment,      ///< Like `query`.
  user,          ///< A user name or a password; ":" is encoded.
  unreserved,    ///< Encodes everything but letters, digits, "-", ".", "_" and "~".
};

/// Encodes the bytes of `text` that must not occur in `component`, and "%". Throws std::bad_alloc.
[[nodiscard]] std::string percent_encode(std::string_view text, UrlComponent component);

/// Replaces each "%XX" by the byte. The result may contain any byte, also "/" and null bytes. Fails
/// with http::ErrorCode::url_bad_encoding if a percent sign is not followed by two hexadecimal
/// digits. Throws std::bad_alloc.
[[nodiscard]] Result<std::string> percent_decode(std::string_view text);

/// Removes "." and ".." segments: RFC 3986, section 5.2.4. "/a/../../b" becomes "/b". Throws
/// std::bad_alloc.
[[nodiscard]] std::string remove_dot_segments(std::string_view path);

/// Names and values in their order. Names may repeat.
using QueryParameters = std::vector<std::pair<std::string, std::string>>;

/// Parses application/x-www-form-urlencoded text (URL Standard, section 5.1), the format of forms
/// and of most queries: "a=1&b=x+y". "+" becomes a space; a percent sign without two digits stays
/// as it is. Fails with EMSGSIZE if there are more than `count_max` parameters. Throws
/// std::bad_alloc.
[[nodiscard]] Result<QueryParameters> parse_query(std::string_view query,
                                                  std::size_t count_max = 1000);
/// Formats parameters as parse_query() reads them: encodes everything but letters, digits, "-",
/// ".", "_", "~", and spaces as "+". Throws std::bad_alloc.
[[nodiscard]] std::string format_query(const QueryParameters& parameters);

}  // namespace tambour::http

#pragma GCC visibility pop
