#include "common/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <utility>

namespace bench {

struct CommandLine::Parser {
  explicit Parser(const char* description) : app(description) {}

  CLI::App app;
  CLI::App* command = &app;
  int* iterations = nullptr;
};

namespace {

void add_iterations(CLI::App& app, int& iterations) {
  app.add_option("--iterations", iterations, "number of measurements")
      ->required()
      ->check(CLI::Range(1, 1'000'000));
}

}  // namespace

CommandLine::CommandLine(const char* description, int& iterations)
    : parser_(std::make_unique<Parser>(description)) {
  parser_->iterations = &iterations;
}

CommandLine::~CommandLine() = default;

void CommandLine::add(const char* name, int& value, const char* help, int low, int high) {
  parser_->command->add_option(name, value, help)->required()->check(CLI::Range(low, high));
}

void CommandLine::add(const char* name, int& value, const char* help,
                      std::map<std::string, int> words) {
  parser_->command->add_option(name, value, help)
      ->required()
      ->transform(CLI::CheckedTransformer(std::move(words)));
}

void CommandLine::add_optional(const char* name, int& value, const char* help, int low, int high) {
  parser_->command->add_option(name, value, help)->check(CLI::Range(low, high));
}

void CommandLine::add_optional(const char* name, bool& value, const char* help,
                               std::map<std::string, bool> words) {
  parser_->command->add_option(name, value, help)
      ->transform(CLI::CheckedTransformer(std::move(words)));
}

void CommandLine::add_flag(const char* name, bool& value, const char* help) {
  parser_->command->add_flag(name, value, help);
}

void CommandLine::add_command(const char* name, const char* description) {
  parser_->app.require_subcommand(1);
  parser_->command = parser_->app.add_subcommand(name, description);
  add_iterations(*parser_->command, *parser_->iterations);
}

void CommandLine::check(std::function<std::string()> find_error) {
  parser_->command->callback([find_error = std::move(find_error)] {
    if (const std::string error = find_error(); !error.empty()) throw CLI::ValidationError(error);
  });
}

void CommandLine::parse_or_exit(int argc, char** argv) {
  if (parser_->command == &parser_->app) add_iterations(parser_->app, *parser_->iterations);
  try {
    parser_->app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(parser_->app.exit(error) == 0 ? 0 : 2);
  }
}

bool CommandLine::has_command(const char* name) const { return parser_->app.got_subcommand(name); }

}  // namespace bench
