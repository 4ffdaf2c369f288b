#include "post/post.h"

#include <string>

#include "common/options.h"

namespace bench {

PostOptions parse_post_options(int argc, char** argv) {
  PostOptions options;
  CommandLine line("Posts tasks to a loop from other threads.", options.iterations);
  line.add("--producers", options.producers, "posting threads; with ring, the number of loops", 1,
           1000);
  line.add("--tasks", options.tasks, "total tasks; with ring, the number of posts", 1,
           1'000'000'000);
  line.add_optional("--pattern", options.ring, "stream: to one loop; ring: from loop to loop",
                    {{"stream", false}, {"ring", true}});
  line.parse_or_exit(argc, argv);
  return options;
}

}  // namespace bench
