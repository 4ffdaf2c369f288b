// Bodies of requests that are read from a program, or from another message.
#include <utility>

#include <tambour/http/client.h>

namespace tambour::http {
namespace {

class ForwardedBody final : public BodySource {
 public:
  explicit ForwardedBody(IncomingBody& body) noexcept : body_(body) {}

  Task<Result<>> read(Buffer& into) override {
    auto piece = co_await body_.read();
    if (!piece) co_return std::unexpected(piece.error());
    into.append(std::move(*piece));
    co_return {};
  }
  const Fields& trailers() const noexcept override { return body_.trailers(); }

 private:
  IncomingBody& body_;
};

}  // namespace

const Fields& BodySource::trailers() const noexcept {
  static const Fields none;
  return none;
}

void ClientRequest::forward(IncomingBody& content) {
  body.clear();
  source.reset();
  source_bytes.reset();
  if (content.is_complete()) return;
  source = std::make_unique<ForwardedBody>(content);
  source_bytes = content.length();
}

}  // namespace tambour::http
