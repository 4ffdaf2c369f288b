// Names that docs/http-client.md does not declare.
extern http::ClientOptions& options;
extern std::string text;
void report(http::Status status);
