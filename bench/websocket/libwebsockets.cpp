// The server on libwebsockets: a queue of messages for each WebSocket, as in its minimal examples.
#include <libwebsockets.h>

#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>

#include "websocket/websocket.h"

namespace {

/// With LWS_PRE bytes in front, into which the library writes the header of the frame.
struct Message {
  std::string bytes;
  bool is_binary;
};
using MessagePointer = std::shared_ptr<Message>;

struct Session {
  lws* connection = nullptr;
  std::string received;
  std::deque<MessagePointer> queue;
};

class Libwebsockets {
 public:
  explicit Libwebsockets(const bench::ServerOptions& options)
      : is_broadcast_(options.service == bench::Service::broadcast) {
    lws_set_log_level(LLL_ERR, nullptr);
    lws_context_creation_info info{};
    info.port = options.port;
    info.iface = "127.0.0.1";
    info.protocols = protocols_;
    info.user = this;
    info.gid = gid_t(-1);
    info.uid = uid_t(-1);
    if (options.deflate) info.extensions = extensions_;
    context_ = lws_create_context(&info);
    if (context_ == nullptr) bench::fail("lws_create_context");
  }
  Libwebsockets(const Libwebsockets&) = delete;
  Libwebsockets& operator=(const Libwebsockets&) = delete;
  ~Libwebsockets() { lws_context_destroy(context_); }

  void run() {
    while (lws_service(context_, 0) >= 0) {
    }
  }

  static bench::SubjectInfo info() { return {"libwebsockets", LWS_LIBRARY_VERSION, "epoll"}; }

 private:
  static int callback(lws* connection, lws_callback_reasons reason, void* user, void* in,
                      std::size_t size) {
    auto* const slot = static_cast<Session**>(user);
    auto& self = *static_cast<Libwebsockets*>(lws_context_user(lws_get_context(connection)));
    switch (reason) {
      case LWS_CALLBACK_ESTABLISHED:
        *slot = new Session{.connection = connection};
        self.sessions_.insert(*slot);
        break;
      case LWS_CALLBACK_CLOSED:
        self.sessions_.erase(*slot);
        delete *slot;
        break;
      case LWS_CALLBACK_RECEIVE:
        self.receive(**slot, {static_cast<const char*>(in), size});
        break;
      case LWS_CALLBACK_SERVER_WRITEABLE:
        return write(**slot);
      default:
        break;
    }
    return 0;
  }

  void receive(Session& session, std::string_view part) {
    if (session.received.empty()) session.received.assign(LWS_PRE, '\0');
    session.received.append(part);
    if (lws_remaining_packet_payload(session.connection) > 0 ||
        !lws_is_final_fragment(session.connection))
      return;
    const auto message = std::make_shared<Message>(std::exchange(session.received, {}),
                                                   lws_frame_is_binary(session.connection) != 0);
    if (!is_broadcast_) return queue(session, message);
    for (Session* const other : sessions_) queue(*other, message);
  }

  static void queue(Session& session, const MessagePointer& message) {
    session.queue.push_back(message);
    lws_callback_on_writable(session.connection);
  }

  static int write(Session& session) {
    if (session.queue.empty()) return 0;
    const MessagePointer message = std::move(session.queue.front());
    session.queue.pop_front();
    const std::size_t size = message->bytes.size() - LWS_PRE;
    auto* const payload = reinterpret_cast<unsigned char*>(message->bytes.data()) + LWS_PRE;
    if (lws_write(session.connection, payload, size,
                  message->is_binary ? LWS_WRITE_BINARY : LWS_WRITE_TEXT) < int(size))
      return -1;
    if (!session.queue.empty()) lws_callback_on_writable(session.connection);
    return 0;
  }

  static constexpr lws_protocols protocols_[] = {{.name = "bench",
                                                  .callback = &callback,
                                                  .per_session_data_size = sizeof(Session*),
                                                  .rx_buffer_size = 65536,
                                                  .id = 0,
                                                  .user = nullptr,
                                                  .tx_packet_size = 0},
                                                 {}};
  static constexpr lws_extension extensions_[] = {
      {"permessage-deflate", lws_extension_callback_pm_deflate,
       "permessage-deflate; server_no_context_takeover; client_no_context_takeover"},
      {}};

  bool is_broadcast_;
  lws_context* context_;
  std::unordered_set<Session*> sessions_;
};

}  // namespace

int main(int argc, char** argv) { return bench::run_websocket<Libwebsockets>(argc, argv); }
