// Names that docs/adapters.md does not declare.
// include: <tambour/adapters/curl.h>
// include: <tambour/adapters/glib.h>
// include: <tambour/adapters/hiredis.h>
// include: <tambour/adapters/libpq.h>
// include: <tambour/adapters/mosquitto.h>
// include: <tambour/adapters/sd_event.h>
extern EventLoop& loop;
extern GMainLoop* main_loop;
extern sd_event* event;
int callback(sd_event_source* source, void* data);
