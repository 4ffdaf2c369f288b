// simulate(): runs a scenario with many seeds and reports the first failure.

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>

#include <tambour/sim/simulation.h>

#include "base/parse_number.h"

namespace tambour::sim {

namespace {

constexpr const char* seed_variable = "TAMBOUR_SIM_SEED";

std::optional<std::uint64_t> seed_of_environment() {
  const char* text = std::getenv(seed_variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  const auto seed = detail::base::parse_number<std::uint64_t>(text);
  if (!seed) throw std::system_error(seed.error(), seed_variable);
  return *seed;
}

/// Prints the current seed if the process aborts during its lifetime, because an assertion that
/// fails inside a callback prevents any other report.
class SeedReporter {
 public:
  SeedReporter() noexcept {
    struct sigaction action{};
    action.sa_handler = &print_seed;
    action.sa_flags = int(SA_RESETHAND);
    ::sigaction(SIGABRT, &action, &former_);
  }
  SeedReporter(const SeedReporter&) = delete;
  SeedReporter& operator=(const SeedReporter&) = delete;
  ~SeedReporter() { ::sigaction(SIGABRT, &former_, nullptr); }

  static void set_seed(std::uint64_t seed) noexcept {
    const auto digits = std::to_chars(text.begin(), text.end() - 1, seed);
    *digits.ptr = '\0';
  }

 private:
  static void write_text(std::string_view words) noexcept {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, words.data(), words.size());
  }

  static void print_seed(int) noexcept {
    write_text("aborted in a simulation; repeat it with ");
    write_text(seed_variable);
    write_text("=");
    write_text({text.data(), ::strnlen(text.data(), text.size())});
    write_text("\n");
  }

  static inline std::array<char, 24> text{};
  struct sigaction former_{};
};

std::string tail_of(const std::string& trace) {
  constexpr std::size_t bytes_max = 4000;
  if (trace.size() <= bytes_max) return trace;
  return trace.substr(trace.find('\n', trace.size() - bytes_max) + 1);
}

std::optional<Failure> simulate_one(std::uint64_t seed, const Options& options,
                                    const Callback<void(Simulation&)>& scenario) {
  SeedReporter::set_seed(seed);
  Simulation simulation(seed, options);
  try {
    scenario(simulation);
  } catch (const std::exception& thrown) {
    simulation.fail(thrown.what());
  } catch (...) {
    simulation.fail("something was thrown that is no std::exception");
  }
  if (simulation.failure().empty()) return std::nullopt;
  return Failure{
      .seed = seed, .message = simulation.failure(), .trace_tail = tail_of(simulation.trace())};
}

}  // namespace

std::string Failure::report() const {
  return "seed " + std::to_string(seed) + " failed: " + message + "\nrepeat it with " +
         seed_variable + "=" + std::to_string(seed) + "\n" + trace_tail;
}

std::optional<Failure> simulate(Seeds seeds, const Callback<void(Simulation&)>& scenario,
                                const Callback<Options(std::uint64_t)>& options) {
  if (const auto wanted = seed_of_environment()) seeds = {.first = *wanted, .count = 1};
  const SeedReporter reporter;
  for (std::uint64_t i = 0; i < seeds.count; ++i) {
    const std::uint64_t seed = seeds.first + i;
    if (auto failure = simulate_one(seed, options(seed), scenario)) return failure;
  }
  return std::nullopt;
}

}  // namespace tambour::sim
