#include "common/options.h"

#include <cstdlib>

namespace bench {

void add_iterations(CLI::App& app, int& iterations) {
  app.add_option("--iterations", iterations, "number of measurements")
      ->required()
      ->check(CLI::Range(1, 1'000'000));
}

void parse_or_exit(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
}

}  // namespace bench
