// inspector::Inspector: its pages, and who may see them.
#include <tambour/inspector/inspector.h>

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "inspector/inspected_server.h"
#include "inspector/search.h"
#include "support/temporary_folder.h"

namespace tambour::inspector_test {
namespace {

using namespace std::chrono_literals;
using inspector::Inspector;
using inspector::InspectorOptions;

class Inspectors : public test::InspectedServer {};

TEST_F(Inspectors, show_loops) {
  listen();
  EXPECT_EQ(python("/loops", "[loop[\"name\"] for loop in a[\"loops\"]]"),
            "['loop/0', 'loop/1', 'inspector']");
  EXPECT_EQ(python("/loops", "len(a[\"lag_bounds\"]) + 1 - len(a[\"loops\"][0][\"lags\"])"), "0");
  EXPECT_EQ(python("/workers", "[pool[\"name\"] for pool in a[\"pools\"]]"),
            "['shared', 'files', 'names']");
}

TEST_F(Inspectors, show_what_the_tasks_await) {
  listen({.tasks_max = 2});
  const auto streams = connect(1);
  block_on(loop_, [](TcpStream& stream) -> Task<> {
    or_throw(co_await stream.write("POST /wait HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  }(const_cast<TcpStream&>(streams[0])));
  while (waiting_ == 0) std::this_thread::sleep_for(1ms);
  // The handler, at the line in which it waits.
  const std::string path = "/tasks?q=inspected_server.h";
  EXPECT_EQ(python(path,
                   "[(t[\"awaits\"], t[\"awaits_at\"].split(\":\")[0]) for t in a[\"tasks\"] "
                   "if t[\"awaits\"] == \"sleep\"]"),
            "[(\'sleep\', \'inspector/inspected_server.h\')]");
  // Two of each loop, of which each has a listener, and one a connection and its handler.
  EXPECT_EQ(python("/tasks?limit=1", "(len(a[\"tasks\"]), a[\"is_complete\"])"), "(1, False)");
}

TEST(PageSelectors, select_what_sorting_all_rows_would) {
  using Selector = inspector::PageSelector<int>;
  const std::vector<int> rows = {5, 2, 9, 0, 7, 3, 8, 1, 6, 4};
  for (const bool is_descending : {false, true}) {
    for (std::size_t offset = 0; offset <= rows.size() + 1; ++offset) {
      for (std::size_t limit = 0; limit <= rows.size() + 1; ++limit) {
        const auto is_before = [=](int a, int b) { return is_descending ? a > b : a < b; };
        Selector selector(offset, limit, is_before);
        for (const int row : rows) selector.add(row);
        EXPECT_EQ(selector.added(), rows.size());
        std::vector<int> sorted = rows;
        std::ranges::sort(sorted, is_before);
        const auto begin = sorted.begin() + std::ptrdiff_t(std::min(offset, sorted.size()));
        const auto end = begin + std::min(std::ptrdiff_t(limit), sorted.end() - begin);
        std::vector<int> page;
        while (selector.page_size() != 0) selector.take_last(page);
        std::ranges::reverse(page);
        EXPECT_EQ(page, std::vector<int>(begin, end)) << offset << ' ' << limit;
        std::size_t left = 0;
        while (selector.drop_row()) ++left;
        EXPECT_LE(left, offset);
      }
    }
  }
}

/// How long the callbacks of iterations take, and how much of that is processor time of the thread:
/// the rest passed while the machine ran other threads. Processor time includes interrupts, and
/// what a hypervisor takes.
class IterationTimes {
 public:
  explicit IterationTimes(EventLoop& loop)
      : begin_(loop, HookPoint::check, [this] { begin(); }),
        end_(loop, HookPoint::prepare, [this] { note(now(CLOCK_MONOTONIC)); }) {
    begin_.start();
    end_.start();
  }

  /// What follows runs between iterations.
  void interrupt() { began_ns_ = 0; }

  struct Long {
    std::int64_t ns = 0;
    std::int64_t cpu_ns = 0;
    long page_faults = 0;
    long preemptions = 0;
    std::string path{};
  };
  int iterations = 0;
  std::vector<Long> longer_than_1_ms;
  std::int64_t longest_cpu_ns = 0;
  std::string path{};  ///< What is requested.

 private:
  static std::int64_t now(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }
  static rusage usage() {
    rusage used{};
    getrusage(RUSAGE_THREAD, &used);
    return used;
  }
  void begin() {
    before_ = usage();
    cpu_before_ns_ = now(CLOCK_THREAD_CPUTIME_ID);
    began_ns_ = now(CLOCK_MONOTONIC);
  }
  void note(std::int64_t ended_ns) {
    if (began_ns_ == 0) return;
    const std::int64_t cpu_ns = now(CLOCK_THREAD_CPUTIME_ID) - cpu_before_ns_;
    const std::int64_t took_ns = ended_ns - std::exchange(began_ns_, 0);
    ++iterations;
    longest_cpu_ns = std::max(longest_cpu_ns, cpu_ns);
    if (took_ns <= 1'000'000) return;
    const rusage after = usage();
    longer_than_1_ms.push_back({.ns = took_ns,
                                .cpu_ns = cpu_ns,
                                .page_faults = after.ru_minflt - before_.ru_minflt,
                                .preemptions = after.ru_nivcsw - before_.ru_nivcsw,
                                .path = path});
  }

  rusage before_{};
  std::int64_t cpu_before_ns_ = 0;
  std::int64_t began_ns_ = 0;
  Hook begin_;
  Hook end_;
};

/// Descriptors that are asked about in one iteration, at most: see Slices. For measurements, with
/// the number of connections in TAMBOUR_TEST_CONNECTIONS: how long the iterations took.
TEST_F(Inspectors, make_lists_in_slices) {
  constexpr std::uint64_t sockets_of_slice = 64;
  listen();
  const char* const wanted = std::getenv("TAMBOUR_TEST_CONNECTIONS");
  const auto streams = connect(wanted != nullptr ? std::atoi(wanted) : 300);
  while (server_->connections() < streams.size()) std::this_thread::sleep_for(1ms);
  IterationTimes times(loop_);
  after_page_ = [&times] { times.interrupt(); };
  const std::uint64_t before = loop_.stats().iterations;
  EXPECT_EQ(python("/connections?sort=peer&limit=500", "a[\"is_complete\"]"), "True");
  EXPECT_GE(loop_.stats().iterations - before, streams.size() * 2 / sockets_of_slice);
  EXPECT_EQ(python("/tasks?sort=waited&limit=500", "a[\"is_complete\"]"), "True");
  // The last page keeps all rows.
  const std::string last = "limit=500&offset=" + std::to_string(streams.size());
  for (int i = 0; i < (wanted != nullptr ? 50 : 1); ++i) {
    for (const char* path :
         {"/connections?sort=place&order=desc&", "/connections?q=127&", "/tasks?q=connection&"}) {
      times.path = path;
      EXPECT_NE(page(path + last).find("\"matching\":"), std::string::npos);
    }
    times.path = "/metrics and /callbacks";
    EXPECT_NE(page("/metrics").find("# TYPE"), std::string::npos);
    static_cast<void>(page("/callbacks"));
  }
  const std::string lags = page("/loops");
  RecordProperty("loops", lags);
  after_page_ = nullptr;
  if (wanted == nullptr) return;
  const auto busy = std::ranges::count_if(
      times.longer_than_1_ms, [](const auto& entry) { return entry.cpu_ns > 1'000'000; });
  std::printf(
      "%s\n%d iterations, %zu of them above 1 ms, %td above 1 ms of processor time; longest "
      "%.3f ms of processor time\n",
      lags.c_str(), times.iterations, times.longer_than_1_ms.size(), busy,
      static_cast<double>(times.longest_cpu_ns) / 1e6);
  for (const auto& entry : times.longer_than_1_ms)
    std::printf("%.3f ms, %.3f ms of processor time, %ld page faults, %ld preemptions: %s\n",
                static_cast<double>(entry.ns) / 1e6, static_cast<double>(entry.cpu_ns) / 1e6,
                entry.page_faults, entry.preemptions, entry.path.c_str());
}

TEST_F(Inspectors, make_profiles_if_the_process_has_a_profiler) {
  listen();
  EXPECT_TRUE(page("/profiles/cpu?seconds=x").starts_with("400 "));
  const std::string profile = page("/profiles/cpu?seconds=0");
  if (python("/profiles", "a[\"has_cpu\"]") == "True") {
    // Five words of eight bytes: 0, 3, 0, the period in microseconds, 0.
    ASSERT_GE(profile.size(), 40U);
    EXPECT_EQ(profile.substr(0, 16), std::string("\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16));
  } else {
    EXPECT_TRUE(profile.starts_with("501 ")) << profile;
    EXPECT_NE(profile.find("libprofiler"), std::string::npos) << profile;
  }
  // A page of another site cannot start one.
  auto ask = [](EventLoop& loop, std::string url) -> Task<http::Status> {
    http::Client client(loop);
    http::ClientRequest request(std::move(url));
    request.fields.set("Sec-Fetch-Site", "cross-site");
    auto sent = co_await client.send(std::move(request));
    co_return or_throw(std::move(sent), "send").status();
  };
  const std::string url = "http://" + debug_->endpoint().to_string() + "/profiles/cpu?seconds=0";
  EXPECT_EQ(block_on(loop_, ask(loop_, url)), http::Status::forbidden);
  // The allocator of the test is not tcmalloc.
  EXPECT_TRUE(page("/profiles/heap?seconds=0").starts_with("501 "));
  EXPECT_EQ(python("/profiles", "\"tcmalloc\" in a[\"heap_hint\"]"), "True");
}

TEST_F(Inspectors, name_the_callback_that_blocks_a_loop) {
  listen({.stall_max = 20ms, .patience = 50ms});
  // On a busy machine, a callback may take longer than `stall_max`, and a loop may not have
  // answered yet.
  while (!page("/health").starts_with(R"({"is_healthy":true)")) std::this_thread::sleep_for(1ms);
  // Callbacks of the iteration in which the observation begins are not timed.
  while (python("/loops", "all(l.get(\"iterations\") for l in a[\"loops\"])") != "True") continue;
  std::atomic<bool> is_blocked = false;
  std::atomic<bool> ends = false;
  loops_[1].post([&] {
    is_blocked = true;
    while (!ends) std::this_thread::yield();
  });
  while (!is_blocked) std::this_thread::yield();
  std::string health;
  while (!health.contains("\"loop\":\"loop/1\"")) health = page("/health");
  EXPECT_TRUE(health.starts_with("503 ")) << health;
  EXPECT_NE(health.find("inspector/inspector_test.cpp:"), std::string::npos) << health;
  while (python("/connections", "a[\"silent_loops\"]") != "['loop/1']") continue;
  ends = true;
  while (page("/health").starts_with("503 ")) std::this_thread::sleep_for(1ms);
  const std::string longest = python("/callbacks",
                                     "max(c[\"longest_seconds\"] for c in a[\"callbacks\"] "
                                     "if \"inspector_test.cpp\" in c[\"place\"]) >= 0.02");
  EXPECT_EQ(longest, "True");
}

TEST_F(Inspectors, name_a_loop_that_was_blocked_before) {
  std::atomic<bool> is_blocked = false;
  std::atomic<bool> ends = false;
  loops_[1].post([&] {
    is_blocked = true;
    while (!ends) std::this_thread::yield();
  });
  while (!is_blocked) std::this_thread::yield();
  listen({.stall_max = 20ms});
  std::string health;
  for (int i = 0; i < 5000 && !health.contains("\"loop\":\"loop/1\""); ++i) {
    health = page("/health");
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(health.starts_with("503 ")) << health;
  EXPECT_NE(health.find("\"loop\":\"loop/1\""), std::string::npos) << health;
  ends = true;
  while (page("/health").starts_with("503 ")) std::this_thread::sleep_for(1ms);
}

TEST_F(Inspectors, list_connections) {
  listen();
  const auto streams = connect(150);
  const std::string port = std::to_string(server_->endpoint().port());
  // Both ends are of this process. A loop may not have accepted all of them yet.
  const std::string path = "/connections?limit=40&q=established&sort=peer&order=desc";
  while (python(path, "a[\"matching\"] >= 302") != "True") std::this_thread::sleep_for(1ms);
  EXPECT_EQ(python(path, "len(a[\"connections\"])"), "40");
  EXPECT_EQ(python(path,
                   "a[\"connections\"] == sorted(a[\"connections\"], reverse=True, "
                   "key=lambda c: (c[\"peer\"], -c[\"fd\"]))"),
            "True");
  EXPECT_EQ(python("/connections?q=listen&sort=local",
                   "[c[\"state\"] for c in a[\"connections\"] if c[\"local\"].endswith(\":" + port +
                       "\")]"),
            "['listen', 'listen']");
  const std::string second = "/connections?q=" + port + "&offset=140&limit=500";
  EXPECT_EQ(python(second, "a[\"offset\"] + len(a[\"connections\"]) == a[\"matching\"]"), "True");
  EXPECT_EQ(python("/connections?q=nothing+has+this", "a[\"matching\"]"), "0");
  EXPECT_EQ(python("/connections?offset=4000000000", "a[\"connections\"]"), "[]");
  EXPECT_TRUE(page("/connections?limit=x").starts_with("400 "));
  EXPECT_EQ(python("/connections?q=" + port + "&limit=500&sort=idle_ms",
                   "{c[\"awaits\"] for c in a[\"connections\"] if c[\"loop\"]}"),
            "{'read'}");
}

TEST_F(Inspectors, limit_the_list_of_connections) {
  listen({.connections_max = 10});
  const auto streams = connect(20);
  EXPECT_EQ(python("/connections", "(a[\"total\"], a[\"is_complete\"])"), "(10, False)");
}

TEST_F(Inspectors, answer_only_this_host) {
  listen();
  const Endpoint at = debug_->endpoint();
  EXPECT_TRUE(get(at, "/loops", "127.0.0.1:80").starts_with("{"));
  EXPECT_TRUE(get(at, "/loops", "[::1]").starts_with("{"));
  // A name whose address an attacker has changed to that of this host.
  EXPECT_TRUE(get(at, "/loops", "attacker.example").starts_with("403 "));
  EXPECT_TRUE(get(at, "/", "127.attacker.example").starts_with("403 "));
  EXPECT_TRUE(get(at, "/metrics", "10.0.0.1").starts_with("403 "));
  const auto refused = inspector_->listen(loop_, Endpoint::any_v4(0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), inspector::ErrorCode::not_authenticated);
  EXPECT_NE(refused.error().message().find("authenticate"), std::string::npos);
}

TEST_F(Inspectors, answer_every_peer_on_a_unix_socket) {
  listen();
  const test::TemporaryFolder folder;
  const auto at = or_throw(Endpoint::unix_name(folder.path() + "/debug"));
  const auto server = or_throw(inspector_->listen(loop_, at));
  auto ask = [](Endpoint to) -> Task<std::string> {
    auto connected = co_await UnixStream::connect(to);
    UnixStream stream = or_throw(std::move(connected), "connect");
    const std::string_view request = "GET /ready HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    static_cast<void>(co_await stream.write(request));
    Buffer answer;
    for (;;) {
      const auto got = co_await stream.read(answer);
      if (!got || *got == 0) co_return answer.to_string();
    }
  };
  EXPECT_TRUE(block_on(loop_, ask(at)).starts_with("HTTP/1.1 200 OK"));
}

TEST_F(Inspectors, answer_whom_the_program_authenticates) {
  InspectorOptions options;
  options.authenticate = [](http::Request& request, http::Response& response,
                            const http::Handler& next) -> Task<> {
    if (request.headers().get("Host") == "secret") {
      co_await next.run(request, response);
    } else {
      response.send_error(http::Status::unauthorized);
    }
  };
  listen(std::move(options));
  const auto everywhere = or_throw(inspector_->listen(loop_, Endpoint::any_v4(0)));
  const Endpoint at = Endpoint::loopback_v4(everywhere.endpoint().port());
  EXPECT_TRUE(get(at, "/loops", "secret").starts_with("{"));
  for (const char* path :
       {"/", "/page.js", "/loops", "/callbacks", "/connections", "/tasks", "/workers", "/profiles",
        "/profiles/cpu?seconds=0", "/profiles/heap?seconds=0", "/metrics", "/health", "/ready"})
    EXPECT_TRUE(get(at, path).starts_with("401 ")) << path;
}

TEST_F(Inspectors, say_whether_the_program_is_ready) {
  std::stop_source shutdown;
  listen({.shutdown = shutdown.get_token()});
  EXPECT_EQ(page("/ready"), R"({"is_ready":true,"is_draining":false})");
  inspector_->set_ready(false);
  EXPECT_EQ(page("/ready"), R"(503 {"is_ready":false,"is_draining":false})");
  inspector_->set_ready(true);
  shutdown.request_stop();
  EXPECT_EQ(page("/ready"), R"(503 {"is_ready":false,"is_draining":true})");
}

TEST_F(Inspectors, are_routes_of_other_servers) {
  Inspector inspector(loops_);
  http::Router router;
  router.mount("/debug", inspector.router());
  auto server =
      or_throw(http::Server::listen(loop_, Endpoint::loopback_v4(0), std::move(router).handler()));
  EXPECT_NE(get(server.endpoint(), "/debug/").find("<!doctype html>"), std::string::npos);
  EXPECT_TRUE(get(server.endpoint(), "/debug/loops").starts_with("{"));
  EXPECT_TRUE(get(server.endpoint(), "/debug/metrics").starts_with("404 "));
}

TEST_F(Inspectors, are_neither_stored_nor_embedded_by_others) {
  listen();
  auto ask = [](EventLoop& loop, std::string url) -> Task<http::Fields> {
    http::Client client(loop);
    auto sent = co_await client.get(std::move(url));
    co_return or_throw(std::move(sent), "get").headers();
  };
  for (const std::string path : {"/", "/page.js", "/loops", "/ready"}) {
    const http::Fields fields =
        block_on(loop_, ask(loop_, "http://" + debug_->endpoint().to_string() + path));
    EXPECT_EQ(fields.get("Cache-Control"), "no-store") << path;
    const std::string policy(fields.get("Content-Security-Policy").value_or(""));
    EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'self'")) << path;
    EXPECT_NE(policy.find("frame-ancestors 'none'"), std::string::npos) << path;
  }
}

/// Searches, sorts, turns pages, waits for a refresh and looks for problems: see browser.py. With
/// TAMBOUR_TEST_SCREENSHOTS, the name of a directory, it stores pictures for the documentation.
TEST_F(Inspectors, are_usable_in_chromium) {
  if (std::system("command -v chromium > /dev/null") != 0)
    GTEST_SKIP() << "chromium is not installed";
  listen({.title = "sample service"});
  const test::Problems& problems = have_problems();
  const char* const pictures = std::getenv("TAMBOUR_TEST_SCREENSHOTS");
  const auto streams = connect(pictures != nullptr ? 5000 : 300);
  for (int i = 0; i < 20; ++i) static_cast<void>(get(server_->endpoint(), "/hello"));
  std::string printed;
  std::thread browser([&] {
    const auto script = std::filesystem::path(__FILE__).parent_path() / "browser.py";
    printed = test::printed_by("/usr/bin/python3 " + script.string() + " http://" +
                               debug_->endpoint().to_string() + "/ \'" + problems.json() + "\' " +
                               (pictures != nullptr ? pictures : ""));
    loop_.stop();
  });
  loop_.ref();
  loop_.run();
  loop_.unref();
  browser.join();
  EXPECT_EQ(printed, "passed\n");
}

}  // namespace
}  // namespace tambour::inspector_test
