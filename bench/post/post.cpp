#include "post/post.h"

#include <string>

#include "common/options.h"

namespace bench {

PostOptions parse_post_options(int argc, char** argv) {
  PostOptions options;
  std::string pattern = "stream";
  CLI::App app("Posts tasks to a loop from other threads.");
  app.add_option("--producers", options.producers,
                 "posting threads; with ring, the number of loops")
      ->required()
      ->check(CLI::Range(1, 1000));
  app.add_option("--tasks", options.tasks, "total tasks; with ring, the number of posts")
      ->required()
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--pattern", pattern, "stream: to one loop; ring: from loop to loop")
      ->check(CLI::IsMember({"stream", "ring"}));
  add_iterations(app, options.iterations);
  parse_or_exit(app, argc, argv);
  options.ring = pattern == "ring";
  return options;
}

}  // namespace bench
