// Names that docs/metrics.md does not declare.
extern metrics::Registry& registry;
extern http::ServerOptions& options;
extern http::Router& router;
extern std::vector<int>& pool;
extern LoopGroup& loops;
extern http::ServerGroup& server_group;
extern EventLoop& loop;
extern http::Client& client;
