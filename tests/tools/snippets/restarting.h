// Names that docs/restarting.md does not declare.
extern InheritedListeners& inherited;
extern http::Handler handler;
extern http::ServerOptions options;
extern UniqueFd web;
