// The messages of HTTP/1.1 and HTTP/1.0 on the connection of a server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include <tambour/base/result.h>
#include <tambour/bytes/buffer.h>
#include <tambour/detail/namespaces.h>
#include <tambour/http/message.h>
#include <tambour/loop/event_loop.h>
#include <tambour/task/scope.h>
#include <tambour/task/task.h>

#include "http/connection/input.h"
#include "http/connection/output.h"
#include "http/exchange/exchange.h"
#include "http/exchange/wire.h"
#include "http/server/idle/server_on_loop.h"
#include "http_message/h1/framing.h"
#include "http_message/h1/parser.h"
#include "http_message/h1/writer.h"

namespace tambour::http {

/// One wire carries all messages of a connection, one after the other. The connection reads heads,
/// and sends what is queued when no handler does.
///
/// Ownership: owned by the connection; owns the stream. Thread: that of the loop.
class H1Wire final : public Wire, private MemoryUser {
 public:
  /// `server` must outlive the wire.
  H1Wire(SocketStream stream, ServerOnLoop& server);
  ~H1Wire() { server_.end_use(*this); }

  /// To be called before anything else.
  void attach(detail::Exchange& exchange) noexcept { exchange_ = &exchange; }

  [[nodiscard]] SocketStream& socket() noexcept { return stream_; }
  [[nodiscard]] Input& input() noexcept { return input_; }
  [[nodiscard]] Output& output() noexcept { return output_; }
  [[nodiscard]] detail::h1::RequestParser& parser() noexcept { return parser_; }
  [[nodiscard]] const detail::h1::RequestParser& parser() const noexcept { return parser_; }

  /// Bytes have arrived in the memory of the server. They stay there until they are parsed, or
  /// until leave_shared_memory().
  void receive(std::string_view bytes) noexcept { arrived_ = bytes; }
  /// Moves what has arrived to the input, and responses to the output, before the task waits or the
  /// input is used. Throws std::bad_alloc.
  void leave_shared_memory() {
    if (!arrived_.empty() || collected_ > 0 || is_lost_) [[unlikely]]
      move_from_shared_memory();
  }
  /// The number of bytes of responses that wait to be sent.
  [[nodiscard]] std::size_t output_bytes() noexcept { return collected_ + output_.queue().size(); }
  /// Sends responses as Output::write_now() does. Throws std::bad_alloc.
  [[nodiscard]] bool write_now();
  /// Parses the next head from the input and from what has arrived. Returns false if bytes are
  /// missing; nothing is left in the memory of the server then, or after an error. Throws
  /// std::bad_alloc.
  [[nodiscard]] Result<bool> parse_head() {
    const bool has_input = !input_.bytes().empty() || is_lost_;
    if (arrived_.empty() && !has_input) return false;
    if (arrived_.empty() || has_input) return parse_other_head();
    const std::size_t size = parser_.parse_usual_head(arrived_);
    if (size == 0) return parse_other_head();
    arrived_.remove_prefix(size);
    if (!arrived_.empty()) server_.begin_use(*this);
    return true;
  }
  /// The head of a request has been parsed.
  void start() noexcept { is_persistent_ = parser_.is_persistent(); }
  /// True if the connection may carry a further request.
  [[nodiscard]] bool is_persistent() const noexcept { return is_persistent_; }

  [[nodiscard]] Task<Result<Buffer>> read(std::size_t bytes_max) override;
  [[nodiscard]] std::optional<std::uint64_t> body_length() const noexcept override;
  [[nodiscard]] std::optional<std::uint64_t> body_bytes_left() const noexcept override {
    return parser_.bytes_left();
  }
  [[nodiscard]] bool is_body_complete() const noexcept override { return parser_.is_complete(); }
  [[nodiscard]] const Fields& trailers() const noexcept override { return parser_.trailers(); }
  void set_body_bytes_max(std::uint64_t bytes_max) noexcept override {
    parser_.set_body_bytes_max(bytes_max);
  }
  void watch() override;
  void stop_watching() noexcept override { watching_.reset(); }

  [[nodiscard]] Result<> begin(const ResponseHead& head, const BodyPlan& plan) override;
  [[nodiscard]] Result<> send(const ResponseHead& head, const BodyPlan& plan,
                              Buffer&& body) override;
  [[nodiscard]] Result<> send_text(const ResponseHead& head, const BodyPlan& plan,
                                   std::string_view body) override {
    return append_head(head, plan, plan.is_sent ? body : std::string_view(), true);
  }
  [[nodiscard]] Result<> begin_interim(const ResponseHead& head) override;
  void write(Buffer&& piece) override;
  [[nodiscard]] Task<Result<>> write_file(const File& file, std::uint64_t offset,
                                          std::uint64_t size) override;
  [[nodiscard]] Result<> end(const Fields& trailers) override;
  [[nodiscard]] Task<Result<>> flush() override {
    leave_shared_memory();
    return output_.flush();
  }

  [[nodiscard]] ByteStream take_stream() override;
  [[nodiscard]] bool is_connection() const noexcept override { return true; }
  [[nodiscard]] const SocketStream& stream() const noexcept override { return stream_; }

 private:
  [[nodiscard]] Result<bool> parse_other_head();
  [[nodiscard]] Result<> append_head(const ResponseHead& head, const BodyPlan& plan,
                                     std::string_view body, bool is_whole);
  [[nodiscard]] Result<> append_whole(const ResponseHead& head,
                                      const detail::h1::HeadOptions& options);
  [[nodiscard]] bool may_collect() noexcept;
  [[nodiscard]] std::string_view collected_text() noexcept {
    return {server_.output_memory().data(), collected_};
  }
  void leave_memory() noexcept override;
  void move_from_shared_memory();
  [[nodiscard]] Buffer& kept_input() {
    leave_shared_memory();
    return input_.bytes();
  }
  /// What is appended to it follows all responses.
  [[nodiscard]] Buffer& queue() {
    leave_shared_memory();
    return output_.queue();
  }
  [[nodiscard]] detail::h1::BodyFraming framing_of(const BodyPlan& plan) const noexcept;
  [[nodiscard]] Task<> watch_client();

  EventLoop& loop_;
  ServerOnLoop& server_;
  detail::Exchange* exchange_ = nullptr;
  SocketStream stream_;
  Input input_;
  std::string_view arrived_;   ///< Behind the bytes of the input.
  std::size_t collected_ = 0;  ///< Bytes of responses in the memory of the server. Nothing else
                               ///< waits to be sent then.
  bool is_lost_ = false;       ///< Memory was exhausted when bytes left that of the server.
  Output output_;
  detail::h1::RequestParser parser_;
  detail::h1::BodyFraming framing_;  ///< Of the response.
  bool is_persistent_ = true;
  std::unique_ptr<TaskScope> watching_;  ///< At most one task, which reads ahead.
};

}  // namespace tambour::http
