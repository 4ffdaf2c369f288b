// libmosquitto, a client of MQTT, on a loop: publications and subscriptions as awaitables.
//
//   MqttClient mqtt(loop, "client-1");
//   if (const auto connected = co_await mqtt.connect("127.0.0.1", 1883); !connected) ...
//   const auto published = co_await mqtt.publish("sensors/1", "21.5", 1);
//
// Link with -lmosquitto. Requires libmosquitto 2.0; call mosquitto_lib_init() before.
#pragma once

#include <mosquitto.h>

#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <tambour/adapters/call.h>
#include <tambour/adapters/mosquitto_operations.h>
#include <tambour/base/callback.h>
#include <tambour/loop/event_loop.h>
#include <tambour/loop/fd_watcher.h>
#include <tambour/loop/timer.h>

#pragma GCC visibility push(default)

namespace tambour::adapters {

/// A connection to an MQTT broker, and the publications and subscriptions in flight.
///
/// Ownership: owns the connection. Lifetime: must not be destroyed inside on_message; operations in
/// flight then fail with ECANCELED. Thread: the loop's.
/// Reconnection: when the connection is lost, subscriptions and publications with QoS 0 in flight
/// fail with ECONNRESET. libmosquitto keeps publications with QoS 1 and 2 and sends them again
/// after reconnect(): their waits go on.
/// Cancellation: a wait that is stopped or has timed out fails at once; the operation goes on.
class MqttClient {
 public:
  /// What an operation returns: a `Result<>` when it is awaited.
  using Wait = Call<void>::Wait;

  /// Throws std::bad_alloc.
  MqttClient(EventLoop& loop, const char* id, bool clean_session = true)
      : loop_(loop),
        client_(mosquitto_new(id, clean_session, this)),
        tick_(loop, [this] { check(mosquitto_loop_misc(client_)); }) {
    if (client_ == nullptr) throw std::bad_alloc();
    mosquitto_connect_callback_set(client_, &connected);
    mosquitto_disconnect_callback_set(client_, &disconnected);
    mosquitto_publish_callback_set(client_, &published);
    mosquitto_subscribe_callback_set(client_, &subscribed);
    mosquitto_message_callback_set(client_, &received);
  }
  MqttClient(const MqttClient&) = delete;
  MqttClient& operator=(const MqttClient&) = delete;
  ~MqttClient() {
    watcher_.reset();
    mosquitto_destroy(client_);
    end_connecting(ECANCELED);
  }

  /// For mosquitto_tls_set(), mosquitto_username_pw_set() and others.
  [[nodiscard]] mosquitto* get() const noexcept { return client_; }
  [[nodiscard]] bool is_connected() const noexcept { return is_connected_; }

  /// Connects and waits for the broker's answer. libmosquitto resolves names and connects with
  /// blocking calls: give an address of a host that answers. Port 0: `host` is a Unix path.
  /// Fails with ECONNREFUSED if the broker refuses the client.
  Wait connect(const char* host, int port, int keep_alive_s = 60) {
    return begin(mosquitto_connect(client_, host, port, keep_alive_s));
  }
  /// Connects again with the arguments of the last connect().
  Wait reconnect() { return begin(mosquitto_reconnect(client_)); }
  /// Ends the connection after what is in flight has been sent.
  void disconnect() {
    mosquitto_disconnect(client_);
    update();
  }

  /// Waits until the message was sent (QoS 0), or acknowledged by the broker (1 and 2). Fails with
  /// ENOTCONN, EINVAL or ENOMEM.
  Wait publish(const char* topic, std::string_view payload, int qos, bool retain = false) {
    int id = 0;
    operations_.expect();
    const int error = mosquitto_publish(client_, &id, topic, static_cast<int>(payload.size()),
                                        payload.data(), qos, retain);
    return track(error, id, qos);
  }
  /// Waits for the broker's acknowledgement. Messages go to on_message().
  Wait subscribe(const char* pattern, int qos) {
    int id = 0;
    operations_.expect();
    const int error = mosquitto_subscribe(client_, &id, pattern, qos);
    return track(error, id, 0);
  }
  /// Sets the function that is invoked with each message, which must not throw.
  void on_message(Callback<void(const mosquitto_message&)> function) {
    on_message_ = std::make_shared<Callback<void(const mosquitto_message&)>>(std::move(function));
  }

 private:
  static Error error_of(int code) noexcept {
    switch (code) {
      case MOSQ_ERR_ERRNO:
        return system_error(errno);
      case MOSQ_ERR_NO_CONN:
        return system_error(ENOTCONN);
      case MOSQ_ERR_NOMEM:
        return system_error(ENOMEM);
      case MOSQ_ERR_CONN_REFUSED:
        return system_error(ECONNREFUSED);
      case MOSQ_ERR_EAI:
        return system_error(EHOSTUNREACH);
      default:
        return system_error(EINVAL);
    }
  }

  Wait begin(int error) {
    end_connecting(ECANCELED);
    if (error != MOSQ_ERR_SUCCESS) return Call<void>::failed(error_of(error));
    auto [call, wait] = Call<void>::begin();
    connecting_ = call;
    // The number of the former socket may be that of the new one.
    watcher_.reset();
    update();
    tick_.start(std::chrono::seconds(1), std::chrono::seconds(1));
    return std::move(wait);
  }
  Wait track(int error, int id, int qos) {
    // With QoS 1 and 2, libmosquitto keeps a message that it cannot send now.
    const bool is_kept = qos > 0;
    if (error != MOSQ_ERR_SUCCESS && !(error == MOSQ_ERR_NO_CONN && is_kept))
      return Call<void>::failed(error_of(error));
    auto wait = operations_.add(id, is_kept);
    update();
    return wait;
  }

  /// Watches what libmosquitto waits for; the socket is another one after each connect().
  void update() {
    const int fd = mosquitto_socket(client_);
    if (fd < 0) return watcher_.reset();
    const Events interest =
        mosquitto_want_write(client_) ? Events::read | Events::write : Events::read;
    if (!watcher_ || watcher_->fd() != fd) {
      watcher_.emplace(loop_, fd, interest, [this](Events events) { act(events); });
    } else if (watcher_->interest() != interest) {
      watcher_->set(interest);
    }
    static_cast<void>(watcher_->start());
  }
  void act(Events events) {
    constexpr int packets_max = 100;
    {
      const detail::MqttOperations::Collecting collecting(operations_);
      if (has(events, Events::read) || has(events, Events::error))
        check(mosquitto_loop_read(client_, packets_max));
      if (has(events, Events::write)) check(mosquitto_loop_write(client_, packets_max));
    }
    update();
    operations_.resume_tasks();  // May destroy this object.
  }
  void check(int error) {
    // libmosquitto has closed the socket and called disconnected().
    if (error == MOSQ_ERR_SUCCESS) update();
    if (error != MOSQ_ERR_SUCCESS) lose();
  }
  void lose() {
    is_connected_ = false;
    if (mosquitto_socket(client_) < 0) {
      watcher_.reset();
      tick_.stop();
    }
    end_connecting(ECONNREFUSED);
    operations_.fail(ECONNRESET, false);
  }
  void end_connecting(int error) {
    if (connecting_ == nullptr) return;
    std::exchange(connecting_, nullptr)->finish_later(std::unexpected(system_error(error)));
  }

  static MqttClient& of(void* self) noexcept { return *static_cast<MqttClient*>(self); }
  static void connected(mosquitto* /*client*/, void* data, int code) {
    MqttClient& self = of(data);
    self.is_connected_ = code == 0;
    if (self.connecting_ == nullptr) return;
    Call<void>* const call = std::exchange(self.connecting_, nullptr);
    if (code == 0) return call->finish_later({});
    call->finish_later(std::unexpected(system_error(ECONNREFUSED)));
  }
  static void disconnected(mosquitto* /*client*/, void* data, int /*code*/) { of(data).lose(); }
  static void published(mosquitto* /*client*/, void* data, int id) {
    of(data).operations_.finish(id);
  }
  static void subscribed(mosquitto* /*client*/, void* data, int id, int /*count*/,
                         const int* /*qos*/) {
    of(data).operations_.finish(id);
  }
  static void received(mosquitto* /*client*/, void* data, const mosquitto_message* message) {
    // The function may set another one.
    const auto function = of(data).on_message_;
    if (function != nullptr && *function) (*function)(*message);
  }

  EventLoop& loop_;
  mosquitto* client_;
  Timer tick_;  ///< Keep-alive messages and time limits of libmosquitto.
  std::optional<FdWatcher> watcher_;
  Call<void>* connecting_ = nullptr;
  bool is_connected_ = false;
  detail::MqttOperations operations_;
  std::shared_ptr<Callback<void(const mosquitto_message&)>> on_message_;
};

}  // namespace tambour::adapters

#pragma GCC visibility pop
