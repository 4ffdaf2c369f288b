// Runs the checks with the corpus of the fuzzers, with prefixes of its inputs, and with random
// inputs.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fuzz/bytes_checks.h"
#include "fuzz/random_input.h"
#include "support/scale.h"

namespace tambour::bytes_test {
namespace {

using Input = std::vector<std::uint8_t>;

struct Target {
  const char* name;
  void (*check)(fuzz::Bytes);
};

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }  // NOLINT

class FuzzedBytes : public testing::TestWithParam<Target> {
 protected:
  /// Returns an empty string if the check passes.
  static std::string wrong_with(fuzz::Bytes bytes) {
    try {
      GetParam().check(bytes);
    } catch (const fuzz::Wrong& wrong) {
      return wrong.text;
    }
    return "";
  }
  static std::vector<Input> corpus() {
    std::vector<Input> inputs;
    const auto folder = std::filesystem::path(TAMBOUR_CORPUS) / GetParam().name;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::ifstream file(entry.path(), std::ios::binary);
      inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    std::ranges::sort(inputs);
    return inputs;
  }
};

TEST_P(FuzzedBytes, match_the_model_with_the_corpus_and_its_mutations) {
  const auto inputs = corpus();
  ASSERT_FALSE(inputs.empty());
  std::mt19937_64 random(1);
  for (const Input& input : inputs) {
    ASSERT_EQ(wrong_with(input), "") << testing::PrintToString(input);
    for (std::size_t i = 0; i < (test::sanitized ? 2 : 10) && !input.empty(); ++i) {
      Input changed = input;
      changed[random() % changed.size()] = static_cast<std::uint8_t>(random());
      if (i % 2 == 0) changed.resize(random() % changed.size());
      ASSERT_EQ(wrong_with(changed), "") << testing::PrintToString(changed);
    }
  }
}

TEST_P(FuzzedBytes, match_the_model_with_inputs_of_many_seeds) {
  for (std::uint64_t seed = 1; seed <= (test::sanitized ? 30 : 500); ++seed)
    ASSERT_EQ(wrong_with(fuzz::random_input(seed)), "") << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(
    Every, FuzzedBytes,
    testing::Values(Target{"buffer", fuzz::check_buffer}, Target{"endpoint", fuzz::check_endpoint},
                    Target{"codec", fuzz::check_codec}, Target{"proxy", fuzz::check_proxy},
                    Target{"dns", fuzz::check_dns}, Target{"evdns", fuzz::check_evdns},
                    Target{"url", fuzz::check_url}, Target{"http", fuzz::check_http},
                    Target{"hpack", fuzz::check_hpack}, Target{"h2_frames", fuzz::check_h2_frames},
                    Target{"http_server", fuzz::check_http_server},
                    Target{"coding", fuzz::check_coding}, Target{"cookie", fuzz::check_cookie},
                    Target{"forwarded", fuzz::check_forwarded},
                    Target{"multipart", fuzz::check_multipart},
                    Target{"websocket", fuzz::check_websocket},
                    Target{"event_stream", fuzz::check_event_stream}),
    [](const auto& entry) { return std::string(entry.param.name); });

}  // namespace
}  // namespace tambour::bytes_test
