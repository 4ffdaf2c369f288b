// The client of HTTP/2 that downloads and asks for something urgent. It does not decode fields.
#include "http/urgent.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string>
#include <string_view>

#include "http/channel.h"
#include "http/http.h"

namespace bench {
namespace {

constexpr std::size_t head_bytes = 9;
constexpr double bytes_per_ns = 0.1;
constexpr int receive_buffer_bytes = 256 * 1024;
constexpr std::int64_t bytes_between_probes = 1 << 20;
constexpr int window_max = 0x7FFFFFFF;

enum FrameType : int {
  data = 0,
  headers = 1,
  rst_stream = 3,
  settings = 4,
  ping = 6,
  goaway = 7,
  window_update = 8
};

void append(std::string& to, std::uint32_t value, int bytes) {
  while (bytes-- > 0) to += char(value >> (8 * bytes) & 0xFF);
}

std::string frame(int type, int flags, std::uint32_t stream, std::string_view payload) {
  std::string text;
  append(text, std::uint32_t(payload.size()), 3);
  append(text, std::uint32_t(type), 1);
  append(text, std::uint32_t(flags), 1);
  append(text, stream, 4);
  return text.append(payload);
}

/// A literal field without indexing; `name` is an index of the static table.
std::string field(int name, std::string_view value) {
  return char(name) + (char(value.size()) + std::string(value));
}

class Client {
 public:
  Client(std::uint16_t port, const UrgentWork& work)
      : channel_(port, work.tls, "h2"), work_(work), next_read_ns_(now_ns()) {
    setsockopt(channel_.fd(), SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
               sizeof receive_buffer_bytes);
    std::string parameters;
    for (const auto& [id, value] : {std::pair(2, 0), std::pair(4, window_max)}) {
      append(parameters, std::uint32_t(id), 2);
      append(parameters, std::uint32_t(value), 4);
    }
    std::string window;
    append(window, window_max - 65535, 4);
    send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(settings, 0, 0, parameters) +
         frame(window_update, 0, 0, window));
    for (int i = 0; i < work.downloads; ++i) request(http_target, false);
  }

  void download(std::int64_t bytes) {
    for (const std::int64_t end = received_ + bytes; received_ < end;) read();
  }

  struct Response {
    double first_byte_us;
    double bytes_ahead;  ///< That arrived after the request was sent, and before the response.
  };
  Response request_urgently() {
    const std::int64_t began_ns = now_ns();
    const std::int64_t began_bytes = received_;
    urgent_stream_ = request(small_target, true);
    while (urgent_stream_ != 0) read();
    return {double(urgent_ns_ - began_ns) / 1e3, double(urgent_at_ - began_bytes)};
  }

 private:
  void send(const std::string& text) const {
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t done = channel_.send(text.data() + sent, text.size() - sent);
      if (done <= 0) fail_errno("client: send");
      sent += std::size_t(done);
    }
  }

  /// Sends a request with the priorities of RFC 9218 and those of RFC 7540. Returns its stream.
  std::uint32_t request(const char* target, bool is_urgent) {
    std::string payload("\0\0\0\0", 4);
    payload += char(is_urgent ? 255 : 0);  // The weight.
    payload += char(0x82);                 // The method GET.
    payload += char(work_.tls ? 0x87 : 0x86);
    payload += field(1, "localhost") + field(4, target);
    payload += field(0, "priority") + (char(3) + std::string(is_urgent ? "u=0" : "u=5"));
    const std::uint32_t stream = next_stream_;
    next_stream_ += 2;
    send(frame(headers, 0x1 | 0x4 | 0x20, stream, payload));
    return stream;
  }

  void read() {
    const timespec time{next_read_ns_ / 1'000'000'000, next_read_ns_ % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
    const ssize_t got = channel_.receive(buffer_.data(), buffer_.size());
    if (got <= 0) fail_errno("client: recv");
    // A client that had to wait for the server does not catch up.
    next_read_ns_ =
        std::max(next_read_ns_, now_ns() - 1'000'000) + std::int64_t(double(got) / bytes_per_ns);
    for (std::string_view rest(buffer_.data(), std::size_t(got)); !rest.empty();) take(rest);
  }

  /// Removes a part of a frame from `rest`.
  void take(std::string_view& rest) {
    const std::size_t wanted = head_.size() < head_bytes ? head_bytes - head_.size() : left_;
    const std::size_t size = std::min(rest.size(), wanted);
    if (head_.size() < head_bytes) {
      head_.append(rest.substr(0, size));
      if (head_.size() == head_bytes) begin_frame();
    } else {
      left_ -= size;
      if (type() == ping || type() == rst_stream) payload_.append(rest.substr(0, size));
    }
    received_ += std::int64_t(size);
    rest.remove_prefix(size);
    if (head_.size() == head_bytes && left_ == 0) end_frame();
  }

  void begin_frame() {
    left_ = number(0, 3);
    if (type() == goaway) fail("client: the server ended the connection");
    if (type() == headers && stream() == urgent_stream_) {
      urgent_at_ = received_;
      urgent_ns_ = now_ns();
    }
  }
  void end_frame() {
    const bool is_ended = (flags() & 1) != 0;
    if (type() == settings && !is_ended) send(frame(settings, 1, 0, {}));
    if (type() == ping && !is_ended) send(frame(ping, 1, 0, payload_));
    if (type() == rst_stream) fail("client: the server reset a stream");
    if ((type() == headers || type() == data) && is_ended) {
      if (stream() == urgent_stream_)
        urgent_stream_ = 0;
      else
        request(http_target, false);
    }
    head_.clear();
    payload_.clear();
  }

  std::uint32_t number(std::size_t at, int bytes) const {
    std::uint32_t value = 0;
    while (bytes-- > 0) value = value << 8 | static_cast<unsigned char>(head_[at++]);
    return value;
  }
  int type() const { return int(number(3, 1)); }
  int flags() const { return int(number(4, 1)); }
  std::uint32_t stream() const { return number(5, 4); }

  Channel channel_;
  UrgentWork work_;
  std::string buffer_ = std::string(16 * 1024, '\0');
  std::string head_;
  std::string payload_;
  std::size_t left_ = 0;  ///< Bytes of the frame's payload that have not been received.
  std::int64_t received_ = 0;
  std::int64_t next_read_ns_;
  std::uint32_t next_stream_ = 1;
  std::uint32_t urgent_stream_ = 0;
  std::int64_t urgent_at_ = 0;  ///< Where the response began, in received bytes.
  std::int64_t urgent_ns_ = 0;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

std::vector<Figure> measure_urgent(std::uint16_t port, const UrgentWork& work) {
  Client client(port, work);
  client.download(4 * bytes_between_probes);
  std::vector<double> times;
  std::vector<double> bytes;
  for (int probe = 0; probe < work.probes; ++probe) {
    feed_watchdog();
    const auto response = client.request_urgently();
    times.push_back(response.first_byte_us);
    bytes.push_back(response.bytes_ahead);
    client.download(bytes_between_probes);
  }
  return {{"first_byte_us", median(times)}, {"bytes_ahead", median(bytes)}};
}

}  // namespace bench
