// The command line of a benchmark program.
#pragma once

#include <CLI/CLI.hpp>

namespace bench {

/// Adds the option --iterations, which every program has.
void add_iterations(CLI::App& app, int& iterations);

/// Exits with status 2 and a message if the arguments are invalid, with status 0 after --help.
void parse_or_exit(CLI::App& app, int argc, char** argv);

}  // namespace bench
