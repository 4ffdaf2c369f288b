// A move-only function that may be destroyed while it runs.
//
// Callbacks destroy the handles that own them: a connection closes itself, a timer removes itself.
// Small closures are therefore invoked on a copy (two registers), and the memory of the others can
// be released on its own, so that the loop keeps it until its iteration ends.
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

#include <tambour/cxx23.h>

namespace tambour {

/// A closure on the heap whose deletion a loop can defer: see loop::Core::retire().
class Closure {
 public:
  Closure() noexcept : born_(nested_runs.load(std::memory_order_relaxed)) {}
  Closure(const Closure&) = delete;
  Closure& operator=(const Closure&) = delete;
  virtual ~Closure() = default;

  /// How many nested runs of loops this process had begun when the closure was made. If it is at
  /// least the number of a nested run, the closure was made after that run began, so that no
  /// callback outside of that run is executing it.
  [[nodiscard]] std::uint64_t born() const noexcept { return born_; }
  /// A nested run begins; returns its number.
  static std::uint64_t begin_nested_run() noexcept {
    return nested_runs.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  /// The next closure of a list of retired ones; replaces born().
  [[nodiscard]] Closure* next() const noexcept { return next_; }
  void set_next(Closure* next) noexcept { next_ = next; }

 private:
  // A thread that hands a closure to a loop reads this before the loop runs it, and so before the
  // loop begins a nested run inside of it: relaxed order is enough.
  static inline constinit std::atomic<std::uint64_t> nested_runs{0};

  union {
    std::uint64_t born_;
    Closure* next_;
  };
};

template <class Signature>
class Callback;

/// Aborts with a message.
[[noreturn]] void fail_on_empty_callback() noexcept;

/// Owns one callable. A closure that is trivially copyable, callable as const and no larger than
/// two pointers is stored inside and costs no allocation; any other is allocated once.
template <class R, class... Args>
class Callback<R(Args...)> {
 public:
  Callback() = default;

  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, Callback> && std::invocable<F&, Args...>)
  Callback(F&& callable) {  // NOLINT(google-explicit-constructor): a lambda is a callback.
    using Callable = std::decay_t<F>;
    if constexpr (stored_inside<Callable>) {
      Callable copy(std::forward<F>(callable));
      std::memcpy(&words_, std::addressof(copy), sizeof(Callable));
      kind_ = &kind<&invoke_inside<Callable>, false>;
    } else {
      Closure* closure = new Allocated<Callable>(std::forward<F>(callable));
      words_.first = closure;
      kind_ = &kind<&invoke_allocated<Callable>, true>;
    }
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

  explicit operator bool() const noexcept { return kind_ != &empty; }

  /// Invokes it; aborts with a message if it is empty. The Callback may be destroyed or moved
  /// meanwhile, provided that what `release` gave up lives until the call has returned.
  R operator()(Args... args) const { return kind_->invoke(words_, std::forward<Args>(args)...); }

  /// Empties this and hands its heap closure, if it has one, to the caller.
  [[nodiscard]] Closure* release() noexcept {
    const Kind* released = std::exchange(kind_, &empty);
    if (!released->allocated) return nullptr;
    return static_cast<Closure*>(words_.first);
  }

 private:
  struct Words {
    void* first;
    void* second;
  };

  /// What the words hold. One object for each type of callable, so that a Callback, of which there
  /// is one in every handle, is three words.
  struct Kind {
    R (*invoke)(Words, Args...);
    bool allocated;  ///< The first word is a Closure, and ours.
  };
  template <R (*invoke)(Words, Args...), bool allocated>
  static constexpr Kind kind{invoke, allocated};

  [[noreturn]] static R invoke_empty(Words /*words*/, Args... /*args*/) {
    fail_on_empty_callback();
  }
  /// That of an empty Callback, so that invoking one aborts with a message.
  static constexpr Kind empty{&invoke_empty, false};

  template <class F>
  struct Allocated final : Closure {
    template <class G>
      requires std::constructible_from<F, G>
    explicit Allocated(G&& callable) : function(std::forward<G>(callable)) {}
    F function;
  };

  template <class F>
  static constexpr bool stored_inside =
      sizeof(F) <= sizeof(Words) && alignof(F) <= alignof(Words) &&
      std::is_trivially_copyable_v<F> && std::is_trivially_destructible_v<F> &&
      std::invocable<const F&, Args...>;

  template <class F>
  static R invoke_inside(Words words, Args... args) {
    // By way of bytes, which costs nothing: to read the words in place as an F, which they are not,
    // would let the compiler assume that they were never written.
    std::array<std::byte, sizeof(F)> bytes;
    std::memcpy(bytes.data(), &words, sizeof(F));
    const F function = std::bit_cast<F>(bytes);
    return std::invoke_r<R>(function, std::forward<Args>(args)...);
  }

  template <class F>
  static R invoke_allocated(Words words, Args... args) {
    auto* closure = static_cast<Allocated<F>*>(static_cast<Closure*>(words.first));
    return std::invoke_r<R>(closure->function, std::forward<Args>(args)...);
  }

  const Kind* kind_ = &empty;
  Words words_{};
};

}  // namespace tambour
