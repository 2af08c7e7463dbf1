#include "wire/script.h"

/* The contracts in scripts/ say the same; the arguments are taken from there (script_sources). */
const struct script_info script_infos[SCRIPT_COUNT] = {
    [SCRIPT_RELEASE] = {.keys = "", .delivery = SCRIPT_ASKED},
    [SCRIPT_RENEW] = {.keys = ""},
    [SCRIPT_BEAT] = {.keys = "", .delivery = SCRIPT_TRIED},
    [SCRIPT_PROBE] = {.keys = "", .delivery = SCRIPT_TRIED},
    [SCRIPT_TAKE] = {.keys = "", .by_lock = true, .takes = true, .counts = true},
    [SCRIPT_RENEW_FENCED] = {.keys = "c", .counts = true},
    [SCRIPT_STAY] = {.keys = "", .stays = true},
    [SCRIPT_INSPECT] = {.keys = "rc"},
    [SCRIPT_PERMIT] = {.keys = "", .takes = true, .counts = true, .reports_free = true},
    [SCRIPT_SHARE] = {.keys = "rw", .takes = true},
    [SCRIPT_SHARE_RENEW] = {.keys = "r"},
    [SCRIPT_SHARE_RELEASE] = {.keys = "r"},
    [SCRIPT_WRITE] = {.keys = "rw", .takes = true},
    [SCRIPT_WRITE_FENCED] = {.keys = "rwc", .takes = true, .counts = true},
    [SCRIPT_QUEUE] = {.keys = "", .delivery = SCRIPT_ASKED, .takes = true, .counts = true},
    [SCRIPT_QUEUE_SET] = {.keys = "", .by_lock = true, .takes = true, .counts = true},
    [SCRIPT_LEAVE] = {.keys = "", .delivery = SCRIPT_ASKED},
    [SCRIPT_SHARE_QUEUE] = {.keys = "rw", .takes = true},
    [SCRIPT_SHARE_LEAVE] = {.keys = "r"},
    [SCRIPT_QUEUE_PERMIT] = {.keys = "", .takes = true, .counts = true, .reports_free = true},
    [SCRIPT_PERMIT_RELEASE] = {.keys = ""},
    [SCRIPT_PASS] = {.keys = ""},
};
