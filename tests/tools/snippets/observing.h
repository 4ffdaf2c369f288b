// Names that docs/observing.md does not declare.
extern EventLoop& loop;
extern EventLoop& other_loop;
extern LoopGroup& loops;
extern http::Router& router;
extern http::ServerGroup& server;
extern inspector::Collector& collector;
extern http::Client& client;
void export_span(const http::Span& span);
