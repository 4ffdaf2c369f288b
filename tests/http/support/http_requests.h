// Requests that curl, http::Client, http::Server and nginx must treat in the same way.
#pragma once

#include <string>
#include <vector>

namespace tambour::test {

/// A request. `ETAG` stands for the entity tag of a.txt, which each server chooses.
struct HttpRequest {
  std::string method = "GET";
  std::string target = "/a.txt";
  std::vector<std::string> fields{};
  std::string body{};
  bool is_chunked = false;
  bool follows = false;       ///< Redirects, at most five.
  bool has_own_text = false;  ///< The body is a text that the server chooses.
  bool is_coded = false;      ///< The server may compress the body, and choose its framing.
  bool stores_cookies = false;
  /// Arguments of curl. http::Client does not make the request.
  std::vector<std::string> curl{};
  /// Further targets, which curl requests with the same command.
  std::vector<std::string> more{};
};

/// The time of modification of all files.
inline constexpr const char* modified_text = "Wed, 01 Jan 2020 00:00:00 GMT";

std::vector<HttpRequest> http_requests();

}  // namespace tambour::test
