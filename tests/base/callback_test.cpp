// Callback: a function object that may be destroyed while it runs.
#include <tambour/base/callback.h>

#include <array>
#include <coroutine>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

namespace {

std::size_t allocations = 0;

}  // namespace

// Counts allocations. Not inlined, because GCC would warn that free() is passed memory from
// operator new.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace tambour::callback_test {
namespace {

int twice(int number) { return 2 * number; }

TEST(Callback, calls_lambdas_functions_and_function_objects) {
  struct Adder {
    int operator()(int number) const { return number + summand; }
    int summand;
  };
  EXPECT_EQ(Callback<int(int)>([](int number) { return number + 1; })(1), 2);
  EXPECT_EQ(Callback<int(int)>(&twice)(4), 8);
  EXPECT_EQ(Callback<int(int)>(Adder{5})(1), 6);
}

TEST(Callback, is_false_when_empty_moved_from_or_released) {
  Callback<void()> callback;
  EXPECT_FALSE(callback);
  callback = [] {};
  EXPECT_TRUE(callback);
  const Callback<void()> moved(std::move(callback));
  EXPECT_TRUE(moved);
  EXPECT_FALSE(callback);  // NOLINT(bugprone-use-after-move): the moved-from state is tested.
  Callback<void()> released([] {});
  EXPECT_EQ(released.release(), nullptr);
  EXPECT_FALSE(released);
}

TEST(Callback, is_empty_if_made_of_something_empty) {
  EXPECT_FALSE(Callback<void()>(nullptr));
  EXPECT_FALSE((Callback<int(int)>(std::function<int(int)>())));
  EXPECT_FALSE((Callback<int(int)>(Callback<int(long)>())));
  EXPECT_FALSE((Callback<int(int)>(static_cast<int (*)(int)>(nullptr))));
  EXPECT_EQ((Callback<int(int)>(std::function<int(int)>(&twice))(2)), 4);
  EXPECT_EQ((Callback<int(int)>(twice)(2)), 4);
  Callback<void()> callback([] {});
  callback = nullptr;
  EXPECT_FALSE(callback);
}

TEST(Callback, a_closure_of_two_pointers_costs_no_allocation) {
  int a = 0;
  int b = 0;
  const std::size_t before = allocations;
  const Callback<void()> callback([&a, &b] { a = b + 1; });
  callback();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(a, 1);
}

TEST(Callback, a_larger_closure_costs_one_allocation) {
  std::array<void*, 3> words{};
  const std::size_t before = allocations;
  Callback<std::size_t()> callback([words] { return words.size(); });
  Callback<std::size_t()> moved(std::move(callback));
  EXPECT_EQ(moved(), 3U);
  EXPECT_EQ(allocations, before + 1);
}

/// A coroutine that starts suspended and returns an int.
struct Coroutine {
  struct promise_type {
    Coroutine get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    static std::suspend_always initial_suspend() noexcept { return {}; }
    static std::suspend_always final_suspend() noexcept { return {}; }
    void return_value(int number) noexcept { value = number; }
    static void unhandled_exception() { std::terminate(); }
    int value = 0;
  };
  std::coroutine_handle<promise_type> handle;
};

TEST(Callback, the_closure_of_a_coroutine_stays_where_it_is) {
  int number = 1;
  const std::size_t before = allocations;
  Callback<Coroutine()> callback([&number]() -> Coroutine { co_return number; });
  EXPECT_EQ(allocations, before + 1);
  const Callback<void()> ignoring([&number]() -> Coroutine { co_return number; });
  EXPECT_EQ(allocations, before + 2);
  const Coroutine started = callback();
  const Callback<Coroutine()> moved = std::move(callback);
  number = 2;
  started.handle.resume();  // Reads the capture through the closure's address.
  EXPECT_EQ(started.handle.promise().value, 2);
  started.handle.destroy();
}

TEST(Callback, a_closure_that_changes_itself_keeps_its_state) {
  Callback<int()> callback([calls = 0]() mutable { return ++calls; });
  EXPECT_EQ(callback(), 1);
  EXPECT_EQ(callback(), 2);
  const Callback<int()> moved(std::move(callback));
  EXPECT_EQ(moved(), 3);
}

TEST(Callback, takes_closures_that_cannot_be_copied) {
  const Callback<int()> callback([owned = std::make_unique<int>(7)] { return *owned; });
  EXPECT_EQ(callback(), 7);
}

TEST(Callback, destroys_its_closure_once) {
  const auto token = std::make_shared<int>();
  {
    Callback<void()> callback([token] {});
    Callback<void()> moved(std::move(callback));
    EXPECT_EQ(token.use_count(), 2);
    callback = std::move(moved);
    EXPECT_EQ(token.use_count(), 2);
    callback = [] {};
    EXPECT_EQ(token.use_count(), 1);
    callback = [token] {};
  }
  EXPECT_EQ(token.use_count(), 1);
}

TEST(Callback, survives_being_moved_onto_itself) {
  Callback<int()> callback([owned = std::make_unique<int>(7)] { return *owned; });
  Callback<int()>& same = callback;
  callback = std::move(same);
  EXPECT_EQ(callback(), 7);
}

TEST(Callback, a_small_closure_outlives_its_callback_while_it_runs) {
  std::optional<Callback<int()>> callback;
  int number = 3;
  callback.emplace([&callback, &number] {
    callback.reset();
    return number;
  });
  EXPECT_EQ((*callback)(), 3);
}

TEST(Callback, a_released_closure_outlives_its_callback_while_it_runs) {
  std::optional<Callback<int()>> callback;
  detail::Closure* kept = nullptr;
  const auto number = std::make_shared<int>(3);
  callback.emplace([&callback, &kept, number] {
    kept = callback->release();
    callback.reset();
    return *number;
  });
  EXPECT_EQ((*callback)(), 3);
  EXPECT_EQ(number.use_count(), 2);
  delete kept;
  EXPECT_EQ(number.use_count(), 1);
}

TEST(Callback, passes_arguments_as_they_are) {
  int changed = 0;
  const Callback<void(int&)> by_reference([](int& number) { number = 5; });
  by_reference(changed);
  EXPECT_EQ(changed, 5);
  const Callback<int(std::unique_ptr<int>)> by_value(
      [](std::unique_ptr<int> owned) { return *owned; });
  EXPECT_EQ(by_value(std::make_unique<int>(6)), 6);
}

TEST(Callback, lets_exceptions_through) {
  const Callback<void()> callback([] { throw 5; });
  EXPECT_THROW(callback(), int);
}

// With -fvisibility=hidden, each shared object has its own Kind object for an empty Callback.
TEST(Callback, is_empty_also_if_another_shared_object_has_created_it) {
  Callback<void()> callback;
  // The Kind: a function pointer and an enumerator. Its address is the first word.
  using Kind = std::array<void*, 2>;
  const Kind* kind = nullptr;
  std::memcpy(&kind, static_cast<void*>(&callback), sizeof kind);
  Kind copy{};
  std::memcpy(&copy, kind, sizeof copy);
  const Kind* const other = &copy;
  std::memcpy(static_cast<void*>(&callback), &other, sizeof other);
  EXPECT_FALSE(callback);
  EXPECT_EQ(callback.release(), nullptr);
  EXPECT_FALSE(callback);
}

}  // namespace
}  // namespace tambour::callback_test
