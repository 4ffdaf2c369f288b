// Names that docs/http.md does not declare.
extern http::ServerOptions& options;
extern tls::ServerOptions& tls;
extern const Endpoint& port_80;
extern std::string origin, token;
Task<> store(Buffer& piece);
void add_subscriber(std::string_view email);
void record(std::string_view path, std::chrono::nanoseconds duration);
std::string time_of_day();
