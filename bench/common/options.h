// The command line of a benchmark program.
#pragma once

#include <CLI/CLI.hpp>

namespace bench {

/// Every program takes --iterations.
void add_iterations(CLI::App& app, int& iterations);

/// Exits with 2 and a message when the arguments make no sense, with 0 after --help.
void parse_or_exit(CLI::App& app, int argc, char** argv);

}  // namespace bench
