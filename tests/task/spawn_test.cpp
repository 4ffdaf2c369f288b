// spawn() with a callable: the task's frame owns the callable and its arguments.
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tambour/tambour.h>

#include "support/on_every_backend.h"

namespace tambour::spawn_test {
namespace {

using namespace std::chrono_literals;

class Spawn : public test::OnEveryBackend {
 public:
  std::vector<std::string> log;
};

TAMBOUR_ON_EVERY_BACKEND(Spawn);

const std::string long_text = "a string that is too long for the buffer inside the string object";

Task<> log_later(std::vector<std::string>& log, const std::string& text) {
  co_await sleep_for(1ms);
  log.push_back(text);
}

TEST_P(Spawn, captures_of_a_lambda_exist_until_its_task_has_ended) {
  std::weak_ptr<std::string> watched;
  {
    auto text = std::make_shared<std::string>(long_text);
    watched = text;
    spawn(loop(), [this, text = std::move(text)]() -> Task<> {
      co_await sleep_for(1ms);
      log.push_back(*text);
      co_await sleep_for(1ms);
      log.push_back(*text);
    });
  }
  EXPECT_FALSE(watched.expired());
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{long_text, long_text}));
  EXPECT_TRUE(watched.expired());
  EXPECT_TRUE(detail::tasks_of(loop()).empty());
}

TEST_P(Spawn, arguments_are_copied_or_moved_into_the_frame) {
  TaskScope scope(loop());
  {
    // The parameter is a reference, to a copy in the frame.
    const std::string text = long_text + "1";
    scope.spawn(log_later, std::ref(log), text);
    scope.spawn(log_later, std::ref(log), long_text + "2");
    auto pointer = std::make_unique<std::string>(long_text + "3");
    scope.spawn(
        [](std::vector<std::string>& to, std::unique_ptr<std::string> own_text) -> Task<> {
          co_await log_later(to, *own_text);
        },
        std::ref(log), std::move(pointer));
  }
  // Converted to a std::string, which the parameter refers to.
  scope.spawn(log_later, std::ref(log), "a literal that is too long for the buffer of a string");
  EXPECT_EQ(scope.size(), 4U);
  loop().run();
  EXPECT_EQ(log,
            (std::vector<std::string>{long_text + "1", long_text + "2", long_text + "3",
                                      "a literal that is too long for the buffer of a string"}));
  EXPECT_TRUE(scope.empty());
}

TEST_P(Spawn, callables_are_lambdas_functions_and_member_functions) {
  struct Session {
    std::vector<std::string>& log;
    std::string name;
    Task<> serve(int number) {
      co_await sleep_for(1ms);
      log.push_back(name + std::to_string(number));
    }
  };
  auto session = std::make_shared<Session>(log, long_text);
  spawn(loop(), &Session::serve, session, 1);
  session.reset();
  const std::function<Task<>()> stored = [this]() -> Task<> {
    co_await sleep_for(1ms);
    log.push_back("stored");
  };
  spawn(loop(), stored);
  // A result is discarded.
  spawn(loop(), []() -> Task<int> { co_return 1; });
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{long_text + "1", "stored"}));
}

TEST_P(Spawn, exceptions_and_stops_are_those_of_the_task) {
  TaskScope scope(loop());
  scope.spawn([this]() -> Task<> {
    const Result<> slept = co_await sleep_for(1h);
    log.push_back(slept.error().message());
  });
  scope.spawn(
      [](int number) -> Task<> {
        co_await sleep_for(1ms);
        throw std::runtime_error("thrown " + std::to_string(number));
      },
      7);
  spawn(
      loop(),
      [](TaskScope& joined, std::vector<std::string>& said) -> Task<> {
        try {
          co_await joined.join();
        } catch (const std::runtime_error& thrown) {
          said.emplace_back(thrown.what());
        }
      },
      std::ref(scope), std::ref(log));
  loop().run();
  EXPECT_EQ(log, (std::vector<std::string>{system_error(ECANCELED).message(), "thrown 7"}));
  // The callable itself may throw.
  spawn(loop(), []() -> Task<> { throw std::runtime_error("no task"); });
  EXPECT_THROW(loop().run(), std::runtime_error);
}

TEST_P(Spawn, destroying_the_scope_destroys_the_task_before_its_callable) {
  std::vector<std::string> order;
  struct Note {
    Note(std::vector<std::string>& said, std::string subject)
        : to(&said), text(std::move(subject)) {}
    Note(Note&& other) noexcept : to(std::exchange(other.to, nullptr)), text(other.text) {}
    Note& operator=(Note&&) = delete;
    ~Note() {
      if (to != nullptr) to->push_back(text);
    }
    std::vector<std::string>* to;
    std::string text;
  };
  {
    TaskScope scope(loop());
    scope.spawn([callable = Note(order, "callable"), &order]() -> Task<> {
      const Note local(order, "local");
      co_await sleep_for(1h);
    });
    run_iterations();
  }
  EXPECT_EQ(order, (std::vector<std::string>{"local", "callable"}));
}

}  // namespace
}  // namespace tambour::spawn_test
