// The client of the subjects that use libmosquitto without an adapter.
#pragma once

#include <mosquitto.h>

#include <string>

#include "clients/clients.h"

namespace bench {

/// A connection to a broker. An operation publishes a message with QoS 1 and waits for its
/// acknowledgement.
class MosquittoClient {
 public:
  explicit MosquittoClient(const ClientSetup& setup) : in_flight_(setup.in_flight) {
    mosquitto_lib_init();
    client_ = mosquitto_new("client", true, this);
    mosquitto_int_option(client_, MOSQ_OPT_SEND_MAXIMUM, 100);
    mosquitto_connect_callback_set(client_, [](mosquitto*, void* self, int code) {
      if (code != 0) fail("MQTT: refused");
      of(self).is_connected_ = true;
    });
    mosquitto_publish_callback_set(client_,
                                   [](mosquitto*, void* self, int) { ++of(self).acknowledged_; });
    if (mosquitto_connect(client_, setup.server.c_str(), 0, 60) != MOSQ_ERR_SUCCESS)
      fail("MQTT: not connected");
    while (!is_connected_) mosquitto_loop(client_, 100, 1);
  }
  MosquittoClient(const MosquittoClient&) = delete;
  MosquittoClient& operator=(const MosquittoClient&) = delete;
  ~MosquittoClient() { mosquitto_destroy(client_); }

  mosquitto* get() { return client_; }
  int fd() { return mosquitto_socket(client_); }
  bool wants_to_write() { return mosquitto_want_write(client_); }

  void run(Operations& all) {
    all_ = &all;
    for (int i = 0; i < in_flight_; ++i) publish();
  }
  /// Returns whether all operations have ended.
  bool act(bool can_read, bool can_write) {
    if (can_read && mosquitto_loop_read(client_, 1) != MOSQ_ERR_SUCCESS) fail("MQTT: lost");
    if (can_write) mosquitto_loop_write(client_, 1);
    bool is_last = false;
    for (; acknowledged_ > 0; --acknowledged_) {
      is_last = all_->end();
      publish();
    }
    return is_last;
  }
  /// Once in a second.
  void tick() { mosquitto_loop_misc(client_); }

 private:
  static MosquittoClient& of(void* self) { return *static_cast<MosquittoClient*>(self); }
  void publish() {
    static const std::string value(value_bytes, 'x');
    if (!all_->begin()) return;
    if (mosquitto_publish(client_, nullptr, "topic", value_bytes, value.data(), 1, false) != 0)
      fail("MQTT: not published");
  }

  int in_flight_;
  mosquitto* client_;
  bool is_connected_ = false;
  int acknowledged_ = 0;
  Operations* all_ = nullptr;
};

}  // namespace bench
