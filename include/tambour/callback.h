// A move-only function that may be destroyed while it runs.
//
// Callbacks destroy the handles that own them: a connection closes itself, a timer removes itself.
// Small closures are therefore invoked on a copy (two registers), and the memory of the others can
// be released on its own, so that the loop keeps it until its turn ends.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace tambour {

/// A closure on the heap, as the loop sees it: something to delete later.
class Closure {
 public:
  Closure() = default;
  Closure(const Closure&) = delete;
  Closure& operator=(const Closure&) = delete;
  virtual ~Closure() = default;

  /// The next closure that waits to be deleted; belongs to whoever holds the list.
  Closure* next = nullptr;
};

template <class Signature>
class Callback;

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
      invoke_ = &invoke_inside<Callable>;
    } else {
      auto* closure = new Allocated<Callable>(std::forward<F>(callable));
      owned_ = closure;
      words_.first = closure;
      invoke_ = &invoke_allocated<Callable>;
    }
  }

  Callback(Callback&& other) noexcept
      : invoke_(std::exchange(other.invoke_, nullptr)),
        owned_(std::exchange(other.owned_, nullptr)),
        words_(other.words_) {}
  Callback& operator=(Callback&& other) noexcept {
    Callback(std::move(other)).swap(*this);
    return *this;
  }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
  ~Callback() { delete owned_; }

  void swap(Callback& other) noexcept {
    std::swap(invoke_, other.invoke_);
    std::swap(owned_, other.owned_);
    std::swap(words_, other.words_);
  }

  explicit operator bool() const noexcept { return invoke_ != nullptr; }

  /// Calls it. The Callback may be destroyed or moved meanwhile, provided that what `release` gave
  /// up lives until the call has returned.
  R operator()(Args... args) const { return invoke_(words_, std::forward<Args>(args)...); }

  /// Empties this and hands its heap closure, if it has one, to the caller.
  [[nodiscard]] Closure* release() noexcept {
    invoke_ = nullptr;
    return std::exchange(owned_, nullptr);
  }

 private:
  struct Words {
    void* first;
    void* second;
  };

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
    auto* closure = static_cast<Allocated<F>*>(words.first);
    return std::invoke_r<R>(closure->function, std::forward<Args>(args)...);
  }

  R (*invoke_)(Words, Args...) = nullptr;
  Closure* owned_ = nullptr;
  Words words_{};
};

}  // namespace tambour
