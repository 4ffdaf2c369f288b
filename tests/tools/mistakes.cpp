// Makes one of the mistakes of docs/mistakes.md, which quotes the functions below: test_mistakes.py
// compares what each prints with the page.
//
//   mistakes FUNCTION
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <tambour/tambour.h>

using namespace tambour;
using namespace std::chrono_literals;

namespace {

Task<int> number() { co_return 1; }
Task<> work() { co_await sleep_for(1s); }
Task<> echo(TcpStream peer) {
  Buffer bytes;
  if (co_await peer.read(bytes)) std::puts(bytes.to_string().c_str());
}
void answer(http::Request& /*request*/, http::Response& response) { response.send("ok\n"); }

// NOLINTBEGIN: these are mistakes.

void use_an_error() {
  const auto at = Endpoint::parse("localhost:80");  // Endpoint::parse() does not resolve names.
  std::puts(at->to_string().c_str());
}

void use_another_thread() {
  EventLoop loop;
  Timer timer(loop, [] {});
  std::jthread other([&] { timer.start(1s); });
}

void use_another_loop() {
  LoopGroup threads({.threads = 2});
  TaskEvent ready(threads[0]);
}

void outlive_the_loop() {
  std::unique_ptr<TaskEvent> ready;
  {
    EventLoop loop;
    ready.reset(new TaskEvent(loop));
  }
  ready->set();
}

void destroy_the_loop_in_a_callback() {
  std::unique_ptr<EventLoop> loop(new EventLoop);
  loop->post([&] { loop.reset(); });
  loop->run();
}

void forget_to_run() {
  EventLoop loop;
  spawn(loop, work());
}

void block_the_loop() {
  EventLoop loop;
  loop.post([] { std::printf("%d\n", block_on(number())); });
  loop.run();
}

void block_in_a_channel() {
  EventLoop loop;
  ConcurrentChannel<int> jobs(8);
  loop.post([&] { jobs.blocking_receive(); });
  loop.run();
}

void spawn_a_task_twice() {
  EventLoop loop;
  Task<> job = work();
  spawn(loop, std::move(job));
  spawn(loop, std::move(job));
}

void destroy_the_running_task() {
  EventLoop loop;
  auto scope = std::make_unique<TaskScope>(loop);
  scope->spawn([&]() -> Task<> {
    co_await sleep_for(0s);
    scope.reset();
  });
  loop.run();
}

void wait_for_the_own_scope() {
  EventLoop loop;
  TaskScope scope(loop);
  scope.spawn([&]() -> Task<> { co_await scope.shut_down(1s); });
  loop.run();
}

void join_twice() {
  EventLoop loop;
  JoinHandle<int> handle = spawn(loop, number());
  spawn(loop, [&]() -> Task<> {
    const Result<int> first = co_await handle.join();
    const Result<int> second = co_await handle.join();
    std::printf("%d %d\n", *first, *second);
  });
  loop.run();
}

void read_in_two_tasks() {
  EventLoop loop;
  auto [near, far] = or_throw(UnixStream::pair(loop));
  const auto print = [](UnixStream& stream) -> Task<> {
    Buffer bytes;
    if (co_await stream.read(bytes)) std::puts(bytes.to_string().c_str());
  };
  spawn(loop, print, std::ref(near));
  spawn(loop, print, std::ref(near));
  loop.run();
}

void destroy_a_locked_mutex() {
  EventLoop loop;
  std::unique_ptr<TaskMutex> mutex(new TaskMutex(loop));
  spawn(loop, [&]() -> Task<> {
    const auto guard = co_await mutex->lock();
    mutex.reset();
  });
  loop.run();
}

void wait_for_the_own_group() {
  LoopGroup threads({.threads = 2});
  threads[0].post([&] { threads.join(); });
  threads.join();
}

void serve_twice() {
  EventLoop loop;
  auto server = or_throw(TcpServer::listen(loop, Endpoint::loopback_v4(0)));
  server.serve(echo);
  server.serve(echo);
}

void destroy_the_loop_before_the_server() {
  auto loop = std::make_unique<EventLoop>();
  auto server = or_throw(TcpServer::listen(*loop, Endpoint::loopback_v4(0)));
  server.serve(echo);
  loop.reset();
}

void consume_too_much() {
  Buffer bytes("abc");
  bytes.consume(4);
}

void add_a_route_twice() {
  http::Router router;
  router.get("/users/{id}", answer);
  router.get("/users/{name}", answer);
}

void add_a_wrong_pattern() {
  http::Router router;
  router.get("users", answer);
}

void answer_too_late() {
  EventLoop loop;
  auto handler = [&](http::Request&, http::Response& response) {
    loop.post([&response] { response.send("late\n"); });
  };
  auto server = or_throw(http::Server::listen(loop, Endpoint::loopback_v4(0), handler));
  http::Client client(loop);
  const std::string url = "http://" + server.endpoint().to_string();
  spawn(loop, [&]() -> Task<> { co_await client.get(url); });
  loop.run();
}

void name_a_counter_wrongly() {
  metrics::Registry registry;
  auto requests = registry.counter("requests", "Requests that were answered.");
  requests.add();
}

// NOLINTEND

struct Mistake {
  std::string_view name;
  void (*make)();
};

constexpr Mistake mistakes[] = {
    {"use_an_error", use_an_error},
    {"use_another_thread", use_another_thread},
    {"use_another_loop", use_another_loop},
    {"outlive_the_loop", outlive_the_loop},
    {"destroy_the_loop_in_a_callback", destroy_the_loop_in_a_callback},
    {"forget_to_run", forget_to_run},
    {"block_the_loop", block_the_loop},
    {"block_in_a_channel", block_in_a_channel},
    {"spawn_a_task_twice", spawn_a_task_twice},
    {"destroy_the_running_task", destroy_the_running_task},
    {"wait_for_the_own_scope", wait_for_the_own_scope},
    {"join_twice", join_twice},
    {"read_in_two_tasks", read_in_two_tasks},
    {"destroy_a_locked_mutex", destroy_a_locked_mutex},
    {"wait_for_the_own_group", wait_for_the_own_group},
    {"serve_twice", serve_twice},
    {"destroy_the_loop_before_the_server", destroy_the_loop_before_the_server},
    {"consume_too_much", consume_too_much},
    {"add_a_route_twice", add_a_route_twice},
    {"add_a_wrong_pattern", add_a_wrong_pattern},
    {"answer_too_late", answer_too_late},
    {"name_a_counter_wrongly", name_a_counter_wrongly},
};

}  // namespace

int main(int argc, char** argv) {
  for (const Mistake& mistake : mistakes) {
    if (argc == 2 && mistake.name == argv[1]) {
      mistake.make();
      return 0;
    }
  }
  std::fprintf(stderr, "usage: mistakes FUNCTION\n");
  return 2;
}
