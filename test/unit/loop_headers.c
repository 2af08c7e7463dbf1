/*
 * Uses only the public headers for event loops, those of the loops that are here, as C99, C23,
 * C++11 and C++20. Compiled with warnings as errors; the output is not used.
 */
#ifdef HAS_UV
#include <redlock/uv.h>
#endif
#ifdef HAS_EV
#include <redlock/ev.h>
#endif
#ifdef HAS_GLIB
#include <redlock/glib.h>
#endif
#ifdef HAS_SDEVENT
#include <redlock/sdevent.h>
#endif
#include <redlock/loop.h>

#define SHOULD_LIVE(adapter) ((adapter) != NULL && (adapter)->loop != NULL)

int main(void) {
    int failed = redlock_loop_fd(NULL) != -1;
#ifdef HAS_UV
    redlock_uv *uv = redlock_uv_attach(uv_default_loop());
    failed |= !SHOULD_LIVE(uv);
    redlock_uv_detach(uv);
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    failed |= uv_loop_close(uv_default_loop()) != 0;
#endif
#ifdef HAS_EV
    redlock_ev *ev = redlock_ev_attach(EV_DEFAULT);
    failed |= !SHOULD_LIVE(ev);
    redlock_ev_detach(ev);
    ev_run(EV_DEFAULT_ 0);
    ev_loop_destroy(EV_DEFAULT);
#endif
#ifdef HAS_GLIB
    redlock_glib *glib = redlock_glib_attach(NULL);
    failed |= !SHOULD_LIVE(glib);
    redlock_glib_detach(glib);
#endif
#ifdef HAS_SDEVENT
    sd_event *event = NULL;
    failed |= sd_event_default(&event) < 0;
    redlock_sdevent *sdevent = redlock_sdevent_attach(event);
    failed |= !SHOULD_LIVE(sdevent);
    redlock_sdevent_detach(sdevent);
    sd_event_unref(event);
#endif
    return failed;
}
