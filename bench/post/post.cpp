#include "post/post.h"

#include <string>

#include "common/options.h"

namespace bench {

PostOptions parse_post_options(int argc, char** argv) {
  PostOptions options;
  std::string pattern = "stream";
  CLI::App app("Tasks posted to a loop by other threads.");
  app.add_option("--producers", options.producers, "threads that post; loops in a ring")
      ->required()
      ->check(CLI::Range(1, 1000));
  app.add_option("--tasks", options.tasks, "tasks in all; hand-overs in a ring")
      ->required()
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--pattern", pattern, "stream to one loop, or ring of loops")
      ->check(CLI::IsMember({"stream", "ring"}));
  add_iterations(app, options.iterations);
  parse_or_exit(app, argc, argv);
  options.ring = pattern == "ring";
  return options;
}

}  // namespace bench
