// SignalSet: watchers that put their signals into a channel.
#include <tambour/events/signal_set.h>

#include <vector>

namespace tambour {

class SignalSet::State {
 public:
  /// Throws std::bad_alloc.
  State(EventLoop& loop, std::size_t size, std::source_location created_at)
      : pending_(std::make_shared<std::uint64_t>(0)), arrived_(loop, size, created_at) {
    watchers_.reserve(size);
    // Allocates the memory of the channel, so that a signal that arrives later needs none.
    for (std::size_t i = 0; i < size; ++i) static_cast<void>(arrived_.try_send(0));
    for (std::size_t i = 0; i < size; ++i) static_cast<void>(arrived_.try_receive());
  }

  Result<> watch(EventLoop& loop, int number, std::source_location created_at) {
    watchers_.emplace_back(loop, number, [this](int arrived) { add(arrived); }, created_at);
    return watchers_.back().start();
  }

  [[nodiscard]] Next next() noexcept { return {arrived_.receive(), pending_}; }

 private:
  void add(int number) {
    const std::uint64_t bit = Next::bit_of(number);
    if ((*pending_ & bit) != 0) return;
    *pending_ |= bit;
    // There is room: each signal is in the channel at most once.
    static_cast<void>(arrived_.try_send(number));
  }

  /// The signals in the channel, and those that are assigned to waits that have not resumed yet.
  std::shared_ptr<std::uint64_t> pending_;
  TaskChannel<int> arrived_;
  std::vector<Signal> watchers_;
};

SignalSet::SignalSet(detail::OwnedPointer<State> state) noexcept : state_(std::move(state)) {}
SignalSet::SignalSet(SignalSet&& other) noexcept = default;
SignalSet& SignalSet::operator=(SignalSet&& other) noexcept = default;
SignalSet::~SignalSet() = default;

Result<SignalSet> SignalSet::open(EventLoop& loop, std::span<const int> numbers,
                                  std::source_location created_at) {
  auto state = std::make_unique<State>(loop, numbers.size(), created_at);
  for (const int number : numbers) {
    if (auto started = state->watch(loop, number, created_at); !started)
      return std::unexpected(started.error());
  }
  return SignalSet(std::move(state));
}

SignalSet::Next SignalSet::next() noexcept { return state_->next(); }

}  // namespace tambour
