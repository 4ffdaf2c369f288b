// A relay between a proxy and a server, which records what each connection carries.
#include "http/support/recording_back_end.h"

#include <algorithm>
#include <utility>

#include "http_message/characters.h"

namespace tambour::test {
namespace {

/// A request as the front end has written it.
struct SentRequest {
  std::string_view head;  ///< Without the empty line.
  std::string body{};
  bool is_complete = false;
};

std::string_view value_of(std::string_view head, std::string_view name) {
  for (std::size_t at = head.find("\r\n"); at != std::string_view::npos;
       at = head.find("\r\n", at)) {
    at += 2;
    const std::string_view line = head.substr(at, head.find("\r\n", at) - at);
    if (line.size() > name.size() && line[name.size()] == ':' &&
        http::equal_ignoring_case(line.substr(0, name.size()), name))
      return http::trim(line.substr(name.size() + 1));
  }
  return {};
}

/// Reads chunks, as plainly as possible. Returns false if they are incomplete.
bool read_chunks(std::string_view text, std::size_t& at, std::string& body) {
  while (true) {
    const std::size_t end = text.find("\r\n", at);
    if (end == std::string_view::npos) return false;
    const std::size_t size = std::stoull(std::string(text.substr(at, end - at)), nullptr, 16);
    at = end + 2;
    if (size == 0) break;
    if (text.size() - at < size + 2) return false;
    body += text.substr(at, size);
    at += size + 2;
  }
  while (true) {
    const std::size_t end = text.find("\r\n", at);
    if (end == std::string_view::npos) return false;
    const bool is_last = end == at;
    at = end + 2;
    if (is_last) return true;
  }
}

std::vector<SentRequest> split(std::string_view text) {
  std::vector<SentRequest> requests;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find("\r\n\r\n", at);
    SentRequest& request = requests.emplace_back(SentRequest{text.substr(at, end - at)});
    if (end == std::string_view::npos) break;
    at = end + 4;
    if (!value_of(request.head, "Transfer-Encoding").empty()) {
      request.is_complete = read_chunks(text, at, request.body);
    } else {
      const std::string length(value_of(request.head, "Content-Length"));
      const std::size_t size = length.empty() ? 0 : std::stoull(length);
      request.is_complete = text.size() - at >= size;
      request.body = text.substr(at, size);
      at = std::min(at + size, text.size());
    }
    if (!request.is_complete) break;
  }
  return requests;
}

std::size_t occurrences(std::string_view text, std::string_view subject) {
  std::size_t count = 0;
  for (std::size_t at = text.find(subject); at != std::string_view::npos;
       at = text.find(subject, at + 1))
    ++count;
  return count;
}

/// The server reads an absolute target as its parts.
bool is_start_of(std::string_view head, const ReadRequest& request) {
  const std::string_view line = head.substr(0, head.find("\r\n"));
  const std::string_view rest = line.substr(0, line.rfind(' '));
  return line.starts_with(request.method + " ") &&
         (rest.ends_with(request.target) || request.target == "/");
}

Task<> pump(SocketStream& from, SocketStream& to, std::string* record) {
  Buffer bytes;
  while (true) {
    const auto got = co_await from.read(bytes);
    if (!got || *got == 0) break;
    if (record != nullptr) record->append(bytes.to_string());
    const auto written = co_await to.write(bytes);
    if (!written) break;
    bytes.clear();
  }
  static_cast<void>(co_await to.shutdown_write());
}

}  // namespace

std::string disagreement(const RecordedConnection& connection, std::string_view mark) {
  const std::vector<SentRequest> sent = split(connection.sent);
  for (std::size_t i = 0; i < connection.read.size(); ++i) {
    const ReadRequest& read = connection.read[i];
    const std::string name = read.method + " " + read.target + ": ";
    if (i == sent.size()) return name + "the front end has sent fewer requests";
    if (occurrences(sent[i].head, mark) != 1) return name + "not written by the front end";
    if (occurrences(read.body, mark) != 0) return name + "a request is in its body";
    // The server closes the connection after a request that it rejects.
    if (read.is_rejected && i + 1 < connection.read.size()) return name + "served after an error";
    if (read.is_rejected) continue;
    if (!is_start_of(sent[i].head, read)) return name + "the front end has sent another one";
    if (read.is_complete && (!sent[i].is_complete || read.body != sent[i].body))
      return name + "another body";
  }
  return "";
}

RecordingBackEnd::RecordingBackEnd(EventLoop& loop, const std::string& path)
    : server_([&] {
        http::ServerOptions options;
        options.on_response = [this](const http::Request& request, const http::Response& response) {
          count(request, response);
        };
        return or_throw(http::Server::listen(
            loop, Endpoint::loopback_v4(0),
            [this](http::Request& request, http::Response& response) {
              return answer(request, response);
            },
            std::move(options)));
      }()),
      relay_(or_throw(UnixServer::listen(loop, or_throw(Endpoint::unix_name(path))))) {
  relay_.serve([this](UnixStream from) { return relay(std::move(from)); });
}

std::string RecordingBackEnd::answer_to(std::string_view method, std::string_view target) {
  return "answer to " + std::string(method) + " " + std::string(target) + "\n";
}

Task<> RecordingBackEnd::relay(UnixStream from) {
  auto to = co_await TcpStream::connect(server_.endpoint());
  if (!to) co_return;
  RecordedConnection& connection = connections_[or_throw(to->local_endpoint()).port()];
  connection = {};  // The port of an earlier connection.
  co_await when_all(pump(from, *to, &connection.sent), pump(*to, from, nullptr));
}

RecordedConnection& RecordingBackEnd::connection_of(const http::Request& request) {
  return connections_[or_throw(request.connection().peer_endpoint()).port()];
}

Task<> RecordingBackEnd::answer(http::Request& request, http::Response& response) {
  RecordedConnection& connection = connection_of(request);
  const std::size_t index = connection.read.size();
  connection.read.push_back({std::string(request.method().name()), request.head().target, {}});
  const auto body = co_await request.body().read_all();
  if (!body) co_return;
  connection.read[index].body = body->to_string();
  connection.read[index].is_complete = true;
  response.send(answer_to(request.method().name(), request.head().target));
}

void RecordingBackEnd::count(const http::Request& request, const http::Response&) {
  RecordedConnection& connection = connection_of(request);
  if (++connection.answered > connection.read.size())
    connection.read.push_back(
        {.method = "rejected", .target = "", .body = "", .is_rejected = true});
}

}  // namespace tambour::test
