// Attacks on a server of HTTP/2 with the default limits: server, attackers and a well-behaved
// client are processes of their own. Each attack leaves the server with little memory, and the
// client with all of its responses.
//
// With TAMBOUR_TEST_ATTACK_MS, each attack lasts as long, and its row of the table in docs/http2.md
// is printed.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "http_message/h2/frame_writer.h"
#include "http_message/h2/head_writer.h"
#include "http_message/h2/hpack_encoder.h"
#include "support/scale.h"

namespace tambour::http2_attacks {
namespace {

using namespace std::chrono_literals;
namespace h2 = http::detail::h2;

constexpr int attackers = 4;
constexpr std::size_t large_bytes = 100'000;
constexpr std::size_t mebibyte = std::size_t{1024} * 1024;

/// What the processes share.
struct Shared {
  std::atomic<std::uint16_t> port{0};
  std::atomic<std::uint64_t> connections{0};  ///< Of attackers.
  std::atomic<std::uint64_t> bytes{0};        ///< Sent by attackers.
};

Shared& make_shared() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *new (memory) Shared;
}

/// A process that runs a function until it is destroyed.
class Child {
 public:
  explicit Child(const std::function<void()>& function) : process_(::fork()) {
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    function();
    ::_exit(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }

  [[nodiscard]] std::int64_t cpu_ns() const {
    clockid_t clock = 0;
    timespec time{};
    if (::clock_getcpuclockid(process_, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
      return 0;
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }
  /// Resident memory that belongs to no file.
  [[nodiscard]] std::size_t memory_bytes() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/smaps_rollup");
    std::string word;
    while (file >> word && word != "Anonymous:") continue;
    std::size_t kibibytes = 0;
    file >> kibibytes;
    return kibibytes * 1024;
  }

 private:
  pid_t process_;
};

Task<> answer(http::Request& request, http::Response& response) {
  if (request.path() == "/wait") static_cast<void>(co_await sleep_for(50ms));
  const auto body = co_await request.body().read_all();
  if (!body) co_return;
  response.send(std::string(request.path() == "/large" ? large_bytes : 5, 'x'));
}

void serve(Shared& shared) {
  EventLoop loop;
  const auto server = http::Server::listen(loop, Endpoint::loopback_v4(0), answer);
  if (!server) return;
  shared.port = server->endpoint().port();
  loop.run();
}

/// One connection of an attacker.
class Attacker {
 public:
  Buffer out;
  std::uint32_t id = 1;  ///< Of the next stream.
  int batches = 0;

  void request(http::Method method, std::string_view target, bool ends = true) {
    http::RequestHead head{.method = method};
    head.target = target;
    head.authority = "a";
    head.scheme = "http";
    or_throw(h2::append_head(out, encoder_, head, {.stream_id = id, .end_stream = ends}));
    id += 2;
  }
  /// HEADERS or CONTINUATION with a block that no encoder writes.
  void block(h2::FrameType type, std::uint8_t flags, std::string_view bytes) {
    std::byte head[h2::frame_head_size];
    h2::write_frame_head(head, static_cast<std::uint32_t>(bytes.size()), type, flags, id);
    out.append(std::span<const std::byte>(head));
    out.append(bytes);
  }

 private:
  h2::HpackEncoder encoder_;
};

/// The pseudo-header fields of a request for "/", without the dynamic table.
constexpr std::string_view get_root("\x82\x86\x84\x01\x01\x61", 6);

/// A field that is added to the dynamic table, with a value of less than 127 bytes, or of 2,175.
std::string added_field(std::string_view name, char content, bool is_large) {
  std::string block = "\x40";
  block.append(1, static_cast<char>(name.size())).append(name);
  block += is_large ? std::string("\x7f\x80\x10") : std::string("\x32");
  return block.append(is_large ? 2175 : 50, content);
}

void open_and_reset(Attacker& to) {
  for (int i = 0; i < 50; ++i) {
    to.request(http::Method::get, "/wait");
    h2::append_rst_stream(to.out, to.id - 2, h2::ErrorCode::cancel);
  }
}

/// The server resets the streams, because their windows become too large.
void make_server_reset(Attacker& to) {
  for (int i = 0; i < 50; ++i) {
    to.request(http::Method::get, "/wait");
    h2::append_window_update(to.out, to.id - 2, h2::window_size_max);
  }
}

void continue_block(Attacker& to) {
  static const std::string part(16'384, '\0');
  const bool is_first = to.batches == 0;
  to.block(is_first ? h2::FrameType::headers : h2::FrameType::continuation, 0,
           is_first ? get_root : std::string_view(part));
}

void send_many(Attacker& to, void (*append)(Buffer&)) {
  for (int i = 0; i < 500; ++i) append(to.out);
}

void send_settings(Attacker& to) {
  send_many(to, [](Buffer& out) { h2::append_settings(out, {}); });
}
void send_pings(Attacker& to) {
  send_many(to, [](Buffer& out) { h2::append_ping(out, "12345678", false); });
}
void send_empty_data(Attacker& to) {
  if (to.batches == 0) to.request(http::Method::post, "/", false);
  send_many(to, [](Buffer& out) { h2::append_data(out, 1, Buffer(), false); });
}
void send_priorities(Attacker& to) {
  send_many(to, [](Buffer& out) { h2::append_priority_update(out, 1, "u=1"); });
}

/// One byte of a block is a field of 2,208 bytes.
void send_bomb(Attacker& to) {
  std::string block(get_root);
  block += added_field("x", 'x', true);
  block.append(8000, '\xbe');
  to.block(h2::FrameType::headers, h2::flag::end_headers | h2::flag::end_stream, block);
  to.id += 2;
}

/// Each field evicts another one from the table.
void thrash_table(Attacker& to) {
  for (int i = 0; i < 10; ++i) {
    std::string block(get_root);
    for (int field = 0; field < 90; ++field)
      block += added_field("x-abc", static_cast<char>('a' + (field + i) % 26), false);
    to.block(h2::FrameType::headers, h2::flag::end_headers | h2::flag::end_stream, block);
    to.id += 2;
  }
}

/// 100 large responses, whose windows are opened by single bytes.
void open_windows_by_bytes(Attacker& to) {
  for (std::uint32_t stream = 1; stream < 200; stream += 2) {
    if (to.batches == 0) to.request(http::Method::get, "/large");
    if (to.batches > 0 && to.batches < 5) h2::append_window_update(to.out, stream, 1);
  }
}

struct Attack {
  const char* name;
  void (*send)(Attacker&);  ///< Appends a batch of frames.
  bool reads = true;        ///< What the server sends.
  bool waits = false;       ///< 20 ms after each batch.
};

const Attack attacks[] = {
    {"none", nullptr},
    {"resets by the client", open_and_reset},
    {"resets by the server", make_server_reset},
    {"CONTINUATION", continue_block},
    {"SETTINGS", send_settings},
    {"PING", send_pings},
    {"PING, answers not read", send_pings, false},
    {"empty DATA", send_empty_data},
    {"PRIORITY_UPDATE", send_priorities},
    {"HPACK bomb", send_bomb},
    {"HPACK table thrash", thrash_table},
    {"window of 0, then single bytes", open_windows_by_bytes, true, true},
};

Task<> discard(TcpStream& stream) {
  std::vector<std::byte> memory(65'536);
  for (;;) {
    const auto got = co_await stream.read(memory);
    if (!got || *got == 0) co_return stream.close();
  }
}

/// Opens a connection, attacks until the server closes it, and begins again.
Task<> attack_again_and_again(EventLoop& loop, const Attack& attack, Shared& shared) {
  for (;;) {
    auto connected = co_await TcpStream::connect(Endpoint::loopback_v4(shared.port));
    if (!connected) co_return;
    ++shared.connections;
    TcpStream stream = std::move(*connected);
    TaskScope reading(loop);
    if (attack.reads) reading.spawn(discard(stream));
    Attacker attacker;
    attacker.out.append(h2::client_preface);
    h2::append_settings(attacker.out,
                        std::vector{h2::Setting{h2::SettingId::initial_window_size, 0}});
    for (Result<> sent; sent; ++attacker.batches) {
      attack.send(attacker);
      const std::size_t size = attacker.out.size();
      sent = co_await stream.write(attacker.out);
      shared.bytes += size;
      if (sent && attack.waits) sent = co_await sleep_for(20ms);
      if (!stream.is_open()) break;
    }
  }
}

void run_attackers(const Attack& attack, Shared& shared) {
  EventLoop loop;
  TaskScope scope(loop);
  for (int i = 0; i < attackers; ++i) scope.spawn(attack_again_and_again(loop, attack, shared));
  loop.run();
}

/// What a client sees while a server is attacked, and what the server uses.
struct Observed {
  std::vector<double> latencies_us;
  std::size_t memory_bytes = 0;  ///< The maximum.
};

Task<std::string> text_of(http::Client& client, std::string url) {
  auto response = co_await client.get(std::move(url));
  if (!response) co_return response.error().message();
  const auto text = co_await response->read_text();
  co_return text ? *text : text.error().message();
}

Task<> request_until(const Child& server, std::uint16_t port, TimePoint end, Observed& observed,
                     EventLoop& loop) {
  http::ClientOptions options;
  options.version = http::VersionChoice::http_2;
  http::Client client(loop, std::move(options));
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/";
  while (Clock::now() < end || observed.latencies_us.size() < 5) {
    const TimePoint begin = Clock::now();
    const std::string text = co_await text_of(client, url);
    EXPECT_EQ(text, "xxxxx");
    if (text != "xxxxx") break;
    const std::chrono::duration<double, std::micro> took = Clock::now() - begin;
    observed.latencies_us.push_back(took.count());
    observed.memory_bytes = std::max(observed.memory_bytes, server.memory_bytes());
    static_cast<void>(co_await sleep_for(2ms));
  }
  loop.stop();
}

Observed observe(const Child& server, std::uint16_t port, Duration time) {
  EventLoop loop;
  Observed observed;
  spawn(loop, request_until(server, port, Clock::now() + time, observed, loop));
  loop.run();
  std::ranges::sort(observed.latencies_us);
  return observed;
}

class Http2Attacks : public testing::TestWithParam<Attack> {};

TEST_P(Http2Attacks, leave_memory_and_processor_to_others) {
  const Attack& attack = GetParam();
  const char* const chosen = std::getenv("TAMBOUR_TEST_ATTACK_MS");
  const Duration time = std::chrono::milliseconds(chosen != nullptr ? std::atol(chosen) : 200);
  Shared& shared = make_shared();
  const Child server([&shared] { serve(shared); });
  while (shared.port == 0) ::usleep(1000);
  const std::size_t before = observe(server, shared.port, 20ms).memory_bytes;
  std::unique_ptr<Child> attacking;
  if (attack.send != nullptr) {
    attacking = std::make_unique<Child>([&] { run_attackers(attack, shared); });
    // On a busy machine, the process may begin late.
    const TimePoint limit = Clock::now() + std::chrono::minutes(1);
    while (shared.bytes <= 10'000 && Clock::now() < limit) ::usleep(1000);
  }
  const std::int64_t cpu_before = server.cpu_ns();
  const TimePoint began = Clock::now();
  const Observed observed = observe(server, shared.port, time);
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  const double cpu_ms = static_cast<double>(server.cpu_ns() - cpu_before) / 1e6;
  attacking.reset();
  const std::size_t memory = std::max(observed.memory_bytes, before) - before;

  ASSERT_GE(observed.latencies_us.size(), 5U);
  if (attack.send != nullptr) {
    EXPECT_GT(shared.bytes, 10'000U);
  }
  // 1 MiB or one response for each connection, and what the allocator and the pool of buffers keep.
  // Without limits, the responses with closed windows alone would occupy 38 MiB.
  if (!test::sanitized) {
    EXPECT_LE(memory, 16 * mebibyte);
  }
  if (chosen == nullptr) return;
  const auto& latencies = observed.latencies_us;
  const auto sent_mb = static_cast<double>(shared.bytes) / 1e6;
  std::printf("| %s | %.1f | %.0f | %.2f | %.0f | %.1f | %.2f, %.2f |\n", attack.name,
              sent_mb / seconds, static_cast<double>(shared.connections) / seconds,
              static_cast<double>(memory) / static_cast<double>(mebibyte), cpu_ms / seconds,
              sent_mb > 0 ? cpu_ms / sent_mb : 0, latencies[latencies.size() / 2] / 1e3,
              latencies[latencies.size() * 99 / 100] / 1e3);
}

INSTANTIATE_TEST_SUITE_P(Every, Http2Attacks, testing::ValuesIn(attacks), [](const auto& entry) {
  std::string name = entry.param.name;
  std::ranges::replace_if(name, [](char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

}  // namespace
}  // namespace tambour::http2_attacks
