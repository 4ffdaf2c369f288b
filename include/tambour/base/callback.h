// A move-only function that may be destroyed while it runs.
//
// A callback may destroy the handle that owns it: a connection closes itself, a timer removes
// itself. A closure that is stored inline is therefore invoked on a copy. A larger closure is
// allocated on the heap; the handle passes release() to the loop, which deletes the closure after
// the iteration.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include <tambour/base/cxx23.h>

#pragma GCC visibility push(default)

namespace tambour {

namespace detail {

/// A heap-allocated closure whose deletion a loop can defer: detail::loop::Core::defer_delete().
class Closure {
 public:
  Closure() noexcept : born_(nested_runs.load(std::memory_order_relaxed)) {}
  Closure(const Closure&) = delete;
  Closure& operator=(const Closure&) = delete;
  virtual ~Closure() = default;

  /// The number of nested runs of loops that this process had begun when the closure was created.
  /// If it is at least the number of a nested run, the closure was created after that run began, so
  /// no callback outside of that run is executing it.
  [[nodiscard]] std::uint64_t born() const noexcept { return born_; }
  /// Registers the start of a nested run; returns its number.
  static std::uint64_t begin_nested_run() noexcept {
    return nested_runs.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  /// The next closure in a list of closures to delete. Shares its memory with born().
  [[nodiscard]] Closure* next() const noexcept { return next_; }
  void set_next(Closure* next) noexcept { next_ = next; }

 private:
  // Relaxed order is sufficient: a thread that hands a closure to a loop reads this before the loop
  // runs the closure, and so before the loop begins a nested run inside it.
  static inline constinit std::atomic<std::uint64_t> nested_runs{0};

  // clang-tidy takes the members of an anonymous union for public ones.
  union {
    std::uint64_t born_;  // NOLINT(readability-identifier-naming)
    Closure* next_;       // NOLINT(readability-identifier-naming)
  };
};

}  // namespace detail

template <class Signature>
class Callback;

namespace detail {

/// True for callables that can be empty: pointers, std::function and Callback.
template <class F>
inline constexpr bool may_be_empty = std::is_pointer_v<F> || std::is_member_pointer_v<F>;
template <class Signature>
inline constexpr bool may_be_empty<std::function<Signature>> = true;
template <class Signature>
inline constexpr bool may_be_empty<Callback<Signature>> = true;

/// A lambda coroutine accesses its captures through the closure. A closure that is stored inline
/// is invoked on a copy, which is destroyed when the coroutine first suspends.
template <class F, class... Args>
concept StartsCoroutine = requires { typename std::invoke_result_t<F, Args...>::promise_type; };

/// A function, a lambda without `auto` parameters, or another object with one operator(). With it,
/// the library recognizes an argument that was meant as a callback, and explains why it is not one.
template <class F>
concept LooksCallable = std::is_function_v<std::remove_pointer_t<std::remove_cvref_t<F>>> ||
                        requires { &std::remove_cvref_t<F>::operator(); };

/// A function that returns a Task, which does nothing until it is awaited or spawned.
template <class F, class... Args>
concept ReturnsLazyTask = requires {
  requires std::remove_cvref_t<std::invoke_result_t<F, Args...>>::starts_when_awaited;
};

/// Aborts with a message.
[[noreturn]] void fail_on_empty_callback() noexcept;

}  // namespace detail

/// Owns one callable, which may be move-only. A closure that is trivially copyable, callable as
/// const and no larger than two pointers is stored inline without allocation, unless it is a
/// coroutine; any other is allocated once.
///
/// All functions that the library keeps are Callbacks, except those in options and handlers of
/// which each loop of a group gets a copy, and those that programs copy with their options:
/// ListenOptions, tls::Options, http::ServerOptions, handlers and middleware. These are
/// std::function.
///
/// Invoking is const, like that of std::function: a `mutable` closure changes its own state.
/// A Callback that is made of nullptr or of an empty std::function is empty.
template <class R, class... Args>
class Callback<R(Args...)> {
 public:
  Callback() = default;
  Callback(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor): as std::function.

  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Callback> && std::invocable<F&, Args...>)
  Callback(F&& callable) {  // NOLINT(google-explicit-constructor): a lambda is a callback.
    using Callable = std::decay_t<F>;
    static_assert(!std::is_void_v<R> || !detail::ReturnsLazyTask<F&, Args...>,
                  "this callback returns a Task that nothing would run: call spawn(loop, task) in "
                  "the callback");
    if constexpr (detail::may_be_empty<Callable> &&
                  !std::is_function_v<std::remove_reference_t<F>>) {
      if (!static_cast<bool>(callable)) return;
    }
    if constexpr (stored_inline<Callable>) {
      Callable copy(std::forward<F>(callable));
      std::memcpy(&words_, std::addressof(copy), sizeof(Callable));
      kind_ = &kind<&invoke_inline<Callable>, Stored::in_place>;
    } else {
      detail::Closure* closure = new Allocated<Callable>(std::forward<F>(callable));
      words_.first = closure;
      kind_ = &kind<&invoke_allocated<Callable>, Stored::allocated>;
    }
  }

  /// Explains why a function is not a callback of this signature.
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Callback> && !std::invocable<F&, Args...> &&
             detail::LooksCallable<F>)
  Callback(F&& /*callable*/) {  // NOLINT(google-explicit-constructor): as above.
    static_assert(std::invocable<F&, Args...>,
                  "the parameters of this function are not those of the callback: see Args in the "
                  "type Callback<R(Args...)>");
  }

  Callback(Callback&& other) noexcept
      : kind_(std::exchange(other.kind_, &empty)), words_(other.words_) {}
  Callback& operator=(Callback&& other) noexcept {
    Callback(std::move(other)).swap(*this);
    return *this;
  }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() { delete release(); }

  void swap(Callback& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(words_, other.words_);
  }

  explicit operator bool() const noexcept { return kind_->stored != Stored::nothing; }

  /// Invokes the callable; aborts with a message if the Callback is empty. The Callback may be
  /// destroyed or moved during the call, provided that the closure returned by `release` outlives
  /// it.
  R operator()(Args... args) const { return kind_->invoke(words_, std::forward<Args>(args)...); }

  /// Empties the Callback and transfers its heap closure, if any, to the caller.
  [[nodiscard]] detail::Closure* release() noexcept {
    const Kind* released = std::exchange(kind_, &empty);
    if (released->stored != Stored::allocated) return nullptr;
    return static_cast<detail::Closure*>(words_.first);
  }

 private:
  struct Words {
    void* first;
    void* second;
  };

  enum class Stored : unsigned char {
    nothing,
    in_place,
    allocated,  ///< The first word is a detail::Closure that the Callback owns.
  };

  /// Describes the contents of the words. It is shared by all Callbacks with the same type of
  /// callable, so that a Callback, which every handle contains, is three words. With
  /// -fvisibility=hidden each shared object has its own copy, so the address means nothing.
  struct Kind {
    R (*invoke)(Words, Args...);
    Stored stored;
  };
  template <R (*invoke)(Words, Args...), Stored stored>
  static constexpr Kind kind{invoke, stored};

  // The signature is that of Kind::invoke.
  // NOLINTNEXTLINE(performance-unnecessary-value-param)
  [[noreturn]] static R invoke_empty(Words /*words*/, Args... /*args*/) {
    detail::fail_on_empty_callback();
  }
  /// The Kind of an empty Callback; invoking it aborts with a message.
  static constexpr Kind empty{&invoke_empty, Stored::nothing};

  template <class F>
  struct Allocated final : detail::Closure {
    template <class G>
      requires std::constructible_from<F, G>
    explicit Allocated(G&& callable) : function(std::forward<G>(callable)) {}
    F function;
  };

  template <class F>
  static constexpr bool stored_inline =
      !detail::StartsCoroutine<const F&, Args...> && sizeof(F) <= sizeof(Words) &&
      alignof(F) <= alignof(Words) && std::is_trivially_copyable_v<F> &&
      std::is_trivially_destructible_v<F> && std::invocable<const F&, Args...>;

  template <class F>
  static R invoke_inline(Words words, Args... args) {  // NOLINT(performance-*): the signature's.
    // Copied through bytes, which the compiler optimizes away. Reading the words in place as an F
    // would violate strict aliasing: the compiler could assume that they were never written.
    std::array<std::byte, sizeof(F)> bytes;
    std::memcpy(bytes.data(), &words, sizeof(F));
    const F function = std::bit_cast<F>(bytes);
    return std::invoke_r<R>(function, std::forward<Args>(args)...);
  }

  template <class F>
  static R invoke_allocated(Words words, Args... args) {
    auto* closure = static_cast<Allocated<F>*>(static_cast<detail::Closure*>(words.first));
    return std::invoke_r<R>(closure->function, std::forward<Args>(args)...);
  }

  const Kind* kind_ = &empty;
  Words words_{};
};

}  // namespace tambour

#pragma GCC visibility pop
